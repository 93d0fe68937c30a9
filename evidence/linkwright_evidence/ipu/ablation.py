"""The mechanisms of the C2 server and the rules of the study, for `--ablate`.

`table` takes away one mechanism at a time. `curve` starts from nothing tuned, with every mechanism but none of the
fitted numbers and rules, and adds in each step the one that lowers the mean error most.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from linkwright_evidence import ablation, scoring
from linkwright_evidence.ipu import fit
from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.ipu.tables import Table
from linkwright_evidence.outcome import Cell

NEVER = "1000000000"
# Rule of the study, by the name that `Bench.without` knows -> in words.
RULES = {"rows": "sums by rows", "crossing": "random traffic crosses the middle"}
# Rule of the machine file -> the value that takes it away.
CHOSEN = {
    "fabric.multicast.paired_from": NEVER,
    "fabric.multicast.wide_above": NEVER,
    "fabric.ladder.rung_units": "1",
    "fabric.ladder.rung_half_duplex": "false",
    "fabric.ladder.word_interval": "0",
    "fabric.ladder.sorted_by_board": "false",
    "fabric.ladder.stored": "false",
    "fabric.ladder.own_chip_last": "false",
    "fabric.floorplan.hides": "false",
    "facts.own_vertex": NEVER,
}
# What is measured or documented, and would be a start without a mechanism.
GIVEN: dict[str, dict[str, str]] = {
    "place of tiles": {"fabric.floorplan.column_step": "0", "fabric.floorplan.island_step": "0"},
    "link efficiency": {"fabric.ladder.efficiency": "1"},
    "rail hop": {"fabric.ladder.rail_hop": "0"},
    "rung hop": {"fabric.ladder.rung_hop": "0"},
    "host lanes below nominal": {"fabric.host.chip_rate": "7.88", "fabric.host.group_rate": "15.75"},
    "start of the host": {"path.host.phase_start": "0"},
    "start of point to point": {"path.pairs.phase_start": "0"},
    "start of sums on one tile": {"path.reduce_single.compute_start": "0", "path.reduce_tile.compute_start": "0"},
    "start of a collecting tile": {"fabric.collect_lead": "92.5"},
}
# An error counts as 100 % at most, or one bad cell would choose.
MOST = 1.0


def tuned() -> list[str]:
    """Everything tuned: fitted numbers, rules of the machine file, rules of the study."""
    return [*fit.NOMINAL, *CHOSEN, *RULES]


def with_only(bench: Bench, kept: Sequence[str]) -> Bench:
    """The bench with some of what was tuned, and nothing else of it."""
    for rule in RULES:
        if rule not in kept:
            bench = bench.dropping(rule)
    off = {key: text for key, text in CHOSEN.items() if key not in kept}
    values = {key: bench.number(key) if key in kept else nominal for key, nominal in fit.NOMINAL.items()}
    return fit.with_values(bench.changed(off) if off else bench, values)


def with_also(bench: Bench, key: str, whole: Bench) -> Bench:
    """The bench with one more tuned thing, as it is in `whole`."""
    if key in RULES:
        return bench.restoring(key)
    if key in CHOSEN:
        return bench.changed({key: whole.numbers[key]["value"]})
    return fit.with_values(bench, fit.shipped(bench) | {key: whole.number(key)})


def table(bench: Bench, tables: Iterable[Table], cells: list[Cell], progress) -> list[dict]:
    """One row per mechanism: what the scored cells look like without it."""
    tables, every = list(tables), tuned()
    benches = {name: lambda values=values: bench.changed(values) for name, values in GIVEN.items()}
    for key in every:
        others = [other for other in every if other != key]
        benches[RULES.get(key, key)] = lambda others=others: with_only(bench, others)
    benches["everything tuned"] = lambda: with_only(bench, [])
    return ablation.table(benches, lambda here: run(here(), tables), cells, progress)


def curve(bench: Bench, tables: Iterable[Table], progress) -> list[dict]:
    """Errors of the scored cells over the number of tuned things, each step with the one that helps most."""
    tables, left, here = list(tables), tuned(), with_only(bench, [])
    rows = [_step(0, "nothing", run(here, tables))]
    while left:
        found = []
        for key in left:
            there = with_also(here, key, bench)
            cells = run(there, tables)
            found.append((mean_error(cells), key, there, cells))
            progress("numbers and rules", len(rows) - 1, len(tuned()))
        _, best, here, cells = min(found, key=lambda each: each[:2])
        left.remove(best)
        rows.append(_step(len(rows), RULES.get(best, best), cells))
    return rows


def run(bench: Bench, tables: Iterable[Table]) -> list[Cell]:
    """The cells of the tables."""
    return [cell for each in tables for cell in each.cells(bench)]


def mean_error(cells: Iterable[Cell]) -> float:
    """Mean error of the scored cells."""
    return statistics.fmean(min(cell.error, MOST) for cell in cells if cell.scored and cell.error is not None)


def _step(count: int, added: str, cells: Sequence[Cell]) -> dict:
    score = scoring.score("", cells)
    figures = score.percent_row(digits=2) if score else {}
    return {"tuned": count, "added": added, "mean_percent": round(100 * mean_error(cells), 2), **figures}
