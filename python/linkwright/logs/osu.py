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

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Quantity, Reader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, Complaints, Source, number, plain, shown, whole

TOOL = "OSU"
_TITLE = re.compile(r"#\s*OSU\s+((?:MPI|[NR]CCL)\S*\s+.*?)\s+(?:Test\s*)?v?\d+\.\d+", re.IGNORECASE)
_RUNTIME = re.compile(r"(?:mpi|[nr]ccl)(?:-(?:cuda|rocm|openacc|managed))?\s+")
_COLLECTIVES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "reduce": "reduce",
    "alltoall": "alltoall", "all-to-all personalized exchange": "alltoall", "broadcast": "broadcast",
    "bcast": "broadcast", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
}  # fmt: skip
_PAIRS: dict[str, Quantity] = {"latency": "latency", "bandwidth": "bandwidth"}
PER_RANK = ("allgather", "alltoall", "gather", "scatter")


class _Table:
    def __init__(self, title: str):
        words = _RUNTIME.sub("", title.lower(), count=1).removesuffix(" test").strip()
        self.collective = _COLLECTIVES.get(words.removesuffix(" latency").strip())
        self.quantity: Quantity = "collective" if self.collective else _PAIRS.get(words, "collective")
        # One-sided and non-blocking tests, and those of several pairs, are about other things.
        self.known = self.collective is not None or words in _PAIRS
        self.dtype: str | None = None
        self.rows: list[LogRow] = []

    def row(self, at: int, words: list[str]) -> bool:
        """Take a row; whether it is one."""
        barrier = self.collective == "barrier"
        size = 0 if barrier else whole(words[0], MOST_SIZE)
        text = words[0] if barrier else words[1] if len(words) > 1 else ""
        value = number(text, MOST_RATE * 1e3 if self.quantity == "bandwidth" else MOST_MICROS)
        if size is None or value is None:
            return False
        if self.quantity == "bandwidth":  # MB/s are 10^6 B/s
            self.rows.append(LogRow(size, None, at, algbw=value / 1e3))
        else:
            self.rows.append(LogRow(size, value, at))
        return True

    def finished(self) -> LogTable:
        reduces = self.collective in ("allreduce", "reduce", "reduce_scatter")
        ranks = None if self.collective else 2
        return LogTable(
            TOOL, self.collective or "sendrecv", ranks, None, self.dtype, "sum" if reduces else None, None,
            tuple(self.rows), self.quantity, self.collective in PER_RANK,
        )  # fmt: skip


def read(source: Source) -> Log:
    """All tables of a text."""
    gathered, complaints = Gathered(), Complaints()
    tables: list[_Table] = []
    current: dict[str, _Table] = {}
    skipped = 0
    for at, raw in source.lines():
        label, text = plain(raw)
        words = text.split()
        if match := _TITLE.search(text):
            current[label] = _Table(match[1])
            tables.append(current[label])
        elif match := re.search(r"#\s*Datatype:\s*(\w+)", text):
            if label in current:
                current[label].dtype = match[1]
        elif words and label in current and current[label].known and re.fullmatch(r"-?\d+(?:\.\d+)?", words[0]):
            taken = len(current[label].rows) < MOST_ROWS and current[label].row(at, words)
            if not taken:
                complaints.add(at, f"a size or a value is no number: `{shown(text)}`")
        elif text.strip() and not gathered.see(text):
            skipped += 1
    found = tuple(table.finished() for table in tables if table.rows)
    return Log(TOOL, found, gathered.facts, (), skipped, tuple(complaints.first))


READER = Reader(
    TOOL,
    "the text of the OSU micro-benchmarks, versions 5 to 7: collectives, latency, bandwidth",
    "OSU micro-benchmarks 7.3, c/util",
    lambda source: source.has(_TITLE.search),
    read,
)
