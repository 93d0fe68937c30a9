"""NICs cannot read the memory of GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import ROUGH, THROUGH_HOST, Case, Hypothesis, checks, through_host, unless


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    stated = _said(facts)
    if system.nodes < 2 or stated is None:
        return
    for part in THROUGH_HOST if system.has("host") else (1.0,):
        yield Case(
            "GPUDirect RDMA is off: data is staged through host memory", through_host(system.on("gpudirect=0"), part),
            "no GPUDirect", "nvidia-peermem is not loaded, dma-buf is missing, or NCCL_NET_GDR_LEVEL forbids it",
            checks("lsmod | grep peermem", unless(stated, "grep GDRDMA in the log with NCCL_DEBUG=INFO")),
            "modprobe nvidia-peermem; unset NCCL_NET_GDR_LEVEL", stated, strength=ROUGH,
        )  # fmt: skip


def _said(facts: Facts) -> str | None:
    """What proves it, `""` if nothing does, None if the log excludes it."""
    direct = sum(count for name, count in facts.transports.items() if name.endswith("/GDRDMA"))
    ports = facts.connections("NET") - facts.connections("NET/Socket")
    level = facts.setting("NCCL_NET_GDR_LEVEL")
    if level in ("0", "LOC"):
        return f"NCCL_NET_GDR_LEVEL={level}"
    if ports and not direct:
        return f"none of {ports} connections through NICs has GDRDMA"
    lacking = [host or "a node" for host, its in facts.direct.items() if not its]
    if lacking and direct:
        return f"connections into {lacking[0]} have no GDRDMA, and others have"
    if facts.gpudirect is False and not direct:
        return "GPU Direct RDMA Disabled"
    return None if facts.gpudirect or (ports and direct == ports) else ""


HYPOTHESIS = Hypothesis("gpudirect_off", "NICs cannot read the memory of GPUs", _cases)
