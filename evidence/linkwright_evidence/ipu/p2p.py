"""Tables 4.1 to 4.7: point to point on a chip, between chips, alone and under load.

On a chip the pairs are drawn at random and disjoint; a row with n pairs is the mean over many draws, each of
which ends with its slowest pair. Between chips all tiles of one chip send to distinct random tiles of the other.
Random destinations in a set of chips are taken to cross the middle of the ladder, at every scale (a rule of
the machine file): the two open rows with two chips have the digits of traffic that all crosses.
"""

from __future__ import annotations

import functools
import random
import statistics

from linkwright_evidence.ipu.bench import PLACES, TILES, WORD, Bench, Superstep, tile
from linkwright_evidence.ipu.tables import BANDWIDTH, LATENCY, Table

BLOCK = 100 * 1024
SCALES = {"two-boards": 4, "four-boards": 8, "system": 16}


def chip_time(bench: Bench, transfers: int, size: int) -> float:
    """Mean time of `transfers` disjoint random pairs on one chip."""
    return statistics.fmean(chip_draws(bench, transfers, size))


def chip_draws(bench: Bench, transfers: int, size: int) -> list[float]:
    """The time of each draw; where all tiles send, the tiles form one random circle."""
    draws = bench.draws if transfers < 100 else max(bench.draws // 10, 3)
    if transfers == TILES:
        ranks, pairs = TILES, tuple((i, (i + 1) % TILES) for i in range(TILES))
    else:
        ranks, pairs = 2 * transfers, tuple((i, transfers + i) for i in range(transfers))
    schedule = ("flows", ranks, pairs, size)
    steps = (Superstep(schedule, "pairs", "chip", shuffle=1000 * bench.seed + draw) for draw in range(draws))
    return [bench.time(step) for step in steps]


@functools.cache
def crossing(sources: tuple[int, ...], targets: tuple[int, ...], seed: int) -> tuple[tuple[int, int], ...]:
    """Every tile of some chips sends to a tile of some others, each of which receives once."""
    drawn = [tile(chip, index) for chip in targets for index in range(TILES)]
    random.Random(seed).shuffle(drawn)
    return tuple(zip((tile(chip, index) for chip in sources for index in range(TILES)), drawn, strict=True))


def flows_time(bench: Bench, pairs: tuple[tuple[int, int], ...], size: int) -> float:
    """Time of one message for each pair of tiles of the server."""
    used = sorted({each for pair in pairs for each in pair})
    rank = {each: index for index, each in enumerate(used)}
    ranks = tuple((rank[source], rank[target]) for source, target in pairs)
    return bench.time(Superstep(("flows", len(used), ranks, size), tiles=tuple(used)))


def between_chips(bench: Bench, chips: tuple[int, int], size: int, both: bool = False) -> float:
    """All tiles of one chip to those of another, one way or both."""
    one, other = chips
    pairs = crossing((one,), (other,), bench.seed)
    if both:
        pairs += crossing((other,), (one,), bench.seed + 1)
    return flows_time(bench, pairs, size)


def across_the_middle(bench: Bench, chips: int, size: int) -> float:
    """All tiles of the first `chips` positions to random tiles of the other half of these."""
    low, high = tuple(range(chips // 2)), tuple(range(chips // 2, chips))
    if "crossing" in bench.without:
        return flows_time(bench, crossing(low + high, low + high, bench.seed), size)
    pairs = crossing(low, high, bench.seed) + crossing(high, low, bench.seed + 1)
    return flows_time(bench, pairs, size)


def row_time(bench: Bench, row: dict[str, str], size: int) -> float:
    """Time of the phase that a row describes."""
    place, transfers = row["placement"], int(row["transfers"])
    if place == "on-chip":
        return chip_time(bench, transfers, size)
    if place in SCALES:
        return across_the_middle(bench, SCALES[place], size)
    if transfers == 1:
        chips = PLACES[place]
        return flows_time(bench, ((tile(chips[0], 0), tile(chips[1], 0)),), size)
    return between_chips(bench, PLACES[place], size, both=row["pattern"] != "p2p")


def latency(bench: Bench, row: dict[str, str]) -> float:
    """Tables 4.1 and 4.3."""
    time = row_time(bench, row, WORD)
    return time if row["metric"] == "latency" else 1e3 * time / int(row["transfers"])


def bandwidth(size: int, bench: Bench, row: dict[str, str]) -> float:
    """Tables 4.4, 4.6 and 4.7: GB/s of all transfers, or GB/s or MB/s of one."""
    transfers = int(row["transfers"])
    aggregate = transfers * size / (1e3 * row_time(bench, row, size))
    if row["metric"] == "bandwidth_aggregate":
        return aggregate
    return aggregate / transfers * (1 if row["table"] == "4.4" else 1e3)


def loaded(measure, bench: Bench, row: dict[str, str]) -> float:
    """Tables 4.2 and 4.5: alone, under load, and the ratio."""
    alone = measure(bench, {**row, "transfers": "1"})
    under = measure(bench, {**row, "transfers": str(TILES)})
    if row["metric"].endswith("degradation"):
        return max(alone, under) / min(alone, under)
    return under if row["metric"].endswith("under_load") else alone


def _alone_latency(bench: Bench, row: dict[str, str]) -> float:
    return row_time(bench, row, WORD)


def _transfer_bandwidth(bench: Bench, row: dict[str, str]) -> float:
    return BLOCK / (1e3 * row_time(bench, row, BLOCK))


TABLES = [
    Table("4.1", "t4_01_p2p_latency_noload.csv", LATENCY, latency),
    Table("4.2", "t4_02_p2p_latency_congestion.csv", LATENCY, functools.partial(loaded, _alone_latency)),
    Table(
        "4.3",
        "t4_03_p2p_latency_load.csv",
        LATENCY,
        latency,
        apart=dict.fromkeys((18, 19, 20), "random, 4 and more chips"),
    ),
    Table("4.4", "t4_04_p2p_bandwidth_noload.csv", BANDWIDTH, functools.partial(bandwidth, BLOCK)),
    Table("4.5", "t4_05_p2p_bandwidth_congestion.csv", BANDWIDTH, functools.partial(loaded, _transfer_bandwidth)),
    Table("4.6", "t4_06_p2p_bandwidth_load.csv", BANDWIDTH, functools.partial(bandwidth, BLOCK)),
    Table("4.7", "t4_07_p2p_bandwidth_multithreaded.csv", BANDWIDTH, functools.partial(bandwidth, BLOCK)),
]
