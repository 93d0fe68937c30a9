"""Exchanges of mixtures of experts over multi-node NVLink, as TensorRT-LLM has them: one graph with one call.

    T = graph + rounds x flag + max(t x step, bytes to other ranks / (link x share))

A token goes once to each of min(topk, p) ranks that round-robin routing gives it, 1/p of them its own. `rounds` and
`step`, the time of a token however few ranks there are, belong to a kernel; flags of several trays take longer.
"""

from __future__ import annotations

from .condition import Condition
from .numbers import Numbers

ROUTE = 8  # bytes of an id and a weight
BYTES = {"bfloat16": 2.0, "fp8": 1.0, "nvfp4": 0.5 + 1 / 16}  # of an element, with its scales


def kernel(one: Condition) -> str:
    """The name of its numbers."""
    side = "one" if one.backend == "NVLinkOneSided" and one.op in ("dispatch", "combine") else "two"
    return f"moe.{side}_{one.op}"


def time(one: Condition, numbers: Numbers) -> float:
    """Time of one call, us."""
    on, generation, name = one.on, one.on.generation, kernel(one)
    trays = numbers["moe.trays"] if one.nodes > 1 else 1.0
    base = numbers["moe.graph"] + numbers[f"{name}.rounds"] * numbers[f"{generation}.flag"] * trays
    size = 0.0
    if one.op == "dispatch":
        size = one.hidden * BYTES[one.dtype] + one.topk * ROUTE
    elif one.op == "combine":
        size = 2.0 * one.hidden
    elif one.op == "combine_low_precision":
        size = one.hidden * BYTES[one.dtype]
    ranks = min(one.topk, one.gpus)
    others = ranks * (1 - 1 / one.gpus)
    rate = on.link * numbers[f"{generation}.link"] * numbers[f"moe.{name[4:7]}_rate"]
    return base + one.tokens * max(numbers[f"{name}.step"] / 1000, others * size / rate)
