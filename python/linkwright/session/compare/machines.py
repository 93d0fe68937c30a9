"""Two described machines: the same collectives and sizes simulated on both, the fastest algorithm of each.

A machine runs what its library would choose; one without a library, the fastest of all algorithms. Times are exact for
the machines as described, and the descriptions are not exact, so a difference within `SAME_IF_TIGHT` is called equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from linkwright.ask.question import Collective
from linkwright.base.errors import UsageError
from linkwright.base.units import PS_PER_NS, format_size
from linkwright.executors import ModelledTarget
from linkwright.machines import unsure
from linkwright.session.suite.context import Context
from linkwright.session.suite.expand import expand
from linkwright.session.suite.load import Suite
from linkwright.session.suite.model import Work, simulate

from .verdict import SAME_IF_TIGHT

Row = dict[str, Any]
_UNLIKE = "left out, because the ranks of the two machines round it to different sizes"
Best = dict[tuple[str, int], Row]


@dataclass(frozen=True)
class Pair:
    """One collective of one size on both machines: the row of the fastest time on each."""

    collective: str
    size_bytes: int
    first: Row
    second: Row

    @property
    def ratio(self) -> float:
        """Time on the second machine over that on the first; above 1, the first is faster."""
        return float(self.second["value"] / self.first["value"])

    @property
    def alike(self) -> bool:
        """Whether the sizes are equal but for rounding."""
        small, large = sorted(row["size_bytes"] or 1 for row in (self.first, self.second))
        return bool(large <= small * (1 + SAME_IF_TIGHT))

    @property
    def faster(self) -> int | None:
        """Which machine is faster, 0 or 1; None if neither is by more than descriptions are worth."""
        return None if max(self.ratio, 1 / self.ratio) <= 1 + SAME_IF_TIGHT else int(self.ratio < 1)


def compare_machines(
    targets: Sequence[ModelledTarget], suite: Suite, seed: int, told: Callable[[str], None]
) -> tuple[list[Pair], list[str]]:
    """Simulate a suite on two machines: what both have a time for, and what is left out, with the reason.

    Args:
        targets: the machines.
        suite: what to simulate; the fastest time of each collective and size counts.
        seed: of random choices.
        told: is told the key of each experiment that is done.

    Raises:
        UsageError: the machines have no collective in common.

    """
    first, second = (_fastest(target, suite, seed, told) for target in targets)
    both = [Pair(*key, row, second[key]) for key, row in first.items() if key in second]
    pairs = [pair for pair in both if pair.alike]
    if not pairs:
        names = " and ".join(target.machine_name for target in targets)
        raise UsageError(
            f"{names}: nothing has a time on both; name other --collectives, or --sizes that fit into memory"
        )
    left = [f"{pair.collective}, {format_size(pair.size_bytes)}: {_UNLIKE}." for pair in both if not pair.alike]
    known = {(pair.collective, pair.size_bytes) for pair in both}
    for collective in dict.fromkeys(pair.collective for pair in both):
        gone = [format_size(size) for size in suite.parts[0].sizes if (collective, size) not in known]
        if gone:
            left.append(f"{collective}, {', '.join(gone)}: no time on both; `linkwright simulate` says why.")
    return pairs, left


def _fastest(target: ModelledTarget, suite: Suite, seed: int, told: Callable[[str], None]) -> Best:
    work = Work(target, Context.of(target, "", suite.name), {part.name: () for part in suite.parts}, seed)
    found: Best = {}
    asked = (question for question in expand(suite, target.extent) if isinstance(question, Collective))
    for _, its in groupby(asked, lambda question: (question.collective, question.algorithm)):
        questions = list(its)
        keys = {one.key: (one.collective, _asked(one.size_bytes, suite.parts[0].sizes)) for one in questions}
        # What is slower than another algorithm is not simulated to its end, nor what a plan is continued from.
        stop_ps = {
            one.key: math.ceil(found[keys[one.key]]["value"] * PS_PER_NS)
            for one in questions if keys[one.key] in found and not one.own
        }  # fmt: skip
        for question, rows in simulate(work, questions, stop_ps=stop_ps):
            told(question.key)
            key = keys[question.key]
            for row in rows:
                if (
                    row["metric"] == "time"
                    and row["value"]
                    and (key not in found or row["value"] < found[key]["value"])
                ):
                    found[key] = row
    return {key: found[key] for key in sorted(found)}


def _asked(size_bytes: int | None, sizes: Sequence[int]) -> int:
    """Return the size that was asked for; collectives round it to a multiple of their ranks."""
    return min(sizes, key=lambda size: abs(math.log(size / size_bytes))) if size_bytes else 0


def sentences(pairs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """Return one sentence for each collective: which machine is faster from which size on, and by how much at most."""
    told = []
    for collective in dict.fromkeys(pair.collective for pair in pairs):
        its = [pair for pair in pairs if pair.collective == collective]
        begins = [0, *(i for i, (a, b) in enumerate(pairwise(its), 1) if a.faster != b.faster), len(its)]
        runs = [its[a:b] for a, b in pairwise(begins)]
        told.append(f"{collective}: {'; '.join(_run(run, names) for run in runs)}.")
    return told


def _run(run: Sequence[Pair], names: Sequence[str]) -> str:
    sizes = " to ".join(dict.fromkeys(format_size(run[end].size_bytes) for end in (0, -1)))
    if run[0].faster is None:
        return f"{sizes}, equal within {SAME_IF_TIGHT:.0%}"
    most = max(max(pair.ratio, 1 / pair.ratio) for pair in run)
    return f"{sizes}, {names[run[0].faster]} is {'up to ' * (len(run) > 1)}{most:.2f} times as fast"


def notes(pairs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """Return in what the two sides are not alike."""
    ranks = [max(row["ranks"] for row in side) for side in _sides(pairs)]
    launch = [any(row["launch_ns"] for row in side) for side in _sides(pairs)]
    told = []
    if ranks[0] != ranks[1]:
        told.append(f"{names[0]} has {ranks[0]:,} ranks and {names[1]} {ranks[1]:,}; --ranks gives both as many.")
    if launch[0] != launch[1]:
        told.append(
            f"Times of {names[launch[1]]} include starting its library; those of {names[launch[0]]}, which names none, "
            "are of the fastest algorithm alone."
        )
    return told


def doubts(targets: Sequence[ModelledTarget]) -> list[str]:
    """Return which of the machines predict no real one."""
    return [f"{one.machine_name}{unsure(one.machine)}." for one in targets if unsure(one.machine)]


def _sides(pairs: Sequence[Pair]) -> list[list[Row]]:
    return [[pair.first for pair in pairs], [pair.second for pair in pairs]]
