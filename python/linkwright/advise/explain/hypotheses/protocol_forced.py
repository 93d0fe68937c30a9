"""A protocol was forced."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.libraries import library

from .kind import ROUGH, Case, Hypothesis

_NAMES = {"simple": "Simple", "ll": "LL", "ll128": "LL128"}


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    value = facts.setting("NCCL_PROTO")
    if system.described.library() is None or value == "" or system.collective == "sendrecv":
        return
    stem, *forced = system.algorithm.split("/")
    listed = [word.strip().lower() for word in (value or "").lstrip("^").split(",")]
    admitted = [key for key in _NAMES if not value or (key in listed) is not value.startswith("^")]
    # Where the variable leaves a choice, it proves no protocol.
    stated = f"NCCL_PROTO={value}" if value and len(admitted) == 1 else ""
    # The algorithm stays the library's choice, of those that have the protocol.
    there = {name.split("/")[2] for name in library.alternatives(system.described, system.collective, stem)[1:]}
    for key in (key for key in admitted if key in there):
        yield Case(
            f"the protocol is {_NAMES[key]} at all sizes",
            system.having(algorithm="/".join((stem, *(forced[:1] or [""]), key))), "protocol",
            f"NCCL_PROTO={value or _NAMES[key]} is set",
            "grep NCCL_PROTO /etc/nccl.conf ~/.nccl.conf" if value
            else "env | grep NCCL_PROTO; grep NCCL_PROTO /etc/nccl.conf ~/.nccl.conf",
            "unset NCCL_PROTO", stated, strength=ROUGH,  # at sizes for which no library uses it
        )  # fmt: skip


HYPOTHESIS = Hypothesis("protocol_forced", "a protocol was forced", _cases)
