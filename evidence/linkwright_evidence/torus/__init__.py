"""Allreduce on a torus of 8 x 8 nodes with 400 Gb/s links: four algorithms, 32 B to 2 GiB.

Parts: `curves` (modelled and published cells), `claims`, `ablation` and `holdout`.

Source: De Sensi, Bonato, Saam and Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce" (NSDI 2024),
figure 11 and its inset, read off the figure.
"""

from __future__ import annotations

from linkwright_evidence import Options, scoring
from linkwright_evidence.ablation import NOTE
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome
from linkwright_evidence.scoring import Target
from linkwright_evidence.torus import ablation, claims, curves, holdout

# Chosen after the curves were seen.
ONE_PORT = {
    "machine": curves.MACHINE,
    "key": "recdoub",
    "value": "recursive doubling of the figure uses one port",
    "unit": "rule",
    "status": "post_hoc",
    "source": "its curve levels off at a tenth of four ports",
}
TARGET = Target(0.05, None, 0.15)

NOTES = {
    "goodput": "Vector bytes over the time of one allreduce. The figure also shows the runtimes up to 32 KiB; where "
    f"both are given they differ by up to {curves.READING_GBPS} Gb/s, the error of reading the curves. Cells below "
    f"{curves.LEAST_GBPS} Gb/s, of which that is more than 5 %, are shown and not scored.",
    "runtime": "Read to 0.1 us. The start-up of a message was set on one cell, bucket with 32 B.",
    "variants": "recdoub and swing are the faster of their two variants, whole vectors or blocks. That recdoub "
    "uses one port, not a mirrored copy on each, was chosen because the curve levels off at a tenth of four ports.",
    "from_small_to_large": "The start-up is found again from all runtimes up to 2 KiB; cells from 32 KiB on are "
    "then predicted.",
}


def reproduce(options: Options) -> Outcome:
    """The whole study: cells and claims; the tables behind the figures."""
    machine = curves.machine()
    times = curves.times(machine, options)
    cells = curves.cells(times)
    scores = scoring.scores(cells, dict.fromkeys(curves.TABLES, TARGET))
    outcome = Outcome(
        paper="torus",
        title="Allreduce on a torus of 8 x 8 nodes, on a model",
        machine=curves.MACHINE,
        tuned=[*tuned(machine), ONE_PORT],
        cells=cells,
        claims=claims.check(times, curves.published()),
        notes=NOTES,
        verdicts={score.name: score.verdict for score in scores},
    )
    outcome.tables = {"variants": curves.variants(times)}
    if options.ablate:
        outcome.notes["ablation"] = NOTE
        outcome.tables["ablation"] = ablation.rows(options, cells)
    if options.holdout_scale:
        outcome.tables |= holdout.results(options)
    return outcome
