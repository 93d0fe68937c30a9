"""The text of the OSU micro-benchmarks, versions 5 to 7: collectives, latency, bandwidth.

    # OSU MPI Allreduce Latency Test v7.3
    # Datatype: MPI_FLOAT.
    # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
    4                       1.46              1.40              1.61        1000

The title says what was run, never on how many ranks. Sizes of allgather, alltoall, gather and scatter are those of one
rank's block.

Source: OSU micro-benchmarks 7.3, c/util/osu_util.c.
"""

from __future__ import annotations

import re

from linkwright.base.units import KILO

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Quantity, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, Complaints, number, shown, whole

TOOL = "OSU"
_TITLE = re.compile(r"# ?OSU ((?:MPI|[NR]CCL)\S* .*?) (?:Test ?)?v?\d+\.\d+", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.IGNORECASE)
# The unit of the value -> what it is in us, or in 10^9 B/s.
_MICROS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_RATES = {"MB/s": 1e-3, "GB/s": 1.0}
_RUNTIME = re.compile(r"(?:mpi|[nr]ccl)(?:-(?:cuda|rocm|openacc|managed))?\s+")
_COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "reduce": "reduce",
    "alltoall": "alltoall", "all-to-all personalized exchange": "alltoall",
    "all-to-allv personalized exchange": "alltoall",  # its blocks are equal
    "broadcast": "broadcast", "bcast": "broadcast", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
}  # fmt: skip
_PAIRS: dict[str, Quantity] = {"latency": "latency", "bandwidth": "bandwidth"}
PER_RANK = ("allgather", "alltoall", "gather", "scatter")


class _Table:
    def __init__(self, title: str):
        words = _RUNTIME.sub("", title.lower(), count=1).removesuffix(" test").strip()
        self.collective = _COLLECTIVES.get(words.removeprefix("non-blocking ").removesuffix(" latency").strip())
        self.quantity: Quantity = "collective" if self.collective else _PAIRS.get(words, "collective")
        # One-sided tests, those both ways, and those of several pairs are about other things.
        self.known = self.collective is not None or words in _PAIRS
        self.dtype: str | None = None
        self.sized = True
        self.column = 1
        self.unit: float | None = None
        self.rows: list[LogRow] = []

    def head(self, text: str) -> None:
        """Take the heading: of a non-blocking collective, the time without computing is that of the collective."""
        columns = re.split(r" {2,}|\t+", text.strip()[:400].removeprefix("#").strip())
        self.sized = columns[0] == "Size"  # a barrier has none
        self.column = next((at for at, name in enumerate(columns) if name.startswith("Pure Comm")), int(self.sized))
        name = columns[self.column] if self.column < len(columns) else ""
        unit = name[name.rfind("(") + 1 : name.rfind(")")] if "(" in name else ""
        self.unit = (_RATES if self.quantity == "bandwidth" else _MICROS).get(unit)

    def row(self, at: int, words: list[str]) -> bool:
        """Take a row; whether it is one."""
        size = 0 if not self.sized else whole(words[0], MOST_SIZE)
        value = number(words[self.column] if self.column < len(words) else "", MOST_RATE * KILO)
        if size is None or value is None or self.unit is None:
            return False
        value *= self.unit
        if self.quantity == "bandwidth" and value <= MOST_RATE:  # MB/s are 10^6 B/s
            self.rows.append(LogRow(size, None, at, algbw=value))
        elif self.quantity != "bandwidth" and value <= MOST_MICROS:
            self.rows.append(LogRow(size, value, at))
        else:
            return False
        return True

    def finished(self) -> LogTable:
        reduces = self.collective in ("allreduce", "reduce", "reduce_scatter")
        ranks = None if self.collective else 2
        return LogTable(
            TOOL, self.collective or "sendrecv", ranks, None, self.dtype, "sum" if reduces else None, None,
            tuple(self.rows), self.quantity, self.collective in PER_RANK,
        )  # fmt: skip


class _Reading:
    def __init__(self, gathered: Gathered) -> None:
        self.gathered, self.complaints, self.left_out = gathered, Complaints(), Complaints()
        self.tables: list[_Table] = []
        self.current: dict[str, _Table] = {}
        self.unread: set[str] = set()
        self.skipped = 0

    def line(self, at: int, label: str, text: str) -> None:
        words = text.split()
        table = self.current.get(label)
        if title := _title(text):
            self._begin(at, label, title)
        elif table and words[:2] == ["#", "Datatype:"] and len(words) > 2:
            table.dtype = words[2].rstrip(".")
        elif table and not table.rows and "(" in text and ("(us)" in text or words[0] == "#"):
            table.head(text)
        elif table and table.known and words and _NUMBER.fullmatch(words[0]):
            self._row(at, table, words, text)
        elif words and not self.gathered.see(text, label):
            self.skipped += 1

    def _begin(self, at: int, label: str, title: str) -> None:
        table = _Table(title)
        if len(self.tables) < MOST_ROWS:
            self.tables.append(table)
            self.current[label] = table
        if not table.known and title not in self.unread:
            self.unread.add(title)
            self.left_out.add(at, f"the test `{shown(title)}` is not supported; collectives, latency and bandwidth are")

    def _row(self, at: int, table: _Table, words: list[str], text: str) -> None:
        if table.unit is None:
            self.complaints.add(at, f"a row below a heading without a known unit: `{shown(text)}`")
        elif table.rows and words[0].isdecimal() and int(words[0][:30]) <= table.rows[-1].size:
            self.complaints.add(at, f"size {words[0][:30]} follows {table.rows[-1].size}, so two outputs were mixed")
        elif len(table.rows) >= MOST_ROWS or not table.row(at, words):
            self.complaints.add(at, f"a size or a value is not a number: `{shown(text)}`")

    def log(self) -> Log:
        found = tuple(table.finished() for table in self.tables if table.rows)
        return Log(
            TOOL, found, self.gathered.facts, (), self.skipped, tuple(self.complaints.first), tuple(self.left_out.first)
        )


def _title(text: str) -> str | None:
    """What is tested, if a line is a title; spaces are reduced first, since a pattern would try them all."""
    match = _TITLE.search(" ".join(text.split())[:400]) if "OSU" in text else None
    return match[1] if match else None


READER = TextReader(
    TOOL,
    "the text of the OSU micro-benchmarks, versions 5 to 7: collectives, latency, bandwidth",
    "OSU micro-benchmarks 7.3, c/util",
    _title,
    _Reading,
)
