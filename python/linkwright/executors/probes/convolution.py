"""Forward convolution by onnxruntime: the layers of six networks, by batch size and threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwright import _native
from linkwright.base.errors import WrongResultError
from linkwright.store.record import Record

from . import Axes, Setting, described, onnx_graph
from .work import fits_memory, fits_time, kind_on_host, on_cpus, sampled, timed

KEY = "convolution"
_TYPES = {"f32": np.float32, "f16": np.float16}
# onnxruntime keeps another copy of weights and images in the order of its kernels.
_COPIES = 2
# Elements of the output that are recomputed from the definition.
_CHECKED = 8


def measure(axes: Axes, setting: Setting) -> Record:
    """One launch."""
    layer, batch, threads = layers()[str(axes["layer"])], int(axes["batch"]), int(axes["threads"])
    kind = np.dtype(kind_on_host(KEY, axes, _TYPES))
    images, filters, results = shapes(layer, batch)
    elements = sum(int(np.prod(shape)) for shape in (images, filters, results))
    fits_memory(KEY, _COPIES * elements * kind.itemsize, setting)
    random = np.random.default_rng(setting.seed)
    with on_cpus(KEY, setting, threads) as notes:
        x, w = (random.standard_normal(shape, np.float32).astype(kind) for shape in (images, filters))
        graph = onnx_graph.convolution(KEY, layer, batch, w, threads)
        graph.run(x)
        fits_time(KEY, timed(lambda: graph.repeat(1)), setting)
        found = sampled(graph.repeat, setting, threads, work=layer["flops"] * batch, notes=notes)
        check(layer, x, w, graph.result(), setting.seed)
        return found


def layers() -> dict[str, dict[str, int]]:
    """Every layer by key: its sizes, the width of its output, its operations for one image."""
    return {row.pop("key"): row for row in _native.convolution_layers()}


def shapes(layer: dict, batch: int) -> tuple[tuple[int, ...], ...]:
    """Of the images, the filters and the output."""
    width, depth = layer["output"], layer["in_channels"] // layer["groups"]
    return (
        (batch, layer["in_channels"], layer["input"], layer["input"]),
        (layer["out_channels"], depth, layer["filter"], layer["filter"]),
        (batch, layer["out_channels"], width, width),
    )


def borders(layer: dict) -> tuple[int, int]:
    """Zeros before the first and behind the last row and column, so that the output has its width."""
    border = max((layer["output"] - 1) * layer["stride"] + layer["filter"] - layer["input"], 0)
    return border // 2, border - border // 2


def check(
    layer: dict, x: np.ndarray, w: np.ndarray, y: np.ndarray, seed: int,
    library: str = "onnxruntime", rounding: Callable[[np.ndarray], float] | None = None,
) -> None:  # fmt: skip
    """Compares some elements of the output with the definition; `rounding` is the error allowed for a sum of terms."""
    rounding = rounding or (lambda terms: 64 * float(np.finfo(y.dtype).eps) * float(np.abs(terms).sum()))
    step, size, before = layer["stride"], layer["filter"], borders(layer)
    per_group = layer["out_channels"] // layer["groups"]
    random = np.random.default_rng(seed)
    for _ in range(_CHECKED):
        image, out, row, column = (int(random.integers(end)) for end in y.shape)
        first = out // per_group * w.shape[1]
        padded = np.pad(x[image, first : first + w.shape[1]].astype(float), ((0, 0), before, before))
        window = padded[:, row * step : row * step + size, column * step : column * step + size]
        terms = window * w[out].astype(float)
        wanted, allowed = float(terms.sum()), rounding(terms)
        found = float(y[image, out, row, column])
        if not abs(found - wanted) <= allowed:
            raise WrongResultError(
                f"convolution: element ({image}, {out}, {row}, {column}) is {found:.6g} and should be {wanted:.6g}; "
                f"no time is reported; {library} is broken, or the memory is"
            )


PROBE = described(KEY, measure=measure)
