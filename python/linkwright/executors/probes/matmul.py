"""Square matrix product: NumPy's matmul for 64 and 32 bits, onnxruntime for 16.

NumPy multiplies 16-bit floats without BLAS, element by element, hundreds of times slower than it could; that is
no statement about the machine, so 16-bit products are onnxruntime's, and only where it computes in 16 bits.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.errors import WrongResultError
from linkwright.store.record import Record

from . import Axes, Setting, described, onnx_graph
from .work import fits_memory, fits_time, kind_on_host, on_cpus, sampled, timed

KEY = "matmul"
_TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
# A product of this size tells the rate, from which the time of a large one follows.
_ESTIMATE_N = 512


def measure(axes: Axes, setting: Setting) -> Record:
    """One launch."""
    n, dtype, threads = int(axes["n"]), str(axes["dtype"]), int(axes["threads"])
    kind = np.dtype(kind_on_host(KEY, axes, _TYPES))
    fits_memory(KEY, 3 * n * n * kind.itemsize, setting)
    random = np.random.default_rng(setting.seed)
    with on_cpus(KEY, setting, threads) as notes:
        if dtype == "f16":
            a, b = (random.standard_normal((n, n), np.float32).astype(kind) for _ in range(2))
            product = onnx_graph.matmul(KEY, n, threads)
            fits_time(KEY, timed(lambda: product.run(a, b)), setting)
            check(a, b, product.run(a, b))
            return sampled(product.repeat, setting, threads, work=2 * n**3, notes=notes)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(threads, user_api="blas"):
            fits_time(KEY, _estimate_s(n, kind), setting)
            a, b = (random.standard_normal((n, n), kind) for _ in range(2))
            c = np.empty((n, n), kind)

            def multiply(times: int) -> None:
                for _ in range(times):
                    np.matmul(a, b, out=c)

            found = sampled(multiply, setting, threads, work=2 * n**3, notes=notes)
            check(a, b, c)
            return found


def _estimate_s(n: int, kind: np.dtype) -> float:
    """Seconds of one product, from a smaller one."""
    small = np.ones((min(n, _ESTIMATE_N),) * 2, kind)
    np.matmul(small, small)
    return timed(lambda: np.matmul(small, small)) * (n / len(small)) ** 3


def check(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Freivalds: C v = A (B v) for a random v, up to rounding; a wrong element shows in its row."""
    n = len(a)
    v = np.random.default_rng(n).choice([-1.0, 1.0], n)
    wanted = a.astype(float) @ (b.astype(float) @ v) if n <= _ESTIMATE_N else a @ (b @ v.astype(b.dtype))
    wrong = np.abs(c.astype(float) @ v - wanted).max()
    # Each of n terms of |a||b||v| rounds by epsilon; sums of them scatter like a random walk.
    allowed = 64 * float(np.finfo(c.dtype).eps) * n * max(1.0, np.sqrt(np.log2(n + 1)))
    if not wrong <= allowed:
        raise WrongResultError(
            f"matmul of n = {n}: a row of the product is off by {wrong:.3g}, but rounding explains {allowed:.3g}; no "
            f"time is reported; the BLAS that NumPy uses is broken, or the memory is"
        )


PROBE = described(KEY, measure=measure)
