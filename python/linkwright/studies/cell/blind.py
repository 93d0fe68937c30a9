"""Predictions of what the article does not print, each with the structure that nobody has published varied.

Held out are the aggregate of uniform random traffic, the latency distributions under the memory hot spot, and counter
measurements on another board. No parameter was tuned for any of them; the two put calibrations have no predictive
value, so every row also stands there without them.
"""

from __future__ import annotations

import itertools

import numpy as np

from linkwright.studies import Cell, Options, parallel
from linkwright.studies.cell import latency, load, streams
from linkwright.studies.cell.chip import SPES, VARIANTS, variant
from linkwright.studies.cell.load import Loads
from linkwright.studies.cell.streams import Stream

VARIANT_SEEDS = (1, 2)
JITTERS = (1, 2, 3)


def uniform(machine, loads: Loads, options: Options) -> list[dict]:
    """Uniform random over eight SPEs, by structural choice: mean and range over seeds."""
    cases = [
        (name, get, seed) for name in VARIANTS if name != "default" for get in (False, True) for seed in VARIANT_SEEDS
    ]

    def one(case: tuple) -> streams.Rates:
        name, get, seed = case
        return streams.measure(variant(machine, name), streams.uniform(SPES, get, seed))

    found = dict(zip(cases, parallel(one, cases, options, "uniform random, by structure"), strict=True))
    rows = []
    for name in VARIANTS:
        for get in (False, True):
            rates = (
                load.of_seeds(loads, get, SPES)
                if name == "default"
                else [found[name, get, seed] for seed in VARIANT_SEEDS]
            )
            totals = [r.total for r in rates]
            figures = {
                "mean_gb_per_s": float(np.mean(totals)),
                "least_gb_per_s": min(totals),
                "most_gb_per_s": max(totals),
            }
            rows.append({"structure": name, "operation": load.word(get), "seeds": len(totals), **figures})
    return rows


def patterns(machine, options: Options) -> list[dict]:
    """Complement, pairwise and hot spots by structural choice, with the slowest SPE."""
    makes = {
        "complement": lambda get: streams.complement(SPES, get),
        "pairwise": lambda get: streams.pairwise(SPES, get),
        "main memory": lambda get: streams.memory(SPES, get),
        "local store": lambda get: streams.hot_store(SPES, get),
    }
    cases = [(name, make, get) for name in VARIANTS for make in makes for get in (False, True)]

    def one(case: tuple) -> dict:
        name, make, get = case
        rates = streams.measure(variant(machine, name), makes[make](get))
        figures = {
            "aggregate_gb_per_s": rates.total,
            "slowest_gb_per_s": min(rates.each),
            "fastest_gb_per_s": max(rates.each),
        }
        return {"structure": name, "operation": f"{load.word(get)} {make}", **figures}

    return parallel(one, cases, options, "patterns, by structure")


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
    found = parallel(lambda name: streams.measure(machine, sets[name]), sets, options, "small sets of flows")
    rows = []
    for name, rates in zip(sets, found, strict=True):
        busy = {f"{ring.replace(' ', '_')}_percent": share for ring, share in load.ring_shares(rates).items()}
        figures = {
            "aggregate_gb_per_s": rates.total,
            "slowest_gb_per_s": min(rates.each),
            "fastest_gb_per_s": max(rates.each),
        }
        rows.append({"flows": name, **figures, **busy})
    return rows


def ordered_pairs(machine, options: Options) -> list[dict]:
    """Every ordered pair of SPEs alone, gets."""
    pairs = list(itertools.permutations(range(SPES), 2))

    def one(pair: tuple[int, int]) -> dict:
        own, other = pair
        rates = streams.measure(machine, streams.one(other, True, 16384, own))
        return {"spe": own, "partner": other, "rate_gb_per_s": rates.total}

    return parallel(one, pairs, options, "pairs alone")


