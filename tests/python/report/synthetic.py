"""A made-up run folder, as the store writes it: a measured two-core machine and a modelled 64-tile one.

The numbers follow simple laws (start-up + bytes / rate, 9 ns a hop) with seeded noise on the measured
machine, so that charts look like real ones; nothing here is a result.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from linkwright.base.stats import grade as grades

ALGORITHMS = {
    "allreduce": "ring recursive_doubling_latency recursive_doubling_bandwidth swing_bandwidth shared_memory",
    "allgather": "ring bruck linear",
    "broadcast": "linear binomial scatter_allgather",
    "alltoall": "pairwise linear",
    "barrier": "dissemination linear",
}
SIZES = [8 * 4**k for k in range(12)]
NASTY = '<script>alert("x")</script> & \'quoted\' "name" </script>'
EMPTY = {"value": None, "ci_low": None, "ci_high": None, "n": None}
NO_MEMORY = "shared_memory needs a passive memory; this machine has none"
WRONG_SUM = "rank 1, chunk 3: expected 2.0, found 1.0 (wrong sum, no number)"


def rows(seed: int = 7) -> pd.DataFrame:
    made: list[dict] = []
    for machine in (Threads(np.random.default_rng(seed)), Tiles()):
        made += machine.pairs() + machine.by_size() + machine.under_load() + machine.collectives()
    return pd.DataFrame(made)


def samples(frame: pd.DataFrame, seed: int = 11) -> pd.DataFrame:
    """Twelve launches of eight samples of each measured experiment; a barrier falls into two modes."""
    noise = np.random.default_rng(seed)
    made = []
    for row in frame[(frame["executor"] == "threads") & frame["value"].notna()].itertuples():
        for launch in range(12):
            mode = 1.6 if row.collective == "barrier" and launch % 3 == 0 else 1.0
            level = row.value * mode * noise.lognormal(0, 0.01)
            values = level * noise.lognormal(0, 0.02, 8)
            made += [("demo", row.experiment, launch, k, None, value) for k, value in enumerate(values)]
    columns = ["run", "experiment", "launch", "sample", "rank", "value_ns"]
    return pd.DataFrame(made, columns=columns).drop_duplicates(columns[1:4])


class Threads:
    """A two-core machine, measured: values with intervals, some of them wide."""

    machine, executor, ranks, start, rate = "xeon-2core", "threads", 2, 1.1e-7, 8.8e9
    link, hop = 9.3e9, 62.0

    def __init__(self, noise: np.random.Generator) -> None:
        self.noise = noise

    def value(self, value: float) -> dict:
        value *= float(self.noise.lognormal(0, 0.06))
        loose = self.noise.random() < 0.05
        half = abs(float(self.noise.normal(0.12 if loose else 0.012, 0.004)))
        ends = {"ci_low": value * (1 - half), "ci_high": value * (1 + half * 1.3), "n": 12}
        precision = grades.precision(value, ends["ci_low"], ends["ci_high"])
        return {"status": "ok", "value": value, "precision": precision, "grade": grades.grade(precision)} | ends

    def row(self, part: str, collective: str, algorithm: str, metric: str, value: float, **more) -> dict:
        key = f"{part}/{collective}/{algorithm}/p{more['ranks']}/{more['size_bytes']}"
        common = {"run": "demo", "suite": "dissect", "machine": self.machine, "executor": self.executor}
        common |= {"part": part, "experiment": f"{key}/{more.get('placement', 'topology')}", "dtype": "f32"}
        common |= {"unit": "B/s" if metric == "bandwidth" else "ns", "limit_name": "latency"}
        about = {"collective": collective, "algorithm": algorithm, "metric": metric}
        return self.compared(common | about | self.value(value) | {"placement": "topology"} | more)

    @staticmethod
    def compared(row: dict) -> dict:
        """A measured machine knows the best that it has shown, and no limit."""
        name = "cache_line" if row.pop("limit_name") == "latency" else "copy_rate"
        return row | {"best_seen": row.pop("limit", None), "best_seen_name": name}

    def pairs(self) -> list[dict]:
        return [self.pair(f"core{a}", f"core{b}", a != b, 24 * a) for a in range(2) for b in range(2)]

    def pair(self, a: str, b: str, apart: bool, more: float, **extra) -> dict:
        limit = self.hop + more if apart else None
        about = {"ranks": 2, "size_bytes": 8, "placement": f"{a}>{b}", "limit": limit}
        value = 1.2 * self.hop + more if apart else 9.0
        return self.row("latency", "pattern", "ping_pong", "latency", value, **about | extra)

    def by_size(self) -> list[dict]:
        return [row for size in SIZES[:9] for row in self.stream("bandwidth", 2, size)]

    def under_load(self) -> list[dict]:
        return [row for size in (8, 65536) for row in self.stream("load", 2, size)]

    def stream(self, part: str, ranks: int, size: int) -> list[dict]:
        """Time and bandwidth of 16 messages on each of ranks / 2 pairs."""
        seconds = (self.start + 16 * size / self.link) * (1 + 0.02 * (ranks / 2 - 1))
        about = {"ranks": ranks, "size_bytes": size}
        least = max(self.hop, 16e9 * size / self.link / 1.3)
        peak = {"limit": ranks / 2 * self.link * 1.3, "limit_name": "port"}
        return [
            self.row(part, "pattern", "pairs", "time", seconds * 1e9, limit=least, **about),
            self.row(part, "pattern", "pairs", "bandwidth", 8 * ranks * size / seconds, **about, **peak),
        ]

    def collectives(self) -> list[dict]:
        times = [
            self.collective(kind, algorithm, index, size)
            for kind, algorithms in ALGORITHMS.items()
            for index, algorithm in enumerate(algorithms.split())
            for size in ([0] if kind == "barrier" else SIZES)
        ]
        return times + [self.bus_bandwidth(row) for row in times if row["size_bytes"] and row["status"] == "ok"]

    @staticmethod
    def bus_bandwidth(row: dict) -> dict:
        """The bus bandwidth of a time, with the factor 1; the ends of an interval swap."""
        names = {"value": "value", "ci_low": "ci_high", "ci_high": "ci_low", "limit": "limit", "best_seen": "best_seen"}
        rates = {name: 1e9 * row["size_bytes"] / row[of] for name, of in names.items() if row.get(of)}
        return row | rates | {"metric": "bus_bw", "unit": "B/s", "bound": None}

    def collective(self, kind: str, algorithm: str, index: int, size: int) -> dict:
        p, rounds = self.ranks, math.log2(self.ranks)
        rounds_needed = [2 * (p - 1), rounds, 2 * rounds][index % 3]
        moved = [2 * (p - 1) / p, rounds, 2.4 * (p - 1) / p][index % 3] * (1 + 0.05 * index)
        least = 0.7 * rounds * self.start + 1.6 * (p - 1) / p * size / self.rate
        seconds = max(1.2 * least, rounds_needed * self.start * (1 + 0.03 * index) + moved * size / self.rate)
        about = {"ranks": p, "size_bytes": size, "limit": least * 1e9}
        about |= {"limit_name": "latency" if size < 4096 else "port", "op": "sum"}
        row = self.row("collectives", kind, algorithm, "time", seconds * 1e9, **about)
        if algorithm == "shared_memory":
            row |= EMPTY | {"status": "waived", "reason": NO_MEMORY}
        if (algorithm, size) == ("bruck", SIZES[-1]):
            row |= EMPTY | {"status": "failed", "reason": WRONG_SUM}
        return row


class Tiles(Threads):
    """64 tiles in a torus of 10 x 12 places, modelled: no interval and no n."""

    machine, executor, ranks, start, rate = "wormhole-n150", "sim", 64, 2.4e-7, 26e9
    link, hop = 31.2e9, 20.0

    def __init__(self) -> None:
        pass

    def value(self, value: float) -> dict:
        return {"status": "ok", "value": value}

    @staticmethod
    def compared(row: dict) -> dict:
        return row | {"bound": row["value"] * 0.9, "bound_name": "port"} if row["unit"] == "ns" else row

    def pairs(self) -> list[dict]:
        tiles = [(x, y) for y in (1, 2, 3, 4, 5, 7, 8, 9) for x in (1, 2, 3, 4, 6, 7, 8, 9)]
        made = []
        for a, b in itertools.product(tiles, tiles):
            hops, names = self.hops(a, b), ("({},{})".format(*end) for end in (a, b))
            made.append(self.pair(*names, a != b, 9 * hops, reference=29.0 if hops == 1 else None))
        return made

    @staticmethod
    def hops(a: tuple[int, int], b: tuple[int, int]) -> int:
        return (b[0] - a[0]) % 10 + (b[1] - a[1]) % 12

    def under_load(self) -> list[dict]:
        counts = (2, 4, 8, 16, 32, 64)
        return [row for ranks in counts for size in (8, 16384) for row in self.stream("load", ranks, size)]


ENVIRONMENT = {
    "time": "2026-11-21T12:31:04+00:00",
    "command": "linkwright dissect --on threads,wormhole-n150",
    "python": "3.11.7",
    "versions": {"linkwright": "0.1.0", "numpy": "2.1.0"},
    "kernel": "6.1.0-21-amd64",
    "system": "Debian GNU/Linux 12 (bookworm)",
    "processor": "Intel(R) Xeon(R) Processor @ 2.60GHz",
    "cpus_online": 2,
    "affinity": [0, 1],
    "topology": [{"cpu": 0, "package": "0", "core": "0"}, {"cpu": 1, "package": "0", "core": "1"}],
    "cgroup_cpu_max": None,
}
PLAN = {"format": 1, "id": "demo", "state": "done", "seed": 20261121}
SUITE = """[suite]
name = "dissect"

