"""Dumps of PyTorch's flight recorder: the last operations of one rank, with their state.

    {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
     "pg_status": {"0": {"last_enqueued_collective": 7, "last_started_collective": 7, "last_completed_collective": 6}},
     "entries": [{"record_id": 6, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 7,
                  "p2p_seq_id": 0, "op_id": 7, "profiling_name": "nccl:all_reduce", "input_sizes": [[1048576]],
                  "input_dtypes": ["Float"], "output_sizes": [[1048576]], "output_dtypes": ["Float"],
                  "state": "started", "is_p2p": false, "time_created_ns": 1700000000000000000}]}

Pickled or as JSON, where numbers of `pg_status` are texts. A dump does not say whose it is: PyTorch writes the rank at
the end of the file's name (`nccl_trace_rank_3`). The buffer is a ring: if the first record is not number 0, older ones
are gone; and a dump of active calls alone leaves out those that have ended.

Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, versions 2.0 to 2.10.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace
from typing import Any

from linkwright.base import files
from linkwright.base.errors import FileError
from linkwright.formats.logs import Source
from linkwright.formats.logs.lines import Complaints, clean, shown, whole

from . import kinds
from .unpickled import MOST_BYTES, begins_pickle, unpickled

TOOL = "PyTorch flight recorder"
_STATES: dict[object, kinds.State] = {"scheduled": "scheduled", "started": "started", "completed": "completed"}
_PEER = re.compile(r"(?:\w+:)?(send|recv) (\d{1,9})(->|<-)(\d{1,9})")
_MOST_DIMENSIONS = 64
_MOST_NAME = 200


def recognises(source: Source) -> bool:
    """Whether it is such a dump: the pickle of a dictionary, or JSON with its keys."""
    try:
        if _is_pickle(source):
            return True
    except OSError:
        return False
    return source.begins("{") and source.has(lambda text: '"collective_seq_id"' in text or '"pg_status"' in text)


def read(source: Source) -> kinds.Dump:
    """The dump of one rank."""
    document = _document(source)
    if not isinstance(document, dict) or not ({"entries", "pg_config", "pg_status"} & document.keys()):
        raise FileError(
            f"{source.path}: not a dump of PyTorch's flight recorder; it has no `entries`, `pg_config` or `pg_status`"
        )
    rank = _rank(source, document)
    complaints = Complaints()
    groups = _groups(document.get("pg_config"), complaints)
    entries = document.get("entries")
    if entries is not None and not isinstance(entries, list):
        raise FileError(f"{source.path}: `entries` is not a list; dump the trace again")
    ids: dict[str, str] = {}  # a process group's number here -> its key
    calls: list[kinds.RankCall] = []
    for at, entry in enumerate((entries or [])[-kinds.MOST_CALLS :]):
        call = _call(entry, rank, at, groups, ids) if isinstance(entry, dict) else None
        if call is None:
            complaints.add(0, f"entry {at}: no group, sequence number, name and state")
        else:
            calls.append(call)
    if not any(isinstance(entry, dict) and _has_begun(entry) for entry in entries or ()):
        calls = [replace(call, state="entered") if call.state == "scheduled" else call for call in calls]
    calls = _batched(calls)
    whole_story = _is_whole(entries, document.get("pg_status"))
    progress = _progress(document.get("pg_status"), rank, groups, ids, calls, whole_story)
    version = document.get("nccl_version", document.get("comm_lib_version"))
    return kinds.Dump(
        TOOL, source.path, tuple(groups.values()), tuple(calls), tuple(progress), (), rank,
        version=clean(version)[:_MOST_NAME] if isinstance(version, str) and version else None,
        complaints=tuple(complaints.first),
    )  # fmt: skip


def _document(source: Source) -> Any:
    try:
        if _is_pickle(source):
            return unpickled(files.unpacked(source.path, MOST_BYTES), str(source.path))
    except OSError as error:
        raise FileError(f"{source.path}: cannot be read: {error.strerror or error}") from error
    document = source.document()
    if document is None:
        raise FileError(f"{source.path}: the dump is cut, or is not JSON; copy it again")
    return document


def _is_pickle(source: Source) -> bool:
    """Whether the file begins as a pickle does; raises an `OSError` where it cannot be read."""
    if source.text is not None:
        return False
    with files.opened(source.path) as file:
        return begins_pickle(file.read(2))


def _rank(source: Source, document: dict[Any, Any]) -> int:
    """The rank that the dump states, or that at the end of the file's name, or that of the largest communicator."""
    stated = whole(document.get("rank"), kinds.MOST_RANKS)
    if stated is not None:
        return stated
    stem = re.sub(r"(\.(?:json|pickle|pkl|bin|gz|txt|log))+$", "", source.path.name)
    found = re.search(r"(?<![\d-])(\d{1,9})$", stem)
    if found and (named := whole(found[1], kinds.MOST_RANKS)) is not None:
        return named
    states = document.get("nccl_comm_state")
    by_size: dict[int, set[int]] = {}
    for state in states.values() if isinstance(states, dict) else ():
        if isinstance(state, dict):
            rank, size = whole(state.get("rank"), kinds.MOST_RANKS), whole(state.get("nranks"), kinds.MOST_RANKS)
            if rank is not None and size:
                by_size.setdefault(size, set()).add(rank)
    if by_size and len(ranks := by_size[max(by_size)]) == 1:
        return next(iter(ranks))
    raise FileError(
        f"{source.path}: nothing says which rank wrote this dump; let the name end in its number, as PyTorch does "
        "(nccl_trace_rank_0)"
    )


