"""Predictions of what the article does not print, under every structural choice that is not published.

The uniform traffic and the latencies under the memory hot spot were held out until these predictions were made; the
arbiter's window was chosen afterwards, by the uniform traffic. `uniform_by_structure` shows what each choice says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from linkwright_evidence import Options, parallel, parallel_by_case
from linkwright_evidence.cell import load, streams
from linkwright_evidence.cell.chip import SPES, VARIANTS, variant
from linkwright_evidence.cell.load import Loads
from linkwright_evidence.cell.streams import Stream
from linkwright_evidence.outcome import Cell

VARIANT_SEEDS = (1, 2)
JITTERS = (1, 2, 3)
WAYS = (False, True)  # put, get
# Pattern of eight SPEs -> its stream, of gets or puts.
PATTERNS: dict[str, Callable[[bool], Stream]] = {
    "complement": lambda get: streams.complement(SPES, get),
    "pairwise": lambda get: streams.pairwise(SPES, get),
    "main memory": lambda get: streams.memory(SPES, get),
    "local store": lambda get: streams.hot_store(SPES, get),
    "uniform": lambda get: streams.uniform(SPES, get, seed=1),
}


def uniform(machine, loads: Loads, options: Options) -> list[dict]:
    """Uniform random over eight SPEs, by structural choice: mean and range over seeds."""
    others = [name for name in VARIANTS if name != "default"]
    found = parallel_by_case(
        lambda name, get, seed: streams.measure(variant(machine, name), streams.uniform(SPES, get, seed)),
        itertools.product(others, WAYS, VARIANT_SEEDS),
        options,
        "uniform random, by structure",
    )
    rows = []
    for name, get in itertools.product(VARIANTS, WAYS):
        own = [found[name, get, seed] for seed in VARIANT_SEEDS] if name in others else load.of_seeds(loads, get, SPES)
        totals = [rates.total for rates in own]
        figures = {"mean_gb_per_s": float(np.mean(totals)), **_range(totals)}
        rows.append({"structure": name, "operation": load.word(get), "seeds": len(totals), **figures})
    return rows


def _range(totals: Sequence[float]) -> dict[str, float]:
    return {"least_gb_per_s": min(totals), "most_gb_per_s": max(totals)}


def patterns(machine, options: Options) -> list[dict]:
    """Complement, pairwise and hot spots by structural choice, with the slowest SPE."""

    def one(name: str, make: str, get: bool) -> dict:
        rates = streams.measure(variant(machine, name), PATTERNS[make](get))
        return {"structure": name, "operation": f"{load.word(get)} {make}", **load.figures(rates)}

    makes = [make for make in PATTERNS if make != "uniform"]
    return parallel(one, itertools.product(VARIANTS, makes, WAYS), options, "patterns, by structure")


def small_sets(machine, options: Options) -> list[dict]:
    """Three, two, one pairs both ways; 1 to 5 readers of one SPE; six SPEs."""
    sets: dict[str, Stream] = {}
    for pairs in (1, 2, 3):
        sets[f"{pairs} pairs both ways"] = streams.pairwise(2 * pairs, get=True)
    for readers in range(1, 6):
        sets[f"{readers} readers of SPE 0"] = streams.hot_store(readers + 1, get=True)
    for get in (True, False):
        sets[f"six SPEs, {load.word(get)} complement"] = streams.complement(6, get)
        sets[f"six SPEs, {load.word(get)} pairwise"] = streams.pairwise(6, get)
        sets[f"six SPEs, {load.word(get)} memory"] = streams.memory(6, get)
        sets[f"six SPEs, {load.word(get)} uniform"] = streams.uniform(6, get, seed=1)
    found = parallel_by_case(lambda name: streams.measure(machine, sets[name]), sets, options, "small sets of flows")
    rows = []
    for name, rates in found.items():
        busy = {f"{ring.replace(' ', '_')}_percent": share for ring, share in load.ring_shares(rates).items()}
        rows.append({"flows": name, **load.figures(rates), **busy})
    return rows


def ordered_pairs(machine, options: Options) -> list[dict]:
    """Every ordered pair of SPEs alone, gets."""

    def one(own: int, other: int) -> dict:
        rates = streams.measure(machine, streams.one(other, True, 16384, own))
        return {"spe": own, "partner": other, "rate_gb_per_s": rates.total}

    return parallel(one, itertools.permutations(range(SPES), 2), options, "pairs alone")


def jitter(machine, options: Options) -> list[dict]:
    """The same patterns with start times that differ by up to 40 bus cycles: does a phase lock in?"""
    makes = [make for make in PATTERNS if make != "local store"]
    found = parallel_by_case(
        lambda make, get, seed: streams.measure(machine, PATTERNS[make](get), jitter=seed).total,
        itertools.product(makes, WAYS, JITTERS),
        options,
        "start jitter",
    )
    return [
        {"operation": f"{load.word(get)} {make}", **_range([found[make, get, seed] for seed in JITTERS])}
        for make, get in itertools.product(makes, WAYS)
    ]


def longer(machine, options: Options) -> list[dict]:
    """Three points with 512 counted DMAs per SPE against the short windows that were found steady."""
    points = {
        "complement get": (streams.complement(SPES, True), "unlimited"),
        "memory put": (streams.memory(SPES, False), "unlimited"),
        "256-B get, batch 4": (streams.one(1, True, 256), "batch(4)"),
    }

    def one(name: str) -> dict:
        short, long = (streams.measure(machine, *points[name], long=flag) for flag in (False, True))
        rates = {"short_gb_per_s": short.total, "long_gb_per_s": long.total}
        return {
            "point": name, "short": short.count, **rates, "apart_percent": 100 * abs(long.total / short.total - 1)
        }  # fmt: skip

    return list(parallel_by_case(one, points, options, "longer runs").values())


def placements(machine, options: Options, most: int) -> dict[str, list[float]]:
    """Aggregates of complement, pairwise and three pairs over random placements of logical on hardware numbers."""
    random = np.random.default_rng(options.seed)
    drawn = [random.permutation(SPES).tolist() for _ in range(most)]
    patterns = {f"{load.word(get)} {name}": PATTERNS[name](get) for name in ("complement", "pairwise") for get in WAYS}
    patterns |= {f"{load.word(get)} three pairs": streams.pairwise(6, get) for get in WAYS}
    return {name: _placed(machine, stream, drawn, options, f"placements, {name}") for name, stream in patterns.items()}


def placement_rows(found: Mapping[str, Sequence[float]]) -> list[dict]:
    """Least, median and most of each pattern."""
    return [{"operation": name, "placements": len(totals), **_spread(totals)} for name, totals in found.items()]


def six_of_eight(machine, options: Options) -> list[dict]:
    """Every choice of six hardware units: complement and pairwise gets."""
    chosen = itertools.combinations(range(SPES), 6)
    places = [[*units, *(i for i in range(SPES) if i not in units)] for units in chosen]
    rows = []
    for name, make in (("complement", streams.complement), ("pairwise", streams.pairwise)):
        totals = _placed(machine, make(6, True), places, options, f"six of eight, {name}")
        rows.append({"operation": f"get {name}", "choices": len(places), **_spread(totals)})
    return rows


def _placed(machine, stream: Stream, places: Iterable[list[int]], options: Options, what: str) -> list[float]:
    """A stream's aggregate for each placement."""
    return parallel(
        lambda place: streams.measure(machine, stream, placement=place).total, ((p,) for p in places), options, what
    )


