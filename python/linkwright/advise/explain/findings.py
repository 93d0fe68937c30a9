"""What the curve of a log shows without any model: spikes, cliffs, and sizes that take longer than larger ones.

late switch   the time falls as the size grows, and did not jump before: a slow protocol is used for too long
spike         one size takes far longer than its neighbours on both sides
cliff         the rate falls from one size to the next, or over several, and stays low
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from linkwright.base import units

FALLS = 1.5  # times as long as the next larger size, to be a finding
JUMPS = 2.0  # times as long as the rate at the neighbours gives
MOST = 3


@dataclass(frozen=True)
class Irregularity:
    """A place of the curve.

    Attributes:
        kind: what it is.
        size: where, in bytes.
        factor: by how much the time is off.
        words: in a sentence, with what to do.
    """

    kind: Literal["late switch", "spike", "cliff"]
    size: int
    factor: float
    words: str


def findings(measured: Mapping[int, float], healthy: Mapping[int, float]) -> list[Irregularity]:
    """Return the worst places of a curve, by size.

    Args:
        measured: size in bytes -> us.
        healthy: the same of the healthy machine, of some sizes; what it does itself is no finding.
    """
    sizes = sorted(measured)
    found = [one for one in _found(sizes, measured) if not _expected(one, sizes, healthy)]
    if not any(one.kind == "cliff" for one in found):
        found += _slope(measured, healthy)
    worst = sorted(found, key=lambda one: -one.factor)[:MOST]
    return sorted(worst, key=lambda one: one.size)


def _found(sizes: list[int], times: Mapping[int, float]) -> Iterator[Irregularity]:
    reported = False
    for at, size in enumerate(sizes):
        before = _off(sizes, times, at, at - 1)
        after = _off(sizes, times, at, at + 1)
        falls = times[size] / times[sizes[at + 1]] if at + 1 < len(sizes) else 0.0
        if before is not None and after is not None and min(before, after) >= JUMPS:
            yield _spike(size, min(before, after))
            reported = True
        elif at and falls >= FALLS:  # the first size may include a warm-up
            yield _late(size, sizes[at + 1], falls)
        elif before is not None and before >= JUMPS and not reported and _stays(sizes, times, at):
            yield _cliff(sizes[at - 1], size, before)
        else:
            reported = False


def _slope(measured: Mapping[int, float], healthy: Mapping[int, float]) -> Iterator[Irregularity]:
    """A rate that falls over several sizes, the last two far below its best, unless the healthy one does."""
    rates = {size: size / time for size, time in measured.items()}
    best = max(rates, key=lambda size: rates[size])
    later = [size for size in sorted(rates) if size > best]
    usual = {size: size / time for size, time in healthy.items() if size >= best}
    if usual and usual[max(usual)] * math.sqrt(JUMPS) <= max(usual.values()):
        return
    if len(later) > 1 and all(rates[size] * JUMPS <= rates[best] for size in later[-2:]):
        yield _cliff(best, later[-1], rates[best] / rates[later[-1]])


def _off(sizes: list[int], times: Mapping[int, float], at: int, other: int) -> float | None:
    """By how much a size takes longer than the rate of a neighbour gives, or than the neighbour itself if larger."""
    if not 0 <= other < len(sizes):
        return None
    size, near = sizes[at], sizes[other]
    return times[size] / (times[near] * max(1.0, size / near))


def _stays(sizes: list[int], times: Mapping[int, float], at: int) -> bool:
    """Whether all larger sizes are slower than the rate before the fall."""
    rate = sizes[at - 1] / times[sizes[at - 1]]
    return all(size / times[size] * JUMPS <= rate for size in sizes[at:])


def _expected(found: Irregularity, sizes: list[int], healthy: Mapping[int, float]) -> bool:
    """Whether the healthy machine's own curve does the same there."""
    at = sizes.index(found.size)
    near = [size for size in sizes[max(0, at - 1) : at + 2] if size in healthy]
    if found.size not in near:
        return False
    offs = (
        _off(near, healthy, near.index(found.size), other) for other in range(len(near)) if near[other] != found.size
    )
    return max(filter(None, offs), default=0.0) >= math.sqrt(found.factor)


def _late(size: int, larger: int, factor: float) -> Irregularity:
    return Irregularity(
        "late switch", size, factor,
        f"Time falls as the size grows: {sized(size)} takes {factor:.2g} times as long as {sized(larger)}. The library "
        f"switches too late to the protocol or algorithm of larger sizes. Try NCCL_PROTO=^LL or another NCCL_ALGO for "
        f"sizes up to {sized(size)}; `linkwright tune` writes a table of switching points.",
    )  # fmt: skip


def _spike(size: int, factor: float) -> Irregularity:
    return Irregularity(
        "spike", size, factor,
        f"{sized(size)} is a spike: it takes {factor:.2g} times as long as its neighbours give. Run again: one "
        "that stays is a bad choice of the library at this size; one that moves is interference or congestion.",
    )  # fmt: skip


def _cliff(before: int, size: int, factor: float) -> Irregularity:
    return Irregularity(
        "cliff", size, factor,
        f"The rate falls by a factor of {factor:.2g} from {sized(before)} to {sized(size)} and stays low: congestion "
        "(PFC pauses, adaptive routing), a full buffer, or an algorithm that a tuner chose for large sizes.",
    )  # fmt: skip


def sized(size: int) -> str:
    """A size as people write it, with a unit."""
    found = units.format_size(size)
    return f"{found} B" if found.isdigit() else found
