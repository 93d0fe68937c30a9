"""All-reduce of serving frameworks: a dispatcher over kernels of its own and NCCL.

    one shot     T = start + rounds flag + (p - 1) S / R          every rank reads or gets the vectors of all
    two shots    T = start + 2 rounds flag + fence (p - 1) flag + 2 (p - 1)/p S / R
    multimem     T = start + 2 flag x 2 + S (p + 1)/p / (link x multimem)      sums and copies made in the switch
    NCCL         the library's plan, as in `collective.py`; over PCIe a ring:
                 T = start + 2 (p - 1) flag + 2 (p - 1)/p S / (link x share)

    R = min(link x share, (p - 1) in flight / latency)            loads of p - 1 peers are under way together

`rounds` is 2 for kernels that load from peers (a barrier before and after) and 1 for those that store with flags.
`SWITCHES` in `switches.toml` say up to which size a version takes which kernel. An eager call takes what its host
needs, or the kernel and the copy of the tensor.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from linkwright.libraries.settings import Setup
from linkwright.libraries.times import Model

from .condition import Condition
from .numbers import Numbers

KB = 1000.0
MEMORY = 0.86  # share of the memory's rate that a copy gets: CUDA's own copy, A100 and H100
NCCL = "2.27"  # the rules of NCCL that frameworks bring


@functools.cache
def switches() -> tuple[Mapping[str, Any], ...]:
    """The table of switches, in the order in which they are tried."""
    text = (resources.files("linkwright_evidence.kernels") / "switches.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["switch"])


def chosen(one: Condition) -> str:
    """The kernel that a framework takes: the first switch that matches, else NCCL."""
    for row in switches():
        if (
            one.backend == row["backend"]
            and one.on.capability in row["capability"]
            and one.gpus in row["gpus"]
            and tuple(row.get("since", ())) <= one.version
            and one.version < tuple(row.get("before", (9999,)))
            and one.size_bytes <= row["up_to"]
        ):
            return str(row["kernel"])
    return "nccl"


def time(one: Condition, numbers: Numbers, model: Model) -> float:
    """Time of one call, us."""
    name = chosen(one)
    spent = _nccl(one, numbers, model) if name == "nccl" else _kernel(one, name, numbers)
    if one.mode == "eager":
        copied = 2 * one.size_bytes / (MEMORY * one.on.memory)
        return max(one.on.host_us, spent + copied)
    return spent


def _kernel(one: Condition, name: str, numbers: Numbers) -> float:
    on, generation, others = one.on, one.on.generation, one.gpus - 1
    start, flag = numbers[f"{generation}.start"], numbers[f"{generation}.flag"]
    link = on.link * numbers[f"{generation}.link"]
    if name == "multimem":
        return start + 4 * flag + one.size_bytes * (one.gpus + 1) / one.gpus / (link * numbers["framework.multimem"])
    way, _, shots = name.partition("_")
    flying = others * numbers[f"framework.{way}"] * KB
    rate = min(link, flying / (numbers["framework.latency"] * flag))
    rounds = 2 if way == "pull" else 1
    if shots == "one":
        return start + rounds * flag + others * one.size_bytes / rate
    waits = rounds * flag + numbers["framework.fence"] * others * flag
    return start + rounds * flag + max(waits, 0.0) + 2 * others / one.gpus * one.size_bytes / rate


def _nccl(one: Condition, numbers: Numbers, model: Model) -> float:
    on, others = one.on, one.gpus - 1
    if on.generation == "pcie":
        steps = 2 * others * numbers["pcie.flag"]
        moved = 2 * others / one.gpus * one.size_bytes / (on.link * numbers["pcie.link"])
        # LL carries a flag with every 4 bytes; Simple starts later.
        ll = steps + 2 * moved
        simple = numbers["framework.simple"] * steps + moved
        return numbers["pcie.start"] + min(ll, simple)
    algorithm = f"nccl-{NCCL}"
    setup = Setup(on.machine, 1, one.gpus, None, algorithm, "allreduce", False)
    return model.time(setup, one.size_bytes).time_us
