"""A launch in a fresh process: each draws memory, threads and their cores anew.

Most of the variation between runs comes from there. The process reads one JSON document from standard input and writes
a JSON line as soon as an experiment ends, so a process that dies costs only its current experiment.

    in    {"number": 2, "deadline_s": 9.5, "options": {...}, "shares": {...},
           "work": [{question}, ...], "about": {...}}
    out   {"ready": true}, then {"samples": {...}}  |  {"ended": {...}}  for each experiment

The parent calls `fresh`; the module that it starts calls `serve` with what measures there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from linkwright._native import measurement
from linkwright.ask.question import Question, of_json
from linkwright.base.errors import LinkwrightError, OutOfTimeError, WaivedError
from linkwright.store.record import OUT_OF_TIME, PROCESS_ENDED, Ended, Outcome, Record, from_json, to_json

from .protocol import Launch, Options

# Exit status of a process that cannot go on after an experiment whose outcome it has written.
ANOTHER_PROCESS = 3
# A process that has written everything still returns its memory, or that of a GPU.
EXIT_S = 30.0
# More samples carry no more information about one launch.
MAX_SAMPLES = measurement.SAMPLES
# Relative half width of the interval of a launch at which its sampling stops.
SETTLED_WITHIN = measurement.SETTLED_WITHIN


@dataclass(frozen=True)
class Sampling:
    """How one experiment of one launch is sampled.

    Attributes:
        samples: the most samples to take.
        warmup_at_most: the most rounds of a warm-up; None: until they agree.
        budget_s: the seconds that the experiment may take in this launch.
        settle_within: half the width of the interval of the median, as a share of it, at which sampling stops; None:
            take all samples.
        seed: the seed of the data.
        check: whether the data are compared with the exact answer.
    """

    samples: int
    warmup_at_most: int | None
    budget_s: float
    settle_within: float | None  # None: take all samples
    seed: int
    check: bool = True

    @classmethod
    def of(cls, options: Options, number: int, budget_s: float) -> Sampling:
        """From the options of a run; a requested number of samples is taken in full."""
        return cls(
            samples=options.samples or MAX_SAMPLES,
            warmup_at_most=options.warmup,
            budget_s=budget_s,
            settle_within=None if options.samples else SETTLED_WITHIN,
            seed=options.seed + number,
            check=options.check,
        )


class Measurer(Protocol):
    """A machine that experiments are measured on, made anew for each launch.

    Errors of `measure` become outcomes: a `WaivedError` is `waived`, an `OutOfTimeError` is `out-of-time`, and every
    other `LinkwrightError` is `failed`.
    """

    def canary_ns(self, budget_s: float) -> float | None:
        """A value in ns that changes only if the machine does; None if nothing watches that."""

    def disturbances(self) -> dict[str, float | None]:
        """Disturbances from outside, as fields of the record: `foreign`, `clock_change`, `clock_hz`; may be empty."""

    def measure(self, question: Question, sampling: Sampling) -> Record:
        """One question: check the data, warm up, sample within `sampling.budget_s`, check again."""


class UnrecoverableError(Exception):
    """The process cannot measure anything after the outcome that was yielded last."""


def outcomes(measurer: Callable[[], Measurer], launch: Launch) -> Iterator[Outcome]:
    """The outcome of each experiment that there is time for, in this process."""
    end = time.monotonic() + launch.deadline_s
    try:
        machine = measurer()
        before = machine.canary_ns(launch.deadline_s / max(1, len(launch.work)))
    except LinkwrightError as error:
        yield from (Ended.by(error, "failed", e.key, launch.number) for e in launch.work)
        return
    for done, question in enumerate(launch.work):
        left = end - time.monotonic()
        if left <= 0:
            return
        budget_s = launch.share_s(left, launch.work[done:])
        outcome = _outcome(machine, question, launch, budget_s)
        try:
            disturbances = machine.disturbances()
            after = machine.canary_ns(budget_s)
        except LinkwrightError as error:  # one that a GPU does not recover from in this process
            yield Ended.by(error, "failed", question.key, launch.number) if isinstance(outcome, Record) else outcome
            raise UnrecoverableError from error
        if isinstance(outcome, Record):
            outcome = dataclasses.replace(outcome, canary_ns=(before, after), **disturbances)
        before = after
        yield outcome


def here(measurer: Callable[[], Measurer], launch: Launch) -> Iterator[Outcome]:
    """The outcomes of a launch in this process; a machine that is lost ends it after the experiment at fault."""
    with contextlib.suppress(UnrecoverableError):
        yield from outcomes(measurer, launch)


def _outcome(machine: Measurer, question: Question, launch: Launch, budget_s: float) -> Outcome:
    try:
        found = machine.measure(question, Sampling.of(launch.options, launch.number, budget_s))
        return found.named(question.key, launch.number)
    except WaivedError as error:
        return Ended.by(error, "waived", question.key, launch.number)
    except OutOfTimeError as error:
        ended = Ended.by(error, "out-of-time", question.key, launch.number)
        return dataclasses.replace(ended, need_s=error.need_s)
    except LinkwrightError as error:
        return Ended.by(error, "failed", question.key, launch.number)


def serve(measurer: Callable[[Mapping[str, object]], Measurer]) -> None:
    """Measure what standard input requests; the main function of a module that `fresh` starts.

    Args:
        measurer: makes the machine from what the parent knows about it, the `about` of `fresh`.
    """
    # Ctrl-C goes to the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Only outcomes go to the parent: anything else that prints goes to stderr.
    with contextlib.suppress(BrokenPipeError), os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            asked = json.load(sys.stdin)
        except json.JSONDecodeError:  # the parent was interrupted before it had asked
            return
        work = [of_json(values) for values in asked["work"]]
        options = Options(**asked["options"])
        launch = Launch(asked["number"], work, asked["deadline_s"], options, shares=asked["shares"])
        out.write(json.dumps({"ready": True}) + "\n")
        try:
            for outcome in outcomes(lambda: measurer(asked["about"]), launch):
                out.write(json.dumps(to_json(outcome)) + "\n")
                out.flush()
        except UnrecoverableError:
            sys.exit(ANOTHER_PROCESS)


def fresh(module: str, launch: Launch, about: Mapping[str, object] | None = None) -> Iterator[Outcome]:
    """The outcomes of a launch by processes that run `module`; one that dies fails its current experiment.

    Args:
        module: the name of a module that calls `serve` when it runs as `__main__`.
        launch: the experiments, in order, and how long they may take.
        about: plain values for the measurer, which travel as JSON.
    Returns:
        An outcome for each experiment that there was time for, as it ends. Close the iterator to end the process.
    """
    began = time.monotonic()
    end = began + launch.deadline_s
    work = list(launch.work)
    while work and (left := end - time.monotonic()) > 0:
        asked = {
            "number": launch.number,
            "deadline_s": left,
            "options": vars(launch.options),
            "work": [question.to_json() for question in work],
            "shares": dict(launch.shares),
            "about": dict(about or {}),
        }
        finished, patience_s, ready = 0, 0.5, False
        process = _Child(module, asked, launch.stop_s and began + launch.stop_s)
        try:
            for line in process.lines():
                outcome = from_json(json.loads(line))
                if outcome is None:
                    ready = True
                    continue
                finished += 1
                yield outcome
            patience_s = EXIT_S
        finally:
            status = process.end(patience_s)
        if status == 0 or finished == len(work):
            return
        if status == ANOTHER_PROCESS and finished:
            work = work[finished:]
            continue
        if process.stopped:
            reason = "a single repetition takes longer than the time budget, so its process was stopped"
            yield Ended(work[finished].key, launch.number, "out-of-time", reason, OUT_OF_TIME)
            return
        if not ready:  # another process would end the same way
            reason = f"the launch's process ended with {_ended_by(status)} before it could measure"
            yield from (Ended(e.key, launch.number, "failed", reason, PROCESS_ENDED) for e in work)
            return
        reason = f"the launch's process ended with {_ended_by(status)} during this experiment"
        yield Ended(work[finished].key, launch.number, "failed", reason, PROCESS_ENDED)
        work = work[finished + 1 :]


class _Child:
    """The process of one launch."""

    def __init__(self, module: str, asked: dict, stop: float | None):
        self.stopped = False  # because its time was over
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        self._timer = None if stop is None else threading.Timer(max(0.0, stop - time.monotonic()), self._stop)
        if self._timer:
            self._timer.daemon = True
            self._timer.start()
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:  # it may have died already
            json.dump(asked, stdin)

    def _stop(self) -> None:
        self.stopped = True
        self._process.kill()

    def lines(self) -> Iterable[str]:
        """What it writes, as it writes it."""
        assert self._process.stdout is not None
        return self._process.stdout

    def end(self, patience_s: float) -> int:
        """Its exit status; a process that still runs (the user interrupted) is stopped."""
        if self._timer:
            self._timer.cancel()
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
