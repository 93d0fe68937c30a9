"""Switches of the network do not reduce."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if system.nodes > 1 and system.collective in ("allreduce", "reduce_scatter", "allgather"):
        for state, words in (("0", "the switches do not reduce (SHARP is off)"), ("1", "the switches reduce (SHARP)")):
            yield Case(
                words, system.on(f"sharp={state}"), "SHARP",
                "NCCL_COLLNET_ENABLE, the plugin, or the aggregation manager",
                "grep -i sharp in the log with NCCL_DEBUG=INFO; env | grep COLLNET",
                "start sharp_am, set NCCL_COLLNET_ENABLE=1",
            )  # fmt: skip


HYPOTHESIS = Hypothesis("sharp_off", "switches of the network do not reduce", _cases)
