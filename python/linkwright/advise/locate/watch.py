"""Has a rate changed? A sequential test for every message of the tests that are repeated.

    learn    the mean of the first `LEARNT` logarithms of a rate is what is expected of it
    then     S = max(0, S + min((expected - measured) / noise - DRIFT, limit / 3));  changed once S > limit

The limit follows from the stated number of false alarms a day: between two of them, S of one message runs on average
for (exp(2 d b) - 1 - 2 d b) / (2 d^2) samples, with b = limit + 1.166 (Siegmund, Sequential Analysis, 1985), where d is
`DRIFT` less twice the error of the learnt mean. Increments are cut, so one wild rate, or two, never are an alarm.
After an alarm the new rate is the expected one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .effects import FaultModel
from .parts import Floats
from .posterior import UNEVEN, Observation
from .rounds import Cell, Test

LEARNT = 6  # samples of a mean
DRIFT = 2.5  # times the noise: half of the drop that is found soonest
_SIEGMUND = 1.166
LEAST_ROUNDS = 3  # samples that an alarm takes


@dataclass(frozen=True)
class RateChange:
    """A message that has become slower.

    Attributes:
        test, cell: which.
        before, now: bytes per second.
    """

    test: Test
    cell: Cell
    before: float
    now: float


def limit(cells: int, rounds_a_day: float, alarms_a_day: float) -> float:
    """Return the sum at which a message has changed.

    Args:
        cells: messages that are watched.
        rounds_a_day: samples of each.
        alarms_a_day: false ones, of all messages together.
    """
    drift = DRIFT - 2 / math.sqrt(LEARNT)
    wanted = max(1.0, cells * rounds_a_day / alarms_a_day)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        run = 2 * drift * (middle + _SIEGMUND)
        low, high = (middle, high) if (math.exp(min(run, 500.0)) - 1 - run) / (2 * drift**2) < wanted else (low, middle)
    return high


@dataclass
class _Watched:
    """One test: its samples until it is learnt, what is expected, and the sums."""

    width: Floats
    seen: list[Floats] = field(default_factory=list)
    expected: Floats | None = None
    sums: Floats = field(default_factory=lambda: np.zeros(0))
    latest: list[Floats] = field(default_factory=list)


class RateWatch:
    """Repeated tests of one machine.

    Args:
        model: of the machine.
        tests: that are repeated.
        noise: relative deviation of a rate from run to run.
        interval_s: between rounds.
        alarms_a_day: false ones.
    """

    def __init__(
        self, model: FaultModel, tests: Sequence[Test], noise: float, interval_s: float, alarms_a_day: float
    ) -> None:
        self.tests = list(tests)
        self.limit = limit(sum(len(test.cells) for test in tests), 86_400 / interval_s, alarms_a_day)
        self._of = {
            test: _Watched(np.where(model.of(test).base_shared, math.hypot(noise, UNEVEN), noise)) for test in tests
        }

    def expected(self, test: Test) -> Floats:
        """Bytes per second of each cell; NaN while they are learnt."""
        its = self._of[test].expected
        return np.full(len(test.cells), np.nan) if its is None else np.exp(its)

    def add(self, one: Observation) -> list[RateChange]:
        """Take results of a test, and return what has changed."""
        its, rates = self._of[one.test], np.log(one.rates)
        if its.expected is None:
            its.seen.append(rates)
            if len(its.seen) == LEARNT:
                its.expected, its.sums = np.nanmean(its.seen, axis=0), np.zeros(len(rates))
            return []
        its.latest = [*its.latest[1 - LEAST_ROUNDS :], rates]
        step = np.nan_to_num((its.expected - rates) / its.width - DRIFT)
        its.sums = np.maximum(0.0, its.sums + np.minimum(step, self.limit / LEAST_ROUNDS))
        found = []
        for at in np.flatnonzero(its.sums >= self.limit * (1 - 1e-9)).tolist():
            now = float(np.nanmean([row[at] for row in its.latest]))
            found.append(RateChange(one.test, one.test.cells[at], math.exp(its.expected[at]), math.exp(now)))
            its.expected[at], its.sums[at] = now, 0.0
        return found