def _spread(totals: Sequence[float]) -> dict[str, float]:
    return {
        "least_gb_per_s": min(totals), "median_gb_per_s": float(np.median(totals)), "most_gb_per_s": max(totals)
    }  # fmt: skip


def cells(uniform_rows: list[dict], latency_rows: list[dict], pattern_rows: list[dict]) -> list[Cell]:
    """What was held out or is unprinted, in figures that no published value stands beside, as cells without one."""

    def cell(quantity: str, keys: dict, value: float, unit: str) -> Cell:
        return Cell("blind", {"table": "blind", "quantity": quantity, **keys}, value, None, unit, "holdout")

    made = []
    for row in uniform_rows:
        keys = {"structure": row["structure"], "operation": row["operation"]}
        for statistic in ("mean", "least", "most"):
            made.append(
                cell("uniform random aggregate", keys | {"statistic": statistic}, row[f"{statistic}_gb_per_s"], "GB/s")
            )
    for row in latency_rows:
        keys = {"structure": "default", "operation": row["operation"], "from": row["from"]}
        for statistic in ("mode", "mean", "p99", "max"):
            made.append(cell("memory hot spot latency", keys | {"statistic": statistic}, row[f"{statistic}_ns"], "ns"))
    for row in pattern_rows:
        if "pairwise" in row["operation"]:
            keys = {"structure": row["structure"], "operation": row["operation"]}
            made.append(cell("pairwise aggregate", keys | {"statistic": "mean"}, row["aggregate_gb_per_s"], "GB/s"))
    return made
