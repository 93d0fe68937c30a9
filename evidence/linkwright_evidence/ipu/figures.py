"""Figures 4.2 to 4.11 of the report, drawn from the model.

The report prints no numbers behind these, so nothing is scored; what each should look like is a claim.
"""

from __future__ import annotations

import numpy as np

from linkwright import _native
from linkwright.show.report.model import Axis, Curve, HeatMap, Plot, Section
from linkwright_evidence.ipu import collectives, p2p, reduce
from linkwright_evidence.ipu.bench import TILES, WORD, Bench, Superstep, chip_tiles, tile

COLUMN = 76
CHIPS = 16
SIZES = (*(4 * 2**power for power in range(15)), 100 * 1024)
PLACES = (
    ("(a) one IPU", "on-chip", "1"),
    ("(b) other IPU of the board", "on-board", "1"),
    ("(c) other board, direct", "direct-link", "1"),
    ("(d) other board, indirect", "indirect-link", "1"),
    ("(e) 2 IPUs, one board", "on-board", "2"),
    ("(f) 2 IPUs, direct", "direct-link", "2"),
    ("(g) 2 IPUs, indirect", "indirect-link", "2"),
    ("(h) 4 IPUs", "two-boards", "4"),
    ("(i) 8 IPUs", "four-boards", "8"),
    ("(j) 16 IPUs", "system", "16"),
)


def tile_latency(bench: Bench) -> np.ndarray:
    """Figure 4.3: ns of one word between all tiles of a chip without the sync; NaN on the diagonal."""
    pairs = [(source, target) for source in range(TILES) for target in range(TILES)]
    quiet = np.array(_native.quiet(bench.machines["chip"], pairs, WORD), dtype=np.float64)[:, 1]
    latency = quiet.reshape(TILES, TILES) / 1e3 - bench.nanoseconds("fabric.sync")
    np.fill_diagonal(latency, np.nan)
    return latency


def chip_latency(bench: Bench) -> np.ndarray:
    """Figure 4.4: us of one word between chips, by position; NaN on the diagonal."""
    pairs = [(tile(a, 0), tile(b, 0)) for a in range(CHIPS) for b in range(CHIPS)]
    quiet = np.array(_native.quiet(bench.machines["server"], pairs, WORD), dtype=np.float64)[:, 1]
    latency = quiet.reshape(CHIPS, CHIPS) / 1e6
    np.fill_diagonal(latency, np.nan)
    return latency


def chip_bandwidth(bench: Bench) -> np.ndarray:
    """Figure 4.6: GB/s from all tiles of a chip to all of another, 4 KiB each."""
    size = 4096
    shuffled = p2p.crossing((0,), (1,), bench.seed)
    schedule = ("flows", 2 * TILES, shuffled, size)
    rates = np.full((CHIPS, CHIPS), np.nan)
    for a in range(CHIPS):
        for b in range(CHIPS):
            if a != b:
                time = bench.time(Superstep(schedule, tiles=chip_tiles(a, b)))
                rates[a, b] = TILES * size / (1e3 * time)
    return rates


def maps(bench: Bench) -> list[HeatMap]:
    """The four heat maps."""
    latency = tile_latency(bench)
    names = [f"tile {index}" for index in range(TILES)]
    chips = [f"DNC {index}" for index in range(CHIPS)]
    column, nanosecond = latency[:COLUMN, :COLUMN] * 1e-9, 1e-9
    return [
        HeatMap("Figure 4.2: one word, tiles of column 0", "s", names[:COLUMN], names[:COLUMN], column),
        HeatMap(
            "Figure 4.3: one word, all tiles of an IPU",
            "s",
            names,
            names,
            np.round(latency, 2) * nanosecond,
            missing="local copy",
            how_to_read="Without the sync. " + slowest(latency),
            wide=True,
        ),
        HeatMap("Figure 4.4: one word, IPU to IPU", "s", chips, chips, chip_latency(bench) * 1e-6),
        HeatMap("Figure 4.6: all tiles, 4 KiB each, IPU to IPU", "B/s", chips, chips, chip_bandwidth(bench) * 1e9),
    ]


