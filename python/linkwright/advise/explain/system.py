"""A described machine with the library that runs on it, as it should be or with a fault."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwright import _native, machines
from linkwright.ask.answer import limits_of
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import KILO
from linkwright.libraries import library
from linkwright.libraries.nccl.choice import Choice
from linkwright.libraries.nccl.hardware import Hardware, hardware
from linkwright.libraries.settings import Setup
from linkwright.libraries.times import Predicted, places, predicted, question
from linkwright.machines import Variant

from . import commands, detours
from .links import rates
from .sensitivity import Effect, effects

if TYPE_CHECKING:
    from linkwright.base.native_types import NetworkColumns, NodeColumns

FEW_NODES = 4  # larger machines simulate faults of links, and the numbers that matter, on so many


@dataclass(frozen=True)
class System(Setup):
    """What a time depends on besides the size: a setup, and what is wrong with it.

    Attributes:
        without: links, classes or nodes of the graph that are gone.
        degrade: (link, class or node, factor of its rate).
        scales: (key of the machine file, factor of its number).
        detours: whether GPUs of one PCIe switch reach each other through the one above it.
    """

    without: tuple[str, ...] = ()
    degrade: tuple[tuple[str, float], ...] = ()
    scales: tuple[tuple[str, float], ...] = ()
    detours: bool = False

    @property
    def variant(self) -> Variant:
        """The variant of the machine file that the command-line options describe."""
        fabric = self.fabric if self.nodes > 1 else None
        return Variant.of(self.nodes if fabric else None, fabric, self.without, dict(self.degrade))

    @functools.cached_property
    def described(self) -> _native.Machine:
        """The machine."""
        found = self._stated
        if self.detours:
            found = found.routed(self._detours)
        for key, factor in self.scales:
            found = found.with_value(key, f"{factor * self.numbers[key]:.9g}")
        return found

    @functools.cached_property
    def _stated(self) -> _native.Machine:
        """The machine as its file and the variant have it."""
        return machines.load(self.machine, self.variant)

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """Key of the machine file -> value, before `scales`."""
        found = {}
        for row in self._stated.numbers():
            with contextlib.suppress(ValueError):  # such as a version
                found[row["key"]] = float(str(row["value"]))
        return found

    @functools.cached_property
    def _times(self) -> dict[int, Predicted]:
        return {}

    def time(self, size_bytes: int) -> Predicted:
        """The time of the collective, size as nccl-tests counts it.

        Raises:
            LinkwrightError: the machine, or the library on it, cannot do it.
        """
        if size_bytes not in self._times:
            self._times[size_bytes] = predicted(self.described, self, size_bytes)
        return self._times[size_bytes]

    @functools.cached_property
    def reduced(self) -> System:
        """The same of few nodes, for what would take too long with many."""
        return self if self.nodes <= FEW_NODES else self.having(nodes=FEW_NODES)

    @functools.cached_property
    def _binds(self) -> dict[int, list[Effect]]:
        return {}

    def binds(self, size_bytes: int) -> list[Effect]:
        """The numbers of the machine file that the time depends on, the most important first."""
        if size_bytes not in self._binds:
            self._binds[size_bytes] = effects(self.described, lambda on: predicted(on, self, size_bytes).time_us)
        return self._binds[size_bytes]

    def times(self, sizes: Sequence[int]) -> dict[int, float]:
        """Size -> us, of the sizes that the system can do."""
        found = {}
        for size in sizes:
            with contextlib.suppress(LinkwrightError):
                found[size] = self.time(size).time_us
        return found

    def least_us(self, size_bytes: int) -> float | None:
        """What the links allow at best; None where nothing is known of them."""
        if self.collective == "sendrecv":
            numbers = rates(self.described)
            port = numbers.get("fabric.links.port.bandwidth", 0) * numbers.get("fabric.links.port.share", 1.0)
            return size_bytes / port / KILO if port else None
        with contextlib.suppress(LinkwrightError):
            return limits_of(self.described, question(self.described, self, size_bytes))[0].time.us
        return None

    @functools.cached_property
    def seen(self) -> Hardware:
        """What the library sees of the devices, links and ways that take part."""
        return hardware(self.described, places(self.described, self) or tuple(range(self.ranks)))

    def choice(self, size_bytes: int) -> Choice | None:
        """What the library chooses; None of one that is not modelled so far."""
        name, _, version = self.algorithm.partition("-")
        version, *forced = version.split("/")
        with contextlib.suppress(LinkwrightError, KeyError):
            chooser = library.LIBRARIES[name].chooser(version, self.seen)
            return chooser.choose(self.collective, size_bytes, *(part or None for part in forced))
        return None

    def having(self, **changes: object) -> System:
        """The same with other values."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def lacking(self, *names: str) -> System:
        """The same without some links."""
        return self.having(without=(*self.without, *names))

    def slowed(self, name: str, factor: float) -> System:
        """The same with slower links."""
        return self.slowed_all([name], factor)

    def slowed_all(self, names: Iterable[str], factor: float) -> System:
        """The same with several slower links."""
        return self.having(degrade=(*self.degrade, *((name, factor) for name in names)))

    def scaled(self, factors: Mapping[str, float]) -> System:
        """The same with other numbers."""
        return self.having(scales=(*self.scales, *factors.items()))

    def has(self, *classes: str) -> bool:
        """Whether there are links of all these classes."""
        return all(f"fabric.links.{name}.bandwidth" in self.numbers for name in classes)

    def transports(self, *stems: str) -> list[str]:
        """Names of transports that begin so."""
        found = (key.split(".")[2] for key in self.numbers if key.startswith("fabric.transport."))
        return [name for name in dict.fromkeys(found) if name.startswith(stems)]

    @functools.cached_property
    def _network(self) -> NetworkColumns | None:
        """Nodes and edges of the machine as its file and the variant have it."""
        return self._stated.network()

    @functools.cached_property
    def _nodes(self) -> NodeColumns:
        """The nodes at the ends of links."""
        assert self._network
        return self._network["nodes"]

    @functools.cached_property
    def _links(self) -> list[tuple[str, int, int]]:
        """(class, node, node) of every link that the machine file states."""
        if self._network is None:
            return []
        edges = self._network["edges"]
        rows = zip(edges["class"], edges["a"], edges["b"], edges["bytes_per_s"], strict=True)
        return [(kind, a, b) for kind, a, b, rate in rows if rate is not None]

    @property
    def can_detour(self) -> bool:
        """Whether GPUs without links of their own share a PCIe switch that is below another one."""
        return not (self.has("nvlink") or self.has("xgmi")) and bool(self._detours)

    @functools.cached_property
    def _detours(self) -> list[tuple[str, str, list[str]]]:
        return detours.routes(self._network) if self._network else []

    def _name(self, node: int) -> str:
        return self._nodes["name"][node]

    def _is_gpu(self, node: int) -> bool:
        """Whether a node is a rank, of a machine whose ranks are GPUs."""
        return self._nodes["kind"][node] == "rank" and self._stated.levels()[-1][0] == "GPU"

    @functools.cached_property
    def _first_gpu(self) -> int | None:
        return next((end for _, *ends in self._links for end in ends if self._is_gpu(end)), None)

    @property
    def first_gpu(self) -> str | None:
        """The name of one GPU; None where no link leads to one."""
        return None if self._first_gpu is None else self._name(self._first_gpu)

    @property
    def peers(self) -> list[tuple[str, str]]:
        """The links between the first GPU and other ones, without a switch."""
        return [(self._name(a), self._name(b)) for _, a, b in self._links if a == self._first_gpu and self._is_gpu(b)]

    @property
    def ports_of_a_node(self) -> list[str]:
        """The links by which the NICs of one node reach the network."""
        ports = [(a, b) for kind, a, b in self._links if kind == "port"]
        groups = self._nodes["group"] if ports else []
        part = [a if groups[a] < 0 else -1 - groups[a] for a, _ in ports]  # a node without parts is one of its own
        return [f"{self._name(a)} - {self._name(b)}" for (a, b), own in zip(ports, part, strict=True) if own == part[0]]

    def command(self, wanted: commands.Wanted) -> str:
        """What to type on these machines."""
        library = (self.described.library() or {"name": "nccl"})["name"]
        return commands.BY_LIBRARY[library][wanted]

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
