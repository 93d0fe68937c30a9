"""The claims of the article, each checked on the model and reported as held or failed, with the figures."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np

from linkwright.studies.cell import experiments, streams
from linkwright.studies.cell.chip import BATCHES, SIZES, SPES, port, snoop_limit
from linkwright.studies.cell.curves import Points
from linkwright.studies.cell.load import Loads
from linkwright.studies.outcome import Claim, numbered

THREE = ("put to memory", "put to local store", "get from local store")
TICK_NS = 40
_claim = partial(numbered, "C")


@dataclass(frozen=True)
class Findings:
    """What the claims are judged by."""

    machine: object
    points: Points
    loads: Loads
    # Loads of the same patterns without the put calibrations.
    uncalibrated: Loads
    # Operation -> nanoseconds from selection, shape (SPEs, DMAs).
    latencies: dict[str, np.ndarray]


def check(f: Findings) -> list[Claim]:
    """All sixteen."""
    return [
        _flat_to_512(f),
        _little_difference(f),
        _memory_get_is_slowest(f),
        _place_does_not_matter(f),
        _grows_with_size(f),
        _rises_with_batch(f),
        _nonblocking_puts_reach_the_port(f),
        _local_hot_spot_is_flat(f),
        _two_get_sources_saturate(f),
        _gets_beat_puts(f),
        _complement_beats_pairwise_put(f),
        _complement_reaches_the_limit(f),
        _invariants(f),
        _spes_are_alike(f),
        _full_queues_stall(f),
        _off_the_line_is_slower(f),
    ]


def _flat_to_512(f: Findings) -> Claim:
    small = [f.points[op, "blocking", s].dma_ns for op in THREE for s in SIZES if s <= 512]
    larger = [f.points[op, "blocking", 1024].dma_ns for op in THREE]
    get = f.points["get from memory", "blocking", 128].dma_ns
    why = (
        f"{min(small):.1f} to {max(small):.1f} ns up to 512 B, {min(larger):.1f} ns at 1 KB; memory get {get:.1f} ns, "
    )
    why += "which the article puts below 100 ns without saying whether end to end"
    statement = (
        "blocking latency of memory put, local get and put is flat to 512 B (within a tick of 40 ns), then grows"
    )
    return _claim(1, statement, max(small) - min(small) <= TICK_NS and min(larger) > max(small), why)


def _little_difference(f: Findings) -> Claim:
    get, put = ({key[1:]: f.points[key].total for key in f.points if key[0] == op} for op in THREE[:0:-1])
    worst, where = max((abs(get[i, s] / put[i, s] - 1), f"{i} {s} B") for i, s in get)
    why = f"largest difference {100 * worst:.2f} % at {where}"
    return _claim(2, "local-store get and put differ by less than 5 % at every size, alone", worst < 0.05, why)


def _memory_get_is_slowest(f: Findings) -> Claim:
    rates = {op: f.points[op, "blocking", 16384].total for op in (*THREE, "get from memory")}
    why = ", ".join(f"{op} {rate:.2f}" for op, rate in rates.items()) + " GB/s"
    statement = "memory get is the slowest of the four at 16 KB: 15 against 22.5 GB/s"
    return _claim(3, statement, min(rates, key=rates.get) == "get from memory", why)


def _place_does_not_matter(f: Findings) -> Claim:
    times = {
        streams.measure(f.machine, streams.one(partner, get, 4096, own), "blocking").dma_ns
        for own, partner, get in ((0, 1, False), (0, 7, True), (3, 4, False), (6, 1, True), (5, 2, False))
    }
    why = f"five pairs, 4 KB: {', '.join(f'{t:.3f}' for t in sorted(times))} ns (the model has no latency per hop)"
    return _claim(4, "uncontended results do not depend on which SPEs take part", len(times) == 1, why)


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
    statement = "nonblocking puts reach 25.6 GB/s at 2 KB (memory) and no later (local store)"
    return _claim(7, statement, memory <= 2048 and local <= memory, why)


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
    hot = f.loads["local store", True, 8].total - f.loads["local store", False, 8].total
    pair = f.loads["pairwise", True, 8].total - f.loads["pairwise", False, 8].total
    why = f"hot spot {hot:.2f}, pairwise {pair:.1f} GB/s; both calibrated, one number each"
    statement = "under load gets beat puts: hot spot by about 1.5, pairwise by about 40 GB/s (calibrated)"
    return _claim(10, statement, abs(hot - 1.5) < 0.5 and abs(pair - 40) <= 4, why)


def _complement_beats_pairwise_put(f: Findings) -> Claim:
    get, put = (f.loads["complement", g, 8].total for g in (True, False))
    pair = f.loads["pairwise", False, 8].total
    why = (
        f"complement get {get:.1f}, put {put:.1f}; pairwise put {pair:.1f} GB/s: "
        "the calibration slows puts of both patterns alike"
    )
    return _claim(11, "8 SPEs: complement is faster than pairwise put", get > pair, why)


def _complement_reaches_the_limit(f: Findings) -> Claim:
    get, put = (f.loads["complement", g, 8].total for g in (True, False))
    free = f.uncalibrated["complement", False, 8].total
    limit = snoop_limit(f.machine)
    why = (
        f"get {get:.1f} GB/s = {100 * get / limit:.1f} %; put {put:.1f}, and {free:.1f} without the calibration, "
        "which cannot tell pairwise from complement"
    )
    return _claim(12, "complement reaches at least 95 % of 204.8 GB/s", get >= 0.95 * limit, why)


def _invariants(f: Findings) -> Claim:
    """Claim 13; that no segment is used twice is a property test of the fabric."""
    most = max(rates.total for rates in f.loads.values())
    shares = [
        float(busy) / float(max(rates.links["busy_ps"]))
        for rates in f.loads.values()
        for name, busy in zip(rates.links["name"], rates.links["busy_ps"], strict=True)
        if name.startswith("ring ")
    ]
    pairs = [(i, j) for i in range(SPES + 1) for j in range(SPES + 1)]
    longest = max(hops for hops, _ in experiments.quiet(f.machine, pairs))
    why = (
        f"largest aggregate {most:.2f} GB/s, busiest segment {100 * max(shares):.1f} % of the busiest part, "
        f"longest path {longest}"
    )
    holds = most <= snoop_limit(f.machine) * 1.0001 and longest <= 6 and max(shares) <= 1
    return _claim(13, "aggregate at most 204.8 GB/s, no path above 6, no segment used twice at once", holds, why)


def _spes_are_alike(f: Findings) -> Claim:
    spreads = {}
    for op, taken in f.latencies.items():
        medians = np.median(taken, axis=1)
        spreads[op] = 100 * (medians.max() / medians.min() - 1)
    rates = [f.loads["main memory", g, 8].each for g in (False, True)]
    apart = max(100 * (max(r) / min(r) - 1) for r in rates)
    why = ", ".join(f"{op}: medians of the SPEs within {s:.2f} %" for op, s in spreads.items())
    why += f"; rates within {apart:.2f} %"
    holds = max(*spreads.values(), apart) <= 2
    return _claim(14, "SPEs are treated alike under the memory hot spot (medians within 2 %)", holds, why)


def _full_queues_stall(f: Findings) -> Claim:
    sixteenth, seventeenth = experiments.full_queue(f.machine)
    lines = experiments.run(f.machine, [("SPE0", ["put SPE1 16384", "wait"])])
    first = float(lines["complete_ps"][0] - lines["issued_ps"][0]) / 1e3
    why = (
        f"the 16th DMA in a row enters the queue {sixteenth:.1f} ns after the 15th, the 17th {seventeenth:.1f} ns "
        f"after that: when the first is complete ({first:.0f} ns from its issue)"
    )
    return _claim(
        15,
        "a full command queue stalls the SPU; entries stay until all their requests are done",
        seventeenth > 10 * sixteenth,
        why,
    )


def _off_the_line_is_slower(f: Findings) -> Claim:
    rates = {row["addresses"]: row["rate_gb_per_s"] for row in experiments.alignment(f.machine)}
    whole = rates["whole lines"]
    off = ("only the target half a line off", "32 lines and 16 bytes", "pieces of 112 bytes")
    why = ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items()) + " GB/s"
    statement = "a size that is no multiple of 128 B or unaligned addresses lower the rate"
    return _claim(16, statement, all(rates[name] < whole for name in off), why)
