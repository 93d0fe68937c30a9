"""Calls of the driver through `cuda.bindings` of CUDA 12 or 13; errors quote the driver and name the cure."""

from __future__ import annotations

from collections.abc import Container
from types import ModuleType

from linkwright.base.errors import CudaError, NoGpuError
from linkwright.base.extras import install

from .compiler import CURE
from .compiler import version as nvrtc_version

# Cures of errors that the machine causes.
_CURES = {
    "CUDA_ERROR_NO_DEVICE": "CUDA_VISIBLE_DEVICES chooses the GPUs of this process, `nvidia-smi` shows all, and one in "
    "MIG mode needs an instance",
    "CUDA_ERROR_INVALID_DEVICE": "CUDA_VISIBLE_DEVICES may name a GPU that does not exist",
    "CUDA_ERROR_SYSTEM_NOT_READY": "GPUs behind NVSwitch need `systemctl start nvidia-fabricmanager`",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated since it was loaded: restart the machine",
    "CUDA_ERROR_STUB_LIBRARY": "libcuda.so.1 is the stub of a toolkit: remove its folder from LD_LIBRARY_PATH",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process has exclusive use of the GPU; `nvidia-smi` shows which",
    "CUDA_ERROR_OUT_OF_MEMORY": "`nvidia-smi` shows who else uses the GPU's memory; ask for smaller sizes",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": "another process may be using the GPU (MPS): use it alone",
}
# Errors of machine code from an NVRTC that this driver does not know.
_FOREIGN_CODE = (
    "CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
)  # fmt: skip


def started(on: str) -> ModuleType:
    """The bindings, with the driver started; without a driver the error names the cure."""
    try:
        from cuda.bindings import driver as bindings
    except ImportError as error:
        raise NoGpuError(f"--on {on}: cuda-bindings is not installed; {CURE}") from error
    try:
        status = bindings.cuInit(0)[0]
    except RuntimeError as error:  # the driver's library is missing
        raise NoGpuError(
            f"--on {on}: this machine has no NVIDIA driver (libcuda.so.1 is not found); run it where there is a GPU, "
            "or model one with --on MACHINE"
        ) from error
    if int(status):
        raise NoGpuError(f"--on {on}: the NVIDIA driver does not start: {_said(bindings, status)}")
    return bindings


def call(bindings: ModuleType, about: str, name: str, *arguments: object, bears: Container[str] = ()):
    """One call; what it returns besides its status, or None if it ends with a status that the caller `bears`."""
    try:
        status, *values = getattr(bindings, name)(*arguments)
    except RuntimeError as error:  # a call that this driver is too old for
        raise CudaError(f"{about}: {name}: {error}; {_too_old(bindings)}") from error
    if int(status) and status.name not in bears:
        said = _said(bindings, status)
        raise CudaError(
            f"{about}: {name} failed: {said}"
            + (f"; {_too_old(bindings)}" if status.name in _FOREIGN_CODE and name == "cuModuleLoadData" else "")
        )
    return values[0] if len(values) == 1 else tuple(values) or None


def text(value: bytes) -> str:
    """The text that the driver wrote into a buffer."""
    return value.decode(errors="replace").strip("\0 ")


def _said(bindings: ModuleType, status) -> str:
    """A status in words, with its cure."""
    message = bindings.cuGetErrorString(status)[1]
    return "; ".join(filter(None, [f"{text(message or b'')} ({status.name})".lstrip(), _CURES.get(status.name)]))


def _too_old(bindings: ModuleType) -> str:
    """The cure for a driver older than what is installed for it."""
    number = int(bindings.cuDriverGetVersion()[1])
    return (
        f"the driver is of CUDA {number // 1000}.{number % 1000 // 10}, and NVRTC is {nvrtc_version()}: "
        f"use a newer driver, or {install('cuda')}, which is CUDA 12 and works with drivers from 525 on"
    )
