"""What one line of the measurements is of."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """One line of the file, its time apart."""

    machine: str
    nodes: str  # a number, or sides such as 4x4x4
    tasks_per_node: int
    collective: str  # as here
    tag: str
    size_bytes: int  # of the larger buffer of a rank

    @property
    def sides(self) -> tuple[int, ...]:
        """Of the torus; empty on other machines."""
        return tuple(map(int, self.nodes.split("x"))) if "x" in self.nodes else ()

    @property
    def ranks(self) -> int:
        """How many take part."""
        return (math.prod(self.sides) if self.sides else int(self.nodes)) * self.tasks_per_node
