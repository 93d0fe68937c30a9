"""Figure 6: hot spots and patterns under full load, the documented ways to lose bandwidth, and small sets of flows.

All DMAs are of 16 KB and nonblocking. Aggregates are sums over the SPEs that issue. The slowest and the fastest SPE
are listed with each, because a sum can be perfect while one SPE starves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linkwright_evidence import Options, parallel_by_case
from linkwright_evidence.cell import known, streams
from linkwright_evidence.cell.streams import Rates, Stream

HOT = {"main memory": (streams.memory, range(1, 9)), "local store": (streams.hot_store, range(2, 9))}
STATIC = {"complement": streams.complement, "pairwise": streams.pairwise}
COUNTS = (2, 4, 6, 8)
# The complement needs a power of two.
COMPLEMENT_COUNTS = (2, 4, 8)
SEEDS = tuple(range(1, 7))

# (spot or pattern, get, SPEs) -> rates; uniform: one for each seed.
Loads = dict[tuple, Rates]


def measure(machine, options: Options, seeds: tuple[int, ...] = SEEDS) -> Loads:
    """Every point of figure 6."""
    cases: dict[tuple, Stream] = {}
    for get in (False, True):
        for spot, (make, counts) in HOT.items():
            cases |= {(spot, get, count): make(count, get) for count in counts}
        for pattern, make in STATIC.items():
            cases |= {(pattern, get, count): make(count, get) for count in counts_of(pattern)}
        for count in COUNTS:
            drawn = seeds if count > 2 else seeds[:1]  # two SPEs have only each other
            cases |= {("uniform", get, count, seed): streams.uniform(count, get, seed) for seed in drawn}

    return parallel_by_case(lambda *key: streams.measure(machine, cases[key]), cases, options, "hot spots and patterns")


def counts_of(pattern: str) -> tuple[int, ...]:
    """Numbers of SPEs that take part in a pattern of figure 6b."""
    return COMPLEMENT_COUNTS if pattern == "complement" else COUNTS


def word(get: bool) -> str:
    """`get` or `put`."""
    return "get" if get else "put"


def hot_rows(loads: Loads) -> list[dict]:
    """Figure 6a."""
    rows = []
    for spot, (_, counts) in HOT.items():
        for get in (False, True):
            rows += [_known_row(f"{word(get)} at {spot}", loads[spot, get, count], count) for count in counts]
    return rows


def _known_row(operation: str, rates: Rates, spes: int) -> dict:
    """One point beside the published aggregate, if there is one."""
    return {"operation": operation, "spes": spes, **figures(rates), **_published(operation, spes)}


def _published(operation: str, spes: int) -> dict:
    return {"published_aggregate_gb_per_s": known.point("GB/s", operation, "unlimited", 16384, spes)}


def pattern_rows(loads: Loads) -> list[dict]:
    """Figure 6b; uniform as mean, least and most over seeds."""
    rows = []
    for pattern in STATIC:
        for get in (False, True):
            own = counts_of(pattern)
            rows += [_known_row(f"{word(get)} {pattern}", loads[pattern, get, count], count) for count in own]
    for get in (False, True):
        for count in COUNTS:
            each = [rate for r in of_seeds(loads, get, count) for rate in r.each]
            operation = f"{word(get)} uniform"
            of_all = {
                "aggregate_gb_per_s": total(loads, "uniform", get, count),
                "slowest_gb_per_s": min(each),
                "fastest_gb_per_s": max(each),
            }
            rows.append({"operation": operation, "spes": count, **of_all, **_published(operation, count)})
    return rows


def of_seeds(loads: Loads, get: bool, count: int) -> list[Rates]:
    """The uniform runs of all seeds."""
    return [rates for key, rates in loads.items() if key[:3] == ("uniform", get, count)]


def total(loads: Loads, pattern: str, get: bool, count: int) -> float:
    """Aggregate in GB/s; uniform: mean over seeds."""
    found = of_seeds(loads, get, count) if pattern == "uniform" else [loads[pattern, get, count]]
    return sum(rates.total for rates in found) / len(found)


def figures(rates: Rates) -> dict:
    """Aggregate, and the slowest and the fastest SPE."""
    return {"aggregate_gb_per_s": rates.total, "slowest_gb_per_s": min(rates.each), "fastest_gb_per_s": max(rates.each)}


# Places on the ring of SPE 0 to 7, to make flows of one direction; see the machine file.
RING = (10, 1, 9, 2, 8, 3, 7, 4)
_ROUND = sorted(range(8), key=lambda spe: RING[spe])


def _clockwise() -> Stream:
    """Every SPE to the third one clockwise: all transfers in one direction, two rings idle."""
    partner = {spe: _ROUND[(place + 3) % 8] for place, spe in enumerate(_ROUND)}
    return Stream(tuple(range(8)), tuple((partner[i],) for i in range(8)), get=True)


def _neighbours() -> Stream:
    """SPEs next to each other on the ring exchange: short paths."""
    partner = {}
    for place in range(0, 8, 2):
        a, b = _ROUND[place], _ROUND[place + 1]
        partner |= {a: b, b: a}
    return Stream(tuple(range(8)), tuple((partner[i],) for i in range(8)), get=True)


DOCUMENTED_LOSSES = (
    "half the ring each (complement)",
    "one shared destination",
    "all in one direction",
    "partial lines",
)
HALF, SHARED, ONE_WAY, PARTIAL = DOCUMENTED_LOSSES
# With identity placement every transfer of the complement goes half the ring, so it is a loss case itself.
LOSSES: dict[str, Callable[[], Stream]] = {
    HALF: lambda: streams.complement(8, get=True),
    SHARED: lambda: Stream(tuple(range(1, 8)), ((0,),) * 7, get=False),
    ONE_WAY: _clockwise,
    PARTIAL: lambda: Stream(tuple(range(8)), tuple((7 - i,) for i in range(8)), get=True, size=112),
    "neighbours two segments apart at most": _neighbours,
}


def losses(machine, options: Options) -> dict[str, Rates]:
    """The documented loss cases beside the best pattern; distances are of identity placement."""
    return parallel_by_case(lambda name: streams.measure(machine, LOSSES[name]()), LOSSES, options, "loss cases")


def loss_rows(found: Mapping[str, Rates]) -> list[dict]:
    """Each loss case as a share of the best of all."""
    best = max(rates.total for rates in found.values())
    return [
        {"case": name, "flows": len(rates.each), **figures(rates), "of_best_percent": 100 * rates.total / best}
        for name, rates in found.items()
    ]


def ring_shares(rates: Rates) -> dict[str, float]:
    """Share of time in percent that each ring moves something on a segment, in the mean over its segments."""
    links = rates.links
    busiest = max(busy for name, busy in zip(links.name, links.busy_ps, strict=True) if name.endswith((" in", " out")))
    shares: dict[str, list[float]] = {}
    for name, busy in zip(links.name, links.busy_ps, strict=True):
        if name.startswith("ring "):
            shares.setdefault(" ".join(name.split()[:2]), []).append(100 * float(busy) / float(busiest))
    return {ring: sum(part) / len(part) for ring, part in shares.items()}
