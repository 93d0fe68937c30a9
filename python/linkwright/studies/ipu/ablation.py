"""The mechanisms of the C2 server and the rules of the study, for `--ablate`."""

from __future__ import annotations

from collections.abc import Iterable

from linkwright.studies import ablation
from linkwright.studies.ipu import fit
from linkwright.studies.ipu.bench import Bench
from linkwright.studies.ipu.tables import Table

NEVER = "1000000000"
# Mechanism -> what is changed in the machine file.
MECHANISMS: dict[str, dict[str, str]] = {
    "place of tiles": {"fabric.floorplan.column_step": "0", "fabric.floorplan.island_step": "0"},
    "places hide behind a queue": {"fabric.floorplan.hides": "false"},
    "paired receive": {"fabric.multicast.paired_from": NEVER},
    "wide multicast": {"fabric.multicast.wide_above": NEVER},
    "link efficiency": {"fabric.ladder.efficiency": "1"},
    "rail hop": {"fabric.ladder.rail_hop": "0"},
    "rung hop": {"fabric.ladder.rung_hop": "0"},
    "least time of a stream": {"fabric.ladder.message_cost": "0"},
    "rungs cost twice": {"fabric.ladder.rung_units": "1"},
    "rungs are half duplex for words": {"fabric.ladder.rung_half_duplex": "false"},
    "header word": {"fabric.ladder.header": "false"},
    "blocks are stored": {"fabric.ladder.stored": "false"},
    "packet fill": {"fabric.ladder.packet_fill": "0"},
    "own chip in a second pass": {"fabric.ladder.own_chip_last": "false"},
    "host lanes below nominal": {
        key: str(fit.NOMINAL[key]) for key in ("fabric.host.chip_rate", "fabric.host.group_rate")
    },
    "start of point to point": {"path.pairs.phase_start": "0"},
    "start of scatter": {"path.scatter_words.phase_start": "0", "path.scatter_blocks.phase_start": "0"},
    "start of gather of blocks": {"path.gather_blocks.phase_start": "0"},
    "starts of sums": {
        "path.reduce_tile.compute_start": "0",
        "path.reduce_chip.phase_start": "0",
        "path.reduce_chip.compute_start": "0",
        "path.reduce_links.compute_start": "0",
        "path.reduce_single.compute_start": "0",
        "path.reduce_single.receive": "0",
    },
    "start of the host": {"path.host.phase_start": "0"},
}
# Rules of the study, by the name that `Bench.without` knows.
RULES = {
    "sums by rows": "rows",
    "many operands have a vertex of their own": "own vertex",
    "random traffic crosses the middle": "crossing",
}


def table(bench: Bench, tables: Iterable[Table], cells: list, progress) -> list[dict]:
    """One row per mechanism: what the scored cells look like without it."""
    tables = list(tables)
    keys = {each.key for each in tables}
    benches = {name: lambda values=values: bench.changed(values) for name, values in MECHANISMS.items()}
    benches |= {name: lambda rule=rule: bench.dropping(rule) for name, rule in RULES.items()}
    benches["every fitted number (nominal and prose values)"] = lambda: fit.with_values(bench, fit.nominal(bench))
    variants = {name: lambda here=here: _cells(here(), tables) for name, here in benches.items()}
    return ablation.table(variants, cells, progress, pooled=lambda cell: cell.table in keys)


def _cells(bench: Bench, tables: Iterable[Table]) -> list:
    return [cell for each in tables for cell in each.cells(bench)]
