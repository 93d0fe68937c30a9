"""Predictions of unpublished quantities, as ranges over the admissible set.

Two costs of the machine have no published value: handling a tile and adding one. Several pairs satisfy claims
3 to 5; `admissible` sweeps them, and every prediction is a range over the pairs that remain. Finite and infinite
buffers, and static and dynamic channels, are compared too.
"""

from __future__ import annotations

import itertools
import statistics

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright_evidence import Options, parallel
from linkwright_evidence.numbers import values
from linkwright_evidence.wormhole import allreduce, movement
from linkwright_evidence.wormhole.allreduce import Bench, Conditions
from linkwright_evidence.wormhole.facts import Grounds
from linkwright_evidence.wormhole.theory import KIB, RANKS

HANDLING_CYCLES = (10, 20, 40, 80)
ADD_CYCLES = (64, 104)
PROBE_SIZES_KIB = (128, 640)
# Cases at which costs, buffers, channels and start skew are compared.
PROBES = tuple((v, s) for v in ("swing_LO", "rd_LO", "swing_BO", "rd_BO") for s in PROBE_SIZES_KIB)
TRANSACTIONS = (1, 4, 16, 64, 256)
TRANSACTION_BYTES = tuple(2**k for k in range(5, 17))


def _with_costs(bench: Bench, handling: int, add: int) -> Bench:
    """The machine with these costs, in cycles per tile."""
    costs = {"path.ideal.tile_handling": handling, "path.ideal.combine_per_tile": add}
    shipped = values(bench.machine)
    different = {key: str(cycles) for key, cycles in costs.items() if shipped[key] != cycles}
    return bench.changed(different) if different else bench


def predict(bench: Bench, grounds: Grounds, options: Options) -> dict[str, list[dict]]:
    """All tables of section `--full`."""
    chosen = admissible(bench, grounds, options)
    allowed = [row for row in chosen if row["admissible"]]
    return {
        "admissible": chosen,
        "swing_over_rd": _ratios(bench, allowed, options),
        "variants": _variants(bench, options),
        "seeds": _seeds(bench, options),
        "places": _places(bench, grounds, options),
        "multi_endpoint": _multi_endpoint(bench.machine, options),
        "multicast": _multicast(bench.machine, options),
    }


def admissible(bench: Bench, grounds: Grounds, options: Options) -> list[dict]:
    """Every pair of costs, whether it satisfies claims 3 to 5, and why not."""

    def judge(handling: int, add: int) -> dict:
        there = _with_costs(bench, handling, add)
        ratios, gains = [], []
        for variant, size in PROBES:
            both = [Conditions(arithmetic, seed=options.seed) for arithmetic in (True, False)]
            full, bare = (timing.slowest() for timing in there.timings(variant, size, both))
            ratios.append(full / grounds.theory.time_us(size * KIB, variant[-2:]))
            gains.append(1 - bare / full)
        return {
            "handling_cycles": handling,
            "add_cycles": add,
            "theory_ratio_min": min(ratios),
            "theory_ratio_max": max(ratios),
            "arithmetic_share_min": min(gains),
            "arithmetic_share_max": max(gains),
            "admissible": min(ratios) >= 1 and max(ratios) <= 2 and min(gains) > 0 and max(gains) <= 0.05,
        }

    return parallel(judge, itertools.product(HANDLING_CYCLES, ADD_CYCLES), options, "admissible set")


def _ratios(bench: Bench, allowed: list[dict], options: Options) -> list[dict]:
    """Swing over recursive doubling, as a range over the admissible set, under both timing rules."""
    benches = [_with_costs(bench, row["handling_cycles"], row["add_cycles"]) for row in allowed]
    cases = [
        (kind, size, arithmetic)
        for kind in ("LO", "BO")
        for size in allreduce.sizes_kib(f"swing_{kind}")
        for arithmetic in (True, False)
    ]

    def one(kind: str, size: int, arithmetic: bool) -> list[dict]:
        ratios: dict[str, list[float]] = {"own": [], "first": []}
        for each in benches:
            swing, doubling = (each.timing(f"{order}_{kind}", size, arithmetic=arithmetic) for order in ("swing", "rd"))
            for rule, found in ratios.items():
                found.append(swing.slowest(rule) / doubling.slowest(rule))
        shape = {"kind": kind, "size_kib": size, "arithmetic": arithmetic}
        return [
            {**shape, "rule": rule, "ratio_min": min(found), "ratio_max": max(found)}
            for rule, found in ratios.items()
            if found
        ]

    return [row for rows in parallel(one, cases, options, "Swing over recursive doubling") for row in rows]


