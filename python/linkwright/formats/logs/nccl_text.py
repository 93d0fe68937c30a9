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

import functools
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from linkwright.base.units import KILO, format_size

from . import checks
from .facts import Gathered, Group
from .kinds import LogRow, LogTable, Origin, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, legible, lines_of, number, plain, shown, whole
from .reading import HEAD, OTHER, ROW, TextReading

TOOL = "nccl-tests"
TYPES = frozenset(checks.BYTES)
# Every type has one of them in its name.
_STEMS = tuple(name for name in checks.BYTES if not any(one in name for one in checks.BYTES if one != name))
# The collectives of nccl-tests -> ours.
COLLECTIVES = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "alltoallv": "alltoallv", "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "sendrecv", "gather": "gather",
    "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip
_PROGRAM = re.compile(rf"\b({'|'.join(sorted(COLLECTIVES, key=len, reverse=True))})_perf(?:_mpi)?\b")
_STARTING = re.compile(r"#\s*Collective test starting: (\w{1,60})_perf")
_END = "Out of bounds values"
# The comment above a table of ours: `# allreduce/ring, 8 ranks, threads on box`.
_OURS = re.compile(r"# (\w{1,60})/(\S{1,200}), (\d{1,60}) ranks, (\S{1,200}) on (.{1,400})")
_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?", re.IGNORECASE)
# MPICH labels every piece that a rank writes, also within a line. It begins with a character, so a search is fast.
_LABEL_WITHIN = re.compile(r"\[(?<=[\w.]\[)\d+\](?=\s)")
# The library writes where the test has printed a part of a row: host, process, thread and GPU stand right behind it.
_LIBRARY_WITHIN = re.compile(r"[\w.-]{1,200}:\d{1,9}:\d{1,9}(?: \[\d{1,4}\])? NCCL (?:INFO|WARN|TRACE) ")
_GLUED = re.compile(r"-?\d", re.ASCII)  # the root or the wrong elements in front of a host's name
_REST = re.compile(r"(?:\s*[\d.]{1,20}){3}\s+(?:\d{1,20}|N/A|-)\s*", re.ASCII)
_ROOT, _RANK = re.compile(r"\d{1,9}", re.ASCII), re.compile(r"-?\d+", re.ASCII)
_UNIT = re.compile(r"\(([\w/]{1,12})\)")
_SCALE = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "MB/s": 1e-3, "GB/s": 1.0, "TB/s": 1e3}
_UNITS = dict.fromkeys(("ns", "us", "ms", "s"), "time") | dict.fromkeys(("MB/s", "GB/s", "TB/s"), "rate")
_UNITS |= {"B": "size", "elements": "count"}
_size = operator.attrgetter("size")
_REDUCTIONS = ("sum", "prod", "max", "min", "avg", "mulsum", "all")
OPERATORS = (*_REDUCTIONS, "none")
# A line is part of a table if it is a row, begins with a number or contains one of these.
MARKS = ("_perf", "Collective test", " ranks, ", "count(elems)", _END, "(B)", "(elements)", "size")
_HEADS = [
    ["size", "count", "type", "redop", "root", *["time", "algbw", "busbw", wrong] * 2] for wrong in ("#wrong", "error")
]

# Size, time, line, algbw, busbw, whether in place, wrong elements.
_Row = tuple[int, float, int, float, float, bool, int | None]


@dataclass(frozen=True)
class _Units:
    """What a time is in us, and a rate in 10^9 B/s; or what is wrong with the units of a heading."""

    time: float = 1.0
    rate: float = 1.0
    unknown: str | None = None


def _units(text: str) -> _Units | None:
    """The units in parentheses below a heading; None if a line is no such line."""
    named = _UNIT.findall(text) if text.lstrip().startswith("#") else []
    if "B" not in named and "elements" not in named:
        return None
    unknown = [one for one in named if one not in _UNITS]
    times, rates = ([name for name in named if _UNITS.get(name) == kind] for kind in ("time", "rate"))
    if unknown or len(set(times)) > 1 or len(set(rates)) > 1:
        said = f"the unit `{shown(unknown[0])}` is not known" if unknown else "units are mixed"
        return _Units(unknown=f"{said}; nccl-tests prints us and GB/s")
    return _Units(_SCALE[times[0]] if times else 1.0, _SCALE[rates[0]] if rates else 1.0)


