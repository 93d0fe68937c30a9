"""What a study produces: cells with their predictions, claims that hold or fail, and tables for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from linkwright.base.units import counted
from linkwright_evidence import scoring

Role = Literal["predicted", "input", "fitted"]


@dataclass(frozen=True)
class Cell:
    """One published cell and its prediction.

    `keys` are the key columns of the reference file, unchanged. `reference` is None for a holdout cell, `predicted` if
    no model applies. `table` groups cells for the summary. `interval` is where the study expects the published value,
    if it says so. `erratum` explains an error in the printed value. `role` says what the published value did:

        predicted   nothing; the model never saw it
        input       the model was given it, or a number of the machine file was read off it
        fitted      a fitted number or a rule chosen afterwards was set by it

    Only predicted cells without an erratum are scored.
    """

    table: str
    keys: dict[str, object]
    predicted: object
    reference: object
    unit: str
    split: str = "open"
    erratum: str | None = None
    interval: tuple[float, float] | None = None
    role: Role = "predicted"

    @property
    def scored(self) -> bool:
        """Whether the cell counts in an error."""
        return self.error is not None and not self.erratum and self.role == "predicted"

    @property
    def error(self) -> float | None:
        """Absolute relative error; 0 or 1 for texts; None without a reference or a prediction."""
        error = scoring.relative_error(self.predicted, self.reference)
        return None if error is None else abs(error)

    def as_dict(self) -> dict:
        """A flat row: the key columns, then what was predicted and published."""
        return {
            "table": self.table,
            **self.keys,
            "predicted": self.predicted,
            **({"low": self.interval[0], "high": self.interval[1]} if self.interval else {}),
            "reference": self.reference,
            "unit": self.unit,
            "split": self.split,
            "role": self.role,
            **({"erratum": self.erratum} if self.erratum else {}),
        }


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, checked; `holds` is None if it could not be judged."""

    id: str
    statement: str
    holds: bool | None
    why: str


def numbered(prefix: str, number: int, statement: str, holds: bool, why: str) -> Claim:
    """Claim `number` of a study that numbers its claims."""
    return Claim(f"{prefix}-{number:02}", statement, bool(holds), why)


@dataclass
class Outcome:
    """Everything that a study produces."""

    paper: str
    title: str
    machine: str
    # What was tuned, as `numbers.tuned` lists it: fitted numbers, rules chosen afterwards, free choices.
    tuned: list[dict] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    # Name -> rows of a table, for the report and for plots.
    tables: dict[str, list[dict]] = field(default_factory=dict)
    # Name of a table -> the meaning of its columns and words, for readers without the paper.
    notes: dict[str, str] = field(default_factory=dict)
    # Sections of the report in plain form, for what tables cannot show.
    sections: list[dict] = field(default_factory=list)
    # Name of a table -> whether it meets its target, in words.
    verdicts: dict[str, str] = field(default_factory=dict)
    # Sentences about the study as a whole.
    remarks: list[str] = field(default_factory=list)

    def as_dict(self) -> dict:
        """`{paper, tuned, cells, claims}` as documented in docs/formats.md, and what else the report shows."""
        optional = {"sections": self.sections, "verdicts": self.verdicts, "remarks": self.remarks}
        return {
            "paper": self.paper,
            "title": self.title,
            "tuned": self.tuned,
            "cells": [cell.as_dict() for cell in self.cells],
            "claims": [vars(claim) for claim in self.claims],
            "tables": self.tables,
            "notes": self.notes,
            **{key: value for key, value in optional.items() if value},
        }

    def summary(self) -> list[dict]:
        """One row per table: cells, those given to the model, scored cells and, if there are any, their errors."""
        errors = {score.name: score.summary() for score in scoring.scores(self.cells)}
        counts = Counter(cell.table for cell in self.cells)
        given = Counter(cell.table for cell in self.cells if cell.role != "predicted")
        return [
            {"table": name, "cells": count, "given": given[name]} | errors.get(name, {"scored": 0})
            for name, count in counts.items()
        ]

    def basis(self) -> str:
        """What the predictions rest on, and how many are scored, in one line."""
        statuses = Counter(row["status"] for row in self.tuned)
        kinds = (("fitted", "fitted number"), ("post_hoc", "post-hoc rule"), ("assumed", "free choice"))
        tuned = ", ".join(counted(statuses[status], noun) for status, noun in kinds)
        if not self.cells:
            return tuned
        roles = Counter(cell.role for cell in self.cells)
        scored = sum(cell.scored for cell in self.cells)
        return (
            f"{tuned}; of {counted(len(self.cells), 'cell')}, {roles['input']} are inputs and {roles['fitted']} "
            f"were fitted to; {scored} are scored"
        )


def held(claims: Iterable[Claim]) -> tuple[int, int]:
    """(claims that hold, claims judged)."""
    judged = [claim for claim in claims if claim.holds is not None]
    return sum(bool(claim.holds) for claim in judged), len(judged)
