"""The kernel on CPU threads: compiled as C++ with a shim of the data-movement calls, one thread per processor."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ARGUMENTS = 38
FLAGS = ("-std=c++20", "-O1", "-g1", "-pthread", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror")
SANITIZERS = {"address": "-fsanitize=address,undefined", "thread": "-fsanitize=thread"}
_ENDS = {"TSAN_OPTIONS": "exitcode=66 halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1"}


def compiler() -> str | None:
    """The C++ compiler, if there is one."""
    return shutil.which(os.environ.get("CXX", "g++"))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="linkwright-cores-")


class Cores:
    """A process that runs launches of the kernel, compiled with some definitions."""

    def __init__(self, source: Path, defines: tuple[str, ...], sanitizer: str = "address"):
        name = f"{abs(hash((str(source), defines, sanitizer))):x}"
        program = Path(_folder().name) / name
        if not program.exists():
            given = [f"-D{define}" for define in (*defines, f'WALK_SOURCE="{source}"')]
            command = [compiler() or "g++", *FLAGS, SANITIZERS[sanitizer], *given, f"-I{HERE / 'shim'}"]
            subprocess.run([*command, str(HERE / "cores.cpp"), "-o", str(program)], check=True)
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **_ENDS}
        )
        atexit.register(self.close)

    def run(self, size, cores, arguments, rows, seed: int = 1) -> np.ndarray:
        """The rows after a launch on `cores`, numbers line by line; arguments by (core, processor)."""
        columns, lines = size
        arguments = np.asarray(arguments, np.uint32)
        assert arguments.shape[0] == len(cores)
        assert arguments.shape[2] == ARGUMENTS
        head = np.array([columns, lines, rows.shape[1], arguments.shape[1], len(cores), seed], np.uint32)
        given = b"".join(np.ascontiguousarray(a, np.uint32).tobytes() for a in (head, cores, arguments, rows))
        try:
            self._process.stdin.write(given)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        found = self._process.stdout.read(rows.nbytes)
        if len(found) != rows.nbytes:
            raise RuntimeError(f"the cores ended with status {self._process.wait()}")
        return np.frombuffer(found, np.uint32).reshape(rows.shape)

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@functools.cache
def cores(source: Path, defines: tuple[str, ...], sanitizer: str = "address") -> Cores:
    """The process for these definitions; all tests of a session share it."""
    return Cores(source, defines, sanitizer)
