"""What `ncclras -f json` prints: the communicators of a running job, with the operations that each rank has launched.

    {"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [
       {"hash": "0xae94423cfbb2ef4a", "secondary_hash": "0x1:0x2", "size": 2, "ranks_count": 1,
        "missing_ranks_count": 1,
        "ranks": [{"rank": 0, "host": "n0", "pid": 100, "cuda_dev": 0, "nvml_dev": 0,
                   "status": {"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false,
                              "abort_flag": false},
                   "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0,
                                         "AllReduce": 641}}],
        "missing_ranks": [{"rank": 1, "host": "n0", "pid": 101, "cuda_dev": 1, "nvml_dev": 1,
                           "status": {"unresponsive": true, "considered_dead": false}}]}],
     "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}}

Ranks of the largest communicator are taken for those of the job if it has every GPU of the dump.

Source: NCCL 2.28.7 and later, src/ras/client_support.cc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from linkwright.base.errors import FileError
from linkwright.formats.logs import Source
from linkwright.formats.logs.lines import Complaints, clean, whole

from . import kinds

TOOL = "NCCL RAS"
_IN_PROGRESS = 7  # ncclInProgress, of a communicator that is being made
_ERRORS = {
    1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage",
    6: "Remote process error",
}  # fmt: skip


def read(source: Source) -> kinds.Dump:
    """The communicators of a job."""
    document = source.document()
    communicators = document.get("communicators") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(communicators, list):
        raise FileError(f"{source.path}: the output of ncclras is cut, or is not JSON; query again")
    complaints = Complaints()
    if document.get("communicators_count") != len(communicators):
        complaints.add(0, f"`communicators` holds {len(communicators)}, not `communicators_count`")
    found = [one for at, entry in enumerate(communicators) if (one := _communicator(at, entry, complaints)) is not None]
    jobs = _jobs_ranks(found)
    parts = [_Facts(*one, jobs) for one in found]
    for part in parts:
        if len({rank for progress in part.progress for rank in progress.ranks}) != part.reported:
            complaints.add(0, f"{part.group.name}: ranks without `collective_counts`")
    version = document.get("nccl_version")
    return kinds.Dump(
        TOOL, source.path, tuple(part.group for part in parts), (),
        tuple(progress for part in parts for progress in part.progress),
        tuple(condition for part in parts for condition in part.conditions),
        snapshot=True, version=clean(version)[:40] if isinstance(version, str) else None,
        complaints=tuple(complaints.first),
    )  # fmt: skip


_Listed = list[tuple[kinds.Member, dict[str, Any]]]


def _communicator(at: int, entry: object, complaints: Complaints) -> tuple[kinds.CommGroup, _Listed, _Listed] | None:
    """A communicator, its ranks and those missing, each with its object."""
    if not isinstance(entry, dict):
        complaints.add(0, f"communicator {at} is not an object")
        return None
    size = whole(entry.get("size"), kinds.MOST_RANKS)
    lists = []
    for name in ("ranks", "missing_ranks"):
        listed = entry.get(name)
        if isinstance(listed, list) and entry.get(f"{name}_count") != len(listed):
            complaints.add(0, f"communicator {at}: `{name}` holds {len(listed)}, not `{name}_count`")
        members = [_member(one) for one in listed] if isinstance(listed, list) else [None]
        if None in members:
            complaints.add(0, f"communicator {at}: `{name}` is not a list of ranks")
        lists.append([one for one in members if one is not None])
    ranks = [member.rank for its in lists for member, _ in its]
    key = clean(str(entry.get("hash"))[:40])
    if not size or len(set(ranks)) != len(ranks) or any(rank is None or rank >= size for rank in ranks):
        complaints.add(0, f"communicator {at} ({key}): its ranks are not those of a communicator of {size}")
        return None
    second = entry.get("secondary_hash")
    return kinds.CommGroup(f"{key} {clean(str(second)[:80])}", f"communicator {key}", size), lists[0], lists[1]


def _member(entry: object) -> tuple[kinds.Member, dict[str, Any]] | None:
    if not isinstance(entry, dict):
        return None
    rank, gpu, process = (whole(entry.get(key), kinds.MOST_RANKS) for key in ("rank", "cuda_dev", "pid"))
    host = entry.get("host")
    if rank is None:
        return None
    name = clean(host)[:200] if isinstance(host, str) and host != "unknown" else None
    return kinds.Member(rank, name, None if gpu is None else str(gpu), process), entry


def _device(member: kinds.Member) -> tuple[str | None, int | None, str | None]:
    return member.host, member.process, member.gpu


def _jobs_ranks(
    found: list[tuple[kinds.CommGroup, _Listed, _Listed]],
) -> dict[tuple[str | None, int | None, str | None], int]:
    """Device -> its rank in the communicator that has all of them; empty if none has."""
    devices = {_device(member) for _, ranks, missing in found for member, _ in (*ranks, *missing)}
    for group, ranks, missing in sorted(found, key=lambda one: -(one[0].size or 0)):
        its = {_device(member): member.rank or 0 for member, _ in (*ranks, *missing)}
        if len(its) == len(devices) == group.size and its.keys() == devices:
            return its
    return {}


class _Facts:
    """What a communicator states, in the job's ranks where these are known."""

    def __init__(self, group: kinds.CommGroup, ranks: _Listed, missing: _Listed, jobs: dict[Any, int]):
        self.reported = len(ranks)
        self.conditions: list[kinds.RankStatus] = []
        self.progress: list[kinds.RankProgress] = []
        listed = sorted((member.rank or 0, member) for member, _ in (*ranks, *missing))
        everyone = len(listed) == group.size and bool(jobs)
        numbers = tuple(jobs[_device(member)] for _, member in listed) if everyone else ()
        renamed = dict(zip((rank for rank, _ in listed), numbers, strict=True)) if everyone else {}
        members = {rank: replace(member, rank=renamed.get(rank, rank)) for rank, member in listed}
        self.group = kinds.CommGroup(group.key, group.name, group.size, numbers, tuple(members.values()))
        for member, entry in missing:
            self._add(_missing(entry.get("status")), members[member.rank or 0])
        for member, entry in ranks:
            self._rank(members[member.rank or 0], entry)

    def _add(self, status: kinds.Status, member: kinds.Member, text: str = "") -> None:
        self.conditions.append(kinds.RankStatus(self.group.key, status, (member,), 1, text))

    def _rank(self, member: kinds.Member, entry: dict[str, Any]) -> None:
        status = entry.get("status")
        status = status if isinstance(status, dict) else {}
        for key, what in (("init_state", "initialization"), ("async_error", "asynchronous")):
            value = whole(status.get(key), 1 << 20)
            if value and value != _IN_PROGRESS:
                self._add("error", member, f"{what}: {_ERRORS.get(value, f'error {value}')}")
        if status.get("abort_flag") is True:
            self._add("abort", member)
        elif status.get("finalize_called") is True or status.get("destroy_flag") is True:
            self._add("finalize", member)
        elif status.get("init_state") == _IN_PROGRESS:
            self._add("init", member)
        counts = entry.get("collective_counts")
        for name, count in counts.items() if isinstance(counts, dict) else ():
            launched = whole(count, kinds.MOST_SEQUENCE)
            if launched is not None and member.rank is not None:
                operation = kinds.operation_of(clean(name[:80]))
                self.progress.append(kinds.RankProgress(self.group.key, launched, (member.rank,), 1, operation))


def _missing(status: object) -> kinds.Status:
    status = status if isinstance(status, dict) else {}
    if status.get("considered_dead") is True:
        return "dead"
    return "unresponsive" if status.get("unresponsive") is not False else "nocomm"


READER = kinds.DumpReader(
    TOOL, "the JSON of NCCL's RAS (`ncclras -f json`), from 2.28.7 on", "NCCL, src/ras/client_support.cc",
    lambda source: source.begins("{") and source.has(lambda text: '"communicators"' in text)
    and source.has(lambda text: '"ranks_count"' in text or '"communicators_count"' in text), read,
)  # fmt: skip
