"""The limits of a collective on a described machine: what no schedule beats, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright import _native, units
from linkwright.errors import ShapeError, unknown
from linkwright.experiment import DTYPES


@dataclass(frozen=True)
class Limit:
    """A lower bound on the time of every schedule.

    Attributes:
        name: `latency`, `port`, `cut`, `arrival`, `links`, `memory` or `compute`.
        time_us: no schedule takes less, in microseconds.
        what: what it is about, such as `into rank 3`.
        size_bytes: the bytes that must pass there; 0 where none do.
        rate: the most that passes there, in bytes per second; None where no bytes do.
    """

    name: str
    time_us: float
    what: str
    size_bytes: int
    rate: float | None

    @property
    def derivation(self) -> str:
        """The arithmetic behind the time, in words."""
        if self.rate is not None:
            return f"{self.size_bytes} B {self.what} / {units.format_rate(self.rate)}"
        if self.size_bytes:
            return f"{self.size_bytes} B {self.what}"
        return f"{self.what}, without data"


def limits(
    collective: str,
    on: _native.Machine,
    ranks: int,
    size_bytes: int,
    *,
    dtype: str = "f32",
    root: int = 0,
    grid: tuple[int, ...] | None = None,
    path: str | None = None,
    placement: Sequence[int] | None = None,
) -> list[Limit]:
    """All limits of a collective of vectors of `size_bytes`, the largest first."""
    known = [row["key"] for row in _native.collectives()]
    if collective not in known:
        raise unknown("collective", collective, known)
    if root >= ranks:
        raise ShapeError(f"root {root}: there are {ranks} ranks, numbered from 0; choose one of them")
    shape = {"ranks": ranks, "elements": size_bytes // DTYPES[dtype], "element_bytes": DTYPES[dtype], "root": root}
    options = {"path": path, "grid": grid, "placement": list(placement) if placement else None}
    found = _native.limits(collective, on, shape, options)
    return [Limit(row["name"], row["time_ps"] / 1e6, row["what"], row["bytes"], row["rate"]) for row in found]
