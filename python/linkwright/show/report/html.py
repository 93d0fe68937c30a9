"""From a `Report` to one HTML page: Jinja2 renders text, JSON carries chart data, and everything is inlined.

Tables and text are plain HTML, so they work without scripts, for search, for screen readers and on paper. A chart is
an empty box followed by its data in a JSON block. uPlot (50 KB, vendored) draws curves and boxes; ``heatmap.js`` draws
matrices. Matrices travel as deflated float32 in base64, because 1,500 x 1,500 cells as JSON text would be 40 MB.

Texts of a page may come from strangers: imported results, machine files, names of hosts. All are escaped, and a
content security policy lets only the page's own scripts run, by their digests, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from importlib import resources
from itertools import groupby
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape

from linkwright.base.stats import grade as grades
from linkwright.show import picture

from . import quantity, series
from .model import (
    BoxPlot,
    Cell,
    Choice,
    Column,
    Curve,
    HeatMap,
    Item,
    Moving,
    Plot,
    Report,
    Section,
    Table,
    Text,
    WhatIf,
)

MOST_FINDINGS = 5  # on the first screen; the others unfold
_SCRIPTS = (
    "base.js",
    "theme.js",
    "table.js",
    "curve.js",
    "boxplot.js",
    "heatmap.js",
    "choice.js",
    "whatif.js",
    "start.js",
)
_LEAST_SIDE = 4  # rows and columns from which a matrix is a picture; below, a table says more


def page(report: Report) -> str:
    """The whole page as text."""
    moves = any(isinstance(item, Moving) for section in _walk(report.sections) for item in section.items)
    scripts = _scripts(moves)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            anchors=_anchors(report),
            most=MOST_FINDINGS,
            chart_data=partial(chart_data, looks=series.looks(report)),
            style=_asset("vendor/uplot", "uPlot.min.css") + _asset("assets", "report.css"),
            style_first=_asset("assets", "first.css") + Markup(picture.style() if moves else ""),
            licence=_asset("vendor/uplot", "LICENSE"),
            scripts=scripts,
            policy=_policy(scripts),
        )
    )


def _scripts(moves: bool) -> tuple[Markup, ...]:
    """The scripts of a page: what must run before it is drawn, the chart library, and the rest; of pictures if any."""
    base, theme, *others = (_asset("assets", name) for name in _SCRIPTS)
    first = Markup("").join([base, "LW.prefixes = ", _script_json(quantity.PREFIXES), ";", theme])
    return (
        first,
        _asset("vendor/uplot", "uPlot.iife.min.js"),
        Markup("").join([*others, Markup(picture.script() if moves else "")]),
    )


def _policy(scripts: Sequence[str]) -> Markup:
    """The content security policy: these scripts run and no other, and nothing is loaded or sent."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return Markup(
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text("templates", name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(identity=id, runs_of_charts=runs_of_charts, breakable=breakable)
    environment.globals.update(
        kind=kind,
        points=points,
        extremes=extremes,
        as_cell=as_cell,
        moving_figure=moving_figure,
        what_if_data=what_if_data,
    )
    return environment


def kind(item: Item) -> str:
    """The macro of the template that draws the item."""
    return {
        Table: "table",
        Plot: "plot",
        HeatMap: "heat",
        BoxPlot: "box",
        Choice: "choice",
        Text: "text",
        Moving: "moving",
        WhatIf: "whatif",
    }[type(item)]


def runs_of_charts(items: Sequence[Item]) -> list[tuple[bool, list[Item]]]:
    """Groups of consecutive charts, which share a grid, and the tables and texts between them."""
    shown = [matrix_table(item) if isinstance(item, HeatMap) and _is_small(item) else item for item in items]
    return [
        (together, list(group))
        for together, group in groupby(shown, lambda item: kind(item) in ("plot", "heat", "box", "choice"))
    ]


def _is_small(heat: HeatMap) -> bool:
    return min(len(heat.rows), len(heat.columns)) < _LEAST_SIDE


def matrix_table(heat: HeatMap) -> Table:
    """A small matrix as a table, its longer side downwards."""
    across = len(heat.columns) > len(heat.rows)
    names, heads = (heat.columns, heat.rows) if across else (heat.rows, heat.columns)
    titles = (heat.columns_title, heat.rows_title) if across else (heat.rows_title, heat.columns_title)
    grids = [None if part is None else part.T if across else part for part in (heat.values, heat.low, heat.high)]
    body = [
        [Cell(name), *(_matrix_cell(heat, grids, row, column) for column in range(len(heads)))]
        for row, name in enumerate(names)
    ]
    columns = [Column(f"{titles[0]} \\ {titles[1]}"), *(Column(name, heat.unit, numeric=True) for name in heads)]
    return Table(heat.title, columns, body, heat.how_to_read)


def _matrix_cell(heat: HeatMap, grids: Sequence[np.ndarray | None], row: int, column: int) -> Cell:
    found = (math.nan if grid is None else float(grid[row, column]) for grid in grids)
    value, low, high = (number if math.isfinite(number) else None for number in found)
    if value is None:
        return Cell("", detail=heat.missing, tone="quiet")
    precision = grades.precision(value, low, high)
    return Cell(quantity.text(value, heat.unit), value, "" if precision is None else quantity.plus_minus(precision))


def breakable(text: str) -> Markup:
    """`text`, escaped, with line breaks allowed after `_` or `/` but not between a number and its unit, nor in B/s."""
    kept = re.sub(r"(?<=\d) (?=[A-Za-zµ%]{1,5}\b|%)|(?<=\bn) (?=\d)", "\u00a0", text)
    kept = re.sub(r"(?<=\d) – (?=\d)", "\u00a0–\u00a0", kept).replace(" – ", "\u00a0– ")
    return Markup(re.sub(r"(_|/(?!s\b))(?=\w)", r"\1<wbr>", str(escape(kept))))


def as_cell(value: Cell | str) -> Cell:
    """A plain string becomes a cell without a sort key or a detail."""
    return value if isinstance(value, Cell) else Cell(value)


def moving_figure(item: Moving) -> Markup:
    """The picture of an item, which escapes all names itself."""
    return Markup(picture.html(*item.scenes, title=item.title))


def chart_data(item: Plot | HeatMap | BoxPlot, looks: dict[str, series.Look]) -> Markup:
    """The JSON block of a chart, safe inside <script> whatever the names contain."""
    if isinstance(item, Plot):
        return _script_json(_plot(item, looks))
    return _script_json(_heat(item) if isinstance(item, HeatMap) else _box(item))


def what_if_data(item: WhatIf) -> Markup:
    """The JSON block of sliders: points as [texts, shares], null where there is none."""
    points = [[list(each.texts), [round(s, 5) for s in each.shares]] if each else None for each in item.points]
    counts = [len(slider.stops) for slider in item.sliders]
    return _script_json({"counts": counts, "stops": [list(s.stops) for s in item.sliders], "points": points})


def _script_json(value: Any) -> Markup:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def points(plot: Plot) -> Iterator[tuple[str, tuple[float, str], tuple[float, str], str, str]]:
    """(series, x, y, interval, note) of every point, where x and y have sort keys: the table behind a plot."""
    for curve in plot.curves:
        for x, y, low, high, note in _rows(curve):
            if y is not None:
                shown, interval = quantity.with_interval(y, low, high, plot.y.unit)
                yield curve.name, (x, quantity.text(x, plot.x.unit)), (y, shown), interval, note


def extremes(heat: HeatMap) -> str:
    """Least, median and greatest value in words, for the caption and for readers who cannot see the picture."""
    seen = np.asarray(heat.values, dtype=float)
    seen = seen[np.isfinite(seen)]
    if not seen.size:
        return f"no cell has a value: {heat.missing}"
    low, middle, high = (quantity.text(float(v), heat.unit) for v in (seen.min(), np.median(seen), seen.max()))
    absent = int(np.size(heat.values) - seen.size)
    gone = f"; {absent:,} cells empty ({heat.missing})" if absent else ""
    return f"{len(heat.rows):,} × {len(heat.columns):,} cells, least {low}, median {middle}, most {high}{gone}"


def _rows(curve: Curve) -> Iterator[tuple]:
    empty = [None] * len(curve.x)
    notes = curve.notes or [""] * len(curve.x)
    return zip(curve.x, curve.y, curve.low or empty, curve.high or empty, notes, strict=True)


def _plot(plot: Plot, looks: dict[str, series.Look]) -> dict[str, Any]:
    return {
        "title": plot.title,
        "x": vars(plot.x),
        "y": vars(plot.y),
        "dodge": plot.dodge,
        "scatter": plot.scatter,
        "curves": [_curve(plot, curve, looks) for curve in plot.curves],
    }


def _curve(plot: Plot, curve: Curve, looks: dict[str, series.Look]) -> dict[str, Any]:
    colour, marker = looks.get(series.of(curve), (None, None)) if not curve.group else (None, None)
    points = [list(row) for row in _rows(curve) if _drawable(plot, row)]
    look = {"colour": colour, "marker": marker}
    return {"name": curve.name, "kind": curve.kind, "group": curve.group, "points": points} | look


def _drawable(plot: Plot, row: tuple) -> bool:
    """A log axis cannot show zero; such a point appears only in the table behind the plot."""
    x, y = row[0], row[1]
    if y is None or not math.isfinite(y) or not math.isfinite(x):
        return False
    return (plot.x.scale == "linear" or x > 0) and (plot.y.scale == "linear" or y > 0)


def _heat(heat: HeatMap) -> dict[str, Any]:
    fields = ("title", "unit", "rows_title", "columns_title", "scale", "missing")
    data: dict[str, Any] = {name: getattr(heat, name) for name in fields}
    data |= {"rows": list(heat.rows), "columns": list(heat.columns), "ends": list(heat.ends)}
    for part in ("values", "low", "high"):
        matrix = getattr(heat, part)
        data[part] = None if matrix is None else _packed(matrix)
    return data


def _packed(matrix: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(matrix, dtype="<f4").tobytes(), 6)).decode("ascii")


def _box(plot: BoxPlot) -> dict[str, Any]:
    boxes = [{**vars(box), "outliers": list(box.outliers)} for box in plot.boxes]
    return {"title": plot.title, "y": vars(plot.y), "boxes": boxes}


def _anchors(report: Report) -> dict[int, str]:
    """A readable, unique anchor per section, by identity of the section object."""
    anchors: dict[int, str] = {}
    taken: set[str] = set()
    for section in _walk(report.sections):
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") or "section"
        name = next(n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in taken)
        taken.add(name)
        anchors[id(section)] = name
    return anchors


def _walk(sections) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _walk(section.parts)


def _text(folder: str, name: str) -> str:
    return resources.files(__package__).joinpath(*folder.split("/"), name).read_text(encoding="utf-8")


@cache
def _asset(folder: str, name: str) -> Markup:
    """A file of the package, inlined unchanged; it must not close its enclosing element."""
    text = _text(folder, name)
    if "</script" in text.lower() or "</style" in text.lower():
        raise ValueError(f"{folder}/{name}: holds a closing tag and cannot be inlined")
    return Markup(text)
