"""The text of the Intel MPI Benchmarks: IMB-MPI1.

    # Benchmarking Allreduce
    # #processes = 16
           #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
                4         1000         2.05         2.61         2.33

A row's time is `t_avg` of collectives, `t` of PingPong; one outside `t_min` and `t_max` is an error of the copy.

Source: Intel MPI Benchmarks user guide, output of IMB-MPI1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwright.base.units import KILO

from .facts import Gathered
from .kinds import LogRow, LogTable, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, number, shown, whole
from .osu import PER_RANK
from .reading import TextReading

TOOL = "IMB"
_ROUNDED = 0.011  # us: the last digit of a time
_BEGIN = re.compile(r"#\s*Benchmarking\s+(\w+)")
_RANKS = re.compile(r"#\s*#processes\s*=\s*(\d{1,9})")
_COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "reduce": "reduce",
    "alltoall": "alltoall", "bcast": "broadcast", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
    "pingpong": None, "sendrecv": None,
    "allgatherv": "allgather", "alltoallv": "alltoall", "gatherv": "gather", "scatterv": "scatter",
    "reduce_scatter_block": "reduce_scatter",
}  # fmt: skip


class _Table:
    def __init__(self, name: str):
        self.name = name.lower()
        self.collective = _COLLECTIVES.get(self.name)
        self.ranks: int | None = None
        self.columns: list[str] = []
        self.rows: list[LogRow] = []

    def row(self, at: int, words: list[str]) -> str | None:
        """Take a row; what is wrong with it."""
        named = dict(zip(self.columns, words, strict=False))
        size = whole(named.get("#bytes", "0"), MOST_SIZE)
        times = {name: number(named.get(f"{name}[usec]", ""), MOST_MICROS) for name in ("t_min", "t_max", "t_avg", "t")}
        time = times["t_avg"] if "t_avg[usec]" in named else times["t"]
        if len(words) < len(self.columns) or size is None or time is None:
            return "columns are missing or not numeric"
        if self.ranks == 0:
            return "no process took part"
        least, most = times["t_min"], times["t_max"]
        if least is not None and most is not None and not least - _ROUNDED <= time <= most + _ROUNDED:
            return f"the mean is not between {least:g} and {most:g}"
        if size and not time:
            return "the time is 0"
        rate = number(named.get("mbytes/sec", ""), MOST_RATE * KILO)
        self.rows.append(LogRow(size, time, at, algbw=None if rate is None else rate / KILO))
        return None

    def finished(self) -> LogTable:
        reduces = self.collective in ("allreduce", "reduce", "reduce_scatter")
        return LogTable(
            TOOL, self.collective or "sendrecv", self.ranks, None, "float" if reduces else None,
            "sum" if reduces else None, None, tuple(self.rows), "collective" if self.collective else "latency",
            self.collective in PER_RANK,
        )  # fmt: skip


class _Reading(TextReading):
    tool = TOOL

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.tables: list[_Table] = []

    def line(self, at: int, label: str, text: str) -> None:
        words = text.split()
        table = self.tables[-1] if self.tables else None
        if match := _begin(text):
            self.tables.append(_Table(match[1]))
            if self.tables[-1].name not in _COLLECTIVES:
                self.left_out.add(at, f"the benchmark `{shown(match[1])}` is not known")
        elif table and (match := _RANKS.search(text)):
            table.ranks = int(match[1])
        elif table and "#repetitions" in words:
            table.columns = [word.lower() for word in words]
        elif table and words and words[0].isdecimal() and len(table.rows) < MOST_ROWS:
            if table.columns and (fault := table.row(at, words)):
                self.complaints.add(at, f"{fault}: `{shown(text)}`")
        elif words and not self.gathered.see(text, label):
            self.skipped += 1

    def found(self) -> Iterator[LogTable]:
        return (table.finished() for table in self.tables if table.rows and table.name in _COLLECTIVES)


def _begin(text: str) -> re.Match[str] | None:
    return _BEGIN.search(text) if "Benchmarking" in text else None


READER = TextReader(
    TOOL, "the text of the Intel MPI Benchmarks (IMB-MPI1)", "Intel MPI Benchmarks user guide", ("Benchmarking",),
    _begin, _Reading,
)  # fmt: skip
