"""The network is used through sockets."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if system.nodes > 1:
        yield Case(
            "sockets are used instead of RDMA", system.having(fabric="sockets"), "sockets",
            "no plugin for the network was found, or NCCL_IB_DISABLE=1 is set",
            "grep 'NET/' in the log with NCCL_DEBUG=INFO: Socket instead of IB or OFI",
            "unset NCCL_IB_DISABLE; install the plugin (aws-ofi-nccl, rdma-core) in the container",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("sockets", "the network is used through sockets", _cases)
