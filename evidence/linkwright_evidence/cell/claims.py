"""The claims of the article, each checked on the model and reported as held or failed, with the figures.

A claim that the model was given, or by which something in the machine file was chosen, is listed with its figures but
not judged. What runs without exception (no segment used twice, no path beyond half the ring, at most one address per
cycle) is tested with the fabric and claimed nowhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from linkwright_evidence.cell import experiments, latency, load
from linkwright_evidence.cell.chip import BATCHES, SIZES, SPES, port, snoop_limit
from linkwright_evidence.cell.curves import Points
from linkwright_evidence.cell.load import Loads
from linkwright_evidence.cell.streams import Rates
from linkwright_evidence.outcome import Claim, numbered

THREE = ("put to memory", "put to local store", "get from local store")
_claim = partial(numbered, "C")


def _given(number: int, statement: str, why: str) -> Claim:
    """A claim that cannot fail, because the model was built on it."""
    return Claim(f"C-{number:02}", statement, None, f"given: {why}")


@dataclass(frozen=True)
class Findings:
    """What the claims are judged by."""

    machine: object
    points: Points
    loads: Loads
    losses: Mapping[str, Rates]
    # Aggregates of pairwise gets over random placements of logical on hardware numbers.
    placed: Sequence[float]
    # Operation -> nanoseconds from selection, shape (SPEs, DMAs).
    latencies: dict[str, np.ndarray]


def check(f: Findings) -> list[Claim]:
    """All claims."""
    return [
        _flat_to_512(f),
        _little_difference(f),
        _memory_gets(f),
        _grows_with_size(f),
        _rises_with_batch(f),
        _nonblocking_puts_reach_the_port(f),
        _local_hot_spot_is_flat(f),
        _two_get_sources_saturate(f),
        _gets_beat_puts(f),
        _order_of_patterns(f),
        _complement_reaches_the_limit(f),
        _spes_are_alike(f),
        _full_queues_stall(f),
        _off_the_line_is_slower(f),
        _nonblocking_gets_are_close(f),
        _placement_matters(f),
        _latency_of_the_hot_spot(f),
        _loss_cases(f),
    ]


def _flat_to_512(f: Findings) -> Claim:
    small = [f.points[op, "blocking", s].dma_ns for op in THREE for s in SIZES if s <= 512]
    larger = [f.points[op, "blocking", 1024].dma_ns for op in THREE]
    why = f"`data_lines` and `barrier`; {min(small):.1f} to {max(small):.1f} ns up to 512 B, {min(larger):.1f} at 1 KB"
    return _given(1, "blocking latency of memory put, local get and put is flat at 91 ns to 512 B, then grows", why)


def _little_difference(f: Findings) -> Claim:
    get, put = ({key[1:]: f.points[key].total for key in f.points if key[0] == op} for op in THREE[:0:-1])
    worst, where = max((abs(get[i, s] / put[i, s] - 1), f"{i} {s} B") for i, s in get)
    why = f"largest difference {100 * worst:.2f} % at {where}"
    return _claim(2, "local-store get and put differ by less than 5 % at every size, alone", worst < 0.05, why)


def _memory_gets(f: Findings) -> Claim:
    rates = {op: f.points[op, "blocking", 16384].total for op in (*THREE, "get from memory")}
    small = f.points["get from memory", "blocking", 128].dma_ns
    why = ", ".join(f"{op} {rate:.2f}" for op, rate in rates.items())
    why += f" GB/s; a memory get of 128 B takes {small:.0f} ns"
    statement = "memory get is the slowest of the four at 16 KB, yet takes less than 100 ns when small"
    return _claim(3, statement, min(rates, key=rates.__getitem__) == "get from memory" and small < 100, why)


def _grows_with_size(f: Findings) -> Claim:
    falls = [
        f"{op} {s} B"
        for op in (*THREE, "get from memory")
        for s, t in itertools.pairwise(SIZES)
        if f.points[op, "blocking", t].total <= f.points[op, "blocking", s].total
    ]
    return _claim(5, "blocking bandwidth grows with size up to 16 KB", not falls, f"falls after: {falls or 'nowhere'}")


def _rises_with_batch(f: Findings) -> Claim:
    falls = []
    for op in (*THREE, "get from memory"):
        for size in SIZES:
            rates = [f.points[op, issue, size].total for issue in BATCHES]
            # Within the 0.2 % to which a rate is known.
            falls += [f"{op} {size} B" for a, b in itertools.pairwise(rates) if b < 0.998 * a]

    def gain(issue: str, size: int) -> float:
        return f.points[THREE[2], issue, size].total / f.points[THREE[2], "blocking", size].total

    gains = [max(gain(issue, size) for issue in BATCHES) for size in (256, 512, 1024, 2048, 4096)]
    example, large = gain("batch(4)", 256), gain("unlimited", 16384)
    why = (
        f"256-B gets: batch 4 gains {example:.2f}; nonblocking over blocking {', '.join(f'{g:.1f}' for g in gains)} "
        f"at 256 B to 4 KB, {large:.2f} at 16 KB; falls: {falls or 'none'}"
    )
    statement = "bandwidth rises with the batch at every size; gain 2 to 3 at 256 B with batch 4, small at 16 KB"
    return _claim(6, statement, not falls and 2 <= example <= 3.2 and large < 1.25, why)


def _nonblocking_puts_reach_the_port(f: Findings) -> Claim:

    def first(op: str) -> int:
        return next(s for s in SIZES if f.points[op, "unlimited", s].total >= 0.98 * port(f.machine))

    memory, local = first("put to memory"), first("put to local store")
    why = f"98 % of 25.6 GB/s from {memory} B to memory, from {local} B to the local store"
    statement = "nonblocking puts reach 25.6 GB/s at 2 KB (memory) and at smaller sizes (local store)"
    return _claim(7, statement, memory <= 2048 and local < memory, why)


def _local_hot_spot_is_flat(f: Findings) -> Claim:
    ranges = {}
    for get in (False, True):
        rates = [f.loads["local store", get, n].total for n in range(2, SPES + 1)]
        ranges["get" if get else "put"] = (min(rates), max(rates))
    why = "; ".join(f"{op} {low:.2f} to {high:.2f} GB/s" for op, (low, high) in ranges.items())
    flat = all(high / low < 1.1 for low, high in ranges.values())
    return _claim(8, "local-store hot spot: flat (within 10 %) from 2 SPEs on", flat, why)


def _two_get_sources_saturate(f: Findings) -> Claim:
    one, two = f.loads["main memory", True, 1].total, f.loads["main memory", True, 2].total
    store = f.loads["local store", True, 3].total
    why = f"memory: one source {one:.2f}, two {two:.2f}; local store, two partners {store:.2f} GB/s"
    return _claim(9, "two get sources saturate memory and local store", min(two, store) >= 0.98 * port(f.machine), why)


def _gets_beat_puts(f: Findings) -> Claim:
    hot, pair = (f.loads[spot, True, 8].total - f.loads[spot, False, 8].total for spot in ("local store", "pairwise"))
    why = f"hot spot by {hot:.2f}, pairwise by {pair:.1f} GB/s: the model has no cost that only puts bear"
    statement = "under load gets beat puts: hot spot by about 1.5, pairwise by about 40 GB/s"
    return _claim(10, statement, abs(hot - 1.5) < 0.5 and abs(pair - 40) <= 4, why)


def _order_of_patterns(f: Findings) -> Claim:
    ways = {"complement get": ("complement", True), "pairwise get": ("pairwise", True)}
    ways |= {"pairwise put": ("pairwise", False), "uniform get": ("uniform", True)}
    totals = {name: load.total(f.loads, *way, SPES) for name, way in ways.items()}
    why = ", ".join(f"{name} {total:.1f}" for name, total in totals.items()) + " GB/s"
    # Rates are known to 0.2 %.
    holds = all(a > 1.002 * b for a, b in itertools.pairwise(totals.values()))
    return _claim(11, "8 SPEs, from fast to slow: complement, pairwise get, pairwise put, uniform", holds, why)


def _complement_reaches_the_limit(f: Findings) -> Claim:
    shares = [100 * f.loads["complement", get, 8].total / snoop_limit(f.machine) for get in (True, False)]
    why = "get {:.1f} %, put {:.1f} %".format(*shares)
    holds = all(abs(share / 98 - 1) <= 0.03 for share in shares)
    return _claim(12, "complement reaches 98 % of 204.8 GB/s (within 3 %), gets and puts", holds, why)


def _spes_are_alike(f: Findings) -> Claim:
    rates = [f.loads["main memory", g, 8].each for g in (False, True)]
    apart = max(max(r) / min(r) - 1 for r in rates)
    why = ", ".join(f"{op}: medians within {100 * latency.spread(taken):.2f} %" for op, taken in f.latencies.items())
    why += f"; rates within {100 * apart:.2f} %"
    holds = latency.alike(f.latencies) and apart <= latency.ALIKE
    return _claim(14, "SPEs are treated alike under the memory hot spot (medians within 2 %)", holds, why)


def _full_queues_stall(f: Findings) -> Claim:
    sixteenth, seventeenth = experiments.full_queue(f.machine)
    lines = experiments.run(f.machine, [("SPE0", ["put SPE1 16384", "wait"])])
    first = float(lines["complete_ps"][0] - lines["issued_ps"][0]) / 1e3
    why = (
        f"rules of the queue; the 16th DMA in a row enters it {sixteenth:.1f} ns after the 15th, the 17th "
        f"{seventeenth:.1f} ns after that: when the first is complete ({first:.0f} ns from its issue)"
    )
    return _given(15, "a full command queue stalls the SPU; entries stay until all their requests are done", why)


def _off_the_line_is_slower(f: Findings) -> Claim:
    rates = {row["addresses"]: row["rate_gb_per_s"] for row in experiments.alignment(f.machine)}
    why = "`partial_line` and `offset_requests`; " + ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items())
    return _given(16, "a size that is no multiple of 128 B or unaligned addresses lower the rate", f"{why} GB/s")


def _nonblocking_gets_are_close(f: Findings) -> Claim:
    shares = {
        place: f.points[f"get from {place}", "unlimited", 16384].total
        / f.points[f"put to {place}", "unlimited", 16384].total
        for place in ("local store", "memory")
    }
    why = ", ".join(f"{place}: gets at {100 * share:.0f} % of puts" for place, share in shares.items()) + ", 16 KB"
    statement = (
        "nonblocking gets are close to puts (local store, within 5 %), and a little behind (memory, within 25 %)"
    )
    return _claim(17, statement, shares["local store"] >= 0.95 and shares["memory"] >= 0.75, why)


def _placement_matters(f: Findings) -> Claim:
    low, high = min(f.placed), max(f.placed)
    why = f"{low:.1f} to {high:.1f} GB/s over {len(f.placed)} random placements, median {np.median(f.placed):.1f}"
    return _claim(18, "pairwise depends on where the SPEs lie on the ring (by more than 10 %)", high > 1.1 * low, why)


def _latency_of_the_hot_spot(f: Findings) -> Claim:
    mode, worst = ({op: of(taken) / 1e3 for op, taken in f.latencies.items()} for of in (latency.mode, np.max))
    why = ", ".join(f"{op}: {mode[op]:.2f} and {worst[op]:.2f} us" for op in mode)
    why += ": every DMA waits as long as any other"
    near = all(abs(m / 5.6 - 1) <= 0.1 for m in mode.values()) and all(abs(w / 13 - 1) <= 0.25 for w in worst.values())
    return _claim(19, "memory hot spot: mode of the latency 5.6 us (within 10 %), worst 13 us (within 25 %)", near, why)


def _loss_cases(f: Findings) -> Claim:
    best = max(rates.total for rates in f.losses.values())
    shares = {name: 100 * f.losses[name].total / best for name in load.DOCUMENTED_LOSSES}
    why = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items()) + " of the best pattern"
    statement = "one destination, one direction, partial lines and half the ring each cost bandwidth (over 2 %)"
    return _claim(20, statement, all(share < 98 for share in shares.values()), why)
