"""The processors that move the data run at a low clock.

A kernel of a communication library starts and copies with the processors of the GPU: its start-ups take longer, and
what its channels carry and combine becomes less. Links keep their rate. Where a file does not state what channels
carry, they are taken to carry what the links do, so a lower clock lowers that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, UNUSUAL, Case, Hypothesis

PARTS = (0.7, 0.4)
_TIMES = re.compile(r"fabric\.transport\..*\.(start|long_start)|library\.launch")
_RATES = re.compile(r"fabric\.transport\..*\.channel|path\..*\.combine_rate")


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.described.library() is None:  # of an MPI library, no GPU moves the data
        return
    keys = system.numbers
    for part in PARTS:
        changes = {key: 1 / part for key in keys if _TIMES.fullmatch(key)}
        rates = [key for key in keys if _RATES.fullmatch(key)]
        unstated = (name for name in ("nvlink", "xgmi") if not any(f".{name}_" in key for key in rates))
        shares = (f"fabric.links.{name}.share" for name in unstated)
        changes |= dict.fromkeys([*rates, *(key for key in shares if key in keys)], part)
        if changes:
            yield Case(
                f"GPUs run at {part:.0%} of their clock", system.scaled(changes), "low clock",
                "a power cap, heat, or a locked clock lowers the clock",
                system.command("clocks"), "lift the cap, unlock the clocks, check the cooling",
                common=UNUSUAL, strength=FREE,
            )  # fmt: skip


HYPOTHESIS = Hypothesis("low_clock", "the GPUs run at a low clock", _cases)
