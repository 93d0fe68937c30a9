"""A network to train: layers with forward operations, activations and parameters per sample.

    work        batch x activations
    intensity   batch x activations / parameters     computation over communication
    payload     4 B x parameters, or `gradient` where a layer states it: what an allreduce carries

A number is a plain one, or `{ value, low, high, status, source }`: `low` and `high` are what is thinkable, and
every forecast carries them to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.errors import UsageError
from linkwright.experiment import DTYPES

if TYPE_CHECKING:
    from linkwright.predict.document import Table

BYTES_PER_NUMBER = DTYPES["f32"]
DEPTH = "depth"


@dataclass(frozen=True)
class Quantity:
    """A number and the ends of what it may be."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Layer:
    """One layer, per sample."""

    name: str
    flops: Quantity
    activations: int
    parameters: int
    gradient_bytes: int


@dataclass(frozen=True)
class Workload:
    """A network with all its layers, in the order of the forward pass."""

    name: str
    layers: list[Layer]
    sample_bytes: int | None
    batches: list[int]
    gpus: list[int]

    @property
    def activations(self) -> int:
        """Of one sample."""
        return sum(layer.activations for layer in self.layers)

    @property
    def parameters(self) -> int:
        """All that is learnt."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """What an allreduce of all gradients carries."""
        return sum(layer.gradient_bytes for layer in self.layers)

    @property
    def flops(self) -> Quantity:
        """Of one forward pass of one sample."""
        each = [layer.flops for layer in self.layers]
        return Quantity(sum(q.value for q in each), sum(q.low for q in each), sum(q.high for q in each))

    def work(self, batch: int) -> int:
        """Activations of a batch."""
        return batch * self.activations

    def intensity(self, batch: int) -> float:
        """Activations of a batch per parameter."""
        return self.work(batch) / self.parameters

    def activation_bytes(self, images: int) -> int:
        """Least memory that so many samples need on a device: their activations."""
        return BYTES_PER_NUMBER * self.work(images)


def read(document: Table, head: Table, depth: int | None = None) -> Workload:
    """The workload in `document`, whose table `[app]` is `head`; `depth` replaces that of the file."""
    name = head.text("name")
    head.text("summary", "-")
    head.values("sources", [])
    found_depth = _depth(head, depth)
    workload = Workload(
        f"{name}/{found_depth}" if found_depth is not None else name,
        [layer for table in document.tables("layer", []) for layer in _layers(table, found_depth)],
        _whole(head, "sample") if head.has("sample") else None,
        _counts(head, "batches"),
        _counts(head, "gpus"),
    )
    head.end()
    document.end()
    if not workload.layers:
        raise head.error("the network has no layer; add [[layer]]")
    if workload.parameters == 0 or workload.gradient_bytes == 0:
        raise head.error("no layer has `parameters`, so there is nothing to train; add them")
    return workload


def _depth(head: Table, asked: int | None) -> int | None:
    if not head.has(DEPTH):
        if asked is not None:
            raise UsageError(f"{head.where}: this network has no depth to choose; leave --depth out")
        return None
    table = head.table(DEPTH)
    least, most = table.count("least", 1), table.count("most", 1 << 20)
    usual = table.count("value")
    table.end()
    depth = usual if asked is None else asked
    if not least <= depth <= most:
        raise UsageError(f"depth {depth}: {head.text('name')} has {least} to {most}; give --depth in that range")
    return depth


def _layers(table: Table, depth: int | None) -> list[Layer]:
    times = _times(table, depth)
    parameters = _whole(table, "parameters")
    layer = Layer(
        table.text("name"),
        quantity(table, "flops") if table.has("flops") else Quantity(0.0, 0.0, 0.0),
        _whole(table, "activations") if table.has("activations") else 0,
        parameters,
        table.size("gradient") if table.has("gradient") else BYTES_PER_NUMBER * parameters,
    )
    table.end()
    if layer.gradient_bytes % BYTES_PER_NUMBER:
        raise table.error(f"gradient is {layer.gradient_bytes} B; give whole numbers of {BYTES_PER_NUMBER} B")
    return [layer] * times


def _times(table: Table, depth: int | None) -> int:
    if not table.has("times"):
        return 1
    if not table.is_text("times"):
        return table.count("times")
    table.choice("times", (DEPTH,), DEPTH)
    if depth is None:
        raise table.error("times is `depth`, and [app] has no `depth`; add it, or write a number")
    return depth


def quantity(table: Table, key: str) -> Quantity:
    """A number, or a table of a number with its ends and where it comes from."""
    if not table.is_table(key):
        value = table.amount(key)
        return Quantity(value, value, value)
    inner = table.table(key)
    value = inner.amount("value")
    found = Quantity(value, inner.amount("low", value), inner.amount("high", value))
    inner.text("status", "-")
    inner.text("source", "-")
    inner.end()
    if not found.low <= value <= found.high:
        raise inner.error(f"low {found.low:g}, value {value:g}, high {found.high:g} are not in this order")
    return found


def _whole(table: Table, key: str) -> int:
    value = quantity(table, key).value
    if value != int(value):
        raise table.error(f"{key} is {value}; write a whole number")
    return int(value)


def _counts(head: Table, key: str) -> list[int]:
    found = head.values(key, [])
    if not all(type(count) is int and count > 0 for count in found):
        raise head.error(f"{key} is {found!r}; write whole numbers above 0, such as [16, 32]")
    return found
