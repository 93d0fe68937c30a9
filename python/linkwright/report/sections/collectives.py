"""Collectives: time by size of every algorithm against the limit, the fastest by size, and all numbers.

Each collective has one plot per machine (measured points or the modelled line, the limit dashed), a table of winners
with their crossovers, and a collapsed table with time and percent of limit of each algorithm at each size. A winner
whose interval overlaps the next one's is reported as not separable: either may be chosen at that size.
"""

from __future__ import annotations

import pandas as pd

from .. import quantity
from ..model import Axis, Cell, Column, Curve, Item, Plot, Section, Table
from ..runs import Run, ok
from . import values

HOW_TO_READ = (
    "Time is that of the slowest rank, and sizes count as in nccl-tests. Points are measured and lines are models. The "
    "dashed line is the least time that any algorithm could take: for a model, its latency, port and cut bounds; for a "
    "measured machine, the best cache line and copy rate of this run. Lower is faster. The lead says how many times "
    "longer the next algorithm takes; 'not separable' means that their intervals overlap somewhere in that range. "
    "Measured points of one size are spread sideways. Click a name below a chart to hide its curve. Drag in a chart to "
    "zoom; double-click to see everything again."
)
_OF_LIMIT = 5  # this column of the winners
ALL_HELP = (
    "Time of the slowest rank, with the percent of the limit below. Bold: the fastest at each size on the most ranks."
)


def section(run: Run) -> Section | None:
    """One part per collective of the run."""
    parts = [part for part in (_collective(run, kind) for kind in run.collectives) if part]
    if not parts:
        return None
    return Section("Collectives", intro=HOW_TO_READ, parts=parts)


def times(run: Run, kind: str) -> pd.DataFrame:
    """The rows of collective `kind` that hold the time of the slowest rank, of every status."""
    rows = run.rows[run.rows["collective"] == kind]
    for metric in ("time", "latency"):
        if (rows["metric"] == metric).any():
            return rows[rows["metric"] == metric]
    return rows[rows["unit"] == "s"]


def most_ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """The results of one machine with the most ranks; fewer ranks are faster, but answer a different question."""
    good = ok(rows)
    return good[~(good["ranks"] < good["ranks"].max())]  # rows that name no ranks stay


def fastest(rows: pd.DataFrame) -> pd.DataFrame:
    """The fastest row with the most ranks at each size, by ascending size."""
    good = most_ranks(rows).sort_values(["size_bytes", "value", "algorithm"], kind="stable")
    return good.drop_duplicates("size_bytes")


def series_name(rows: pd.DataFrame) -> pd.Series:
    """The algorithm and everything else that varies: ranks, data type, issue policy, path."""
    extra = values.varying(rows, ("ranks", "dtype", "op", "placement", "issue", "path"))
    name = rows["algorithm"].where(rows["algorithm"] != "", rows["label"])
    for key in extra:
        shown = rows[key].map(lambda v: f"{v:.0f} ranks" if isinstance(v, float) else str(v))
        name = name + ", " + shown
    return name


def _collective(run: Run, kind: str) -> Section | None:
    plots: list[Item] = []
    shares: list[Item | None] = []
    winners: list[list[Cell | str]] = []
    tables: list[Item] = []
    for machine in run.machines:
        rows = times(run, kind)
        rows = rows[rows["machine"] == machine]
        if rows.empty:
            continue
        rows = rows.assign(series=series_name(rows))
        if ok(rows)["size_bytes"].nunique() > 1:
            plots.append(_plot(machine, kind, ok(rows)))
            shares.append(_share_plot(machine, kind, ok(rows)))
        if not ok(rows).empty:
            winners += _winners(machine, most_ranks(rows))
        tables.append(_every_number(machine, kind, rows))
    if not tables:
        return None
    return Section(kind, [*plots, *filter(None, shares), *([_winner_table(winners)] if winners else []), *tables])


def _plot(machine: str, kind: str, rows: pd.DataFrame) -> Plot:
    curves = [values.curve(part, "size_bytes", name) for name, part in rows.groupby("series", sort=True)]
    curves += filter(None, [values.limits(rows, "size_bytes", "limit")])
    axes = Axis("message size", "B", "log2"), Axis("time", "s", "log10")
    return Plot(f"{kind} on {machine}", *axes, curves, dodge=True)


def _share_plot(machine: str, kind: str, rows: pd.DataFrame) -> Plot | None:
    curves = [values.shares(part, name) for name, part in rows.groupby("series", sort=True)]
    curves = [curve for curve in curves if curve and len(set(curve.x)) > 1]
    if not curves:
        return None
    sizes = sorted({x for curve in curves for x in curve.x})
    limit = Curve("limit", sizes, [100.0] * len(sizes), kind="limit")
    title = f"{kind} on {machine}: percent of the limit"
    x, y = Axis("message size", "B", "log2"), Axis("percent of limit", "%")
    return Plot(title, x, y, [*curves, limit], dodge=True)


