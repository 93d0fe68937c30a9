"""Claims on places: which ranks finish early or late, which talk to each other, and which links carry nothing."""

from __future__ import annotations

import numpy as np

from linkwright_evidence.outcome import Claim
from linkwright_evidence.wormhole.allreduce import BO_SIZES_KIB, LO_SIZES_KIB, Timing, deviation_percent
from linkwright_evidence.wormhole.facts import Grounds
from linkwright_evidence.wormhole.layout import Layout, exchanges, hop_table

LARGE_KIB = 128
EARLY_COLUMNS = (7, 9)
FOUR = ((3, 3), (3, 7), (7, 3), (7, 7))
# Columns in the order in which ranks finish through shared memory.
SHARED_ORDER = (9, 1, 2, 3, 4, 6, 7, 8)

# (variant, size in KiB, arithmetic) -> timing of the runs.
Times = dict[tuple[str, int, bool], Timing]


def check(times: Times, grounds: Grounds) -> list[Claim]:
    """Claims 19 to 25."""
    layout = grounds.layout
    return [
        _early_columns(times, layout),
        _swing_spreads_more(times),
        _small_spread_alike(times),
        _shared_memory_by_column(times, layout),
        _four_are_early(times, layout),
        _four_talk_among_themselves(grounds),
        _doubling_leaves_the_wrap(grounds),
    ]


def _spread(values: np.ndarray) -> float:
    low, high = np.percentile(values, [25, 75])
    return float(100 * (high - low) / np.median(values))


def by_column(values: np.ndarray, layout: Layout) -> dict[int, float]:
    """Column -> median of its ranks."""
    columns = np.array([x for x, _ in layout.places])
    return {int(x): float(np.median(values[columns == x])) for x in np.unique(columns)}


def _early_columns(times: Times, layout: Layout) -> Claim:
    found = {
        f"{order} {size} kB": by_column(deviation_percent(times[f"{order}_BO", size, True].own_start()), layout)
        for order in ("swing", "rd")
        for size in BO_SIZES_KIB
    }
    early = {name: [columns[x] for x in EARLY_COLUMNS] for name, columns in found.items()}
    good = [name for name, columns in early.items() if all(-1 <= by < 0 for by in columns)]
    most, least = max(max(e) for e in early.values()), min(min(e) for e in early.values())
    why = f"in {len(good)} of {len(early)} cases; their medians lie {least:+.2f} to {most:+.2f} % from that of all"
    return Claim("W-19", "BO: columns 7 and 9 finish early, within 1 %", len(good) == len(early), why)


def _lo_spreads(times: Times, large: bool) -> dict[int, tuple[float, float]]:
    """Size -> IQR over median of Swing and of recursive doubling, in percent."""
    sizes = [size for size in LO_SIZES_KIB if (size >= LARGE_KIB) == large]
    orders = ("swing", "rd")
    return {s: tuple(_spread(times[f"{o}_LO", s, True].own_start()) for o in orders) for s in sizes}


def _swing_spreads_more(times: Times) -> Claim:
    spreads = _lo_spreads(times, large=True)
    least, at = min((swing / doubling, size) for size, (swing, doubling) in spreads.items())
    why = f"smallest ratio of IQRs is {least:.1f} at {at} kB"
    return Claim("W-20", "LO from 128 kB on: Swing spreads over ranks much more than RD (twice)", least >= 2, why)


def _small_spread_alike(times: Times) -> Claim:
    small, large = (_lo_spreads(times, large) for large in (False, True))
    apart = max(max(pair) - min(pair) for pair in small.values())
    means = [float(np.mean([value for pair in spreads.values() for value in pair])) for spreads in (small, large)]
    why = (
        f"IQRs differ by up to {apart:.2f} points; their mean is {means[0]:.2f} %, and {means[1]:.2f} % from 128 kB on"
    )
    statement = "LO below 128 kB: Swing and RD spread alike (within a point), and more than large vectors"
    return Claim("W-21", statement, apart <= 1 and means[0] > means[1], why)


def _shared_memory_by_column(times: Times, layout: Layout) -> Claim:
    found = by_column(times["SM", BO_SIZES_KIB[-1], True].own_start(), layout)
    order = sorted(found, key=lambda x: found[x])
    why = f"at {BO_SIZES_KIB[-1]} kB columns finish in the order {', '.join(map(str, order))}"
    statement = "SM: finish times rise from column 9, to the right around the ring, to column 8"
    return Claim("W-22", statement, order == list(SHARED_ORDER), why)


def _four_are_early(times: Times, layout: Layout) -> Claim:
    ranks = [layout.places.index(place) for place in FOUR]
    sizes = [size for size in LO_SIZES_KIB if size >= LARGE_KIB]
    timings = [times["swing_LO", size, True] for size in sizes]
    first, own = (
        [float(np.mean(deviation_percent(values)[ranks])) for values in both]
        for both in ([t.first_start() for t in timings], [t.own_start() for t in timings])
    )
    holds = all(-6 <= early < 0 for early in first) and all(abs(late) <= 1 for late in own)
    why = (
        f"their mean lies {min(first):+.2f} to {max(first):+.2f} % from the median of all from the first start, "
        f"{min(own):+.2f} to {max(own):+.2f} % from their own"
    )
    statement = "LO Swing from 128 kB on: (3,3), (3,7), (7,3), (7,7) end up to 6 % early, but not from their own start"
    return Claim("W-23", statement, holds, why)


def _four_talk_among_themselves(grounds: Grounds) -> Claim:
    ranks = {grounds.layout.places.index(place) for place in FOUR}
    last = [{(a, b) for a, b, _, _ in step if {a, b} & ranks} for step in exchanges(grounds.swing)[-2:]]
    among = all(set(pair) <= ranks for step in last for pair in step)
    hops = sorted({int(h) for h in hop_table(grounds.swing, grounds.layout).sum(0)[sorted(ranks)]})
    why = f"{'only' if among else 'not only'} among themselves; {' and '.join(map(str, hops))} hops in all"
    statement = "these four only exchange with each other in the last two steps, over 12 to 13 hops in all"
    return Claim("W-24", statement, among and set(hops) <= {12, 13}, why)


def _doubling_leaves_the_wrap(grounds: Grounds) -> Claim:
    layout, last = grounds.layout, grounds.layout.size[1] - 1
    wraps = [
        link
        for step in exchanges(grounds.doubling)
        for source, target, plus, _ in step
        for link in layout.path(source, target, plus)
        if link[1] == "y" and link[3] == (last if link[0] else 0)
    ]
    why = f"{len(wraps)} of its transfers cross the border between the last row and the first"
    return Claim("W-25", "RD never uses the long vertical wrap link", not wraps, why)
