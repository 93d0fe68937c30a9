"""Allreduce on the Wormhole n150: Swing against recursive doubling, latency and bandwidth optimal, and
through shared memory, on 64 tiles of two one-way torus networks.

Parts: `movement` (the five data movement tables), `layout` (hop tables, link loads), `theory` (the roofline of
the thesis), `allreduce` (run times), `facts` (stated numbers), `claims`, and `blind` (what nobody has published
and `--full` predicts over the admissible set).

Sources: "Implementation of Allreduce algorithms on the Tenstorrent Wormhole n150" (Sapienza University of Rome,
2025); "Tenstorrent ISA documentation, Wormhole B0"; "TT-Metalium data movement tests".
"""

from __future__ import annotations

import itertools

from linkwright.machines import load
from linkwright_evidence import Options, parallel
from linkwright_evidence.ablation import NOTE as ABLATION
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome
from linkwright_evidence.wormhole import (
    ablation,
    allreduce,
    blind,
    claims,
    claims_order,
    claims_places,
    facts,
    holdout,
    movement,
)
from linkwright_evidence.wormhole.allreduce import Bench
from linkwright_evidence.wormhole.layout import Layout
from linkwright_evidence.wormhole.theory import KIB

# What the tables show, in words; the names of variants are those of the thesis.
NOTES = {
    "run_times": "Variants: swing and rd (recursive doubling) choose the partners; LO is latency-optimal (whole "
    "vectors, fewest steps), BO bandwidth-optimal (halves, fewest bytes), SM through shared memory. Own start counts "
    "from where each rank starts, first start from where the first one does; both are the slowest rank, "
    "median over launches. Dashed is the roofline of the thesis.",
    "node_times": "Time of every rank, as a distance from the median of all 64, by both timing rules, own and first.",
    "hops": "Links from a rank to its partner, step by step, on the real grid with its hidden nodes.",
    "link_loads": "Messages that share a link in one step: most and median over the links in use, and how many are.",
    "theory_shares": "What the roofline of the thesis is made of: synchronisation, transfer, compute.",
    "hidden_nodes": "The same algorithms on an ideal 8x8 torus without hidden nodes, and on the real grid.",
    "progress_signals": "How run time depends on the number of progress signals per transfer.",
    "ablation": f"{ABLATION} Facts are left out. The table after it has the allreduces.",
    "ablation_allreduce": "Run times of 128 kB without each mechanism, in percent of the whole model.",
    "from_small_to_large": "The numbers of the data movement tables found again from at most 16 transactions of at "
    "most 4 KiB; the other cells are predicted with them. The thesis publishes no run time, so no number of the "
    "allreduces can be found from few tiles.",
    "numbers_from_small": "What was found, beside the shipped values.",
    "rings": "Hamiltonian-ring allreduces, which the thesis proposes and does not run, beside its best variant.",
}

MACHINE = "wormhole-n150"
IDEAL = "torus-2d"
SIGNALS = (1, 2, 4, 8, 16, 32, 64)
# Launches of Swing and recursive doubling with arithmetic, each with other noise; the thesis made 20, as `--full` does.
LAUNCHES = 3
MANY_LAUNCHES = 20
RING_SIZES_KIB = (2, 8, 32, 128, 384, 640)


def reproduce(options: Options) -> Outcome:
    """The whole study: cells, claims, and the tables behind the figures."""
    machine = load(MACHINE)
    grounds = facts.grounds(machine)
    bench = Bench(machine, options.seed, noise=True)
    times = _run_times(bench, options)
    outcome = Outcome(
        paper="wormhole",
        title="Allreduce on the Tenstorrent Wormhole n150, re-run on a model",
        machine=MACHINE,
        tuned=tuned(machine),
    )
    outcome.cells = movement.cells(machine, options.progress) + facts.cells(grounds)
    signals = _signal_rows(bench, options)
    outcome.claims = [
        *claims.check(times, grounds.theory, grounds, machine),
        *claims_order.check(times, signals),
        *claims_places.check(times, grounds),
    ]
    outcome.tables = {
        "run_times": _time_rows(times, grounds),
        "node_times": _node_rows(times, grounds.layout),
        "hops": facts.hop_rows(grounds),
        "link_loads": facts.load_rows(grounds),
        "theory_shares": _share_rows(grounds),
        "hidden_nodes": _ideal_rows(times, options),
        "progress_signals": signals,
        "rings": _ring_rows(bench, times, options),
    }
    if options.ablate:
        outcome.tables |= ablation.tables(bench, outcome.cells, options)
    if options.holdout_scale:
        outcome.tables |= holdout.results(machine)
    if options.full:
        outcome.tables |= blind.predict(bench, grounds, options)
    outcome.notes = {name: note for name, note in NOTES.items() if name in outcome.tables}
    return outcome


