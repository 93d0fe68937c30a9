"""What each mechanism is worth: the tables again with one mechanism taken away at a time, nothing fitted anew.

A study declares a table, from the name of a mechanism to the changes that take it away, and says what its cells are
with such changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from linkwright_evidence import scoring
from linkwright_evidence.outcome import Cell

NOTE = (
    "The same tables with one mechanism taken away at a time; nothing is fitted anew. `worse` names tables and by how "
    "many points their median error grew."
)
# A median that grows by less is not worth a word.
WORSE = 0.005
LONGEST = 8
Changes = TypeVar("Changes")


def table(
    mechanisms: Mapping[str, Changes],
    without: Callable[[Changes], Sequence[Cell]],
    whole: Sequence[Cell],
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    pooled: Callable[[Cell], bool] = lambda cell: True,
) -> list[dict]:
    """One row per mechanism: how close the scored cells are without it.

    Args:
        mechanisms: name of what is taken away -> the changes that do it.
        without: the cells of the study with such changes.
        whole: the cells of the study as it is.
        progress: called with what is done, how many of them, and how many there are.
        pooled: which cells count in the figures of a row; by default, all.

    Returns:
        Rows with `without`, the figures of `Score.percent_row`, and `worse`; the first row takes away nothing.
    """
    before = {score.name: score.median for score in scoring.scores(filter(pooled, whole))}
    rows = [_row("nothing", [cell for cell in whole if pooled(cell)], before)]
    for done, (name, changes) in enumerate(mechanisms.items(), 1):
        rows.append(_row(name, [cell for cell in without(changes) if pooled(cell)], before))
        progress("ablation", done, len(mechanisms))
    return rows


def _row(name: str, cells: Sequence[Cell], before: Mapping[str, float]) -> dict:
    score = scoring.score(name, cells)
    grown = ((its.median - before.get(its.name, its.median), its.name) for its in scoring.scores(cells))
    worse = sorted((pair for pair in grown if pair[0] > WORSE), reverse=True)[:LONGEST]
    return {
        "without": name,
        **(score.percent_row(digits=2) if score else {}),
        "worse": ", ".join(f"{table} (+{100 * by:.0f})" for by, table in worse),
    }
