"""The two machines, and the units of the paper.

For copies and allreduces the paper prints GB/s but means GiB/s: it says that its plots use powers of two, and Tartan
reports 18.47 GB/s = 17.2 GiB/s for the same copy. Every conversion of this study uses `gib_per_s` or `gb_per_s`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linkwright import _native
from linkwright.machines import load
from linkwright_evidence import numbers
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import reference_cell

DGX1 = "dgx1-p100"
GX8 = "gx8-p100"
NAMES = (DGX1, GX8)
GIB = 2**30
GPUS = 8
LARGE_BYTES = 256 << 20  # of a copy
PAYLOAD_BYTES = 240_000_000  # of the largest allreduce: AlexNet's gradient


@dataclass(frozen=True)
class Machines:
    """Both machines, loaded once."""

    dgx1: _native.Machine
    gx8: _native.Machine

    @classmethod
    def load(cls) -> Machines:
        """As shipped."""
        return cls(load(DGX1), load(GX8))

    def changed(self, changes: Mapping[str, Mapping[str, str]]) -> Machines:
        """With other values: machine -> key -> value, as written in a machine file."""
        return Machines(*(numbers.changed(machine, changes.get(name, {})) for name, machine in self.items()))

    def items(self) -> tuple[tuple[str, _native.Machine], ...]:
        """(name, machine) of both."""
        return ((DGX1, self.dgx1), (GX8, self.gx8))


def paper_cell(row: dict[str, str], table: str, predicted: object) -> Cell:
    """A row of `interconnect.csv` beside its prediction."""
    return reference_cell(row, table, {key: row[key] for key in ("id", "machine", "quantity")}, predicted)


def gib_per_s(size_bytes: float, seconds: float) -> float:
    """A rate in GiB/s, the unit of the paper's copies and allreduces."""
    return size_bytes / seconds / GIB


def gb_per_s(size_bytes: float, seconds: float) -> float:
    """A rate in GB/s = 10^9 B/s, the unit of Tartan."""
    return size_bytes / seconds / 1e9
