"""The Graphcore C2 server: 16 IPUs on a ladder of links, the tables of the report from mechanisms.

Every row of every table is an experiment of its own: a schedule is built, verified and simulated on the machine
`ipu-c2-server`, whose fabric derives the time of a phase from its messages. Modules list their tables in
`TABLES`, their figures in `FIGURES` and their claims in `claims/`; `bench` runs experiments, `fit` finds the
fitted numbers of the machine file again, `scores` says how each table meets its target.

Source: Jia, Tillman, Maggioni, Scarpazza, "Dissecting the Graphcore IPU architecture via microbenchmarking"
(2019).
"""

from __future__ import annotations

import importlib

from linkwright.machines import load
from linkwright.studies import Options, Outcome
from linkwright.studies.ipu import convolution
from linkwright.studies.ipu.bench import Bench
from linkwright.studies.ipu.tables import Table

MACHINE = "ipu-c2-server"
# One line per part of the study: a module with `TABLES`.
PARTS = (
    "linkwright.studies.ipu.p2p",
    "linkwright.studies.ipu.collectives",
    "linkwright.studies.ipu.reduce",
    "linkwright.studies.ipu.host",
    "linkwright.studies.ipu.memory",
    "linkwright.studies.ipu.matmul",
    "linkwright.studies.ipu.convolution",
    "linkwright.studies.ipu.random",
)
# One line per chapter: a module with `check(found) -> list[Claim]`.
CLAIMS = ("linkwright.studies.ipu.claims.chapter5",)
# Machines beside the server whose numbers the study uses.
OTHERS = ("v100",)


def tables() -> list[Table]:
    """Every table of the study."""
    return [table for part in PARTS for table in importlib.import_module(part).TABLES]


def reproduce(options: Options) -> Outcome:
    """The whole study: cells, claims, and the tables behind the figures."""
    bench = Bench.shipped(options.seed)
    outcome = Outcome(
        paper="ipu",
        title="The Graphcore C2 server, re-run on a model",
        machine=MACHINE,
        fitted=[row for row in bench.machines["server"].numbers() if row["status"] == "fitted"],
    )
    known = tables()
    for done, table in enumerate(known, 1):
        outcome.cells += table.cells(bench)
        options.progress("tables", done, len(known))
    outcome.tables = {"convolution_score": list(convolution.score())}
    outcome.claims = [claim for part in CLAIMS for claim in importlib.import_module(part).check(outcome)]
    for name in OTHERS:
        outcome.fitted += [
            row | {"key": f"{name}: {row['key']}"} for row in load(name).numbers() if row["status"] == "fitted"
        ]
    return outcome
