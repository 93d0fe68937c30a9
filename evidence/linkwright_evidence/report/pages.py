"""Is the model of that machine right? The report of a reproduced study, from what ``--json`` prints.

``{paper, tuned: [{key, value, unit, status, ...}], cells: [{table, <key columns of the reference CSV>, predicted,
reference, unit, split, role}], claims: [{id, statement, holds, why}]}``. The error of a cell is
predicted / reference - 1. A cell without a reference, or whose value was given to the model, counts in no error.
Fitted numbers are shown with every error, because with enough of them any table can be matched. ``sections`` holds the
study's own charts, as `Section` objects or in their plain form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from linkwright.show.report import quantity
from linkwright.show.report.model import Badge, Cell, Column, Report, Section, Table
from linkwright.show.report.runs import natural
from linkwright.show.report.sections.values import missing
from linkwright_evidence.scoring import CLOSE, Score, is_number

from . import plain, study_tables
from .agreement import NOT_KEYS, charts, error

_VERDICTS = {
    True: Cell("held", 2, tone="good"),
    False: Cell("failed", 0, tone="bad"),
    None: Cell("not judged", 1, tone="warn"),
}

_GIVEN = {"input": "input of the model", "fitted": "a number was fitted to it"}
TUNED = (
    "Fitted numbers were set to meet published values. Post-hoc rules were chosen among alternatives after the values "
    "were seen. What was assumed is a free choice without evidence."
)

SUMMARY_HELP = (
    "Error is the distance of the prediction from the published value, as a percentage of the published "
    "value. Fitted numbers were chosen so that the model matches; the fewer there are per cell, the more "
    "the agreement means. Blind cells have no published value here. Cells that were given to the model, as an input or "
    "to fit it, are not scored."
)


def page(study: Mapping[str, Any], extras: Sequence[Section] = (), facts: Sequence[tuple[str, str]] = ()) -> Report:
    """A whole report of one study."""
    claims = study.get("claims", [])
    held, failed, unjudged = _tally(claims)
    cells = study.get("cells", [])
    badges = [
        Badge(sum(error(cell) is not None for cell in cells), f"of {len(cells)} cells scored", "quiet"),
        *(Badge(count, words, "quiet") for words, count in _chosen(study.get("tuned", [])).items() if count),
        Badge(held, "claim held" if held == 1 else "claims held", "good"),
        Badge(failed, "claim failed" if failed == 1 else "claims failed", "bad" if failed else "quiet"),
        *([Badge(unjudged, "not judged", "warn")] if unjudged else []),
    ]
    return Report(
        title=study.get("title") or f"{study['paper']}: the study, re-run on the model",
        subtitle="Published values against predictions of the modelled machine.",
        facts=facts,
        badges=badges,
        sections=[*sections(study), *extras],
    )


def sections(study: Mapping[str, Any]) -> list[Section]:
    """The sections of a study: accuracy, claims, fitted numbers, its own charts, every cell."""
    by_table: dict[str, list[Mapping[str, Any]]] = {}
    for cell in study.get("cells", []):
        by_table.setdefault(str(cell["table"]), []).append(cell)
    tuned = study.get("tuned", [])
    fitted = [row for row in tuned if row["status"] == "fitted"]
    built = [
        _failing(study.get("claims", [])),
        Section("How close", [_summary(by_table, fitted), *charts(by_table)]),
        _claims(study.get("claims", [])),
        _tuned(tuned),
        *study_tables.sections(study.get("tables", {}), study.get("notes", {})),
        *plain.load(study.get("sections", [])),
        Section("Every cell", [_cells(name, part) for name, part in by_table.items()]),
    ]
    return [section for section in built if section and (section.items or section.parts)]


def _summary(by_table: Mapping[str, list], fitted: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        Column("Table"),
        Column("Cells", numeric=True),
        Column("Blind", numeric=True, help="predicted without a published value"),
        Column("Given", numeric=True, help="inputs of the model, and cells that a number was fitted to"),
        Column("Fitted numbers", numeric=True),
        Column("Median error", "%", numeric=True),
        Column("90th percentile", "%", numeric=True),
        Column("Largest", "%", numeric=True),
        Column("Within 10 %", "%", numeric=True),
    )
    rows = [_summary_row(name, cells, _fitted_for(fitted, name)) for name, cells in by_table.items()]
    if len(by_table) > 1:
        everything = [cell for cells in by_table.values() for cell in cells]
        rows.append(_summary_row("all tables", everything, len(fitted)))
    return Table("Predicted against published", columns, rows, SUMMARY_HELP)


def _summary_row(name: str, cells: Sequence[Mapping[str, Any]], fitted: int | None) -> list[Cell | str]:
    score = Score(name, tuple(sorted(abs(e) for e in map(error, cells) if e is not None)))
    blind = sum(cell.get("reference") is None for cell in cells)
    given = sum(cell.get("role", "predicted") != "predicted" for cell in cells)
    counts = [Cell(str(count), count) for count in (len(cells), blind, given)]
    numbers = Cell(str(fitted), fitted) if fitted is not None else missing("not stated per table")
    if not score.errors:
        return [name, *counts, numbers, *[missing("nothing to score")] * 4]
    within = score.within()
    return [
        Cell(name, tone="strong"),
        *counts,
        numbers,
        *(Cell(quantity.percent(e), e, tone=_tone(e)) for e in (score.median, score.p90, score.largest)),
        Cell(quantity.percent(within), within, share=within),
    ]


def _tone(relative: float) -> str:
    return "good" if relative <= CLOSE / 2 else "" if relative <= CLOSE else "warn" if relative <= 0.25 else "bad"


def _fitted_for(fitted: Sequence[Mapping[str, Any]], table: str) -> int | None:
    """How many numbers were fitted for `table`; None where the study does not say."""
    return sum(table in row["tables"] for row in fitted) if all("tables" in row for row in fitted) else None


def _chosen(tuned: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many numbers and rules were chosen rather than known, by kind."""
    kinds = {"fitted": "fitted numbers", "post_hoc": "post-hoc rules", "assumed": "free choices"}
    return {words: sum(row["status"] == status for row in tuned) for status, words in kinds.items()}


