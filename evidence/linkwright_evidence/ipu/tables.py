"""What a table of the report is: its file, how good it should be, and who predicts its rows.

A module of this study lists its tables in `TABLES`. `predict(bench, row)` gets one row of the reference file as
a dictionary of texts, without its value, and answers with the number in the unit of the row, or with
`Waived(reason)` where the machine cannot do the experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from linkwright_evidence.ipu import given
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import number, reference_cell, reference_rows
from linkwright_evidence.scoring import Target

# Columns of a reference file that are not conditions of the experiment.
RESULT = ("value", "split", "unit")


@dataclass(frozen=True)
class Waived:
    """No prediction, and why."""

    reason: str


BANDWIDTH = Target(0.02, None, 0.08)
LATENCY = Target(0.04, 0.10, 0.16)


@dataclass(frozen=True)
class Table:
    """One printed table."""

    key: str
    file: str
    target: Target | None
    predict: Callable
    # (row, metric) or row -> what is wrong with the printed value; shown and not scored.
    errata: dict = field(default_factory=dict)
    # row -> name of the part of the table that is scored apart, and why.
    apart: dict = field(default_factory=dict)

    def cells(self, bench) -> list[Cell]:
        """Every cell of the table beside its prediction."""
        return [self.cell(bench, row) for row in self.rows()]

    def rows(self) -> list[dict[str, str]]:
        """The rows of the reference file as they stand there."""
        return reference_rows("ipu", self.file)

    @staticmethod
    def conditions(row: dict[str, str]) -> dict[str, str]:
        """What a row says of the experiment, without its result."""
        return {key: text for key, text in row.items() if key not in RESULT}

    def erratum(self, row: dict[str, str]) -> str | None:
        """What is wrong with the printed value of a row."""
        index = int(row["row"])
        return self.errata.get((index, row["metric"]), self.errata.get(index))

    def is_scored(self, row: dict[str, str]) -> bool:
        """Whether a row counts for the table's target: no misprint, and not scored apart."""
        return self.erratum(row) is None and self.label(int(row["row"]), row["metric"]) == self.key

    def cell(self, bench, row: dict[str, str]) -> Cell:
        """One cell; what cannot be run has no prediction and says why."""
        conditions = self.conditions(row)
        predicted = self.predict(bench, conditions)
        # Table 4.10 is not table 4.1.
        keys = {key: text if key == "table" else number(text) for key, text in conditions.items()}
        if isinstance(predicted, Waived):
            keys["waived"] = predicted.reason
            predicted = None
        label = self.label(int(row["row"]), row["metric"])
        made = reference_cell(row, label, keys, predicted, value=float, erratum=self.erratum(row))
        return replace(made, role=given.role(row))

    def label(self, row: int, metric: str) -> str:
        """Name under which a row is scored."""
        part = self.apart.get((row, metric), self.apart.get(row))
        return f"{self.key} {part}" if part else self.key
