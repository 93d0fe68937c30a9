"""What the measurements show, checked on the model; and how near the model has to come."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from linkwright_evidence.outcome import Cell, Claim, numbered

from .condition import Condition
from .fastest import Choice
from .predict import Model

MEDIAN, CHOSEN, FITTED_NUMBERS = 0.25, 0.70, 4
MIB = 1 << 20


def check(found: Sequence[Cell], choices: Sequence[Choice], fitted: dict[str, int], model: Model) -> list[Claim]:
    """All claims in order."""
    made = []
    for machine in ("fugaku", "leonardo", "lumi"):
        made += [_median(machine, found), _chosen(machine, choices), _few(machine, fitted[machine])]
    made += [
        _ratio(
            "Fugaku: six ports carry a broadcast of 64 MiB over 4x4x4 nodes at least four times as fast as one",
            _time(model, "4x4x4", "broadcast", "BINE-BINOMIAL_TREE-UTOFU-0-1"),
            _time(model, "4x4x4", "broadcast", "BINE-BINOMIAL_TREE-UTOFU-0-6"),
            4,
        ),
        _ratio(
            "Fugaku: over 2x2x2 nodes six ports are no faster than three, within 10 %",
            1.1 * _time(model, "2x2x2", "broadcast", "BINE-BINOMIAL_TREE-UTOFU-0-6"),
            _time(model, "2x2x2", "broadcast", "BINE-BINOMIAL_TREE-UTOFU-0-3"),
            1,
        ),
    ]
    return [numbered("M", number, *claim) for number, claim in enumerate(made, 1)]


def _median(machine: str, found: Sequence[Cell]) -> tuple[str, bool, str]:
    errors = [
        cell.error for cell in found if cell.keys["machine"] == machine and cell.scored and cell.error is not None
    ]
    statement = f"{machine}: the median error of jobs that no number was fitted to is at most {MEDIAN:.0%}"
    if not errors:
        return statement, False, "no cells"
    median = statistics.median(errors)
    return statement, median <= MEDIAN, f"{median:.1%} of {len(errors)} cells"


def _chosen(machine: str, choices: Sequence[Choice]) -> tuple[str, bool, str]:
    its = [choice for choice in choices if choice.case[0] == machine]
    share = sum(choice.same for choice in its) / max(1, len(its))
    near = sum(choice.same or choice.near for choice in its) / max(1, len(its))
    statement = f"{machine}: the model's algorithm is the fastest in {CHOSEN:.0%} of the cases"
    first = sum(choice.first for choice in its) / max(1, len(its))
    evidence = f"{share:.1%} of {len(its)} cases; {first:.1%} if only the first of equal ones counts"
    return statement, share >= CHOSEN, f"{evidence}; within 5 % of the fastest in {near:.1%}"


def _few(machine: str, fitted: int) -> tuple[str, bool, str]:
    statement = f"{machine}: at most {FITTED_NUMBERS} fitted numbers"
    return statement, fitted <= FITTED_NUMBERS, f"{fitted}"


def _time(model: Model, nodes: str, collective: str, tag: str) -> float:
    time = model.time_us(Condition("fugaku", nodes, 1, collective, f"{tag}_int32", 64 * MIB))
    assert isinstance(time, float), time
    return time


def _ratio(statement: str, slow: float, fast: float, least: float) -> tuple[str, bool, str]:
    return statement, slow / fast >= least, f"{slow / fast:.2f} times"
