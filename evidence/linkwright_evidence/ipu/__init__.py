"""The Graphcore C2 server: 16 IPUs on a ladder of links, the tables of the report from mechanisms.

Every row of every table is a separate experiment: a schedule is built, verified and simulated on the machine
`ipu-c2-server`, whose fabric derives the time of a phase from its messages. Modules list their tables in `TABLES`;
claims are in `claims`; `bench` runs experiments, `fit` recovers the fitted numbers of the machine file, and
`ablation` and `holdout` show what each mechanism and each fitted number contributes.

Source: Jia, Tillman, Maggioni, Scarpazza, "Dissecting the Graphcore IPU architecture via microbenchmarking"
(2019).
"""

from __future__ import annotations

from linkwright.machines import devices, load
from linkwright_evidence import Options, scoring
from linkwright_evidence import ablation as common_ablation
from linkwright_evidence.ipu import (
    ablation,
    claims,
    convolution,
    figures,
    figures_compute,
    holdout,
    matmul,
    memory,
    p2p,
)
from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.ipu.catalogue import chosen, interconnect
from linkwright_evidence.ipu.predictions import Predictions
from linkwright_evidence.ipu.tables import Table
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Cell, Outcome
from linkwright_evidence.report import plain

MACHINE = "ipu-c2-server"
# Share of the interconnect's cells that should lie within 10 %.
POOLED_SHARE = 0.96
# Split of a reference file -> what it means.
SPLITS = {"open": "open from the start", "holdout": "withheld while the model was built"}

NOTES = {
    "devices": "Virtual devices are contiguous slices of the ladder, computed from it; device ids are names that the "
    "host gave, DNC ids are positions.",
    "misses": "Every scored cell that the model misses by more than 10 %. The machine file says which mechanisms there "
    "are; what they cannot explain stays here.",
    "no_fit": "The same tables with nothing tuned: fitted numbers at zero, rules that were chosen afterwards left out.",
    "curve": "Errors of the scored cells of chapters 3 and 4 over the number of fitted numbers and rules chosen "
    "afterwards; each step adds the one that lowers the mean error most. Nothing is fitted anew.",
    "spread": "Rows with random pairs are the mean over many draws; this is how far single draws spread, and seeds.",
    "ablation": common_ablation.NOTE,
    "from_small_to_large": "Fitted to cells of at most four IPUs; these are all cells of 8 and 16.",
}


def reproduce(options: Options) -> Outcome:
    """The whole study, or some of its tables: cells, claims, scores, and the tables behind the figures."""
    bench, known = Bench.shipped(options.seed), chosen(options.tables)
    outcome = Outcome(
        paper="ipu",
        title="Dissecting the Graphcore IPU, re-run on a model of the C2 server",
        machine=MACHINE,
        tuned=tuned(bench.machines["server"]),
        cells=run(bench, known, options),
        notes=NOTES,
    )
    _score(outcome, known)
    outcome.tables["misses"] = _misses(outcome.cells)
    parts = interconnect(known)
    if not options.tables:
        found = Predictions.of(bench, outcome.cells)
        outcome.claims = [*claims.check(found), *memory.claims(), *convolution.claims(), *matmul.claims()]
        outcome.sections = plain.dump([*figures.sections(bench), *figures_compute.sections()])
        outcome.tables["spread"] = _spread(bench)
        outcome.tables["no_fit"] = _no_fit(bench, parts)
        outcome.tables["convolution_score"] = list(convolution.score())
        outcome.tuned += tuned(load("v100"))
        outcome.tables["devices"] = _devices(bench.machines["server"])
    if options.ablate:
        whole = [cell for cell in outcome.cells if cell.table.split()[0] in {table.key for table in parts}]
        outcome.tables["ablation"] = ablation.table(bench, parts, whole, options.progress)
    if options.ablate and options.full:
        outcome.tables["curve"] = ablation.curve(Bench.shipped(options.seed, draws=10), parts, options.progress)
    if options.holdout_scale:
        outcome.tables |= holdout.results(Bench.shipped(options.seed, draws=20), parts, options.progress)
    return outcome


