"""The process that runs the vendor's runtime, in a Python of its own, and launches over its pipe (`serve.py`)."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwright.base.errors import ExecError, LinkwrightError, NoMetaliumError
from linkwright.base.extras import CHECKOUT

from .image import Image, Timing

ENVIRONMENT = "LINKWRIGHT_METALIUM"
KERNEL = Path(__file__).parents[2] / "kernels" / "metalium_walk.cpp"
# Seconds until a device must be open, and until a launch must have ended.
_OPEN_S, _LAUNCH_S = 300.0, 600.0
_SETUP = "`make setup-metalium` in a checkout"
_CURES = {
    "no-runtime": f"{_SETUP} makes an environment that has it; {ENVIRONMENT} names its folder",
    "no-compiler": f"{_SETUP} installs a stand-in, the vendor's own is called SFPI",
    "no-simulator": "unset it for wolfpine or a board, or correct it",
    "no-device": "see that the driver is loaded, that nobody else uses the board, and that TT_METAL_SIMULATOR is right",
}
_TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "bf16": "uint16_t"}
_OPS = ("sum", "max", "min", "prod")


def defines(dtype: str, op: str | None) -> list[tuple[str, str]]:
    """The definitions that the kernel is compiled with."""
    integer, bf16 = int(dtype in ("i32", "i64", "u8")), int(dtype == "bf16")
    kind = ("WALK_TYPE", _TYPES[dtype]), ("WALK_INTEGER", str(integer)), ("WALK_BF16", str(bf16))
    return [*kind, ("WALK_OP", str(_OPS.index(op or "sum")))]


def python() -> Path:
    """The Python of the runtime: that of the folder in the environment, or of the one that `make` makes."""
    named = os.environ.get(ENVIRONMENT)
    folder = Path(named) if named else CHECKOUT.parent / ".metalium"
    found = folder / "bin" / "python"
    if not found.exists():
        raise NoMetaliumError(
            f"--on metalium: {f'{ENVIRONMENT}={named}' if named else folder} is no environment with the runtime "
            f"(there is no bin/python); {_SETUP} makes one"
        )
    return found


@functools.cache
def runtime() -> VendorRuntime:
    """The process of this session; opening a device takes seconds, so it stays until the session ends."""
    return VendorRuntime(python())


class VendorRuntime:
    """The device, open in another process.

    Attributes:
        grid: columns and lines of workers.
        l1_bytes: what a core has for rows.
        chip, version: names of the chip and of the runtime.
        simulator: that stands for the board; None on a board.
    """

    def __init__(self, python: Path):
        self._folder = tempfile.TemporaryDirectory(prefix="linkwright-metalium-")  # the runtime leaves files in it
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, Path(__file__).with_name("serve.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self._folder.name,
                env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
                start_new_session=True,  # Ctrl-C is for the session, which ends it
            )  # fmt: skip
        atexit.register(self.close)
        about = self._answer(_OPEN_S, "opening the device")
        self.grid: tuple[int, int] = tuple(about["grid"])
        self.l1_bytes: int = about["l1_bytes"]
        self.chip: str = about["chip"]
        self.version: str = about["runtime"]
        self.simulator: str | None = about["simulator"]

    @property
    def has_times(self) -> bool:
        """Whether cycles mean anything: a functional simulator counts instructions."""
        return self.simulator in (None, "wolfpine")

    @property
    def simulates_cycles(self) -> bool:
        """Whether every cycle is simulated, which is slow."""
        return self.simulator is not None and self.has_times

    def launch(
        self,
        image: Image,
        initial: Sequence[NDArray[np.uint8]],
        timing: Timing,
        dtype: str = "i32",
        op: str | None = None,
        network: int = 0,
    ) -> tuple[NDArray[np.uint32], float]:
        """Run the programs of an image, even lanes on `network`; the rows that they leave, and when that was, in s."""
        rows = image.rows(initial, timing)
        size = [image.width, image.height]
        asked = {
            "kernel": str(KERNEL), "defines": defines(dtype, op), "cores": image.places, "size": size,
            "words": image.words, "arguments": image.arguments(), "network": network,
        }  # fmt: skip
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer, which says more
            self._process.stdin.write(json.dumps(asked).encode() + b"\n" + rows.tobytes())
            self._process.stdin.flush()
        answer = self._answer(_LAUNCH_S, f"a launch on {len(image.places)} cores", rows.nbytes)
        left = np.frombuffer(answer["rows"], np.uint32).reshape(rows.shape)
        image.check(left)
        return left, answer["ended_s"]

    def close(self) -> None:
        """End the process, and the simulator with it."""
        if self._process.poll() is None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        self._kill()
        self._folder.cleanup()

    def _kill(self) -> None:
        """End the process and what it has started: a simulator would go on, in a group of its own."""
        found = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        children = found.read_text(encoding="utf-8").split() if self._process.poll() is None and found.exists() else []
        for pid in (*map(int, children), self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def _answer(self, limit_s: float, what: str, nbytes: int = 0) -> dict:
        """The next answer, with the bytes that follow it; raises if there is none in time."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(limit_s, stop)
        timer.daemon = True
        timer.start()
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
            answer = json.loads(line) if line else {}
            if "error" in answer:
                raise _error(answer)
            answer["rows"] = self._process.stdout.read(nbytes) if answer else b""
        finally:
            timer.cancel()
        if not line or len(answer["rows"]) != nbytes:
            ended = (
                f"took more than {limit_s:.0f} s" if late.is_set() else f"ended the runtime's process ({self._last()})"
            )
            raise ExecError(f"metalium: {what} {ended}; run again with fewer ranks or less data")
        return answer

    def _last(self) -> str:
        """What the process said last."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n") if self._log.exists() else []
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it said nothing")


def _error(answer: dict) -> LinkwrightError:
    cure = _CURES.get(answer["code"])
    if cure is None:
        return ExecError(f"metalium: {answer['error']}")
    return NoMetaliumError(f"--on metalium: {answer['error']}; {cure}")
