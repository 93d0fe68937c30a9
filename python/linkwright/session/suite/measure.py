"""Measuring a list of experiments: launches of the whole list, then of what is not precise enough.

    launch 0    e7 e1 e4 ...      every launch runs the list once, in an order shuffled anew;
    launch 1    e2 e7 e5 ...      the interval of an experiment is taken over its launches
    ...
    launch 6+   e2 e5 ...         what is not within the target yet: first what a reader looks at, the widest first

Six launches give an interval, so nothing is started for which the budget does not suffice for six; see `budget`.
Everything finished is in the journal before the next thing starts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from linkwright.ask.question import Question
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.executors.measured import Measured
from linkwright.executors.protocol import Launch, Options
from linkwright.store.journal import Journal
from linkwright.store.record import Ended, Outcome, Record, to_json

from .budget import MAX_LAUNCHES, Needs, affordable, by_worth, shares_s

# An experiment that says how long a share it needs gets this much more.
SLACK = 1.2
# How far a launch may exceed the whole budget, in seconds and as a share of it: then one operation takes too long.
GRACE_S, GRACE = 3.0, 0.25
# A rate that grows by less from one size to the next has reached its plateau.
RISE = 1.05


@dataclass
class State:
    """What is known so far; made again from the journal when a run is resumed."""

    launches: dict[str, dict[int, Record]] = field(default_factory=dict)  # experiment -> launch -> record
    ended: dict[str, Ended] = field(default_factory=dict)
    short: dict[str, Ended] = field(default_factory=dict)  # for whose share of a launch was too short so far

    def take(self, outcome: Outcome | None) -> None:
        """Add one outcome."""
        if isinstance(outcome, Record):
            self.launches.setdefault(outcome.experiment, {})[outcome.launch] = outcome
        elif outcome is not None:
            (self.short if outcome.status == "out-of-time" else self.ended)[outcome.experiment] = outcome

    def records(self, key: str) -> list[Record]:
        """The launches of an experiment, in order."""
        return [self.launches[key][i] for i in sorted(self.launches.get(key, ()))]

    def measured(self, key: str) -> Measured | None:
        """All launches of an experiment together; None if no launch kept a sample."""
        return Measured.of(self.records(key))

    def wants(self, question: Question, launch: int, target: float) -> bool:
        """Whether launch number `launch` should measure this experiment, to come within `target`."""
        key = question.key
        if question.rising and not self.rises(*question.rising):
            return False
        if key in self.ended or launch in self.launches.get(key, ()):
            return False
        if launch < MIN_VALUES:
            return True
        measured = self.measured(key)
        return measured is None or not measured.settled(target)

    def rises(self, smaller: str, larger: str, ratio: int) -> bool:
        """Whether the rate still rises by `RISE` from one size to a larger one, whose ratio is given."""
        first, second = self.measured(smaller), self.measured(larger)
        if first is None or second is None:
            return False
        return second.summary().median * RISE < first.summary().median * ratio


def measure(
    questions: list[Question],
    budget_s: float,
    target: float,
    options: Options,
    state: State,
    journal: Journal,
    progress: Callable[[int, int, str], None],
    launch: Callable[[Launch], Iterator[Outcome]],
    folder: Path | None = None,
) -> None:
    """Run launches until all experiments are within the target, ended, or the time budget is used up."""
    end, needs, shares = time.monotonic() + budget_s, Needs(), {}
    for number in range(MAX_LAUNCHES):
        work = [e for e in questions if state.wants(e, number, target)]
        left = end - time.monotonic()
        if not work and number < MIN_VALUES:
            continue  # a resumed run has these launches already
        if left <= 0:
            return
        missing = max(1, MIN_VALUES - number)
        if missing > 1:
            work = affordable(work, left, missing, needs)
        else:
            work = by_worth(work, questions, state.measured, left, needs)
        if not work:
            return
        if missing == MIN_VALUES:
            # What has no time for all launches of an interval is not started later either.
            started = {e.key for e in work} | state.launches.keys()
            questions = [e for e in questions if e.key in started or e.rising]
        random.Random(f"{options.seed}/{number}").shuffle(work)
        # The first tells how long a launch takes to start, so it should be short itself.
        work.insert(0, work.pop(work.index(min(work, key=needs.of))))
        shares = shares or shares_s(questions, work, left)
        stop_s = left + max(GRACE_S, GRACE * budget_s)
        asked = Launch(number, work, left / missing, options, folder, shares, stop_s)
        for done, outcome in enumerate(_timed(launch(asked), work, needs), 1):
            if isinstance(outcome, Ended) and outcome.need_s:
                shares[outcome.experiment] = needs.by_key[outcome.experiment] = SLACK * outcome.need_s
            state.take(outcome)
            journal.append(to_json(outcome))
            progress(number, done, f"launch {number + 1}: {done} of {len(work)}  {outcome.experiment}")


def _timed(outcomes: Iterator[Outcome], work: list[Question], needs: Needs) -> Iterator[Outcome]:
    """The same outcomes; what each took is what it will need."""
    expected = {question.key: needs.of(question) for question in work}
    before, first = time.monotonic(), True
    for outcome in outcomes:
        took = time.monotonic() - before
        if first:
            needs.launch_s = max(0.0, took - expected[outcome.experiment])
        else:
            needs.by_key[outcome.experiment] = took
        first = False
        yield outcome
        before = time.monotonic()
