"""The text of the OSU micro-benchmarks, versions 5 to 7: collectives, latency, bandwidth one way, both ways, of pairs.

    # OSU MPI Allreduce Latency Test v7.3
    # Datatype: MPI_FLOAT.
    # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
    4                       1.46              1.40              1.61        1000

The title says what was run, never on how many ranks. Sizes of allgather, alltoall, gather and scatter are those of one
rank's block, and the variants with a `v` at the end send equal blocks.

The heading says what a column is. Taken are the mean (`Avg Latency`, `Latency`), of a non-blocking collective the time
without computing (`Pure Comm.`), of a stream the bandwidth; least, largest and percentiles only where no mean is there.
A mean outside its least and largest is an error of the copy. A stream between two nodes measures a port; that of
several pairs of ranks is their sum.

Source: OSU micro-benchmarks 7.3, c/util/osu_util.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwright.base.units import KILO

from .facts import Gathered
from .kinds import Link, Log, LogRow, LogTable, Quantity, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, number, shown, whole
from .reading import TextReading

TOOL = "OSU"
_TITLE = re.compile(r"# ?OSU ((?:MPI|[NR]CCL)\S* .*?) (?:Test ?)?v?\d+\.\d+", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.IGNORECASE)
# The unit of the value -> what it is in us, or in 10^9 B/s.
_MICROS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_RATES = {"MB/s": 1e-3, "GB/s": 1.0}
_RUNTIME = re.compile(r"(?:mpi|[nr]ccl)(?:-(?:cuda|rocm|openacc|managed))?\s+")
_COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "reduce": "reduce",
    "reduce_scatter_block": "reduce_scatter", "alltoall": "alltoall", "all-to-all": "alltoall",
    "allgatherv": "allgather", "alltoallv": "alltoall", "alltoallw": "alltoall", "all-to-allv": "alltoall",
    "all-to-allw": "alltoall",
    "broadcast": "broadcast", "bcast": "broadcast", "gather": "gather", "gatherv": "gather",
    "scatter": "scatter", "scatterv": "scatter", "barrier": "barrier",
}  # fmt: skip
# A column of the heading, the best first -> what its numbers are.
_COLUMNS = ("pure comm", "avg lat", "latency", "bandwidth", "p50", "max", "min")
_CELLS = re.compile(r" {2,}|\t+|(?<=\)) +|(?<=^Size) +")
_PAIRS: dict[str, Quantity] = {"latency": "latency", "bandwidth": "bandwidth"}
# Streams of messages -> whether they go both ways.
_STREAMS = {"bandwidth": False, "bi-directional bandwidth": True, "multiple bandwidth / message rate": False}
PER_RANK = ("allgather", "alltoall", "gather", "scatter")


class _Table:
    def __init__(self, title: str):
        words = _RUNTIME.sub("", title.lower(), count=1).removesuffix(" test").strip()
        for mode in ("non-blocking ", "persistent "):
            words = words.removeprefix(mode)
        name = words.removesuffix(" latency").removesuffix(" personalized exchange").strip()
        self.collective = _COLLECTIVES.get(name)
        self.stream = words if words in _STREAMS else None
        self.quantity: Quantity = "bandwidth" if self.stream else _PAIRS.get(words, "collective")
        # One-sided tests are about other things.
        self.known = self.collective is not None or words in _PAIRS or self.stream is not None
        self.dtype: str | None = None
        self.sized = True
        self.columns: dict[str, int] = {}
        self.column: int | None = None
        self.unit: float | None = None
        self.rows: list[LogRow] = []

    def head(self, text: str) -> None:
        """Take the heading."""
        cells = _CELLS.split(text[:400].strip().removeprefix("#").strip())
        names = [cell.partition("(")[0].strip().lower() for cell in cells]
        self.sized = names[:1] == ["size"]  # a barrier has none
        self.column = None
        self.columns = dict(zip(names, range(len(names)), strict=True))
        for wanted in _COLUMNS:
            self.column = next((at for at, name in enumerate(names) if name.startswith(wanted)), self.column)
            if self.column is not None:
                break
        if self.column is None and "mb/s" in names:  # of several pairs
            self.column, self.unit = names.index("mb/s"), _RATES["MB/s"]
            return
        if not self.sized and self.collective != "barrier":
            self.column = None
        unit = "" if self.column is None else cells[self.column].partition("(")[2].rstrip(") ")
        self.unit = (_RATES if self.quantity == "bandwidth" else _MICROS).get(unit)

    def row(self, at: int, words: list[str]) -> str | None:
        """Take a row; what is wrong with it."""
        size = whole(words[0], MOST_SIZE) if self.sized else 0
        value = self._value(words, self.column)
        if size is None or value is None or self.unit is None:
            return "a size or a value is not a number"
        least, most = (
            self._value(words, next((at for name, at in self.columns.items() if name.startswith(end)), None))
            for end in ("min lat", "max lat")
        )
        value *= self.unit
        if least is not None and most is not None and not least <= value / self.unit * 1.001 + 0.01 <= most + 0.03:
            return f"the mean is not between {least:g} and {most:g}"
        if size and not value:
            return "the value is 0"
        if self.quantity == "bandwidth" and value <= MOST_RATE:  # MB/s are 10^6 B/s
            self.rows.append(LogRow(size, None, at, algbw=value))
        elif self.quantity != "bandwidth" and value <= MOST_MICROS:
            self.rows.append(LogRow(size, value, at))
        else:
            return "a size or a value is not a number"
        return None

    @staticmethod
    def _value(words: list[str], column: int | None) -> float | None:
        return number(words[column], MOST_RATE * KILO) if column is not None and column < len(words) else None

    def links(self) -> Iterator[Link]:
        """What a stream says of the port between its two nodes."""
        for row in self.rows if self.stream else ():
            test, both_ways = self.stream or "", _STREAMS[self.stream or ""]
            yield Link(TOOL, test, "port", "the port of a node", None, row.algbw, row.line, both_ways, row.size)

    def finished(self) -> LogTable:
        reduces = self.collective in ("allreduce", "reduce", "reduce_scatter")
        ranks = None if self.collective else 2
        return LogTable(
            TOOL, self.collective or "sendrecv", ranks, None, self.dtype, "sum" if reduces else None, None,
            tuple(self.rows), self.quantity, self.collective in PER_RANK,
        )  # fmt: skip


class _Reading(TextReading):
    tool = TOOL

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.tables: list[_Table] = []
        self.current: dict[str, _Table] = {}
        self.unread: set[str] = set()

    def line(self, at: int, label: str, text: str) -> None:
        words = text.split()
        table = self.current.get(label)
        if title := _title(text):
            self._begin(at, label, title)
        elif table and words[:2] == ["#", "Datatype:"] and len(words) > 2:
            table.dtype = words[2].rstrip(".")
        elif table and not table.rows and ("(us)" in text or (words[:1] == ["#"] and ("(" in text or "MB/s" in words))):
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
            self.complaints.add(at, f"a row below a heading without a known unit or a size: `{shown(text)}`")
        elif table.rows and words[0].isdecimal() and int(words[0][:30]) <= table.rows[-1].size:
            self.complaints.add(at, f"size {words[0][:30]} follows {table.rows[-1].size}, so two outputs were mixed")
        elif len(table.rows) < MOST_ROWS and (fault := table.row(at, words)):
            self.complaints.add(at, f"{fault}: `{shown(text)}`")

    def found(self) -> Iterator[LogTable]:
        return (one.finished() for one in self.tables if one.rows and one.stream in (None, "bandwidth"))

    def log(self) -> Log:
        self.links = [link for table in self.tables for link in table.links()]
        return super().log()


def _title(text: str) -> str | None:
    """What is tested, if a line is a title; spaces are reduced first, since a pattern would try them all."""
    match = _TITLE.search(" ".join(text.split())[:400]) if "OSU" in text else None
    return match[1] if match else None


READER = TextReader(
    TOOL, "the text of the OSU micro-benchmarks, versions 5 to 7: collectives, latency, bandwidth",
    "OSU micro-benchmarks 7.3, c/util", ("OSU",), _title, _Reading,
)  # fmt: skip