def slowest(latency: np.ndarray) -> str:
    """Range and slowest pair of figure 4.3, in words."""
    source, target = divmod(int(np.nanargmax(latency)), TILES)
    return (
        f"{np.nanmin(latency):.1f} to {np.nanmax(latency):.1f} ns; slowest from tile {source} to tile {target}. The "
        "report names 646 to 0, whose island should be the nearest, with 98 ns."
    )


def pair_rates(bench: Bench) -> Plot:
    """Figure 4.5: one pair on a chip, near and far."""
    curves = []
    for name, target in (("near: 0 to 1", 1), ("far: 0 to 644", 644)):
        flow = ((0, 1),)
        times = [bench.time(Superstep(("flows", 2, flow, size), "pairs", "chip", tiles=(0, target))) for size in SIZES]
        curves.append(
            Curve(name, SIZES, [size * 1e6 / time for size, time in zip(SIZES, times, strict=True)], kind="model")
        )
    curves.append(Curve("port", (SIZES[0], SIZES[-1]), [6.4e9] * 2, kind="limit"))
    return _by_size("Figure 4.5: bandwidth of one pair", curves)


def broadcast_latency(bench: Bench) -> Plot:
    """Figure 4.8: latency of a broadcast by tiles reached."""
    row = {"placement": "on-chip", "scale_ipus": "1"}
    tiles = (1, 2, 4, 8, 16, 38, 76, 152, 304, 608, 1216)
    chip = [1e-6 * collectives.broadcast(bench, {**row, "endpoints": str(n)}, WORD) for n in tiles]
    far = [1e-6 * collectives.broadcast(bench, _row(place, scale), WORD) for _, place, scale in PLACES[7:]]
    curves = [
        Curve("one IPU", tiles, chip, kind="model"),
        Curve("4, 8, 16 IPUs", (4864, 9728, 19456), far, kind="model"),
    ]
    return Plot("Figure 4.8: broadcast of a word", Axis("tiles", "1", "log2"), Axis("time", "s", "log10"), curves)


def broadcast_rates(bench: Bench) -> list[Plot]:
    """Figures 4.9 and 4.10: rate of a broadcast by block size, one destination IPU and several."""
    plots = []
    for title, places in (("Figure 4.9: broadcast to one IPU", PLACES[:4]), ("Figure 4.10: to several", PLACES[4:])):
        curves = []
        for name, place, scale in places:
            rates = [1e9 * collectives.broadcast_rate(bench, _row(place, scale), size) for size in SIZES]
            curves.append(Curve(name, SIZES, rates, kind="model"))
        plots.append(_by_size(title, curves))
    return plots


def reduce_rates(bench: Bench) -> Plot:
    """Figure 4.11: rate of a sum by operands per tile."""
    operands = (1, 4, 16, 64, 256, 1000, 4000, 25000)
    curves = []
    for name, place, scale in (PLACES[0], *PLACES[4:]):
        tiles = TILES * int(scale)
        rates = [1e6 * tiles * count * WORD / reduce.sum_time(bench, place, tiles, count) for count in operands]
        curves.append(Curve(name, operands, rates, kind="model"))
    return Plot(
        "Figure 4.11: library sum", Axis("operands per tile", "1", "log2"), Axis("rate", "B/s", "log10"), curves
    )


def sections(bench: Bench) -> list[Section]:
    """All figures of chapter 4."""
    intro = "The report shows these without numbers: every point and cell here is the model."
    plots = [pair_rates(bench), broadcast_latency(bench), *broadcast_rates(bench), reduce_rates(bench)]
    return [Section("Figures of chapter 4", [*maps(bench), *plots], intro)]


def _row(place: str, scale: str) -> dict[str, str]:
    return {"placement": place, "scale_ipus": scale, "endpoints": str(TILES * int(scale))}


def _by_size(title: str, curves: list[Curve]) -> Plot:
    return Plot(title, Axis("block", "B", "log2"), Axis("rate", "B/s", "log10"), curves)
