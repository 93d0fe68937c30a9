import numpy as np

from linkwright.executors.cuda.bf16 import narrow, widen


class Tensor:
    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype

    def to(self, *, dtype, device=None, memory_format=None):
        return Tensor(_rounded(self.values, dtype), dtype)

    def float(self):
        return self.to(dtype="float32")

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    def t(self):
        return Tensor(self.values.T, self.dtype)

    def contiguous(self, *, memory_format=None):
        return Tensor(np.ascontiguousarray(self.values), self.dtype)


def _rounded(values, dtype):
    if dtype == "float64":
        return values.astype(np.float64)
    values = np.ascontiguousarray(values, np.float32)
    if dtype == "bfloat16":
        return widen(narrow(values))
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "float8_e4m3fn":
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.round(mantissa * 16) / 16, exponent).astype(np.float32)
    return values.copy()
