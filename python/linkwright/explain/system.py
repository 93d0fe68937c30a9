"""A described machine with the library that runs on it, as it should be or with a fault."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from linkwright import _native, machines
from linkwright.errors import LinkwrightError
from linkwright.machines import Variant
from linkwright.studies.modern.predict import OneMachine, Predicted, Shape


@dataclass(frozen=True)
class System:
    """What a time depends on besides the size.

    Attributes:
        machine: name or path of a machine file.
        nodes: copies of it.
        gpus: ranks on each.
        fabric: the network between several nodes.
        algorithm: the library, with what is forced, such as `nccl-2.27/ring`.
        collective: our key.
        without: links, classes or nodes of the graph that are gone.
        degrade: (link, class or node, factor of its rate).
        one_process: whether one process starts the work of all ranks of a node.
    """

    machine: str
    nodes: int
    gpus: int
    fabric: str | None
    algorithm: str
    collective: str
    without: tuple[str, ...] = ()
    degrade: tuple[tuple[str, float], ...] = ()
    one_process: bool = False

    @property
    def ranks(self) -> int:
        """How many take part."""
        return self.nodes * self.gpus

    @property
    def shape(self) -> Shape:
        """What the model of measured conditions calls it."""
        return Shape(
            self.machine, self.nodes, self.gpus, self.fabric, self.algorithm, self.collective, self.one_process
        )

    @property
    def variant(self) -> Variant:
        """What the options of the command line make of the machine file."""
        fabric = self.fabric if self.nodes > 1 else None
        return Variant.of(self.nodes if fabric else None, fabric, self.without, dict(self.degrade))

    @functools.cached_property
    def described(self) -> _native.Machine:
        """The machine."""
        return machines.load(self.machine, self.variant)

    @functools.cached_property
    def _model(self) -> OneMachine:
        return OneMachine(self.described)

    def time(self, size_bytes: int) -> Predicted:
        """The time of the collective, size as nccl-tests counts it.

        Raises:
            LinkwrightError: the machine, or the library on it, cannot do it.
        """
        return self._model.time(self.shape, size_bytes)

    def times(self, sizes: Sequence[int]) -> dict[int, float]:
        """Size -> us, of the sizes that the system can do."""
        found = {}
        for size in sizes:
            with contextlib.suppress(LinkwrightError):
                found[size] = self.time(size).time_us
        return found

    def having(self, **changes: object) -> System:
        """The same with other values."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def lacking(self, *names: str) -> System:
        """The same without some links."""
        return self.having(without=(*self.without, *names))

    def slowed(self, name: str, factor: float) -> System:
        """The same with slower links."""
        return self.having(degrade=(*self.degrade, (name, factor)))

    def has(self, *classes: str) -> bool:
        """Whether there are links of all these classes."""
        keys = {row["key"] for row in self.described.numbers()}
        return all(f"fabric.links.{name}.bandwidth" in keys for name in classes)

    def on(self, setting: str) -> System:
        """The same with another setting of its network, such as `sharp=0`."""
        name, *others = (self.fabric or "").split(",")
        kept = [other for other in others if other.partition("=")[0] != setting.partition("=")[0]]
        return self.having(fabric=",".join((name, *kept, setting)))


def few(sizes: Iterable[int], most: int = 8) -> list[int]:
    """At most so many sizes, evenly in their order, the last among them."""
    ordered = sorted(set(sizes))
    if len(ordered) <= most:
        return ordered
    return [ordered[round(at * (len(ordered) - 1) / (most - 1))] for at in range(most)]
