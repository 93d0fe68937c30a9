"""Collectives of MPI by algorithm on Fugaku, Leonardo and LUMI: 5,434 medians over 4 to 512 nodes, 4 B to 512 MiB.

Parts: `tags` (file tags to algorithms), `predict` (conditions to times), `cells`, `fastest`, `claims`, `conditions`
(`--conditions`), `fit` (finds the fitted numbers), `holdout` and `ablation`.

Source: the authors' archives of De Sensi and others, "Bine trees: enhancing collective operations by optimizing
communication locality" (SC 2025): `references/mpi-clusters/cpu_clusters.csv`, one line for each median.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from linkwright.base.units import counted
from linkwright_evidence import Options, scoring
from linkwright_evidence.ablation import NOTE as ABLATION
from linkwright_evidence.mpi_clusters import ablation, cells, claims, conditions, fastest, holdout, shown
from linkwright_evidence.mpi_clusters.condition import Condition
from linkwright_evidence.mpi_clusters.predict import ONE_CELL, SPREAD, Model
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome
from linkwright_evidence.scoring import Target

TITLE = "Collectives of MPI by algorithm on Fugaku, Leonardo and LUMI, on models"
TARGET = Target(0.25, None, math.inf)
# Conditions whose machines stand for all of their kind, for the lists of numbers.
LARGE = {"fugaku": "8x8x8", "leonardo": "128", "lumi": "8"}
RULES = (
    {
        "machine": "leonardo-mpi",
        "key": "spread",
        "value": f"jobs of more than {ONE_CELL} nodes: {SPREAD}",
        "unit": "rule",
        "status": "post_hoc",
        "source": "a step of a ring takes 1.5 us up to 64 nodes and 3.3 to 4.2 us from 128 on, half of other steps",
    },
    {
        "machine": "leonardo-mpi",
        "key": "both_ports",
        "value": "trees, linear scatters and gathers, blocks passed on and several messages at once use both ports",
        "unit": "rule",
        "status": "post_hoc",
        "source": "their times for large vectors; long vectors that partners exchange get the rate of one port",
    },
    {
        "machine": "fugaku",
        "key": "divided",
        "value": "a reduce along trees moves the whole vector, however many ports it uses",
        "unit": "rule",
        "status": "post_hoc",
        "source": "its time does not depend on the ports",
    },
    {
        "machine": "lumi-mpi",
        "key": "chosen anyway",
        "value": "Cray MPICH takes its fastest allreduce where recursive doubling was asked for",
        "unit": "rule",
        "status": "post_hoc",
        "source": "its times for large vectors are those of the default",
    },
)
NOTES = {
    "scores": "Errors in percent by machine, jobs, sizes and collective. `cells_are`: `fitted` for the small jobs that "
    "the fitted numbers were set by (Fugaku 2x2x2, Leonardo up to 128 nodes, LUMI up to 8), else `predicted`. `bias` "
    "is the median with its sign, positive if the model is too slow. Without --full, Fugaku's 512 nodes have three "
    "sizes and jobs of more ranks none; with it, 1,024 ranks have three.",
    "fastest": "Of cases (collective, job, size) with several algorithms: in how many percent the model's fastest is "
    "the fastest that was measured, and in how many (`near`) it is that or within 5 % of it. Tags that take equally "
    "long in the model are one choice; `first`: the percent if only the first of them counts. `slower`: median of its "
    "measured time over that of the fastest.",
    "algorithms": "Errors in percent by tag, all cells.",
    "refused": "Rows without a prediction, and why.",
    "predictions": "The time of each condition.",
    "ablation": ABLATION,
    "from_small_to_large": holdout.NOTE,
}


def reproduce(options: Options) -> Outcome:
    """The whole study; with `--conditions`, predictions only."""
    model = Model()
    if options.conditions is not None:
        made = conditions.tables(options.conditions, model, options)
        names = sorted({row["machine"] for row in made["predictions"]})
        outcome = Outcome(
            paper="mpi-clusters",
            title=TITLE,
            machine=f"{', '.join(names) or 'none'} for {options.conditions}",
            tuned=_tuned(model, names),
            notes=NOTES,
            tables=made,
        )
        outcome.remarks = [f"{counted(len(made['predictions']), 'row')} predicted; {len(made['refused'])} refused"]
        return outcome
    return _study(model, options)


def _study(model: Model, options: Options) -> Outcome:
    rows = [one for one in cells.measured() if not cells.slow(one[0], options.full)]
    times = cells.predictions(model, rows, options)
    made = cells.cells(rows, times)
    chosen = fastest.choices(rows, times)
    free = _tuned(model, LARGE)
    fitted = {name: sum(row["status"] == "fitted" for row in tuned(model.machine(_one(name)))) for name in LARGE}
    scores = scoring.scores(made, dict.fromkeys(sorted({cell.table for cell in made}), TARGET))
    outcome = Outcome(
        paper="mpi-clusters",
        title=TITLE,
        machine="fugaku, leonardo-mpi, lumi-mpi",
        tuned=free,
        cells=made,
        claims=claims.check(made, chosen, fitted, model),
        notes=NOTES,
        verdicts={score.name: score.verdict for score in scores},
    )
    outcome.tables = {
        "scores": cells.scores(made),
        "fastest": fastest.table(chosen),
        "algorithms": cells.by_algorithm(made),
        "refused": cells.refused(rows, times),
    }
    outcome.sections = shown.sections(made)
    if options.ablate:
        outcome.tables["ablation"] = ablation.rows(rows, options, made)
    if options.holdout_scale:
        outcome.tables |= holdout.results(options)
    return outcome


def _tuned(model: Model, names: Iterable[str]) -> list[dict]:
    """The tuned numbers of machines, then the rules that were chosen for them."""
    names = list(names)
    numbers = [row for name in names for row in tuned(model.machine(_one(name)))]
    files = {row["machine"] for row in numbers}
    return numbers + [row for row in RULES if row["machine"] in files]


def _one(machine: str) -> Condition:
    return Condition(machine, LARGE[machine], 1, "allreduce", "", 0)
