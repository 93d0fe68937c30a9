"""Derive how far below the model healthy machines measure, for `linkwright expect`.

    python -m linkwright_evidence.modern.tolerance

writes `python/linkwright/libraries/tolerance.toml` from the healthy tables of this study. The shortfall of a published
cell is the share by which its rate is below the model's:

    shortfall = 1 - published rate / modelled rate = 1 - modelled time / published time

Cells are grouped by machine file, network, collective and bands of nodes and sizes; of a group, the shortfall counts
that `SHARE` of its cells do not exceed. The scatter is the same figure for systems of one condition against the middle
of their tables. The spread holds eight cells in ten of all machines, on one node and on several, by band of sizes;
`calibration` says how many cells of a site it holds if that site had no part in it. Tables with a forced algorithm are
left out: what is expected is the library's own choice.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from linkwright.libraries import tolerance
from linkwright.libraries.settings import Setting, Setup
from linkwright.libraries.times import Model
from linkwright.libraries.tolerance import BYTES, NODES, band
from linkwright_evidence import Options
from linkwright_evidence.outcome import Cell

from . import cells

SHARE = 0.95  # of healthy cells that are above the floor
OUTSIDE = 0.1  # of cells on either side of a spread
HELD = (0.7, 0.9)  # of the cells of a site that was left out, which the spread of the others should hold
NOTE = (
    "Published over modelled time, all machines: a tenth of the cells is below `low`, a tenth above `high`. "
    "`held_percent`: of the cells of a site, those within the range of all other sites, each site left out in turn; "
    "70 to 90 are right for a range that eight in ten should be in."
)
FILE = Path(tolerance.__file__).with_suffix(".toml")
HEAD = f"""\
# How far below the model published healthy systems measure. Made by
#   python -m linkwright_evidence.modern.tolerance
# which says how; do not edit. Source: the tables of evidence/linkwright_evidence/references/modern.
# {SHARE:.0%} of the cells of a group are at most `shortfall` (a share of the modelled rate) below the model. Bands of
# `nodes` end at {", ".join(map(str, NODES))}, bands of `size` at {", ".join(map(str, BYTES))} bytes; the last are open.
"""


@dataclass(frozen=True)
class Measured:
    """A published cell against the model."""

    setup: Setup
    site: str
    table: str
    size_bytes: int
    gpus: int
    shortfall: float
    time: float  # published, us; one over a bus rate where only that is published
    unit: str

    @property
    def group(self) -> tuple[str, str, str, int, int]:
        """What it is pooled by."""
        fabric = (self.setup.fabric or "").partition(",")[0]
        nodes, size = band(self.setup.nodes, NODES), band(self.size_bytes, BYTES)
        return self.setup.machine, fabric, self.setup.collective, nodes, size


def measured(options: Options) -> list[Measured]:
    """All healthy cells with the library's own choice, of all machines or those of the options."""
    found = cells.tables(machines=options.machines, faulty=False)
    settings = {table.id: table.setting for table in found}
    made = cells.cells(found, cells.predictions(Model(), found, options))
    return of_cells(made, settings)


def of_cells(made: Iterable[Cell], settings: Mapping[str, object]) -> list[Measured]:
    """The healthy cells with the library's own choice, of all those given."""
    healthy = (cell for cell in made if not cell.erratum)
    return [one for cell in healthy if (one := _measured(cell, settings[str(cell.keys["table_id"])]))]


def _measured(cell: Cell, setting: object) -> Measured | None:
    assert isinstance(setting, Setting)
    if "/" in setting.setup.algorithm:
        return None
    published, model = float(cell.reference), float(cell.predicted)  # type: ignore[arg-type]
    time, modelled = (published, model) if cell.unit == "us" else (1 / published, 1 / model)
    keys = cell.keys
    return Measured(
        setting.setup, setting.site, str(keys["table_id"]), int(str(keys["size_bytes"])), int(str(keys["gpus"])),
        1 - modelled / time, time, cell.unit,
    )  # fmt: skip


