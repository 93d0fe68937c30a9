"""The mechanisms of the Cell, for `--ablate`.

The question is what each mechanism explains. So the cells by which something was chosen count here too, and all are
grouped by what they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from linkwright_evidence import Options, ablation
from linkwright_evidence.cell import facts
from linkwright_evidence.numbers import changed
from linkwright_evidence.outcome import Cell

# Mechanism -> values of the machine file that take it away.
WITHOUT = {
    "the arbiter's window": {"fabric.arbiter_sees": '"all"'},
    "one window for the whole chip": {"fabric.arbiter_sees": '"oldest"'},
    "age at a receiver": {"fabric.receiver_order": '"round_robin"'},
    "a data phase that covers four lines": {"fabric.data_lines": "1"},
    "whole slots for partial lines": {"fabric.partial_line": '"bytes"'},
    "both ways at half the ring": {"fabric.tie": '"parity"'},
    "a limit of lines in flight": {"fabric.lines_in_flight": "128"},
    "the time of reading memory": {"fabric.memory_read": "0"},
    "reading the tag status": {"path.put.barrier": "0"},
    "access to mapped registers": {"fabric.mmio": "0"},
    "the distance of two starts on a ring": {"fabric.ring_start": "0"},
    "the second ring in each direction": {
        "fabric.rings_clockwise": "1",
        "fabric.rings_counterclockwise": "1",
    },
}
SEEDS = (1, 2)
# Facts -> what they are about; the others concern one SPE, like the known points of figures 4 and 5.
SUBJECTS = {
    "loss cases": range(62, 66),
    "hot spots": range(142, 147),
    "patterns": range(148, 152),
    "uniform": range(152, 155),
    "latency under load": range(156, 164),
}


def results(machine, whole: Sequence[Cell], options: Options) -> list[dict]:
    """One row per mechanism; `whole` are the facts and known points of the study as it is."""

    def cells(values: dict[str, str]) -> list[Cell]:
        return _by_subject(facts.cells(facts.grounds(changed(machine, values), quiet, seeds=SEEDS)))

    quiet = Options(seed=options.seed)
    return ablation.table(WITHOUT, cells, _by_subject(whole), options.progress)


def _by_subject(cells: Iterable[Cell]) -> list[Cell]:
    return [replace(cell, table=subject(cell), role="predicted") for cell in cells if cell.role != "input"]


def subject(cell: Cell) -> str:
    """What a fact or a known point is about."""
    if cell.table == "facts":
        number = int(str(cell.keys["id"])[1:])
        return next((name for name, numbers in SUBJECTS.items() if number in numbers), "one SPE")
    if not str(cell.keys["at"]).endswith("SPEs"):
        return "one SPE"
    operation = str(cell.keys["operation"])
    return "uniform" if operation.endswith("uniform") else "hot spots" if " at " in operation else "patterns"
