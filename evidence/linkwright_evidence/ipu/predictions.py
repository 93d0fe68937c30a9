"""What the claims of chapter 4 are judged on: the predictions of a run, so withheld cells count like open ones."""

from __future__ import annotations

from dataclasses import dataclass

from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.outcome import Cell, Claim


@dataclass
class Predictions:
    """The predictions of a run: cells by (table, row, metric), and the bench for what no table holds."""

    bench: Bench
    cells: dict[tuple[str, int, str], Cell]

    @classmethod
    def of(cls, bench: Bench, cells: list[Cell]) -> Predictions:
        """Index the cells of all tables that were run."""
        return cls(bench, {(str(c.keys["table"]), c.keys["row"], str(c.keys["metric"])): c for c in cells})

    def __call__(self, table: str, row: int, metric: str) -> float:
        """The prediction of a cell."""
        cell = self.cells[table, row, metric]
        if not isinstance(cell.predicted, (int, float)):
            raise KeyError((table, row, metric))
        return float(cell.predicted)

    def latency(self, table: str, row: int) -> float:
        """The latency of a row."""
        return self(table, row, "latency")

    def rate(self, table: str, row: int) -> float:
        """The aggregate bandwidth of a row."""
        return self(table, row, "bandwidth_aggregate")


def claim(name: str, statement: str, judged: dict[str, bool], why: str) -> Claim:
    """A claim of several parts, which holds if all do; the parts that fail are named."""
    failed = [part for part, holds in judged.items() if not holds]
    return Claim(name, statement, not failed, f"{why}; fails: {', '.join(failed)}" if failed else why)


def near(value: float, printed: float, share: float) -> bool:
    """Whether a value meets a printed one within a share of it."""
    return abs(value / printed - 1) <= share
