"""Convolution layers by cuDNN: `convolution` of the catalogue on all SMs, the same 64 layers as on every machine.

PyTorch calls cuDNN, which tries all its methods and takes the fastest (`benchmark`). Types of the tensor cores have
their channels innermost, as those units want them; `f32` has them outermost. If a layer pads an image unevenly, the
image arrives padded, so the layer stays the one that is counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwright.base.errors import WaivedError
from linkwright.executors.probes import convolution
from linkwright.executors.process import Sampling
from linkwright.store.record import Note, Record, remarks

from ..measure import Gpu
from . import libraries
from .products import EPSILON
from .sampling import fits

KEY = convolution.KEY
_NAMES = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16"}
_TENSOR_CORES = ("tf32", "f16", "bf16")
# cuDNN's workspace may be several times as large as the images.
_COPIES = 4


def measure(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One launch."""
    layer, batch, dtype = convolution.layers()[str(axes["layer"])], int(axes["batch"]), str(axes["dtype"])
    libraries.whole_gpu(KEY, axes)
    if batch < 1:
        raise WaivedError(f"{KEY}: waived: a batch of 0 images is empty; ask for at least 1")
    libraries.has_type(KEY, gpu, dtype)
    torch = libraries.torch()
    if torch is None:
        raise libraries.missing(KEY, "torch")
    images, filters, results = convolution.shapes(layer, batch)
    nbytes = 4 * sum(int(np.prod(shape)) for shape in (images, filters, results))
    fits(KEY, gpu, _COPIES * nbytes)
    libraries.fits_host(KEY, 2 * nbytes, how)
    random = np.random.default_rng(how.seed)
    order = torch.channels_last if dtype in _TENSOR_CORES else torch.contiguous_format
    x, w = (
        torch.from_numpy(random.standard_normal(shape, np.float32)).to(
            device="cuda", dtype=getattr(torch, _NAMES[dtype]), memory_format=order
        )
        for shape in (images, filters)
    )
    made: dict[str, object] = {}
    call = _convolved(torch, layer, x, w, order, made)
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=True, benchmark_limit=0, deterministic=False, allow_tf32=dtype == "tf32"
    ):  # a limit of 0 tries all methods; the default is ten
        found = libraries.sampled(
            KEY, gpu, call, how, library=f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}",
            done=float(layer["flops"] * batch), dtype=dtype, may_exceed=True,
        )  # fmt: skip
    x, w, y = (tensor.float().cpu().numpy() for tensor in (x, w, made["y"]))
    convolution.check(layer, x, w, y, how.seed, "cuDNN", _rounding(dtype))
    return found.noted(*_faster(found))


def _convolved(torch, layer: dict, x, w, order, made: dict[str, object]) -> Callable[[], None]:
    """A call that starts one forward convolution."""
    functional = torch.nn.functional
    before, behind = convolution.borders(layer)
    uneven = before != behind
    given = functional.pad(x, (before, behind, before, behind)).contiguous(memory_format=order) if uneven else x
    padding, stride, groups = 0 if uneven else before, layer["stride"], layer["groups"]

    def call() -> None:
        made["y"] = functional.conv2d(given, w, stride=stride, padding=padding, groups=groups)

    return call


def _rounding(dtype: str) -> Callable[[np.ndarray], float]:
    """The error that rounding explains: of factors and result in their type, of sums in 32 bits."""

    def allowed(terms: np.ndarray) -> float:
        size = abs(float(terms.sum())) + float(np.sqrt((terms**2).sum()))
        return 16 * EPSILON[dtype] * size + 64 * EPSILON["f32"] * float(np.abs(terms).sum())

    return allowed


def _faster(found: Record) -> list[Note]:
    beyond = found.limit_ns is not None and found.values_ns and min(found.values_ns) < found.limit_ns
    return remarks("above the peak rate of the counted operations: the method needs fewer" if beyond else None)
