"""What PyTorch's watchdog prints when an operation of NCCL takes too long; a log may hold several ranks.

    [rank1]:[E1003 18:37:01.83 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout:
        WorkNCCL(SeqNum=641, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600013 ...
    [rank1]:[E1003 ...] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by
        watchdog at work: 641, last enqueued NCCL work: 642, last completed NCCL work: 640.
    [rank2]:[E1003 ...] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from
        rank 1 ... Last enqueued NCCL work: 640, last completed NCCL work: 640.

each in one line. The second names the group and tells how far the rank is; the third comes from a rank that did not
time out itself. `[rank1]:` is the job's rank, `Rank 1` that of the group. The report of TORCH_NCCL_DESYNC_DEBUG
(`[0, 2] finished collective #640, but didn't join collective #641`) is read, too.

Source: PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and TraceUtils.h, versions 2.0 to 2.9.
"""

from __future__ import annotations

import re

from linkwright.base.errors import FileError
from linkwright.formats.logs import Source
from linkwright.formats.logs.lines import Complaints, shown

from . import kinds

TOOL = "PyTorch watchdog"
_NUMBER = r"(-?\d{1,20})"
_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d{1,19}), ?OpType=(\w{1,60})((?:, ?\w+(?:\(ms\))?=[^,)]{1,200})*)\)")
_NUMEL = re.compile(r"Numel(In|Out)=(\d{1,19})")
_JOB = re.compile(r"\[rank(\d{1,9})\]:")
_RANK = re.compile(
    r"\[(?:PG (?:ID )?(?P<id>\d{1,9}|\w{1,60}) ?(?:PG GUID (?P<guid>[^()\s\]]{1,80}))? ?"
    r"(?:\((?P<name>[^()\]]{1,80})\))? ?)?"
    r"Rank (?P<rank>\d{1,9})\]"
)
_STATUS = re.compile(
    rf"[Ll]ast enqueued (?:NCCL )?work: {_NUMBER}(?:, last started (?:NCCL )?work: {_NUMBER}[^,]{{0,80}})?"
    rf", last completed (?:NCCL )?work: {_NUMBER}"
)
_AT = re.compile(r"(?:at work|at NCCL work): (\d{1,19})")
_JOINED = re.compile(r"\[([\d, ]{1,60000})\] joined but didn't finish collective #(\d{1,19})")
_FINISHED = re.compile(r"\[([\d, ]{1,60000})\] finished collective #(\d{1,19}), but didn't join collective #(\d{1,19})")
_FAILED = re.compile(r"(NCCL error: [\w ]{1,80}|ncclRemoteError\b|ncclSystemError\b|ncclUnhandledCudaError\b)")
_NONE = ""
NAMELESS = "an unnamed group"


def knows(line: str) -> object:
    """Whether a line is of this watchdog and of no other tool."""
    return ("WorkNCCL(SeqNum=" in line and _WORK.search(line)) or (
        "collective #" in line and (_JOINED.search(line) or _FINISHED.search(line))
    )


def writes(line: str) -> bool:
    """Return whether a line is one that PyTorch prints about its process groups."""
    return "ProcessGroupNCCL.cpp" in line


def read(source: Source) -> kinds.Dump:
    """All ranks of a log."""
    reading = _Reading()
    for at, text in source.lines():
        if "ork" in text or "collective #" in text or "rror" in text:
            reading.line(at, text)
    return reading.dump(source)


