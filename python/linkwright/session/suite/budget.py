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

from linkwright.ask.question import Collective, Question
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.executors.measured import Measured

MAX_LAUNCHES = 50
# The interval over this many launches excludes three of them at each end.
GOOD_LAUNCHES = 16
# Before the first launch: a process starts, and an experiment warms up, fills its memory and takes 100 samples.
LAUNCH_S = 0.3
LEAST_S = 0.009
FILL_BYTES_PER_S = 0.3e9


def estimate_s(question: Question) -> float:
    """Seconds that an experiment takes in a launch, before anything is known of the machine."""
    return LEAST_S + (question.size_bytes or 0) * question.ranks / FILL_BYTES_PER_S


@dataclass
class Needs:
    """Seconds that experiments and the start of a launch take."""

    by_key: dict[str, float] = field(default_factory=dict)
    launch_s: float = LAUNCH_S

    def of(self, question: Question) -> float:
        """Seconds in a launch: what it took the last time, or the estimate."""
        return self.by_key.get(question.key) or estimate_s(question)

    def launch_of(self, questions: Iterable[Question]) -> float:
        """Seconds of one launch of these."""
        return self.launch_s + sum(map(self.of, questions))


@dataclass(frozen=True)
class Plan:
    """What will be measured, said before it is."""

    started: tuple[Question, ...]
    left_out: tuple[Question, ...]  # there is no time for an interval of these
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
            f"--time-budget {self.enough_s:.0f}s also allows an interval for each of the others",
        ]


def plan(questions: Sequence[Question], budget_s: float, needs: Needs) -> Plan:
    """What the budget buys, as far as it can be told beforehand."""
    started = affordable(questions, budget_s, MIN_VALUES, needs)
    chosen = {question.key for question in started}
    left_out = tuple(question for question in questions if question.key not in chosen)
    launches = int(budget_s / needs.launch_of(started))
    enough_s = MIN_VALUES * needs.launch_of(questions)
    return Plan(tuple(started), left_out, max(1, min(launches, MAX_LAUNCHES)), 5.0 * math.ceil(enough_s / 5))


def shares_s(questions: Sequence[Question], first: Sequence[Question], left_s: float) -> dict[str, float]:
    """Seconds that each experiment may sample in a launch, by key; `first`: those of the first launch.

    Launches differ more than the samples of one launch, so the shares aim at `GOOD_LAUNCHES` short launches; but no
    share is below the estimate.
    """
    estimates_s = sum(map(estimate_s, first))
    scale = max(1.0, (left_s / GOOD_LAUNCHES - LAUNCH_S) / estimates_s)
    return {question.key: scale * estimate_s(question) for question in questions}


def affordable(questions: Sequence[Question], left_s: float, launches: int, needs: Needs) -> list[Question]:
    """The experiments for which there is time for that many launches, in their order; at least the cheapest one."""
    rest = left_s / launches - needs.launch_s
    chosen: set[str] = set()
    for question in sorted(questions, key=needs.of):
        rest -= needs.of(question)
        if chosen and rest < 0:
            break
        chosen.add(question.key)
    return [question for question in questions if question.key in chosen]


def by_worth(
    wanted: Sequence[Question],
    questions: Iterable[Question],
    measured: Callable[[str], Measured | None],
    left_s: float,
    needs: Needs,
) -> list[Question]:
    """The wanted ones for which one more launch has time: what matters first, the widest interval first.

    What matters is judged among all `experiments`: the fastest algorithm may be precise already.
    """
    found = {question: measured(question.key) for question in questions}
    fastest = _fastest(found)

    def worth(question: Question) -> tuple[bool, float]:
        its = found[question]
        precision = its.summary().precision if its else None
        return (not _matters(question, its, fastest), -math.inf if precision is None else -precision)

    rest, chosen = left_s - needs.launch_s, []
    for question in sorted(wanted, key=worth):
        if needs.of(question) <= rest:
            rest -= needs.of(question)
            chosen.append(question)
    return chosen


def _group(question: Collective) -> tuple[object, ...]:
    """What algorithms compete for."""
    return (question.part, question.collective, question.ranks, question.size_bytes, question.root)


def _fastest(found: dict[Question, Measured | None]) -> dict[tuple[object, ...], float]:
    """The latest time that the fastest algorithm of each group may have, in ns."""
    least: dict[tuple[object, ...], float] = {}
    for question, measured in found.items():
        if isinstance(question, Collective) and measured:
            summary = measured.summary()
            most = summary.ci_high or summary.max
            least[_group(question)] = min(most, least.get(_group(question), math.inf))
    return least


def _matters(question: Question, measured: Measured | None, fastest: dict[tuple[object, ...], float]) -> bool:
    if not isinstance(question, Collective) or measured is None:
        return True
    summary = measured.summary()
    return (summary.ci_low or summary.min) <= fastest[_group(question)]
