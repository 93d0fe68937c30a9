"""Types of the dictionaries that the native half returns; its stub, which the build writes, names them."""

from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_F64 = NDArray[np.float64]


class NamedRow(TypedDict):
    """An entry of a list."""

    key: str
    summary: str


ErrorRow = TypedDict("ErrorRow", {"key": str, "class": str, "summary": str})


class DescribedRow(NamedRow):
    """An entry that describes itself: a fabric, a method of synthesis."""

    description: str
    source: str


class PatternRow(DescribedRow):
    """A traffic pattern."""

    name: str
    needs: str


class AlgorithmRow(PatternRow):
    """An algorithm."""

    collective: str
    cost: str
    on_nodes: bool  # whether the rows of its grid are the nodes of a machine
    folds: bool


class FormatRow(DescribedRow):
    """A format of schedules in files."""

    suffix: str
    reads: bool


class CollectiveRow(TypedDict):
    """A collective; a blocked one counts S as p equal blocks, an uneven one has an exchange."""

    key: str
    blocked: bool
    rooted: bool
    reduces: bool
    uneven: bool


class EndpointRow(TypedDict):
    """An endpoint of a machine, with its place on the grid."""

    name: str
    kind: Literal["rank", "memory"]
    x: int | None
    y: int | None


class NumberRow(TypedDict):
    """A number of a machine file, as text."""

    key: str
    value: str
    unit: str
    status: str
    source: str


class RuleRow(TypedDict):
    """A structural rule of a model."""

    name: str
    statement: str
    evidence: str
    post_hoc: bool


class HardwareRow(TypedDict):
    """Hardware in the words of a library."""

    gpu: str
    host: str


class LibraryRow(TypedDict):
    """The communication library that a machine runs."""

    name: str
    versions: list[str]
    links: int | None
    modes: dict[str, str]
    hardware: HardwareRow | None
    training: str
    launch_ps: int
    source: str


class NodeColumns(TypedDict):
    """Nodes of a network."""

    name: list[str]  # by node, as all columns here
    kind: list[Literal["rank", "memory", "switch"]]
    at: list[list[int] | None]
    group: list[int]


EdgeColumns = TypedDict(
    "EdgeColumns",
    {
        "class": list[str],  # by edge, as all columns here
        "a": list[int],  # node
        "b": list[int],
        "bytes_per_s": list[int | None],
    },
)


class LinkColumns(TypedDict):
    """Links of a simulation."""

    name: list[str]  # by link of a simulation, as all columns here
    a: list[int]  # node, or -1
    b: list[int]


class NetworkColumns(TypedDict):
    """The network of a machine."""

    nodes: NodeColumns
    edges: EdgeColumns
    links: LinkColumns
    ring: list[int]
    sides: list[int]
    groups: list[str]


class RouteColumns(TypedDict):
    """Routes of pairs of endpoints."""

    first: _U32  # by pair, and the end
    link: _U32
    times: _U32
    rate: _U64  # by pair
    chooses: _U8  # 1 if messages may take other links
    bytes_per_s: _U64  # by link


class CacheRow(TypedDict):
    """A cache of this host."""

    level: int
    kind: str
    bytes: int
    shared_by: list[int]


class LayerRow(TypedDict):
    """A layer of the probe `convolution`."""

    key: str
    filter: int
    input: int
    in_channels: int
    out_channels: int
    stride: int
    groups: int
    output: int
    flops: int


class AxisRow(TypedDict):
    """An axis of a probe."""

    key: str
    kind: str
    words: list[str]
    summary: str
    default: str


class MetricRow(TypedDict):
    """A metric of a probe."""

    key: str
    unit: str
    better: str
    summary: str
    source: str


class ProbeRow(DescribedRow):
    """A probe of the catalogue."""

    axes: list[AxisRow]
    metrics: list[MetricRow]
    size_axis: str | None
    table: str
    waived: str
    measured: bool
    modelled: bool


class DeviceRow(TypedDict):
    """A device of chips on a ladder."""

    id: int
    first: int
    members: list[int]


class PcieLinkRow(TypedDict):
    """What a PCIe link carries."""

    read_ps: int
    write_ps: int
    read_rate: float
    write_rate: float


class ProvedRow(TypedDict):
    """What the proof of a schedule counted."""

    operations: int
    messages: int
    notices: int
    edges: int
    chunk_moves: int
    hazards: int
    long_searches: int
    exact: bool


# One entry per operation.
OperationColumns = TypedDict(
    "OperationColumns",
    {
        "kind": list[str],
        "from": _U64,
        "to": _U64,
        "step": _U64,
        "lane": _U64,
        "bytes": _U64,
        "runs": _U64,
        "hint": list[str],
    },
)


class LaunchColumns(TypedDict):
    """One launch on threads."""

    ranks: int
    slowest_ns: _F64  # by sample
    start_ns: _F64  # by (sample, rank), flat
    finish_ns: _F64  # by (sample, rank), flat
    disturbed_ns: _F64
    first_ns: float
    row_ns: tuple[float, float] | None
    message_ns: _F64  # by message of a pattern
    batch: int
    back_to_back: bool
    warmup_batches: int
    warmed_up: bool
    drops: dict[str, int]
    out_of_time: bool
    oversubscribed: bool
    cpus: list[int]
    unpinned: str | None
    checked_elements: int


class RankLaunchColumns(LaunchColumns):
    """One launch of a rank of MPI."""

    sync: str
    residual_ns: float
    canary_ns: float


class SampledColumns(TypedDict):
    """What every sampler measures."""

    drops: dict[str, int]
    values_ns: _F64  # by sample
    first_ns: float
    batch: int
    warmed_up: bool


class MeasuredColumns(SampledColumns):
    """One launch of a probe."""

    counted_bytes: float
    moved_bytes: float
    work: float
    columns: dict[str, _F64]  # by metric, then by sample
    notes: list[str]


class ModelledRow(TypedDict):
    """The answer of a model to a probe."""

    time_ps: int
    counted_bytes: int
    moved_bytes: int
    work: int
    columns: dict[str, float]


class StreamColumns(TypedDict):
    """The instructions of all ranks."""

    rank_first: _U32
    instructions: _U32
    waits: _U64
    raises: _U64
    pieces: _U64
    readers: _U32
    participant_first: _U64
    buffer_first: _U64
    buffer_bytes: _U64
    buffers: list[str]


class MemoryColumns(TypedDict):
    """All memory of a schedule."""

    initial: _U8
    reference: _U8
    checked_elements: int


class RankProgramColumns(TypedDict):
    """The operations of all ranks."""

    kind: list[str]  # by operation, as all columns but those that are flat
    initiator: _U32
    source: _U32
    combine: NDArray[np.bool_]
    lane: _U8
    work: _U64
    target_end: _U32
    targets: _U32  # flat
    piece_end: _U32
    pieces: _U64  # flat: source offset, target, target offset, bytes
    wait_end: _U32
    waits: _U32  # flat: operation, moment
    memory_bytes: _U64  # by participant
    buffer_first: _U64  # by (participant, buffer)
    buffer_bytes: _U64
    buffers: list[str]


class KeyRow(TypedDict):
    """A key of machine files."""

    required: bool
    forms: list[tuple[str, list[str]]]  # name, words
    meaning: str | None


class MachineNumbers(TypedDict):
    """What numbers of machine files may be."""

    units: dict[str, list[str]]  # by dimension
    positive: set[str]  # dimensions
    statuses: list[str]
