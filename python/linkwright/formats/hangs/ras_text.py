"""What `ncclras` prints: the communicators of a running job, and the ranks that differ from the rest.

    Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
        #  in group  per comm  per node  per comm  in group
        0         1         4         8        32        32   RUNNING  MISMATCH

    Warnings
    ========

    #0-0 (0123456789abcdef) MISMATCH
      Communicator ranks have different AllReduce operation counts
      31 ranks have launched up to operation 641
      Rank 12 has launched up to operation 640 -- GPU 4 managed by process 1000 on node n2

`#0-0` is the first communicator of group 0 of the table. Ranks are listed where they are at most a quarter of all (with
`-v`, at most half); of the others only the number is given. From 2.26 on, operations of each kind are counted apart.

Source: NCCL 2.24 and later, src/ras/client_support.cc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from linkwright.formats.logs import Source
from linkwright.formats.logs.lines import Complaints, plain, shown

from . import kinds, watchdog

TOOL = "NCCL RAS"
_WHERE = (
    r"(?: -- (?:GPU (?P<gpu>\d{1,4}(?: \(NVML \d{1,4}\))?) managed by process (?P<process>\d{1,12}) "
    r"on node (?P<host>\S+)|\[process information not found\]))"
)
_ROW = re.compile(
    r"\s*(\d{1,6})\s+(\d{1,9})\s+(\d{1,9})\s+(?:\d+-)?\d+\s+(\d{1,9})\s+(\d{1,9})\s+([A-Z]+)\s+([A-Z,]+)\s*"
)
_COMMUNICATOR = re.compile(r"\s*#(\d{1,6})-(\d{1,9}) \(([0-9a-fA-F]{1,32})\) ([A-Z]+)\s*")
_COUNTS = re.compile(r"\s*Communicator ranks have different (\w+) operation counts")
_LAUNCHED = re.compile(r"\s*(\d{1,9}) ranks? ha(?:ve|s) launched up to operation (\d{1,19})\s*")
_NOTHING = re.compile(r"\s*(\d{1,9}) ranks? ha(?:ve|s) not launched any operations?\s*")
_ONE = re.compile(
    r"\s*Rank (?P<rank>\d{1,9}) has (?:launched up to operation (?P<launched>\d{1,19})|not launched any operations?)"
    rf"{_WHERE}\s*"
)
_RANK = re.compile(rf"\s*Rank (?P<rank>\d{{1,9}}){_WHERE}\s*")
_STATUS = re.compile(r"\s*(\d{1,9}) ranks? ha(?:ve|s) status ([A-Z]+)\s*")
_ONE_STATUS = re.compile(rf"\s*Rank (?P<rank>\d{{1,9}}) has status (?P<status>[A-Z]+){_WHERE}\s*")
_REPORTED = re.compile(r"\s*(\d{1,9}) ranks? reported ([\w ]{1,60})\s*")
_ONE_REPORTED = re.compile(rf"\s*Rank (?P<rank>\d{{1,9}}) reported (?P<text>[\w ]{{1,60}}?){_WHERE}\s*")
_MISSING = re.compile(r"\s*Missing communicator data from (\d{1,9}) (ranks?|job process(?:es)?)\s*")
_MISSING_RANKS = re.compile(r"\s*The missing ranks?: ([\d, ]+)\s*")
_DEAD = re.compile(r"\s*(\d{1,9}) job process(?:es are| is) considered dead.*")
_PROCESS = re.compile(r"\s*Process (\d{1,12}) on node (\S+) managing GPUs? (\S+(?: \(NVML [\d,]+\))?)\s*")
_TABLE = re.compile(r"\s*Group +Comms +Nodes +Ranks +Ranks +Ranks +Status +Errors")
_VERSION = re.compile(r"\s*NCCL version (\d[\w.+-]{0,30})")
# Lines without a fact of their own.
_QUIET = re.compile(
    r"\s*(?:|`{3}\w*|=+|Errors|Warnings|TIMEOUT|DEAD|INCOMPLETE|Communicator ranks have different status|"
    r"(?:Initialization|Asynchronous) errors? on \d+ ranks?|Encountered \d+ communication timeouts? while .*|"
    r"\[could not find information on \d+ process(?:es)?\]|Group +Comms.*|#? *in group.*|# +in group.*)\s*"
)
_STATUSES: dict[str, kinds.Status] = {
    "NOCOMM": "nocomm", "UNKNOWN": "nocomm", "INIT": "init", "RUNNING": "running", "FINALIZE": "finalize",
    "ABORT": "abort",
}  # fmt: skip


def knows(line: str) -> object:
    """Whether a line is of this output and of no other tool."""
    return ("#" in line and _COMMUNICATOR.fullmatch(line)) or ("Comms" in line and _TABLE.match(line))


@dataclass
class _Set:
    """Ranks with something in common, of whom some are listed below."""

    group: str | None
    count: int
    launched: int | None = None
    operation: str | None = None
    status: kinds.Status | None = None
    text: str = ""
    members: list[kinds.Member] = field(default_factory=list)


def read(source: Source) -> kinds.Dump:
    """The communicators of a job, as far as the text tells them apart."""
    reading = _Reading()
    for at, raw in source.lines():
        reading.line(at, plain(raw)[1])
    return reading.dump(source)


class _Reading:
    """The text so far."""

    def __init__(self) -> None:
        self.complaints = Complaints()
        self.table: dict[int, tuple[int, int, str, str]] = {}  # group -> communicators, ranks of one, status, errors
        self.hashes: dict[str, tuple[int, str]] = {}  # key -> group of the table, name
        self.sets: list[tuple[int, _Set]] = []
        self.version: str | None = None
        self.group: str | None = None
        self.operation: str | None = None
        self.begun = False

    def line(self, at: int, text: str) -> None:
        if match := _VERSION.match(text):
            self.version = match[1]
        elif match := _ROW.fullmatch(text):
            group, comms, _, size, _ = (int(one) for one in match.groups()[:5])
            self.table[group] = (comms, size, match[6], match[7])
        elif match := _COMMUNICATOR.fullmatch(text):
            self.begun = True
            self.group = match[3].lower()
            name = f"communicator #{match[1]}-{match[2]} ({match[3]})"
            self.hashes.setdefault(self.group, (int(match[1]), name))
            self.operation = None
        elif text.strip() in ("Errors", "Warnings", "INCOMPLETE", "DEAD", "TIMEOUT"):
            self.begun, self.group, self.operation = True, None, None
        elif match := _COUNTS.match(text):
            self.operation = kinds.operation_of(match[1])
        elif self.begun and not self._fact(at, text) and not _QUIET.fullmatch(text) and not watchdog.writes(text):
            self.complaints.add(at, f"not a line of ncclras: `{shown(text)}`")

    def _fact(self, at: int, text: str) -> bool:
        """Whether a line states something of ranks or processes."""
        kind = None if self.operation == "collective" else self.operation
        if match := _LAUNCHED.fullmatch(text):
            return self._set(at, _Set(self.group, int(match[1]), _bounded(match[2]), kind))
        if match := _NOTHING.fullmatch(text):
            return self._set(at, _Set(self.group, int(match[1]), 0, kind))
        if match := _ONE.fullmatch(text):
            return self._set(
                at, _Set(self.group, 1, _bounded(match["launched"] or "0"), kind, members=[_member(match)])
            )
        if match := _STATUS.fullmatch(text):
            return self._set(
                at, _Set(self.group, int(match[1]), status=_STATUSES.get(match[2], "error"), text=match[2])
            )
        if match := _ONE_STATUS.fullmatch(text):
            status = _STATUSES.get(match["status"], "error")
            return self._set(at, _Set(self.group, 1, status=status, text=match["status"], members=[_member(match)]))
        if match := _REPORTED.fullmatch(text):
            return self._set(at, _Set(self.group, int(match[1]), status="error", text=match[2]))
        if match := _ONE_REPORTED.fullmatch(text):
            return self._set(at, _Set(self.group, 1, status="error", text=match["text"], members=[_member(match)]))
        if match := _MISSING.fullmatch(text):
            group = self.group if match[2].startswith("rank") else None
            return self._set(at, _Set(group, int(match[1]), status="unresponsive"))
        if match := _DEAD.fullmatch(text):
            return self._set(at, _Set(None, int(match[1]), status="dead"))
        return self._listed(text)

    def _listed(self, text: str) -> bool:
        """Whether a line lists a rank or process of the set above it."""
        if not self.sets:
            return False
        members = self.sets[-1][1].members
        if match := _MISSING_RANKS.fullmatch(text):
            members += [kinds.Member(int(one)) for one in re.findall(r"\d{1,9}", match[1])]
        elif match := _RANK.fullmatch(text):
            members.append(_member(match))
        elif match := _PROCESS.fullmatch(text):
            members.append(kinds.Member(None, match[2], match[3], int(match[1])))
        else:
            return False
        return True

    def _set(self, at: int, found: _Set) -> bool:
        self.sets.append((at, found))
        return True

    def dump(self, source: Source) -> kinds.Dump:
        """All of it; sets whose members are not listed get them where one set alone is left."""
        groups = []
        for key, (number, name) in self.hashes.items():
            size = self.table[number][1] if number in self.table else None
            members = {
                m.rank: m for _, one in self.sets for m in one.members if one.group == key and m.host is not None
            }
            groups.append(kinds.CommGroup(key, name, size, (), tuple(members.values())))
        for number, (comms, size, status, _) in self.table.items():
            for at in range(sum(1 for number_, _ in self.hashes.values() if number_ == number), min(comms, 10_000)):
                groups.append(kinds.CommGroup(f"#{number} {at}", f"a communicator of group {number} ({status})", size))
        progress, conditions = [], []
        for number, (_, size, status, errors) in self.table.items():
            told = any(group == number for group, _ in self.hashes.values())
            if errors != "OK" and not told:
                self.complaints.add(0, f"group {number} is {errors}, and no line below says why; the output is cut")
            elif status != "RUNNING" and not told:
                conditions.append(kinds.RankStatus(f"#{number} 0", _STATUSES.get(status, "error"), (), size, ""))
        for at, one in self.sets:
            ranks = tuple(m.rank for m in one.members if m.rank is not None)
            if one.members and len(one.members) != one.count:
                self.complaints.add(at, f"says {one.count} ranks or processes and lists {len(one.members)}")
            if one.count > kinds.MOST_RANKS or any(rank > kinds.MOST_RANKS for rank in ranks):
                self.complaints.add(at, "more ranks than a job has")
            elif one.status is not None:
                conditions.append(kinds.RankStatus(one.group, one.status, tuple(one.members), one.count, one.text))
            elif one.group is None or one.launched is None:
                self.complaints.add(at, "counts of no communicator")
            else:
                progress.append(kinds.RankProgress(one.group, one.launched, ranks, one.count, one.operation))
        return kinds.Dump(
            TOOL, source.path, tuple(groups), (), tuple(progress), tuple(conditions), snapshot=True,
            version=self.version, complaints=tuple(self.complaints.first),
        )  # fmt: skip


def _bounded(text: str) -> int:
    return min(int(text), kinds.MOST_SEQUENCE)


def _member(match: re.Match[str]) -> kinds.Member:
    process = match["process"]
    return kinds.Member(int(match["rank"]), match["host"], match["gpu"], int(process) if process else None)


READER = kinds.DumpReader(
    TOOL, "the text of NCCL's RAS (`ncclras`, `ncclras -v`), from 2.24 on", "NCCL, src/ras/client_support.cc",
    lambda source: source.has(knows), read, knows,
)  # fmt: skip
