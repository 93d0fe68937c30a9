import numpy as np

from ..tensor import Tensor


def pad(x, widths):
    left, right, top, bottom = widths
    return Tensor(np.pad(x.values, ((0, 0), (0, 0), (top, bottom), (left, right))), x.dtype)


def conv2d(x, w, *, stride, padding, groups):
    given = np.pad(x.values, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    depth, size = w.values.shape[1:3]
    windows = np.lib.stride_tricks.sliding_window_view(given, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    parts = [
        np.tensordot(filters, windows[:, g * depth : (g + 1) * depth], ((1, 2, 3), (1, 4, 5)))
        for g, filters in enumerate(np.split(w.values, groups))
    ]
    return Tensor(np.concatenate(parts).swapaxes(0, 1), x.dtype).to(dtype=x.dtype)
