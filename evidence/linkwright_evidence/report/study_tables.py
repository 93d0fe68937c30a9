"""The tidy tables of a study as charts, by what their columns are called.

A table is a list of rows (dicts with the same keys). Suffixes give units (``_us``, ``_ns``, ``_percent``,
``_kib``, ``_bytes``); the column of sizes, or else the first plain integer, is the x axis; texts name the series;
flags part the charts; a value column that starts with ``theory`` is drawn dashed, one called ``published_`` and
the name of another as points beside that one. A table with one row per
``rank`` becomes box plots over the ranks. Every table also stands there in full, folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkwright.base.rows import Column as Values
from linkwright.base.rows import Rows, given, nunique, plain
from linkwright.show.report import quantity
from linkwright.show.report.model import Axis, BoxPlot, Cell, Choice, Column, Curve, Item, Plot, Section, Table
from linkwright.show.report.sections.spread import box
from linkwright.show.report.sections.values import missing, words

_SUFFIXES = {
    "_us": ("s", 1e-6),
    "_ns": ("s", 1e-9),
    "_percent": ("%", 1.0),
    "_kib": ("B", 1024.0),
    "_bytes": ("B", 1.0),
    "_gib_per_s": ("B/s", 2.0**30),
    "_gb_per_s": ("B/s", 1e9),
}
_PLACES = ("rank", "x", "y")
_MOST_CURVES = 16
_MOST_COLUMNS = 8  # curves of several columns in one chart
_MOST_TOGETHER = 4  # charts of one table; more than these are chosen from
_MOST_ROWS = 2000  # of a folded table; the JSON of the study holds the rest


def sections(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], notes: Mapping[str, str] | None = None
) -> list[Section]:
    """One section with a part per table that has rows; `notes` says what a table shows."""
    notes = notes or {}
    parts = [part(name, Rows.from_records(rows), notes.get(name, "")) for name, rows in tables.items() if rows]
    intro = "What the model says beyond the published cells: lines are predictions, dashed lines are theory."
    return [Section("Figures and tables of the study", intro=intro, parts=parts)] if parts else []


def part(name: str, frame: Rows, note: str = "") -> Section:
    """The charts of one table, and the table."""
    found = list(charts(frame))
    items: list[Item] = [Choice("Show", found)] if len(found) > _MOST_TOGETHER else list(found)
    return Section(words(name).capitalize(), [*items, in_full(name, frame)], note)


def charts(frame: Rows) -> Iterator[Plot | BoxPlot]:
    """What the columns allow to draw; nothing if there is no x axis or too many series."""
    flags = [name for name in frame.names if _is_flag(frame[name])]
    numbers = [name for name in frame.names if name not in flags and _is_numeric(frame[name])]
    plain = [name for name in numbers if name not in _PLACES]
    sized = [name for name in plain if unit(name)[0] == "B"]
    counts = [name for name in plain if unit(name)[0] == "1" and _is_whole(frame[name])]
    if not sized and not counts:
        return
    # Two sizes are no curve where something else is counted: that is what the table is about.
    few = [name for name in sized if counts and nunique(frame[name]) <= 2]
    x = (counts if few else sized or counts)[0]
    values = [name for name in plain if unit(name)[0] in ("s", "%")]
    values = values or [name for name in plain if name not in (x, *few)]
    names = [name for name in frame.names if name not in (*numbers, *flags) and not name.startswith("best")]
    keys = [*flags, *names] if "rank" in frame else [*flags, *few]
    draw = _boxes if "rank" in frame else _plots
    for key, rows in frame.by(*keys):
        about = ", ".join(_flag(*pair) for pair in zip(keys, key, strict=True))
        yield from draw(rows, x, values, names, about)


def unit(name: str) -> tuple[str, float]:
    """Base unit and factor of a column, by its suffix."""
    return next((found for suffix, found in _SUFFIXES.items() if name.endswith(suffix)), ("1", 1.0))


def title(name: str) -> str:
    """A column's name without its unit."""
    return words(next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name))


def in_full(name: str, frame: Rows) -> Table:
    """The table, folded."""
    columns = [
        Column(words(column), numeric=_is_numeric(frame[column]) or _is_flag(frame[column])) for column in frame.names
    ]
    body = [[_cell(plain(value)) for value in row.values()] for row in frame[:_MOST_ROWS]]
    cut = f"The first {_MOST_ROWS:,} of {len(frame):,} rows; study.json holds all." if len(frame) > _MOST_ROWS else ""
    return Table(f"{words(name)}: {len(frame):,} rows", columns, body, cut, collapsed=True)