@dataclass
class _Table:
    """A table that is being read."""

    group: Group
    line: int
    collective: str | None
    origin: Origin | None = None
    dtype: str = ""
    reduction: str | None = None
    root: int | None = None
    unit: float = 1.0  # of its rates, in 10^9 B/s
    rows: list[LogRow] = field(default_factory=list)
    ended: bool = False
    asked: tuple[int, int, bool] | None = None  # the largest size, and how sizes grow

    def goes_on(self, size: int) -> bool:
        """Whether a size belongs to it: sizes that have grown do not begin again, and those that fall do not grow."""
        sizes = list(dict.fromkeys(row.size for row in self.rows[-3:]))
        if len(sizes) < 2 or size == sizes[-1]:
            return True
        return (size > sizes[-1]) is (sizes[-1] > sizes[-2])

    @property
    def early(self) -> str:
        """How its last size falls short of what the test was asked for; empty where it does not."""
        if self.asked is None or self.ended:
            return ""
        most, step, is_factor = self.asked
        last = max(map(_size, self.rows))
        if (last * step if is_factor else last + step) > most:
            return ""
        return f"sizes end at {format_size(last)}, and the test was to reach {format_size(most)}: the job ended early"


@dataclass
class _Stream:
    """What one task has written."""

    columns: Sequence[str] = ()
    units: _Units = _Units()
    collective: str | None = None
    origin: Origin | None = None
    group: Group | None = None  # of a table of ours, which states its ranks
    known: bool = True  # whether the test is one that is read
    begun: str = ""  # a row of which some columns are still to come
    table: _Table | None = None
    open: list[_Table] = field(default_factory=list)  # tables whose end is still to come


