"""The exchange fabric by hand: chips, ladder and host of the C2 machines, one mechanism at a time.

Times are derived beside each case from the numbers of the machine file, in cycles of 0.625 ns where they are on a
chip: a word takes sync 90 + transit 58 + 1 = 149 cycles between the nearest tiles.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base.errors import LinkwrightError
from linkwright.machines import devices, load

CYCLE_NS = 0.625
START = 148  # sync and transit
TILES = 1216
LADDER = {
    "efficiency": "1",
    "base": "1",
    "rail_hop": "0.5",
    "rung_hop": "0.25",
    "message_cost": "10",
    "packet_fill": "0",
}


@pytest.fixture(scope="module")
def chip():
    machine = load("ipu-c2-chip")
    round_numbers = {
        "fabric.floorplan.column_step": "5",
        "fabric.collect_lead": "80",
        "fabric.multicast.wide_start": "40",
    }
    return _with(machine, round_numbers)


@pytest.fixture(scope="module")
def server():
    """Latency 1 us + 0.5 per rail + 0.25 per rung, links of 32 GB/s, 10 ns for a stream on a rail."""
    return _with(load("ipu-c2-server"), {f"fabric.ladder.{key}": value for key, value in LADDER.items()})


def _with(machine, values):
    for key, value in values.items():
        machine = machine.with_value(key, value)
    return machine


def time_ns(machine, flows, size=4, multicast=False):
    """Time of one phase: `flows` are (source, target) tiles, or (source, targets) with `multicast`."""
    ends = {end for source, target in flows for end in (source, *(target if multicast else (target,)))}
    tiles = sorted(ends)
    rank = {tile: index for index, tile in enumerate(tiles)}
    builder = _native.Builder("pattern", len(tiles), len(flows) * size, element_bytes=1)
    builder.buffer("input", len(flows))
    builder.buffer("output", len(flows))
    builder.step()
    for index, (source, target) in enumerate(flows):
        if multicast:
            builder.multicast(rank[source], [rank[each] for each in target], "input", index, into="output")
        else:
            builder.put(rank[source], rank[target], "input", index, into="output")
    return ask(machine, builder.finish(), How(issue="unlimited", placement=list(tiles))).time.ns


CHIP_CASES = [
    ("a word between neighbours: 148 + 1", [(1, 0)], 4, 149 * CYCLE_NS),
    ("a byte fills a word", [(1, 0)], 1, 149 * CYCLE_NS),
    ("400 B are 100 words: 148 + 100", [(1, 0)], 400, 248 * CYCLE_NS),
    # Tile 38 is on island 18, 2 cycles each.
    ("to the farthest island: + 36", [(1, 38)], 4, 185 * CYCLE_NS),
    ("the island of the source is free", [(38, 1)], 4, 149 * CYCLE_NS),
    # Column 8 is above column 7: seven columns of 5 ns to the left, none to the right.
    ("seven columns left: + 7 x 5 ns", [(8 * 76, 0)], 4, 149 * CYCLE_NS + 35),
    ("seven columns right", [(0, 8 * 76)], 4, 149 * CYCLE_NS),
    ("disjoint pairs end with the slowest", [(1, 0), (2, 38)], 4, 185 * CYCLE_NS),
    # The source sends the far one first: 148 + 10 words, although one island is 36 cycles away.
    ("scatter: places hide", [(0, 1 + i) for i in range(9)] + [(0, 38)], 400, (START + 1000) * CYCLE_NS),
    # 80 ns and ten words of ten sources with nothing else to do.
    ("gather: from 80 ns on", [(1 + i, 0) for i in range(100)], 4, 80 + 100 * CYCLE_NS),
    ("a short gather is no faster than a word", [(1, 0), (2, 0)], 4, 149 * CYCLE_NS - CYCLE_NS),
]


@pytest.mark.parametrize(("name", "flows", "size", "expected"), CHIP_CASES, ids=[case[0] for case in CHIP_CASES])
def test_chip(chip, name, flows, size, expected):
    assert time_ns(chip, flows, size) == pytest.approx(expected, abs=0.7)


def test_places_add_where_both_ends_have_queues(chip):
    # Two by two: tiles 0 and 1 both send to 38 and 39 (island 18): 148 + 36 + 2 words.
    flows = [(source, target) for source in (0, 1) for target in (38, 39)]
    assert time_ns(chip, flows) == pytest.approx(186 * CYCLE_NS, abs=0.01)


def test_multicast(chip):
    # Up to 3 targets at the rate of a port, from 4 on at twice that: 148 + 1000 and 148 + 500 words.
    for targets, words in ((3, 1000), (4, 500)):
        flows = [(0, tuple(range(1, 1 + targets)))]
        assert time_ns(chip, flows, 4000, multicast=True) == pytest.approx((START + words) * CYCLE_NS)
    # To 16 targets no place counts; to 17 it starts 40 ns later and crosses 7 columns of 5 ns.
    near = [(0, tuple(range(30, 46)))]
    assert time_ns(chip, near, 4, multicast=True) == pytest.approx((START + 0.5) * CYCLE_NS, abs=0.01)
    wide = [(0, (*range(1, 17), 8 * 76))]
    assert time_ns(chip, wide, 4, multicast=True) == pytest.approx((START + 0.5) * CYCLE_NS + 75, abs=0.01)


# Position of a tile's chip times 1216. Words take a word time of 0.625 ns at each port and on a link.
WORD = CYCLE_NS
LADDER_CASES = [
    # base + rail or rung + least time of a stream (10 ns, twice on a rung) + a word.
    ("a word over a rail", [(0, 2 * TILES)], 4, 1500 + 10 + WORD),
    ("a word over a rung", [(0, TILES)], 4, 1250 + 20 + WORD),
    ("rung and rail: both least times", [(0, 3 * TILES)], 4, 1750 + 30 + WORD),
    ("seven rails in a row: one least time", [(0, 14 * TILES)], 4, 1000 + 3500 + 10 + WORD),
    # 64,000 B: 10,000 ns at the port, then 2,000 ns on a rail or 1,000 on the two links of a rung.
    ("a block over a rail", [(0, 2 * TILES)], 64000, 1500 + 10000 + 2000),
    ("a block over a rung and a rail", [(0, 3 * TILES)], 64000, 1750 + 10000 + 2000),
    # Ten words of ten tiles to ten tiles: five streams on each link of the rung; to one tile all on one link.
    ("ten streams on a rung", [(i, TILES + i) for i in range(10)], 4, 1250 + 5 * 20 + WORD),
    ("both ways", [(i, TILES + i) for i in range(10)] + [(TILES + 10 + i, 10 + i) for i in range(10)], 4,
     1250 + 10 * 20 + WORD),
    ("ten streams to one tile", [(i, TILES) for i in range(10)], 4, 1250 + 10 * 20 + 10 * WORD),
    # One tile is one stream, whatever it sends: the least time of 10 ns passes while it sends ten words in 6.25.
    ("one stream", [(0, 2 * TILES + i) for i in range(10)], 4, 1500 + 10 + WORD),
    ("a long stream", [(0, 2 * TILES + i) for i in range(100)], 4, 1500 + 100 * WORD + WORD),
    # A chip paces what it sends to rails, even to two: 2 x 10 ns, and 2 x 20 for the rung, less than the way back.
    ("two rails", [(0, 2 * TILES), (1, 3 * TILES)], 4, 1750 + 20 + 20 + WORD),
    # Streams of different chips do not delay each other: both come over the rail 2 -> 0.
    ("two chips into one", [(2 * TILES, 0), (3 * TILES, 1)], 4, 1750 + 30 + WORD),
]  # fmt: skip


@pytest.mark.parametrize(("name", "flows", "size", "expected"), LADDER_CASES, ids=[case[0] for case in LADDER_CASES])
def test_ladder(server, name, flows, size, expected):
    # A block needs more than one packet, so it takes both links of a rung; packets hold nothing here.
    assert time_ns(server, flows, size) == pytest.approx(expected, abs=0.05)


def test_words_of_all_chips_share_a_link(server):
    free = server.with_value("fabric.ladder.message_cost", "0")
    # 3 chips x 100 words over the rail 2 -> 0, then one into each port, or all into one.
    apart = [(chip * TILES + i, chip * 100 + i) for chip in (2, 4, 6) for i in range(100)]
    assert time_ns(free, apart) == pytest.approx(1000 + 3 * 500 + 300 * WORD + WORD, abs=0.05)
    together = [(source, 0) for source, _ in apart]
    assert time_ns(free, together) == pytest.approx(1000 + 3 * 500 + 300 * WORD + 300 * WORD, abs=0.05)
    slow = free.with_value("fabric.ladder.word_interval", "2")
    assert time_ns(slow, apart) == pytest.approx(1000 + 3 * 500 + 600 * WORD + WORD, abs=0.05)


def test_words_of_a_chip_for_several_boards_are_sorted_at_each(server):
    # Two streams of 10 ns leave chip 0; the farther one crosses three rails and pays for both at each.
    mixed = [(0, 2 * TILES), (1, 6 * TILES)]
    assert time_ns(server, mixed) == pytest.approx(1000 + 1500 + 3 * 20 + WORD, abs=0.05)
    unsorted = server.with_value("fabric.ladder.sorted_by_board", "false")
    assert time_ns(unsorted, mixed) == pytest.approx(1000 + 1500 + 20 + WORD, abs=0.05)
    # What one tile sends is in order, and what goes to one board needs none.
    for flows in ([(0, 2 * TILES), (0, 6 * TILES)], [(0, 6 * TILES), (1, 6 * TILES + 1)]):
        assert time_ns(server, flows) == pytest.approx(1000 + 1500 + 20 + WORD, abs=0.05)


def test_a_multicast_sends_one_copy_per_chip(server):
    # To chips 2, 4 and 6: three copies on the first rail. 64,000 B once at the port, then 3 x 2,000 ns.
    flows = [(0, (2 * TILES, 4 * TILES, 6 * TILES))]
    assert time_ns(server, flows, 64000, multicast=True) == pytest.approx(1000 + 1500 + 10000 + 6000, abs=0.5)
    # To its own chip and one other: the own tiles follow, all but the first word, 4 of them at twice the rate.
    both = [(0, (1, 2, 3, 4, 2 * TILES))]
    expected = 1500 + 10000 + 2000 + (16000 - 1) / 2 * CYCLE_NS
    assert time_ns(server, both, 64000, multicast=True) == pytest.approx(expected, abs=0.5)


def test_packet_fill_is_paid_per_rail_by_blocks_only(server):
    filled = server.with_value("fabric.ladder.packet_fill", "0.1")
    for flows, rails in (([(0, 2 * TILES)], 1), ([(0, 6 * TILES)], 3)):
        assert time_ns(filled, flows, 4) == pytest.approx(time_ns(server, flows, 4))
        assert time_ns(filled, flows, 64000) == pytest.approx(time_ns(server, flows, 64000) + 100 * rails, abs=0.1)


def test_host_lanes_are_shared_by_a_group(server):
    def write(chips):
        ranks = len(chips)
        builder = _native.Builder("pattern", ranks, ranks * 100_000, element_bytes=1)
        memory = builder.memory()
        builder.buffer("host", ranks, only_at=memory)
        builder.buffer("output", 1, parts=ranks)
        builder.step()
        for rank in range(ranks):
            builder.put(memory, rank, "host", rank, into="output", at=0, get=True)
        how = How(issue="unlimited", placement=[chip * TILES for chip in chips])
        return ask(lanes, builder.finish(), how).time.ns

    lanes = _with(server, {"fabric.host.chip_rate": "5", "fabric.host.group_rate": "8"})
    # 100,000 B at 5 GB/s each; two of a group of four share 8 GB/s; two of different groups share nothing.
    assert write([0]) == pytest.approx(20_000)
    assert write([0, 1]) == pytest.approx(25_000)
    assert write([0, 4]) == pytest.approx(20_000)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 4, 40, 4000]))
def test_more_messages_never_end_earlier(seed, count, size):
    """A phase with one message more, or larger ones, lasts at least as long; and no less than a message alone."""
    machine = load_server()
    rng = random.Random(seed)
    tiles = rng.sample(range(4 * TILES), 2 * count)
    flows = list(zip(tiles[:count], tiles[count:], strict=True))
    whole = time_ns(machine, flows, size)
    assert whole >= time_ns(machine, flows[:-1], size) if count > 1 else whole > 0
    assert time_ns(machine, flows, 2 * size) >= whole
    alone = max(ns for _, ns in _native.quiet(machine, [flows[0]], size)) / 1e3
    assert whole >= alone - 0.01


_loaded = {}


def load_server():
    return _loaded.setdefault("server", load("ipu-c2-server"))


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(12)), st.integers(0, 2**32))
def test_order_of_messages_does_not_matter(order, seed):
    rng = random.Random(seed)
    tiles = rng.sample(range(6 * TILES), 24)
    flows = list(zip(tiles[:12], tiles[12:], strict=True))
    assert time_ns(load_server(), flows) == time_ns(load_server(), [flows[index] for index in order])


def test_devices_are_computed_from_the_ladder(server):
    rows = devices.rows(server)
    assert len(rows) == 31
    members = {row["device"]: row["members"] for row in rows}
    assert members[16] == [5, 7]
    assert members[25] == [3, 1, 2, 0]
    assert len(members[30]) == 16
    assert members[30] == [5, 7, 4, 6, 3, 1, 2, 0, 13, 15, 12, 14, 9, 11, 10, 8]
    assert rows[16]["tiles"] == [(0, 1215), (1216, 2431)]
    assert devices.of(server, "7,5") == 16
    assert devices.of(server, "0,1,2,3") == 25
    assert devices.of(server, "30") == 30


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("5,4", "are not a device; .* device 24"),
        ("5,5", "are not a device"),
        ("0,16", "no chip 16; .* 0..15"),
        ("31", r"no device 31; choose from 0\.\.30"),
        ("-1", "no device -1"),
        ("five", "does not name chips"),
    ],
)
def test_what_is_no_device(server, wanted, message):
    with pytest.raises(LinkwrightError, match=message):
        devices.of(server, wanted)


def test_a_message_must_fit_a_tile(chip):
    with pytest.raises(LinkwrightError, match=r"300000 B does not fit `tile \d`, which has 262144 B"):
        time_ns(chip, [(1, 0)], 300_000)


def test_a_tile_that_does_not_exist(chip):
    with pytest.raises(LinkwrightError, match="endpoint 1216 does not exist"):
        time_ns(chip, [(1, 1216)])


def test_one_chip_has_no_devices(chip):
    with pytest.raises(LinkwrightError, match="one chip"):
        devices.rows(chip)
    with pytest.raises(LinkwrightError, match="no devices"):
        devices.rows(load("wormhole-n150"))


def test_the_three_machines_share_their_numbers():
    """Board and chip are parts of the server, so a number that both have is the same; derived numbers follow."""
    server = {row["key"]: row for row in load("ipu-c2-server").numbers()}
    for name in ("ipu-c2-board", "ipu-c2-chip"):
        for row in load(name).numbers():
            assert row == server[row["key"]], row["key"]
