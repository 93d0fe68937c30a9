"""Types of the native module; tests/python/test_surface.py holds them against the module itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from linkwright.base.units import Time

_U8 = NDArray[np.uint8]
_U32 = NDArray[np.uint32]
_U64 = NDArray[np.uint64]
_F32 = NDArray[np.float32]
_F64 = NDArray[np.float64]
_Options = Mapping[str, object] | None  # the docstrings name the keys; an unknown key is an error
_Grid = tuple[int, ...] | None  # sides: columns, rows, ...

class _Named(TypedDict):
    key: str
    summary: str

_ErrorEntry = TypedDict("_ErrorEntry", {"key": str, "class": str, "summary": str})

class _Described(_Named):
    description: str

class _Fabric(_Described):
    source: str

class _Pattern(_Described):
    name: str
    needs: str
    source: str

class _Algorithm(_Pattern):
    collective: str
    cost: str
    folds: bool

class _Format(TypedDict):
    key: str
    summary: str
    description: str
    source: str
    suffix: str
    reads: bool

class _Collective(TypedDict):
    key: str
    blocked: bool
    rooted: bool
    reduces: bool

class _Endpoint(TypedDict):
    name: str
    kind: Literal["rank", "memory"]
    x: int | None
    y: int | None

class _Number(TypedDict):
    key: str
    value: str
    unit: str
    status: str
    source: str

class _Rule(TypedDict):
    name: str
    statement: str
    evidence: str
    post_hoc: bool

class _LibraryHardware(TypedDict):
    gpu: str
    host: str

class _Library(TypedDict):
    name: str
    versions: list[str]
    links: int | None
    modes: dict[str, str]
    hardware: _LibraryHardware | None
    training: str
    launch_ps: int
    source: str

class _Nodes(TypedDict):
    name: list[str]  # by node, as all columns here
    kind: list[Literal["rank", "memory", "switch"]]
    at: list[list[int] | None]
    group: list[int]

_Edges = TypedDict(
    "_Edges",
    {
        "class": list[str],  # by edge, as all columns here
        "a": list[int],  # node
        "b": list[int],
        "bytes_per_s": list[int | None],
    },
)

class _NetworkLinks(TypedDict):
    name: list[str]  # by link of a simulation, as all columns here
    a: list[int]  # node, or -1
    b: list[int]

class _Network(TypedDict):
    nodes: _Nodes
    edges: _Edges
    links: _NetworkLinks
    ring: list[int]
    sides: list[int]
    groups: list[str]

class _Measurement:
    CONFIDENCE: float
    MIN_LAUNCHES: int
    SAMPLES: int
    SETTLED_WITHIN: float
    WARMUP_AGREEING: int
    WARMUP_WITHIN: float
    WARMUP_AT_MOST: int
    FOREIGN_SHARE: float
    CLOCK_MOVED: float
    GPU_CLOCK_MOVED: float
    CANARY_MOVED: float

class _Cache(TypedDict):
    level: int
    kind: str
    bytes: int
    shared_by: list[int]

class _Layer(TypedDict):
    key: str
    filter: int
    input: int
    in_channels: int
    out_channels: int
    stride: int
    groups: int
    output: int
    flops: int

class _Axis(TypedDict):
    key: str
    kind: str
    words: list[str]
    summary: str
    default: str

class _Metric(TypedDict):
    key: str
    unit: str
    better: str
    summary: str
    source: str

class _Probe(_Described):
    axes: list[_Axis]
    metrics: list[_Metric]
    size_axis: str | None
    table: str
    source: str
    waived: str
    measured: bool
    modelled: bool

class _Device(TypedDict):
    id: int
    first: int
    members: list[int]

class _PcieLink(TypedDict):
    read_ps: int
    write_ps: int
    read_rate: float
    write_rate: float

class _Proved(TypedDict):
    operations: int
    messages: int
    notices: int
    edges: int
    chunk_moves: int
    hazards: int
    long_searches: int
    exact: bool

# One entry per operation.
_Operations = TypedDict(
    "_Operations",
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

class _Launch(TypedDict):
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

class _RankLaunch(_Launch):
    sync: str
    residual_ns: float
    probe_ns: float

class _Sampled(TypedDict):
    drops: dict[str, int]
    values_ns: _F64  # by sample
    first_ns: float
    batch: int
    warmed_up: bool

class _Measured(_Sampled):
    counted_bytes: float
    moved_bytes: float
    work: float
    columns: dict[str, _F64]  # by metric, then by sample
    notes: list[str]

class _Modelled(TypedDict):
    time_ps: int
    counted_bytes: int
    moved_bytes: int
    work: int
    columns: dict[str, float]

class _Stream(TypedDict):
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

class _Memory(TypedDict):
    initial: _U8
    reference: _U8
    checked_elements: int

class _RankPrograms(TypedDict):
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

class _Programs(TypedDict):
    program: _U32  # by command, as all but the last two
    line: _U32
    issued_ps: _U64
    queued_ps: _U64
    selected_ps: _U64
    requested_ps: _U64
    data_ps: _U64
    complete_ps: _U64
    retries: _U64  # by program
    lines_ps: list[_U64]  # by program, then by line

class _MachineKey(TypedDict):
    required: bool
    forms: list[tuple[str, list[str]]]  # name, words
    meaning: str | None

class _MachineNumbers(TypedDict):
    units: dict[str, list[str]]  # by dimension
    positive: set[str]  # dimensions
    statuses: list[str]

__version__: str
measurement: _Measurement

def machine_keys(files: Sequence[tuple[str, str]], shelf: object) -> dict[str, dict[str, _MachineKey]]: ...
def network_keys(files: Sequence[tuple[str, str]]) -> dict[str, dict[str, _MachineKey]]: ...
def runs_of_names(names: Sequence[str]) -> list[str]: ...
def machine_numbers() -> _MachineNumbers: ...

class Draft:
    def __init__(self, text: str, file: str, shelf: object, variant: object) -> None: ...
    def machine(self) -> Machine: ...
    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str: ...

class Machine:
    @staticmethod
    def parse(text: str, file: str) -> Machine: ...
    def composed(self, shelf: object, asked: object) -> Draft: ...
    def joined(
        self,
        about: tuple[str, str, Sequence[str]],
        nodes: int,
        network: str | None,
        listed: tuple[
            str,
            tuple[str, str, str, str] | None,
            int,
            Sequence[str],
            Sequence[tuple[str, float, Sequence[str], str]],
        ],
        shelf: object,
    ) -> Draft: ...
    def routed(self, routes: Sequence[tuple[str, str, Sequence[str]]]) -> Machine: ...
    def with_values(self, values: Sequence[tuple[str, str]]) -> Machine: ...
    def with_endpoints(self, ranks: int) -> Machine: ...
    def with_grid(self, *sides: int) -> Machine: ...
    def with_value(self, key: str, value: str) -> Machine: ...
    def varied(self, within: float, *, seed: int = 0) -> Machine: ...
    def levels(self) -> list[tuple[str, int]]: ...
    def endpoints(self) -> list[_Endpoint]: ...
    def numbers(self) -> list[_Number]: ...
    def rules(self) -> list[_Rule]: ...
    def library(self) -> _Library | None: ...
    def network(self) -> _Network | None: ...
    def memory_levels(self) -> list[int]: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def cluster(self) -> tuple[list[str], str] | None: ...
    @property
    def summary(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def sources(self) -> list[str]: ...
    @property
    def fabric(self) -> str: ...
    @property
    def paths(self) -> list[str]: ...
    @property
    def networks(self) -> list[str]: ...
    @property
    def ranks(self) -> int: ...
    @property
    def memories(self) -> int: ...
    @property
    def open_size(self) -> Literal["ranks", "grid"] | None: ...
    @property
    def grid(self) -> tuple[int, int] | None: ...
    @property
    def rank_grid(self) -> _Grid: ...
    @property
    def fitted(self) -> int: ...

class Schedule:
    @staticmethod
    def build(
        key: str,
        ranks: int,
        elements: int,
        *,
        element_bytes: int = 4,
        root: int = 0,
        grid: _Grid = None,
        rings: Sequence[Sequence[int]] | None = None,
    ) -> Schedule: ...
    @staticmethod
    def pattern(
        key: str,
        ranks: int,
        elements: int,
        *,
        element_bytes: int = 1,
        root: int = 0,
        grid: _Grid = None,
        seed: int = 0,
        count: int = 1,
        both_ways: bool = False,
    ) -> Schedule: ...
    @staticmethod
    def parse(content: str, file: str = "schedule") -> Schedule: ...
    def text(self) -> str: ...
    def export(self, format: str) -> str: ...
    def resized(self, elements: int, element_bytes: int = 4) -> Schedule: ...
    def __reduce__(self) -> tuple[object, tuple[str]]: ...
    def pipeline(self, slices: int) -> Schedule: ...
    def stripe(self, lanes: int) -> Schedule: ...
    def refine(self, slices: int) -> Schedule: ...
    def windows(self, windows: int) -> Schedule: ...
    def unfuse(self) -> Schedule: ...
    def own_scratch(self) -> Schedule: ...
    def pull(self, *, everything: bool = False, lanes: int | None = None) -> Schedule: ...
    def repeat(self, times: int) -> Schedule: ...
    def relabel(self, parts: Sequence[int]) -> Schedule: ...
    def verify(self) -> _Proved: ...
    def operations(self) -> _Operations: ...
    def sent_bytes(self) -> _U64: ...
    def __len__(self) -> int: ...
    @property
    def collective(self) -> str: ...
    @property
    def root(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def memories(self) -> int: ...
    @property
    def sets(self) -> list[list[int]]: ...
    @property
    def aggregations(self) -> list[tuple[int, int]]: ...
    @property
    def element_bytes(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def messages(self) -> int: ...

class Builder:
    def __new__(
        cls,
        collective: str,
        ranks: int,
        elements: int,
        *,
        element_bytes: int = 4,
        root: int = 0,
        grid: _Grid = None,
        out_of_place: bool = False,
    ) -> Self: ...
    def buffer(self, name: str, blocks: int = 1, *, parts: int = 1, only_at: int | None = None) -> None: ...
    def step(self) -> None: ...
    def memory(self) -> int: ...
    def put(
        self,
        source: int,
        target: int,
        buffer: str,
        first: int,
        count: int = 1,
        *,
        into: str | None = None,
        at: int | None = None,
        reduce: bool = False,
        get: bool = False,
        hint: str = "",
        fenced: bool = False,
    ) -> None: ...
    def put_blocks(
        self,
        source: int,
        target: int,
        buffer: str,
        blocks: Sequence[int],
        *,
        into: str | None = None,
        reduce: bool = False,
        get: bool = False,
        hint: str = "",
        fenced: bool = False,
    ) -> None: ...
    def aggregate(
        self,
        sources: Sequence[int],
        targets: Sequence[int],
        buffer: str,
        chunk: int,
        *,
        into: str | None = None,
        at: int | None = None,
        count: int = 1,
        reduce: bool = False,
        fenced: bool = False,
    ) -> None: ...
    def multicast(
        self,
        source: int,
        targets: Sequence[int],
        buffer: str,
        chunk: int,
        *,
        into: str | None = None,
        at: int | None = None,
        fenced: bool = False,
    ) -> None: ...
    def local(
        self,
        rank: int,
        buffer: str,
        first: int,
        into: str,
        at: int,
        count: int = 1,
        *,
        reduce: bool = False,
        fenced: bool = False,
    ) -> None: ...
    def compute(self, rank: int, operations: int) -> None: ...
    def finish(self) -> Schedule: ...

class MpiGroup:
    def __new__(
        cls,
        functions: Mapping[str, int],
        handles: Mapping[str, object],
        data: int,
        control: int,
        rank: int,
        size: int,
        oversubscribed: bool,
        part_bytes: int | None,
    ) -> Self: ...
    @staticmethod
    def functions() -> list[str]: ...
    @staticmethod
    def dtypes() -> list[str]: ...
    @staticmethod
    def ops() -> list[str]: ...
    def run(self, schedule: Schedule, options: _Options = None) -> _RankLaunch: ...
    def run_native(
        self, collective: str, elements: int, *, root: int = 0, in_place: bool = False, options: _Options = None
    ) -> _RankLaunch: ...
    def compare_with_reference(self, schedule: Schedule, dtype: str, op: str) -> int: ...

class How:
    def __new__(
        cls,
        *,
        issue: str | None = None,
        path: str | None = None,
        skew: str | None = None,
        placement: Sequence[int] | str | None = None,
        grid: Sequence[int] | None = None,
        launch_ps: int = 0,
        channels: int | None = None,
        arithmetic: bool = True,
        operations_per_s: float | None = None,
        seed: int = 0,
        buffer_sets: int = 1,
        serial_starts: bool = False,
        links: bool = False,
        operations: bool = False,
        messages: bool = False,
        bins: int = 0,
        trace: bool = False,
    ) -> Self: ...
    def but(self, **changes: Any) -> How: ...
    issue: Final[str | None]
    path: Final[str | None]
    skew: Final[str | None]
    placement: Final[list[int] | str | None]
    grid: Final[list[int] | None]
    launch_ps: Final[int]
    channels: Final[int | None]
    arithmetic: Final[bool]
    operations_per_s: Final[float | None]
    seed: Final[int]
    buffer_sets: Final[int]
    serial_starts: Final[bool]
    links: Final[bool]
    operations: Final[bool]
    messages: Final[bool]
    bins: Final[int]
    trace: Final[bool]

class Limit:
    name: Final[str]
    time: Final[Time]
    time_us: Final[float]
    what: Final[str]
    size_bytes: Final[int]
    rate: Final[float | None]
    derivation: Final[str]

class Ranks:
    start_ps: Final[_U64]
    finish_ps: Final[_U64]
    runs_ps: Final[_U64]

class Counts:
    transfers: Final[int]
    notices: Final[int]
    bytes: Final[int]
    byte_hops: Final[int]
    hops_max: Final[int]
    hops_mean: Final[float]
    peak_load: Final[int]

class Links:
    name: Final[list[str]]
    busy_ps: Final[_U64]
    bytes: Final[_U64]
    peak: Final[_U32]

class Path:
    operation: Final[NDArray[np.int64]]
    spent: Final[list[str]]
    begin_ps: Final[_U64]
    end_ps: Final[_U64]

class Timeline:
    width_ps: Final[int]
    bins: Final[int]
    busy_share: Final[_F32]
    rank: Final[_U32]
    state: Final[_U8]
    begin_ps: Final[_U64]
    end_ps: Final[_U64]

class Operations:
    issued_ps: Final[_U64]
    delivered_ps: Final[_U64]
    done_ps: Final[_U64]
    slack_ps: Final[_U64 | None]
    network: Final[_U8]

class Messages:
    latency_ps: Final[_U64]
    sent_bytes: Final[_U64]

class Answer:
    how: Final[How]
    schedule: Final[Schedule]
    time: Final[Time]
    slowest: Final[Time]
    ranks: Final[Ranks]
    counts: Final[Counts]
    critical: Final[dict[str, float]]
    limit: Final[Limit | None]
    bound: Final[Limit | None]
    remark: Final[str | None]
    links: Final[Links]
    path: Final[Path]
    timeline: Final[Timeline]
    operations: Final[Operations]
    messages: Final[Messages]
    def trace(self, file: str) -> None: ...

class Simulations:
    # An experiment is (kind, key, shape or axes, how).
    def __new__(
        cls,
        machine: Machine,
        experiments: Sequence[tuple[str, str, Mapping[str, object], How]],
        jobs: int = 0,
    ) -> Self: ...
    def __iter__(self) -> Iterator[tuple[int, Answer | _Modelled | Exception]]: ...
    def __next__(self) -> tuple[int, Answer | _Modelled | Exception]: ...
    def stop(self) -> None: ...

class Synthesis:
    @property
    def tried(self) -> int | None: ...
    @property
    def unseen(self) -> int | None: ...
    @property
    def answer(self) -> dict[str, Any] | None: ...
    @property
    def fastest(self) -> dict[str, Any] | None: ...
    def __iter__(self) -> Synthesis: ...
    def __next__(self) -> dict[str, Any]: ...
    def stop(self) -> None: ...

def algorithms() -> list[_Algorithm]: ...
def arrival_delays(ranks: int, repetitions: int, options: _Options = None) -> _F64: ...
def available_memory() -> int | None: ...
def bus_factor(collective: str, ranks: int) -> float | None: ...
def caches() -> list[_Cache]: ...
def check_issue(policy: str) -> None: ...
def ask(machine: Machine, schedule: Schedule, how: How) -> Answer: ...
def check_how(machine: Machine, ranks: int, how: How) -> None: ...
def check_memory(schedule: Schedule, participant: int, memory: _U8, options: _Options = None) -> int: ...
def chip_route(machine: Machine, start: int, end: int, /) -> list[int]: ...
def collectives() -> list[_Collective]: ...
def combine(into: _U8, data: _U8, options: _Options = None) -> None: ...
def convolution_layers() -> list[_Layer]: ...
def cpus() -> list[int]: ...
def cycles_ns(cpus: Sequence[int] | None = None) -> list[float | None]: ...
def device_of(machine: Machine, ids: Sequence[int]) -> _Device: ...
def devices(machine: Machine) -> list[_Device]: ...
def dma_programs(
    machine: Machine, programs: Sequence[tuple[str, Sequence[str]]], *, overwrite: bool = False
) -> _Programs: ...
def errors() -> list[_ErrorEntry]: ...
def fabrics() -> list[_Fabric]: ...
def initial_memory(schedule: Schedule, participant: int, options: _Options = None) -> _U8: ...
def instruction_codes() -> dict[str, int]: ...
def instruction_stream(schedule: Schedule, options: _Options = None) -> _Stream: ...
def limits(machine: Machine, collective: str, shape: Mapping[str, object], how: How) -> list[Limit]: ...
def lower(schedule: Schedule, machine: Machine, path: str | None = None) -> Schedule: ...
def without_aggregations(schedule: Schedule) -> Schedule: ...
def model_probe(machine: Machine, key: str, axes: Mapping[str, object]) -> _Modelled: ...
def moment_codes() -> list[tuple[str, int]]: ...
def pattern_bytes(
    key: str,
    ranks: int,
    elements: int,
    *,
    element_bytes: int = 1,
    root: int = 0,
    grid: _Grid = None,
    count: int = 1,
    both_ways: bool = False,
) -> int: ...
def proof_key() -> str: ...
def plan_formats() -> list[_Format]: ...
def read_schedule(content: str, file: str) -> Schedule: ...
def patterns() -> list[_Pattern]: ...
def pcie_link(machine: Machine, read_bytes: int, write_bytes: int) -> _PcieLink: ...
def probes() -> list[_Probe]: ...
def quiet(
    machine: Machine, pairs: Sequence[tuple[int, int]], bytes: int, network: int = 0
) -> list[tuple[int, int] | None]: ...
def rank_programs(schedule: Schedule, options: _Options = None) -> _RankPrograms: ...
def repeats_back_to_back(schedule: Schedule) -> bool: ...
def run_probe(key: str, axes: Mapping[str, object], options: _Options = None) -> _Measured: ...
def run_threads(schedule: Schedule, options: _Options = None) -> _Launch: ...
def sample_work(work: Callable[[int], object], options: _Options = None) -> _Sampled: ...
def read_table(content: bytes, /) -> dict[str, tuple[Any, ...]]: ...
def table_rows(content: bytes, /) -> int: ...
def write_table(
    columns: Sequence[tuple[str, str, bool, list[Any]]],
    compression: Literal["snappy", "zstd"],
    metadata: Sequence[tuple[str, str]],
    /,
) -> bytes: ...
def schedule_memory(schedule: Schedule, options: _Options = None) -> _Memory: ...
def synthesis_methods() -> list[_Fabric]: ...
def synthesize(
    machine: Machine,
    collective: str | None,
    ranks: int,
    bytes: int,
    *,
    element_bytes: int = 4,
    root: int = 0,
    grid: Sequence[int] | None = None,
    path: str | None = None,
    seed: int = 0,
    budget_s: float = 30.0,
    methods: Sequence[str] | None = None,
    threads: int = 0,
    serial_starts: bool = False,
    fastest: bool = False,
) -> Synthesis: ...
