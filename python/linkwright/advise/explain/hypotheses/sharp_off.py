"""Switches of the network do not reduce."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import RARE, UNUSUAL, Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes > 1 and system.collective in ("allreduce", "reduce_scatter", "allgather"):
        stated = _stated(facts)
        for state, words in (("0", "the switches do not reduce (SHARP is off)"), ("1", "the switches reduce (SHARP)")):
            if stated and state == "1":
                continue
            yield Case(
                words, system.on(f"sharp={state}"), "SHARP",
                "NCCL_COLLNET_ENABLE, the plugin, or the aggregation manager",
                "systemctl status sharp_am" if stated
                else "grep -i sharp in the log with NCCL_DEBUG=INFO; env | grep COLLNET",
                "start sharp_am, set NCCL_COLLNET_ENABLE=1",
                stated,
                common=UNUSUAL if state == "0" else RARE,
            )  # fmt: skip


def _stated(facts: Facts) -> str:
    """Return what the log says that proves it to be off; empty if nothing does."""
    if facts.sharp is False:
        return "the library cannot use SHARP"
    value = facts.setting("NCCL_COLLNET_ENABLE")
    return f"NCCL_COLLNET_ENABLE={value}" if value == "0" else ""


HYPOTHESIS = Hypothesis("sharp_off", "switches of the network do not reduce", _cases)
