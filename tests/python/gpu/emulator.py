"""The kernels themselves on CPU threads: compiled as C++ with a shim, one OS thread per thread of a block."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from linkwright.executors.cuda.compiler import KERNELS
from linkwright.executors.cuda.job import Job

HERE = Path(__file__).parent
FLAGS = ("-std=c++20", "-O1", "-g1", "-pthread", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Wno-unused-parameter")


@functools.cache
def compiler() -> str:
    """The C++ compiler; without one the test is skipped."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if not found:
        pytest.skip("no C++ compiler (g++): the kernels cannot be run on CPU threads")
    return found


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="linkwright-kernels-")


@functools.cache
def program(source: str, *flags: str) -> Path:
    """`source` compiled; all tests of a session share it."""
    target = Path(_folder().name) / "-".join([source, *(flag.strip("-") for flag in flags)])
    command = [compiler(), *FLAGS, *flags, "-I", KERNELS, "-I", HERE, "-o", target, HERE / source, "-ldl"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode and "-fsanitize=thread" in flags and "tsan" in done.stderr:
        pytest.skip("no ThreadSanitizer (libtsan)")
    assert not done.returncode, done.stderr
    return target


def run(jobs: list[Job], sms: int, *flags: str, environment: dict[str, str] | None = None) -> list[dict]:
    """The arrays that each job leaves, by name."""
    executable = program("run_jobs.cpp", *flags)
    with tempfile.TemporaryDirectory() as folder:
        given, left = Path(folder) / "jobs", Path(folder) / "left"
        with given.open("wb") as file:
            file.write(np.uint64(len(jobs)).tobytes())
            for job in jobs:
                file.write(_packed(job, sms))
        done = subprocess.run(
            [executable, given, left], capture_output=True, text=True, check=False,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"status {done.returncode}: {done.stderr[:4000]}")
        return list(_unpacked(jobs, left.read_bytes()))


def _packed(job: Job, sms: int) -> bytes:
    arrays = [word for word in job.words.values() if isinstance(word, np.ndarray)]
    numbers = [job.blocks, job.threads, job.shared_bytes, job.cluster, sms, len(job.words), len(arrays)]
    taken = 0
    for word in job.words.values():
        if isinstance(word, np.ndarray):
            numbers += [1, taken]
            taken += 1
        else:
            numbers += [0, int(word)]
    numbers += [array.nbytes for array in arrays]
    head = job.kernel.encode().ljust(32, b"\0") + np.array(numbers, np.uint64).tobytes()
    return head + b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _unpacked(jobs: list[Job], content: bytes):
    offset = 0
    for job in jobs:
        found = {}
        for name, word in job.words.items():
            if isinstance(word, np.ndarray):
                found[name] = np.frombuffer(content, word.dtype, word.size, offset).reshape(word.shape)
                offset += word.nbytes
        yield found
