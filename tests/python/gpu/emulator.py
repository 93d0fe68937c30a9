"""The kernels themselves on CPU threads: compiled as C++ with a shim, one OS thread per thread of a block."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from linkwright.base.errors import LinkwrightError
from linkwright.executors.cuda.compiler import KERNELS
from linkwright.executors.cuda.job import Job

HERE = Path(__file__).parent
FLAGS = ("-std=c++20", "-O1", "-g1", "-pthread", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Wno-unused-parameter")
# Compile with, and run under, ThreadSanitizer: a race ends the program.
TSAN = ("-fsanitize=thread", "-DKNOWN_DTYPE=0", "-DKNOWN_OP=0")
TSAN_ENDS = {"TSAN_OPTIONS": "exitcode=66 halt_on_error=1"}


@functools.cache
def why_no_gpu() -> str:
    """Why this machine has none; empty where it has one."""
    from linkwright.executors.cuda.device import device

    try:
        device()
    except LinkwrightError as error:
        return str(error)
    return ""


def has_gpu() -> bool:
    """Whether tests of the hardware can run."""
    return not why_no_gpu()


def has_nvrtc() -> bool:
    """Whether kernels can be compiled for a GPU."""
    try:
        from cuda.bindings import nvrtc

        return bool(nvrtc)
    except ImportError:
        return False


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
def kernels(*flags: str) -> Path:
    """All kernels as one object; programs and the driver share it."""
    return _compile(_target("kernels.o", *flags), "kernels.cpp", "-c", "-fPIC", *flags)


@functools.cache
def program(source: str, *flags: str) -> Path:
    """`source` compiled with the kernels; all tests of a session share it."""
    return _compile(_target(source.removesuffix(".cpp"), *flags), source, kernels(*flags), *flags)


def _target(name: str, *flags: str) -> Path:
    return Path(_folder().name) / "-".join([name, *(flag.strip("-") for flag in flags)])


def _compile(target: Path, source: str, *more: object) -> Path:
    command = [compiler(), *FLAGS, "-I", KERNELS, "-I", HERE, "-o", target, HERE / source, *more]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode and "-fsanitize=thread" in more and "tsan" in done.stderr:
        pytest.skip("no ThreadSanitizer (libtsan)")
    assert not done.returncode, done.stderr
    return target


@functools.cache
def driver_folder() -> Path:
    """A folder with a libcuda.so.1 whose GPU is CPU threads."""
    folder = Path(_folder().name) / "driver"
    folder.mkdir()
    _compile(folder / "libcuda.so.1", "driver.cpp", kernels(), "-shared", "-fPIC", "-ldl")
    return folder


def on_fake_gpu(arguments: list[object], **more: object) -> subprocess.CompletedProcess:
    """A Python process that finds that driver."""
    more_environment = {"LD_LIBRARY_PATH": str(driver_folder()), "XDG_CACHE_HOME": _folder().name}
    environment = {**os.environ, **more_environment, **more.pop("environment", {})}
    # What a test puts first on the path must not hide where linkwright itself is found.
    paths = [environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300, **more)


def answers(requests: list[dict], *arguments: str, **environment: str) -> list[dict]:
    """The lines that `on_gpu.py` prints for these experiments."""
    given = json.dumps([{**each, "experiment": each["experiment"].to_json()} for each in requests])
    done = on_fake_gpu([HERE / "on_gpu.py", *arguments], input=given, environment=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def fields(file: str, struct: str) -> list[tuple[str, bool]]:
    """Names of the fields of a kernel's struct, and whether each is a pointer."""
    text = (KERNELS / file).read_text(encoding="utf-8")
    body = re.sub(r"//.*", "", text.partition(f"struct {struct} {{")[2].partition("};")[0])
    return [(name, "*" in line) for line in body.split(";") for name in re.findall(r"(\w+)(?:,|\s*$)", line.strip())]


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