def run(bench: Bench, known: list[Table], options: Options) -> list[Cell]:
    """Every cell of the tables."""
    cells: list[Cell] = []
    for done, table in enumerate(known, 1):
        cells += table.cells(bench)
        options.progress("tables", done, len(known))
    return cells


def _devices(machine) -> list[dict]:
    """The devices of the server, with texts instead of lists."""
    return [
        {
            "device": row["device"],
            "type": row["type"],
            "position": row["position"],
            "members": " ".join(f"{dnc}:{device}" for dnc, device in enumerate(row["members"])),
        }
        for row in devices.rows(machine)
    ]


def _score(outcome: Outcome, known: list[Table]) -> None:
    """Verdict of each table, and the pooled one."""
    scores = scoring.scores(outcome.cells, {table.key: table.target for table in known})
    outcome.verdicts = {score.name: score.verdict for score in scores if score.verdict}
    parts = interconnect(known)
    pooled = _pooled(outcome.cells, parts)
    if pooled is not None:
        word = "met" if pooled.within() >= POOLED_SHARE else "FAILED"
        groups = {
            name: _pooled([c for c in outcome.cells if c.split == split], parts) for split, name in SPLITS.items()
        }
        of_each = "; ".join(f"{name} {_close(group)}" for name, group in groups.items() if group)
        outcome.remarks.append(
            f"pooled over chapters 3 and 4: {_close(pooled)} (target {POOLED_SHARE:.0%}: {word}); {of_each}"
        )
    met = sum(verdict == "met" for verdict in outcome.verdicts.values())
    outcome.remarks.append(f"{met} of {len(outcome.verdicts)} tables with a target meet it")


def _spread(bench: Bench) -> list[dict]:
    """Table 4.3 on a chip: mean, least and most over the draws."""
    rows = []
    for transfers in (1, 2, 4, 8, 16, 38, 76, 152, 304, 608, 1216):
        draws = p2p.chip_draws(bench, transfers, 4)
        ends = {"least_us": min(draws), "most_us": max(draws), "mean_us": sum(draws) / len(draws)}
        rows.append({"transfers": transfers, **ends, "draws": len(draws), "first_seed": 1000 * bench.seed})
    return rows


def _no_fit(bench: Bench, parts: list[Table]) -> list[dict]:
    """Scores with nothing tuned."""
    here = ablation.with_only(bench, [])
    cells = [cell for table in parts for cell in table.cells(here)]
    scores = [*scoring.scores(cells), _pooled(cells, parts)]
    return [{"table": score.name, "cells": len(score.errors), **score.percent_row()} for score in scores]


def _pooled(cells: list[Cell], parts: list[Table]) -> scoring.Score | None:
    """All scored cells of the tables together, with the parts that are scored apart."""
    keys = {table.key for table in parts}
    return scoring.score("pooled", (cell for cell in cells if cell.keys["table"] in keys))


def _close(score: scoring.Score) -> str:
    return (
        f"{len(score.errors)} cells, {score.within():.1%} within 10 %, median {score.median:.1%}, "
        f"largest {score.largest:.1%}"
    )


def _misses(cells: list[Cell]) -> list[dict]:
    """Every scored cell that is off by more than 10 %, largest error first."""
    rows = [
        {
            "table": cell.table,
            "row": cell.keys["row"],
            "placement": cell.keys.get("placement", ""),
            "metric": cell.keys["metric"],
            "predicted": cell.predicted,
            "published": cell.reference,
            "error_percent": round(100 * cell.error, 1),
        }
        for cell in cells
        if cell.scored and cell.error > scoring.CLOSE
    ]
    return sorted(rows, key=lambda row: -row["error_percent"])