def _winner_table(rows: list[list[Cell | str]]) -> Table:
    columns = (
        Column("Machine"),
        Column("From", "B", numeric=True),
        Column("To", "B", numeric=True),
        Column("Fastest"),
        Column("Time", "s", numeric=True, help="at the first and the last size of the range"),
        Column("Of limit", "%", numeric=True),
        Column("Lead", numeric=True),
    )
    if any(row[_OF_LIMIT].text for row in rows):
        return Table("Fastest algorithm by size", columns, rows)
    kept = [n for n in range(len(columns)) if n != _OF_LIMIT]  # no limit is known for any machine here
    shorter = [[row[n] for n in kept] for row in rows]
    return Table("Fastest algorithm by size", [columns[n] for n in kept], shorter)


def _winners(machine: str, rows: pd.DataFrame) -> list[list[Cell | str]]:
    """One row per run of sizes with the same fastest series."""
    steps = [_contest(part) for _, part in rows.groupby("size_bytes", sort=True)]
    runs: list[list[tuple]] = []
    for step in steps:
        if runs and runs[-1][-1][0]["series"] == step[0]["series"]:
            runs[-1].append(step)
        else:
            runs.append([step])
    return [_winner_row(machine, run) for run in runs]


def _contest(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series | None, bool]:
    """(fastest, next, whether their intervals are disjoint) at one size."""
    ranked = rows.sort_values(["value", "series"], kind="stable")
    first = ranked.iloc[0]
    if len(ranked) == 1:
        return first, None, True
    second = ranked.iloc[1]
    if first["modelled"]:
        return first, second, first["value"] < second["value"]
    return first, second, bool(first["ci_high"] < second["ci_low"])


def _winner_row(machine: str, run: list[tuple]) -> list[Cell | str]:
    first, last = run[0][0], run[-1][0]
    ends = [first] if len(run) == 1 else [first, last]
    shares = sorted(step[0]["share"] for step in run if step[0]["share"] == step[0]["share"])
    share = "" if not shares else " – ".join(dict.fromkeys(quantity.percent(s) for s in (shares[0], shares[-1])))
    return [
        machine,
        Cell(quantity.size(first["size_bytes"]), float(first["size_bytes"])),
        Cell(quantity.size(last["size_bytes"]), float(last["size_bytes"])),
        Cell(str(first["series"]), tone="strong"),
        Cell(" – ".join(quantity.text(row["value"], "s") for row in ends), float(first["value"])),
        Cell(share, shares[-1]) if shares else values.missing("no limit known"),
        _lead(run),
    ]


def _lead(run: list[tuple]) -> Cell:
    rivals = [(second["value"] / first["value"], second["series"]) for first, second, _ in run if second is not None]
    if not rivals:
        return values.missing("no other algorithm ran")
    rivals.sort()
    low, high = rivals[0][0], rivals[-1][0]
    names = ", ".join(sorted({name for _, name in rivals}))
    shown = f"{low:.2f}×" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}× – {high:.2f}×"
    apart = all(step[2] for step in run)
    return Cell(
        shown,
        high,
        f"over {names}" if apart else f"not separable from {names}",
        tone="" if apart else "quiet",
    )


def _every_number(machine: str, kind: str, rows: pd.DataFrame) -> Table:
    names = sorted(rows["series"].unique())
    best = {row["size_bytes"]: row["series"] for _, row in fastest(rows).iterrows()}
    found = {(row["size_bytes"], row["series"]): row for _, row in rows.iterrows()}
    body = [
        [
            Cell(quantity.size(size), float(size)),
            *(_time(found.get((size, name)), best.get(size)) for name in names),
        ]
        for size in sorted(rows["size_bytes"].dropna().unique())
    ]
    columns = [Column("Size", "B", numeric=True), *(Column(name, "s", numeric=True) for name in names)]
    return Table(f"{kind} on {machine}: every number", columns, body, ALL_HELP, collapsed=True)


def _time(row: pd.Series | None, best: str | None) -> Cell:
    if row is None:
        return values.missing("not in the suite")
    if row["status"] not in ("ok", "unconverged") or row["value"] != row["value"]:
        return values.missing(f"{row['status']}: {row['reason'] or 'no reason recorded'}")
    limit = "" if row["share"] != row["share"] else f"{quantity.percent(row['share'])} of limit"
    cell = values.value(row, limit)
    return Cell(cell.text, cell.sort, cell.detail, "strong" if row["series"] == best else "")
