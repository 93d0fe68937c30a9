"""Training with PyTorch, timed: one process for each rank, in a Python of its own (`rank.py`).

linkwright never imports PyTorch. The Python is the one that runs linkwright if it has PyTorch, or the one that
LINKWRIGHT_TORCH_PYTHON names. The steps of all ranks are cut at three instants of a clock that all share:

    all done -- compute of the rank that is ready first -- its waiting -- communication -- the rest of compute, all done
                                                           ^ the last rank is ready     ^ all have the sum
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from linkwright.base.errors import ExecError, WaivedError
from linkwright.base.extras import install
from linkwright.base.units import NS_PER_S

ENVIRONMENT = "LINKWRIGHT_TORCH_PYTHON"
RANK = Path(__file__).with_name("rank.py")
# When a rank is late: its quick steps, up to this quantile, are longer than those of the quickest rank by this share of
# a step. Other programs lengthen some steps; a rank that is slow itself has no short ones, so that the quickest quarter
# tells them apart. Both numbers are chosen: a tenth of a step is what a reader would look into.
QUICK_STEPS = 0.25
LATE_SHARE = 0.1
# One thread for each rank: libraries of linear algebra would otherwise start one for each processor, which spin.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Seconds beyond its budget after which a training is stopped: a busy host takes long to load PyTorch.
_PATIENCE_S = 120.0


@functools.cache
def python() -> tuple[str, ...]:
    """How the Python that has PyTorch is started; raises a `WaivedError` with the cure if there is none."""
    named = os.environ.get(ENVIRONMENT)
    if named is None:
        if importlib.util.find_spec("torch"):
            return sys.executable, "-P"
        raise WaivedError(
            f"training_step: waived: the Python of linkwright has no PyTorch; {install('torch')}, or name one that "
            f"has it in {ENVIRONMENT} (/usr/bin/python3 after `apt install python3-torch`)"
        )
    found = shutil.which(named)
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    if found is None:
        raise WaivedError(f"training_step: waived: {ENVIRONMENT}={named} is no program; name a Python with PyTorch")
    if subprocess.run([found, "-c", find], cwd=RANK.parent, capture_output=True, check=False).returncode:
        raise WaivedError(
            f"training_step: waived: {ENVIRONMENT}={named} has no PyTorch; install it there (`{named} -m pip install "
            "torch`), or name another Python"
        )
    return (found,)


@dataclass(frozen=True)
class TrainingJob:
    """A training: what is trained, on how many ranks, which of them is late on purpose, and who trains beside it."""

    model: str
    batch: int  # of each rank
    ranks: int
    delay_ms: int = 0  # that one rank sleeps in each step
    delayed: int = 0  # which one
    neighbours: int = 0  # trainings of one rank that share the host with it


@dataclass(frozen=True)
class Trained:
    """Timed steps, one value each, in ns; `step` is the sum of the three parts."""

    step_ns: np.ndarray
    compute_ns: np.ndarray  # of the rank that is ready first
    waiting_ns: np.ndarray  # of that rank, for the last one
    communication_ns: np.ndarray
    late_rank: int  # whose quick steps are the longest until it is ready
    late_ns: float  # by how much, compared with the rank whose are the shortest
    first_ns: float  # the first step of all
    gradient_bytes: int
    small_ns: np.ndarray  # a small message both ways; empty for one rank, like the next two
    bytes_per_s: np.ndarray  # of a large message, both ways at once
    sum_bytes_per_s: np.ndarray
    torch: str
    pinned: bool

    @classmethod
    def of(cls, found: Sequence[Mapping]) -> Trained:
        """From what all ranks printed."""
        stamps = np.array([one["stamps"] for one in found], float)  # by rank, step, instant
        begin, ready, reduced, end = stamps.transpose(2, 1, 0)
        done = end.max(axis=1)
        step = np.diff(done, prepend=begin[0].min())
        communication = reduced.max(axis=1) - ready.max(axis=1) if len(found) > 1 else np.zeros(len(step))
        waiting = np.ptp(ready, axis=1)
        timed = slice(found[0]["warm_up"], None)
        own = np.quantile((ready - begin)[timed], QUICK_STEPS, axis=0)
        message = found[0]["message"] or {"small_ns": [], "large_ns": [], "sum_ns": [], "large_bytes": 0}
        large, added = np.array(message["large_ns"], float), np.array(message["sum_ns"], float)
        return cls(
            step[timed], (step - communication - waiting)[timed], waiting[timed], communication[timed],
            int(own.argmax()), float(np.ptp(own)), float(step[0]), found[0]["gradient_bytes"],
            np.array(message["small_ns"]), *(NS_PER_S * message["large_bytes"] / its for its in (large, added)),
            found[0]["torch"],
            all(one["pinned"] for one in found),
        )  # fmt: skip


def train(asked: TrainingJob, cpus: Sequence[int], budget_s: float, steps: int | None, seed: int) -> Trained:
    """Train for about `budget_s`, the start of PyTorch included; each process has a processor, ranks the first."""
    program, until_s = python(), time.monotonic() + budget_s
    with tempfile.TemporaryDirectory(prefix="linkwright-training-") as name:
        folder = Path(name)
        about = asdict(asked) | {"until_s": until_s, "steps": steps, "store": str(folder / "store")}
        about |= {"parent": os.getpid()}
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | _ONE_THREAD
        processes = []
        # A neighbour trains until the ranks are done.
        apart = about | {"ranks": 1, "delay_ms": 0, "until_s": until_s + 2 * _PATIENCE_S, "steps": sys.maxsize}
        try:
            for rank in range(asked.ranks + asked.neighbours):
                task = about | {"rank": rank} if rank < asked.ranks else apart | {"rank": 0}
                its = task | {"cpu": cpus[rank], "seed": seed + rank}
                with (folder / f"out{rank}").open("wb") as out, (folder / f"error{rank}").open("wb") as error:
                    command = [*program, str(RANK), json.dumps(its)]
                    processes.append(
                        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error, env=own)
                    )
            _wait(processes, until_s + _PATIENCE_S, folder, asked)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return Trained.of([json.loads((folder / f"out{rank}").read_text()) for rank in range(asked.ranks)])


def _wait(processes: Sequence[subprocess.Popen], end_s: float, folder: Path, asked: TrainingJob) -> None:
    """Wait until every rank has ended; the first process that fails ends all."""
    what = f"training_step: {asked.model} on {asked.ranks} ranks"
    while any([process.poll() is None for process in processes][: asked.ranks]):
        time.sleep(0.01)
        if time.monotonic() > end_s:
            raise ExecError(f"{what}: not done {_PATIENCE_S:g} s after its time; stop other programs")
        if any(process.returncode for process in processes):
            break
    for rank, process in enumerate(processes):
        if process.returncode:
            who = f"rank {rank}" if rank < asked.ranks else f"neighbour {rank - asked.ranks}"
            said = (folder / f"error{rank}").read_text(errors="replace").strip().splitlines() or ["no message"]
            raise ExecError(f"{what}: {who} ended with status {process.returncode}: {said[-1]}")
