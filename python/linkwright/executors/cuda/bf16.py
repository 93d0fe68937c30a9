"""Numbers in bf16, which NumPy does not have, as 16-bit words."""

import numpy as np


def widen(values: np.ndarray) -> np.ndarray:
    """Numbers in bf16 as 32-bit floats."""
    return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    """32-bit floats in bf16: to nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
