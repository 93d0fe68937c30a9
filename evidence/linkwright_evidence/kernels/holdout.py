"""One system left out: the numbers found again without it, and what the model then says of it.

The yardstick is the sister: the published value of another system of the same generation under the same condition.
"""

from __future__ import annotations

import statistics

from linkwright_evidence import Options

from . import fit
from .condition import Condition, Measured, published
from .numbers import shipped
from .predict import Kernels

NOTE = (
    "Errors in percent of a system by kind, from the shipped numbers, from numbers fitted without that system, and of "
    "the value that a sister system has under the same condition (`sister`; empty if there is none)."
)
SISTERS = {"b200_sxm": "b300_sxm", "b300_sxm": "b200_sxm", "gb200": "b200_sxm"}


def rows(options: Options) -> list[dict]:
    """One row per system left out and kind."""
    measured = [one for one in published() if fit.usable(one)]
    found = []
    for done, (system, sister) in enumerate(SISTERS.items()):
        options.progress("fit without a system", done, len(SISTERS))
        others = [one for one in measured if one.condition.system != system]
        kernels = Kernels(dict(shipped()) | fit.refit(others))
        known = {_key(one.condition): one.time_us for one in measured if one.condition.system == sister}
        mine = [one for one in measured if one.condition.system == system]
        for kind in dict.fromkeys(one.condition.kind for one in mine):
            its = [one for one in mine if one.condition.kind == kind]
            found.append(_row(system, kind, its, kernels, known))
    return found


def _row(system: str, kind: str, its: list[Measured], kernels: Kernels, known: dict) -> dict:
    copied = [abs(known[key] / one.time_us - 1) for one in its if (key := _key(one.condition)) in known]
    return {
        "left_out": system,
        "kind": kind,
        "cells": len(its),
        "median_percent": _median([abs(Kernels().time_us(one.condition) / one.time_us - 1) for one in its]),
        "left_out_percent": _median([abs(kernels.time_us(one.condition) / one.time_us - 1) for one in its]),
        "sister_percent": _median(copied) if copied else "",
    }


def _median(errors: list[float]) -> float:
    return round(100 * statistics.median(errors), 1)


def _key(one: Condition) -> tuple[object, ...]:
    library = one.table if one.kind == "framework_allreduce" else ""
    return (
        one.kind, one.gpus, library, one.op, one.mode, one.dtype, one.size_bytes, one.tokens, one.hidden, one.topk,
        one.experts, one.sms,
    )  # fmt: skip
