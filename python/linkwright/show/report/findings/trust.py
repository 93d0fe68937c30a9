"""How far to trust the run: failures, disturbance, precision, and what was not started."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base.rows import Rows, among, mapped
from linkwright.base.stats import grade
from linkwright.base.units import counted

from .. import quantity
from ..model import Finding
from ..runs import Run

BUSY_FROM = 0.10  # share of the experiments from which a disturbance is a finding
ENOUGH = 0.80  # share of the values that should be tight or fair
MODES_FROM = 0.10


def experiments(run: Run, machine: str) -> Rows:
    """The row of the time of each experiment of a machine."""
    return run.rows[(run.rows["machine"] == machine) & (run.rows["metric"] == "time")]


def flagged(rows: Rows, flag: str) -> Rows:
    """The rows that carry a flag."""
    return rows[mapped(rows["flags"], lambda flags: flag in str(flags).split(",")).astype(bool)]


def failed(run: Run, machine: str) -> Iterator[Finding]:
    """Experiments that gave a wrong answer or an error."""
    rows = run.rows[(run.rows["machine"] == machine) & (run.rows["status"] == "failed")]
    rows = rows.distinct("experiment")
    if len(rows):
        row = rows[0]
        named = f"{counted(len(rows))} failed, such as {row['label']}/{row['algorithm']}"
        why = row["reason"] or "no reason recorded"
        yield Finding(named, "although every answer must be exact", f"The reason: {why}.", 100)


def busy(run: Run, machine: str) -> Iterator[Finding]:
    """Others kept processors busy, or a clock moved, in many experiments."""
    rows = experiments(run, machine)
    lost = int((rows["status"] == "disturbed").sum())
    hit = len(flagged(rows, "disturbed")) + lost
    if len(rows) and hit >= BUSY_FROM * len(rows):
        share = quantity.percent(hit / len(rows))
        yield Finding(
            f"{share} of the experiments were disturbed",
            "although an idle machine disturbs none",
            "Stop other programs on this machine, then measure again.",
            90,
            subject="run",
        )


def imprecise(run: Run, machine: str) -> Iterator[Finding]:
    """Too few values are tight or fair."""
    rows = experiments(run, machine)
    grades = rows[rows["grade"] != ""]["grade"]
    good = among(grades, (grade.TIGHT, grade.FAIR_GRADE)).mean() if len(grades) else 1.0
    if good < ENOUGH:
        wide, single = (int((grades == name).sum()) for name in (grade.WIDE, grade.SINGLE))
        yield Finding(
            f"{f'Only {quantity.percent(good)}' if good else 'None'} of the values "
            f"{'are' if good else 'is'} tight or fair "
            f"({wide} wide, {single} single)",
            f"where {quantity.percent(ENOUGH)} make a run easy to judge",
            "Measure longer with --time-budget, on an idle machine.",
            60,
            subject="run",
        )


def not_started(run: Run, machine: str) -> Iterator[Finding]:
    """The time budget ended before some experiments began."""
    rows = experiments(run, machine)
    late = int((rows["status"] == "out-of-time").sum())
    if late:
        budget = run.plan.get("request", {}).get("budget_s")
        yield Finding(
            f"{counted(late)} did not start",
            f"out of {len(rows)}: the time budget{f' of {budget:g} s' if budget else ''} was too short",
            "Give more with --time-budget.",
            40,
            odd=False,
            subject="run",
        )


def shared_processors(run: Run, machine: str) -> Iterator[Finding]:
    """Ranks shared processors, or ran wherever the kernel put them."""
    rows = experiments(run, machine)
    for flag, told in (("oversubscribed", "shared processors"), ("unpinned", "were not pinned to processors")):
        count = len(flagged(rows, flag))
        if count:
            yield Finding(
                f"In {counted(count)} ranks {told}",
                "although one rank per processor was assumed",
                "Ask for fewer --ranks, or allow more processors.",
                70,
                subject="run",
            )


def moved(run: Run, machine: str) -> Iterator[Finding]:
    """The same round trip took longer or shorter after an experiment than before it."""
    rows = experiments(run, machine)
    hit = len(flagged(rows, "moved"))
    if len(rows) and hit >= BUSY_FROM * len(rows):
        yield Finding(
            f"The canary's time changed in {quantity.percent(hit / len(rows))} of the experiments",
            "although the same round trip should take the same time before and after",
            "Look for a changing clock, a busy neighbour or migration; compare only values of one run.",
            50,
            subject="run",
        )


def two_modes(run: Run, machine: str) -> Iterator[Finding]:
    """Many values fall into two groups of launches."""
    rows = experiments(run, machine)
    hit = flagged(rows, "two-modes")
    if len(rows) and len(hit) >= MODES_FROM * len(rows):
        first = hit[0]
        yield Finding(
            f"{quantity.percent(len(hit) / len(rows))} of the experiments have two modes, such as {first['label']}",
            "although launches of one experiment should agree",
            "Judge each mode separately; the placement of memory or threads differs between launches.",
            30,
            odd=False,
            subject="run",
        )
