"""Published studies, re-run on models.

A study predicts every cell of its reference tables from mechanisms and checks the claims of the
paper. Nothing here looks up, interpolates or special-cases a published cell: the references are read
once the predictions are made, and only to be put beside them.

A new study is a package with a function `reproduce(options) -> Outcome`, a folder of the same name in
`references/`, and one line in `REGISTRY`.
"""

from __future__ import annotations

import csv
import importlib
import os
import statistics
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources

from linkwright.errors import UsageError, unknown

# Key -> (module, one line).
REGISTRY = {
    "cell": (
        "linkwright.studies.cell",
        "DMAs between the eight SPEs of a Cell Broadband Engine and main memory, on four slotted rings",
    ),
    "ipu": (
        "linkwright.studies.ipu",
        "microbenchmarks of a Graphcore C2 server, 16 IPUs on a ladder of links",
    ),
    "gpu-nodes": (
        "linkwright.studies.gpu_nodes",
        "copies and collectives of eight P100s, on NVLink (DGX-1) or in a PCIe tree (GX8)",
    ),
    "wormhole": (
        "linkwright.studies.wormhole",
        "allreduce algorithms on 64 tiles of a Tenstorrent Wormhole n150",
    ),
    "vollo": (
        "linkwright.studies.vollo",
        "host round trips of the Vollo accelerator on an IA-420F card",
    ),
}


@dataclass(frozen=True)
class Options:
    """What `linkwright reproduce` was asked for."""

    full: bool = False
    seed: int = 1
    # What some studies offer besides the whole: named tables only, the cost of each mechanism, and what a fit on
    # small scales says of large ones.
    tables: tuple[str, ...] = ()
    ablate: bool = False
    holdout_scale: bool = False
    progress: Callable[[str, int, int], None] = lambda what, done, total: None


@dataclass(frozen=True)
class Cell:
    """One published cell beside its prediction.

    `keys` are the key columns of the reference file as they stand there; `reference` is None for a
    holdout cell, `predicted` for what no model has; `table` groups cells for the summary. `interval` is
    where the published value is expected, for studies that say so. `erratum` says what is wrong with the
    printed value, where the source contradicts itself; such a cell is shown and not scored.
    """

    table: str
    keys: dict[str, object]
    predicted: object
    reference: object
    unit: str
    split: str = "open"
    erratum: str | None = None
    interval: tuple[float, float] | None = None

    @property
    def error(self) -> float | None:
        """Relative error; 0 or 1 for texts and lists; None without a reference or a prediction."""
        if self.reference is None or self.predicted is None:
            return None
        if isinstance(self.predicted, (int, float)) and isinstance(self.reference, (int, float)):
            if self.reference == 0:
                return 0.0 if self.predicted == 0 else 1.0
            return abs(self.predicted - self.reference) / abs(self.reference)
        return 0.0 if str(self.predicted) == str(self.reference) else 1.0


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, checked; `holds` is None where it could not be judged."""

    id: str
    statement: str
    holds: bool | None
    why: str


@dataclass
class Outcome:
    """All that a study found."""

    paper: str
    title: str
    machine: str
    fitted: list[dict] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    # Name -> rows of a table, for the report and for plots.
    tables: dict[str, list[dict]] = field(default_factory=dict)
    # Name of a table -> what its columns and words mean, for readers who do not have the paper beside them.
    notes: dict[str, str] = field(default_factory=dict)
    # Sections of the report in plain form, where tables cannot show it.
    sections: list[dict] = field(default_factory=list)
    # Name of a table -> whether it meets the target that was set for it, in words.
    verdicts: dict[str, str] = field(default_factory=dict)
    # Sentences about the whole.
    remarks: list[str] = field(default_factory=list)

    def as_dict(self) -> dict:
        """`{paper, fitted, cells, claims}` as documented in docs/formats.md, and what the report shows besides."""
        return {
            "paper": self.paper,
            "title": self.title,
            "fitted": self.fitted,
            "cells": [
                {
                    "table": cell.table,
                    **cell.keys,
                    "predicted": cell.predicted,
                    **({"low": cell.interval[0], "high": cell.interval[1]} if cell.interval else {}),
                    "reference": cell.reference,
                    "unit": cell.unit,
                    "split": cell.split,
                    **({"erratum": cell.erratum} if cell.erratum else {}),
                }
                for cell in self.cells
            ],
            "claims": [vars(claim) for claim in self.claims],
            "tables": self.tables,
            "notes": self.notes,
            **({"sections": self.sections} if self.sections else {}),
            **({"verdicts": self.verdicts} if self.verdicts else {}),
            **({"remarks": self.remarks} if self.remarks else {}),
        }

    def summary(self) -> list[dict]:
        """Per table: cells, scored cells, median, 90th percentile, largest error, share within 10 %."""
        rows = []
        for table in dict.fromkeys(cell.table for cell in self.cells):
            cells = [cell for cell in self.cells if cell.table == table]
            errors = sorted(c.error for c in cells if c.error is not None and not c.erratum)
            row = {"table": table, "cells": len(cells), "scored": len(errors)}
            if errors:
                row |= {
                    "median": statistics.median(errors),
                    "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))],
                    "max": errors[-1],
                    "within_10_percent": sum(e <= 0.1 for e in errors) / len(errors),
                }
            rows.append(row)
        return rows


def parallel(work: Callable, cases: Iterable, options: Options, what: str) -> list:
    """The results of all cases, in order; simulation releases the interpreter lock, so threads suffice."""
    cases = list(cases)
    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, result in enumerate(pool.map(work, cases), 1):
            results.append(result)
            options.progress(what, done, len(cases))
    return results


def reference_rows(study: str, file: str) -> list[dict[str, str]]:
    """The rows of `references/<study>/<file>` as they stand there."""
    path = resources.files("linkwright") / "references" / study / file
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def facts(
    study: str, rules: Mapping[str, Callable[[], object]], keys: Iterable[str], errata: Mapping[str, str]
) -> list[Cell]:
    """Every stated number or word of `facts.csv`, predicted where `rules` say how, by the fact's id."""
    return [
        Cell(
            table="facts",
            keys={"table": "facts"} | {key: row[key] for key in ("id", *keys)},
            predicted=rules[row["id"]]() if row["id"] in rules else None,
            reference=number(row["value"]) if row["value"] else None,
            unit=row["unit"],
            split=row["split"],
            erratum=errata.get(row["id"]),
        )
        for row in reference_rows(study, "facts.csv")
    ]


def number(text: str) -> object:
    """A cell's text as a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def reproduce(key: str, options: Options | None = None) -> Outcome:
    """Run study `key`."""
    if key not in REGISTRY:
        raise unknown("study", key, REGISTRY)
    study, options = importlib.import_module(REGISTRY[key][0]), options or Options()
    offers = getattr(study, "OFFERS", ())
    asked = next((name for name in ("tables", "ablate", "holdout_scale") if getattr(options, name)), None)
    if asked is not None and asked not in offers:
        flag = {"tables": "--table"}.get(asked, f"--{asked.replace('_', '-')}")
        raise UsageError(f"study `{key}` has no {flag}; leave it out")
    return study.reproduce(options)


def held(claims: Iterable[Claim]) -> tuple[int, int]:
    """(claims that hold, claims judged)."""
    judged = [claim for claim in claims if claim.holds is not None]
    return sum(bool(claim.holds) for claim in judged), len(judged)
