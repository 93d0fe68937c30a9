"""Tables 4.8 to 4.15: broadcast, gather, scatter and all-to-all.

The schedules are those of the registry, whose data movement is the report's: one multicast, everyone straight
to the root, the root straight to everyone, everyone to everyone. Sets of n tiles are tiles 1..n of a chip with
tile 0 as the root, which is one of them where all take part; an all-to-all takes random tiles, because it starts
like loaded point to point.
"""

from __future__ import annotations

import functools
import statistics

from linkwright_evidence.ipu.bench import PLACES, TILES, WORD, Bench, Superstep, chip_tiles
from linkwright_evidence.ipu.p2p import BLOCK, SCALES
from linkwright_evidence.ipu.tables import BANDWIDTH, LATENCY, Table, Waived
from linkwright_evidence.scoring import Target

KIB = 1024


def collective(key: str, ranks: int, block: int) -> tuple:
    """Schedule of algorithm `key` with `block` bytes for each rank."""
    blocks = 1 if key.startswith("broadcast") else ranks
    return (key, ranks, blocks * block // WORD, WORD, None)


def fits(bench: Bench, messages: int, size: int) -> Waived | None:
    """Whether the tile at the root has room for so many messages."""
    room = bench.number("facts.tile_buffer") * KIB
    if messages * size <= room:
        return None
    return Waived(f"{messages} messages of {size} B do not fit a tile, which has room for {room:.0f} B")


def members(row: dict[str, str]) -> tuple[int, ...]:
    """Tiles of a row between chips, the root first: its own chip takes part from (e) on."""
    place = row["placement"]
    if place in SCALES:
        return chip_tiles(*range(SCALES[place]))
    root, other = PLACES[place]
    if row["scale_ipus"] == "1":
        return (root * TILES, *chip_tiles(other))
    return chip_tiles(root, other)


def rooted(key: str, paths: dict[str, str], bench: Bench, row: dict[str, str], size: int) -> float | Waived:
    """Time of a collective with a root, in one of the placements of the report."""
    place, count = row["placement"], int(row["endpoints"] or 0)
    if place == "self":
        return bench.time(Superstep(("copy", size), paths["self"], "chip"))
    if place == "on-chip":
        lacking = fits(bench, 2 if key.startswith("broadcast") else count, size)
        # n tiles have the root besides, up to the whole chip.
        ranks = min(count + 1, TILES)
        step = Superstep(collective(key, ranks, size), paths["on-chip"], "chip")
    else:
        tiles = members(row)
        lacking = fits(bench, 2 if key.startswith("broadcast") else len(tiles), size)
        path = paths["own chip too" if row["scale_ipus"] != "1" else "other chip"]
        step = Superstep(collective(key, len(tiles), size), path, tiles=tiles)
    return lacking or bench.time(step)


WORDS = {"self": "words", "on-chip": "words", "own chip too": "words", "other chip": "words"}
GATHER_BLOCKS = dict.fromkeys(WORDS, "gather_blocks")
SCATTER_WORDS = WORDS | {"on-chip": "scatter_words", "own chip too": "scatter_words"}
SCATTER_BLOCKS = WORDS | {"on-chip": "scatter_blocks"}

broadcast = functools.partial(rooted, "broadcast/multicast", WORDS)
gather_words = functools.partial(rooted, "gather/linear", WORDS)
gather_blocks = functools.partial(rooted, "gather/linear", GATHER_BLOCKS)
scatter_words = functools.partial(rooted, "scatter/linear", SCATTER_WORDS)
scatter_blocks = functools.partial(rooted, "scatter/linear", SCATTER_BLOCKS)


def latency(measure, bench: Bench, row: dict[str, str]) -> float | Waived:
    """Time of one word, in all (us) or by transfer (ns)."""
    time = measure(bench, row, WORD)
    if isinstance(time, Waived) or row["metric"] == "latency":
        return time
    return 1e3 * time / int(row["transfers"] or row["endpoints"])


def bandwidth(measure, bench: Bench, row: dict[str, str]) -> float | Waived:
    """Rate of one block for each tile: GB/s in all, or of one tile in GB/s (table 4.9) or MB/s."""
    size, tiles = int(row["message_bytes"]), int(row["endpoints"])
    time = measure(bench, row, size)
    if isinstance(time, Waived):
        return time
    aggregate = tiles * size / (1e3 * time)
    if row["metric"] == "bandwidth_aggregate":
        return aggregate
    return aggregate / tiles * (1 if row["table"] == "4.9" else 1e3)


def broadcast_rate(bench: Bench, row: dict[str, str], size: int) -> float:
    """GB/s into all tiles of a row of table 4.10."""
    tiles = TILES * int(row["scale_ipus"])
    time = broadcast(bench, {**row, "endpoints": str(tiles)}, size)
    return tiles * size / (1e3 * time)


def message_size(bench: Bench, row: dict[str, str]) -> float:
    """Table 4.10: share of peak at 1 KiB, smallest size with 90 % of peak, peak."""
    peak = broadcast_rate(bench, row, BLOCK)
    if row["metric"] == "bandwidth_aggregate_peak":
        return peak
    if row["metric"] == "bandwidth_fraction_of_peak":
        return 100 * broadcast_rate(bench, row, KIB) / peak
    least, most = 1, BLOCK // WORD
    while least < most:
        middle = (least + most) // 2
        if broadcast_rate(bench, row, middle * WORD) >= 0.9 * peak:
            most = middle
        else:
            least = middle + 1
    return least * WORD / KIB


def alltoall(bench: Bench, row: dict[str, str], size: int) -> float | Waived:
    """One word from every to every tile; the mean over a few draws of the tiles."""
    count = int(row["endpoints"])
    if row["placement"] == "self":
        return bench.time(Superstep(("copy", size), "words", "chip"))
    if count > bench.number("facts.alltoall_most"):
        return Waived("the report stops at half a chip, a limit whose cause it does not publish")
    # Draws differ by a few ns, which an exchange of thousands of cycles hides.
    draws = 1 if count >= 304 else max(bench.draws // 5, 3)
    schedule = collective("alltoall/linear", count, size)
    steps = (Superstep(schedule, "words", "chip", shuffle=1000 * bench.seed + draw) for draw in range(draws))
    return statistics.fmean(bench.time(step) for step in steps)


OTHER_SIZES = "90 % size of (b) to (g)"
TABLES = [
    Table("4.8", "t4_08_broadcast_latency.csv", LATENCY, functools.partial(latency, broadcast)),
    Table("4.9", "t4_09_broadcast_bandwidth.csv", BANDWIDTH, functools.partial(bandwidth, broadcast)),
    Table(
        "4.10",
        "t4_10_broadcast_message_size.csv",
        Target(0.15, None, 0.15),
        message_size,
        apart={(row, "message_size_for_90pct_peak"): OTHER_SIZES for row in range(2, 8)}
        | {(row, "message_size_for_90pct_peak"): "90 % size" for row in (1, 8, 9, 10)}
        | {(row, "bandwidth_aggregate_peak"): "peak" for row in range(1, 11)}
        | {(7, "bandwidth_fraction_of_peak"): "(g)"},
    ),
    Table("4.11", "t4_11_gather_latency.csv", LATENCY, functools.partial(latency, gather_words)),
    Table(
        "4.12",
        "t4_12_gather_bandwidth.csv",
        LATENCY,
        functools.partial(bandwidth, gather_blocks),
        apart=dict.fromkeys(range(15, 21), "(e) to (j)"),
    ),
    Table(
        "4.13",
        "t4_13_scatter_latency.csv",
        LATENCY,
        functools.partial(latency, scatter_words),
        errata={(12, "latency_per_transfer"): "I01: prints the total again"},
    ),
    Table("4.14", "t4_14_scatter_bandwidth.csv", BANDWIDTH, functools.partial(bandwidth, scatter_blocks)),
    Table(
        "4.15",
        "t4_15_alltoall_latency.csv",
        LATENCY,
        functools.partial(latency, alltoall),
        errata={(10, "latency_per_transfer"): "printed with one digit; the total gives 0.0015"},
    ),
]
