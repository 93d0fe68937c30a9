"""From result rows to cells and curves, so that a number looks the same wherever it appears."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from .. import quantity
from ..model import Cell, Curve

DETERMINISTIC = "deterministic"


def words(name: str) -> str:
    """A key in words: ping_pong is 'ping pong'."""
    return name.replace("_", " ")


def limit_words(name: str) -> str:
    """latency_bound is 'latency'; the context says that it is a bound."""
    return words(name.removesuffix("_bound"))


def number(value: float) -> float | None:
    """A float for the page, None where the frame holds NaN."""
    return float(value) if math.isfinite(value) else None


def count(row: pd.Series) -> str:
    """The number of launches behind a row, or that it is deterministic."""
    if row["modelled"]:
        return DETERMINISTIC
    return "" if math.isnan(row["n"]) else f"n {row['n']:.0f}"


def spread(row: pd.Series) -> str:
    """The interval and n of a row in words: '41.0 – 47.9, n 12', or 'deterministic' for a model."""
    if row["modelled"]:
        return DETERMINISTIC
    ends = number(row["ci_low"]), number(row["ci_high"])
    _, interval = quantity.with_interval(row["value"], *ends, row["unit"])
    if not interval and not row["modes"]:  # two modes say more than an interval, and are shown below
        return ", ".join(part for part in (count(row), "no interval") if part)
    state = "unconverged" if row["status"] == "unconverged" else ""
    return ", ".join(part for part in (interval, count(row), state) if part)


def value(row: pd.Series, about: str = "") -> Cell:
    """The value with its interval and n below it; `about` names the chosen size or algorithm."""
    shown, _ = quantity.with_interval(row["value"], number(row["ci_low"]), number(row["ci_high"]), row["unit"])
    unconverged = row["status"] == "unconverged"
    parts = (about, spread(row), row["modes"])
    return Cell(
        shown,
        sort=float(row["value"]),
        detail="\n".join(part for part in parts if part),
        tone="warn" if unconverged else "strong",
    )


def missing(reason: str) -> Cell:
    """An empty cell with its reason."""
    return Cell("", sort=None, detail=reason, tone="quiet")


def of_limit(row: pd.Series) -> Cell:
    """Percent of the limit, with the limit and its name."""
    if math.isnan(row["share"]):
        return missing("no limit known")
    name = f", {limit_words(row['limit_name'])}" if row["limit_name"] else ""
    detail = f"of {quantity.text(row['limit'], row['unit'])}{name}"
    return Cell(quantity.percent(row["share"]), float(row["share"]), detail, share=min(row["share"], 1.0))


def published(row: pd.Series) -> Cell:
    """The published value and the deviation of this row from it."""
    if math.isnan(row["reference_value"]):
        return missing("none published")
    error = row["value"] / row["reference_value"] - 1 if row["reference_value"] else math.nan
    away = f"off by {100 * error:+.1f} %" if math.isfinite(error) else ""
    return Cell(quantity.text(row["reference_value"], row["unit"]), float(row["reference_value"]), away)


def curve(rows: pd.DataFrame, x: str, name: str) -> Curve:
    """The rows as one series over column `x`: points with intervals if measured, or a line if modelled."""
    rows = rows.sort_values([x, "experiment"], kind="stable")
    modelled = bool(rows["modelled"].all())
    return Curve(
        name=name,
        x=[float(v) for v in rows[x]],
        y=[number(v) for v in rows["value"]],
        low=[number(v) for v in rows["ci_low"]],
        high=[number(v) for v in rows["ci_high"]],
        kind="model" if modelled else "measured",
        notes=[_note(row) for _, row in rows.iterrows()],
    )


def limits(rows: pd.DataFrame, x: str, name: str) -> Curve | None:
    """The limit at every x of `rows` as a dashed line; the loosest one where rows differ."""
    known = rows[rows["limit"].notna()]
    if known.empty:
        return None
    rate = known["unit"].str.endswith("/s").iloc[0]
    best = known.groupby(x)["limit"].max() if rate else known.groupby(x)["limit"].min()
    names = known.groupby(x)["limit_name"].first()
    return Curve(
        name=name,
        x=[float(v) for v in best.index],
        y=[float(v) for v in best],
        kind="limit",
        notes=[limit_words(names[v]) for v in best.index],
    )


def with_limit(rows: pd.DataFrame, x: str, name: str) -> list[Curve]:
    """The rows as one series, and their limit if one is known."""
    return [curve(rows, x, name), *filter(None, [limits(rows, x, f"limit of {name}")])]


def shares(rows: pd.DataFrame, name: str) -> Curve | None:
    """Percent of the limit over size; the ends of an interval swap, since the shorter time is the greater share."""
    rows = rows[rows["share"].notna()].sort_values(["size_bytes", "experiment"], kind="stable")
    if rows.empty:
        return None
    return Curve(
        name=name,
        x=[float(v) for v in rows["size_bytes"]],
        y=[100 * float(v) for v in rows["share"]],
        low=[number(100 * v) for v in rows["limit"] / rows["ci_high"]],
        high=[number(100 * v) for v in rows["limit"] / rows["ci_low"]],
        kind="model" if rows["modelled"].all() else "measured",
        notes=[
            f"limit {quantity.text(row['limit'], row['unit'])}, {limit_words(row['limit_name'])}"
            for _, row in rows.iterrows()
        ],
    )


def matrices(rows: pd.DataFrame, at: tuple[np.ndarray, np.ndarray], shape: tuple[int, int]) -> dict:
    """The values and interval ends of `rows` as matrices of a `HeatMap`; NaN where `at` has no cell, None if empty."""
    columns = {"values": "value", "low": "ci_low", "high": "ci_high"}
    return {part: _matrix(rows[column], at, shape) for part, column in columns.items()}


def _matrix(column: pd.Series, at: tuple[np.ndarray, np.ndarray], shape: tuple[int, int]) -> np.ndarray | None:
    if not column.notna().any():
        return None
    matrix = np.full(shape, np.nan, dtype=np.float32)
    matrix[at] = column.to_numpy(dtype=np.float32)
    return matrix


def varying(rows: pd.DataFrame, columns: Iterable[str]) -> list[str]:
    """The `columns` in which the rows differ, which must name a series."""
    return [name for name in columns if rows[name].nunique(dropna=False) > 1]


def _note(row: pd.Series) -> str:
    parts = [count(row)] if count(row) else []
    if not math.isnan(row["share"]):
        parts.append(f"{quantity.percent(row['share'])} of limit")
    parts += [row["modes"]] if row["modes"] else []
    parts += ["unconverged"] if row["status"] == "unconverged" else []
    return " · ".join(parts)
