"""What results say: the probability of every fault, given the rates of the tests that were run.

    P(fault | results) ~ P(fault) * product over cells of p(log measured - log predicted - log scale)

    faults       none; one place at one of `SHARES`; two places, the second searched on top of the best `FOLLOWED` first
    scale        what software gets of the described rates, one number for all results: their median over the model,
                 unless a healthy run of the same machine gives the rate of each cell
    p            a normal density as wide as the noise, and for a part `STRAY` of the cells a flat one: a cell that
                 contradicts the others alone is set aside rather than believed

A fault whose effect no test shows is not a hypothesis; `unseen` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .effects import SHARES, Effects, Model, Place
from .parts import Floats, Pair
from .rounds import Cell, Test

# Before any result: half of the clusters that somebody searches have a fault, one in ten of those has two.
FAULTY, TWO = 0.5, 0.1
NOISE = 0.03  # of a rate, from run to run
STRAY = 0.01  # of the cells have any rate
FOLLOWED = 12  # first faults that second ones are searched for
_STRAY_SPAN = 4.0  # of the logarithm of a rate
_LEAST_CELLS = 4  # of a test whose median gives the scale
Fault = tuple[tuple[int, int], ...]  # (place, number in SHARES), by place; empty if healthy


@dataclass(frozen=True)
class Observation:
    """The results of one test.

    Attributes:
        test: which messages went at the same time.
        rates: bytes per second of each cell; NaN where it has none.
        source: the file it is from.
    """

    test: Test
    rates: tuple[float, ...]
    source: str = ""


@dataclass
class Posterior:
    """Probabilities of faults.

    Attributes:
        faults: the most likely ones, with the probability of each.
        healthy: probability of none.
        places: probability that a place is slow.
        scale: rates of the results over those of the model.
        strays: cells that no likely fault explains: test, message, measured over expected.
        unseen: pairs of place and share that no test of the library shows.
    """

    faults: list[tuple[Fault, float]]
    healthy: float
    places: Floats
    scale: float
    strays: list[tuple[str, Pair, float]] = field(default_factory=list)
    unseen: int = 0

    def sets(self) -> list[tuple[tuple[int, ...], float]]:
        """Probability of each set of slow places, whatever is left of their rates; the most likely first."""
        found: dict[tuple[int, ...], float] = {}
        for fault, chance in self.faults:
            which = tuple(place for place, _ in fault)
            found[which] = found.get(which, 0.0) + chance
        return sorted(found.items(), key=lambda one: -one[1])

    def share(self, which: Sequence[int]) -> tuple[float, ...]:
        """What is left of the rates of some places if they are the slow ones: the mean of the logarithm."""
        its = [(fault, chance) for fault, chance in self.faults if tuple(place for place, _ in fault) == tuple(which)]
        total = sum(chance for _, chance in its) or 1.0
        return tuple(
            math.exp(sum(chance * math.log(SHARES[fault[at][1]]) for fault, chance in its) / total)
            for at in range(len(which))
        )


def posterior(
    model: Model, seen: Sequence[Observation], noise: float = NOISE, baseline: Mapping[Cell, float] | None = None
) -> Posterior:
    """Return the probabilities of all faults.

    Args:
        model: of the machine.
        seen: results; the same test may occur again.
        noise: relative deviation of a rate from run to run.
        baseline: bytes per second of cells on the healthy machine.
    """
    effects = {one.test: model.of(one.test) for one in seen}
    scale, residuals = _residuals(seen, effects, noise, baseline or {})
    possible = _visible(model, noise)
    terms = [_Terms(effects[one.test], residual, noise) for one, residual in zip(seen, residuals, strict=True)]
    count = len(model.places)
    single = np.where(possible, sum((one.gains(count) for one in terms), np.zeros((count, len(SHARES)))), -np.inf)
    each = max(1, int(possible.sum()))
    prior_one, prior_two = math.log(FAULTY * (1 - TWO) / each), math.log(FAULTY * TWO / each / max(1, each - 1))
    weights: dict[Fault, float] = {(): math.log(1 - FAULTY)}
    for place, share in zip(*np.nonzero(possible), strict=True):
        weights[((int(place), int(share)),)] = prior_one + float(single[place, share])
    if seen:
        # The best share of each place, and the best of these places.
        best = single.argmax(axis=1)
        firsts = np.argsort(-single[np.arange(count), best])[:FOLLOWED]
        for first in firsts.tolist():
            share = int(best[first])
            gains = sum((one.on_top(first, share, count) for one in terms), np.zeros((count, len(SHARES))))
            gains = np.where(possible, gains, -np.inf) + single[first, share] + prior_two
            gains[first] = -np.inf
            for place, other in np.argwhere(gains > gains.max() - 12).tolist():
                weights[tuple(sorted(((first, share), (place, other))))] = float(gains[place, other])
    return _normal(weights, count, scale, _strays(seen, effects, residuals, noise, weights), int((~possible).sum()))


def _normal(
    weights: Mapping[Fault, float], count: int, scale: float, strays: list[tuple[str, Pair, float]], unseen: int
) -> Posterior:
    top = max(weights.values())
    chances = {fault: math.exp(weight - top) for fault, weight in weights.items()}
    total = math.fsum(chances.values())
    places = np.zeros(count)
    for fault, chance in chances.items():
        for place, _ in fault:
            places[place] += chance / total
    ordered = sorted(((fault, chance / total) for fault, chance in chances.items()), key=lambda one: -one[1])
    return Posterior(ordered, chances[()] / total, places, scale, strays, unseen)


def _visible(model: Model, noise: float) -> np.ndarray:
    """Of each place and share, whether any test of the library shows it."""
    least = np.zeros((len(model.places), len(SHARES)))
    for one in model.effects:
        np.minimum.at(least, one.place, one.drop)
    return least < -2 * noise


def _residuals(
    seen: Iterable[Observation], effects: Mapping[Test, Effects], noise: float, baseline: Mapping[Cell, float]
) -> tuple[float, list[Floats]]:
    """The scale, and of each cell the logarithm of measured over healthy."""
    found: list[Floats] = []
    wide: list[Floats] = []
    for one in seen:
        usual = [baseline.get(cell, math.nan) for cell in one.test.cells]
        base = np.where(np.isnan(usual), effects[one.test].base, np.log(usual))
        residual = np.log(np.maximum(one.rates, 1.0)) - base
        free = residual[np.isnan(usual)]
        wide += [free] if len(free) >= _LEAST_CELLS or not wide else []
        found.append(residual)
    pool = np.concatenate([one[~np.isnan(one)] for one in wide] or [np.zeros(0)])
    # The upper half of what is within the noise of the median: slow cells are fewer than half.
    scale = float(np.median(pool)) if len(pool) else 0.0
    near = pool[np.abs(pool - scale) < 3 * noise]
    scale = float(near.mean()) if len(near) else scale
    for one, residual in zip(seen, found, strict=True):
        for at, cell in enumerate(one.test.cells):
            if cell not in baseline:
                residual[at] -= scale
    return math.exp(scale), found


class _Terms:
    """What one observation adds to the logarithm of the likelihood."""

    def __init__(self, effects: Effects, residual: Floats, noise: float) -> None:
        self.effects, self.residual, self.noise = effects, residual, noise
        self.healthy = self.density(residual)

    def density(self, apart: Floats) -> Floats:
        """Logarithm of the density of deviations; 0 where nothing was measured."""
        normal = np.exp(-0.5 * (apart / self.noise) ** 2) / (self.noise * math.sqrt(2 * math.pi))
        found = np.log((1 - STRAY) * normal + STRAY / _STRAY_SPAN)
        return np.where(np.isnan(apart), 0.0, found)

    def gains(self, count: int) -> Floats:
        """By place and share, over the healthy machine."""
        one = self.effects
        gain = self.density(self.residual[one.cell][:, None] - one.drop) - self.healthy[one.cell][:, None]
        return self._added(gain, count)

    def on_top(self, place: int, share: int, count: int) -> Floats:
        """By place and share, over the machine with this place slow."""
        one = self.effects
        base = np.zeros(len(one.base))
        its = one.of(place)
        base[one.cell[its]] = one.drop[its, share]
        before = self.density(self.residual - base)
        both = np.minimum(one.drop, base[one.cell][:, None])
        gain = self.density(self.residual[one.cell][:, None] - both) - before[one.cell][:, None]
        return self._added(gain, count)

    def _added(self, gain: Floats, count: int) -> Floats:
        found = np.zeros((count, len(SHARES)))
        np.add.at(found, self.effects.place, gain)
        return found


def _strays(
    seen: Sequence[Observation], effects: Mapping[Test, Effects], residuals: Sequence[Floats], noise: float,
    weights: Mapping[Fault, float],
) -> list[tuple[str, Pair, float]]:  # fmt: skip
    """Cells that the most likely fault leaves unexplained."""
    likely = max(weights, key=lambda fault: weights[fault])
    found = []
    for one, residual in zip(seen, residuals, strict=True):
        apart = residual - drops(effects[one.test], likely)
        found += [
            (one.source or one.test.name, one.test.cells[at][0], math.exp(apart[at]))
            for at in np.flatnonzero(np.abs(np.nan_to_num(apart)) > 5 * noise)
        ]
    return found


def drops(effects: Effects, fault: Fault) -> Floats:
    """What a fault adds to the logarithm of each cell's rate."""
    found = np.zeros(len(effects.base))
    for place, share in fault:
        its = effects.of(place)
        found[effects.cell[its]] = np.minimum(found[effects.cell[its]], effects.drop[its, share])
    return found


def describe(place: Place, share: float) -> str:
    """A slow place in words."""
    return f"{place.name} at {share:.0%}"
