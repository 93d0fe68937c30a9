"""Collectives of GPU libraries on systems of today: published tables of A100 to GB200 and MI300X, 2 to 2,160 GPUs.

Parts: `cases` (faulty machines), `conditions` (tables and `--conditions`), `mapping` (words to machines), `predict`
(the library's plan on the composed machine), `cells` (predictions beside published values), `floor` (systems of one
kind among themselves), `claims`, `shown` (curves), `fit` (recovers the fitted numbers), `holdout` and `ablation`.

Source: tables that users and vendors published, each with its address in `references/modern/tables.csv`.
"""

from __future__ import annotations

from dataclasses import replace

from linkwright.base.errors import UsageError, unknown
from linkwright.base.units import counted
from linkwright.libraries import settings
from linkwright.libraries.settings import Refusal, Setting
from linkwright.libraries.times import Model
from linkwright.machines import Variant, load
from linkwright_evidence import Options
from linkwright_evidence.ablation import NOTE as ABLATION
from linkwright_evidence.modern import ablation, cases, cells, claims, fit, floor, holdout, predicted, shown, tolerance
from linkwright_evidence.modern.cells import Table
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome

# Choices among readings of a source that were made after published values had been seen: what, and what it rests on.
AFTERWARDS = {
    "caps of a Tree are bus rates": "libraries/nccl/rates.py; as twice the vector they are 6 % below three sites",
    "a channel of sends carries 14 GB/s in versions that do not count with it": "libraries/nccl/constants.toml",
}
TITLE = "Collectives of GPU libraries on systems of today, on models"
NOTES = {
    "scores": "Errors in percent by machine, collective, nodes and size. `cells_are`: `fitted` if a number was fitted "
    "to these tables, else `predicted`; `bias` is the median with its sign, positive if the model is too slow.",
    "floor": floor.NOTE,
    "ranges": tolerance.NOTE,
    "cases": cases.NOTE,
    "predictions": "What the model says of the given conditions; `fitted` if any number was fitted to a table of that "
    "machine. `rules` are the rules by which the author's words became a machine.",
    "refused": "Tables without a prediction, and why.",
    "settings": "How each table was read: the machine file, network, library version and process rules that fired.",
    "ablation": ABLATION,
    "left_out": holdout.NOTE,
}


def reproduce(options: Options) -> Outcome:
    """The whole study; with `--conditions`, predictions only."""
    model = Model()
    if options.conditions is not None:
        return _conditions(model, options)
    _check_names(options)
    found = cells.tables(options.tables, options.machines, faulty=options.full or bool(options.tables))
    if not found:
        raise UsageError(f"no table is both {' or '.join(options.tables)} and of {' or '.join(options.machines)}")
    return _tables(model, found, options)


def _check_names(options: Options) -> None:
    every = cells.tables()
    known = {
        "table": (options.tables, {table.id for table in every}),
        "machine of a published table": (options.machines, {table.shape.machine for table in every if table.shape}),
    }
    for what, (asked, its) in known.items():
        for name in set(asked) - its:
            raise unknown(what, name, its, lists="linkwright reproduce modern")


def _conditions(model: Model, options: Options) -> Outcome:
    assert options.conditions is not None
    rows, refused = predicted.rows(options.conditions, model, options)
    systems = {(row["machine"], row["fabric"]) for row in rows}
    outcome = Outcome(
        paper="modern",
        title=TITLE,
        machine=f"{', '.join(sorted({machine for machine, _ in systems})) or 'none'} for {options.conditions}",
        tuned=_tuned(systems),
        notes=NOTES,
    )
    outcome.tables = {"predictions": rows, "refused": refused}
    tables = counted(len({row["table_id"] for row in refused}), "table")
    outcome.remarks = [f"{counted(len(rows), 'cell')} predicted; {tables} refused, wholly or in part"]
    return outcome


def _tables(model: Model, found: list[Table], options: Options) -> Outcome:
    afterwards = settings.post_hoc()
    by_rule = {one.id for one in found if isinstance(one.setting, Setting) and set(afterwards) & set(one.setting.rules)}
    fitted_to = fit.fitted_to() | by_rule
    times = cells.predictions(model, found, options)
    made = cells.cells(found, times, fitted_to)
    kinds = predicted.fitted_kinds()
    whole = not (options.tables or options.machines)
    faults = cases.rows() if whole else []
    outcome = Outcome(
        paper="modern",
        title=TITLE,
        machine=counted(len({table.shape.machine for table in found if table.shape}), "machine file"),
        tuned=_tuned({(table.shape.machine, table.shape.fabric or "") for table in found if table.shape}),
        cells=[replace(cell, keys=cell.keys | {"fitted": cell.keys["machine"] in kinds}) for cell in made],
        claims=claims.check(made, model, faults) if whole else [],
        notes=NOTES,
    )
    outcome.tables = {
        "scores": cells.scores(made),
        "floor": floor.rows(made),
        "ranges": tolerance.calibration(tolerance.of_cells(made, {table.id: table.setting for table in found})),
        **({"cases": faults} if faults else {}),
        "refused": cells.refused(found, times),
        "settings": [_setting(table) for table in found],
    }
    outcome.sections = shown.sections(made)
    if options.ablate:
        outcome.tables["ablation"] = ablation.rows(options, found, made)
    if options.holdout_scale:
        outcome.tables["left_out"] = holdout.rows(options)
    return outcome


def _tuned(systems: set[tuple[str, str]]) -> list[dict]:
    """The tuned numbers of (machine file, network), each once."""
    rows: dict[tuple[str, str, str], dict] = {}
    for machine, fabric in sorted(systems):
        found = load(machine, Variant(2, fabric) if fabric else Variant())
        for row in tuned(found):
            name = fabric.partition(",")[0] if "net_" in row["key"] else machine
            rows.setdefault((row["key"], row["value"], row["source"]), row | {"machine": name})
    rule = {"machine": "modern", "unit": "rule", "status": "post_hoc"}
    chosen = {**AFTERWARDS, **settings.post_hoc()}
    return [*rows.values(), *(rule | {"key": why, "value": how, "source": how} for why, how in chosen.items())]


def _setting(table: Table) -> dict:
    setting = table.setting
    if isinstance(setting, Refusal):
        return {
            "table_id": table.id,
            "words": table.condition.machine,
            "machine": "",
            "fabric": "",
            "library": "",
            "site": "",
            "rules": setting.reason,
        }
    return {
        "table_id": table.id,
        "words": table.condition.machine,
        "machine": setting.setup.machine,
        "fabric": setting.setup.fabric or "",
        "library": setting.setup.algorithm,
        "site": setting.site,
        "rules": "; ".join(setting.rules),
    }
