"""Kernels of communication: all-reduce of serving frameworks, dispatch and combine of mixtures of experts, NCCL.

Parts: `condition` (rows, systems, `--conditions`), `numbers` and `switches.toml` (constants, and which kernel a
framework takes), a model for each kind (`allreduce`, `deepep`, `moe`, `collective`) with `routes` (copies of a token),
`predict`, `cells`, `orders` (the faster of two backends), `claims`, `fit`, `holdout` (a system left out).

Source: tables of NVIDIA's aiconfigurator: `references/kernels/README.md`.
"""

from __future__ import annotations

from linkwright.base.errors import LinkwrightError, unknown
from linkwright.base.units import counted
from linkwright_evidence import Options
from linkwright_evidence.kernels import cells, claims, collective, condition, holdout, numbers, orders, shown
from linkwright_evidence.kernels.allreduce import switches
from linkwright_evidence.kernels.predict import Kernels
from linkwright_evidence.outcome import Cell, Outcome

TITLE = "Kernels of communication: all-reduce, dispatch and combine, on models"
NOTES = {
    "scores": "Errors in percent by kind, system, scale and band of sizes. `cells_are`: `fitted` if the fit drew them, "
    "else `predicted`; `bias` is the median with its sign, positive if the model is too slow.",
    "orders": orders.NOTE,
    "left_out": holdout.NOTE,
}


def reproduce(options: Options) -> Outcome:
    """The whole study; with `--conditions`, predictions only."""
    kernels = Kernels()
    if options.conditions is not None:
        asked = condition.read(options.conditions)
        made = [_answer(row, one, kernels) for row, one in asked]
        known = [one for _, one in asked if isinstance(one, condition.Condition)]
        outcome = _outcome(sorted({one.system for one in known}), made)
        outcome.remarks = [f"{counted(len(known), 'row')} predicted"]
        if said := [cell.keys["remark"] for cell in made if cell.predicted and cell.keys.get("remark")]:
            outcome.remarks.append(
                f"{counted(len(said), 'row')} answered as the nearest that is known, `remark` says how; {said[0]}"
            )
        if refused := [str(one) for _, one in asked if isinstance(one, LinkwrightError)]:
            outcome.remarks.append(
                f"{counted(len(refused), 'row')} without a prediction, `remark` says why; {refused[0]}"
            )
        return outcome
    _check_names(options)
    measured = cells.chosen(options)
    made = cells.predictions(measured, kernels)
    outcome = _outcome(sorted({one.condition.system for one in measured}), made)
    compared = orders.rows(made)
    if not (options.kernels or options.machines):
        outcome.claims = claims.check(made, compared)
    outcome.tables = {"scores": cells.scores(made), **({"orders": compared} if compared else {})}
    outcome.sections = shown.sections(made)
    if options.holdout_scale:
        outcome.tables["left_out"] = holdout.rows(options)
    return outcome


def _check_names(options: Options) -> None:
    systems = {name for key, one in condition.SYSTEMS.items() for name in (key, one.machine)}
    for name in options.kernels:
        if name not in condition.KINDS:
            raise unknown("kind of kernel", name, condition.KINDS)
    for name in options.machines:
        if name not in systems:
            raise unknown("system or machine of a published kernel", name, systems)


def _outcome(systems: list[str], made: list[Cell]) -> Outcome:
    tuned = numbers.tuned() + _rules()
    return Outcome(paper="kernels", title=TITLE, machine=", ".join(systems), tuned=tuned, cells=made, notes=NOTES)


def _rules() -> list[dict]:
    """The switches that were read off published series or assumed."""
    return [
        {
            "machine": row["backend"],
            "key": f"{row['kernel']}, {', '.join(row['capability'])}, {row['gpus']} GPUs",
            "value": f"up to {row['up_to']} B",
            "unit": "rule",
            "status": row["status"],
            "source": row["source"],
        }
        for row in switches()
        if row["status"] in ("post_hoc", "assumed")
    ]


def _answer(row: dict[str, str], one: condition.Condition | LinkwrightError, kernels: Kernels) -> Cell:
    """A row of `--conditions`, its columns as they stood; without a prediction, `remark` says why."""
    if isinstance(one, LinkwrightError):
        return Cell("no model", row | {"remark": str(one)}, None, None, "us")
    said = collective.remark(one) if (one.kind, one.backend) == ("collective", "nccl") else condition.remark(one)
    keys = row | ({"remark": said} if said else {})
    return Cell(cells.group(one), keys, float(f"{kernels.time_us(one):.6g}"), None, "us")
