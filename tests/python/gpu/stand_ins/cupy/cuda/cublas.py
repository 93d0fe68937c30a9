# ruff: noqa: N802, N803
"""cuBLAS's product by columns, in the memory of the process."""

import ctypes

import numpy as np

from linkwright.executors.cuda.bf16 import narrow, widen

CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F = 68, 77, 70
CUBLAS_GEMM_DEFAULT = -1
CUBLAS_OP_N = 0
_KINDS = {0: np.float32, 1: np.float64, 2: np.float16, 14: np.uint16}


def create():
    return 1


def destroy(handle):
    assert handle == 1


def getVersion(handle):
    return 0


def gemmEx(
    handle,
    transa,
    transb,
    m,
    n,
    k,
    alpha,
    A,
    Atype,
    lda,
    B,
    Btype,
    ldb,
    beta,
    C,
    Ctype,
    ldc,
    computeType,
    algo,
):
    scalar = ctypes.c_double if computeType == CUBLAS_COMPUTE_64F else ctypes.c_float
    assert (handle, transa, transb, algo) == (1, 0, 0, -1)
    assert (scalar.from_address(alpha).value, scalar.from_address(beta).value) == (1, 0)
    left, right, made = (_matrix(at, Atype, n) for at in (A, B, C))
    # By columns, so each is the transpose of what lies there.
    product = (_wide(right) @ _wide(left)).astype(scalar)
    made[:] = narrow(product) if Ctype == 14 else product


def _matrix(address, kind, n):
    dtype = np.dtype(_KINDS[kind])
    return np.frombuffer((ctypes.c_char * (n * n * dtype.itemsize)).from_address(address), dtype).reshape(n, n)


def _wide(matrix):
    return widen(matrix) if matrix.dtype == np.uint16 else matrix.astype(np.promote_types(matrix.dtype, np.float32))
