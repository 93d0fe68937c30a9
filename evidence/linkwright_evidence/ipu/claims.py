"""Chapter 4: orderings, ratios and scalings of the interconnect, numbered as the project numbers them."""

from __future__ import annotations

import itertools

import numpy as np

from linkwright_evidence.ipu import figures
from linkwright_evidence.ipu.predictions import Predictions, claim, near
from linkwright_evidence.outcome import Claim

# How far a ratio of two predictions may be from the printed ratio: that of two cells at a table's worst.
RATIO = 0.16


def check(found: Predictions) -> list[Claim]:
    """Claims 1 to 17."""
    return [judge(found) for judge in CHECKS]


def _p2p_latency(found: Predictions) -> Claim:
    chip, board, direct, indirect = (found.latency("4.1", row) for row in (1, 2, 3, 4))
    gaps = [far - chip for far in (board, direct, indirect)]
    return claim(
        "ipu-1",
        "One word: direct link < on board < indirect, all slower than on chip by 0.35 to 0.65 us.",
        {"order": direct < board < indirect, "gaps": all(0.95 * 0.35 <= gap <= 1.05 * 0.65 for gap in gaps)},
        f"(a) {chip:.3f}, (b) {board:.3f}, (c) {direct:.3f}, (d) {indirect:.3f} us",
    )


def _chip_map(found: Predictions) -> Claim:
    latency = figures.chip_latency(found.bench)
    judged = {"two nearest": True, "third": True}
    for i in range(2, 14):
        order = np.argsort(np.where(np.isnan(latency[i]), np.inf, latency[i]), kind="stable")
        judged["two nearest"] &= set(order[:2]) == {i - 2, i + 2}
        judged["third"] &= order[2] == i ^ 1
    median = float(np.nanmedian(latency))
    judged["no wrap"] = bool(latency[0, 14] > median and latency[1, 15] > median)
    most = np.nanmax(latency)
    judged["farthest"] = bool(latency[1, 14] == most and latency[0, 15] == most)
    return claim(
        "ipu-2",
        "Figure 4.4: the nearest of a chip are its neighbours on the rail, then the other of its board; nothing "
        "wraps around; DNC 1 and 14 are farthest.",
        judged,
        f"{np.nanmin(latency):.3f} to {most:.3f} us; 0 to 14 {latency[0, 14]:.3f} us",
    )


def _tile_map(found: Predictions) -> Claim:
    latency = figures.tile_latency(found.bench)
    column = latency[: figures.COLUMN, : figures.COLUMN]
    per_target = np.nanmax(column, axis=0) - np.nanmin(column, axis=0)
    least = np.nanmin(column, axis=0)
    span = (np.nanmax(column) - np.nanmin(column)) * 1e-9 * found.bench.clock_hz()
    left, right = latency[8 * figures.COLUMN, 2], latency[2, 8 * figures.COLUMN]
    return claim(
        "ipu-3",
        "Figure 4.2: latency depends on the island of the destination alone, least at island 0, span 36 cycles; "
        "figure 4.3: leftward is slower.",
        {
            "destination alone": bool(per_target.max() < 1e-9),
            "least at island 0": bool(set(np.flatnonzero(least == least.min())) == {0, 1, 74, 75}),
            "span": bool(abs(span - 36) < 0.1),
            "leftward": bool(left > right),
        },
        f"span {span:.1f} cycles; column 8 to 0 {left:.1f} ns, back {right:.1f} ns; {figures.slowest(latency)}",
    )


def _load(found: Predictions) -> Claim:
    ratios = [found("4.2", row, "latency_degradation") for row in (1, 2, 3, 4)]
    printed = (1.24, 4.0, 4.8, 7.7)
    return claim(
        "ipu-4",
        "Load multiplies latency by 1.24 on a chip and by 4.0, 4.8, 7.7 to other chips (b), (c), (d).",
        {
            "order": ratios == sorted(ratios),
            "factors": all(near(ratio, was, RATIO) for ratio, was in zip(ratios, printed, strict=True)),
        },
        ", ".join(f"{ratio:.2f}" for ratio in ratios),
    )


def _p2p_bandwidth(found: Predictions) -> Claim:
    a, b, c, d = (found("4.4", row, "bandwidth_per_transfer") for row in (1, 2, 3, 4))
    return claim(
        "ipu-5",
        "One large block: (a) > (b) > (c) > (d); -14 %, -9 %, less than 2 %.",
        {
            "order": a > b > c > d,
            "steps": near(b / a, 0.86, 0.03) and near(c / b, 0.91, 0.03) and d / c > 0.98,
        },
        f"{a:.2f}, {b:.2f}, {c:.2f}, {d:.2f} GB/s: {b / a - 1:+.1%}, {c / b - 1:+.1%}, {d / c - 1:+.1%}",
    )


