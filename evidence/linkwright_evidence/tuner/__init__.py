"""Decisions of AWS's tuner for NCCL: which algorithm and protocol an all_reduce takes on H100 boxes with EFA.

Source: a table of the plug-in aws-ofi-nccl: `references/tuner/README.md`.
"""

from __future__ import annotations

from pathlib import Path

from linkwright.base.errors import FileError
from linkwright_evidence import Options, asked
from linkwright_evidence.outcome import Cell, Outcome, numbered
from linkwright_evidence.published import reference_rows
from linkwright_evidence.tuner.choice import GPUS, MACHINE, NETWORK, TIE, VERSION, Decision, Tuner

TITLE = "Decisions of a tuner for NCCL on EFA, on a model"
NEEDED = ("nodes", "ranks", "size_bytes")
LEAST = 0.9
NOTES = {
    "decisions": "Cells by nodes. `agree`: the same algorithm and protocol; `ties`: another one, whose modelled time "
    f"is at most {TIE - 1:.0%} below; `as_nccl`: agreement with NCCL's own starts in place of the network's.",
}
RULE = {
    "machine": NETWORK,
    "key": "Simple starts as a long message",
    "value": "at every size",
    "unit": "rule",
    "status": "post_hoc",
    "source": "with the start of a short one, NVLSTree would win at 1 MiB",
}


def reproduce(options: Options) -> Outcome:
    """The whole study; with `--conditions`, decisions only."""
    tuner = Tuner()
    if options.conditions is not None:
        made = [
            Cell("decisions", dict(row), tuner.decide(nodes, size).words, None, "word")
            for row, nodes, size in _read(options.conditions)
        ]
        return Outcome(paper="tuner", title=TITLE, machine=f"{MACHINE}, {NETWORK}", tuned=[RULE], cells=made)
    return _study(tuner, Tuner(own=False))


def _study(tuner: Tuner, nccl: Tuner) -> Outcome:
    made, rows = [], []
    by_nodes: dict[int, list[tuple[int, str, str]]] = {}
    for row in reference_rows("tuner", "decisions.csv"):
        words = f"{row['algorithm']},{row['protocol']}"
        by_nodes.setdefault(int(row["nodes"]), []).append((int(row["size_bytes"]), words, row["ranks"]))
    for nodes, its in by_nodes.items():
        found = [(size, words, tuner.decide(nodes, size)) for size, words, _ in its]
        made += [_cell(nodes, size, words, one) for size, words, one in found]
        rows.append({
            "nodes": nodes, "cells": len(its), "agree": sum(one.words == words for _, words, one in found),
            "ties": sum(one.words != words and one.near(words) for _, words, one in found),
            "as_nccl": sum(nccl.decide(nodes, size).words == words for size, words, _ in its),
        })  # fmt: skip
    outcome = Outcome(
        paper="tuner", title=TITLE, machine=f"{MACHINE}, {NETWORK}", tuned=[RULE], cells=made, notes=NOTES
    )
    outcome.tables = {"decisions": rows}
    several = [row for row in rows if row["nodes"] > 1]
    cells, agree, ties, before = (sum(row[key] for row in several) for key in ("cells", "agree", "ties", "as_nccl"))
    statement = f"the model takes the tuner's choice in {LEAST:.0%} of cells of several nodes, ties included"
    evidence = f"{agree} of {cells} agree and {ties} are ties; {before} agree with the starts of NCCL {VERSION}"
    outcome.claims = [numbered("T", 1, statement, (agree + ties) / cells >= LEAST, evidence)]
    outcome.remarks = ["One node is left to NCCL: those cells are a rule of the table and are not scored"]
    return outcome


def _cell(nodes: int, size: int, words: str, one: Decision) -> Cell:
    table = f"{nodes} node" + ("s" if nodes > 1 else "")
    keys: dict[str, object] = {
        "nodes": nodes,
        "ranks": nodes * GPUS,
        "size_bytes": size,
        "tie": one.words != words and one.near(words),
    }
    return Cell(table, keys, one.words, words, "word", role="input" if nodes == 1 else "predicted")


def _read(file: Path) -> list[tuple[dict[str, str], int, int]]:
    found = []
    for where, row in asked.rows(file, NEEDED):
        try:
            nodes, ranks, size = (int(row[name]) for name in NEEDED)
        except ValueError as error:
            raise FileError(f"{where}: {', '.join(NEEDED)} have to be whole numbers") from error
        if min(nodes, size) < 1 or ranks != nodes * GPUS:
            raise FileError(f"{where}: {ranks} ranks on {nodes} nodes; give {GPUS} for each node, and a size above 0")
        if row.get("collective", "all_reduce") != "all_reduce":
            raise FileError(f"{where}: collective is `{row['collective']}`; the decisions are of all_reduce only")
        found.append((row, nodes, size))
    return found
