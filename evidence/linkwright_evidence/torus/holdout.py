"""From small vectors to large ones: the start-up of a message from times up to 2 KiB, then all cells from 32 KiB on."""

from __future__ import annotations

import statistics

from linkwright_evidence import Options, holdout
from linkwright_evidence.numbers import changed, values

from . import curves

START = "fabric.transport.message.start"
SMALL = tuple(size for size in curves.SIZES if size <= 2048)
LARGE = tuple(size for size in curves.SIZES if size >= 32768)


def results(options: Options) -> dict[str, list[dict]]:
    """Errors of the large cells, and the start-up that was found."""
    machine = curves.machine()
    found = {START: _start_ns(options)}
    there = changed(machine, {key: f"{value:.1f}" for key, value in found.items()})
    large = curves.cells(curves.times(there, options, LARGE))
    return holdout.tables(large, found, values(machine))


def _start_ns(options: Options) -> float:
    """The start-up that fits the small runtimes best: the median over the cells of the one that fits each.

    Every step adds one start-up, so a time is linear in it.
    """
    one = changed(curves.machine(), {START: "1000"})
    none = changed(curves.machine(), {START: "0"})
    without, with_one = (curves.cells(curves.times(torus, options, SMALL)) for torus in (none, one))
    starts = [
        1000 * (a.reference - a.predicted) / (b.predicted - a.predicted)
        for a, b in zip(without, with_one, strict=True)
        if a.keys["figure"] == "runtime"
    ]
    return statistics.median(starts)
