"""Kernels compiled at run time by NVRTC, for the very GPU at hand; no CUDA toolkit is needed.

The result is machine code (a cubin), not PTX: a driver older than NVRTC loads it all the same.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from linkwright.errors import CudaError

KERNELS = Path(str(resources.files("linkwright") / "kernels"))
# What every kernel is compiled for in the tests; at run time it is what the GPU says.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
CLUSTERS_FROM = "sm_90"
# The second one is for lambdas that take any type.
_OPTIONS = ("--std=c++17", "--device-as-default-execution-space")
CURE = "install it with `pip install linkwright[cuda]`"


def sources() -> list[str]:
    """Kernels by file, without their ending."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


@dataclass(frozen=True)
class Compiled:
    """What NVRTC makes of a kernel file."""

    cubin: bytes  # machine code
    ptx: str
    log: str


def cubin(source: str, architecture: str, defines: tuple[str, ...] = ()) -> bytes:
    """A kernel file as machine code of `architecture` (`sm_90`)."""
    return compiled(source, architecture, defines).cubin


@functools.cache
def compiled(source: str, architecture: str, defines: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Compiled:
    """A kernel file, compiled with more options than those of every kernel."""
    nvrtc = _nvrtc()
    text = (KERNELS / f"{source}.cu").read_bytes()
    headers = sorted(KERNELS.glob("*.cuh"))
    program = _checked(
        nvrtc.nvrtcCreateProgram(
            text,
            f"{source}.cu".encode(),
            len(headers),
            [header.read_bytes() for header in headers],
            [header.name.encode() for header in headers],
        )
    )

    def got(what: str) -> bytes:
        found = b" " * _checked(getattr(nvrtc, f"nvrtcGet{what}Size")(program))
        _checked(getattr(nvrtc, f"nvrtcGet{what}")(program, found))
        return found

    try:
        options = [
            f"--gpu-architecture={architecture}",
            *_OPTIONS,
            *(f"--define-macro={name}" for name in defines),
            *more,
        ]
        status = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        log = got("ProgramLog").decode(errors="replace").strip("\0 \n")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CudaError(
                f"kernel {source}.cu does not compile for {architecture} ({status.name}); this GPU may be newer than "
                f"the NVRTC installed: {_first_lines(log)}"
            )
        return Compiled(got("CUBIN"), got("PTX").decode().strip("\0"), log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _first_lines(log: str) -> str:
    """The first error with its place; what follows are mostly its consequences."""
    return " ".join(log.splitlines()[:3])


def version() -> str:
    """Of NVRTC."""
    major, minor = _checked(_nvrtc().nvrtcVersion())
    return f"{major}.{minor}"


def _nvrtc():
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise CudaError(f"--on cuda: cuda-bindings is not installed; {CURE}") from error
    return nvrtc


def _checked(answer: tuple):
    """What a call of NVRTC returns besides its status."""
    status, *values = answer
    if int(status):
        raise CudaError(f"NVRTC failed with {status.name}; {CURE}")
    return values[0] if len(values) == 1 else tuple(values)
