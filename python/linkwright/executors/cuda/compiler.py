"""Kernels compiled at run time by NVRTC, for the very GPU at hand; no CUDA toolkit is needed.

The result is machine code (a cubin), not PTX: a driver older than NVRTC loads it all the same.
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from linkwright.errors import CudaError

KERNELS = Path(str(resources.files("linkwright") / "kernels"))
# What every kernel is compiled for in the tests; at run time it is what the GPU says.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
CLUSTERS_FROM = "sm_90"
CURE = "install it with `pip install linkwright[cuda]`"


def sources() -> list[str]:
    """Kernels by file, without their ending."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


@functools.cache
def cubin(source: str, architecture: str, defines: tuple[str, ...] = ()) -> bytes:
    """A kernel file as machine code of `architecture` (`sm_90`)."""
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
    try:
        options = [f"--gpu-architecture={architecture}", "--std=c++17", *(f"--define-macro={name}" for name in defines)]
        compiled = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        if compiled != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
            _checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise CudaError(
                f"kernel {source}.cu does not compile for {architecture} ({compiled.name}); this GPU may be newer than "
                f"the NVRTC installed: {_first_lines(log)}"
            )
        found = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
        _checked(nvrtc.nvrtcGetCUBIN(program, found))
        return found
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _first_lines(log: bytes) -> str:
    """The first error with its place; what follows are mostly its consequences."""
    return " ".join(log.decode(errors="replace").strip("\0 \n").splitlines()[:3])


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