def _variants(bench: Bench, options: Options) -> list[dict]:
    """Finite against infinite buffers, static against dynamic channels, start skew."""
    benches = {
        "default": bench,
        "infinite buffers": bench.changed({"fabric.buffers": '"unlimited"'}),
        "dynamic channels": bench.changed({"fabric.channel_choice": '"dynamic"'}),
    }
    cases = [(name, skew, *probe) for name in benches for skew in (0.0, 1.0) for probe in PROBES]

    def one(name: str, skew: float, variant: str, size: int) -> dict:
        conditions = Conditions(skew_us=skew, seed=options.seed)
        timing = benches[name].timings(variant, size, [conditions])[0]
        times = {f"{rule}_start_us": timing.slowest(rule) for rule in ("own", "first")}
        return {"machine": name, "skew_us": skew, "variant": variant, "size_kib": size, **times}

    return parallel(one, cases, options, "buffers, channels, skew")


def _seeds(bench: Bench, options: Options) -> list[dict]:
    """Twenty repeats with a seeded start skew of 1 us."""

    def one(seed: int, variant: str, size: int) -> dict:
        timing = bench.timings(variant, size, [Conditions(skew_us=1.0, seed=seed)])[0]
        return {"seed": seed, "variant": variant, "size_kib": size, "own_start_us": timing.slowest()}

    return parallel(one, ((seed, *probe) for seed in range(1, 21) for probe in PROBES), options, "seeds")


def _multi_endpoint(machine, options: Options) -> list[dict]:
    """The multi-endpoint patterns of the data movement suite; cycles at the initiators."""
    cases = [case for case in itertools.product(ENDPOINTS, TRANSACTIONS, TRANSACTION_BYTES) if _affordable(*case)]

    def one(name: str, transactions: int, size: int) -> dict:
        get = "from" in name
        schedule = movement.schedule(ENDPOINTS[name], get, "-x" if get else "+x", transactions, size)
        result = ask(machine, schedule, How(path="read" if get else "stream", issue="unlimited"))
        initiators = sorted({source for source, _ in ENDPOINTS[name]})
        taken = [movement.cycles_of(machine, result, rank) for rank in initiators]
        figures = {
            "min_cycles": min(taken),
            "median_cycles": statistics.median(taken),
            "max_cycles": max(taken),
        }
        return {"pattern": name, "transactions": transactions, "transaction_bytes": size, **figures}

    return parallel(one, cases, options, "multi-endpoint patterns")


# Side of the multicast rectangles, which start at logical (0,0), the sender, which is not itself a target.
RECTANGLES = (2, 5, 8)


def _multicast(machine, options: Options) -> list[dict]:
    """One tile to a rectangle of tiles in one packet each; no times are published."""
    machines = {choice: machine.with_value("fabric.multicast", f'"{choice}"') for choice in ("linked", "unlinked")}

    def one(choice: str, side: int, transactions: int, size: int) -> dict:
        targets = [8 * ly + lx for lx in range(side) for ly in range(side)][1:]
        builder = _native.Builder("pattern", RANKS, transactions * size, element_bytes=1)
        builder.buffer("input", transactions)
        builder.buffer("output", transactions)
        builder.step()
        for chunk in range(transactions):
            builder.multicast(0, targets, "input", chunk, into="output")
        batch = How(path="stream", issue=f"batch({transactions})")
        result = ask(machines[choice], builder.finish(), batch)
        cycles = movement.cycles_of(machine, result, movement.INITIATOR)
        shape = {"transactions": transactions, "transaction_bytes": size}
        return {"choice": choice, "side": side, **shape, "cycles": cycles}

    cases = itertools.product(machines, RECTANGLES, TRANSACTIONS, TRANSACTION_BYTES)
    return parallel(one, cases, options, "multicast")


def _places(bench: Bench, grounds: Grounds, options: Options) -> list[dict]:
    """Start and finish of every rank after each of five runs back to back, at the probe sizes."""

    def one(variant: str, size: int) -> list[dict]:
        timing = bench.timing(variant, size)
        return [
            {
                "variant": variant,
                "size_kib": size,
                "run": run + 1,
                "rank": rank,
                "x": x,
                "y": y,
                "start_us": float(timing.start_us[run, rank]),
                "finish_us": float(timing.finish_us[run, rank]),
            }
            for run in range(len(timing.start_us))
            for rank, (x, y) in enumerate(grounds.layout.places)
        ]

    cases = [*PROBES, *(("SM", size) for size in PROBE_SIZES_KIB)]
    return [row for rows in parallel(one, cases, options, "places") for row in rows]


# Targets column by column (lx outer, ly inner), as the published kernels go.
_BY_COLUMN = [8 * ly + lx for lx in range(8) for ly in range(8)]
_SIXTEEN = [8 * ly + lx for lx in range(1, 5) for ly in range(1, 5)]

# Pattern -> (initiator, other) in order.
ENDPOINTS = {
    "one_to_all": [(0, t) for t in _BY_COLUMN if t != 0],
    "one_from_all": [(0, t) for t in _SIXTEEN],
    "all_to_all": [(r, t) for r in range(RANKS) for t in _BY_COLUMN],
    "all_from_all": [(r, t) for r in range(RANKS) for t in _BY_COLUMN],
}


def _affordable(name: str, transactions: int, size: int) -> bool:
    """All-to-all beyond 64 KiB per pair of tiles would take minutes and show nothing new."""
    return not name.startswith("all") or transactions * size <= 64 * KIB
