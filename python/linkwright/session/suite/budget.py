"""What a time budget buys: launches for an interval first, then more of them where they buy precision.

needs       seconds that each experiment takes in a launch: an estimate first, then what it took
affordable  the experiments that get the launches of an interval; the cheapest first, so that most get them
plan        the same before the run, for people, with the budget that would do for all
matters     whether a reader looks at it: all but the algorithms that are clearly slower than the fastest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from linkwright.ask.experiment import Experiment
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.executors.measured import Measured

MAX_LAUNCHES = 50
# The interval over this many launches excludes three of them at each end.
GOOD_LAUNCHES = 16
# Before the first launch: a process starts, and an experiment warms up, fills its memory and takes 100 samples.
LAUNCH_S = 0.3
LEAST_S = 0.009
FILL_BYTES_PER_S = 0.3e9


def estimate_s(experiment: Experiment) -> float:
    """Seconds that an experiment takes in a launch, before anything is known of the machine."""
    return LEAST_S + (experiment.size_bytes or 0) * experiment.ranks / FILL_BYTES_PER_S


@dataclass
class Needs:
    """Seconds that experiments and the start of a launch take."""

    by_key: dict[str, float] = field(default_factory=dict)
    launch_s: float = LAUNCH_S

    def of(self, experiment: Experiment) -> float:
        """Seconds in a launch: what it took the last time, or the estimate."""
        return self.by_key.get(experiment.key) or estimate_s(experiment)

    def launch_of(self, experiments: Iterable[Experiment]) -> float:
        """Seconds of one launch of these."""
        return self.launch_s + sum(map(self.of, experiments))


@dataclass(frozen=True)
class Plan:
    """What will be measured, said before it is."""

    started: tuple[Experiment, ...]
    left_out: tuple[Experiment, ...]  # there is no time for an interval of these
    launches: int  # of each experiment, about
    enough_s: float  # the budget that would do for all

    def words(self, budget_s: float) -> list[str]:
        """Lines that say it: `62 experiments, about 14 launches each in 60 s`."""
        count, out = len(self.started), len(self.left_out)
        launches = "one launch" if self.launches == 1 else f"about {self.launches} launches each"
        if not out:
            return [f"{count} experiment{'s' * (count != 1)}, {launches} in {budget_s:g} s"]
        return [
            f"{count} of {count + out} experiments fit into {budget_s:g} s, {launches};",
            f"--time-budget {self.enough_s:.0f}s has time for an interval of each of the others, too",
        ]


def plan(experiments: Sequence[Experiment], budget_s: float, needs: Needs) -> Plan:
    """What the budget buys, as far as it can be told beforehand."""
    started = affordable(experiments, budget_s, MIN_VALUES, needs)
    chosen = {experiment.key for experiment in started}
    left_out = tuple(experiment for experiment in experiments if experiment.key not in chosen)
    launches = int(budget_s / needs.launch_of(started))
    enough_s = MIN_VALUES * needs.launch_of(experiments)
    return Plan(tuple(started), left_out, max(1, min(launches, MAX_LAUNCHES)), 5.0 * math.ceil(enough_s / 5))


def shares_s(experiments: Sequence[Experiment], first: Sequence[Experiment], left_s: float) -> dict[str, float]:
    """Seconds that each experiment may sample in a launch, by key; `first`: those of the first launch.

    Launches differ more than the samples of one launch, so the shares aim at `GOOD_LAUNCHES` short launches; but no
    share is below the estimate.
    """
    estimates_s = sum(map(estimate_s, first))
    scale = max(1.0, (left_s / GOOD_LAUNCHES - LAUNCH_S) / estimates_s)
    return {experiment.key: scale * estimate_s(experiment) for experiment in experiments}


def affordable(experiments: Sequence[Experiment], left_s: float, launches: int, needs: Needs) -> list[Experiment]:
    """The experiments for which there is time for that many launches, in their order; at least the cheapest one."""
    rest = left_s / launches - needs.launch_s
    chosen: set[str] = set()
    for experiment in sorted(experiments, key=needs.of):
        rest -= needs.of(experiment)
        if chosen and rest < 0:
            break
        chosen.add(experiment.key)
    return [experiment for experiment in experiments if experiment.key in chosen]


def by_worth(
    wanted: Sequence[Experiment],
    experiments: Iterable[Experiment],
    measured: Callable[[str], Measured | None],
    left_s: float,
    needs: Needs,
) -> list[Experiment]:
    """The wanted ones for which one more launch has time: what matters first, the widest interval first.

    What matters is judged among all `experiments`: the fastest algorithm may be precise already.
    """
    found = {experiment: measured(experiment.key) for experiment in experiments}
    fastest = _fastest(found)

    def worth(experiment: Experiment) -> tuple[bool, float]:
        its = found[experiment]
        precision = its.summary().precision if its else None
        return (not _matters(experiment, its, fastest), -math.inf if precision is None else -precision)

    rest, chosen = left_s - needs.launch_s, []
    for experiment in sorted(wanted, key=worth):
        if needs.of(experiment) <= rest:
            rest -= needs.of(experiment)
            chosen.append(experiment)
    return chosen


def _group(experiment: Experiment) -> tuple[object, ...]:
    """Algorithms that answer one question."""
    return (experiment.part, experiment.collective, experiment.ranks, experiment.size_bytes, experiment.root)


def _fastest(found: dict[Experiment, Measured | None]) -> dict[tuple[object, ...], float]:
    """The latest time that the fastest algorithm of each group may have, in ns."""
    least: dict[tuple[object, ...], float] = {}
    for experiment, measured in found.items():
        if experiment.collective and measured:
            summary = measured.summary()
            most = summary.ci_high or summary.max
            least[_group(experiment)] = min(most, least.get(_group(experiment), math.inf))
    return least


def _matters(experiment: Experiment, measured: Measured | None, fastest: dict[tuple[object, ...], float]) -> bool:
    if not experiment.collective or measured is None:
        return True
    summary = measured.summary()
    return (summary.ci_low or summary.min) <= fastest[_group(experiment)]
