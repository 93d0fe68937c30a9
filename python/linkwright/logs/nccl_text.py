"""The text that nccl-tests and rccl-tests print, of versions 2.0 to 2.19.

    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
            1024           256     float     sum      -1    12.34    0.08    0.15      0    12.10    0.08    0.15      0

A row is found by its data type, which stands behind the size and the count, so whatever a launcher wrote in front does
not matter. What stands behind the type is counted from the header: versions differ in the root, in the columns of an
iteration's spread, and in `error` for `#wrong`. Rows of one task, data type and operator make a table; it ends where
another test starts or sizes begin again.

Old versions do not say which collective they ran. It follows from the rates, because busbw / algbw is 2 (n-1) / n of an
allreduce and (n-1) / n of others on n ranks, from the operator, and from what is not checked in place.

Source: nccl-tests, src/common.cu and src/util.cu; rccl-tests, src/common.cu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Reader
from .lines import (
    MOST_MICROS,
    MOST_RATE,
    MOST_ROWS,
    MOST_SIZE,
    Complaints,
    Source,
    number,
    plain,
    shown,
    whole,
)

TOOL = "nccl-tests"
TYPES = frozenset({
    "int8", "char", "uint8", "int32", "int", "uint32", "int64", "uint64", "half", "float16", "float", "float32",
    "double", "float64", "bfloat16", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "float8_e4m3", "float8_e5m2",
})  # fmt: skip
# The collectives of nccl-tests -> ours.
COLLECTIVES = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "alltoallv": "alltoallv", "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "sendrecv", "gather": "gather",
    "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip
_PROGRAM = re.compile(rf"\b({'|'.join(sorted(COLLECTIVES, key=len, reverse=True))})_perf\b")
# MPICH labels every piece that a rank writes, also within a line.
_LABEL_WITHIN = re.compile(r"(?<=[\w.])\[\d+\](?=\s)")
_REDUCTIONS = ("sum", "prod", "max", "min", "avg", "mulsum", "all")


@dataclass
class _Table:
    """A table that is being read."""

    collective: str | None
    dtype: str = ""
    reduction: str | None = None
    root: int | None = None
    rows: list[LogRow] = field(default_factory=list)


@dataclass
class _Stream:
    """What one task has written."""

    columns: Sequence[str] = ()
    collective: str | None = None
    table: _Table | None = None


class _Reading:
    def __init__(self) -> None:
        self.gathered = Gathered()
        self.complaints = Complaints()
        self.streams: dict[str, _Stream] = {}
        self.tables: list[_Table] = []
        self.skipped = 0
        self.rows = 0

    def line(self, at: int, text: str) -> None:
        label, text = plain(text)
        text = _LABEL_WITHIN.sub(" ", text)
        stream = self.streams.setdefault(label if len(self.streams) < 4096 else "", _Stream())
        words = text.split()
        place = _type_at(words)
        if match := _PROGRAM.search(text):
            stream.collective, stream.table = COLLECTIVES[match[1]], None
        if place is not None and "#" not in "".join(words[:place]):
            self._row(at, text, words[place - 2 :], stream)
        elif "size" in words and "count" in words and "time" in words:
            stream.columns, stream.table = words[words.index("size") :], None
        elif not self.gathered.see(text) and text.strip():
            self.skipped += 1

    def _row(self, at: int, text: str, words: list[str], stream: _Stream) -> None:
        read = _columns(words, stream.columns)
        if isinstance(read, str):
            self.complaints.add(at, f"{read}: `{shown(text)}`")
            return
        size, dtype, reduction, root, groups, cut = read
        if cut:
            self.complaints.add(at, f"the columns in place are missing, so the line is cut: `{shown(text)}`")
        table = stream.table
        same = table and (table.dtype, table.reduction, table.root) == (dtype, reduction, root)
        if table is None or not same or (table.rows and size < table.rows[-1].size):
            table = stream.table = _Table(stream.collective, dtype, reduction, root)
            self.tables.append(table)
        for place, (time, algbw, busbw, wrong) in groups:
            self.rows += 1
            if size and self.rows <= MOST_ROWS:
                table.rows.append(LogRow(size, time, at, algbw, busbw, place == 1, wrong))


def _type_at(words: Sequence[str]) -> int | None:
    """Where the data type of a row stands, behind two whole numbers."""
    for place in range(2, min(len(words), 12)):
        if words[place] in TYPES and words[place - 1].isdecimal() and words[place - 2].isdecimal():
            return place
    return None


_Group = tuple[float, float | None, float | None, int | None]


def _columns(
    words: Sequence[str], header: Sequence[str]
) -> tuple[int, str, str | None, int | None, list[tuple[int, _Group]], bool] | str:
    """(size, type, operator, root, [(0 out of place or 1 in place, numbers)], whether it is cut), or a complaint."""
    size = whole(words[0], MOST_SIZE)
    if size is None:
        return "the size is no size"
    first = _first_time(words, header)
    width = _width(header[header.index("time") :]) if "time" in header else 4
    between, rest = words[3:first], words[first:]
    reduction = next((word for word in between if word in _REDUCTIONS), None)
    root = next((int(word) for word in between if re.fullmatch(r"\d{1,9}", word, re.ASCII)), None)
    groups = [(place, group) for place in (0, 1) if (group := _group(rest[place * width : (place + 1) * width]))]
    if not groups or groups[0][0]:
        return "columns are missing, so the line is cut" if len(rest) < width else "a time or a rate is no number"
    return size, words[2], reduction, root, groups, width < len(rest) < 2 * width


def _first_time(words: Sequence[str], header: Sequence[str]) -> int:
    """Where the time stands: behind the operator and the root, each of which some versions leave blank."""
    named = len(words) > 3 and (words[3] in _REDUCTIONS or words[3] == "none")
    if "time" not in header:  # groups have four columns
        first = 3 + named
        return first + ((len(words) - first) % 4 == 1)
    first = header.index("time")
    if "redop" in header and not named:
        first -= 1
    if "root" in header and not re.fullmatch(r"-?\d+", words[first - 1] if first <= len(words) else "", re.ASCII):
        first -= 1
    return max(3, first)


def _width(columns: Sequence[str]) -> int:
    """How many columns stand from one time to the next."""
    again = [at for at, name in enumerate(columns) if name == "time"]
    return again[1] if len(again) > 1 else max(4, len(columns))


def _group(words: Sequence[str]) -> _Group | None:
    if len(words) < 4:
        return None
    time = number(words[0], MOST_MICROS)
    algbw, busbw = (number(word, MOST_RATE) for word in words[1:3])
    if time is None or algbw is None or busbw is None:
        return None
    wrong = number(words[3], 1e18)
    # Versions before 2.13 print the largest error instead of how many were wrong: it is small, and no whole number.
    return time, algbw, busbw, None if wrong is None else int(wrong)


def _finished(table: _Table, ranks: int | None, nodes: int | None) -> LogTable:
    collective, inferred = table.collective, False
    if collective is None:
        collective, inferred = _inferred(table, ranks), True
    return LogTable(
        TOOL, collective, ranks, nodes, table.dtype, table.reduction, table.root, tuple(table.rows),
        inferred=inferred and collective is not None,
    )  # fmt: skip


def _inferred(table: _Table, ranks: int | None) -> str | None:
    """The collective by its rates; None if several are possible."""
    rated = [row for row in table.rows if row.algbw and row.busbw and row.algbw >= 1 and not row.in_place]
    if not rated:
        return None
    last = rated[-1]
    factor = (last.busbw or 0) / (last.algbw or 1)
    n = ranks or 0
    if table.reduction and (factor > 1.02 or (n == 2 and abs(factor - 1) < 0.02 and table.root is None)):
        return "allreduce"
    shared = factor < 0.995
    if table.reduction:
        return "reduce_scatter" if shared else "reduce" if table.root is not None else None
    if not shared:
        return "broadcast" if table.root is not None else None
    in_place = [row for row in table.rows if row.in_place]
    unchecked = all(row.wrong is None for row in in_place) and any(row.wrong is not None for row in rated)
    return "alltoall" if unchecked or not in_place else "allgather"


def read(source: Source) -> Log:
    """All tables of a text."""
    reading = _Reading()
    for at, text in source.lines():
        reading.line(at, text)
    ranks, nodes = reading.gathered.ranks or None, reading.gathered.hosts
    reading.gathered.facts.hosts = nodes
    tables = tuple(_finished(table, ranks, nodes) for table in reading.tables if table.rows)
    return Log(TOOL, tables, reading.gathered.facts, (), reading.skipped, tuple(reading.complaints.first))


def _known(text: str) -> bool:
    words = text.split()
    return _type_at(words) is not None or ("size" in words and "count" in words and "algbw" in words)


READER = Reader(
    TOOL,
    "the text of nccl-tests and rccl-tests, versions 2.0 to 2.19, with whatever stands around it",
    "nccl-tests, src/common.cu and src/util.cu",
    lambda source: source.has(_known),
    read,
)