def text(found: Iterable[Measured]) -> str:
    """The file."""
    found = list(found)
    one, several = (_scatter(one for one in found if (one.setup.nodes > 1) == more) for more in (False, True))
    rows = "\n".join(f"    {row}," for row in _groups(found))
    largest = max(one.size_bytes for one in found)
    scattered = f"[scatter]\none = {_list(one)}\nseveral = {_list(several)}\n"
    pairs = {key: [_list(_spread(its)) for its in bands] for key, bands in _bands(found).items()}
    spread = "".join(f"{key} = [{', '.join(its)}]\n" for key, its in pairs.items())
    return f"{HEAD}largest_bytes = {largest}\ngroups = [\n{rows}\n]\n\n{scattered}\n[spread]\n{spread}"


def _bands(found: Iterable[Measured]) -> dict[str, list[list[Measured]]]:
    """The cells of one node and of several, by band of sizes."""
    bands: dict[str, list[list[Measured]]] = {key: [[] for _ in range(len(BYTES) + 1)] for key in ("one", "several")}
    for one in found:
        bands["several" if one.setup.nodes > 1 else "one"][band(one.size_bytes, BYTES)].append(one)
    return bands


def _spread(its: Iterable[Measured]) -> list[float]:
    """Published over modelled time, of which a share is below the first and above the second."""
    factors = [1 / (1 - one.shortfall) for one in its] or [1.0]
    return [tolerance.worst(factors, OUTSIDE), tolerance.worst(factors, 1 - OUTSIDE)]


def calibration(found: Iterable[Measured]) -> list[dict]:
    """One row per band: the share of cells within the spread of all other sites, each site left out in turn."""
    rows = []
    for key, bands in _bands(found).items():
        for at, its in enumerate(bands):
            held, sites = 0, {one.site for one in its}
            for site in sites:
                low, high = _spread(one for one in its if one.site != site)
                held += sum(low <= 1 / (1 - one.shortfall) <= high for one in its if one.site == site)
            low, high = _spread(its)
            rows.append({
                "nodes": key, "from_bytes": 0 if at == 0 else BYTES[at - 1] + 1, "low": round(low, 3),
                "high": round(high, 3), "sites": len(sites), "cells": len(its),
                "held_percent": round(100 * held / max(1, len(its)), 1),
            })  # fmt: skip
    return rows


def _list(shares: Iterable[float]) -> str:
    return f"[{', '.join(f'{share:.3f}' for share in shares)}]"


def _groups(found: Iterable[Measured]) -> Iterator[str]:
    groups: dict[tuple[str, str, str, int, int], list[Measured]] = {}
    for one in found:
        groups.setdefault(one.group, []).append(one)
    for (machine, fabric, collective, nodes, size), its in sorted(groups.items()):
        worst = tolerance.worst((one.shortfall for one in its), SHARE)
        tables, sites = len({one.table for one in its}), len({one.site for one in its})
        yield (
            f'{{ machine = "{machine}", fabric = "{fabric}", collective = "{collective}", nodes = {nodes}, '
            f"size = {size}, shortfall = {worst:.3f}, tables = {tables}, sites = {sites} }}"
        )


def _scatter(found: Iterable[Measured]) -> list[float]:
    """By band of sizes: how far cells are below the middle of all tables of their condition."""
    same: dict[tuple, list[Measured]] = {}
    for one in found:
        same.setdefault((*one.group, one.setup.nodes, one.gpus, one.size_bytes, one.unit), []).append(one)
    bands: list[list[float]] = [[] for _ in range(len(BYTES) + 1)]
    for its in same.values():
        if len({one.table for one in its}) > 1:
            middle = statistics.median(one.time for one in its)
            bands[band(its[0].size_bytes, BYTES)] += [1 - middle / one.time for one in its]
    return [tolerance.worst(shortfalls or [0.0], SHARE) for shortfalls in bands]


def main() -> None:
    """Write the file."""
    FILE.write_text(text(measured(Options())), encoding="utf-8")


if __name__ == "__main__":
    main()