def _groups(config: object, complaints: Complaints) -> dict[str, kinds.CommGroup]:
    """Key -> process group."""
    found: dict[str, kinds.CommGroup] = {}
    for name, entry in config.items() if isinstance(config, dict) else ():
        if not isinstance(name, str) or not isinstance(entry, dict):
            complaints.add(0, f"pg_config: `{shown(clean(str(name)[:_MOST_NAME]))}` is not a process group")
            continue
        ranks = _ranks(entry.get("ranks"))
        if ranks is None:
            complaints.add(0, f"pg_config: no list of ranks of group `{shown(clean(name[:_MOST_NAME]))}`")
        group = _group(name, entry.get("desc"), ranks or ())
        found[group.key] = group
    return found


def _group(name: str, description: object, ranks: tuple[int, ...] = ()) -> kinds.CommGroup:
    key = clean(name[:_MOST_NAME])
    text = clean(description[:_MOST_NAME]) if isinstance(description, str) else ""
    known = text if text not in ("", "undefined") else ""
    name = f"group {key} ({known})" if known and known != key else f"group {key}"
    return kinds.CommGroup(key, name, len(ranks) or None, ranks)


@functools.lru_cache(1024)
def _listed(text: str) -> tuple[int, ...] | None:
    if not re.fullmatch(r"\[?\s*(?:\d{1,9}(?:\s*,\s*\d{1,9})*)?\s*\]?", text, re.ASCII):
        return None
    return _distinct([int(one) for one in re.findall(r"\d+", text)])


def _ranks(value: object) -> tuple[int, ...] | None:
    """The job's ranks in a group: a text such as `[0, 1]`, or a list."""
    if isinstance(value, str):
        return _listed(value)
    if isinstance(value, list | tuple):
        numbers = [whole(one, kinds.MOST_RANKS) for one in value[: kinds.MOST_RANKS]]
        return _distinct([one for one in numbers if one is not None]) if None not in numbers else None
    return None


def _distinct(ranks: list[int]) -> tuple[int, ...] | None:
    return tuple(ranks) if len(set(ranks)) == len(ranks) else None


def _call(
    entry: dict[Any, Any], rank: int, at: int, groups: dict[str, kinds.CommGroup], ids: dict[str, str]
) -> kinds.RankCall | None:
    """An entry; None if it lacks what every version writes."""
    name, state = entry.get("profiling_name"), _STATES.get(_hashable(entry.get("state")))
    group = entry.get("process_group", entry.get("pg_name"))
    if group is None and (number := whole(entry.get("pg_id"), kinds.MOST_RANKS)) is not None:
        group = str(number)
    if isinstance(group, str):
        group = [group, entry.get("pg_desc")]
    if not isinstance(name, str) or state is None or not isinstance(group, list | tuple) or not group:
        return None
    if not isinstance(group[0], str):
        return None
    is_p2p = entry.get("is_p2p") is True
    number = entry.get("p2p_seq_id" if is_p2p else "collective_seq_id", entry.get("seq_id"))
    sequence = whole(number, kinds.MOST_SEQUENCE)
    if sequence is None:
        return None
    made = _group(group[0], group[1] if len(group) > 1 else None)
    its = groups.setdefault(made.key, made)
    pg_id = whole(entry.get("pg_id"), kinds.MOST_RANKS)
    if pg_id is not None:
        ids[str(pg_id)] = its.key
    inputs, outputs = entry.get("input_sizes"), entry.get("output_sizes")
    variant = clean(name[:_MOST_NAME])
    peer = _peer(variant, its) if is_p2p else None
    operation = kinds.operation_of(variant)
    if match := _PEER.match(variant):
        operation = match[1]
    return kinds.RankCall(
        its.key, rank, sequence, operation, variant, state, at, _elements(inputs), _elements(outputs),
        _dtypes(entry.get("input_dtypes")) + _dtypes(entry.get("output_dtypes")),
        is_p2p, peer,
    )  # fmt: skip