def _link_rates(found: Predictions) -> Claim:
    board, direct = found.rate("4.6", 12), found.rate("4.6", 13)
    both = [found.rate("4.6", 15) / board, found.rate("4.6", 17) / found.rate("4.6", 14)]
    rates = figures.chip_bandwidth(found.bench)
    levels = sorted({round(float(rate), 0) for rate in rates[~np.isnan(rates)]})
    return claim(
        "ipu-6",
        "A board's pair has twice the rate of two boards; both directions double it; figure 4.6 has two levels.",
        {
            "twice": near(board / direct, 2, 0.03),
            "both ways": all(near(ratio, 2, 0.03) for ratio in both),
            "two levels": len(levels) == 2 or (len(levels) > 2 and _clusters(levels) == 2),
        },
        f"{board:.2f} and {direct:.2f} GB/s; both ways x {both[0]:.2f}, x {both[1]:.2f}; levels {levels} GB/s",
    )


def _clusters(levels: list[float]) -> int:
    return 1 + sum(after > 1.1 * before for before, after in itertools.pairwise(levels))


def _threads(found: Predictions) -> Claim:
    rows: dict[int, list[float]] = {}
    for cell in found.cells.values():
        if cell.keys["table"] == "4.7":
            rows.setdefault(cell.keys["row"], []).append(float(cell.predicted))
    spread = max(max(rates) / min(rates) - 1 for rates in rows.values())
    return claim(
        "ipu-7",
        "1 to 6 threads per tile change bandwidth by less than 2 %.",
        {"spread": spread < 0.02},
        f"largest spread {spread:.1%}: the port is the tile's, whichever thread issues",
    )


def _broadcast_latency(found: Predictions) -> Claim:
    b, c, e, f, j = (found.latency("4.8", row) for row in (13, 14, 16, 17, 21))
    return claim(
        "ipu-8",
        "Broadcast of a word: own tiles come free, the board's pair is slower than direct boards, 16 IPUs below 2 us.",
        {"(b) = (e)": near(b, e, 0.01), "(c) = (f)": near(c, f, 0.01), "(e) > (f)": e > f, "16 IPUs": j < 2},
        f"(b) {b:.3f}, (c) {c:.3f}, (e) {e:.3f}, (f) {f:.3f}, (j) {j:.3f} us",
    )


def _broadcast_rate(found: Predictions) -> Claim:
    two, four = (found("4.9", row, "bandwidth_per_transfer") for row in (2, 3))
    b, c, e, h, j = (found.rate("4.9", row) for row in (12, 13, 15, 18, 20))
    return claim(
        "ipu-9",
        "Broadcast: the rate of a destination doubles from 2 to 4; (b) > (c); (j) > (h) > (e) > (b); (h) per "
        "destination above (e).",
        {
            "doubles": near(four / two, 2, 0.05),
            "(b) > (c)": b > c,
            "order": j > h > e > b,
            "(h) above (e)": h / 4864 > e / 2432,
        },
        f"{two:.2f} and {four:.2f} GB/s; (b) {b:.0f}, (c) {c:.0f}, (e) {e:.0f}, (h) {h:.0f}, (j) {j:.0f} GB/s",
    )


def _broadcast_size(found: Predictions) -> Claim:
    a, j = (found("4.10", row, "bandwidth_fraction_of_peak") for row in (1, 10))
    h90, j90 = (found("4.10", row, "message_size_for_90pct_peak") for row in (8, 10))
    return claim(
        "ipu-10",
        "At 1 KiB (a) has 30.3 % of its peak, (j) 14.6 %; the size for 90 % grows from (h) to (j).",
        {"shares": near(a, 30.3, 0.15) and near(j, 14.6, 0.15), "sizes": h90 < j90},
        f"{a:.1f} %, {j:.1f} %; {h90:.1f} and {j90:.1f} KiB",
    )


def _gather_latency(found: Predictions) -> Claim:
    few = [found.latency("4.11", row) for row in (2, 3, 5)]
    slope = (found.latency("4.11", 11) - found.latency("4.11", 10)) / 608 * 1e-6 * found.bench.clock_hz()
    e, f, g, h, j = (found.latency("4.11", row) for row in (15, 16, 17, 18, 20))
    return claim(
        "ipu-11",
        "Gather of words: flat for few sources, then a cycle per source; (e) > (f), (g)/(f) about 1.9, (j)/(h) 2.8.",
        {
            "flat": max(few) / min(few) < 1.05,
            "slope": near(slope, 1, 0.05),
            "(e) > (f)": e > f,
            "(g)/(f)": near(g / f, 1.9, RATIO),
            "(j)/(h)": near(j / h, 2.8, RATIO),
        },
        f"{slope:.2f} cycles per source; (g)/(f) {g / f:.2f}, (j)/(h) {j / h:.2f}",
    )


