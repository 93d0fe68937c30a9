"""Numbers of the thesis that follow from the schedules, the layout and its own formulas.

Each prediction is computed: bytes and steps from the operations of a schedule, hops and link loads from the
layout, times from the theory. Facts that are words, formulas or of no part of the model stand there without a
prediction. `ERRATA` names printed values that contradict the source's own listings or the
only layout that fits its other hop counts; they are shown beside our value and not scored.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from linkwright import _native
from linkwright_evidence.numbers import values
from linkwright_evidence.outcome import Cell, Role
from linkwright_evidence.published import facts, reference_rows
from linkwright_evidence.wormhole import allreduce
from linkwright_evidence.wormhole.layout import Layout, exchanges, hop_table, link_loads
from linkwright_evidence.wormhole.theory import KIB, RANKS, STEPS, Theory, from_machine

ERRATA = {
    "W068": "the listed tiles leave out four router-only places",
    "W152": "10 against 14 hops is 28.6 %; one third is the limit of large tori",
    "W163": "three extra hops fall on steps 4 and 6; step 5 has one",
    "W167": "the last step has a six-hop pair (rows 2 and 8)",
    "W168": "follows from the row above: 19",
    "W150": "its own formulas give a factor of 455",
    "W184": "the divisor that gives the printed 4.09 is 64",
}

# Facts that are no predictions: constants that the study was given, and the hop counts by which the rows and columns in
# use were found (docs/studies/wormhole.md).
ROLES: dict[str, Role] = {
    **dict.fromkeys(("W083", "W190", "W195"), "input"),
    **dict.fromkeys(("W156", "W158", "W171", "W172", "W205", "W206"), "fitted"),
}


@dataclass(frozen=True)
class Grounds:
    """What the predictions are computed from."""

    swing: object  # schedule of Swing, latency optimal, 64 ranks on 8 x 8
    doubling: object  # schedule of recursive doubling, likewise
    swing_blocks: object  # Swing, bandwidth optimal
    line_doubling: object  # recursive doubling on a ring of 32 without a grid
    layout: Layout
    theory: Theory
    values: dict[str, float]  # numbers of the machine file


def grounds(machine) -> Grounds:
    """The schedules of the thesis, and the layout and numbers of the machine."""

    def build(key: str, ranks: int = RANKS, grid: tuple[int, int] | None = allreduce.GRID):
        return _native.Schedule.build(f"allreduce/{key}", ranks, 64 * 1024, element_bytes=2, grid=grid)

    layout, numbers = Layout.of(machine), values(machine)
    doubling = build("recursive_doubling_latency")
    # The theory charges every variant the worst case of recursive doubling.
    hops = int(hop_table(doubling, layout).max(1).sum())
    return Grounds(
        swing=build("swing_latency"),
        doubling=doubling,
        swing_blocks=build("swing_bandwidth"),
        line_doubling=build("recursive_doubling_latency", 32, None),
        layout=layout,
        theory=from_machine(numbers, hops),
        values=numbers,
    )


def cells(grounds: Grounds) -> list[Cell]:
    """Every fact, with its computed value where it has one."""
    made = facts("wormhole", predictions(grounds), ("quantity",), ERRATA)
    return [replace(cell, role=ROLES.get(str(cell.keys["id"]), "predicted")) for cell in made]


def predictions(g: Grounds) -> dict[str, Callable[[], object]]:
    """Fact id -> how it is computed."""
    real_swing, real_doubling = hop_table(g.swing, g.layout), hop_table(g.doubling, g.layout)
    ideal_swing, ideal_doubling = (hop_table(s, Layout.ideal()) for s in (g.swing, g.doubling))
    rank_9_9, rank_1_5 = g.layout.places.index((9, 9)), g.layout.places.index((1, 5))
    rules = {
        "W011": lambda: int(min(hops_of(g.line_doubling, 0))),
        "W012": lambda: hops_of(g.line_doubling, 1)[0] // hops_of(g.line_doubling, 0)[0],
        "W018": lambda: sent_by_rank(g.swing_blocks, 0) / g.swing_blocks.size_bytes,
        "W020": lambda: busiest(g.line_doubling)[2],
        "W021": lambda: busiest(g.line_doubling)[1],
        "W022": lambda: int(hops_of(g.line_doubling, 1)[0]),
        "W033": lambda: g.values["facts.usable_tiles"] * 1.5,
        "W037": lambda: g.values["facts.dram_rate"] / 12 * 8,
        "W083": lambda: RANKS - 1,
        "W091": lambda: len(exchanges(g.swing)),
        "W099": lambda: blocks_received(g.swing_blocks),
        "W151": lambda: float(np.log10(transfer_over_compute(g.theory))),
        "W150": lambda: float(np.log10(transfer_over_compute(g.theory))),
        "W153": lambda: 100 * (1 - ideal_swing.sum(0).mean() / ideal_doubling.sum(0).mean()),
        "W152": lambda: 100 * (1 - ideal_swing.sum(0).mean() / ideal_doubling.sum(0).mean()),
        "W155": lambda: int(ideal_swing[:, rank_9_9].sum()),
        "W156": lambda: int(real_swing[:, rank_9_9].sum()),
        "W157": lambda: int(ideal_doubling[:, rank_1_5].sum()),
        "W158": lambda: int(real_doubling[:, rank_1_5].sum()),
        "W159": lambda: extra_percent(real_swing, ideal_swing, rank_9_9),
        "W160": lambda: extra_percent(real_doubling, ideal_doubling, rank_1_5),
        "W161": lambda: affected(real_swing, ideal_swing)[0],
        "W162": lambda: affected(real_swing, ideal_swing)[-1],
        "W163": lambda: int((real_swing - ideal_swing)[4].max()),
        "W164": lambda: next(s for s in range(2, 7) if s not in affected(real_doubling, ideal_doubling)),
        "W165": lambda: listed(affected(real_doubling, ideal_doubling)),
        "W166": lambda: int((real_doubling - ideal_doubling).max()),
        "W167": lambda: listed(real_swing.max(1)),
        "W168": lambda: int(real_swing.max(1).sum()),
        "W169": lambda: listed(real_swing.max(1)),
        "W170": lambda: int(real_swing.max(1).sum()),
        "W171": lambda: listed(real_doubling.max(1)),
        "W172": lambda: int(real_doubling.max(1).sum()),
        "W185": lambda: g.theory.operations_per_s / 1e12,
        "W183": lambda: round(g.theory.operations_per_s / 1e12, 2),
        "W190": lambda: g.theory.hop_latency_s,
        "W191": lambda: int(real_doubling.max(1).sum()),
        "W192": lambda: g.theory.hops * g.theory.hop_latency_s,
        "W193": lambda: 3 * g.theory.hops * g.theory.hop_latency_s,
        "W194": lambda: 2 * g.theory.hops * g.theory.hop_latency_s,
        "W195": lambda: STEPS,
        "W199": lambda: sync_share(g.theory, 2 * KIB, "LO"),
        "W204": lambda: g.theory.time_us(640 * KIB, "LO") / g.theory.time_us(640 * KIB, "BO"),
        "W205": lambda: listed(sorted({x for x, _ in g.layout.places})),
        "W206": lambda: listed(sorted({y for _, y in g.layout.places})),
        "W207": lambda: float(real_swing.sum(0).mean()),
        "W208": lambda: float(real_doubling.sum(0).mean()),
    }
    for row in reference_rows("wormhole", "facts.csv"):
        if row["id"].startswith("T"):
            variant, size = row["quantity"].split("_")[1:]
            size_bytes = int(size.removesuffix("kB")) * KIB
            rules[row["id"]] = lambda s=size_bytes, v=variant: g.theory.time_us(s, v)
    return rules


def hops_of(schedule, step: int) -> list[int]:
    """Shortest distances on a ring of the transfers of one step."""
    p = schedule.ranks
    return [min((t - s) % p, (s - t) % p) for s, t, _, _ in exchanges(schedule)[step]]


def busiest(schedule) -> list[int]:
    """Most transfers on one directed link of a ring, each going the shorter way, per step."""
    p = schedule.ranks
    most = []
    for step in exchanges(schedule):
        load = np.zeros((2, p), dtype=int)
        for source, target, _, _ in step:
            ahead = (target - source) % p
            way, length, start = (0, ahead, source) if ahead <= p - ahead else (1, p - ahead, target)
            load[way, [(start + k) % p for k in range(length)]] += 1
        most.append(int(load.max()))
    return most


def sent_by_rank(schedule, rank: int) -> int:
    """Bytes that one rank puts."""
    return sum(size for step in exchanges(schedule) for source, _, _, size in step if source == rank)


def blocks_received(schedule) -> int:
    """Blocks that a rank gets in the allgather half of a bandwidth-optimal allreduce."""
    half = exchanges(schedule)[STEPS:]
    got = sum(size for step in half for _, target, _, size in step if target == 0)
    return round(got * RANKS / schedule.size_bytes)


def transfer_over_compute(theory: Theory) -> float:
    """How much longer it takes to send a byte than to add it."""
    return theory.operations_per_s / theory.stream_rate


def extra_percent(real: np.ndarray, ideal: np.ndarray, rank: int) -> float:
    """Extra hops of one rank over the ideal torus, in percent."""
    return 100 * (real[:, rank].sum() / ideal[:, rank].sum() - 1)


def affected(real: np.ndarray, ideal: np.ndarray) -> list[int]:
    """Steps, counted from 1, in which some rank has more hops than on the ideal torus."""
    return [s + 1 for s in range(len(real)) if (real[s] > ideal[s]).any()]


def sync_share(theory: Theory, size_bytes: int, variant: str) -> float:
    """Synchronisation in percent of the predicted time."""
    return 100 * theory.parts(size_bytes, variant)["sync"] * 1e6 / theory.time_us(size_bytes, variant)


def listed(values) -> str:
    """A list as the reference file writes it."""
    return ";".join(str(int(value)) for value in values)


def hop_rows(g: Grounds) -> list[dict]:
    """The hop table: per rank and step, real and ideal, Swing and recursive doubling."""
    rows = []
    for name, schedule in (("swing", g.swing), ("recursive_doubling", g.doubling)):
        real, ideal = hop_table(schedule, g.layout), hop_table(schedule, Layout.ideal())
        for step in range(len(real)):
            for rank, (x, y) in enumerate(g.layout.places):
                hops = {"hops": int(real[step, rank]), "ideal_hops": int(ideal[step, rank])}
                rows.append({"algorithm": name, "step": step, "rank": rank, "x": x, "y": y, **hops})
    return rows


def load_rows(g: Grounds) -> list[dict]:
    """Most transfers on one link and links in use, per step."""
    rows = []
    for name, schedule in (("swing", g.swing), ("recursive_doubling", g.doubling)):
        for step, load in enumerate(link_loads(schedule, g.layout)):
            most, median = max(load.values()), statistics.median(load.values())
            links = {"most": most, "median": median, "links": len(load)}
            rows.append({"algorithm": name, "step": step, **links})
    return rows
