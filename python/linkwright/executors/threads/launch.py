"""One launch on the processors of this host: a fresh process that runs schedules on threads, and the native probes."""

from __future__ import annotations

import dataclasses

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.question import Probe, Question
from linkwright.executors import probes
from linkwright.store.record import Record

from ..clocks import Clocks
from ..process import Sampling, serve
from .canary import Canary
from .foreign import Watch


class Host:
    """The processors of this machine."""

    def __init__(self) -> None:
        self._canary, self._watch, self._clocks = Canary(), Watch(), Clocks(_native.cpus())

    def canary_ns(self, budget_s: float) -> float | None:
        """A ping-pong that tells, before and after an experiment, whether the machine moved."""
        return self._canary.median_ns(budget_s)

    def disturbances(self) -> dict[str, float | None]:
        """Processors that other processes kept busy, and a clock that changed."""
        return {
            "foreign": self._watch.foreign(),
            "clock_change": self._clocks.change(),
            "clock_hz": self._clocks.slowest_hz,
        }

    def measure(self, question: Question, sampling: Sampling) -> Record:
        """One question."""
        if isinstance(question, Probe):
            return _probe(question, sampling)
        return schedules.run_threads(schedules.of(question), question, **vars(sampling))


def _probe(question: Probe, sampling: Sampling) -> Record:
    """A probe on its placement; the processors that it does not name follow, for those that it works with."""
    cpus = _native.cpus()
    first = [cpus[i] for i in question.placement or ()]
    how = dataclasses.asdict(sampling)
    del how["check"]  # a probe has nothing to compare
    setting = probes.Setting(cpus=(*first, *(cpu for cpu in cpus if cpu not in first)), **how)
    return probes.measure(question.algorithm, dict(question.axes), setting)


if __name__ == "__main__":
    serve(lambda about: Host())
