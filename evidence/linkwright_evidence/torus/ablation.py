"""What each mechanism of the torus is worth."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright_evidence import Options, ablation
from linkwright_evidence.numbers import changed
from linkwright_evidence.outcome import Cell

from . import curves

# What is taken away -> the key that does it and its other value.
VARIANTS = {
    "adaptive routes": {"fabric.torus.routing": '"dimension_order"'},
    "scratch of its own for what arrives": {"path.message.scratch": '"shared"'},
    "the latency of hops": {"fabric.torus.latency": "0"},
    "the start-up of a message": {"fabric.transport.message.start": "0"},
    "links that close rings": {"fabric.torus.wrap": "false"},
}


def rows(options: Options, whole: Sequence[Cell]) -> list[dict]:
    """The rows of `--ablate`."""

    def without(values: dict[str, str]) -> list[Cell]:
        return curves.cells(curves.times(changed(curves.machine(), values), options))

    return ablation.table(VARIANTS, without, whole, options.progress)
