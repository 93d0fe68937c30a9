"""NICs cannot read the memory of GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if system.nodes > 1:
        yield Case(
            "GPUDirect RDMA is off: data is staged through host memory", system.on("gpudirect=0"), "no GPUDirect",
            "nvidia-peermem is not loaded, dma-buf is missing, or NCCL_NET_GDR_LEVEL forbids it",
            "lsmod | grep peermem; grep GDRDMA in the log with NCCL_DEBUG=INFO",
            "modprobe nvidia-peermem; unset NCCL_NET_GDR_LEVEL",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("gpudirect_off", "NICs cannot read the memory of GPUs", _cases)
