"""What a gate is made from: expected rates with their floors, and what was measured there if a log is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size


@dataclass(frozen=True)
class Expectation:
    """What a healthy machine gives at one size.

    Attributes:
        collective: our key, or `sendrecv`.
        size_bytes: as nccl-tests counts it.
        time_us: the modelled time.
        busbw: the modelled bus rate, 10^9 B/s.
        tolerance: how far below it a healthy machine may be, a share.
        basis: how near the tables are that the tolerance is from.
        tables: how many they are, at how many `sites`.
        choice: algorithm, protocol and channels of the library.
        spread: factors of the time between which eight published systems in ten are.
    """

    collective: str
    size_bytes: int
    time_us: float
    busbw: float
    tolerance: float
    basis: str
    tables: int
    sites: int
    choice: str
    spread: tuple[float, float]

    @property
    def floor(self) -> float:
        """The smallest bus rate of a healthy machine, 10^9 B/s."""
        return self.busbw * (1 - self.tolerance)

    @property
    def most_us(self) -> float:
        """The longest time of a healthy machine."""
        return self.time_us / (1 - self.tolerance)

    @property
    def label(self) -> str:
        """What it is about, such as `allreduce 1G`."""
        return f"{self.collective} {format_size(self.size_bytes)}"


class Standing(StrEnum):
    """How a measured size stands to its floor."""

    PASSED = "passed"
    BELOW = "below the floor"
    WRONG = "wrong results"
    ABSENT = "not in the log"


@dataclass(frozen=True)
class Judged:
    """An expectation, and what a log says there."""

    expectation: Expectation
    standing: Standing
    time_us: float | None = None
    busbw: float | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing shows that the machine is healthy here: what was not measured has not passed."""
        return self.standing is not Standing.PASSED


@dataclass(frozen=True)
class Expected:
    """All that is expected of a machine.

    Attributes:
        machine: its name, with its options: `hgx-h100 --nodes 2 --fabric ndr-fat-tree`.
        nodes: copies of the machine.
        hosts: how many hosts a library counts; None where the machine itself may be several, such as trays.
        ranks: how many take part.
        library: such as `nccl-2.27`, by collective.
        expectations: by collective and size, in the order in which they were asked for.
        notes: what a reader has to know about the tolerances.
        log: the measured log; empty if none is given.
        judged: one for each expectation, if a log is given.
    """

    machine: str
    nodes: int
    hosts: int | None
    ranks: int
    library: dict[str, str]
    expectations: Sequence[Expectation]
    notes: Sequence[str] = ()
    log: str = ""
    judged: Sequence[Judged] = field(default_factory=tuple)

    @property
    def title(self) -> str:
        """One line for the head of a file."""
        versions = ", ".join(dict.fromkeys(self.library.values()))
        return f"{self.machine}, {self.ranks} ranks, {versions}"

    @property
    def failed(self) -> list[Judged]:
        """The sizes that have not passed."""
        return [one for one in self.judged if one.failed]

    def largest(self, gate: str, collective: str = "allreduce") -> Expectation:
        """Return the largest size of a collective, which a gate of one number is about; refuse if it is not there."""
        its = self.of(collective)
        if not its:
            raise UsageError(f"--format {gate}: this gate is about {collective}; name it, or choose another format")
        return max(its, key=lambda one: one.size_bytes)

    def of(self, collective: str) -> list[Expectation]:
        """Return the expectations of a collective."""
        return [one for one in self.expectations if one.collective == collective]

    def comments(self) -> list[str]:
        """Return what stands above the numbers of a file, one comment a line, without their mark."""
        return [f"linkwright expect: {self.title}", *self.notes]


@dataclass(frozen=True)
class GateFormat:
    """A format.

    Attributes:
        key: after `--format`.
        summary: one line.
        description: how the tool reads it, and which number it compares.
        source: of the format.
        render: the file.
        libraries: whose machines it is for; empty for all.
        judges: whether it tells how a measured log stands to the floors.
        needs_log: whether it has nothing to say without one.
    """

    key: str
    summary: str
    description: str
    source: str
    render: Callable[[Expected], str]
    libraries: tuple[str, ...] = ()
    judges: bool = False
    needs_log: bool = False

    def described(self) -> dict[str, object]:
        """As `list` and `describe` print it."""
        return {"key": self.key, "summary": self.summary, "description": self.description, "source": self.source}


# What the tools of NVIDIA and AMD call the collectives.
PROGRAMS = {
    "allreduce": "all_reduce_perf", "allgather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf",
    "alltoall": "alltoall_perf", "broadcast": "broadcast_perf", "reduce": "reduce_perf",
    "sendrecv": "sendrecv_perf", "gather": "gather_perf", "scatter": "scatter_perf",
}  # fmt: skip


def printable(text: str) -> str:
    """Return a name that stays within its comment: control characters and stray bytes are spelled out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def rate(value: float) -> str:
    """Return a rate in GB/s with three digits, rounded down, so that rounding fails no machine."""
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{math.floor(value * 10**digits) / 10**digits:.{digits}f}"


def commented(expected: Expected) -> str:
    """Return the comments of a file, with a line end."""
    return "".join(f"# {line}\n" for line in expected.comments())
