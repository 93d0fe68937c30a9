"""What each mechanism of the machines is worth."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.studies import Options, ablation
from linkwright.studies.outcome import Cell

from . import cells
from .cells import MANY_GPUS, Table
from .predict import Changes, Model

# What is taken away -> the numbers that do it and their other values; a machine without such a number stays as it is.
VARIANTS: dict[str, Changes] = {}


def rows(options: Options, tables: Sequence[Table], whole: Sequence[Cell]) -> list[dict]:
    """The rows of `--ablate`, on tables of at most 64 GPUs."""
    few = [table for table in tables if table.condition.gpus <= MANY_GPUS]
    ids = {table.id for table in few}

    def without(changes: Changes) -> list[Cell]:
        return cells.cells(few, cells.predictions(Model(changes), few, options))

    variants = {name: lambda changes=changes: without(changes) for name, changes in VARIANTS.items()}
    mine = [cell for cell in whole if cell.keys["table_id"] in ids]
    return ablation.table(variants, mine, options.progress)
