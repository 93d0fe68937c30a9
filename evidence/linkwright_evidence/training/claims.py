"""Whether the model puts machines and layouts into the order that was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from linkwright_evidence import scoring
from linkwright_evidence.outcome import Cell, Claim, numbered

# Two values that differ by less have no order: releases of one configuration differ by as much.
APART = 1.10
LAYOUT = ("mbs", "fsdp", "tp", "pp", "cp", "vp", "ep")


def check(made: Sequence[Cell]) -> list[Claim]:
    """All claims; rows that calibrated a GPU count in the order of machines too, but not two of them together."""
    score = scoring.score("all", made)
    if score is None:
        return []
    machines = _order(made, ("task", "model", "precision", "release"), lambda cell: cell.keys["system"])
    layouts = _order(
        made, ("task", "model", "precision", "system", "gpus", "gbs"), lambda cell: [cell.keys[name] for name in LAYOUT]
    )
    accuracy = "rows that calibrated nothing: "
    found = [
        (
            f"{accuracy}median error at most 10 %",
            score.median <= 0.10,
            f"{score.median:.1%} of {len(score.errors)} rows",
        ),
        (f"{accuracy}nine in ten within 20 %", score.p90 <= 0.20, f"90th percentile {score.p90:.1%}"),
        ("the order of machines for one model, precision and release", machines[0] == machines[1], _words(machines)),
        ("the order of layouts on one machine, 85 % of pairs", layouts[0] >= 0.85 * layouts[1], _words(layouts)),
    ]
    return [numbered("L", number, *one) for number, one in enumerate(found, 1)]


def _words(pairs: tuple[int, int]) -> str:
    return f"{pairs[0]} of {pairs[1]} pairs that differ by {APART - 1:.0%} or more"


def _order(made: Sequence[Cell], same: Sequence[str], by: Callable[[Cell], object]) -> tuple[int, int]:
    """(pairs in the right order, pairs)."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in made:
        if cell.error is not None:
            groups.setdefault(tuple(cell.keys[name] for name in same), []).append(cell)
    right = total = 0
    for its in groups.values():
        for first, second in combinations(its, 2):
            if by(first) == by(second) or first.role == second.role == "fitted":
                continue
            published = float(str(first.reference)) / float(str(second.reference))
            if max(published, 1 / published) < APART:
                continue
            total += 1
            right += (published > 1) == (float(str(first.predicted)) > float(str(second.predicted)))
    return right, total
