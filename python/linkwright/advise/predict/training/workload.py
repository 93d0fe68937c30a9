"""A network to train: layers with forward operations, activations and parameters per sample.

    work        batch x activations
    intensity   batch x activations / parameters     computation over communication
    payload     4 B x parameters, or `gradient` where a layer states it: what an allreduce carries
    precision   of the products, which decides what unit of a device computes them (compute.py)
    dataset     samples of an epoch; with `epochs`, how long the training takes

A number is a plain one, or `{ value, low, high, status, source }`: `low` and `high` bound what is plausible, and
every forecast carries them through.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.advise.predict import head_keys
from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.base.toml import AMOUNT, SIZE, TEXT, Choice, Either, Key, Many, OneTable, Table, Tables, only, whole
from linkwright.base.units import MAX_BYTES

BYTES_PER_NUMBER = DTYPES["f32"]
DEPTH = "depth"
SINGLE = "single"
# Precision of the products -> bytes of an activation. Gradients are 4 B each in all of them, as in mixed precision.
PRECISIONS = {SINGLE: 4, "tf32": 4, "half": 2, "bf16": 2}

QUANTITY = Either(
    AMOUNT,
    OneTable(
        {
            "value": Key(AMOUNT, "the number", required=True),
            "low": Key(AMOUNT, "smallest value that is plausible; default: `value`"),
            "high": Key(AMOUNT, "largest value that is plausible; default: `value`"),
            "status": Key(TEXT, "how the number was obtained"),
            "source": Key(TEXT, "where it comes from"),
        }
    ),
)
MOST_LAYERS = 1 << 16
_LAYERS, _SAMPLES = whole(1, MOST_LAYERS), whole(1, 10**12)
_DEPTH = {
    "value": Key(_LAYERS, "the usual depth", required=True),
    "least": Key(_LAYERS, "smallest depth", default=1),
    "most": Key(_LAYERS, "largest depth", default=MOST_LAYERS),
}
_COUNTS = Many(whole(1, 1 << 30), 0, 1000, words="whole numbers above 0, such as [16, 32]")
HEAD = head_keys(
    "training",
    sources=Key(Many(TEXT, 0), "titles of the source documents of the numbers"),
    depth=Key(OneTable(_DEPTH), "depth of a network that comes in several"),
    sample=Key(QUANTITY, "bytes of one sample in host memory"),
    batches=Key(_COUNTS, "batch sizes, unless --batch names some", default=()),
    gpus=Key(_COUNTS, "numbers of GPUs, unless --gpus names some", default=()),
    precision=Key(Choice(PRECISIONS), "precision of the products, unless --precision names one", default=SINGLE),
    dataset=Key(
        _SAMPLES,
        "samples of one epoch, which give the time to train, unless --samples states a number",
    ),
    epochs=Key(_SAMPLES, "number of passes over the data set", default=1),
)
LAYER = {
    "name": Key(TEXT, "name of the layer", required=True),
    "parameters": Key(QUANTITY, "learned numbers", required=True),
    "flops": Key(QUANTITY, "operations of the forward pass, per sample", default=0.0),
    "activations": Key(QUANTITY, "numbers that the layer produces, per sample", default=0.0),
    "gradient": Key(SIZE, "bytes of the gradient; default: 4 per parameter"),
    "times": Key(
        Either(_LAYERS, only(DEPTH)),
        "how many such layers follow each other; `depth` is that of [app]",
        default=1,
    ),
}
PROGRAM = {
    "app": Key(OneTable(HEAD), "the program", required=True),
    "layer": Key(Tables(LAYER), "layers in the order of the forward pass", required=True),
}


@dataclass(frozen=True)
class Quantity:
    """A number with its bounds."""

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
    precision: str = SINGLE
    samples: int | None = None  # of all epochs

    @property
    def activations(self) -> int:
        """Of one sample."""
        return sum(layer.activations for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Numbers that are learned."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """Bytes in an allreduce of all gradients."""
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

    def activation_bytes(self, images: int, precision: str) -> int:
        """Least memory that these samples need on a device: their activations."""
        return PRECISIONS[precision] * self.work(images)


def read(document: Table, head: Table, depth: int | None = None) -> Workload:
    """The workload in `document`, whose table `[app]` is `head`; `depth` replaces that of the file."""
    chosen = _depth(head, depth)
    workload = Workload(
        head["name"] if chosen is None else f"{head['name']}/{chosen}",
        [layer for table in document["layer"] for layer in _layers(table, chosen)],
        _whole(head, "sample") if "sample" in head else None,
        list(head["batches"]),
        list(head["gpus"]),
        head["precision"],
        head["dataset"] * head["epochs"] if head["dataset"] else None,
    )
    if "epochs" in head and not head["dataset"]:
        raise head.error("gives `epochs` without `dataset`, the samples of one; add it, or omit `epochs`")
    if workload.parameters == 0 or workload.gradient_bytes == 0:
        raise head.error("no layer has `parameters`, so there is nothing to train; add some")
    return workload


def _depth(head: Table, wanted: int | None) -> int | None:
    table = head[DEPTH]
    if table is None:
        if wanted is not None:
            raise UsageError(f"{head.where}: this network has a fixed depth; omit --depth")
        return None
    depth = table["value"] if wanted is None else wanted
    if not table["least"] <= depth <= table["most"]:
        raise UsageError(
            f"depth {depth}: {head['name']} has {table['least']} to {table['most']}; give --depth in that range"
        )
    return depth


def _layers(table: Table, depth: int | None) -> list[Layer]:
    parameters = _whole(table, "parameters")
    gradient = table["gradient"] if "gradient" in table else BYTES_PER_NUMBER * parameters
    if gradient > MAX_BYTES:
        raise table.error(f"parameters: gradients of {gradient:.3g} B are more than any machine holds; check them")
    if gradient % BYTES_PER_NUMBER:
        raise table.error(f"gradient is {gradient} B; give whole numbers of {BYTES_PER_NUMBER} B")
    layer = Layer(table["name"], quantity(table, "flops"), _whole(table, "activations"), parameters, gradient)
    if table["times"] != DEPTH:
        return [layer] * table["times"]
    if depth is None:
        raise table.error("times is `depth`, and [app] has no `depth`; add it, or write a number")
    return [layer] * depth


def quantity(table: Table, key: str) -> Quantity:
    """A number with its ends, which default to the number itself."""
    found = table[key]
    if not isinstance(found, dict):
        return Quantity(found, found, found)
    value = found["value"]
    made = Quantity(value, found.get("low", value), found.get("high", value))
    if not made.low <= value <= made.high:
        raise found.error(f"low {made.low:g}, value {value:g}, high {made.high:g} are not in ascending order")
    return made


def _whole(table: Table, key: str) -> int:
    value = quantity(table, key).value
    if value != int(value):
        raise table.error(f"{key} is {value}; write a whole number")
    return int(value)
