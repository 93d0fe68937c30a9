"""Result rows of one experiment as people read them: one line, or a small table for a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from linkwright.base import units

Row = Mapping[str, Any]

# Columns of a frame that stand first, because a wide frame prints its first and its last columns only.
FIRST = ("metric", "value", "unit")
LAST = ("precision", "grade", "status")
_LONG = (("s", 60.0, 1.0), ("min", 60.0, 60.0), ("h", 48.0, 3600.0), ("days", math.inf, 86400.0))


def line(rows: Sequence[Row]) -> str:
    """`allreduce, 8 ranks, 4K on threads: 12.30 us ±1.2 % (tight), 48 % of limit`."""
    from linkwright.executors import is_modelled  # short commands show tables without any executor

    time = next(row for row in rows if row["metric"] == "time")
    what = time["collective"] or "pattern"
    where = time["machine" if is_modelled(time["executor"]) else "executor"]
    subject = f"{what}, {time['ranks']} ranks, {units.format_size(time['size_bytes'])} on {where}"
    if time["value"] is None:
        return f"{subject}: {time['status']}, {time['reason']}"
    return f"{subject}: {', '.join(filter(None, [with_precision(time), _of_limit(time)]))}"


def with_precision(row: Row) -> str:
    """`12.30 us ±1.2 % (tight)`, or a value alone where it is exact."""
    parts = [value(row)]
    if row["precision"] is not None:
        parts.append(f"±{percent(row['precision'])} %")
    if row["grade"]:
        parts.append(f"({row['grade']})")
    return " ".join(parts)


def percent(share: float) -> str:
    """`1.2` of 0.012: two digits, and all before the point."""
    return f"{100 * share:.1f}" if share < 0.1 else f"{100 * share:.0f}"


def table(rows: Sequence[Row]) -> str:
    """The rows that have a value, as an HTML table."""
    body = "".join(
        f"<tr><th>{escape(str(row['metric']))}</th><td>{escape(with_precision(row))}</td>"
        f"<td>{escape(_of_limit(row))}</td></tr>"
        for row in rows
        if row["value"] is not None
    )
    return f"<table><caption>{escape(line(rows))}</caption>{body}</table>"


def columns(names: Sequence[str]) -> list[str]:
    """The columns of a frame in the order in which it prints best."""
    first = [name for name in FIRST if name in names]
    last = [name for name in LAST if name in names]
    return [*first, *(name for name in names if name not in (*FIRST, *LAST)), *last]


def value(row: Row) -> str:
    """A value with its unit: `3.69 ns`, `12.3 GB/s`, `93.9 GFlop/s`."""
    unit = str(row["unit"])
    if unit == "ns":
        return units.format_time(row["value"])
    if unit == "B/s":
        return units.format_rate(row["value"])
    return units.format_scaled(row["value"], "" if unit == "1" else unit)


def span(low_ns: float, high_ns: float) -> str:
    """`5.04 to 213 ms`: both ends in the unit of the higher one, where that leaves digits."""
    high = units.format_time(high_ns)
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[high.split()[1]]
    low = f"{low_ns / scale:.3g}" if low_ns >= 0.01 * scale else units.format_time(low_ns)
    return f"{low} to {high_ns / scale:.3g} {high.split()[1]}" if high_ns < 1000 * scale else f"{low} to {high}"


def duration(seconds: float) -> str:
    """`45 s`, `3.4 h`, `12.5 days`."""
    unit, scale = next((unit, scale) for unit, most, scale in _LONG if seconds / scale < most)
    return f"{seconds / scale:,.3g} {unit}" if seconds / scale < 1000 else f"{seconds / scale:,.0f} {unit}"


def _of_limit(row: Row) -> str:
    """How much of its limit a value reaches: a time is longer than its limit, a rate lower."""
    limit, reached = row["limit"], row["value"]
    if not limit or not reached:
        return ""
    share = limit / reached if row["unit"] == "ns" else reached / limit
    return f"{100 * share:.0f} % of limit"
