"""From result rows to cells and curves, so that a number looks the same wherever it appears."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from linkwright.base.rows import Column, Row, Rows, given
from linkwright.base.stats import grade as grades

from .. import cells, quantity
from ..model import Cell, Curve
from ..runs import LIMIT, Run, is_rate

_TONES = {grades.WIDE: "warn", grades.SINGLE: "quiet"}


def words(name: str) -> str:
    """A key in words: ping_pong is 'ping pong'."""
    return name.replace("_", " ")


def limit_words(name: str) -> str:
    """latency_bound is 'latency'; the context says that it is a bound."""
    return words(name.removesuffix("_bound"))


def number(value: float) -> float | None:
    """A float for the page, None where the frame holds NaN."""
    return float(value) if math.isfinite(value) else None


def how_drawn(run: Run) -> str:
    """How the charts of this run draw what was measured and what was modelled."""
    measured = (
        "Points are measured medians with their 95 % intervals, which faint lines join." if run.has_measured else ""
    )
    modelled = "Solid lines are models." if run.has_modelled else ""
    kinds = set(run.rows["yardstick_kind"]) - {""}
    dashed = f"Dashed lines are the {' or the '.join(sorted(kinds))}." if kinds else ""
    return " ".join(filter(None, [measured, modelled, dashed]))


def trust(row: Row) -> str:
    """How far to trust a measured value: '±1.2 %, tight, n 12'; empty for a model, which is deterministic."""
    if row["modelled"]:
        return ""
    precision = "" if math.isnan(row["precision"]) else quantity.plus_minus(row["precision"])
    launches = "" if math.isnan(row["n"]) else f"n {row['n']:.0f}"
    return ", ".join(filter(None, [precision, row["grade"], launches]))


def tone(grade: str) -> str:
    """The tone of a value of this grade: amber only where its interval is wide, grey where it has none."""
    return _TONES.get(grade, "strong")


def bare_percent(share: float) -> str:
    """0.012 is 1.2, for a column whose head has the unit."""
    return quantity.percent(share).removesuffix(" %")


def plus_minus(row: Row) -> Cell:
    """The precision for a column headed `±%`, in the tone of the grade."""
    if math.isnan(row["precision"]):
        return missing("" if row["modelled"] else "no interval")
    colour = tone(row["grade"])
    return Cell(bare_percent(row["precision"]), float(row["precision"]), tone="" if colour == "strong" else colour)


def mark(row: Row) -> str:
    """`disturbed` where something else ran in every launch, whatever the grade."""
    return "disturbed" if "disturbed" in row["flags"].split(",") else ""


def value(row: Row, about: str = "") -> Cell:
    """The value with its precision, grade and n below it; `about` names the chosen size or algorithm."""
    shown, _ = quantity.with_interval(row["value"], number(row["ci_low"]), number(row["ci_high"]), row["unit"])
    detail = "\n".join(part for part in (about, trust(row), row["modes"]) if part)
    return Cell(shown, float(row["value"]), detail, tone(row["grade"]), mark=mark(row))


def in_words(row: Row) -> str:
    """The value in a sentence: '22.3 GB/s ±1.2 %'."""
    precision = "" if math.isnan(row["precision"]) else f" {quantity.plus_minus(row['precision'])}"
    return f"{quantity.text(row['value'], row['unit'])}{precision}"


def sentence(text: str) -> str:
    """`text` with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def missing(reason: str) -> Cell:
    """An empty cell with its reason."""
    return Cell("", sort=None, detail=reason, tone="quiet")


def of_limit(row: Row) -> Cell:
    """Percent of the limit, or of the best seen on a measured machine, with what that is."""
    if math.isnan(row["share"]):
        return missing("no limit known")
    name = limit_words(row["yardstick_name"])
    shown = quantity.text(row["yardstick"], row["unit"])
    limited = row["yardstick_kind"] == LIMIT
    detail = ", ".join(filter(None, [f"of {shown}", name])) if limited else f"of the best seen, {shown} ({name})"
    return Cell(quantity.percent(row["share"]), float(row["share"]), detail, share=min(row["share"], 1.0))


def size(row: Row) -> Cell:
    """The message size of a row; empty where it has none."""
    found = number(row["size_bytes"])
    return Cell("") if found is None else cells.size(found)


def published(row: Row) -> Cell:
    """The published value and the deviation of this row from it."""
    if math.isnan(row["reference_value"]):
        return missing("none published")
    error = row["value"] / row["reference_value"] - 1 if row["reference_value"] else math.nan
    away = f"off by {100 * error:+.1f} %" if math.isfinite(error) else ""
    return Cell(quantity.text(row["reference_value"], row["unit"]), float(row["reference_value"]), away)


def curve(rows: Rows, x: str, name: str) -> Curve:
    """The rows as one series over column `x`: points with intervals if measured, or a line if modelled."""
    rows = rows.ordered(x, "experiment")
    modelled = bool(rows["modelled"].all())
    return Curve(
        name=name,
        x=[float(v) for v in rows[x]],
        y=[number(v) for v in rows["value"]],
        low=[number(v) for v in rows["ci_low"]],
        high=[number(v) for v in rows["ci_high"]],
        kind="model" if modelled else "measured",
        notes=[_note(row) for row in rows],
    )


def limits(rows: Rows, x: str, name: str = "", series: str = "") -> Curve | None:
    """What `rows` are compared with at every x, as a dashed line: `limit` or `best seen`, followed by `name`."""
    known = rows[given(rows["yardstick"])]
    if not len(known):
        return None
    # Where rows differ: the greatest rate, or the least time.
    best = known.ordered(x, "yardstick").distinct(x, keep="last" if is_rate(known["unit"][0]) else "first")
    kinds = " or ".join(sorted(set(best["yardstick_kind"])))
    return Curve(
        name=f"{kinds} {name}".strip(),
        x=[float(v) for v in best[x]],
        y=[float(v) for v in best["yardstick"]],
        kind="limit",
        notes=[limit_words(name) for name in best["yardstick_name"]],
        series=series,
    )


def with_limit(rows: Rows, x: str, name: str) -> list[Curve]:
    """The rows as one series, and what they are compared with, if that is known."""
    return [curve(rows, x, name), *filter(None, [limits(rows, x, f"of {name}", name)])]


def series_name(run: Run, machine: str, *words: str) -> str:
    """The words of a series, with its machine if the page shows several, or if there are no other words."""
    told = [word for word in words if word]
    return ", ".join([machine, *told] if len(run.machines) > 1 or not told else told)


def matrices(rows: Rows, at: tuple[Sequence[int], Sequence[int]], shape: tuple[int, int]) -> dict:
    """The values and interval ends of `rows` as matrices of a `HeatMap`; NaN where `at` has no cell, None if empty."""
    columns = {"values": "value", "low": "ci_low", "high": "ci_high"}
    return {part: _matrix(rows[column], at, shape) for part, column in columns.items()}


def _matrix(column: Column, at: tuple[Sequence[int], Sequence[int]], shape: tuple[int, int]) -> np.ndarray | None:
    if not given(column).any():
        return None
    matrix = np.full(shape, np.nan, dtype=np.float32)
    matrix[at] = column.astype(np.float32)
    return matrix


def varying(rows: Rows, columns: Iterable[str]) -> list[str]:
    """The `columns` in which the rows differ, which must name a series."""
    return [name for name in columns if len(list(rows.by(name))) > 1]


def _note(row: Row) -> str:
    share = "" if math.isnan(row["share"]) else f"{quantity.percent(row['share'])} of {row['yardstick_kind']}"
    return " · ".join(filter(None, [trust(row), share, row["modes"], mark(row)]))
