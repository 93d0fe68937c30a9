"""The text of the Intel MPI Benchmarks: IMB-MPI1.

    # Benchmarking Allreduce
    # #processes = 16
           #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
                4         1000         2.05         2.61         2.33

A row's time is its last one in us: `t_avg` of collectives, `t` of PingPong.

Source: Intel MPI Benchmarks user guide, output of IMB-MPI1.
"""

from __future__ import annotations

import re

from linkwright.base.units import KILO

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, Complaints, number, shown, whole
from .osu import PER_RANK

TOOL = "IMB"
_BEGIN = re.compile(r"#\s*Benchmarking\s+(\w+)")
_RANKS = re.compile(r"#\s*#processes\s*=\s*(\d{1,9})")
_COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "reduce": "reduce",
    "alltoall": "alltoall", "bcast": "broadcast", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
    "pingpong": None, "sendrecv": None,
}  # fmt: skip


class _Table:
    def __init__(self, name: str):
        self.name = name.lower()
        self.collective = _COLLECTIVES.get(self.name)
        self.ranks: int | None = None
        self.columns: list[str] = []
        self.rows: list[LogRow] = []

    def row(self, at: int, words: list[str]) -> bool:
        """Take a row; whether it is one."""
        if not self.columns or len(words) < len(self.columns):
            return False
        named = dict(zip(self.columns, words, strict=False))
        size = whole(named.get("#bytes", "0"), MOST_SIZE)
        time = number(named.get("t_avg[usec]", named.get("t[usec]", "")), MOST_MICROS)
        if size is None or time is None:
            return False
        rate = number(named.get("mbytes/sec", ""), MOST_RATE * KILO)
        self.rows.append(LogRow(size, time, at, algbw=None if rate is None else rate / KILO))
        return True

    def finished(self) -> LogTable:
        reduces = self.collective in ("allreduce", "reduce", "reduce_scatter")
        return LogTable(
            TOOL, self.collective or "sendrecv", self.ranks, None, "float" if reduces else None,
            "sum" if reduces else None, None, tuple(self.rows), "collective" if self.collective else "latency",
            self.collective in PER_RANK,
        )  # fmt: skip


class _Reading:
    def __init__(self, gathered: Gathered) -> None:
        self.gathered, self.complaints, self.left_out = gathered, Complaints(), Complaints()
        self.tables: list[_Table] = []
        self.skipped = 0

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
            if not table.row(at, words):
                self.complaints.add(at, f"columns are missing or not numeric: `{shown(text)}`")
        elif words and not self.gathered.see(text, label):
            self.skipped += 1

    def log(self) -> Log:
        found = tuple(table.finished() for table in self.tables if table.rows and table.name in _COLLECTIVES)
        return Log(
            TOOL, found, self.gathered.facts, (), self.skipped, tuple(self.complaints.first), tuple(self.left_out.first)
        )


def _begin(text: str) -> re.Match[str] | None:
    return _BEGIN.search(text) if "Benchmarking" in text else None


READER = TextReader(
    TOOL, "the text of the Intel MPI Benchmarks (IMB-MPI1)", "Intel MPI Benchmarks user guide", _begin, _Reading
)
