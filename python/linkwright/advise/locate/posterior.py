"""What results say: the probability of every fault, given the rates of the tests that were run.

    P(fault | results) ~ P(fault) * product over cells of p(log measured - log predicted - log scale)

    faults       none; one place at one of `SHARES`; two places, the second searched on top of the best `FOLLOWED` first
    come and go  one place that is slow in a share q of the tests, each time alone: a test adds the logarithm of
                 q P(its results | slow) + (1 - q) P(its results | healthy)
    scale        what software gets of the described rates, one number for all results: a sum over those that many of
                 them agree on, and 1; a healthy run of the same machine gives the rates of its cells instead. A part
                 that all results cross is untested, since its fault is such a scale as well
    p            a normal density as wide as the noise, wider where a cell is contended, and for a part `STRAY` of the
                 cells a flat one: a cell that contradicts the others alone is set aside rather than believed
    repeats      of a quiet cell are independent; those of a contended one deviate alike, so all of them count as one

A fault whose effect no test shows, or all tests alike, is not a hypothesis; `unseen` counts them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .effects import SHARES, Effects, FaultModel
from .parts import Flags, Floats, Ints, Pair
from .rounds import Cell, Test

# Before any result: half of the clusters that somebody searches have a fault, a quarter of those two.
FAULTY, TWO = 0.5, 0.25
PASSING = 0.1  # of single faults, those that come and go (assumed)
OFTEN = (1.0, 0.75, 0.5, 0.25)  # shares of the tests in which a fault is there; 1 for one that stays
NOISE = 0.03  # of a rate, from run to run
USUAL_SCALE = 0.2  # deviation of the logarithm of the scale from 0
UNEVEN = 0.15  # how far from equal the shares of messages on one link are
STRAY, CONTENDED_STRAY = 0.01, 0.1  # of the cells have any rate; of contended ones (measured over TCP, post hoc)
FOLLOWED = 12  # first faults that second ones are searched for
_STRAY_SPAN = 4.0  # of the logarithm of a rate
_NEGLIGIBLE = 14.0  # below the largest logarithm of a probability
_LEAST_CELLS = 4  # of a test whose median gives the scale
_NARROWER = -2 * UNEVEN  # logarithm of a rate: below that, a slow link decides instead of one that is shared
_SLOW_ONCE = 4.0  # logarithm of the odds of one test by which a place may be slow in it, and not in others
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


@dataclass(frozen=True)
class Posterior:
    """Probabilities of faults.

    Attributes:
        places: the one or two slow places of each fault, the most likely first; -1 for none.
        shares: their numbers in `SHARES`.
        often: share of the tests in which each fault is there.
        scales: logarithms of rates of the results over those of the model, with each fault.
        chances: probability of each fault.
        scale: rates of the results over those of the model, with the most likely fault.
        active: of each result, whether the most likely fault was there; an intermittent one is not in all. None where
            the result would be the same without it.
        strays: cells that the most likely fault does not explain: source, message, measured over expected.
        unseen: pairs of place and share that no test of the library shows.
        untested: of each place, how much more or less likely than before it is slow if its rates in these tests are
            those of a healthy machine; 0 if no test of the library shows it.
    """

    places: Ints
    shares: Ints
    often: Floats
    scales: Floats
    chances: Floats
    scale: float
    active: tuple[bool | None, ...]
    strays: tuple[tuple[str, Pair, float], ...]
    unseen: int
    untested: Floats

    @property
    def healthy(self) -> float:
        """Probability that nothing is slow."""
        return float(self.chances[self.places[:, 0] < 0].sum())

    def sets(self, most: int = 10) -> list[tuple[tuple[int, ...], float]]:
        """Probability of each set of slow places, whatever is left of their rates; the most likely first."""
        which, at = np.unique(self.places, axis=0, return_inverse=True)
        chances = np.bincount(at.ravel(), self.chances)
        order = np.argsort(-chances, kind="stable")[:most]
        return [(tuple(place for place in which[at].tolist() if place >= 0), float(chances[at])) for at in order]

    def of_places(self, count: int) -> Floats:
        """Probability that each of `count` places is slow, alone or not."""
        return sum((np.bincount(its + 1, self.chances, count + 1)[1:] for its in self.places.T), np.zeros(count))

    def share(self, which: Sequence[int]) -> tuple[float, ...]:
        """What is left of the rates of some places if they are the slow ones: the mean of the logarithm."""
        its, weights = self._weights(which)
        return tuple(math.exp(float(weights @ np.log(SHARES[self.shares[its, at]]))) for at in range(len(which)))

    def passing(self, which: Sequence[int]) -> float:
        """Probability that a fault of some places comes and goes, if they are the slow ones."""
        its, weights = self._weights(which)
        return float(weights[self.often[its] < 1].sum())

    def waits(self, which: Sequence[int]) -> int | None:
        """Return since how many tests a fault that comes and goes has not come back; None if it has, or stays."""
        if not which or self.passing(which) <= 0.5:
            return None
        states = [one for one in self.active if one is not None]
        slow = [at for at, one in enumerate(states) if one]
        if any(b - a > 1 for a, b in itertools.pairwise(slow)):
            return None
        return len(states) - 1 - slow[-1] if slow else len(states)

    def _weights(self, which: Sequence[int]) -> tuple[Flags, Floats]:
        """The rows of a set of slow places, and the probability of each of them within the set."""
        its: Flags = (self.places == np.array([*which, -1, -1][:2])).all(axis=1)
        return its, self.chances[its] / self.chances[its].sum()


def posterior(
    model: FaultModel, seen: Sequence[Observation], noise: float = NOISE, baseline: Mapping[Cell, float] | None = None
) -> Posterior:
    """Return the probabilities of all faults.

    Args:
        model: of the machine.
        seen: results; the same test may occur again.
        noise: relative deviation of a rate from run to run.
        baseline: bytes per second of cells on the healthy machine.
    """
    effects = [model.of(one.test) for one in seen]
    apart, free = _residuals(seen, effects, baseline or {})
    possible = model.deepest < -2 * noise
    crossed = _crossed_by_all(model, effects, [own & ~np.isnan(one) for own, one in zip(free, apart, strict=True)])
    if not baseline:
        possible &= ~model.everywhere[:, None]
    likely = _prior(model, possible)
    ran = Counter(one.test for one in seen)
    repeats = [ran[one.test] for one in seen]
    found = []
    for scale in _scales(apart, free, noise):
        residuals = [one - scale * own for one, own in zip(apart, free, strict=True)]
        terms = [_Terms(*its, noise) for its in zip(effects, residuals, repeats, strict=True)]
        odds = sum(float(one.weight @ one.healthy) for one in terms) - 0.5 * (scale / USUAL_SCALE) ** 2
        found += [replace(one, weights=one.weights + odds, scale=scale) for one in _rows(terms, likely)]
    places, shares = (np.concatenate([getattr(one, key) for one in found]) for key in ("places", "shares"))
    weights = np.concatenate([one.weights for one in found])
    often, scales = (np.repeat([getattr(one, key) for one in found], [len(one.weights) for one in found])
                     for key in ("often", "scale"))  # fmt: skip
    order = np.argsort(-weights, kind="stable")
    order = order[weights[order] > weights[order[0]] - _NEGLIGIBLE]
    chances = np.exp(weights[order] - weights[order[0]])
    best = order[0]
    residuals = [one - scales[best] * own for one, own in zip(apart, free, strict=True)]
    likeliest = _fault(places[best], shares[best])
    terms = [_Terms(*its, noise) for its in zip(effects, residuals, repeats, strict=True)]
    active = tuple(one.is_slow(likeliest, often[best] == 1) for one in terms)
    strays = _strays(seen, terms, [likeliest if there else () for there in active])
    raw = sum((_power(model, *its, noise) for its in zip(seen, effects, repeats, strict=True)), np.zeros(likely.shape))
    shown = possible.any(axis=1)
    power = np.logaddexp.reduce((raw + likely)[shown], axis=1) - np.logaddexp.reduce(likely[shown], axis=1)
    power[crossed[shown]] = 0.0
    untested = np.zeros(len(model.places))
    untested[shown] = np.exp(power)
    return Posterior(
        places[order], shares[order], often[order], scales[order], chances / chances.sum(), math.exp(scales[best]),
        active, tuple(strays), int((~possible).sum()), untested,
    )  # fmt: skip


def _power(
    model: FaultModel, one: Observation, effects: Effects, repeats: int, noise: float
) -> npt.NDArray[np.float32]:
    """What the healthy rates of a test would add to the logarithm of the likelihood, by place and share."""
    absent = np.isnan(one.rates)
    key = (one.test, repeats, noise)
    if not absent.any() and key in model.powers:
        return model.powers[key]
    found = _Terms(effects, np.where(absent, np.nan, 0.0), repeats, noise).gains(len(model.places)).astype(np.float32)
    if not absent.any():
        model.powers[key] = found
    return found


def _rows(terms: Sequence[_Terms], likely: Floats) -> list[_Rows]:
    """Faults with the logarithms of their probabilities."""
    count = len(likely)
    each = [one.gains(count) for one in terms]
    raw = sum(each, np.zeros(likely.shape))
    single = raw + likely
    alone = math.log(FAULTY * (1 - TWO))
    rows = [_Rows.of(np.array([[math.log(1 - FAULTY)]]), (-1, -1)),
            _Rows.of(single + alone + math.log(1 - PASSING))]  # fmt: skip
    slow = np.flatnonzero(
        [gain > _SLOW_ONCE for gain in np.max([one.max(axis=1) for one in each], axis=0)] if each else []
    )
    for share in OFTEN[1:] if len(slow) and len(each) > 1 else ():
        gains = np.full(likely.shape, -np.inf)
        gains[slow] = likely[slow] + alone + math.log(PASSING / len(OFTEN[1:]))
        for one in each:
            gains[slow] += np.logaddexp(math.log(share) + one[slow], math.log(1 - share))
        rows.append(replace(_Rows.of(gains), often=share))
    if terms:
        # The best share of each place, and the best of these places.
        best = single.argmax(axis=1)
        firsts = np.argsort(-single[np.arange(count), best])[:FOLLOWED].tolist()
        for number, first in enumerate(firsts):
            share = int(best[first])
            gains = single + single[first, share] + math.log(FAULTY * TWO)
            for one in terms:
                one.correct(gains, first, share)
            gains[firsts[: number + 1]] = -np.inf
            rows.append(_Rows.of(gains, (first, share)))
    return rows


def _fault(places: Ints, shares: Ints) -> Fault:
    return tuple((int(place), int(share)) for place, share in zip(places, shares, strict=True) if place >= 0)


@dataclass(frozen=True)
class _Rows:
    """Faults with the same first place, or of single places: logarithms of their probabilities, and what they share."""

    places: Ints
    shares: Ints
    weights: Floats
    often: float = 1.0
    scale: float = 0.0

    @classmethod
    def of(cls, weights: Floats, first: tuple[int, int] | None = None) -> _Rows:
        """Take a table by place and share; `first` is slow as well, and (-1, -1) stands for the healthy machine."""
        if first == (-1, -1):
            nothing = np.full((1, 2), -1)
            return cls(nothing, nothing, weights[0])
        # The healthy machine has 1 - FAULTY.
        at = np.argwhere(weights > max(weights.max(initial=-np.inf), math.log(1 - FAULTY)) - _NEGLIGIBLE)
        other = np.broadcast_to(np.array(first or (-1, -1)), at.shape)
        places = np.stack([at[:, 0], other[:, 0]], axis=1)
        shares = np.stack([at[:, 1], other[:, 1]], axis=1)
        if first:
            order = np.argsort(places, axis=1)
            places, shares = (np.take_along_axis(one, order, axis=1) for one in (places, shares))
        return cls(places, shares, weights[at[:, 0], at[:, 1]])


def _prior(model: FaultModel, possible: np.ndarray) -> Floats:
    """Logarithm of the probability of each place and share, if one is slow: all parts and all shares are as likely."""
    parts = (
        np.array([[float(len(place.parts))] for place in model.places]) * SHARES * possible
    )  # steps grow with shares
    with np.errstate(divide="ignore"):
        found: Floats = np.log(parts / max(1.0, parts.sum()))
    return found


def _crossed_by_all(model: FaultModel, effects: Sequence[Effects], free: Sequence[Flags]) -> Flags:
    """Places that all results cross which give the scale: a fault there and the scale look the same."""
    count = np.zeros(len(model.places))
    for one, own in zip(effects, free, strict=True):
        count += np.bincount(one.place, own[one.cell], len(model.places))
    found: Flags = count == sum(int(own.sum()) for own in free)
    return found & (count > 0)


def _residuals(
    seen: Sequence[Observation], effects: Sequence[Effects], baseline: Mapping[Cell, float]
) -> tuple[list[Floats], list[Flags]]:
    """Of each cell the logarithm of measured over healthy, and whether that is modelled, so that the scale is free."""
    apart, free = [], []
    for one, its in zip(seen, effects, strict=True):
        usual = np.array([baseline.get(cell, math.nan) for cell in one.test.cells])
        free.append(np.isnan(usual))
        apart.append(np.log(np.maximum(one.rates, 1.0)) - np.where(free[-1], its.base, np.log(usual)))
    return apart, free


def _scales(apart: Sequence[Floats], free: Sequence[Flags], noise: float) -> list[float]:
    """Logarithms of scales to try: what many cells agree on, which need not be most of them."""
    pool = [one[own & ~np.isnan(one)] for one, own in zip(apart, free, strict=True)]
    # Tests with few cells look where the fault is.
    every = np.concatenate([one for one in pool if len(one) >= _LEAST_CELLS] or pool or [np.zeros(0)])
    found: list[float] = []
    middles = [float(np.quantile(every, share)) for share in (0.5, 0.75, 0.9)] if len(every) else []
    for middle in (*middles, 0.0):
        near = every[np.abs(every - middle) < 3 * noise]
        middle = float(near.mean()) if len(near) else middle
        if all(abs(middle - other) > noise for other in found):
            found.append(middle)
    return found


class _Terms:
    """What one observation adds to the logarithm of the likelihood."""

    def __init__(self, effects: Effects, residual: Floats, repeats: int, noise: float) -> None:
        self.effects, self.residual, self.noise = effects, residual, noise
        self.weight = 1 / np.where(effects.base_shared, repeats, 1)  # of each cell
        self.healthy = self.density(residual, effects.base_shared)

    def density(self, apart: Floats, shared: Flags) -> Floats:
        """Logarithm of the density of deviations; 0 where nothing was measured."""
        width = np.where(shared, math.hypot(self.noise, UNEVEN), self.noise)
        normal = np.exp(-0.5 * (apart / width) ** 2) / (width * math.sqrt(2 * math.pi))
        stray = np.where(shared, CONTENDED_STRAY, STRAY)
        found = np.log((1 - stray) * normal + stray / _STRAY_SPAN)
        return np.where(np.isnan(apart), 0.0, found)

    def gains(self, count: int) -> Floats:
        """By place and share, over the healthy machine."""
        one = self.effects
        found = np.zeros((count, len(SHARES)))
        places, first = np.unique(one.place, return_index=True)
        if len(places):
            found[places] = np.add.reduceat(self._gain(slice(None), one.drop, self.healthy), first, axis=0)
        return found

    def is_slow(self, fault: Fault, always: bool) -> bool | None:
        """Return whether a fault was there: always, or if it explains the results better; None if it changes none."""
        lower = drops(self.effects, fault)
        if always or not (lower < -self.noise).any():
            return True if (lower < 0).any() else None
        gain = self.density(self.residual - lower, self.effects.base_shared) - self.healthy
        return bool(self.weight @ gain > 0)

    def correct(self, gains: Floats, place: int, share: int) -> None:
        """Make gains of second places out of those of single ones: they differ where both slow the same cell."""
        one = self.effects
        base, shared = np.zeros(len(one.base)), one.base_shared.copy()
        its = one.of(place)
        base[one.cell[its]] = one.drop[its, share]
        shared[one.cell[its]] |= one.shared[its] & (one.drop[its, share] < 0)
        both = np.flatnonzero(base[one.cell] < 0)
        alone = self._gain(both, one.drop[both], self.healthy)
        added = self._gain(both, one.drop[both], self.density(self.residual - base, shared))
        # The slower of the two decides.
        added[one.drop[both] >= base[one.cell[both]][:, None]] = 0.0
        np.add.at(gains, one.place[both], added - alone)

    def _gain(self, entries: slice | Ints, drop: Floats, before: Floats) -> Floats:
        """What slower cells add, over what their density was before."""
        cell = self.effects.cell[entries]
        # Where a link is wide enough for all, their shares do not matter; nor those of another link, once the slow one
        # gives a message much less than it could have there.
        contended = self.effects.base_shared[cell][:, None]
        shared = np.where(drop < 0, self.effects.shared[entries][:, None] | (contended & (drop > _NARROWER)), contended)
        found: Floats = self.density(self.residual[cell][:, None] - drop, shared) - before[cell][:, None]
        return found * self.weight[cell][:, None]


def _strays(
    seen: Sequence[Observation], terms: Sequence[_Terms], likely: Sequence[Fault]
) -> list[tuple[str, Pair, float]]:  # fmt: skip
    """Cells that the most likely fault, where it is there, leaves unexplained; contended ones may have any rate."""
    found = []
    for one, its, fault in zip(seen, terms, likely, strict=True):
        apart = its.residual - drops(its.effects, fault)
        found += [
            (one.source or one.test.name, one.test.cells[at][0], math.exp(apart[at]))
            for at in np.flatnonzero((np.abs(np.nan_to_num(apart)) > 5 * its.noise) & ~its.effects.base_shared)
        ]
    return found


def drops(effects: Effects, fault: Fault) -> Floats:
    """What a fault adds to the logarithm of each cell's rate."""
    found = np.zeros(len(effects.base))
    for place, share in fault:
        its = effects.of(place)
        found[effects.cell[its]] = np.minimum(found[effects.cell[its]], effects.drop[its, share])
    return found