def _run_times(bench: Bench, options: Options) -> claims.Times:
    """Every variant and size, with and without arithmetic; what is compared closely is launched several times."""
    cases = [(v, s) for v in allreduce.VARIANTS for s in allreduce.sizes_kib(v)]
    launches = MANY_LAUNCHES if options.full else LAUNCHES

    def both(variant: str, size: int) -> dict[bool, allreduce.Timing]:
        several = launches if variant != "SM" else 1
        full = bench.timing(variant, size, launches=several)
        return {True: full, False: bench.timing(variant, size, arithmetic=False)}

    timings = parallel(both, cases, options, "allreduce")
    return {
        (*case, arithmetic): timing
        for case, pair in zip(cases, timings, strict=True)
        for arithmetic, timing in pair.items()
    }


def _time_rows(times: claims.Times, grounds: facts.Grounds) -> list[dict]:
    rows = []
    for (variant, size, arithmetic), timing in times.items():
        row = {
            "variant": variant,
            "size_kib": size,
            "arithmetic": arithmetic,
            "own_start_us": timing.slowest("own"),
            "first_start_us": timing.slowest("first"),
        }
        if variant[-2:] in ("LO", "BO"):
            row["theory_us"] = grounds.theory.time_us(size * KIB, variant[-2:])
        rows.append(row)
    return rows


def _node_rows(times: claims.Times, layout: Layout) -> list[dict]:
    """Every rank's times and their deviation from the median, for the box plots by place."""
    rows = []
    for (variant, size, arithmetic), timing in times.items():
        if not arithmetic:
            continue
        for rule, values in (("own", timing.own_start()), ("first", timing.first_start())):
            deviation = allreduce.deviation_percent(values)
            for rank, (x, y) in enumerate(layout.places):
                place = {"rank": rank, "x": x, "y": y}
                figures = {"time_us": float(values[rank]), "deviation_percent": float(deviation[rank])}
                rows.append({"variant": variant, "size_kib": size, "rule": rule, **place, **figures})
    return rows


def _share_rows(grounds: facts.Grounds) -> list[dict]:
    rows = []
    for variant, sizes in (("LO", allreduce.LO_SIZES_KIB), ("BO", allreduce.BO_SIZES_KIB)):
        for size in sizes:
            parts = grounds.theory.parts(size * KIB, variant)
            total = sum(parts.values())
            shares = {f"{name}_percent": 100 * value / total for name, value in parts.items()}
            seconds = {f"{name}_us": 1e6 * value for name, value in parts.items()}
            rows.append({"variant": variant, "size_kib": size, **seconds, **shares})
    return rows


def _ideal_rows(times: claims.Times, options: Options) -> list[dict]:
    """The same algorithms where no hidden node lies between ranks."""
    ideal = Bench(load(IDEAL).with_grid(*allreduce.GRID), options.seed)
    variants = [v for v in allreduce.VARIANTS if v != "SM"]
    cases = [(v, s) for v in variants for s in sorted({allreduce.sizes_kib(v)[0], 128})]

    def one(variant: str, size: int) -> dict:
        here = ideal.slowest(variant, size)
        real = times[variant, size, True].slowest()
        return {"variant": variant, "size_kib": size, "ideal_us": here, "real_us": real}

    return parallel(one, cases, options, "without hidden nodes")


def _signal_rows(bench: Bench, options: Options) -> list[dict]:
    """Sensitivity to the number of progress signals per step, at 128 kB."""

    def one(variant: str, signals: int) -> dict:
        time = allreduce.with_signals(bench, signals, 128).slowest(variant, 128)
        return {"variant": variant, "size_kib": 128, "signals": signals, "time_us": time}

    return parallel(one, itertools.product(("swing_LO", "swing_BO"), SIGNALS), options, "progress signals")


def _ring_rows(bench: Bench, times: claims.Times, options: Options) -> list[dict]:
    """The proposed rings beside the best of the five variants."""

    def one(ring: str, size: int) -> dict:
        time = bench.slowest(ring, size)
        others = {v: times[v, size, True].slowest() for v in allreduce.VARIANTS if (v, size, True) in times}
        best = min(others, key=others.get)
        known = {"best_variant": best, "best_variant_us": others[best]}
        return {"ring": ring, "size_kib": size, "time_us": time, **known}

    return parallel(one, itertools.product(allreduce.RINGS, RING_SIZES_KIB), options, "rings")