def _failing(claims: Sequence[Mapping[str, Any]]) -> Section | None:
    """What does not hold, before everything that does."""
    failed = [claim for claim in claims if claim["holds"] is False]
    rows = [[str(claim["id"]), str(claim["statement"]), str(claim.get("why") or "")] for claim in failed]
    columns = (Column("Claim"), Column("Statement"), Column("Why"))
    return Section("What fails", [Table("Claims that fail", columns, rows)]) if failed else None


def _claims(claims: Sequence[Mapping[str, Any]]) -> Section | None:
    if not claims:
        return None
    columns = (Column("Claim"), Column("Statement"), Column("Result"), Column("Why"))
    rows = [
        [
            str(claim["id"]),
            str(claim["statement"]),
            _VERDICTS[claim["holds"]],
            str(claim.get("why") or ""),
        ]
        for claim in sorted(claims, key=lambda claim: natural(str(claim["id"])))
    ]
    held, failed, unjudged = _tally(claims)
    intro = f"{held} of {held + failed} orderings, ratios and crossovers that the study states hold on the model."
    intro += f" {unjudged} could not be judged." if unjudged else ""
    return Section("Claims", [Table("Claims, held or failed", columns, rows)], intro)


def _tally(claims: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """How many claims held, failed and were not judged."""
    verdicts = [claim["holds"] for claim in claims]
    return verdicts.count(True), verdicts.count(False), verdicts.count(None)


def _tuned(tuned: Sequence[Mapping[str, Any]]) -> Section | None:
    if not tuned:
        return None
    names = list(dict.fromkeys(name for entry in tuned for name in entry))
    rows = [[_plain(entry.get(name)) for name in names] for entry in tuned]
    columns = [Column(name.replace("_", " ").capitalize()) for name in names]
    return Section("What was tuned", [Table("What was chosen for the model rather than known", columns, rows)], TUNED)


def _cells(table: str, cells: Sequence[Mapping[str, Any]]) -> Table:
    keys = list(dict.fromkeys(k for cell in cells for k in cell if k not in (*NOT_KEYS, "table")))
    columns = [Column(key.replace("_", " ")) for key in keys]
    columns += [Column("Predicted", numeric=True), Column("Published", numeric=True)]
    columns += [Column("Error", "%", numeric=True), Column("Split")]
    return Table(f"{table}: {len(cells)} cells", columns, [_cell_row(cell, keys) for cell in cells], collapsed=True)


def _cell_row(cell: Mapping[str, Any], keys: Sequence[str]) -> list[Cell | str]:
    relative = error(cell)
    blind = "held out" if cell.get("split") == "holdout" else "none published"
    unscored = f"erratum: {cell['erratum']}" if cell.get("erratum") else _GIVEN.get(cell.get("role", ""), blind)
    return [
        *(_plain(cell.get(key)) for key in keys),
        _predicted(cell),
        _figure(cell.get("reference"), cell, blind),
        Cell(f"{100 * relative:+.1f} %", abs(relative), tone=_tone(abs(relative)))
        if relative is not None
        else missing(unscored),
        str(cell.get("split") or ""),
    ]


def _predicted(cell: Mapping[str, Any]) -> Cell:
    shown = _figure(cell.get("predicted"), cell, "not predicted")
    if not is_number(cell.get("low")):
        return shown
    return replace(shown, detail=f"{cell['low']:,.4g} to {cell['high']:,.4g}")


def _figure(value: Any, cell: Mapping[str, Any], reason: str) -> Cell:
    if not is_number(value):
        return missing(reason) if value is None else Cell(str(value))
    return Cell(f"{value:,.6g} {cell['unit']}", float(value))


def _plain(value: Any) -> Cell:
    if value is None:
        return missing("not given")
    if isinstance(value, (list, tuple)):
        return Cell(", ".join(map(str, value)))
    return Cell(f"{value:,.6g}" if isinstance(value, float) else str(value), value if is_number(value) else None)
