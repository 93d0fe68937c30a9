"""Endpoint to endpoint: one heat map per machine, pattern, metric and size; a table of pairs for few endpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwright.base.rows import Rows

from .. import quantity
from ..model import Cell, Choice, Column, HeatMap, Section, Table
from ..runs import Run, natural
from . import near, values
from .groups import Group, groups

FEW = 4  # with fewer endpoints, a table of pairs says more than a picture
_MOST_MAPS = 4  # of a machine that are shown together; more than these are chosen from
INTRO = "All pairs of endpoints, one message at a time on an idle machine. A latency is half a round trip."
MAPS = (
    "In a map, the row sends, the column receives, and darker is less. Blocks of one colour are levels of the machine. "
    "On one-way rings a round trip is a whole number of turns, so only that number is visible. Hover or use the arrow "
    "keys to read a cell, scroll to move, and use Ctrl + wheel or the buttons to zoom."
)


@dataclass(frozen=True)
class Matrix:
    """What one machine measured between its endpoints, at one size."""

    title: str
    rows: Rows

    @property
    def endpoints(self) -> list[str]:
        """Their names, in natural order."""
        return sorted(set(self.rows["source"]) | set(self.rows["destination"]), key=natural)


def section(run: Run) -> Section | None:
    """All matrices of the run, then their groups."""
    by_machine: dict[str, list[Matrix]] = {}
    for group in groups(run):
        for machine, paired in group.matrices.items():
            found = [Matrix(_words(group, rows), rows) for _, rows in paired.by("size_bytes", sort=True)]
            by_machine.setdefault(machine, []).extend(found)
    if not by_machine:
        return None
    large = {name: [matrix for matrix in its if len(matrix.endpoints) >= FEW] for name, its in by_machine.items()}
    small = {name: [matrix for matrix in its if len(matrix.endpoints) < FEW] for name, its in by_machine.items()}
    maps = [item for name, its in large.items() for item in _maps(name, its)]
    pairs = [pair_table(run, name, its) for name, its in small.items() if its]
    grouped = [near.table(run, name, [(m.title, m.rows) for m in its if len(m.endpoints) > 2]) for name, its in
               by_machine.items()]  # fmt: skip
    return Section("Endpoint to endpoint", [*maps, *pairs, *filter(None, grouped)], f"{INTRO} {MAPS if maps else ''}")


def _maps(machine: str, matrices: list[Matrix]) -> list[HeatMap | Choice]:
    maps = [heat_map(machine, matrix) for matrix in matrices]
    return [Choice(f"{machine}:", maps)] if len(maps) > _MOST_MAPS else [*maps]


def pair_table(run: Run, machine: str, matrices: list[Matrix]) -> Table:
    """Every ordered pair of few endpoints in a line, with a column for each matrix."""
    cells = [{(row["source"], row["destination"]): values.value(row) for row in matrix.rows} for matrix in matrices]
    ends = sorted({name for matrix in matrices for name in matrix.endpoints}, key=natural)
    pairs = [(a, b) for a in ends for b in ends if any((a, b) in found for found in cells)]
    relation = run.topology(machine).relation
    body = [
        [
            Cell(f"{a} → {b}".replace(" ", "\u00a0"), detail=relation(a, b) or "" if a != b else ""),
            *(found.get((a, b)) or values.missing("no result") for found in cells),
        ]
        for a, b in pairs
    ]
    heads = [Column(matrix.title, matrix.rows["unit"][0], numeric=True) for matrix in matrices]
    return Table(f"{machine}: pairs of endpoints", [Column("From → to"), *heads], body)


def heat_map(machine: str, matrix: Matrix) -> HeatMap:
    """Rows with a source and a destination as a matrix, with endpoints in natural order."""
    rows, names = matrix.rows, matrix.endpoints
    place = {name: index for index, name in enumerate(names)}
    at = ([place[name] for name in rows["source"]], [place[name] for name in rows["destination"]])
    grids = values.matrices(rows, at, (len(names), len(names)))
    apart = ~np.eye(len(names), dtype=bool)
    only_self = bool(np.isfinite(grids["values"][apart]).all())
    return HeatMap(
        f"{machine}: {matrix.title}",
        unit=rows["unit"][0],
        rows=names,
        columns=names,
        **grids,
        missing="an endpoint with itself" if only_self else "not measured, or listed under 'What is missing, and why'",
    )


def _words(group: Group, rows: Rows) -> str:
    words = [f"{values.words(group.pattern)} {values.words(group.metric)}", *filter(None, [group.variant])]
    size = rows["size_bytes"][0]
    words += [quantity.size(size)] if size == size else []
    return ", ".join(words)