def _plots(rows: Rows, x: str, values: list[str], names: list[str], about: str) -> Iterator[Plot]:
    theory = [name for name in values if name.startswith("theory")]
    known = [name for name in values if name.startswith("published_")]
    values = [name for name in values if name not in known]
    for group in _together(rows, [name for name in values if name not in theory], names, alone=bool(theory)):
        several = len(group) > 1
        curves = [curve for name in group for curve in _curves(rows, x, name, names, "model", several)]
        curves += [curve for name in theory for curve in _curves(rows, x, name, names, "limit")]
        points = [f"published_{name}" for name in group if f"published_{name}" in known]
        curves += [curve for name in points for curve in _curves(rows, x, name, names, "measured")]
        if curves and len(curves) <= _MOST_CURVES and any(len(curve.x) > 1 for curve in curves):
            base = unit(group[0])[0]
            scale = "linear" if base == "%" or any((rows[name] <= 0).any() for name in group) else "log10"
            across = "linear" if (rows[x] <= 0).any() else "log2"
            shown = " and ".join(title(name) for name in group)
            name = ", ".join(part for part in (shown[:1].upper() + shown[1:], about) if part)
            up = ("time" if base == "s" else "share") if several else _axis_title(group[0], base)
            yield Plot(name, Axis(title(x), unit(x)[0], across), Axis(up, base, scale), curves)


def _axis_title(name: str, base: str) -> str:
    return f"{title(name)} time" if base == "s" and "time" not in name else title(name)


def _together(rows: Rows, values: list[str], names: list[str], alone: bool) -> list[list[str]]:
    """Columns of times, or of shares, that are best compared in one chart; each alone where that is too much."""
    series = len(list(rows.by(*names)))
    groups: list[list[str]] = []
    for name in values:
        base = unit(name)[0]
        fits = not alone and base in ("s", "%") and groups and (len(groups[-1]) + 1) * series <= _MOST_COLUMNS
        if fits and unit(groups[-1][0])[0] == base:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _curves(rows: Rows, x: str, value: str, names: list[str], kind: str, several: bool = False) -> Iterator[Curve]:
    if several and names and all(nunique(its[value]) == 1 for _, its in rows.by(x)):
        rows, names = rows.distinct(x), []  # the same for all series, so it belongs to none
    seen = set()
    for key, part in rows.by(*names):
        drawn = part[given(part[value])].ordered(x).distinct(x)
        points = tuple(drawn[x] * unit(x)[1]), tuple(drawn[value] * unit(value)[1])
        if not len(drawn) or ((several or kind == "limit") and points in seen):  # several variants may share one line
            continue
        seen.add(points)
        name = ", ".join([*map(str, key), *([title(value)] if several else [])]) or title(value)
        shown = {"limit": f"theory of {name}", "measured": f"published, {name}"}.get(kind, name)
        yield Curve(shown, *map(list, points), kind=kind, series=name if kind == "limit" else "")


def _boxes(rows: Rows, x: str, values: list[str], names: list[str], about: str) -> Iterator[BoxPlot]:
    value = next((name for name in values if unit(name)[0] == "%"), values[0] if values else None)
    if value is None:
        return
    base, factor = unit(value)
    groups = [(at, part[value][given(part[value])] * factor) for (at,), part in rows.by(x, sort=True)]
    boxes = [box(f"{at:g}{' KiB' if x.endswith('_kib') else ''}", data) for at, data in groups if len(data)]
    yield BoxPlot(f"{title(value).capitalize()} over the ranks by {title(x)}: {about}", Axis(title(value), base), boxes)


def _is_flag(column: Values) -> bool:
    return all(isinstance(value, bool) for value in column.tolist())


def _is_numeric(column: Values) -> bool:
    return column.dtype != object


def _is_whole(column: Values) -> bool:
    return column.dtype.kind == "i"


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool) or str(value) in ("True", "False"):
        return f"{'with' if value else 'without'} {words(name)}"
    return quantity.size(value * unit(name)[1]) if unit(name)[0] == "B" else str(value)


def _cell(value: Any) -> Cell:
    if value is None or value != value:
        return missing("not predicted")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    return Cell(f"{value:,.6g}", value) if isinstance(value, (int, float)) else Cell(str(value))
