"""What each mechanism is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linkwright_evidence import Options, ablation
from linkwright_evidence.outcome import Cell

from . import cells
from .predict import Model

# What is taken away -> machine -> key -> value.
VARIANTS: dict[str, dict[str, dict[str, str]]] = {
    "the later start of long messages": {
        "fugaku": {"fabric.transport.mpi.long": "1125899906842624"},
        "leonardo": {"fabric.transport.net_mpi.long": "1125899906842624"},
        "lumi": {"fabric.transport.net_mpi.long": "1125899906842624"},
    },
    "the latency between groups": {"leonardo": {"fabric.links.global.latency": "0"}},
    "the time of one thread for each port": {
        "fugaku": {"path.whole.receive": "0", "path.blocks.receive": "0", "path.both.receive": "0"}
    },
    "the start of all threads": {"fugaku": {"facts.threads": "0"}},
    "both ports of a node": {"leonardo": {"facts.both_ports": "12.3"}},
    "the time to combine": {
        "fugaku": dict.fromkeys((f"path.{path}.combine_rate" for path in ("mpi", "whole", "blocks", "both")), "1e6"),
        "leonardo": {"path.mpi.combine_rate": "1e6", "path.memory.combine_rate": "1e6"},
        "lumi": {"path.mpi.combine_rate": "1e6"},
    },
    "pages that are new to the kernel": {
        "fugaku": {"facts.fresh_rate": "1e6"},
        "leonardo": {"facts.fresh_rate": "1e6"},
    },
}


def rows(rows_: Sequence[cells.Measured], options: Options, whole: Sequence[Cell]) -> list[dict]:
    """The rows of `--ablate`; all cells count, those that numbers were fitted to as well."""

    def all_scored(found: Sequence[Cell]) -> list[Cell]:
        return [replace(cell, role="predicted") for cell in found]

    def without(other: dict[str, dict[str, str]]) -> list[Cell]:
        return all_scored(cells.cells(rows_, cells.predictions(Model(other), rows_, options)))

    return ablation.table(VARIANTS, without, all_scored(whole), options.progress)
