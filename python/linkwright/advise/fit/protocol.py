"""Times a collective on a model as the executor times it on the machine, so that both numbers mean the same.

Ranks that wait for each other at a barrier do not leave it together: the last to arrive leaves first, and the others
see its flag later. The rank that ended the previous repetition, usually a receiver, therefore begins before the ranks
that it waits for:

    apart          every rank but the last to finish arrives `release_ns` late; the time is the slowest rank's,
                   since its own arrival
    back to back   every rank arrives when it finished the repetition before; the time is that of one more

The binding says which of the two applies, by collective and size. Ranks with synchronised clocks arrive together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import ask
from linkwright.ask.question import Scheduled
from linkwright.base import units

# Repetitions after which ranks that repeat a collective have fallen into step.
_REPETITIONS = 4
# The order in which ranks leave a barrier settles at once; a second look costs little.
_BARRIERS = 2


@dataclass
class Protocol:
    """Simulates experiments as an executor measures them; keeps schedules between calls."""

    starts_together: bool = True  # as `Executor.starts_together`
    _lowered: dict[tuple, tuple[_native.Schedule, bool]] = field(default_factory=dict)

    def time_ns(self, question: Scheduled, machine: _native.Machine, release_ns: float, kind: str) -> float:
        """Time on `machine`; machines of the same `kind` take the same schedules."""
        schedule, in_a_row = self._schedule(question, machine, kind)
        if self.starts_together or question.skew:
            return ask(machine, schedule, schedules.how(question)).slowest.ns
        if in_a_row:
            return _back_to_back(schedule, machine, question)
        return _apart(schedule, machine, question, release_ns)

    def _schedule(self, question: Scheduled, machine: _native.Machine, kind: str) -> tuple[_native.Schedule, bool]:
        key = (kind, question.key)
        if key not in self._lowered:
            plain = schedules.of(question)
            plain.verify()
            self._lowered[key] = (schedules.lowered(plain, machine, None), _native.repeats_back_to_back(plain))
        return self._lowered[key]


def _apart(schedule: _native.Schedule, machine: _native.Machine, question: Scheduled, release_ns: float) -> float:
    arrivals, time_ns = np.zeros(question.ranks), 0.0
    for _ in range(1 + _BARRIERS):
        finish_ns = _finish(schedule, machine, question, arrivals)
        time_ns = float((finish_ns - arrivals).max())
        late = np.arange(question.ranks) != int(finish_ns.argmax())
        if (late * release_ns == arrivals).all():
            break
        arrivals = late * release_ns
    return time_ns


def _back_to_back(schedule: _native.Schedule, machine: _native.Machine, question: Scheduled) -> float:
    arrivals, time_ns = np.zeros(question.ranks), 0.0
    for _ in range(_REPETITIONS):
        finish_ns = _finish(schedule, machine, question, arrivals, buffer_sets=2)
        time_ns = float(finish_ns.max() - arrivals.max())
        arrivals = finish_ns - finish_ns.min()
    return time_ns


def _finish(
    schedule: _native.Schedule, machine: _native.Machine, question: Scheduled, arrivals: np.ndarray, **more: Any
) -> np.ndarray:
    """When each rank is done, in ns."""
    skew = "list:" + ",".join(f"{at:.3f}ns" for at in arrivals)
    how = schedules.how(question).but(skew=skew, **more)
    return units.in_ns(ask(machine, schedule, how).ranks.finish_ps)
