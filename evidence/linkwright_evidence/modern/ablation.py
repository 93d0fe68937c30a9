"""What each mechanism of the machines is worth."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.libraries.times import Changes, Model
from linkwright_evidence import Options, ablation
from linkwright_evidence.outcome import Cell

from . import cells, fit
from .cells import MANY_GPUS, Table

# What is taken away -> the numbers that do it and their other values; a machine without such a number stays as it is.
VARIANTS: dict[str, Changes] = {
    "what a launch takes": {"library.launch": "0"},
    "the rate of a channel, LL": {f"{fit.NVLINK}ll.channel": "1000", f"{fit.PCIE}ll.channel": "1000"},
    "the last copy, out of a buffer": {f"{fit.NVLINK}simple.channel": "100000", f"{fit.PCIE}simple.channel": "100000"},
    "the flags of a round in the switch": {"facts.nvls_flag": "0"},
    "the rate of a channel in the switch": {f"{fit.NVLINK}nvls.channel": "1000"},
    "long messages over a network that start later": {
        f"{fit.NET}{protocol}.long": "1000000000000" for protocol in ("ll", "ll128", "simple")
    },
    "starts over the network as NCCL reckons": {
        f"{fit.NET}{protocol}.{start}": time
        for protocol, time in (("ll", "2.7"), ("ll128", "4"), ("simple", "14"))
        for start in ("start", "long_start")
    },
    "launches of one process": {"facts.launch_each": "0"},
}


def rows(options: Options, tables: Sequence[Table], whole: Sequence[Cell]) -> list[dict]:
    """The rows of `--ablate`, on tables of at most 64 GPUs."""
    few = [table for table in tables if table.condition.gpus <= MANY_GPUS]
    ids = {table.id for table in few}

    def without(changes: Changes) -> list[Cell]:
        return cells.cells(few, cells.predictions(Model(changes), few, options))

    mine = [cell for cell in whole if cell.keys["table_id"] in ids]
    return ablation.table(VARIANTS, without, mine, options.progress)
