"""One launch: a process that starts the ranks and tells them what to do, all the same at the same time.

    prepare EXPERIMENT SEED CPUS   compile the program, fill the memory
    run COUNT                      so many repetitions; answers their times in ns
    check                          compare the memory with the exact answer; answers how many elements that were
    fill                           write the initial data again

The connection to a rank is a pair of sockets that no other process has. If either side ends, however that happens, the
other one sees it at once: so no process is left behind.
"""

import multiprocessing
import multiprocessing.connection
import os
import secrets
import signal
import subprocess
import sys
import time

import numpy as np

from linkwright.executor_api import (
    UNCHECKED,
    UNWARMED,
    ExecError,
    Note,
    OutOfTimeError,
    Probe,
    Program,
    Record,
    WaivedError,
    serve,
    take_samples,
)

from . import processors
from .rank import LOST

START_S = 30.0  # for Python to start in all ranks
GRACE_S = 2.0  # beyond the deadline, before the ranks are ended
EXIT_S = 1.0  # for a rank to see that it is to end


class Ranks:
    """The processes of `count` ranks; the first few of them may do a question."""

    def __init__(self, count):
        self._processes, self._connections = [], []
        for _ in range(count):
            here, there = multiprocessing.Pipe()
            command = [sys.executable, "-P", "-m", "linkwright_tcp.rank", str(there.fileno())]
            self._processes.append(subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL))
            self._connections.append(here)
            there.close()
        end = time.monotonic() + START_S
        token = secrets.token_bytes(32)  # a process that does not know it cannot join
        ports = self._answers(self._connections, end)
        for number, connection in enumerate(self._connections):
            connection.send((number, ports, token))
        self._answers(self._connections, end)
        self._used = self._connections

    def __len__(self):
        return len(self._processes)

    def prepare(self, end, question, seed, cpus):
        """From now on, as many ranks as the experiment has take part, each on one of `cpus`."""
        self._used = self._connections[: question.ranks]
        self.ask(end, "prepare", question, seed, cpus)

    def ask(self, end, *command):
        """Have all ranks that take part do the same; their answers, which must be here by `end` of the clock."""
        try:
            for connection in self._used:
                connection.send(command)
        except OSError:
            raise self._lost() from None
        return self._answers(self._used, end + GRACE_S)

    def repeat(self, end, count):
        """The times of so many repetitions, by (repetition, rank)."""
        return np.array(self.ask(end, "run", count), float).T

    def close(self):
        """End all processes: their connections close, and they see that."""
        for connection in self._connections:
            connection.close()
        end = time.monotonic() + EXIT_S
        for process in self._processes:
            try:
                process.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _answers(self, asked, end):
        found = {}
        while missing := [each for each in asked if each not in found]:
            ready = multiprocessing.connection.wait(missing, max(0, end - time.monotonic()))
            if not ready:
                self.close()
                names = ", ".join(str(self._connections.index(each)) for each in missing)
                reason = f"tcp: no answer of ranks {names} before the time was over; give more `--time-budget`"
                raise OutOfTimeError(reason, need_s=60.0)
            for connection in ready:
                try:
                    found[connection] = connection.recv()
                except (EOFError, OSError):
                    raise self._lost() from None
        answers = [found[connection] for connection in asked]
        if wrong := next((answer for answer in answers if isinstance(answer, Exception)), None):
            self.close()
            raise wrong
        return answers

    def _lost(self):
        """The error of a rank that has ended, and so ended the others."""
        self.close()
        ends = enumerate(process.returncode for process in self._processes)
        number, status = next(((number, status) for number, status in ends if status not in (0, LOST)), (0, LOST))
        said = signal.Signals(-status).name if status < 0 else f"status {status}"
        return ExecError(f"tcp: the process of rank {number} ended with {said}; free memory, or see what ends it")


class Host:
    """Measures one experiment after the other on the same processes."""

    def __init__(self):
        self._ranks = None

    def canary_ns(self, budget_s):
        """Nothing watches whether the machine changes."""
        return None

    def disturbances(self):
        """Nothing watches who else uses the processors."""
        return {}

    def measure(self, question, sampling):
        """One question."""
        if isinstance(question, Probe):
            raise WaivedError("tcp: waived: a probe asks one host, not messages; `--on threads` answers it")
        Program.of(question, sampling.seed)  # what is wrong with the schedule is said before anything starts
        if self._ranks is None or len(self._ranks) < question.ranks:
            self.close()
            self._ranks = Ranks(question.ranks)
        try:
            return measured(self._ranks, question, sampling)
        except Exception:
            self.close()  # whatever the processes still do, the next experiment begins with new ones
            raise

    def close(self):
        """End the processes."""
        if self._ranks:
            self._ranks.close()
        self._ranks = None


def measured(ranks, question, sampling):
    """First repetition and check, warm-up and samples, check."""
    end = time.monotonic() + sampling.budget_s
    cpus = processors()
    placed = question.placement or range(question.ranks)
    ranks.prepare(end, question, sampling.seed, [cpus[number % len(cpus)] for number in placed])
    first = ranks.repeat(end, 1)
    checked = sum(ranks.ask(end, "check")) if sampling.check else 0
    first_s = float(first.max()) / 1e9
    if first_s > sampling.budget_s / 2:  # no time for a median
        need_s = 40 * first_s
        raise OutOfTimeError(f"tcp: {need_s:.1f} s in a launch would do; give more `--time-budget`", need_s=need_s)
    samples = take_samples(lambda count: ranks.repeat(end, count), sampling, end)
    if sampling.check:  # once more, on fresh data
        ranks.ask(end, "fill")
        ranks.repeat(end, 1)
        ranks.ask(end, "check")
    notes = [] if samples.warmed_up else [UNWARMED]
    notes += [] if checked or question.what == "barrier" else [UNCHECKED]
    if question.ranks > len(cpus):
        shared = f"oversubscribed: {question.ranks} ranks share {len(cpus)} processors"
        notes.append(Note("oversubscribed", shared))
    return Record(values_ns=samples.values_ns, first_ns=1e9 * first_s, notes=tuple(notes))


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # ranks compute nothing that needs more
    host = Host()
    serve(lambda about: host)
    host.close()
