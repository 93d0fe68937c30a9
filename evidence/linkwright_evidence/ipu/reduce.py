"""Tables 4.16 to 4.18: the library's sum to one tile.

Supersteps of a sum over tiles: every tile folds its operands, one per cycle; the partial sums are collected by
`reduce/by_rows`, one row for each chip, and folded. Few operands are folded by the same vertex that starts the sum;
many need a vertex of their own.
"""

from __future__ import annotations

from linkwright_evidence.ipu.bench import PLACES, WORD, Bench, Superstep, chip_tiles, tile
from linkwright_evidence.ipu.p2p import SCALES
from linkwright_evidence.ipu.tables import BANDWIDTH, LATENCY, Table


def chips_of(place: str) -> tuple[int, ...]:
    """Positions of the chips of a placement."""
    if place in SCALES:
        return tuple(range(SCALES[place]))
    return (0,) if place in ("on-chip", "single-tile") else PLACES[place]


def sum_time(bench: Bench, place: str, tiles: int, operands: int) -> float:
    """Time to add `operands` on each of `tiles` tiles."""
    chips = chips_of(place)
    if tiles == 1:
        path = "reduce_tile" if operands > 1 else "reduce_single"
        return bench.time(Superstep(("fold", operands), path))
    if tiles == len(chips):
        gather = ("reduce/linear", tiles, 1, WORD, None)
        ends = tuple(tile(chip, 0) for chip in chips)
        return bench.time(Superstep(("fold", 1), "reduce_single"), Superstep(gather, "reduce_single", tiles=ends))
    path = "reduce_chip" if len(chips) == 1 else "reduce_links"
    columns = tiles // len(chips)
    collect = ("reduce/by_rows", tiles, 1, WORD, (columns, len(chips)))
    if "rows" in bench.without:
        collect = ("reduce/linear", tiles, 1, WORD, None)
    members = chip_tiles(*chips) if len(chips) > 1 else tuple(range(tiles))
    steps = [Superstep(("fold", operands), path), Superstep(collect, path, tiles=members)]
    if operands >= bench.number("facts.own_vertex"):
        steps.append(Superstep(("fold", 0), path))
    return bench.time(*steps)


def latency(bench: Bench, row: dict[str, str]) -> float:
    """Tables 4.16 and 4.17: us in all, ns by operand; us where 4.16 prints us under a header of ns (I21)."""
    tiles, operands = int(row["endpoints"]), int(row["operands_per_tile"])
    time = sum_time(bench, row["placement"], tiles, operands)
    if row["metric"] == "latency":
        return time
    in_us = row["table"] == "4.16" and 6 <= int(row["row"]) <= 10
    return time * (1 if in_us else 1e3) / (tiles * operands)


def bandwidth(bench: Bench, row: dict[str, str]) -> float:
    """Table 4.18: bytes of all operands by time, in GB/s."""
    tiles, operands = int(row["endpoints"]), int(row["operands_per_tile"])
    each = operands * WORD / (1e3 * sum_time(bench, row["placement"], tiles, operands))
    return each if row["metric"] == "bandwidth_per_tile" else tiles * each


TABLES = [
    Table("4.16", "t4_16_reduce_latency_weak.csv", LATENCY, latency),
    Table("4.17", "t4_17_reduce_latency_strong.csv", LATENCY, latency),
    Table(
        "4.18",
        "t4_18_reduce_bandwidth_weak.csv",
        BANDWIDTH,
        bandwidth,
        errata={
            (2, "bandwidth_per_tile"): "I04: the aggregate gives 2.657",
            (26, "bandwidth_per_tile"): "I05: divided by twice the tiles",
            (27, "bandwidth_per_tile"): "I05: divided by twice the tiles",
        }
        | {
            (row, "bandwidth_aggregate"): "printed as a small integer; the value per tile is scored"
            for row in range(6, 11)
        },
    ),
]