def jitter(machine, options: Options) -> list[dict]:
    """The same patterns with start times that differ by up to 40 bus cycles: does a phase lock in?"""
    makes = {
        "complement": lambda get: streams.complement(SPES, get),
        "pairwise": lambda get: streams.pairwise(SPES, get),
        "main memory": lambda get: streams.memory(SPES, get),
        "uniform": lambda get: streams.uniform(SPES, get, seed=1),
    }
    cases = [(make, get, seed) for make in makes for get in (False, True) for seed in JITTERS]

    def one(case: tuple) -> float:
        make, get, seed = case
        return streams.measure(machine, makes[make](get), jitter=seed).total

    found = dict(zip(cases, parallel(one, cases, options, "start jitter"), strict=True))
    rows = []
    for make in makes:
        for get in (False, True):
            totals = [found[make, get, seed] for seed in JITTERS]
            rows.append(
                {"operation": f"{load.word(get)} {make}", "least_gb_per_s": min(totals), "most_gb_per_s": max(totals)}
            )
    return rows


def longer(machine, options: Options) -> list[dict]:
    """Three points with 512 counted DMAs per SPE against the short windows that were found steady."""
    points = {
        "complement get": (streams.complement(SPES, True), "unlimited"),
        "memory put": (streams.memory(SPES, False), "unlimited"),
        "256-B get, batch 4": (streams.one(1, True, 256), "batch(4)"),
    }

    def one(name: str) -> dict:
        stream, issue = points[name]
        short, long = (streams.measure(machine, stream, issue, long=flag) for flag in (False, True))
        apart = 100 * abs(long.total / short.total - 1)
        return {
            "point": name,
            "short": short.count,
            "short_gb_per_s": short.total,
            "long_gb_per_s": long.total,
            "apart_percent": apart,
        }

    return parallel(one, points, options, "longer runs")


def placements(machine, options: Options, most: int = 1000) -> list[dict]:
    """Complement and pairwise over random placements of logical on hardware numbers."""
    random = np.random.default_rng(options.seed)
    drawn = [random.permutation(SPES).tolist() for _ in range(most)]
    makes = {"complement": streams.complement, "pairwise": streams.pairwise}
    rows = []
    for name, make in makes.items():
        for get in (False, True):
            totals = parallel(
                lambda place, make=make, get=get: streams.measure(machine, make(SPES, get), placement=place).total,
                drawn,
                options,
                f"placements, {load.word(get)} {name}",
            )
            figures = {
                "least_gb_per_s": min(totals),
                "median_gb_per_s": float(np.median(totals)),
                "most_gb_per_s": max(totals),
            }
            rows.append({"operation": f"{load.word(get)} {name}", "placements": most, **figures})
    return rows


def six_of_eight(machine, options: Options) -> list[dict]:
    """Every choice of six hardware units: complement and pairwise gets."""
    rows = []
    for name, make in {"complement": streams.complement, "pairwise": streams.pairwise}.items():
        units = list(itertools.combinations(range(SPES), 6))

        def one(chosen: tuple[int, ...], make=make) -> float:
            others = [i for i in range(SPES) if i not in chosen]
            return streams.measure(machine, make(6, True), placement=[*chosen, *others]).total

        totals = parallel(one, units, options, f"six of eight, {name}")
        figures = {
            "least_gb_per_s": min(totals),
            "median_gb_per_s": float(np.median(totals)),
            "most_gb_per_s": max(totals),
        }
        rows.append({"operation": f"get {name}", "choices": len(units), **figures})
    return rows


def cells(uniform_rows: list[dict], latency_rows: list[dict], pattern_rows: list[dict]) -> list[Cell]:
    """The held-out quantities and the unprinted values of section 3.8, as cells without a reference."""

    def cell(quantity: str, keys: dict, value: float, unit: str, split: str = "holdout") -> Cell:
        return Cell("blind", {"table": "blind", "quantity": quantity, **keys}, value, None, unit, split)

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


def hot_spots(machine) -> tuple[dict[str, dict], list[dict], dict[str, list[dict]]]:
    """Figure 7: times by operation, their summary, and the histogram of each panel."""
    found, summaries, histograms = {}, [], {}
    for get, panel in ((False, "figure_7a"), (True, "figure_7b")):
        operation = "get from memory" if get else "put to memory"
        found[operation] = latency.hot_spot(machine, get)
        summaries += latency.summary(found[operation], operation)
        histograms[panel] = latency.histogram(found[operation])
    return found, summaries, histograms
