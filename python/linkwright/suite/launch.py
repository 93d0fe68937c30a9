"""One launch: a fresh process that measures each experiment of a list once, in the order given.

A launch draws its memory, its threads and its place on the cores anew, which is where most of the
variation between runs comes from. It reads one JSON document from standard input and writes one JSON
line for each experiment as soon as it is measured, so the parent loses nothing if the launch dies.

    in    {"launch": 2, "seed": 7, "deadline_s": 9.5, "check": true, ..., "work": [{experiment}, ...]}
    out   {"samples": {...}}  |  {"waived": {...}}  |  {"failed": {...}}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from linkwright import _native, probes, schedules
from linkwright.errors import LinkwrightError, WaivedError

from .clocks import Clocks
from .experiment import Experiment
from .foreign import Watch
from .probe import Probe

# Exit status of a process that cannot go on after an experiment whose record it has written.
ANOTHER_PROCESS = 3
# A sample list longer than this carries no more information about one launch.
MAX_SAMPLES = _native.measurement.SAMPLES


class Measurer(Protocol):
    """A machine that experiments are measured on, made anew for each launch."""

    def probe_ns(self, budget_s: float) -> float | None:
        """A value that stays the same as long as the machine does."""

    def disturbances(self) -> dict[str, object]:
        """What disturbed an experiment from outside, as its record keeps it."""

    def measure(self, experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
        """One experiment, as plain values for the journal."""


class Host:
    """The processors of this machine."""

    def __init__(self, plan: dict):
        self._probe, self._watch, self._clocks = Probe(), Watch(), Clocks(_native.cpus())

    def probe_ns(self, budget_s: float) -> float | None:
        """A ping-pong that tells, before and after an experiment, whether the machine moved."""
        return self._probe.median_ns(budget_s)

    def disturbances(self) -> dict[str, object]:
        """Processors that somebody else kept busy, and a clock that moved."""
        return {
            "foreign": self._watch.foreign(),
            "clock_change": self._clocks.change(),
            "clock_hz": self._clocks.slowest_hz,
        }

    def measure(self, experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
        """One experiment, as plain values for the journal."""
        how = {
            "samples": plan["samples"] or MAX_SAMPLES,
            "warmup_at_most": plan["warmup"],
            "budget_s": budget_s,
            # Asked for a number of samples, take all of them; else stop once they agree.
            "settle_within": None if plan["samples"] else _native.measurement.SETTLED_WITHIN,
            "seed": plan["seed"] + plan["launch"],
        }
        if experiment.probe:
            return _probe(experiment, how)
        return schedules.run_threads(schedules.of(experiment), experiment, check=plan["check"], **how)


def serve(measurer: Callable[[dict], Measurer]) -> None:
    """Measure what standard input asks for."""
    # Ctrl-C goes to the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Only records go to the parent: anything else that prints goes to stderr.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        plan = json.load(sys.stdin)
        for record in _records(measurer, plan):
            out.write(json.dumps(record) + "\n")
            out.flush()


def _records(measurer: Callable[[dict], Measurer], plan: dict) -> Iterator[dict]:
    """A record for each experiment that there is time for."""
    end = time.monotonic() + plan["deadline_s"]
    try:
        machine = measurer(plan)
        before = machine.probe_ns(plan["deadline_s"] / max(1, len(plan["work"])))
    except LinkwrightError as error:
        for work in plan["work"]:
            yield {"failed": {**_name(Experiment.from_json(work), plan), "reason": str(error)}}
        return
    for number, work in enumerate(plan["work"]):
        left = end - time.monotonic()
        if left <= 0:
            break
        # An equal share of what is left: what a quick experiment saves, a slow one may use.
        budget_s = left / (len(plan["work"]) - number)
        record = _record(machine, Experiment.from_json(work), plan, budget_s)
        try:
            disturbances = machine.disturbances()
            after = machine.probe_ns(budget_s)
        except LinkwrightError as error:  # one that a GPU does not recover from in this process
            lost = {"failed": {**_name(Experiment.from_json(work), plan), "reason": str(error)}}
            yield lost if "samples" in record else record
            sys.exit(ANOTHER_PROCESS)
        if "samples" in record:
            record["samples"] |= {"probe_ns": [before, after], **disturbances}
        before = after
        yield record


def _record(machine: Measurer, experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
    name = _name(experiment, plan)
    try:
        found = machine.measure(experiment, plan, budget_s)
    except WaivedError as error:
        return {"waived": {**name, "reason": str(error)}}
    except LinkwrightError as error:
        return {"failed": {**name, "reason": str(error)}}
    return {"samples": {**name, **found}}


def _name(experiment: Experiment, plan: dict) -> dict[str, object]:
    return {"experiment": experiment.key, "launch": plan["launch"]}


def _probe(experiment: Experiment, how: dict) -> dict[str, object]:
    """A probe on its placement; the processors that it does not name follow, for those that it works with."""
    cpus = _native.cpus()
    first = [cpus[i] for i in experiment.placement or ()]
    setting = probes.Setting(cpus=(*first, *(cpu for cpu in cpus if cpu not in first)), **how)
    return probes.measure(experiment.algorithm, dict(experiment.axes or ()), setting)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        serve(Host)
