"""Times and rates against their limits, published values, other sizes and the earlier run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from linkwright.base.rows import Row, Rows, given
from linkwright.base.units import counted

from .. import quantity
from ..first import earlier, tiles
from ..model import Finding
from ..runs import Run, are_rates, ok, published
from ..sections import headline, values

LONGER = 1.05  # a time is longer by at least this factor, and the intervals must not overlap
OFF = 0.10  # a published value is missed by more than this share
_ROUNDING = 1e-6  # by which a modelled value may touch its limit
_NAMED = 2


def slower_than_before(run: Run, machine: str) -> Iterator[Finding]:
    """Values of the first table that are slower than in the earlier run, beyond the noise and by 5 %."""
    slower = []
    for pick in headline.picks(run, machine):
        found = earlier.change(run, pick.row)
        if found and found.worse and max(found.ratio, 1 / found.ratio) > LONGER:
            slower.append((pick, found))
    before = earlier.find(run)
    if slower and before:
        slower.sort(key=lambda found: -abs(np.log(found[1].ratio)))
        told = ", ".join(f"{pick.question} by {100 * (found.ratio - 1):+.0f} %" for pick, found in slower[:_NAMED])
        more = f" and {len(slower) - _NAMED} more" if len(slower) > _NAMED else ""
        yield Finding(
            f"Slower: {told}{more}",
            f"compared with the run of {earlier.when(before)}, beyond the noise of both",
            f"See `linkwright compare {before.id} {run.id}`.",
            75,
        )


def fewer_bytes_slower(run: Run, machine: str) -> Iterator[Finding]:
    """Collectives whose fastest algorithm takes longer for a smaller message than for a larger one."""
    for kind in run.collectives:
        best = tiles.fastest(run, machine, kind)
        pairs = list(itertools.pairwise(best))
        worst = max(pairs, key=lambda pair: pair[0]["value"] / pair[1]["value"], default=None)
        if worst and _apart(*worst):
            small, large = worst
            yield Finding(
                f"{kind} of {quantity.size(small['size_bytes'])} takes {tiles.shown(small)}",
                f"longer than {tiles.shown(large)} for {quantity.size(large['size_bytes'])}",
                "Send the larger size, or choose another algorithm for the smaller one.",
                35,
            )


def _apart(slow: Row, fast: Row) -> bool:
    low, high = slow["ci_low"], fast["ci_high"]
    separable = bool(slow["modelled"]) or (low == low and high == high and low > high)
    return separable and bool(slow["value"] > LONGER * fast["value"])


def _beaten(run: Run, machine: str, limit: str, margin: float) -> Rows:
    """The rows that beat a column by more than `margin`, the farthest first; `times` says by how much."""
    rows = ok(run.rows[(run.rows["machine"] == machine) & given(run.rows[limit]) & (run.rows[limit] > 0)])
    rows = rows[rows["value"] > 0]
    rows = rows.assign(times=np.where(are_rates(rows), rows["value"] / rows[limit], rows[limit] / rows["value"]))
    return rows[rows["times"] > 1 + margin].ordered("-times")


def beyond_limit(run: Run, machine: str) -> Iterator[Finding]:
    """Values that beat what the description of the machine allows: one of them is wrong."""
    rows = _beaten(run, machine, "limit", _ROUNDING)
    if len(rows):
        row = rows[0]
        yield Finding(
            f"{_named(row)} reaches {quantity.percent(row['times'])} of its limit",
            f"which nothing should beat ({values.limit_words(row['limit_name'])}, {counted(len(rows), 'value')})",
            "The description of the machine or the data sheet is wrong; check that number first.",
            95,
        )


def beyond_best_seen(run: Run, machine: str) -> Iterator[Finding]:
    """Values well above the best that was seen on this host: that was measured at a slower moment."""
    rows = _beaten(run, machine, "best_seen", LONGER - 1)
    rows = rows[rows["metric"] == "time"] if (rows["metric"] == "time").any() else rows
    if len(rows):
        row = rows[0]
        yield Finding(
            f"{_named(row)} is {row['times']:.2f}× as good as the best seen",
            f"although the same host gave that ({values.words(row['best_seen_name'])}, {counted(len(rows), 'value')})",
            "The best was measured at a slower moment; measure again on an idle machine.",
            25,
            odd=False,
        )


def _named(row: Row) -> str:
    size = f" of {quantity.size(row['size_bytes'])}" if row["size_bytes"] > 0 else ""
    name = values.words(row["label"])
    return f"{name}{size}" if row["label"] == row["algorithm"] else f"{name}/{row['algorithm']}{size}"


def off_published(run: Run, machine: str) -> Iterator[Finding]:
    """Values that miss the published ones."""
    rows = published(run, machine)
    rows = rows.assign(away=np.abs(rows["off"]))
    far = rows[rows["away"] > OFF]
    if len(far):
        row = far.greatest("away")
        yield Finding(
            f"{_named(row)}: {quantity.text(row['value'], row['unit'])}, {100 * row['off']:+.0f} %",
            f"compared with the published {quantity.text(row['reference_value'], row['unit'])} "
            f"({len(far):,} of {len(rows):,} published values are missed by more than {quantity.percent(OFF)})",
            "Run the study of this machine (`linkwright list studies`) for the accuracy of its model.",
            52,
        )


def still_rising(run: Run, machine: str) -> Iterator[Finding]:
    """The bandwidth is best at the last size of its sweep, so its peak is not known."""
    rows = tiles.sweep(run, machine)
    if rows is not None and tiles.rising(rows):
        row = rows.greatest("value")
        yield Finding(
            f"Bandwidth still rises at {quantity.size(row['size_bytes'])}",
            "the last size, so the peak is not known",
            "Raise `sizes` in a copy of the suite until the curve is flat.",
            22,
            odd=False,
        )
