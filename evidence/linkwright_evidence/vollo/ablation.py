"""The mechanisms of a round trip, for `--ablate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright_evidence import ablation
from linkwright_evidence.numbers import changed
from linkwright_evidence.outcome import Cell

MECHANISMS: dict[str, dict[str, str]] = {
    "start of a copy": {"fabric.copy_start": "0"},
    "second copy only beyond the input": {"probe.round_trip.copy_out": '"all"'},
    "latency of a read": {"fabric.read_latency": "200"},  # as long as that of a write
    "DMA engine slower than the link": {"fabric.dma_rate": "1000"},
    "stores line by line": {"fabric.store_interval": "0.001"},
    "software and accelerator": {"probe.round_trip.pipeline": "0"},
    "packets": {"fabric.write_overhead": "0", "fabric.request_overhead": "0", "fabric.completion_overhead": "0"},
    "completion mark": {"probe.round_trip.completion_mark": "0"},
    "99th percentile": {"probe.round_trip.p99_offset": "0", "probe.round_trip.p99_factor": "1"},
}


def table(machine, whole: list[Cell], cells_of: Callable[[object], Sequence[Cell]], progress) -> list[dict]:
    """One row per mechanism; `cells_of` gives the cells of the study on a machine."""
    return ablation.table(MECHANISMS, lambda values: cells_of(changed(machine, values)), whole, progress)
