"""The next test: the one that is expected to tell most about where the fault is.

A test tells two faults apart if the rates that they lead to differ by more than the noise. What it tells is the mutual
information of its outcome and the slow places, over the likely faults: the entropy of its outcomes, less that which
comes from how slow a place is. An outcome is kept as a number, a random sum of the cells that are slower, so that
equal numbers are equal outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .effects import SHARES, Effects, FaultModel
from .posterior import NOISE, UNEVEN, Observation, Posterior
from .rounds import Test

SURE = 0.95  # probability of a verdict
MOST_WAITS = 8  # tests in which a fault that went may come back; after that it is not waited for
TESTED = 0.25  # a machine is healthy once every place is so much less likely to be slow than before, or less
REPEATED = 1e-3  # bits by which a test that was run before counts less, where none tells anything
UNLIKELY = 1e-9  # probability of each place at least, as of a second fault that no test has shown
MOST_FAULTS = 300  # that a choice looks at
_APART = 4.0  # times the noise: outcomes closer than that are one
_MIX = np.uint64(0x9E3779B97F4A7C15)
Codes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class NextTest:
    """A test of the library and the bits that it is expected to tell."""

    test: Test
    bits: float


@dataclass(frozen=True)
class _Likely:
    """Faults as columns: (fault, first or second) place and share, -1 for none; their weights and scales."""

    places: npt.NDArray[np.int64]
    shares: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]

    def which(self) -> Codes:
        """A number for each set of slow places."""
        found: Codes = self.places[:, 0].astype(np.uint64) * _MIX + self.places[:, 1].astype(np.uint64)
        return found

    def joined(self, other: _Likely) -> _Likely:
        """These and others."""
        return _Likely(*(np.concatenate(both) for both in zip(vars(self).values(), vars(other).values(), strict=True)))

    def codes(self, table: Codes) -> Codes:
        """The outcome of each fault."""
        its = np.where(self.places >= 0, table[self.places, self.shares], np.uint64(0))
        found: Codes = its.sum(axis=1, dtype=np.uint64)
        return found


class RoundChooser:
    """Chooses tests from the library of a model.

    Args:
        model: of the machine.
        noise: relative deviation of a rate from run to run.
    """

    def __init__(self, model: FaultModel, noise: float = NOISE) -> None:
        self.model, self.noise = model, noise
        self._tables = [self._table(effects) for effects in model.effects]

    def _table(self, effects: Effects) -> Codes:
        """The outcome of each place at each share."""
        draw = _draw(effects)
        level = (-effects.drop / self._width(effects)[:, None]).round().astype(np.uint64)
        found = np.zeros((len(self.model.places), len(SHARES)), np.uint64)
        places, first = np.unique(effects.place, return_index=True)
        if len(places):
            found[places] = np.add.reduceat(draw[effects.cell][:, None] * level, first, axis=0)
        return found

    def next(self, known: Posterior, done: Sequence[Test], sure: bool = False) -> NextTest:
        """Return the most informative test; one that was run before counts less each time.

        While a fault that went may come back, only tests that it would slow are considered.

        Args:
            known: what is known.
            done: tests that were run.
            sure: whether a fault has been found: then places that no test has shown count most.
        """
        likely = _Likely(
            *(one[:MOST_FAULTS] for one in (known.places, known.shares, known.chances, known.scales - known.scales[0]))
        )
        # Many places that are each hardly likely, as those without a test, together may be what is not known.
        chances = known.of_places(len(self.model.places))
        spread = self._spread(likely, chances + (known.untested > TESTED) if sure else chances)
        every = likely.joined(spread)
        ran = [frozenset(one.cells) for one in done]  # logs list the pairs of a round in another order
        which = known.sets()[0][0]
        waits = known.waits(which) is not None
        found = []
        for test, effects, table in zip(self.model.library, self.model.effects, self._tables, strict=True):
            if waits and not any(len(effects.cell[effects.of(place)]) for place in which):
                continue
            times = ran.count(frozenset(test.cells))
            bits = _information(every, np.concatenate([self._codes(effects, likely), spread.codes(table)]))
            found.append(NextTest(test, bits / (1 + times) - REPEATED * times))
        return max(found, key=lambda one: one.bits)

    def _spread(self, listed: _Likely, chances: npt.NDArray[np.float64]) -> _Likely:
        """Every place alone, at two shares of its rate, with the probability that the listed faults leave to it."""
        left = chances.copy()
        for its in listed.places.T:
            np.subtract.at(left, its[its >= 0], listed.weights[its >= 0])
        left = np.maximum(left, UNLIKELY)
        places = np.arange(len(left))
        shares = [int(np.abs(SHARES - share).argmin()) for share in (0.25, 0.75)]
        slow, of = np.repeat(places, len(shares)), np.tile(shares, len(left))
        none = np.full(len(slow), -1)
        return _Likely(
            np.stack([slow, none], 1), np.stack([of, none], 1), np.repeat(left / len(shares), len(shares)),
            np.zeros(len(slow)),
        )  # fmt: skip

    def _codes(self, effects: Effects, likely: _Likely) -> Codes:
        """The outcome of each fault; of two places that slow the same cell, the slower one counts."""
        width, common = self._width(effects), likely.scales[:, None] / (_APART * self.noise)
        levels = np.zeros((len(likely.weights), len(effects.base)))
        for row, fault in zip(levels, zip(likely.places.tolist(), likely.shares.tolist(), strict=True), strict=True):
            for place, share in zip(*fault, strict=True):
                if place >= 0:
                    its = effects.of(place)
                    cell = effects.cell[its]
                    row[cell] = np.minimum(row[cell], effects.drop[its, share] / width[its])
        found: Codes = (-levels - common).round().astype(np.int64).astype(np.uint64) @ _draw(effects)
        return found

    def _width(self, effects: Effects) -> npt.NDArray[np.float64]:
        """How far apart rates of each entry are two outcomes."""
        return _APART * np.where(effects.shared, np.hypot(self.noise, UNEVEN), self.noise)

    def first(self, count: int) -> list[NextTest]:
        """Return tests that together tell places apart, as far as `count` of them can."""
        none = np.full((1, 2), -1)
        sound = _Likely(none, none, np.ones(1), np.zeros(1))
        likely = sound.joined(self._spread(sound, np.full(len(self.model.places), 2.0)))
        joint = np.zeros(len(likely.weights), np.uint64)
        found: list[NextTest] = []
        left = list(range(len(self.model.library)))
        known = 0.0
        while left and len(found) < count:
            codes = {at: joint * _MIX + likely.codes(self._tables[at]) for at in left}
            bits = {at: _information(likely, its) for at, its in codes.items()}
            best = max(left, key=lambda at: (round(bits[at], 6), -at))
            if found and bits[best] <= known + 1e-3:
                break
            found.append(NextTest(self.model.library[best], bits[best] - known))
            joint, known = codes[best], bits[best]
            left.remove(best)
        return found


def _draw(effects: Effects) -> Codes:
    """A random number for each cell."""
    return np.random.default_rng(1).integers(1, 1 << 63, len(effects.base), dtype=np.uint64)


def _information(likely: _Likely, codes: Codes) -> float:
    """Bits that outcomes tell about which places are slow."""
    which = likely.which()
    both: Codes = which * _MIX ^ codes * np.uint64(0xD6E8FEB86659FD93)
    return sum(sign * _entropy(keys, likely.weights) for sign, keys in ((1, codes), (1, which), (-1, both)))


def _entropy(keys: Codes, weights: npt.NDArray[np.float64]) -> float:
    _, at = np.unique(keys, return_inverse=True)
    share = np.bincount(at, weights)
    share = share[share > 0] / share.sum()
    return float(-(share * np.log2(share)).sum())


@dataclass(frozen=True)
class SearchState:
    """The state of a search.

    Attributes:
        word: `found`, `healthy` or `open`. A fault that went is not found before it has come back: something else may
            have kept a host busy for a while.
        which: the slow places of the most likely answer; empty if healthy.
        chance: its probability.
        covered: whether the tests can have shown every place. A second fault may be where they cannot.
    """

    word: str
    which: tuple[int, ...]
    chance: float
    covered: bool


def verdict(known: Posterior, seen: Sequence[Observation], sure: float = SURE) -> SearchState:
    """Return whether the search can end."""
    which, chance = known.sets()[0]
    covered = bool((known.untested <= TESTED).all())
    tested = known.waits(which) is None if which else covered
    word = "open" if chance < sure or not seen or not tested else "found" if which else "healthy"
    return SearchState(word, which, chance, covered)
