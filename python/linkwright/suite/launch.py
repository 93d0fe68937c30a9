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

from linkwright import _native, probes, schedules
from linkwright.errors import LinkwrightError, WaivedError

from .clocks import Clocks
from .experiment import Experiment
from .foreign import Watch
from .probe import Probe

# A sample list longer than this carries no more information about one launch.
MAX_SAMPLES = 100


def main() -> None:
    """Measure what standard input asks for."""
    # Ctrl-C goes to the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Only records go to the parent: anything else that prints goes to stderr.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        plan = json.load(sys.stdin)
        end = time.monotonic() + plan["deadline_s"]
        probe, watch, clocks = Probe(), Watch(), Clocks(_native.cpus())
        before = probe.median_ns(plan["deadline_s"] / max(1, len(plan["work"])))
        for number, work in enumerate(plan["work"]):
            left = end - time.monotonic()
            if left <= 0:
                break
            experiment = Experiment.from_json(work)
            # An equal share of what is left: what a quick experiment saves, a slow one may use.
            budget_s = left / (len(plan["work"]) - number)
            record = _measure(experiment, plan, budget_s)
            foreign, clock_change = watch.foreign(), clocks.change()
            after = probe.median_ns(budget_s)
            if "samples" in record:
                record["samples"]["probe_ns"] = [before, after]
                record["samples"]["foreign"] = foreign
                record["samples"]["clock_change"] = clock_change
                record["samples"]["clock_hz"] = clocks.slowest_hz
            before = after
            out.write(json.dumps(record) + "\n")
            out.flush()


def _measure(experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
    name = {"experiment": experiment.key, "launch": plan["launch"]}
    try:
        how = {
            "samples": plan["samples"] or MAX_SAMPLES,
            "warmup_at_most": plan["warmup"],
            "budget_s": budget_s,
            # Asked for a number of samples, take all of them; else stop once they agree.
            "settle_within": None if plan["samples"] else 0.005,
            "seed": plan["seed"] + plan["launch"],
        }
        if experiment.probe:
            found = _probe(experiment, how)
        else:
            found = schedules.run_threads(schedules.of(experiment), experiment, check=plan["check"], **how)
    except WaivedError as error:
        return {"waived": {**name, "reason": str(error)}}
    except LinkwrightError as error:
        return {"failed": {**name, "reason": str(error)}}
    return {"samples": {**name, **found}}


def _probe(experiment: Experiment, how: dict) -> dict[str, object]:
    """A probe on its placement; the processors that it does not name follow, for those that it works with."""
    cpus = _native.cpus()
    first = [cpus[i] for i in experiment.placement or ()]
    setting = probes.Setting(cpus=(*first, *(cpu for cpu in cpus if cpu not in first)), **how)
    return probes.measure(experiment.algorithm, dict(experiment.axes or ()), setting)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
