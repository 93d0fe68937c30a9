"""Measuring a list of experiments: launches of the whole list until enough of them agree.

    launch 0    e7 e1 e4 ...      every launch runs the list once, in an order shuffled anew;
    launch 1    e2 e7 e5 ...      the interval of an experiment is taken over its launches
    ...
    launch 6+                     only what is not within the target yet, while the time budget lasts

The interval of six launches spans all of them; from nine on it tolerates one outlier. So a budget that is long enough
is shared among nine. Everything finished is in the journal before the next thing starts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from linkwright.executors.measured import Measured
from linkwright.executors.protocol import Launch, Options
from linkwright.experiment import Experiment
from linkwright.stats.interval import MIN_VALUES
from linkwright.store.journal import Journal
from linkwright.store.record import Ended, Outcome, Record, to_json

MAX_LAUNCHES = 50
# Launches that share the budget if each gets so much time, for itself and for each of its experiments.
GOOD_LAUNCHES = 9
LEAST_LAUNCH_S = 2.0
LEAST_EXPERIMENT_S = 0.05


@dataclass
class State:
    """What is known so far; made again from the journal when a run is resumed."""

    launches: dict[str, dict[int, Record]] = field(default_factory=dict)  # experiment -> launch -> record
    ended: dict[str, Ended] = field(default_factory=dict)

    def take(self, outcome: Outcome | None) -> None:
        """Add one outcome."""
        if isinstance(outcome, Record):
            self.launches.setdefault(outcome.experiment, {})[outcome.launch] = outcome
        elif outcome is not None:
            self.ended[outcome.experiment] = outcome

    def records(self, key: str) -> list[Record]:
        """The launches of an experiment, in order."""
        return [self.launches[key][i] for i in sorted(self.launches.get(key, ()))]

    def measured(self, key: str) -> Measured | None:
        """All launches of an experiment together; None if no launch kept a sample."""
        return Measured.of(self.records(key))

    def wants(self, experiment: Experiment, launch: int, target: float) -> bool:
        """Whether launch number `launch` should measure this experiment, to come within `target`."""
        key = experiment.key
        if key in self.ended or launch in self.launches.get(key, ()):
            return False
        if launch < MIN_VALUES:
            return True
        measured = self.measured(key)
        return measured is None or not measured.settled(target)


def measure(
    experiments: list[Experiment],
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
    end = time.monotonic() + budget_s
    planned = planned_launches(budget_s, len(experiments))
    for number in range(MAX_LAUNCHES):
        work = [e for e in experiments if state.wants(e, number, target)]
        random.Random(f"{options.seed}/{number}").shuffle(work)
        left = end - time.monotonic()
        if not work or left <= 0:
            if not work and number < MIN_VALUES:
                continue  # a resumed run has these launches already
            return
        # Leave an equal share to each launch that is planned; after those use what is left.
        asked = Launch(number, work, left / max(1, planned - number), options, folder)
        for done, outcome in enumerate(launch(asked), 1):
            state.take(outcome)
            journal.append(to_json(outcome))
            progress(number, done, f"launch {number + 1}: {done} of {len(work)}")


def planned_launches(budget_s: float, experiments: int) -> int:
    """How many launches share the budget: those that an interval needs, or more if there is time."""
    long_enough = budget_s / GOOD_LAUNCHES >= max(LEAST_LAUNCH_S, LEAST_EXPERIMENT_S * experiments)
    return GOOD_LAUNCHES if long_enough else MIN_VALUES