class _Reading:
    """The log so far."""

    def __init__(self) -> None:
        self.complaints = Complaints()
        self.calls: dict[
            tuple[str | None, int, int], tuple[int, str, str]
        ] = {}  # group, rank, number -> line, kind, sizes
        self.at_work: dict[tuple[int, int], str] = {}  # rank, number -> group
        self.names: dict[str, str] = {}
        self.status: dict[tuple[str, int], tuple[int, int]] = {}  # group, rank -> launched, completed
        self.reported: list[kinds.RankProgress] = []
        self.failed: dict[int, str] = {}

    def line(self, at: int, text: str) -> None:
        prefix = _RANK.search(text)
        job = _JOB.search(text)
        rank = int(job[1]) if job else int(prefix["rank"]) if prefix else None
        if rank is not None and rank <= kinds.MOST_RANKS:
            group = self._group(prefix) if prefix else None
            if work := _WORK.search(text):
                number = int(work[1])
                if number <= kinds.MOST_SEQUENCE and len(self.calls) < kinds.MOST_CALLS:
                    self.calls.setdefault((group, rank, number), (at, work[2], work[3]))
            elif "WorkNCCL(SeqNum=" in text:
                self.complaints.add(at, f"not an operation of the watchdog: `{shown(text)}`")
            if group and (status := _STATUS.search(text)):
                self._progress(group, rank, int(status[1]), int(status[3]))
                if work_at := _AT.search(text):
                    self.at_work[rank, int(work_at[1])] = group
            if failure := _FAILED.search(text):
                self.failed.setdefault(rank, failure[1])
        for pattern, launched in ((_JOINED, True), (_FINISHED, False)):
            if match := pattern.search(text):
                self._report(match, launched)

    def _group(self, prefix: re.Match[str]) -> str | None:
        """The key of the group that a prefix names."""
        number = prefix["guid"] or prefix["id"]
        if number is None:
            return None
        name = prefix["name"]
        self.names.setdefault(number, f"group {number} ({name})" if name and name != number else f"group {number}")
        return str(number)

    def _progress(self, group: str, rank: int, launched: int, completed: int) -> None:
        if max(launched, completed) > kinds.MOST_SEQUENCE or min(launched, completed) < -1 or completed > launched:
            return  # some versions print memory that nobody wrote
        before = self.status.get((group, rank), (0, 0))
        self.status[group, rank] = (max(before[0], launched), max(before[1], completed))

    def _report(self, match: re.Match[str], joined: bool) -> None:
        """A line of the report of TORCH_NCCL_DESYNC_DEBUG."""
        ranks = tuple(dict.fromkeys(int(one) for one in re.findall(r"\d{1,9}", match[1])))
        number = min(int(match[2]), kinds.MOST_SEQUENCE)
        if ranks and max(ranks) <= kinds.MOST_RANKS:
            self.reported.append(
                kinds.RankProgress(_NONE, number, ranks, len(ranks), None, number - 1 if joined and number else number)
            )

    def dump(self, source: Source) -> kinds.Dump:
        """All of it; an operation belongs to the group whose line names its number, or to the only one."""
        known = {group for group, _, _ in self.calls if group} | {group for group, _ in self.status}
        only = next(iter(known)) if len(known) == 1 else _NONE
        calls = []
        for (group, rank, number), (at, kind, sizes) in self.calls.items():
            key = group or self.at_work.get((rank, number)) or only
            elements = {name: int(value) for name, value in _NUMEL.findall(sizes)}
            operation, ends = kinds.operation_of(kind), (elements.get("In"), elements.get("Out"))
            calls.append(kinds.RankCall(key, rank, number, operation, kind, "entered", at, *ends))
        unique = {(call.group, call.rank, call.sequence): call for call in reversed(calls)}
        progress = [
            kinds.RankProgress(group, max(launched, 0), (rank,), 1, None, max(completed, 0))
            for (group, rank), (launched, completed) in self.status.items()
        ]
        progress += [kinds.RankProgress(only, p.launched, p.ranks, p.count, None, p.completed) for p in self.reported]
        if not (calls or progress or self.failed):
            raise FileError(
                f"{source.path}: names a time-out of PyTorch's watchdog, but no rank that has it; give its unedited "
                "lines, which begin with the rank, such as `[rank0]:`"
            )
        keys = dict.fromkeys((*(call.group for call in unique.values()), *(one.group for one in progress)))
        groups = tuple(kinds.CommGroup(key, self.names.get(key, NAMELESS)) for key in keys)
        failed: dict[str, list[kinds.Member]] = {}
        for rank, text in self.failed.items():
            failed.setdefault(text, []).append(kinds.Member(rank))
        conditions = tuple(kinds.RankStatus(None, "error", tuple(its), len(its), text) for text, its in failed.items())
        ordered = tuple(sorted(unique.values(), key=lambda call: call.order))
        return kinds.Dump(
            TOOL, source.path, groups, ordered, tuple(progress), conditions, complaints=tuple(self.complaints.first)
        )


READER = kinds.DumpReader(
    TOOL, "time-outs that PyTorch's watchdog prints, of any number of ranks in one log",
    "PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp", lambda source: source.has(knows), read, knows,
)  # fmt: skip
