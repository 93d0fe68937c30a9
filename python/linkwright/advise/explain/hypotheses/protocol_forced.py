"""A protocol was forced."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis

_NAMES = {"simple": "Simple", "ll": "LL", "ll128": "LL128"}


def _cases(system: System) -> Iterator[Case]:
    if system.described.library() is None:
        return
    library = system.algorithm.split("/")[0]
    for key, name in _NAMES.items():
        yield Case(
            f"the protocol is {name} at all sizes", system.having(algorithm=f"{library}/ring/{key}"), "protocol",
            f"NCCL_PROTO={name} is set", "env | grep NCCL_PROTO; grep NCCL_PROTO /etc/nccl.conf ~/.nccl.conf",
            "unset NCCL_PROTO",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("protocol_forced", "a protocol was forced", _cases)
