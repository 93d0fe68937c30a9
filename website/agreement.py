"""Published against predicted, machine by machine: the studies are run, and their cells belong to machine pages.

What comes out is kept in `target/agreement/` under a digest of the program, because all studies together take minutes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import linkwright
import linkwright_evidence as studies
from linkwright.base import registry
from linkwright_evidence import scoring
from linkwright_evidence.ipu.arithmetic import MACHINES as DEVICES
from linkwright_evidence.outcome import Cell, Outcome

KEPT = Path(__file__).parent.parent / "target" / "agreement"
PROGRAM = [Path(str(package.__file__)).parent for package in (linkwright, studies)]


@dataclass(frozen=True)
class Table:
    """What one study predicts for one table of a machine; errors are fractions, None where nothing is scored."""

    study: str
    machine: str
    name: str
    cells: int
    given: int
    errors: tuple[float, ...]  # signed, of the scored cells

    @property
    def score(self) -> scoring.Score | None:
        """Median, 90th percentile and the like; None without scored cells."""
        return scoring.Score(self.name, tuple(sorted(map(abs, self.errors)))) if self.errors else None


def tables() -> list[Table]:
    """The tables of all studies; they are predicted again whenever the program has changed."""
    kept = KEPT / f"{_digest()}.json"
    if not kept.exists():
        found = [dataclasses.asdict(table) for study in studies.REGISTRY for table in _of_study(study)]
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob("*.json"):
            old.unlink()
        kept.write_text(json.dumps(found), encoding="utf-8")
    return [Table(**row | {"errors": tuple(row["errors"])}) for row in json.loads(kept.read_text(encoding="utf-8"))]


def _digest() -> str:
    found = hashlib.sha256()
    files = (path for folder in PROGRAM for path in folder.rglob("*"))
    for path in sorted(path for path in files if path.suffix in (".py", ".so", ".toml", ".csv")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _of_study(study: str) -> Iterator[Table]:
    outcome = studies.reproduce(study)
    by_table: dict[tuple[str, str], list[Cell]] = {}
    for cell in outcome.cells:
        machine = machine_of(cell, outcome)
        if machine is not None:
            by_table.setdefault((machine, cell.table), []).append(cell)
    for (machine, name), cells in by_table.items():
        given = sum(cell.role != "predicted" for cell in cells)
        yield Table(study, machine, name.removeprefix(f"{machine}, "), len(cells), given, tuple(_signed(cells)))


@cache
def _known() -> list[str]:
    return [str(entry["key"]) for entry in registry.entries("machines")]


def machine_of(cell: Cell, outcome: Outcome) -> str | None:
    """The machine that a cell says it is of, in full or as `dgx1`, or that of its study; None if it is of several."""
    device = cell.keys.get("device") or cell.keys.get("architecture")
    if device:  # of products and layers, which one study measured on two chips
        its = {machine for word, machine in DEVICES.items() if word in str(device)}
        return its.pop() if len(its) == 1 else None
    known, said = _known(), str(cell.keys.get("machine") or outcome.machine)
    found = [key for key in known if key == said] or [key for key in known if key.startswith(f"{said}-")]
    return found[0] if len(found) == 1 else None


def _signed(cells: Iterable[Cell]) -> Iterator[float]:
    for cell in cells:
        error = scoring.relative_error(cell.predicted, cell.reference)
        if cell.scored and error is not None:
            yield error
