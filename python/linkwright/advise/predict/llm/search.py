"""The fastest layouts of a model on a machine, by branch and bound.

A step whose exchanges take only what their bytes need on wires is a bound of the simulated step. Layouts are simulated
in the order of that bound, until the bound of the next one is slower than the fastest found by more than a tie.

For each division (tp, pp, vpp, ep) the first state that fits is taken: ZeRO 1, then ZeRO 3, then both again with full
recomputation. Each of these exchanges or computes more than the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from linkwright.advise.predict.llm import ModelForecast
from linkwright.advise.predict.llm.compute import ChipRates
from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.memory import memory
from linkwright.advise.predict.llm.model import Transformer
from linkwright.advise.predict.llm.step import step
from linkwright.advise.predict.llm.together import WireExchanges
from linkwright.base.errors import NoLayoutError, UsageError
from linkwright.base.units import GIGA

STATES = ((1, "none"), (3, "none"), (1, "full"), (3, "full"))
PIECES = (1, 2, 4)
# Layouts that are simulated: where messages decide, many bounds are below the fastest step.
MOST_SIMULATED = 40
# Divisions that are bounded before the first is simulated; a search of more asks for some of the degrees.
MOST_DIVISIONS = 20_000


def fastest_layouts(
    model: Transformer,
    given: Mapping[str, object],
    chip: ChipRates,
    wires: WireExchanges,
    forecast: Callable[[ParallelLayout], ModelForecast],
    *,
    ranks: int,
    per_node: int,
    capacity: int | None,
    tie: float,
) -> tuple[list[ModelForecast], int]:
    """Return the forecasts of simulated layouts, fastest first, and how many others could be as fast by their bounds.

    The number is above zero only where `MOST_SIMULATED` ended the search.

    Args:
        model: what is trained.
        given: fields of `ParallelLayout` that are not searched, the batch among them.
        chip: rates of a GPU.
        wires: exchanges on all GPUs that no simulated ones beat.
        forecast: simulates a layout.
        ranks: all GPUs.
        per_node: most GPUs of a tensor group.
        capacity: bytes of a GPU; None lets everything fit.
        tie: share of a step within which layouts are ties.

    Raises:
        NoLayoutError: no layout divides or fits.
        UsageError: no batch is given, or there are too many divisions.
    """
    if not given.get("batch"):
        raise UsageError("--search compares layouts at one batch; give --batch")
    fitting = _fitting(model, given, ranks, per_node, capacity)
    bounded = sorted(
        ((step(model, one, chip, wires).time_ns, one) for one in fitting), key=lambda pair: (pair[0], pair[1].ep)
    )
    if not bounded:
        raise _none(model, given, ranks, per_node, capacity)
    found: list[ModelForecast] = []
    best = float("inf")
    for bound, layout in bounded[:MOST_SIMULATED]:
        if bound > best * (1 + tie):
            break
        found.append(forecast(layout))
        best = min(best, found[-1].step.time_ns)
    unseen = sum(bound <= best * (1 + tie) for bound, _ in bounded[len(found) :])
    return sorted(found, key=lambda one: one.step.time_ns), unseen


def _none(
    model: Transformer, given: Mapping[str, object], ranks: int, per_node: int, capacity: int | None
) -> NoLayoutError:
    """Return the error of a search without a layout: nothing divides, or how much memory the smallest one needs."""
    sizes = [
        (memory(model, one).total, one.words())
        for division in _divisions(model, given, ranks, per_node)
        for one in _states(model, given, ranks, division)
    ]
    if not sizes or capacity is None:
        return NoLayoutError(
            f"no layout of {model.name} divides {ranks} GPUs and a batch of {given['batch']} with what is given; give "
            "fewer degrees, or another --batch"
        )
    least, words = min(sizes)
    return NoLayoutError(
        f"no layout of {model.name} fits on {ranks} GPUs: the least that one needs is {least / GIGA:,.1f} GB of "
        f"{capacity / GIGA:,.0f} GB ({words}); take more GPUs, or give fewer degrees"
    )


def _fitting(
    model: Transformer, given: Mapping[str, object], ranks: int, per_node: int, capacity: int | None
) -> Iterator[ParallelLayout]:
    """Each division of the model, in the first state that a GPU can hold."""
    for division in _divisions(model, given, ranks, per_node):
        for layout in _states(model, given, ranks, division):
            if capacity is None or memory(model, layout).total <= capacity:
                yield layout
                break


def _states(
    model: Transformer, given: Mapping[str, object], ranks: int, division: ParallelLayout
) -> Iterator[ParallelLayout]:
    """The states of a division that are not excluded by what is given; none if it does not divide."""
    for zero, recompute in STATES:
        if given.get("zero", zero) == zero and given.get("recompute", recompute) == recompute:
            try:
                yield replace(division, zero=zero, recompute=recompute).checked(model, ranks)
            except UsageError:
                return


def _divisions(model: Transformer, given: Mapping[str, object], ranks: int, per_node: int) -> Iterator[ParallelLayout]:
    divisors = [one for one in range(1, ranks + 1) if ranks % one == 0]
    degrees = {
        "tp": [one for one in divisors if one <= per_node],
        "pp": [one for one in divisors if one <= model.layers],
        "vpp": PIECES,
        "ep": [one for one in divisors if model.experts and model.experts % one == 0] or [1],
    }
    free = {name: values for name, values in degrees.items() if name not in given}
    count = 1
    for values in free.values():
        count *= len(values)
    if count > MOST_DIVISIONS:
        raise UsageError(
            f"--search: {count:,} divisions, at most {MOST_DIVISIONS:,}; give some of --{', --'.join(free)}"
        )
    for values in product(*free.values()):
        yield ParallelLayout(**(dict(given) | dict(zip(free, values, strict=True))))
