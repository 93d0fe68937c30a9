"""What the study claims, each judged on the cells or the model: accuracy, headline rates, and where choices change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linkwright.base.errors import LinkwrightError
from linkwright.libraries.settings import Setup
from linkwright.libraries.times import Model
from linkwright_evidence.outcome import Cell, Claim, numbered

from . import cases, floor
from .cells import LARGE, SMALL, bus_rate, pooled

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
HEADLINE = 0.05
# (what, machine, nodes, fabric, algorithm, collective, GPUs per node, size, published bus rate in GB/s)
HEADLINES = (
    ("eight H100 reduce at 480 GB/s with NVLS", "hgx-h100", 1, None, "nccl-2.27", "allreduce", 8, 16 * GIB, 480.0),
    ("eight A100 reduce at 235 GB/s by a ring", "dgx-a100", 1, None, "nccl-2.18", "allreduce", 8, 8 * GIB, 235.0),
    ("eight B200 reduce at 698 GB/s by a ring", "b200", 1, None, "nccl-2.28/ring", "allreduce", 8, 32 * GIB, 698.0),
    ("eight B200 reduce at 844 GB/s with NVLS", "b200", 1, None, "nccl-2.28/nvls", "allreduce", 8, 32 * GIB, 844.0),
    ("72 GB200 reduce at 847 GB/s", "gb200-nvl72", 1, None, "nccl-2.26", "allreduce", 72, 8 * GIB, 847.0),
    ("two H100 nodes reduce at 469 GB/s", "hgx-h100", 2, "ndr-fat-tree", "nccl-2.26", "allreduce", 8, 16 * GIB, 469.0),
    ("four H100 nodes reduce at 366 GB/s", "hgx-h100", 4, "ndr-fat-tree", "nccl-2.26", "allreduce", 8, 16 * GIB, 366.0),
    ("two A100 nodes reduce at 183 GB/s", "dgx-a100", 2, "hdr-fat-tree", "nccl-2.18", "allreduce", 8, GIB, 183.0),
    ("eight MI300X reduce at 314 GB/s", "mi300x", 1, None, "rccl-2.22", "allreduce", 8, 8 * GIB, 314.0),
)  # fmt: skip
# Ring gives way to NVLS on eight H100 at 2 MiB (a posted log); within a factor of two of that.
CROSSOVER = (MIB, 2 * MIB, 4 * MIB)


def check(cells: Sequence[Cell], model: Model, faults: Sequence[Mapping[str, object]]) -> list[Claim]:
    """All claims in order; `faults` are the rows of `cases`."""
    made = [
        _accuracy(cells, "one node, from 1 MiB on: median error at most 10 %", _one(LARGE), 0.10, half=True),
        _accuracy(cells, "one node, from 1 MiB on: nine in ten within 25 %", _one(LARGE), 0.25, half=False),
        _accuracy(cells, "one node, below 1 MiB: median error at most 20 %", _one(SMALL), 0.20, half=True),
        _accuracy(cells, "several nodes: median error at most 20 %", _several, 0.20, half=True),
        _accuracy(cells, "several nodes: nine in ten within 40 %", _several, 0.40, half=False),
        *(_headline(model, *one) for one in HEADLINES),
        _above_the_ports(model),
        _crossover(model),
        cases.claim(faults),
    ]
    return [numbered("M", number, *claim) for number, claim in enumerate((one for one in made if one), 1)]


def _one(band: str) -> Callable[[Cell], bool]:
    return lambda cell: not cell.erratum and cell.keys["nodes"] == 1 and cell.table.endswith(band)


def _several(cell: Cell) -> bool:
    return not cell.erratum and cell.keys["nodes"] != 1


Made = tuple[str, bool, str]


def _accuracy(
    cells: Sequence[Cell], statement: str, keep: Callable[[Cell], bool], most: float, *, half: bool
) -> Made | None:
    score = pooled(cells, keep)
    if score is None:
        return None
    value = score.median if half else score.p90
    words = "median" if half else "90th percentile"
    best = floor.pooled(cell for cell in cells if keep(cell))
    least = f"; systems of one kind differ by {best.median if half else best.p90:.1%}" if best else ""
    return f"{statement}, all healthy tables", value <= most, f"{words} {value:.1%} of {len(score.errors)} cells{least}"


def _rate(model: Model, shape: Setup, size_bytes: int) -> float | None:
    try:
        return bus_rate(shape, size_bytes, model.time(shape, size_bytes).time_us)
    except LinkwrightError:
        return None


def _headline(
    model: Model, what: str, machine: str, nodes: int, fabric: str | None, algorithm: str, collective: str, gpus: int,
    size_bytes: int, published: float,
) -> Made:  # fmt: skip
    rate = _rate(model, Setup(machine, nodes, gpus, fabric, algorithm, collective, False), size_bytes)
    if rate is None:
        return f"{what}, within 5 %", False, "the model has no prediction"
    return f"{what}, within 5 %", abs(rate / published - 1) <= HEADLINE, f"model: {rate:.1f}; published: {published:g}"


def _above_the_ports(model: Model) -> Made:
    """A tree of two nodes sends the vector once each way, a ring nearly twice."""
    rates = [
        _rate(model, Setup("hgx-h100", nodes, 8, "ndr-fat-tree", "nccl-2.26", "allreduce", False), 16 * GIB)
        for nodes in (2, 4)
    ]
    words = ", ".join("none" if rate is None else f"{rate:.0f} GB/s" for rate in rates)
    holds = rates[0] is not None and rates[1] is not None and rates[0] > 400 > rates[1]
    return "two H100 nodes are above the rate of their ports, 400 GB/s; four are below", holds, f"model: {words}"


def _crossover(model: Model) -> Made:
    statement = "eight H100 reduce by a ring up to 1 MiB and with NVLS from 2 MiB on, within a factor of two"
    low, _, high = CROSSOVER
    shape = Setup("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce", False)
    try:
        below, above = (model.time(shape, size).choice for size in (low // 2, high))
    except LinkwrightError as error:
        return statement, False, str(error)
    return statement, below.startswith("Ring") and above.startswith("NVLS"), f"512 KiB: {below}; 4 MiB: {above}"
