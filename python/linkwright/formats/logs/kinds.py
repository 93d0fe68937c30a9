"""What a log holds, whichever tool wrote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .facts import Facts, Gathered
from .lines import Source
from .ranks import TimedOperation

# What the numbers of a table are: of a whole collective, of one message one way, of a stream of messages, or of a
# scope of a kernel.
Quantity = Literal["collective", "latency", "bandwidth", "zone"]


@dataclass(slots=True)  # a log may have a million, and frozen ones take twice as long to make
class LogRow:
    """One measured size. It is not frozen, but never changed.

    Attributes:
        size: bytes, as the tool counts them (`LogTable.per_rank` says which).
        time: us of one operation; None where only a rate is printed.
        algbw: 10^9 B/s; None where the tool prints none.
        busbw: 10^9 B/s; None where the tool prints none.
        in_place: whether the result overwrites the input.
        wrong: how many elements were wrong; None where nothing was checked.
        line: where it stands, from 1.
        count: how many operations it stands for.
        samples: of a zone, (start, duration) in us of each core, entry by entry.
    """

    size: int
    time: float | None
    line: int
    algbw: float | None = None
    busbw: float | None = None
    in_place: bool = False
    wrong: int | None = None
    count: int = 1
    samples: tuple[tuple[tuple[float, float], ...], ...] = ()


@dataclass(frozen=True)
class Origin:
    """Facts in the heading of a table that linkwright exported."""

    algorithm: str
    executor: str
    machine: str


@dataclass(frozen=True)
class Zone:
    """What a profiler says of a scope of a kernel: its name, and how many transactions of a size each core made."""

    name: str
    transactions: int


@dataclass(frozen=True)
class LogTable:
    """The rows of one operation.

    Attributes:
        tool: the tool that printed it.
        collective: our key of the collective, `sendrecv`, or None if nothing says.
        ranks: how many took part, or None if nothing says.
        nodes: on how many hosts, or None if nothing says.
        dtype: the data type by the tool's own name.
        reduction: the operator by the tool's own name; None if nothing is reduced.
        root: the root; None if there is none.
        rows: by line.
        quantity: what the numbers are.
        per_rank: whether `size` counts one rank's block and not the whole vector.
        inferred: whether the collective is inferred from rates and columns.
        devices: the kinds of devices that took part; empty if nothing says.
        ended: whether the tool's last line is there; None where it prints none.
        origin: of a table that linkwright exported: what it measured.
        zone: of a zone: which one.
    """

    tool: str
    collective: str | None
    ranks: int | None
    nodes: int | None
    dtype: str | None
    reduction: str | None
    root: int | None
    rows: tuple[LogRow, ...]
    quantity: Quantity = "collective"
    per_rank: bool = False
    inferred: bool = False
    devices: tuple[str, ...] = ()
    ended: bool | None = None
    origin: Origin | None = None
    zone: Zone | None = None

    @property
    def wrong(self) -> tuple[LogRow, ...]:
        """The rows whose result was checked and is wrong."""
        return tuple(row for row in self.rows if row.wrong)


# What a rate is of: a port of a network, two ends of a node, or the GPUs' links or ports in an exchange of all.
Medium = Literal["port", "pair", "scale-up", "scale-out", "exchange"]


@dataclass(frozen=True)
class Link:
    """One measured link: a rate, a time, or both.

    Attributes:
        tool: the tool that printed it.
        test: what was run, by the tool's own name: `RDMA_Write`, `Unidirectional P2P=Enabled`, `dispatch (FP8)`.
        medium: what the rate is of.
        source: where data come from, `GPU 0`; a port by its name; a rank.
        target: where they go to; None of a port or a rank.
        rate: 10^9 B/s; None where only a time is printed.
        line: where it stands, from 1.
        both_ways: whether data went both ways at once; the rate is then what the tool calls it, mostly their sum.
        size: bytes of a message; None if nothing says.
        time: us of one message or operation; None where the tool prints none.
    """

    tool: str
    test: str
    medium: Medium
    source: str
    target: str | None
    rate: float | None
    line: int
    both_ways: bool = False
    size: int | None = None
    time: float | None = None


@dataclass(frozen=True)
class Log:
    """All of a file.

    Attributes:
        tool: the tool that printed it.
        tables: of collectives and messages.
        links: measured links.
        facts: what else it says.
        skipped: how many lines belong to no table.
        complaints: (line, what is wrong) of lines that look like rows but cannot be read as one, or
            contradict themselves; the first hundred.
        left_out: (line, which) of tables that are not read; the first hundred.
        operations: those of which it is known which ranks timed them.
        waits: whether times hold the waiting of a rank for others, and nothing tells how much.
    """

    tool: str
    tables: tuple[LogTable, ...]
    facts: Facts
    links: tuple[Link, ...] = ()
    skipped: int = 0
    complaints: tuple[tuple[int, str], ...] = ()
    left_out: tuple[tuple[int, str], ...] = ()
    operations: tuple[TimedOperation, ...] = ()
    waits: bool = False

    @property
    def wrong(self) -> tuple[LogRow, ...]:
        """The rows of all tables whose result was checked and is wrong."""
        return tuple(row for table in self.tables for row in table.wrong)

    @property
    def named(self) -> tuple[tuple[int, str], ...]:
        """Both of these, by line."""
        return tuple(sorted((*self.complaints, *self.left_out)))


class Reading(Protocol):
    """A text that is being read, line by line."""

    def line(self, at: int, label: str, text: str) -> None:
        """Take a line; `label` is the task that wrote it, as a launcher says."""

    def log(self) -> Log:
        """What was found."""


@dataclass(frozen=True)
class TextReader:
    """What a tool prints for people; several may stand in one file.

    Attributes:
        tool: the tool that prints it.
        summary: the format in a few words.
        source: where the format is described.
        marks: every line that it knows has one of them; most lines of a file have none of any tool.
        knows: whether a line is the tool's, and no other's.
        begin: starts to read; what lines say of the machine goes to the one `Gathered` of the file.
    """

    tool: str
    summary: str
    source: str
    marks: tuple[str, ...]
    knows: Callable[[str], object]
    begin: Callable[[Gathered], Reading]


@dataclass(frozen=True)
class Reader:
    """A document, or lines of documents, of one tool alone.

    Attributes:
        tool: the tool that writes it.
        summary: the format in a few words.
        source: where the format is described.
        recognises: whether a file has this format.
        read: read it.
        read_all: read the files of several ranks as one log; None where files have nothing in common.
    """

    tool: str
    summary: str
    source: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Log]
    read_all: Callable[[Sequence[Source]], Log] | None = None
