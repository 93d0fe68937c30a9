"""Computing: products, convolutions and random numbers by size, with the peak of the cores as their limit."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base.rows import Row, Rows, among, nunique
from linkwright.executors import EXECUTORS

from ..model import Axis, Plot, Section
from ..runs import Run, ok
from . import axes, memory, values

INTRO = (
    "What the cores achieve, compared with their peak. Dashed lines are the best rate seen of multiply-adds on "
    "registers alone, or of storing numbers without generating them; on a GPU, the limit is what its SMs do at their "
    "clock. Small sizes show the cost of a call."
)
# Probe -> the x axis of its plot: (name in the rows, title, unit).
_OVER = {
    "matmul": ("n", "rows and columns of each matrix", "1"),
    "convolution": ("batch", "images at once", "1"),
    "random": ("size_bytes", "bytes of a block", "B"),
}
PROBES = ("fma_peak", *_OVER)
_METRICS = ("flop_rate", "sample_rate")


def section(run: Run) -> Section | None:
    """One plot per probe that varies over its axis."""
    rows = ok(run.rows)
    rows = rows[among(rows["metric"], _METRICS)]
    plots = [plot for probe, over in _OVER.items() for plot in _plots(run, rows[rows["algorithm"] == probe], over)]
    return Section("Computing", plots, INTRO) if plots else None


def workers(row: Row) -> str:
    """The workers of a row: threads, or all SMs of a GPU, whose library cannot use fewer."""
    executor = EXECUTORS.get(row["executor"])
    return (executor and executor.library_takes) or memory.threads(row["ranks"])


def _plots(run: Run, rows: Rows, over: tuple[str, str, str]) -> Iterator[Plot]:
    axis, title, unit = over
    stated = [axes.stated(text) for text in rows["axes"]]
    x = rows["size_bytes"] if axis == "size_bytes" else [float(given[axis]) for given in stated]
    rest = [" ".join(value for key, value in given.items() if key != axis) for given in stated]
    rows = rows.assign(x=x, series=[f"{words}, {workers(row)}" for words, row in zip(rest, rows, strict=True)])
    # Keep the layers of one network together; a plot of 64 curves would be unreadable.
    rows = rows.assign(plot=[words.split(".")[0] if "." in words else "" for words in rest])
    for (name,), part in rows.by("plot", sort=True):
        if nunique(part["x"]) < 2:
            continue
        metric = part["metric"][0]
        curves = []
        for machine in run.machines:
            for (series,), points in part[part["machine"] == machine].by("series", sort=True):
                curves += values.with_limit(points, "x", values.series_name(run, machine, str(series)))
        heading = ", ".join(filter(None, [part["algorithm"][0], name]))
        yield Plot(heading, Axis(title, unit, "log2"), Axis(values.words(metric), part["unit"][0], "log10"), curves)
