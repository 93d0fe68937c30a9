"""Tensors that are NumPy arrays; 16 and 8 bits are rounded as such and kept in 32."""

from types import SimpleNamespace

import numpy as np

from linkwright.executors.cuda.bf16 import narrow, widen

from . import nn  # noqa: F401
from .tensor import Tensor

__version__ = "stand-in"
float64, float32, float16, bfloat16, float8_e4m3fn = "float64", "float32", "float16", "bfloat16", "float8_e4m3fn"
channels_last, contiguous_format = "channels_last", "contiguous_format"
version = SimpleNamespace(cuda="none")
cuda = SimpleNamespace(is_available=lambda: True, empty_cache=lambda: None)


class _Flags:
    def __init__(self, *, enabled, benchmark, benchmark_limit, deterministic, allow_tf32):
        assert enabled
        assert benchmark
        assert benchmark_limit == 0

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


backends = SimpleNamespace(cudnn=SimpleNamespace(flags=_Flags, version=lambda: 0))


def set_float32_matmul_precision(precision):
    assert precision in ("highest", "high")


def from_numpy(array):
    return Tensor(array, str(array.dtype))


def empty(shape, *, dtype, device):
    return Tensor(np.zeros(shape, float64 if dtype == float64 else float32), dtype)


def ones(count, *, dtype, device):
    return Tensor(np.ones(count, dtype), dtype)


def matmul(a, b, *, out):
    assert a.dtype == b.dtype == out.dtype
    out.values[:] = a.values @ b.values if a.dtype != "float16" else a.values.astype(np.float32) @ b.values


def _scaled_mm(a, b, *, scale_a, scale_b, out_dtype):
    assert a.dtype == b.dtype == float8_e4m3fn
    assert b.values.flags.f_contiguous
    return Tensor(widen(narrow(np.ascontiguousarray(a.values @ b.values))), out_dtype)
