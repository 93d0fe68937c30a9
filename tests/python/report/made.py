"""Runs of a few hand-made rows, for tests of what is said about them."""

from __future__ import annotations

import pandas as pd

from linkwright.base.rows import Rows
from linkwright.base.stats import grade
from linkwright.show.report import runs

HOST, MODEL = {"machine": "here", "executor": "threads"}, {"machine": "drawn", "executor": "sim"}
CACHES = (("1", "Data", "32K", 1), ("2", "Unified", "1M", 1), ("3", "Unified", "16M", 2))


def run_of(*rows: dict, samples: pd.DataFrame | None = None, environment: dict | None = None, plan: dict | None = None):
    """A run of these rows; what they leave out is an undisturbed, tight time of one experiment each."""
    common = {"run": "r", "part": "p", "metric": "time", "unit": "ns", "status": "ok", **HOST}
    frame = pd.DataFrame([common | {"experiment": f"e{n}"} | row for n, row in enumerate(rows)])
    return runs.Run(
        "r",
        runs.normalise(frame),
        columns(pd.DataFrame() if samples is None else samples),
        environment=environment or {},
        plan=plan or {},
    )


def columns(frame: pd.DataFrame) -> Rows:
    """A frame as the pages read it."""
    return Rows({name: frame[name].to_numpy() for name in frame}, len(frame))


def sure(value: float, half: float = 0.01) -> dict:
    """A value with an interval of ± `half`, a share."""
    ends = {"ci_low": value * (1 - half), "ci_high": value * (1 + half), "n": 12}
    return {"value": value, "precision": half, "grade": grade.grade(half), **ends}


def host(processors: int = 2) -> dict:
    """A virtual machine whose kernel claims `CACHES`; the last one is shared by pairs."""
    rows = []
    for cpu in range(processors):
        first = cpu - cpu % 2
        shared = {1: f"{cpu}", 2: f"{first}-{min(first + 1, processors - 1)}"}
        caches = [{"level": v, "type": t, "size": s, "shared_cpu_list": shared[n]} for v, t, s, n in CACHES]
        rows.append({"cpu": cpu, "package": "0", "core": str(cpu), "siblings": str(cpu), "caches": caches})
    return {"topology": rows, "virtual": True, "memory_bytes": 8 << 30, "processor": "AMD EPYC 7742"}


def loads(*points: tuple[float, float]) -> list[dict]:
    """A latency curve: (working set in bytes, ns)."""
    about = {
        "algorithm": "memory_latency",
        "metric": "latency",
        "axes": "order=random pages=4K neighbours=0",
        "ranks": 1,
    }
    return [about | {"size_bytes": int(size)} | sure(ns) for size, ns in points]


def curve(*plateaus: tuple[float, float], to: float = 128 << 20) -> list[dict]:
    """A latency curve with sharp steps, doubling from 4 KiB: (size up to which a plateau holds, ns)."""
    sizes = [4096 * 2**k for k in range(20) if 4096 * 2**k <= to]
    return loads(*((size, next(ns for end, ns in plateaus if size <= end)) for size in sizes))


def pairs(values: dict[tuple[str, str], float], half: float = 0.01, **about: object) -> list[dict]:
    """Half a round trip of 8 bytes between endpoints, in ns."""
    common = {"collective": "pattern", "algorithm": "ping_pong", "metric": "latency", "ranks": 2, "size_bytes": 8}
    return [
        common | {"placement": f"{a}->{b}", "experiment": f"pair {a} {b}"} | sure(ns, half) | about
        for (a, b), ns in values.items()
    ]


def allreduce(*times: tuple[int, float], half: float = 0.01, **about: object) -> list[dict]:
    """(bytes, ns) of one algorithm."""
    common = {"collective": "allreduce", "algorithm": "ring", "ranks": 2, "part": "collectives"}
    return [common | {"size_bytes": size} | sure(ns, half) | about for size, ns in times]
