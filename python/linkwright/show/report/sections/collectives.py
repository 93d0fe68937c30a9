"""Collectives: bus bandwidth and time by size, the fastest algorithm by size, and all numbers.

Each machine of a collective has two plots (measured points or modelled lines; the limit of the problem, or the best
seen, is dashed), a table of winners with their crossovers, and a folded table of every value. A winner whose interval
overlaps the next one's is reported as not separable: either may be chosen at that size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from linkwright.base.rows import Row, Rows, given, largest, mapped, nunique, smallest
from linkwright.libraries import library

from .. import quantity
from ..model import Axis, Cell, Column, Curve, Item, Plot, Section, Table
from ..runs import Run, ok
from . import rising, values

INTRO = (
    "Time is that of the slowest rank. Sizes and bus bandwidth (bytes over time, times the factor of the collective) "
    "are those of nccl-tests. The lead says how many times longer the next algorithm takes."
)
MEASURED = (
    "Points are measured, with their 95 % intervals; those of one size are spread sideways, and faint lines join them. "
    "'Not separable' means that the intervals of two algorithms overlap somewhere in that range. 'Best seen' is what "
    "the best cache line and copy rate ever seen on this host would give; it is not a physical limit."
)
MODELLED = "Solid lines are models. The limit holds for every algorithm: no schedule for this problem is faster."
HANDLING = "Click a name to hide its curve; drag to zoom, double-click to see everything again."
_MOST_OPEN = 2  # collectives; of more, one
_MOST_CURVES = 8  # that are told apart in one chart; the others are grey
_SIZE = Axis("message size", "B", "log2")


def section(run: Run) -> Section | None:
    """One part per collective of the run."""
    parts = [part for part in (_collective(run, kind) for kind in run.collectives) if part]
    if not parts:
        return None
    first = next((part for part in parts if part.title == "allreduce"), parts[0])
    parts = [part if part is first or len(parts) <= _MOST_OPEN else replace(part, folded=True) for part in parts]
    intro = [INTRO, MEASURED if run.has_measured else "", MODELLED if run.has_modelled else "", HANDLING]
    return Section("Collectives", intro=" ".join(filter(None, intro)), parts=parts)


def times(run: Run, kind: str) -> Rows:
    """The rows of collective `kind` that hold the time of the slowest rank, of every status."""
    rows = run.rows[run.rows["collective"] == kind]
    for metric in ("time", "latency"):
        if (rows["metric"] == metric).any():
            return rows[rows["metric"] == metric]
    return rows[rows["unit"] == "s"]


def most_ranks(rows: Rows) -> Rows:
    """The results of one machine with the most ranks; fewer ranks are faster, but answer a different question."""
    good = ok(rows)
    return good[~(good["ranks"] < largest(good["ranks"]))]  # rows that name no ranks stay


def fastest(rows: Rows) -> Rows:
    """The fastest row with the most ranks at each size, by ascending size."""
    good = most_ranks(rows).ordered("size_bytes", "value", "algorithm")
    return good.distinct("size_bytes")


def series_name(rows: Rows) -> Column:
    """The algorithm and everything else that varies: ranks, data type, issue policy, path.

    A library takes another path at another size, and it is the same plan.
    """
    planned = mapped(rows["algorithm"], library.is_plan).astype(bool)
    rows = rows.assign(**{key: np.where(planned, None, rows[key]) for key in ("issue", "path")})
    name = np.where(rows["algorithm"] != "", rows["algorithm"], rows["label"])
    for key in values.varying(rows, ("ranks", "dtype", "op", "placement", "issue", "path")):
        name = name + np.where(given(rows[key]), mapped(rows[key], _word), "")
    return name


def _word(value: object) -> str:
    return f", {value:.0f} ranks" if isinstance(value, float) else f", {value}"


def _collective(run: Run, kind: str) -> Section | None:
    found = times(run, kind)
    by_machine = ((machine, ok(found[found["machine"] == machine])) for machine in run.machines)
    items = [item for machine, rows in by_machine if len(rows) for item in _machine(run, kind, machine, rows)]
    return Section(kind, items) if items else None


def _machine(run: Run, kind: str, machine: str, rows: Rows) -> Iterator[Item]:
    rows = rows.assign(series=series_name(rows))
    rates = ok(run.rows[(run.rows["collective"] == kind) & (run.rows["metric"] == "bus_bw")])
    rates = rates[rates["machine"] == machine]
    series = dict(zip(rows["experiment"], rows["series"], strict=True))
    rates = rates.assign(series=mapped(rates["experiment"], series.get))
    name, shown = f"{kind} on {machine}", _leading(rows)
    if nunique(rows["size_bytes"]) > 1:
        if len(rates):
            said = values.sentence(rising.words(most_ranks(rates), "series"))
            yield _plot(f"{name}: bus bandwidth", rates, Axis("bus bandwidth", "B/s", "log10"), shown, said)
        yield _plot(f"{name}: time", rows, Axis("time", "s", "log10"), shown, _quickest(rows))
    rate_of = dict(zip(rates["experiment"], rates["value"], strict=True))
    sized = " by size" if (rows["size_bytes"] > 0).any() else ""
    yield _winner_table(f"Fastest algorithm{sized}: {name}", most_ranks(rows), rate_of)
    yield _every_number(f"{name}: every number", rows, rate_of)


def _quickest(rows: Rows) -> str:
    """'8 B: 67.6 ns ±1.2 % (ring)', the fastest at the smallest size."""
    row = fastest(rows)[0]
    return f"{quantity.size(row['size_bytes'])}: {values.in_words(row)} ({row['series']})"


def _leading(rows: Rows) -> list[str]:
    """The series that come nearest to the fastest at some size, the best first; as many as can be told apart."""
    nearest: dict[str, list[float]] = {}
    for _, part in rows.by("size_bytes"):
        for name, value in zip(part["series"], part["value"] / smallest(part["value"]), strict=True):
            nearest.setdefault(name, []).append(value)
    ranked = sorted(nearest, key=lambda name: (min(nearest[name]), np.mean(nearest[name]), name))
    return ranked if len(ranked) <= _MOST_CURVES else ranked[: _MOST_CURVES - 1]


def _plot(title: str, rows: Rows, up: Axis, shown: list[str], summary: str = "") -> Plot:
    by_name = {name: values.curve(part, "size_bytes", name) for (name,), part in rows.by("series", sort=True)}
    others = sorted(set(by_name) - set(shown))
    curves: list[Curve | None] = [by_name[name] for name in sorted(set(shown) & set(by_name))]
    curves += [replace(by_name[name], group=f"{len(others)} slower") for name in others]
    curves += [values.limits(rows, "size_bytes")]
    return Plot(title, _SIZE, up, [curve for curve in curves if curve], dodge=True, summary=summary)


def _winner_table(title: str, rows: Rows, rate_of: dict[str, float]) -> Table:
    sized, measured = bool((rows["size_bytes"] > 0).any()), not rows["modelled"].all()
    kind = next(filter(None, rows["yardstick_kind"]), "")
    kept = (sized, sized, True, True, measured, bool(rate_of), bool(kind), True)
    columns = (
        Column("From", "B", numeric=True),
        Column("To", "B", numeric=True),
        Column("Fastest"),
        Column("Time", "s", numeric=True, help="at the first and the last size of the range"),
        Column("±%", numeric=True, help="half the width of the 95 % interval; the narrowest and the widest"),
        Column("Bus bandwidth", "B/s", numeric=True, help="at the first and the last size of the range"),
        Column(f"% of {kind}", "%", numeric=True, help="the least and the greatest of the range"),
        Column("Lead", numeric=True),
    )
    body = [_winner_row(run, rate_of) for run in _reigns(rows)]
    return Table(title, _kept(columns, kept), [_kept(row, kept) for row in body])


def _kept(cells, kept: tuple[bool, ...]) -> list:
    return [cell for cell, keep in zip(cells, kept, strict=True) if keep]


def _reigns(rows: Rows) -> list[list[tuple]]:
    """Consecutive sizes with the same fastest series."""
    reigns: list[list[tuple]] = []
    for _, part in rows.by("size_bytes", sort=True):
        contest = _contest(part)
        if reigns and reigns[-1][-1][0]["series"] == contest[0]["series"]:
            reigns[-1].append(contest)
        else:
            reigns.append([contest])
    return reigns


def _contest(rows: Rows) -> tuple[Row, Row | None, bool]:
    """(fastest, next, whether their intervals are disjoint) at one size."""
    ranked = rows.ordered("value", "series")
    first = ranked[0]
    if len(ranked) == 1:
        return first, None, True
    second = ranked[1]
    if first["modelled"]:
        return first, second, first["value"] < second["value"]
    return first, second, bool(first["ci_high"] < second["ci_low"])


def _winner_row(reign: list[tuple], rate_of: dict[str, float]) -> list[Cell | str]:
    rows = [step[0] for step in reign]
    first, last = rows[0], rows[-1]
    ends = rows if len(rows) == 1 else [first, last]
    shares = sorted(row["share"] for row in rows if row["share"] == row["share"])
    found = [rate_of[row["experiment"]] for row in ends if row["experiment"] in rate_of]
    return [
        values.size(first),
        values.size(last),
        Cell(str(first["series"]), tone="strong"),
        Cell(_span(quantity.text(row["value"], "s") for row in ends), float(first["value"])),
        _precisions(rows),
        Cell(_span(quantity.text(rate, "B/s") for rate in found), found[-1]) if found else values.missing(""),
        Cell(_span(quantity.percent(s) for s in (shares[0], shares[-1])), shares[-1])
        if shares
        else values.missing("not known"),
        _lead(reign),
    ]


def _span(texts) -> str:
    return " – ".join(dict.fromkeys(texts))


def _precisions(rows: list[Row]) -> Cell:
    """The narrowest and the widest precision, in the tone of the worst grade."""
    found = sorted(row["precision"] for row in rows if row["precision"] == row["precision"])
    worst = max((row["grade"] for row in rows), key=("", "tight", "fair", "single", "wide").index)
    shown = _span(values.bare_percent(share) for share in found[:1] + found[-1:])
    marks = next(filter(None, map(values.mark, rows)), "")
    tone = values.tone(worst) if found else "quiet"
    return Cell(shown, found[-1] if found else None, worst, "" if tone == "strong" else tone, mark=marks)


def _lead(reign: list[tuple]) -> Cell:
    rivals = [(second["value"] / first["value"], second["series"]) for first, second, _ in reign if second is not None]
    if not rivals:
        return values.missing("no other algorithm ran")
    rivals.sort()
    low, high = rivals[0][0], rivals[-1][0]
    names = ", ".join(sorted({name for _, name in rivals}))
    apart = all(step[2] for step in reign)
    told = f"over {names}" if apart else f"not separable from {names}"
    return Cell(_span((f"{low:.2f}×", f"{high:.2f}×")), high, told, tone="" if apart else "quiet")


def _every_number(title: str, rows: Rows, rate_of: dict[str, float]) -> Table:
    measured, kind = not rows["modelled"].all(), next(filter(None, rows["yardstick_kind"]), "")
    kept = (True, True, True, measured, measured, bool(rate_of), bool(kind), bool(given(rows["bound"]).any()))
    columns = (
        Column("Size", "B", numeric=True),
        Column("Algorithm"),
        Column("Time", "s", numeric=True),
        Column("±%", numeric=True, help="half the width of the 95 % interval"),
        Column("Grade"),
        Column("Bus bandwidth", "B/s", numeric=True),
        Column(f"% of {kind}", "%", numeric=True),
        Column("Bound of this schedule", "s", numeric=True, help="the lower bound of its own traffic"),
    )
    best = set(fastest(rows)["experiment"])
    ranked = rows.ordered("size_bytes", "value", "series")
    body = [_kept(_numbers(row, rate_of, row["experiment"] in best), kept) for row in ranked]
    help = "Bold: the fastest at each size on the most ranks. Those without a value are listed at the end of the page."
    return Table(title, _kept(columns, kept), body, help, collapsed=True)


def _numbers(row: Row, rate_of: dict[str, float], is_best: bool) -> list[Cell]:
    rate, bound = rate_of.get(row["experiment"]), row["bound"]
    return [
        values.size(row),
        Cell(str(row["series"]), tone="strong" if is_best else ""),
        Cell(quantity.text(row["value"], "s"), float(row["value"]), row["modes"], "strong" if is_best else ""),
        values.plus_minus(row),
        Cell(row["grade"], tone=values.tone(row["grade"]), mark=values.mark(row)),
        Cell(quantity.text(rate, "B/s"), rate) if rate else values.missing(""),
        Cell(quantity.percent(row["share"]), row["share"]) if row["share"] == row["share"] else values.missing(""),
        Cell(quantity.text(bound, "s"), bound, values.limit_words(row["bound_name"]))
        if bound == bound
        else values.missing(""),
    ]
