"""The processors that move the data run at a low clock.

A kernel of a communication library starts and copies with the processors of the GPU: its start-ups take longer, and
what its channels carry and combine becomes less. Links keep their rate. Where a file does not state what channels
carry, the share of the links' rate is that of the kernel as well, so a lower clock lowers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, UNUSUAL, Case, Hypothesis

PARTS = (0.7, 0.4)
_TIMES = re.compile(r"fabric\.transport\..*\.(start|long_start)|library\.launch")
_CHANNEL = re.compile(r"fabric\.transport\..*\.channel")
_RATES = re.compile(r"fabric\.transport\..*\.channel|path\..*\.combine_rate")


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.described.library() is None:  # of an MPI library, no GPU moves the data
        return
    keys = system.numbers
    for part in PARTS:
        changes = {key: 1 / part for key in keys if _TIMES.fullmatch(key)}
        changes |= dict.fromkeys([key for key in keys if _RATES.fullmatch(key)] + _shares(keys), part)
        if changes:
            yield Case(
                f"GPUs run at {part:.0%} of their clock", system.scaled(changes), "low clock",
                "a power cap, heat, or a locked clock lowers the clock",
                system.command("clocks"), "lift the cap, unlock the clocks, check the cooling",
                common=UNUSUAL, strength=FREE,
            )  # fmt: skip


def _shares(keys: Iterable[str]) -> list[str]:
    """The shares of links whose channels have no rate."""
    stated = {key.split(".")[2].partition("_")[0] for key in keys if _CHANNEL.fullmatch(key)}
    return [f"fabric.links.{name}.share" for name in ("nvlink", "xgmi")
            if name not in stated and f"fabric.links.{name}.share" in keys]  # fmt: skip


HYPOTHESIS = Hypothesis("low_clock", "the GPUs run at a low clock", _cases)
