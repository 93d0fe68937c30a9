"""Kernels, compiled at run time by NVRTC for the GPU at hand; this needs neither a CUDA toolkit nor its headers.

The result is machine code (a cubin), which a driver older than NVRTC loads too if both share a major version of CUDA.
For a GPU newer than NVRTC it is PTX of the newest architecture that NVRTC knows, which the driver finishes compiling.
Results are kept in the user's cache, because every launch is a fresh process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from linkwright.base.errors import CudaError, NoGpuError
from linkwright.base.extras import install

CURE = f"install it with {install('cuda')}; for drivers from 580 on, {install('cuda13')} does as well"
KERNELS = Path(str(resources.files("linkwright") / "kernels"))
# The first architecture with ordering loads and stores.
LEAST = "sm_70"
CLUSTERS_FROM = "sm_90"
# The second one allows generic lambdas; with the third, sanitizers and profilers name lines, and the code is the same.
_OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--generate-line-info")


def sources() -> list[str]:
    """Files of kernels, without their suffix."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


def number(architecture: str) -> int:
    """90 of `sm_90`."""
    return int(architecture.removeprefix("sm_"))


@functools.cache
def code(source: str, architecture: str, defines: tuple[str, ...] = ()) -> bytes:
    """The code of a kernel file for a GPU of `architecture` (`sm_90`), from the cache if it is there."""
    target = _target(architecture)
    made_of = [version(), target, _OPTIONS, defines, source, *_texts(source)]
    kept = _cache() / hashlib.sha256(repr(made_of).encode()).hexdigest()
    with contextlib.suppress(OSError):
        return kept.read_bytes()
    made = compiled(source, target, defines)
    found = made.cubin or made.ptx.encode() + b"\0"
    with contextlib.suppress(OSError):  # go without a cache that cannot be written
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(found)
        unfinished.replace(kept)
    return found


@dataclass(frozen=True)
class Compiled:
    """Compile a kernel file with NVRTC."""

    cubin: bytes  # machine code; empty for a target such as `compute_90`
    ptx: str
    log: str


@functools.cache
def compiled(source: str, target: str, defines: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Compiled:
    """A kernel file, compiled for `sm_90` or `compute_90`, with `more` options."""
    text, headers = _texts(source)
    names = [name.encode() for name in headers]
    program = _checked("nvrtcCreateProgram", text, f"{source}.cu".encode(), len(headers), list(headers.values()), names)

    def got(what: str) -> bytes:
        size = _checked(f"nvrtcGet{what}Size", program)
        # NVRTC writes into it, so it must be an object of its own: Python shares all bytes objects of length 1, and a
        # log that is empty has just its final zero.
        found = bytes(size + 1) if size else b""
        if size:
            _checked(f"nvrtcGet{what}", program, found)
        return found[:size]

    try:
        options = [f"--gpu-architecture={target}", *_OPTIONS, *(f"--define-macro={name}" for name in defines), *more]
        try:
            _checked("nvrtcCompileProgram", program, len(options), [option.encode() for option in options])
        except CudaError as error:
            said = _first_lines(got("ProgramLog").decode(errors="replace"))
            raise CudaError(f"kernel {source}.cu does not compile for {target} by NVRTC {version()}: {said}") from error
        log = got("ProgramLog").decode(errors="replace").strip("\0 \n")
        return Compiled(got("CUBIN"), got("PTX").decode().strip("\0"), log)
    finally:
        _checked("nvrtcDestroyProgram", program)


def version() -> str:
    """The version of NVRTC."""
    major, minor = _checked("nvrtcVersion")
    return f"{major}.{minor}"


def _texts(source: str) -> tuple[bytes, dict[str, bytes]]:
    """A kernel file, and all headers by name."""
    headers = {header.name: header.read_bytes() for header in sorted(KERNELS.glob("*.cuh"))}
    return (KERNELS / f"{source}.cu").read_bytes(), headers


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/")) / ".cache"
    return Path(home) / "linkwright" / "kernels"


def _target(architecture: str) -> str:
    """The target for NVRTC: the GPU, or the newest architecture before it."""
    known, wanted = _checked("nvrtcGetSupportedArchs"), number(architecture)
    if wanted in known:
        return architecture
    if wanted < min(known):
        raise CudaError(
            f"NVRTC {version()} compiles for sm_{min(known)} and newer, and this GPU is {architecture}: "
            f"{install('cuda')} installs the NVRTC of CUDA 12, which supports it"
        )
    return f"compute_{max(each for each in known if each < wanted)}"


def _first_lines(log: str) -> str:
    """The first error with its place; the rest mostly follows from it."""
    lines = [line for line in log.strip("\0 \n").splitlines() if not line.startswith("nvrtc: warning")]
    return " ".join(lines[:3])


def _checked(name: str, *arguments: object):
    """What a call of NVRTC returns besides its status."""
    try:
        from cuda.bindings import nvrtc

        status, *values = getattr(nvrtc, name)(*arguments)
    except (ImportError, RuntimeError) as error:  # the bindings, or the library behind them, are missing
        raise NoGpuError(f"kernels cannot be compiled: {error}; {CURE}") from error
    if int(status):
        raise CudaError(f"{name} failed with {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