def _scatter_against_gather(found: Predictions) -> Claim:
    one = found.latency("4.13", 11) / found.latency("4.11", 11)
    four = found.latency("4.11", 18) / found.latency("4.13", 18)
    sixteen = found.latency("4.11", 20) / found.latency("4.13", 20)
    return claim(
        "ipu-12",
        "On one IPU scatter is slightly slower than gather; at 4 and 16 IPUs gather takes 2.4 and 1.8 times as long.",
        {"one": 1 < one < 1.25, "four": near(four, 2.4, RATIO), "sixteen": near(sixteen, 1.8, RATIO)},
        f"{one:.2f}; {four:.2f} and {sixteen:.2f}",
    )


def _block_scaling(found: Predictions) -> Claim:
    gather = 1 - found.rate("4.12", 20) / found.rate("4.12", 15)
    scatter = 1 - found.rate("4.14", 20) / found.rate("4.14", 15)
    return claim(
        "ipu-13",
        "With 16 IPUs gather has 5.3 % less bandwidth than a board's pair, scatter 6.5 %.",
        {"gather": abs(gather - 0.053) < 0.05, "scatter": abs(scatter - 0.065) < 0.05},
        f"gather {gather:.1%} less, scatter {scatter:.1%}; tables 4.11 and 4.12 give the gather of 16 IPUs as 25.2 "
        "and 14.1 us for the same bytes (I13), and the model follows 4.11",
    )


def _alltoall(found: Predictions) -> Claim:
    slope = (found.latency("4.15", 9) - found.latency("4.15", 7)) / (304 - 76) * 1e-6 * found.bench.clock_hz()
    return claim(
        "ipu-14",
        "All-to-all grows by a cycle per tile between 76 and 304 tiles.",
        {"slope": near(slope, 1, 0.06)},
        f"{slope:.2f} cycles per tile",
    )


def _sums(found: Predictions) -> Claim:
    slope = (found.latency("4.16", 5) - found.latency("4.16", 1)) / (19456 - 1216) * 1e-6 * found.bench.clock_hz()
    apart = found.latency("4.16", 17) / found.latency("4.16", 5)
    one = found.rate("4.18", 24) / found.rate("4.18", 17)
    sixteen = found.rate("4.18", 30) / found.rate("4.18", 23)
    scale = found.rate("4.18", 30) / found.rate("4.18", 24)
    return claim(
        "ipu-15",
        "Sums: a cycle per operand on one tile; 16 IPUs within 11 % of it at 19,456 operands; many operands raise "
        "the rate 4.1 times on 1 IPU and 12.7 times on 16; 16 IPUs have 9.4 times the rate of one.",
        {
            "slope": near(slope, 1, 0.03),
            "one tile against 16 IPUs": abs(apart - 1) < 0.16,
            "gain": near(one, 4.1, 0.08) and near(sixteen, 12.7, 0.08),
            "scaling": near(scale, 9.4, 0.08),
        },
        f"{slope:.2f} cycles; x {apart:.2f}; x {one:.1f} and x {sixteen:.1f}; x {scale:.1f}",
    )


def _board_pair(found: Predictions) -> Claim:
    gather = found.latency
    return claim(
        "ipu-16",
        "A board's pair is slower than directly linked boards: gather of words, and sums.",
        {
            "gather": gather("4.11", 12) > gather("4.11", 13) and gather("4.11", 15) > gather("4.11", 16),
            "1,000 operands": found.rate("4.18", 18) < found.rate("4.18", 19),
            "25,000 operands": found.rate("4.18", 25) < found.rate("4.18", 26),
        },
        f"gather {gather('4.11', 12):.2f} against {gather('4.11', 13):.2f} us, sums {found.rate('4.18', 18):.0f} "
        f"against {found.rate('4.18', 19):.0f} GB/s",
    )


def _host(found: Predictions) -> Claim:
    each = [found.latency("4.19", row) for row in range(12, 28)]
    four, sixteen = found.rate("4.20", 30), found.rate("4.20", 32)
    pairs = [found.rate("4.20", row) for row in (27, 28, 29)]
    return claim(
        "ipu-17",
        "Host: latency does not depend on the IPU; 4 IPUs 13.78 GB/s, 16 IPUs four times that; any two IPUs alike.",
        {
            "latency": max(each) / min(each) < 1.01,
            "4 IPUs": near(four, 13.78, 0.08),
            "16 IPUs": near(sixteen / four, 4, 0.01),
            "pairs": max(pairs) / min(pairs) < 1.01,
        },
        f"{min(each):.2f} to {max(each):.2f} us; {four:.2f} and {sixteen:.2f} GB/s; pairs {pairs[0]:.2f} GB/s",
    )


CHECKS = (
    *(_p2p_latency, _chip_map, _tile_map, _load, _p2p_bandwidth, _link_rates, _threads, _broadcast_latency),
    *(_broadcast_rate, _broadcast_size, _gather_latency, _scatter_against_gather, _block_scaling, _alltoall, _sums),
    *(_board_pair, _host),
)