class NcclReading(TextReading):
    """The tables so far."""

    tool = TOOL

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.streams: dict[str, _Stream] = defaultdict(_Stream, {"": _Stream()})
        self.tables: list[_Table] = []
        self.rows = 0

    def take(self, first: int, piece: str, found: list[tuple[int, int, int, str, list[_Row]]], passed: int) -> None:
        """Take what native code found in a piece of the log: lines, and rows that agree with themselves."""
        self.skipped += passed
        lines: list[str] = []
        for at, marks, times, text, rows in found:
            if not marks & (OTHER | ROW | HEAD):  # nor is it of a table
                if "[" in text:
                    text = _LABEL_WITHIN.sub(" ", text)
                self.skipped += not self.gathered.see(text, "", times)
            elif not rows:
                self.line(at, *plain(legible(text)))
            elif not self._rows(rows, *text.split()):
                lines = lines or list(lines_of(piece))
                for row in rows[::2]:
                    self.line(row[2], "", lines[row[2] - first])

    def _rows(self, rows: list[_Row], dtype: str, operator: str, root: str) -> bool:
        """Take rows of growing sizes, if they are below the usual heading."""
        stream = self.streams[""]
        if not stream.known or stream.units != _Units() or stream.columns not in _HEADS:
            return False
        kind = dtype, None if operator == "none" else operator, None if root.startswith("-") else int(root)
        # Falling sizes may begin again with the second row; behind it they grow, as long as rows are kept.
        begin, fits = 0, self.rows + len(rows) <= MOST_ROWS
        for end in (2, len(rows)) if fits else range(2, len(rows) + 1, 2):
            if part := rows[begin:end]:
                table = self._table(stream, "", part[0][2], part[0][0], *kind)
                table.rows += itertools.starmap(LogRow, part[: max(0, MOST_ROWS - self.rows)])
                self.rows += len(part)
            begin = end
        return True

    def line(self, at: int, label: str, text: str) -> None:
        """Take a line."""
        if "[" in text:
            text = _LABEL_WITHIN.sub(" ", text)
        stream = self.streams[label if len(self.streams) < 4096 else ""]
        if "NCCL " in text or stream.begun:
            text = self._joined(stream, text, label)
        words, place = _words(text)
        if "_perf" in text and (match := _PROGRAM.search(text)):
            self._start(stream, COLLECTIVES[match[1]])
        elif "Coll" in text and (match := _STARTING.match(text)):
            self._start(stream, None, known=False)
            self.left_out.add(at, f"the collective `{match[1]}` is not known")
        elif " ranks, " in text and (match := _OURS.fullmatch(text)):
            self._start(stream, match[1], Origin(match[2], match[4], match[5]))
            stream.group = Group(ranks=int(match[3]))
        elif "count(elems)" in text:
            self._start(stream, None, known=False)
            self.left_out.add(
                at, "a table of nccom-test, for AWS Trainium; it is not read, as no described machine has Trainium"
            )
        elif _END in text:
            for table in stream.open:
                table.ended = True
            stream.open.clear()
        if place is not None and ("#" not in text or "#" not in "".join(words[:place])):
            self._row(at, text, words[place - 2 :], stream, label)
        elif stream.columns and _is_near(text, words, stream.columns):
            if stream.known:
                self.complaints.add(at, f"size, count and type of a row were expected: `{shown(text)}`")
        elif "size" in words and "count" in words and "time" in words:
            stream.columns, stream.units, stream.table = words[words.index("size") :], _Units(), None
        elif stream.table and stream.open and 0 < len(words) < 3 and all(word.isdecimal() for word in words):
            self.complaints.add(at, f"columns are missing, so the line is cut: `{shown(text)}`")
        elif stream.columns and not stream.table and (units := _units(text)):
            stream.units = units
        elif not self.gathered.see(text, label) and words:
            self.skipped += 1

    def _joined(self, stream: _Stream, text: str, label: str) -> str:
        """A row whose columns the library has parted, once it is whole; until then what the library says there."""
        within = _LIBRARY_WITHIN.search(text)
        before = text[: within.start()] if within else text
        if within and (before.strip() or stream.begun) and (glued := _GLUED.match(within[0])):
            before += f" {glued[0]}"
        words, place = _words(before)
        if place is not None and within and len(words) - place <= 3:
            stream.begun = before
        elif stream.begun and _REST.fullmatch(before):
            stream.begun += f" {before}"
            if len(stream.begun.split()) >= len(stream.columns or _HEADS[0]):
                text, stream.begun = stream.begun, ""
                if within:
                    self.gathered.see(within.string[within.start() :], label)
                return text
        elif not within or before.strip():
            stream.begun = "" if place is not None else stream.begun
            return text
        return text[within.start() :] if within else ""

    def _start(self, stream: _Stream, collective: str | None, origin: Origin | None = None, *, known: bool = True):
        stream.collective, stream.origin, stream.known = collective, origin, known
        stream.group = stream.table = None

    def _row(self, at: int, text: str, words: list[str], stream: _Stream, label: str) -> None:
        if not stream.known:
            self.skipped += 1
            return
        read = stream.units.unknown or _columns(words, stream.columns)
        if isinstance(read, str):
            self.complaints.add(at, f"{read}: `{shown(text)}`")
            return
        size, dtype, reduction, root, groups, cut = read
        fault = self._fault(words, stream, size, dtype, groups)
        if cut or fault:
            said = "the columns in place are missing, so the line is cut" if cut else fault
            self.complaints.add(at, f"{said}: `{shown(text)}`")
        if fault:
            return
        table, units = self._table(stream, label, at, size, dtype, reduction, root), stream.units
        for place, (time, algbw, busbw, wrong, _) in groups:
            self.rows += 1
            if size and self.rows <= MOST_ROWS:
                rates = algbw * units.rate, busbw * units.rate
                table.rows.append(LogRow(size, time * units.time, at, *rates, place == 1, wrong))

    def _table(
        self, stream: _Stream, label: str, at: int, size: int, dtype: str, reduction: str | None, root: int | None
    ) -> _Table:
        """The table that a row belongs to."""
        table = stream.table
        if table and (table.dtype, table.reduction, table.root) == (dtype, reduction, root) and table.goes_on(size):
            return table
        group = stream.group or self.gathered.group(label)
        group.measured = True
        table = stream.table = _Table(
            group, at, stream.collective, stream.origin, dtype, reduction, root, stream.units.rate,
            asked=self.gathered.asked,
        )  # fmt: skip
        self.tables.append(table)
        stream.open.append(table)
        return table

    @staticmethod
    def _fault(
        words: list[str], stream: _Stream, size: int, dtype: str, groups: list[tuple[int, _Group]]
    ) -> str | None:
        """How the numbers of a row contradict one another."""
        if not TYPES.isdisjoint(words[3:]):
            return "two rows stand in one line"
        if not checks.is_rated_by_size(stream.collective):
            return None
        units = stream.units
        odd = (
            checks.time_and_rate(size, time * units.time, algbw * units.rate, units.rate, printed)
            for _, (time, algbw, _, _, printed) in groups
        )
        return checks.count(size, whole(words[1], MOST_SIZE), dtype, stream.collective) or next(filter(None, odd), None)

    def found(self) -> Iterator[LogTable]:
        """Return its tables."""
        for table in self.tables:
            if not table.rows:
                said = "all sizes of this table are 0 bytes, so nothing moved; give -b and -e"
                self.left_out.add(table.line, said)
            elif _is_alone(table):
                self.left_out.add(
                    table.line, "busbw is 0 at every size: one rank has nobody to send to. If there were more, each "
                    "process ran for itself: build nccl-tests with MPI=1, and start it with mpirun or srun"
                )  # fmt: skip
        return filter(None, (self._finished(one) for one in self.tables if one.rows and not _is_alone(one)))

    def _finished(self, table: _Table) -> LogTable | None:
        group = table.group
        ranks, nodes = group.ranks or None, len(group.hosts) or group.nodes or None
        collective = table.collective or _inferred(table, ranks)
        checked = checks.factors(table.rows, collective, None if table.collective is None else ranks, table.unit)
        for line, fault in checked.odd:
            self.complaints.add(line, fault)
        if early := table.early:
            self.complaints.add(table.rows[-1].line, early)
        last = max(group.places, default=-1)
        if checked.ranks and last >= checked.ranks:
            said = f"busbw / algbw is that of {checked.ranks} ranks, and the log lists rank {last}"
            self.complaints.add(table.rows[0].line, said)
        if checked.ranks != ranks and (checked.ranks or last + 1 > len(group.places)):
            ranks = checked.ranks  # the lines of some ranks are missing, or are of others
        ranks = ranks or checks.ranks_of(checked.rows, collective, table.unit)
        if ranks is None or len(group.places) < ranks:
            nodes = group.nodes or (nodes if group.places and group.ranks > last + 1 else None)
        return LogTable(
            TOOL, collective, ranks, nodes, table.dtype, table.reduction, table.root, checked.rows,
            inferred=collective is not None and table.collective is None, devices=tuple(group.devices),
            ended=table.ended, origin=table.origin,
        ) if checked.rows else None  # fmt: skip


