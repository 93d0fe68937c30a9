"""Figures 3.1 and 5.1 to 5.5 of the report, drawn from the probes of the machines, each beside its limit.

The report prints no numbers behind these, so nothing is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linkwright.show.report.model import Axis, Cell, Column, Curve, Plot, Section, Table
from linkwright_evidence.ipu import convolution, matmul, memory, random

Rows = list[dict]


def _curves(rows: Rows, name: Callable[[dict], str], x: str, y: str, scale: float, limit: str | None) -> list[Curve]:
    """One modelled curve for each name, in the order of the rows, and the limits of their rates."""
    curves, limits = [], {}
    for label in dict.fromkeys(map(name, rows)):
        mine = [row for row in rows if name(row) == label]
        curves.append(Curve(label, [row[x] for row in mine], [row[y] * scale for row in mine], kind="model"))
        if limit is not None:
            limits.setdefault(mine[0][limit] * scale, (label, mine[0][x], mine[-1][x]))
    for rate, (label, low, high) in limits.items():
        curves.append(Curve(f"limit of {label}", [low, high], [rate, rate], kind="limit"))
    return curves


def _memory() -> list[Plot]:
    rows = list(memory.figure_3_1())
    full = [row for row in rows if row["threads"] == memory.HARDWARE_THREADS]
    wide = [row for row in rows if row["width_bits"] == int(memory.WIDEST)]
    axes = (Axis("block", "B", "log2"), Axis("read rate", "B/s", "log10"))
    options = ("block_bytes", "read_tb_per_s", 1e12, "limit_tb_per_s")
    return [
        Plot(
            "Figure 3.1: an IPU reads its memory, by load width",
            *axes,
            _curves(full, lambda row: f"{row['width_bits']} bit", *options),
        ),
        Plot(
            "Figure 3.1: 128-bit loads, by threads of a tile",
            *axes,
            _curves(wide, lambda row: f"{row['threads']} threads", *options),
        ),
    ]


def _products() -> Iterable[Plot]:
    rows = list(matmul.figures_5_1_to_5_3())
    side = Axis("n", "1", "log2")

    def name(row: dict) -> str:
        return f"{row['device']}, {row['layout']}"

    for number, precision in (("5.1", "single"), ("5.2", "mixed")):
        mine = [row for row in rows if row["precision"] == precision]
        curves = _curves(mine, name, "n", "tflop_per_s", 1e12, "limit_tflop_per_s")
        yield Plot(
            f"Figure {number}: matrix products, {precision} precision", side, Axis("rate", "Flop/s", "log10"), curves
        )
    for precision in ("single", "mixed"):
        mine = [row for row in rows if row["precision"] == precision]
        curves = _curves(mine, name, "n", "tflop_per_s_per_w", 1e12, None)
        axis = Axis("rate per nominal watt", "Flop/s/W", "log10")
        yield Plot(f"Figure 5.3: the same per watt, {precision} precision", side, axis, curves)


def _random() -> Iterable[Plot]:
    rows = list(random.figures_5_4_and_5_5())
    block = Axis("block of an endpoint", "B", "log2")
    curves = _curves(rows, lambda row: row["device"], "block_bytes", "gsamples_per_s", 1e9, "limit_gsamples_per_s")
    yield Plot("Figure 5.4: random numbers", block, Axis("samples", "1/s", "log10"), curves)
    curves = _curves(rows, lambda row: row["device"], "block_bytes", "gsamples_per_s_per_w", 1e9, None)
    yield Plot("Figure 5.5: the same per nominal watt", block, Axis("samples per watt", "1/s/W", "log10"), curves)


def _scores() -> Table:
    heads = [Column("table"), Column("class"), Column("batch column"), Column("cells", numeric=True)]
    heads += [Column("median", "%", numeric=True), Column("within 25 %", "%", numeric=True)]
    rows = [
        [
            row["table"],
            row["class"],
            row["batch_column"],
            Cell(str(row["cells"]), row["cells"]),
            Cell(f"{row['median']:.1%}", row["median"]),
            Cell(f"{row['within_25_percent']:.1%}", row["within_25_percent"]),
        ]
        for row in convolution.score()
    ]
    return Table(
        "Layers by device and class", heads, rows, "The target, median 12 % and 85 %, is that of the class scored."
    )


def sections() -> list[Section]:
    """All figures of chapters 3 and 5."""
    intro = "The report shows these without numbers: every point is the model, every dashed line its limit."
    return [Section("Figures of chapters 3 and 5", [*_memory(), *_products(), *_random(), _scores()], intro)]
