"""Leave a system or a scale out: fit the numbers again without it, and predict it.

The yardstick is a copy: of the published value of a sister system of the same generation, or of the largest scale that
is left, under the same condition otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from linkwright_evidence import Options

from . import fit
from .condition import Condition, Measured, published
from .numbers import shipped
from .predict import Kernels

NOTE = (
    "Errors in percent of what was left out, by kind: from the shipped numbers, from numbers fitted without it, and of "
    "a copy (`copy`): of the sister system's value, or of the value of the largest scale that is left; none if the "
    "condition is not there. A kind that only that system has is not shown: nothing else could find its numbers."
)


@dataclass(frozen=True)
class Part:
    """What is left out, and the condition whose value would be copied for one of its own."""

    holds: Callable[[Condition], bool]
    copied: Callable[[Condition], Condition]


def _system(name: str, sister: str) -> Part:
    return Part(lambda one: one.system == name, lambda one: replace(one, system=sister))


def _scale(kind: str, gpus: int, nodes: int) -> Part:
    return Part(
        lambda one: one.kind == kind and one.gpus == gpus, lambda one: replace(one, gpus=gpus // 2, nodes=nodes)
    )


PARTS: Mapping[str, Part] = {
    "b200_sxm": _system("b200_sxm", "b300_sxm"),
    "b300_sxm": _system("b300_sxm", "b200_sxm"),
    "gb200": _system("gb200", "b200_sxm"),
    "EP 16": _scale("moe_alltoall", 16, 2),
    "eight GPUs": _scale("framework_allreduce", 8, 1),
}


def rows(options: Options) -> list[dict]:
    """One row per part left out and kind."""
    found = []
    for done, name in enumerate(PARTS):
        options.progress("fit without a part", done, len(PARTS))
        found += part_rows(name)
    return found


def part_rows(name: str) -> list[dict]:
    """The rows of one part."""
    part = PARTS[name]
    measured = [one for one in published() if fit.usable(one)]
    others = [one for one in measured if not part.holds(one.condition)]
    mine = [one for one in measured if part.holds(one.condition)]
    kinds = {one.condition.kind for one in others}
    kernels = Kernels(dict(shipped()) | fit.refit(others))
    known = {_key(one.condition): one.time_us for one in others}
    return [
        _row(name, kind, [one for one in mine if one.condition.kind == kind], kernels, known)
        for kind in dict.fromkeys(one.condition.kind for one in mine)
        if kind in kinds
    ]


def _row(name: str, kind: str, its: list[Measured], kernels: Kernels, known: Mapping[Condition, float]) -> dict:
    copied = PARTS[name].copied
    errors = [abs(known[key] / one.time_us - 1) for one in its if (key := _key(copied(one.condition))) in known]
    return {
        "left_out": name,
        "kind": kind,
        "cells": len(its),
        "median_percent": _median([abs(Kernels().time_us(one.condition) / one.time_us - 1) for one in its]),
        "left_out_percent": _median([abs(kernels.time_us(one.condition) / one.time_us - 1) for one in its]),
        "copy_percent": _median(errors) if errors else None,
    }


def _median(errors: list[float]) -> float:
    return round(100 * statistics.median(errors), 1)


def _key(one: Condition) -> Condition:
    """The condition, apart from the version that a run printed."""
    return replace(one, reported="", table=one.table if one.kind == "framework_allreduce" else "")
