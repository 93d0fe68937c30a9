"""All-reduce of serving frameworks: a dispatcher over kernels of its own and NCCL.

    one shot     T = start + rounds flag + (p - 1) S / R               every rank gets the vectors of all
    two shots    T = start + rounds flag + (rounds + fence (p - 1)) flag + 2 (p - 1)/p S / R
    switch       T = start + rounds flag + S (p + 1)/p / (link x share x switch)     sums and copies in the switch
    NCCL         the library's plan, as in `collective.py`; over PCIe a ring:
                 T = start + 2 (p - 1) flag + 2 (p - 1)/p S / (link x share)

    R = min(link x share, n in flight / latency)    n = p - 1 peers whose loads or stores are under way together; 1 for
                                                    the two shots of loads, which wait for one peer at a time

Kernels that load from peers (`pull`) have a barrier before and after; those that store (`push`, `store`) bring a flag.
Each peer adds `peer` flags to a start. `switches.toml` says up to which size a version takes which kernel. An eager
call takes what its host needs, or the kernel and the copy of the tensor.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from linkwright.libraries.settings import Setup
from linkwright.libraries.times import Model

from .condition import Condition
from .numbers import Numbers

KB = 1000.0
MEMORY = 0.86  # share of the memory's rate that a copy gets: CUDA's own copy, A100 and H100
NCCL = "2.27"  # the rules of NCCL that frameworks bring
RING = "nccl_ring"  # NCCL without NVLS
NO_SWITCH = (0, 15)  # earlier versions of vLLM set NCCL_CUMEM_ENABLE=0, without which NCCL has no NVLS
# Flags of a kernel: loads have a barrier before and after, stores bring their flags, symmetric memory has both twice.
ROUNDS = {"pull": 2, "push": 1, "switch": 4}


@functools.cache
def switches() -> tuple[Mapping[str, Any], ...]:
    """The table of switches, in the order in which they are tried."""
    text = (resources.files("linkwright_evidence.kernels") / "switches.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["switch"])


def rules(one: Condition) -> list[Mapping[str, Any]]:
    """The switches of a framework, its version, these GPUs and their number, in the order in which they are tried."""
    return [
        row
        for row in switches()
        if one.backend == row["backend"]
        and one.on.capability in row["capability"]
        and one.gpus in row["gpus"]
        and tuple(row.get("since", ())) <= one.version
        and one.version < tuple(row.get("before", (9999,)))
    ]


def first(found: Iterable[Mapping[str, Any]], size_bytes: int) -> str:
    """The kernel of the first of these switches that serves the size; NCCL where none does."""
    return next((str(row["kernel"]) for row in found if size_bytes <= row["up_to"]), "nccl")


def chosen(one: Condition) -> str:
    """The kernel that a framework takes: the first switch that matches, else NCCL."""
    return first(rules(one), one.size_bytes)


def time(one: Condition, numbers: Numbers, model: Model) -> float:
    """Time of one call, us."""
    spent = of_kernel(one, chosen(one), numbers, model)
    if one.mode == "eager":
        copied = 2 * one.size_bytes / (MEMORY * one.on.memory)
        return max(numbers[f"host.{one.system}"], spent + copied)
    return spent


def of_kernel(one: Condition, name: str, numbers: Numbers, model: Model) -> float:
    """Time of a kernel in a graph, us: of the names of the switches, `nccl`, or `RING`."""
    return _nccl(one, name, numbers, model) if name in ("nccl", RING) else _kernel(one, name, numbers)


def _kernel(one: Condition, name: str, numbers: Numbers) -> float:
    on, generation, others = one.on, one.on.generation, one.gpus - 1
    flag = numbers[f"{generation}.flag"]
    start = numbers[f"{generation}.start"] + numbers["framework.peer"] * (others - 1) * flag
    link = on.link * numbers[f"{generation}.link"]
    way, _, shots = name.partition("_")
    around = 2 * others / one.gpus * one.size_bytes
    if way == "switch":
        moved = around if shots == "two" else (one.gpus + 1) / one.gpus * one.size_bytes
        return start + ROUNDS[way] * flag + moved / (link * numbers["framework.switch"])
    flying = numbers["framework.pull" if way == "pull" else "framework.push"] * KB
    once = flying / (numbers["framework.latency"] * flag)
    rounds = numbers["framework.store"] if way == "store" else ROUNDS[way]
    start += rounds * flag
    if shots == "one":
        return start + others * one.size_bytes / min(link, others * once)
    fence = numbers["framework.fence" if way == "pull" else "framework.fence_store"]
    rate = min(link, once if way == "pull" else others * once)
    return start + (rounds + fence * others) * flag + around / rate


def _nccl(one: Condition, name: str, numbers: Numbers, model: Model) -> float:
    on, others = one.on, one.gpus - 1
    if on.generation == "pcie":
        steps = 2 * others * numbers["pcie.flag"]
        moved = 2 * others / one.gpus * one.size_bytes / (on.link * numbers["pcie.link"])
        # LL carries a flag with every 4 bytes; Simple starts later.
        ll = steps + 2 * moved
        simple = numbers["framework.simple"] * steps + moved
        return numbers["pcie.start"] + min(ll, simple)
    ring = name == RING or (one.backend == "vllm" and one.version < NO_SWITCH)
    algorithm = f"nccl-{NCCL}/ring" if ring else f"nccl-{NCCL}"
    setup = Setup(on.machine, 1, one.gpus, None, algorithm, "allreduce", False)
    return model.time(setup, one.size_bytes).time_us
