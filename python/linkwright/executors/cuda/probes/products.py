"""Matrix products by the vendor's libraries: `matmul` of the catalogue on all SMs.

Operands are normal random numbers rounded to the type, because the power of a GPU, and so its clock, depends on the
data. `f8` is e4m3 with scales of one and a result in bf16; `tf32` stores factors in 32 bits and multiplies 19 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..bf16 import narrow, widen
from ..measure import Gpu
from . import libraries
from .host_link import device_memory
from .sampling import fits

KEY = "matmul"
# Relative spacing of the numbers that a product is rounded to.
EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "tf32": 2.0**-10, "f16": 2.0**-10, "bf16": 2.0**-7, "f8": 2.0**-7}
_BYTES = {"f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f8": 2}
# Types whose sums are no wider than their factors.
_OWN_SUMS = ("f64", "f32")
_F8_MULTIPLE = 16
_CHECKED = 64
# Random numbers that are drawn; a matrix repeats them, and every row starts at another one.
_DRAWN = 1_000_003

# What a library prepares: its name, a call that starts one product, the rounded factors, a reader of the product.
Ready = tuple[str, Callable[[], object], np.ndarray, np.ndarray, Callable[[], np.ndarray]]


def measure(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One launch."""
    n, dtype = int(axes["n"]), str(axes["dtype"])
    libraries.whole_gpu(KEY, axes)
    if n < 1:
        raise WaivedError(f"{KEY}: waived: a product needs a size of at least 1")
    libraries.has_type(KEY, gpu, dtype)
    if dtype == "f8" and n % _F8_MULTIPLE:
        raise WaivedError(f"{KEY}: waived: in f8 n is a multiple of {_F8_MULTIPLE}, not {n}")
    fits(KEY, gpu, 3 * n * n * _BYTES[dtype])
    wide = np.dtype(np.float64 if dtype == "f64" else np.float32)
    libraries.fits_host(KEY, 6 * n * n * wide.itemsize, how)
    a, b = (operand(n, wide, how.seed + number) for number in range(2))
    with _library(dtype)(gpu, dtype, a, b) as (library, call, a, b, product):
        found = libraries.sampled(KEY, gpu, call, how, library=library, done=2.0 * n**3, dtype=dtype)
        check(a, b, product(), dtype)
    return found


def operand(n: int, kind: np.dtype, seed: int) -> np.ndarray:
    """A matrix of normal numbers."""
    drawn = np.random.default_rng(seed).standard_normal(min(_DRAWN, n * n), kind)
    return np.resize(drawn, (n, n))


def check(a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: str) -> None:
    """Check some elements by definition, and all of them through a product with a random vector."""
    n = len(a)
    random = np.random.default_rng(n)
    # An element adds n products and is about sqrt(n) large; sums as narrow as their factors round at each term.
    allowed = 8 * EPSILON[dtype] * (n if dtype in _OWN_SUMS else max(4, np.sqrt(n)))
    rows, columns = random.integers(0, n, (2, _CHECKED))
    elements = np.einsum("ij,ij->i", a[rows].astype(float), b[:, columns].T.astype(float))
    v = random.choice(np.array([-1, 1], a.dtype), n)
    wrong = {
        "an element": (np.abs(c[rows, columns] - elements).max(), allowed),
        "a row": (np.abs(c @ v - a @ (b @ v)).max(), allowed * np.sqrt(n) + 64 * np.finfo(a.dtype).eps * n),
    }
    for what, (found, most) in wrong.items():
        if not found <= most:
            raise WrongResultError(
                f"{KEY} of n = {n}, {dtype}: {what} of the product is off by {found:.3g}, but rounding explains at "
                f"most {most:.3g}; no time is reported"
            )


def _library(dtype: str) -> Callable[..., AbstractContextManager[Ready]]:
    if libraries.torch():
        return _by_torch
    if dtype == "f8":
        raise libraries.missing(f"{KEY} in f8", "torch")
    if libraries.cupy("cublas"):
        return _by_cupy
    raise libraries.missing(KEY, "torch", "cupy")


@contextmanager
def _by_torch(gpu: Gpu, dtype: str, a: np.ndarray, b: np.ndarray) -> Iterator[Ready]:
    torch = libraries.torch()
    names = {"f16": "float16", "bf16": "bfloat16", "f8": "float8_e4m3fn"}
    kind = getattr(torch, names.get(dtype, str(a.dtype)))
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    left, right = (torch.from_numpy(each).to(device="cuda", dtype=kind) for each in (a, b))
    if dtype == "f8":
        one = torch.ones(1, dtype=torch.float32, device="cuda")
        by_column = right.t().contiguous().t()  # the layout that it requires of the second factor
        made = {}

        def call() -> None:
            made["c"] = torch._scaled_mm(left, by_column, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    else:
        made = {"c": torch.empty(a.shape, dtype=kind, device="cuda")}

        def call() -> None:
            torch.matmul(left, right, out=made["c"])

    def back(tensor) -> np.ndarray:
        return tensor.to(dtype=torch.from_numpy(a).dtype).cpu().numpy()

    name = f"PyTorch {torch.__version__} (CUDA {torch.version.cuda})"
    yield name, call, back(left), back(right), lambda: back(made["c"])


@contextmanager
def _by_cupy(gpu: Gpu, dtype: str, a: np.ndarray, b: np.ndarray) -> Iterator[Ready]:
    cublas, runtime = libraries.cupy("cublas"), libraries.cupy("runtime")
    n, stored = len(a), [_stored(each, dtype) for each in (a, b)]
    kind = {"f64": runtime.CUDA_R_64F, "f16": runtime.CUDA_R_16F, "bf16": runtime.CUDA_R_16BF}.get(
        dtype, runtime.CUDA_R_32F
    )
    sums = {"f64": cublas.CUBLAS_COMPUTE_64F, "tf32": cublas.CUBLAS_COMPUTE_32F_FAST_TF32}.get(
        dtype, cublas.CUBLAS_COMPUTE_32F
    )
    one, zero = (np.array(value, a.dtype) for value in (1, 0))
    with ExitStack() as held:
        handle = cublas.create()
        held.callback(cublas.destroy, handle)
        left, right, made = (held.enter_context(device_memory(gpu, stored[0].nbytes)) for _ in range(3))

        def call() -> None:
            # The library stores matrices by columns, so the factors change places.
            cublas.gemmEx(
                handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, n, n, n, one.ctypes.data, right, kind, n, left, kind, n,
                zero.ctypes.data, made, kind, n, sums, cublas.CUBLAS_GEMM_DEFAULT,
            )  # fmt: skip

        def back(address: int) -> np.ndarray:
            found = gpu.device.read(address, stored[0])
            return widen(found) if dtype == "bf16" else found.astype(a.dtype, copy=False)

        for address, factor in zip((left, right), stored, strict=True):
            gpu.device.write(address, factor)
        name = f"CuPy, cuBLAS {cublas.getVersion(handle)}"
        yield name, call, back(left), back(right), lambda: back(made)


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers as the GPU stores them."""
    if dtype == "bf16":
        return narrow(values)
    return values.astype(np.float16) if dtype == "f16" else values