def _is_alone(table: _Table) -> bool:
    """Whether busbw is 0 where algbw is not."""
    rated = [row for row in table.rows if row.algbw and row.algbw >= table.unit]
    return bool(rated) and not any(row.busbw for row in table.rows)


def _is_near(text: str, words: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether a line has the type and the rates of a row, behind something else than a size and a count.

    Or the size, the count and the rates, around a type that is not known, in as many columns as the heading or before
    an operator.
    """
    if "," in words[0] if words else False:
        words = " ".join(words).replace(",", " ").split()
    is_row = len(words) > 5 and (len(words) == len(columns) or words[3] in OPERATORS)
    if is_row and all(_NUMBER.fullmatch(word) for word in words[:2]) and not _NUMBER.fullmatch(words[2]):
        return sum(1 for rate in words[3:] if _NUMBER.fullmatch(rate)) >= 3
    for place, word in enumerate(words[:12] if any(map(text.__contains__, _STEMS)) else ()):
        if word.lstrip("0123456789.,") in TYPES and any(c.isdigit() for c in "".join(words[: place + 1])):
            return sum(1 for rate in words[place + 1 :] if _NUMBER.fullmatch(rate)) >= 3 and "#" not in words[0]
    return False


@functools.lru_cache(1)  # a line is first recognised and then read
def _words(text: str) -> tuple[list[str], int | None]:
    """The words of a line, and where the data type of a row stands, behind two numbers."""
    words = text.split()
    if not TYPES.isdisjoint(words):
        for place, word in enumerate(words[2:12], 2):
            if word in TYPES and _NUMBER.fullmatch(words[place - 2]) and _NUMBER.fullmatch(words[place - 1]):
                return words, place
    return words, None


# time, algbw, busbw, wrong elements, and the time as it is printed
_Group = tuple[float, float, float, int | None, str]


def _columns(
    words: Sequence[str], header: Sequence[str]
) -> tuple[int, str, str | None, int | None, list[tuple[int, _Group]], bool] | str:
    """(size, type, operator, root, [(0 out of place or 1 in place, numbers)], whether it is cut), or a complaint."""
    size = whole(words[0], MOST_SIZE)
    if size is None:
        return "the size is not a whole number of bytes, or is too large"
    first = _first_time(words, header)
    width = _width(header[header.index("time") :]) if "time" in header else 4
    between, rest = words[3:first], words[first:]
    reduction = next((word for word in between if word in _REDUCTIONS), None)
    root = next((int(word) for word in between if _ROOT.fullmatch(word)), None)
    groups = [(place, group) for place in (0, 1) if (group := _group(rest[place * width : (place + 1) * width]))]
    if not groups or groups[0][0]:
        return "columns are missing, so the line is cut" if len(rest) < width else "a time or a rate is not a number"
    return size, words[2], reduction, root, groups, width < len(rest) < 2 * width


def _first_time(words: Sequence[str], header: Sequence[str]) -> int:
    """Where the time stands: behind the operator and the root, each of which some versions leave blank."""
    named = len(words) > 3 and words[3] in OPERATORS
    if "time" not in header:  # groups have four columns
        first = 3 + named
        return first + ((len(words) - first) % 4 == 1)
    first = header.index("time")
    if "redop" in header and not named:
        first -= 1
    if "root" in header and not _RANK.fullmatch(words[first - 1] if first <= len(words) else ""):
        first -= 1
    return max(3, first)


def _width(columns: Sequence[str]) -> int:
    """How many columns stand from one time to the next."""
    again = [at for at, name in enumerate(columns) if name == "time"]
    return again[1] if len(again) > 1 else max(4, len(columns))


def _group(words: Sequence[str]) -> _Group | None:
    if len(words) < 4:
        return None
    time, algbw, busbw = number(words[0], MOST_MICROS), number(words[1], MOST_RATE), number(words[2], MOST_RATE)
    wrong = number(words[3], 1e18)
    if time is None or algbw is None or busbw is None or (wrong is None and words[3] not in ("N/A", "-")):
        return None
    # Versions before 2.13 print the largest error instead of how many were wrong: it is small, and no whole number.
    return time, algbw, busbw, None if wrong is None else int(wrong), words[0]


def _inferred(table: _Table, ranks: int | None) -> str | None:
    """The collective by its rates; None if several are possible."""
    rated = (row for row in reversed(table.rows) if row.algbw and row.busbw and row.algbw >= 1 and not row.in_place)
    last = next(rated, None)
    if last is None:
        return _by_digits(table, ranks)
    factor = (last.busbw or 0) / (last.algbw or 1)
    n = ranks or 0
    if table.reduction and (factor > 1.02 or (n == 2 and abs(factor - 1) < 0.02 and table.root is None)):
        return "allreduce"
    if table.reduction and table.root is None and not n and factor == 1:  # of others the root is printed, or it is less
        return "allreduce"
    shared = factor < 0.995
    if table.reduction:
        return "reduce_scatter" if shared else "reduce" if table.root is not None else None
    if not shared:
        return "broadcast" if table.root is not None else None
    in_place = [row for row in table.rows if row.in_place]
    unchecked = all(row.wrong is None for row in in_place) and any(row.wrong is not None for row in (last, *rated))
    return "alltoall" if unchecked or not in_place else "allgather"


def _by_digits(table: _Table, ranks: int | None) -> str | None:
    """The collective where rates are small: the only one whose busbw would be printed so at every size."""
    if not table.reduction or _more_than_once(table):
        return "allreduce" if table.reduction else None
    measured = [row for row in table.rows if row.time and row.size and row.busbw is not None and not row.in_place]
    possible = [
        name
        for name in ("allreduce", "reduce_scatter")
        if ranks and table.root is None and table.unit == 1
        and all(
            abs((row.busbw or 0) - checks.bus_factor(name, ranks) * row.size / (row.time or 1) / KILO) <= checks.RATE
            for row in measured
        )
    ]  # fmt: skip
    return possible[0] if len(possible) == 1 else None


def _more_than_once(table: _Table) -> bool:
    """Whether busbw is above size / time even where rates are too small for their two digits after the point."""
    return any(
        row.busbw - checks.RATE > 1.02 * row.size / row.time / KILO
        for row in table.rows
        if row.time and row.size and row.busbw and not row.in_place
    )


def _known(text: str) -> bool:
    words, place = _words(text)
    return place is not None or ("size" in words and "count" in words and "algbw" in words)


READER = TextReader(
    TOOL, "the text of nccl-tests and rccl-tests, versions 2.0 to 2.19, including the lines around it",
    "nccl-tests, src/common.cu and src/util.cu", (*_STEMS, "algbw"), _known, NcclReading,
)  # fmt: skip