[[part]]
name = "bandwidth"
summary = "one pair, one way, by message size"

[[part]]
name = "load"
summary = "1, 2, 4 ... pairs at once"
"""


def study(seed: int = 3) -> dict:
    """A reproduced study as ``reproduce --json`` prints it."""
    noise = np.random.default_rng(seed)
    cells = []
    spreads = {"one_to_one_write": 0.012, "one_from_one_read": 0.02, "dram_interleaved_read": 0.05}
    shapes = itertools.product(spreads, (1, 4, 16, 64, 256), (32, 128, 512, 2048, 8192))
    for table, count, size in shapes:
        reference = 250 + count * max(22, size / 31)
        held = table == "dram_interleaved_read" and count == 256
        keys = {"table": table, "noc": 0, "transactions": count, "transaction_bytes": size}
        predicted = round(float(reference * (1 + noise.normal(0.004, spreads[table]))), 1)
        published = (
            {"reference": None, "split": "holdout"} if held else {"reference": round(reference), "split": "open"}
        )
        cells.append({**keys, "predicted": predicted, **published, "unit": "cycles"})
    claims = [
        ("1", "Swing is slower than recursive doubling at every size", True, "ratio 1.02 to 1.31 over 11 sizes"),
        ("2", "Shared memory is the slowest variant from 8 kB up", True, "1.9 to 3.3 times the ring"),
        ("10", "The spread between nodes is below 8 %", False, "IQR / median is 11.4 % at 2 kB"),
    ]
    tuned = [
        ("path.put.start", 76.0, "ns", "fitted", ["one_to_one_write"]),
        ("path.get.start", 71.5, "ns", "fitted", ["one_from_one_read", "dram_interleaved_read"]),
    ]
    return {
        "paper": "wormhole",
        "tuned": _named(("key", "value", "unit", "status", "tables"), tuned),
        "cells": cells,
        "claims": _named(("id", "statement", "holds", "why"), claims),
    }


def _named(names: tuple[str, ...], rows: list[tuple]) -> list[dict]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def folder(path: Path, frame: pd.DataFrame | None = None) -> Path:
    """Writes a run folder; `frame` stands for its results."""
    frame = rows() if frame is None else frame
    path.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path / "results.parquet")
    samples(frame).to_parquet(path / "samples.parquet")
    (path / "environment.json").write_text(json.dumps(ENVIRONMENT))
    (path / "run.json").write_text(json.dumps(PLAN))
    (path / "suite.toml").write_text(SUITE)
    return path
