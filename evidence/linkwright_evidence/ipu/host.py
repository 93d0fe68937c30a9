"""Tables 4.19 and 4.20: from the host to tiles.

A data stream pulls the block of each tile from the host's memory: one start, then the lanes of each chip or,
where several chips of a group are busy, the lanes of the group. Device ids are names: the chip that the host
calls 0 sits at position 7 of the ladder.
"""

from __future__ import annotations

import re
from collections import Counter

from linkwright import _native
from linkwright_evidence.ipu.bench import PLACES, TILES, WORD, Bench, Superstep, chip_tiles, tile
from linkwright_evidence.ipu.p2p import SCALES
from linkwright_evidence.ipu.tables import BANDWIDTH, LATENCY, Table

# Bytes of a tile: the report's 40 KB are decimal here.
BLOCK = 40_000


def position(bench: Bench, device: int) -> int:
    """Position on the ladder of the chip with this device id."""
    return _native.devices(bench.machines["server"])[device]["first"]


def members(bench: Bench, row: dict[str, str]) -> tuple[int, ...]:
    """The tiles that a row writes to."""
    count, place = int(row["endpoints"]), row["placement"]
    named = re.search(r"on IPU (\d+)$", row["label"])
    if place == "host":
        first = position(bench, int(named[1]) if named else 0)
        return tuple(tile(first, index) for index in range(count))
    chips = range(SCALES[place]) if place in SCALES else PLACES[place]
    if count == len(chips):
        return tuple(tile(chip, 0) for chip in chips)
    return chip_tiles(*chips)


def write_time(bench: Bench, tiles: tuple[int, ...], size: int) -> float:
    """Time until all tiles have their block."""
    return bench.time(Superstep(("host", len(tiles), size), "host", tiles=tiles))


def latency(bench: Bench, row: dict[str, str]) -> float:
    """Table 4.19."""
    return write_time(bench, members(bench, row), WORD)


def bandwidth(bench: Bench, row: dict[str, str]) -> float:
    """Table 4.20: PCIe lanes in use, GB/s in all, MB/s of a tile."""
    tiles = members(bench, row)
    if row["metric"] == "lanes":
        return lanes(bench, tiles)
    aggregate = len(tiles) * BLOCK / (1e3 * write_time(bench, tiles, BLOCK))
    return aggregate if row["metric"] == "bandwidth_aggregate" else 1e3 * aggregate / len(tiles)


def lanes(bench: Bench, tiles: tuple[int, ...]) -> int:
    """Lanes between the host and the chips of these tiles: those of each chip, as far as its group has them."""
    own, shared = int(bench.number("facts.chip_lanes")), int(bench.number("facts.group_lanes"))
    group = int(bench.number("facts.group_chips"))
    groups = Counter(chip // group for chip in {each // TILES for each in tiles})
    return sum(min(shared, own * chips) for chips in groups.values())


TABLES = [
    Table("4.19", "t4_19_host_latency.csv", LATENCY, latency, errata={4: "I15: below the stated minimum"}),
    Table("4.20", "t4_20_host_bandwidth.csv", BANDWIDTH, bandwidth),
]
