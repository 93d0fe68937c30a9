"""Constraints of a recipe of NVIDIA AI Cluster Runtime (aicr): the check `nccl-all-reduce-bw`.

The validator runs all_reduce_perf on all nodes, at least two, takes the out-of-place bus rate of the largest size (8 or
16 GiB) and passes from 0.9 times the constraint on. The number is chosen so that it passes from the floor on.

Source: NVIDIA/aicr, validators/performance/nccl_all_reduce_bw_constraint.go and recipes/overlays.
"""

from __future__ import annotations

import math

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size

from .gate import Expected, GateFormat, commented, rate

PASSES_FROM = 0.9  # of the constraint, as the validator is written
LARGEST = 8 << 30  # least of the sizes that the validator ends at


def render(expected: Expected) -> str:
    """The part `validation` of a recipe."""
    one = expected.largest("aicr")
    if expected.hosts == 1 or one.size_bytes < LARGEST:
        raise UsageError(
            f"--format aicr: the check runs on two nodes or more and takes the bus rate at {format_size(LARGEST)} or "
            "more; give --nodes, and --sizes that reach it"
        )
    return (
        f"{commented(expected)}"
        f"# {one.label}: passes from {rate(one.floor)} GB/s on, {PASSES_FROM} x the constraint\n"
        "validation:\n"
        "  performance:\n"
        "    checks:\n"
        "      - nccl-all-reduce-bw\n"
        "    constraints:\n"
        "      - name: nccl-all-reduce-bw\n"
        f'        value: ">= {math.floor(one.floor / PASSES_FROM)}"\n'
    )


AICR = GateFormat(
    "aicr", "constraints of a recipe of NVIDIA AI Cluster Runtime (YAML)",
    "The check nccl-all-reduce-bw of the validation of a recipe. The validator takes the largest size and passes from "
    "0.9 times the constraint on, which is chosen so that it passes from the floor on. Two nodes or more, from 8G.",
    "NVIDIA/aicr, nccl_all_reduce_bw_constraint.go and recipes/overlays", render, libraries=("nccl",),
)  # fmt: skip