def _has_begun(entry: dict[Any, Any]) -> bool:
    """Whether an entry tells when its kernel began; without TORCH_NCCL_ENABLE_TIMING none does."""
    return entry.get("state") == "started" or bool(whole(entry.get("time_discovered_started_ns"), kinds.MOST_SEQUENCE))


def _batched(calls: list[kinds.RankCall]) -> list[kinds.RankCall]:
    """The calls; those within a batch get its state, which PyTorch keeps for the batch alone."""
    ends = {
        (call.group, call.p2p, call.sequence): call.state
        for call in calls
        if call.variant.rpartition(":")[2].lower().endswith("coalesced")
    }
    return [replace(call, state=ends.get((call.group, call.p2p, call.sequence), call.state)) for call in calls]


def _is_whole(entries: list[Any] | None, status: object) -> bool:
    """Whether every call since the start is there: none is overwritten, and those that have ended are not left out."""
    if entries:
        both = [one for one in (entries[0], entries[-1]) if isinstance(one, dict)]
        return [whole(one.get("record_id"), kinds.MOST_SEQUENCE) for one in both] == [0, len(entries) - 1]
    counts = [
        whole(value, kinds.MOST_SEQUENCE)
        for its in (status.values() if isinstance(status, dict) else ())
        for value in (its.values() if isinstance(its, dict) else ())
    ]
    return entries is not None and not any(counts)


def _hashable(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _peer(variant: str, group: kinds.CommGroup) -> int | None:
    """The job's rank at the other end of `send 0->1` or `recv 1<-0`, which count within the group."""
    match = _PEER.match(variant)
    if match is None:
        return None
    other = int(match[4])
    return group.ranks[other] if other < len(group.ranks) else None if group.ranks else other


def _elements(sizes: object) -> int | None:
    """Elements of all tensors."""
    if not isinstance(sizes, list | tuple):
        return None
    total = 0
    for shape in sizes[: kinds.MOST_RANKS]:
        lengths = (
            [whole(one, kinds.MOST_SEQUENCE) for one in shape[:_MOST_DIMENSIONS]]
            if isinstance(shape, list | tuple)
            else [None]
        )
        if None in lengths:
            return None
        total += math.prod(one for one in lengths if one is not None)
    return total


def _dtypes(value: object) -> tuple[str, ...]:
    """The types of the tensors, each once."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(dict.fromkeys(clean(one[:_MOST_NAME]) for one in value[:_MOST_DIMENSIONS] if isinstance(one, str)))


def _progress(
    status: object,
    rank: int,
    groups: dict[str, kinds.CommGroup],
    ids: dict[str, str],
    calls: list[kinds.RankCall],
    since_begin: bool,
) -> list[kinds.RankProgress]:
    """How far the rank is in each group, from its calls and from `pg_status`, which counts sends and receives, too."""
    launched = dict.fromkeys((key for key, group in groups.items() if rank in group.ranks), 0)
    completed = dict.fromkeys(launched, 0)
    with_peers = {call.group for call in calls if call.p2p}
    seen = set()
    for call in calls:
        if call.p2p:
            continue
        seen.add(call.group)
        launched[call.group] = max(launched.get(call.group, 0), call.sequence)
        if call.state == "completed":
            completed[call.group] = max(completed.get(call.group, 0), call.sequence)
    for number, entry in status.items() if isinstance(status, dict) else ():
        key = ids.get(str(number)[:20])
        if key is None or key in with_peers or not isinstance(entry, dict):
            continue
        seen.add(key)
        for name, into in (("last_enqueued_collective", launched), ("last_completed_collective", completed)):
            value = whole(entry.get(name), kinds.MOST_SEQUENCE)
            if value is not None:
                into[key] = max(into.get(key, 0), value)
    return [
        kinds.RankProgress(key, value, (rank,), 1, None, completed.get(key), key in seen or since_begin)
        for key, value in launched.items()
    ]


READER = kinds.DumpReader(
    TOOL, "dumps of PyTorch's flight recorder, one per rank, pickled or JSON",
    "PyTorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp", recognises, read,
)  # fmt: skip
