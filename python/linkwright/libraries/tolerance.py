"""How far below the model a healthy machine may measure.

    machine, network, collective, nodes, size  ->  the share by which its rate may be lower

`tolerance.toml` has the shares: of the published healthy tables of a kind of system, nineteen cells in twenty are at
most so far below the model. It is derived by the command that it names, never edited. Systems of one kind differ among
themselves, and no tolerance is below that scatter. Where no table was published, the widest tolerance of the nearest
kind that has some is taken, and `Basis` says which that is.

The floors of `expect` and the verdicts of `explain` (`explain/verdict.py`) both come from here.

What it does not do: faulty machines, and algorithms that a user forces, are in no group.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from linkwright.base import toml

# Upper ends of the bands of nodes and of bytes; the last band is open. The file is grouped by them.
NODES = (1, 4, 16, 64)
BYTES = ((1 << 20) - 1, (1 << 26) - 1)
LEAST_MACHINES = 3  # with a collective, to say how wide its tolerance is on another one


class Basis(StrEnum):
    """Which published tables a tolerance is from, the nearest first."""

    SYSTEM = "system"  # this machine, network, collective, number of nodes and size
    MACHINE = "machine"  # the widest of this machine and collective, over other networks or on more or fewer nodes
    COLLECTIVE = "collective"  # the widest of this collective on any machine
    ANY = "any"  # the widest known


@dataclass(frozen=True)
class Pool:
    """Published healthy cells of one kind, with the library's own choice; bands count from 0."""

    machine: str
    fabric: str  # empty on one node
    collective: str
    nodes: int
    size: int
    shortfall: float  # nineteen cells in twenty are at most this share below the model
    tables: int
    sites: int


def admits(share: float, tolerance: float) -> bool:
    """Return whether a share of the modelled rate is not below the floor; the file has thousandths, so shares do."""
    return round(share + tolerance, 3) >= 1


@dataclass(frozen=True)
class Tolerance:
    """How far a healthy rate may be below the model.

    Attributes:
        share: of the modelled rate.
        basis: how near the tables are to what is asked.
        tables: how many they are, at how many `sites`; of the group that decides.
    """

    share: float
    basis: Basis
    tables: int
    sites: int

    @property
    def known(self) -> bool:
        """Whether systems of this machine were published."""
        return self.basis in (Basis.SYSTEM, Basis.MACHINE)

    @property
    def least(self) -> float:
        """The smallest healthy share of the modelled rate."""
        return 1 - self.share


def band(value: int, ends: tuple[int, ...]) -> int:
    """Return the band of a number of nodes or bytes, counted from 0."""
    return sum(value > end for end in ends)


def of(machine: str, fabric: str | None, collective: str, nodes: int, size_bytes: int) -> Tolerance:
    """Return the tolerance of a rate.

    Args:
        machine: key of a machine file.
        fabric: network between several nodes; what follows a comma is ignored.
        collective: our key, or `sendrecv`.
        nodes: copies of the machine.
        size_bytes: as nccl-tests counts it.

    Example:
        >>> from linkwright.libraries import tolerance
        >>> tolerance.of("hgx-h100", None, "allreduce", 1, 1 << 30).basis
        <Basis.SYSTEM: 'system'>

    """
    network = (fabric or "").partition(",")[0] if nodes > 1 else ""
    at, size = band(nodes, NODES), band(size_bytes, BYTES)
    alike = [one for one in groups() if one.size == size and (one.nodes > 0) == (at > 0)]
    for basis, its in _nearest(alike, machine, network, collective, at):
        if its:
            widest = max(its, key=lambda one: one.shortfall)
            return Tolerance(max(widest.shortfall, scatter()[at > 0][size]), basis, widest.tables, widest.sites)
    raise AssertionError("tolerance.toml has no group of these nodes and sizes")


def _nearest(
    alike: Iterable[Pool], machine: str, network: str, collective: str, at: int
) -> Iterator[tuple[Basis, list[Pool]]]:
    same = [one for one in alike if one.collective == collective]
    own = [one for one in same if one.machine == machine]
    yield Basis.SYSTEM, [one for one in own if (one.fabric, one.nodes) == (network, at)]
    # Errors grow with the number of nodes, so few nodes say nothing about many.
    yield Basis.MACHINE, own if any(one.nodes >= at for one in own) else []
    yield Basis.COLLECTIVE, same if len({one.machine for one in same}) >= LEAST_MACHINES else []
    yield Basis.ANY, list(alike)


@functools.cache
def groups() -> tuple[Pool, ...]:
    """Return all groups of the file."""
    return tuple(Pool(**row) for row in _file()["groups"])


def scatter() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return how far systems of one kind are below their middle, on one node and on several, by band of sizes."""
    found = _file()["scatter"]
    return tuple(found["one"]), tuple(found["several"])


def spread(nodes: int, size_bytes: int) -> tuple[float, float]:
    """Return by what factors of the modelled time published healthy systems took: eight cells in ten are between them.

    One pair for each band of sizes, on one node and on several, over all machines: what sites differ by, and the model
    from them.
    """
    low, high = _file()["spread"]["several" if nodes > 1 else "one"][band(size_bytes, BYTES)]
    return low, high


def largest() -> int:
    """Return the largest size of the tables, in bytes."""
    return _file()["largest_bytes"]


_file = functools.partial(toml.data_file, __file__, "tolerance.toml")


def worst(shortfalls: Iterable[float], share: float) -> float:
    """Return the shortfall that a share of the cells do not exceed."""
    ordered = sorted(shortfalls)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
