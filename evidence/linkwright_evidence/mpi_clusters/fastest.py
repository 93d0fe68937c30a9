"""Which algorithm is the fastest: measured, and by the model."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import tags
from .cells import NEAR, Measured
from .condition import Condition
from .tags import Refusal, Way

# How much longer a time may be to be the same one for the model.
EQUAL = 1.001
Case = tuple[str, str, str, int, int]  # machine, collective, nodes, ranks, bytes


@dataclass(frozen=True)
class Choice:
    """One case with several algorithms."""

    case: Case
    measured: str  # tag that was fastest
    predicted: str  # tag that the model takes
    slower: float  # measured time of that over the measured time of the fastest
    same: bool  # whether both tags take equally long here

    first: bool  # whether the first of them alone is the fastest

    @property
    def near(self) -> bool:
        """Whether the model's choice is as good as the best, or nearly."""
        return self.slower <= NEAR


def choices(rows: Sequence[Measured], times: Iterable[float | Refusal]) -> list[Choice]:
    """All cases in which at least two different algorithms were measured and predicted."""
    cases: dict[Case, dict[str, tuple[list[float], float, Way]]] = {}
    for (at, value), time in zip(rows, times, strict=True):
        way = tags.way(at.machine, at.collective, at.tag)
        if isinstance(time, Refusal) or isinstance(way, Refusal) or way.chosen:
            continue
        of_case = cases.setdefault(_case(at), {})
        of_case.setdefault(at.tag, ([], time, way))[0].append(value)
    found = (_choice(case, its) for case, its in cases.items() if len({way for _, _, way in its.values()}) > 1)
    return list(found)


def _case(at: Condition) -> Case:
    return at.machine, at.collective, at.nodes, at.ranks, at.size_bytes


def _choice(case: Case, its: dict[str, tuple[list[float], float, Way]]) -> Choice:
    seen = {tag: statistics.median(values) for tag, (values, _, _) in its.items()}
    best = min(seen, key=lambda tag: seen[tag])
    # Tags that take equally long here, as those of one schedule do, are one choice: their measured median counts.
    taken = min(its, key=lambda tag: its[tag][1])
    alike = [tag for tag in its if its[tag][1] <= EQUAL * its[taken][1]]
    slower = statistics.median(seen[tag] for tag in alike) / seen[best]
    return Choice(case, best, taken, slower, best in alike, best == taken)


def table(found: Sequence[Choice]) -> list[dict]:
    """By machine and collective: how often the model takes the fastest, and what its choice costs."""
    groups: dict[tuple[str, str], list[Choice]] = {}
    for choice in found:
        for collective in ("all", choice.case[1]):
            groups.setdefault((choice.case[0], collective), []).append(choice)
    return [
        {
            "machine": machine,
            "collective": collective,
            "cases": len(its),
            "fastest": round(100 * sum(one.same for one in its) / len(its), 1),
            "first": round(100 * sum(one.first for one in its) / len(its), 1),
            "near": round(100 * sum(one.same or one.near for one in its) / len(its), 1),
            "slower": round(statistics.median(one.slower for one in its), 3),
        }
        for (machine, collective), its in sorted(groups.items(), key=lambda one: (one[0][0], one[0][1] != "all"))
    ]
