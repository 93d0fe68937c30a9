"""Streams of DMAs: who moves what, how many at a time, and the rate that each SPE sees.

A stream is a sequence of equal DMAs that one SPE issues. All SPEs begin together; the first `WARM` DMAs of each do
not count. A point runs until the rates of four successive windows agree within 0.2 %, or else 512 DMAs. The rate of
an SPE is bytes over elapsed time from its own last uncounted completion to its own end; an aggregate is their sum.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright_evidence.cell.chip import MEMORY, SPES

# Completions before counting begins, and counted ones; multiples of every batch.
WARM = 128
SHORT, LONG = 128, 512
STEADY = 0.002


@dataclass(frozen=True)
class Stream:
    """What every SPE of an experiment does; `partners[i][k]` is where DMA k of SPE `own[i]` goes, in turn."""

    own: tuple[int, ...]
    partners: tuple[tuple[int, ...], ...]
    get: bool = False
    size: int = 16384


@dataclass(frozen=True)
class Rates:
    """GB/s of every SPE, and the time of one DMA."""

    each: tuple[float, ...]
    dma_ns: float
    count: int
    links: dict | None = None

    @property
    def total(self) -> float:
        """Aggregate."""
        return sum(self.each)


def one(partner: int, get: bool, size: int, own: int = 0) -> Stream:
    """One SPE with one partner."""
    return Stream((own,), ((partner,),), get, size)


def memory(count: int, get: bool) -> Stream:
    """`count` SPEs at main memory."""
    return Stream(tuple(range(count)), ((MEMORY,),) * count, get)


def hot_store(count: int, get: bool) -> Stream:
    """All but SPE 0 of `count` SPEs at its local store."""
    return Stream(tuple(range(1, count)), ((0,),) * (count - 1), get)


def complement(count: int, get: bool) -> Stream:
    """SPE i with SPE count-1-i."""
    return Stream(tuple(range(count)), tuple((count - 1 - i,) for i in range(count)), get)


def pairwise(count: int, get: bool) -> Stream:
    """SPE i with SPE i+1, i even, both ways."""
    return Stream(tuple(range(count)), tuple((i ^ 1,) for i in range(count)), get)


def uniform(count: int, get: bool, seed: int) -> Stream:
    """Every DMA to another SPE drawn anew."""
    random = np.random.default_rng(seed)
    others = [[j for j in range(count) if j != i] for i in range(count)]
    drawn = (tuple(int(k) for k in random.choice(o, WARM + LONG)) for o in others)
    return Stream(tuple(range(count)), tuple(drawn), get)


def measure(
    machine,
    stream: Stream,
    issue: str = "unlimited",
    *,
    placement: list[int] | None = None,
    jitter: int = 0,
    long=False,
) -> Rates:
    """The steady rates of a stream; `jitter` is a seed of start times within 40 bus cycles."""
    for counted in (LONG,) if long else (SHORT, LONG):
        how = How(path="dma", issue=issue, operations=True, links=True, placement=placement)
        if jitter:
            how = how.but(skew="uniform:25ns", seed=jitter)
        answer = ask(machine, schedule(stream, WARM + counted), how)
        ends = np.sort(answer.operations.done_ps.reshape(-1, len(stream.own)), axis=0)
        if steady(ends):
            break
    return rates(stream, ends, answer.links)


@functools.lru_cache(maxsize=256)
def schedule(stream: Stream, count: int):
    """`count` DMAs of every SPE, in rounds; each into a slot of its own."""
    slots = count * len(stream.own)
    builder = _native.Builder("pattern", SPES, slots * stream.size, element_bytes=1)
    store = builder.memory()
    builder.buffer("input", slots)
    builder.buffer("output", slots)
    builder.buffer("memory", slots, only_at=store)
    for number in range(count):
        builder.step()
        for index, own in enumerate(stream.own):
            partners = stream.partners[index]
            partner = partners[number % len(partners)]
            slot = number * len(stream.own) + index
            far = partner == MEMORY
            if stream.get:
                builder.put(partner, own, "memory" if far else "input", 0, into="output", at=slot, get=True)
            else:
                builder.put(own, partner, "input", 0, into="memory" if far else "output", at=slot)
    return builder.finish()


def steady(ends: np.ndarray) -> bool:
    """Whether four windows of the counted completions agree, summed over all SPEs."""
    window = (len(ends) - WARM) // 4
    marks = ends[WARM - 1 :: window].astype(float)
    # By SPE and window; windows of one SPE lie where it is, so they are compared as rates.
    speeds = (1 / np.diff(marks, axis=0)).sum(axis=1)
    return bool(speeds.max() / speeds.min() - 1 <= STEADY)


def rates(stream: Stream, ends: np.ndarray, links: dict | None = None) -> Rates:
    """GB/s of every SPE over the counted part of its stream.

    Where one SPE is through before another has begun to count, somebody starves; then all are counted until the
    first is through, or the sum would hold bytes that were never under way together.
    """
    counted = len(ends) - WARM
    begin, end = ends[WARM - 1].astype(float), ends[-1].astype(float)
    if begin.max() >= end.min():
        each = stream.size * (ends <= end.min()).sum(axis=0) / end.min() * 1e3
    else:
        each = stream.size * counted / (end - begin) * 1e3
    return Rates(tuple(map(float, each)), float((end - begin).mean() / counted / 1e3), counted, links)
