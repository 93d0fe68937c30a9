"""Measuring a list of experiments: launches of the whole list until enough of them agree.

    launch 0    e7 e1 e4 ...      every launch is a fresh process and runs the list once, in an order
    launch 1    e2 e7 e5 ...      shuffled anew; the interval of an experiment is taken over its launches
    ...
    launch 6+                     only what has not converged yet, while the time budget lasts

The interval of six launches reaches from the least to the largest of them; from nine on it bears one odd launch. So a
budget that is long enough is shared among nine.

An experiment that kills its process (it runs out of memory, say) has failed; the launch goes on with
the others in another process. Everything finished is in the journal before the next thing starts.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from linkwright.stats.interval import MIN_VALUES
from linkwright.store.journal import Journal

from . import rows
from .experiment import Experiment
from .launch import ANOTHER_PROCESS

MAX_LAUNCHES = 50
# A process that has said everything still gives back its memory, or that of a GPU.
EXIT_S = 30.0
# Launches that share the budget where each gets so much time, for itself and for each of its experiments.
GOOD_LAUNCHES = 9
LEAST_LAUNCH_S = 2.0
LEAST_EXPERIMENT_S = 0.05


@dataclass(frozen=True)
class Options:
    """How to measure."""

    budget_s: float
    seed: int = 0
    samples: int | None = None  # None: until they agree
    warmup: int | None = None  # None: until batches agree
    check: bool = True


# (number of the launch, its experiments, seconds for it, options) -> a record for each experiment.
Launch = Callable[[int, list[Experiment], float, Options], Iterator[dict]]


@dataclass
class State:
    """What is known so far; made again from the journal when a run is resumed."""

    launches: dict[str, dict[int, dict]] = field(default_factory=dict)  # experiment -> launch -> record
    ended: dict[str, tuple[str, str]] = field(default_factory=dict)  # experiment -> (status, reason)

    def take(self, record: dict) -> None:
        """Add one record of the journal."""
        if "samples" in record:
            samples = record["samples"]
            self.launches.setdefault(samples["experiment"], {})[samples["launch"]] = samples
        for status in ("waived", "failed"):
            if status in record:
                self.ended[record[status]["experiment"]] = (status, record[status]["reason"])

    def records(self, key: str) -> list[dict]:
        """The launches of an experiment, in order."""
        return [self.launches[key][i] for i in sorted(self.launches.get(key, ()))]

    def measured(self, key: str) -> rows.Measured | None:
        """All launches of an experiment together; None where no launch kept a sample."""
        return rows.Measured.of(self.records(key))

    def wants(self, experiment: Experiment, launch: int) -> bool:
        """Whether launch number `launch` should measure this experiment."""
        key = experiment.key
        if key in self.ended or launch in self.launches.get(key, ()):
            return False
        if launch < MIN_VALUES:
            return True
        measured = self.measured(key)
        return measured is None or not rows.settled(measured, experiment.size_bytes)


def measure(
    experiments: list[Experiment],
    options: Options,
    state: State,
    journal: Journal,
    progress: Callable[[int, int, str], None],
    launch_of: Launch | None = None,
) -> None:
    """Run launches until all experiments have converged, ended, or the time budget is used up.

    `launch_of` gives the records of one launch; by default those of a fresh process.
    """
    launch_of = launch_of or fresh_process
    end = time.monotonic() + options.budget_s
    planned = planned_launches(options.budget_s, len(experiments))
    for launch in range(MAX_LAUNCHES):
        work = [e for e in experiments if state.wants(e, launch)]
        random.Random(f"{options.seed}/{launch}").shuffle(work)
        left = end - time.monotonic()
        if not work or left <= 0:
            if not work and launch < MIN_VALUES:
                continue  # a resumed run has these launches already
            return
        # Leave an equal share to each launch that is planned; after those use what is left.
        deadline_s = left / max(1, planned - launch)
        for done, record in enumerate(launch_of(launch, work, deadline_s, options), 1):
            state.take(record)
            journal.append(record)
            progress(launch, done, f"launch {launch + 1}: {done} of {len(work)}")


def planned_launches(budget_s: float, experiments: int) -> int:
    """How many launches share the budget: those that an interval needs, or more where there is time."""
    long_enough = budget_s / GOOD_LAUNCHES >= max(LEAST_LAUNCH_S, LEAST_EXPERIMENT_S * experiments)
    return GOOD_LAUNCHES if long_enough else MIN_VALUES


def fresh_process(
    launch: int,
    work: list[Experiment],
    deadline_s: float,
    options: Options,
    *,
    module: str = "linkwright.suite.launch",
    about: Mapping[str, object] | None = None,
) -> Iterator[dict]:
    """The records of one launch; a process that dies costs only the experiment it was in.

    The process runs `module`, which is told `about` its machine what the session knows.
    """
    end = time.monotonic() + deadline_s
    while work and (left := end - time.monotonic()) > 0:
        plan = {
            "launch": launch,
            "seed": options.seed,
            "deadline_s": left,
            "samples": options.samples,
            "warmup": options.warmup,
            "check": options.check,
            "work": [experiment.to_json() for experiment in work],
            **(about or {}),
        }
        finished, patience_s = 0, 0.5
        process = _Child(module, plan)
        try:
            for line in process.lines():
                finished += 1
                yield json.loads(line)
            patience_s = EXIT_S
        finally:
            status = process.end(patience_s)
        if status == 0 or finished == len(work):
            return
        if status == ANOTHER_PROCESS and finished:
            work = work[finished:]
            continue
        reason = f"the launch's process ended with {_ended_by(status)} during this experiment"
        yield {"failed": {"experiment": work[finished].key, "launch": launch, "reason": reason}}
        work = work[finished + 1 :]


class _Child:
    """The process of one launch."""

    def __init__(self, module: str, plan: dict):
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        with self._process.stdin as stdin:
            json.dump(plan, stdin)

    def lines(self) -> Iterable[str]:
        """What it writes, as it writes it."""
        assert self._process.stdout is not None
        return self._process.stdout

    def end(self, patience_s: float) -> int:
        """Its exit status; a process that still runs (the user interrupted) is stopped."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def _ended_by(status: int) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"{name} (probably out of memory)" if name == "SIGKILL" else name
    return f"status {status}"
