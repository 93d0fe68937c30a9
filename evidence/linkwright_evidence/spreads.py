"""Derive how far published runs are from what `linkwright predict llm` says, for its ranges.

    python -m linkwright_evidence.spreads

prints the numbers of `python/linkwright/advise/predict/llm/errors.toml` whose status is `derived`: the median of
published / predicted, and the twentieths between which nine rows in ten are.

    step         tokens/s of study `training`, rows that calibrated nothing
    allreduce    times of engines in a CUDA graph over the library's simulated choice, study `kernels`
    experts      times of DeepEP's low-latency kernels, 8 experts of a token, over the library's simulated alltoall
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Iterator

from linkwright import machines
from linkwright.advise.predict.llm import GroupExchanges
from linkwright.advise.predict.llm.errors import bands
from linkwright.machines import Variant
from linkwright_evidence import Options
from linkwright_evidence.kernels import condition
from linkwright_evidence.training import cells
from linkwright_evidence.training.predict import ThroughputModel

# Systems with NVLink that are described; their smallest published sizes, below which a kernel is its start.
SYSTEMS = ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200")
SMALLEST, TOPK = 1024, 8
RACKS = ("DGX-GB200", "DGX-GB300")
Spreads = dict[tuple[str, ...], tuple[float, float, float, int]]


def of_steps() -> Spreads:
    """Return usual, low, high and rows of the throughput of training."""
    rows = cells.published()
    made = cells.cells(rows, cells.predictions(ThroughputModel(), rows, Options()))
    found: dict[tuple[str, ...], list[float]] = {}
    for one in made:
        if one.scored and one.reference and one.predicted:
            experts = "experts_in_a_rack" if one.keys["system"] in RACKS else "experts"
            kind = experts if str(one.keys["ep"]).isdigit() else "dense"
            found.setdefault(("step", kind), []).append(one.reference / one.predicted)
    return _spreads(found.items())


def of_kernels() -> Spreads:
    """Return the same of the times of kernels."""
    found: dict[tuple[str, ...], list[float]] = {}
    for one in condition.published():
        asked = one.condition
        if asked.system not in SYSTEMS or one.suspect:
            continue
        if asked.kind == "framework_allreduce" and asked.mode == "graph" and asked.size_bytes >= SMALLEST:
            band = next(place for place, most in enumerate(bands()) if asked.size_bytes <= most)
            key, kind, size = ("allreduce", str(band)), "allreduce", asked.size_bytes
        elif asked.kind == "deepep_ll" and asked.topk == TOPK:
            key = ("experts", "one_node" if asked.nodes == 1 else "several_nodes")
            width = 1 if asked.op == "dispatch" else 2
            kind, size = "alltoall", asked.tokens * TOPK * asked.hidden * width
        else:
            continue
        group = [tuple(range(asked.gpus))]
        exchanges = _exchanges(asked.on.machine, asked.gpus, asked.nodes)
        simulated = exchanges.collective(kind, group, size).time_ns / 1000
        found.setdefault(key, []).append(one.time_us / simulated)
    return _spreads(found.items())


@functools.cache
def _exchanges(machine: str, gpus: int, nodes: int) -> GroupExchanges:
    several = nodes if nodes > 1 and not machine.endswith("nvl72") else 0
    return GroupExchanges(machines.load(machine, Variant(several) if several else Variant()), range(gpus))


def _spreads(groups: Iterable[tuple[tuple[str, ...], list[float]]]) -> Spreads:
    return {key: _spread(sorted(values)) for key, values in groups}


def _spread(values: list[float]) -> tuple[float, float, float, int]:
    twentieths = statistics.quantiles(values, n=20, method="inclusive")
    return statistics.median(values), twentieths[0], twentieths[-1], len(values)


def lines() -> Iterator[str]:
    """All of them as text."""
    for key, (usual, low, high, rows) in sorted({**of_steps(), **of_kernels()}.items()):
        yield f"{'.'.join(key):<24} usual {usual:.2f}, low {low:.2f}, high {high:.2f}, rows {rows}"


if __name__ == "__main__":
    print("\n".join(lines()))
