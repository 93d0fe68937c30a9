"""One of the ranks is slow, and all others wait for it."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, UNUSUAL, Case, Hypothesis, is_full

PARTS = (0.5, 0.25)


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    rank = system.first_gpu
    if rank is None or (system.nodes == 1 and (is_full(facts, "nvlink") or is_full(facts, "xgmi"))):
        return
    for part in PARTS:
        yield Case(
            f"the links of one rank, such as {rank}, run at {part:.0%} of their rate", system.slowed(rank, part),
            "slow rank", "one GPU has a bad riser or cable, is shared with another job, or its host is busy",
            f"{system.command('clocks')}; run on one half of the ranks, then on the other: one half is slow",
            "exclude that GPU or node (--exclude), and have it repaired",
            common=UNUSUAL, strength=FREE,
        )  # fmt: skip


HYPOTHESIS = Hypothesis("slow_rank", "one rank is slow, and all others wait for it", _cases)
