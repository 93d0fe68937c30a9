"""`--conditions FILE`: the cells of tables that nobody has seen, predicted from their conditions alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from linkwright.base.errors import LinkwrightError
from linkwright.base.units import format_size
from linkwright.libraries.settings import Condition, Refusal, Setting, Setup, settle
from linkwright.libraries.times import Model, Predicted
from linkwright_evidence import Options, parallel

from . import conditions, fit
from .cells import bus_rate, tables


def rows(file: Path, model: Model, options: Options) -> tuple[list[dict], list[dict]]:
    """(one row per cell, one row per table that is refused or refused in part)."""
    kinds = fitted_kinds()
    found: list[dict] = []
    refused: list[dict] = []
    for condition in conditions.read(file):
        setting = settle(condition)
        if isinstance(setting, Refusal):
            refused.append(_refused(condition, setting.reason))
            continue
        before = len(found)
        _predict(condition, setting, model, options, kinds, found, refused)
        options.found(_words(condition, found[before:]))
    return found, refused


def _words(condition: Condition, its: list[dict]) -> str:
    """A table as it comes, in one line."""
    if not its:
        return f"{condition.table_id}: refused"
    sizes, times = ([row[key] for row in its] for key in ("size_bytes", "time_us"))
    ends = " to ".join(format_size(size) for size in dict.fromkeys((min(sizes), max(sizes))))
    return f"{condition.table_id}: {condition.collective} {ends}, {min(times):g} to {max(times):g} us"


def fitted_kinds() -> frozenset[str]:
    """The machine files with a table that a number was fitted to."""
    return frozenset(table.shape.machine for table in tables(fit.fitted_to()) if table.shape)


def _predict(
    condition: Condition, setting: Setting, model: Model, options: Options, kinds: Iterable[str], found: list[dict],
    refused: list[dict],
) -> None:  # fmt: skip
    shape = setting.setup

    def one(size: int) -> Predicted | str:
        try:
            return model.time(shape, size)
        except LinkwrightError as error:
            return str(error)

    answers = parallel(one, [(size,) for size in condition.sizes], options, condition.table_id)
    reasons = []
    for size, answer in zip(condition.sizes, answers, strict=True):
        if isinstance(answer, str):
            reasons.append(answer)
        else:
            found.append(_row(condition, setting, shape, size, answer, shape.machine in kinds))
    refused += [_refused(condition, reason) for reason in dict.fromkeys(reasons)]


def _row(condition: Condition, setting: Setting, shape: Setup, size: int, answer: Predicted, fitted: bool) -> dict:
    return {
        "table_id": condition.table_id,
        "size_bytes": size,
        "time_us": float(f"{answer.time_us:.6g}"),
        "bus_rate_gb_per_s": float(f"{bus_rate(shape, size, answer.time_us):.6g}"),
        "fitted": fitted,
        "machine": shape.machine,
        "fabric": shape.fabric or "",
        "library": f"{setting.library}-{setting.version}",
        "choice": answer.choice,
        "rules": "; ".join(setting.rules),
    }


def _refused(condition: Condition, reason: str) -> dict:
    return {"table_id": condition.table_id, "machine": condition.machine, "reason": reason}
