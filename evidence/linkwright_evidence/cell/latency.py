"""Figure 7: how long each DMA takes under the memory hot spot.

Eight SPEs keep their queues full with 16-KB DMAs to or from main memory. When a DMA begins is not defined in the
article, so there are three clocks: from the SPU's issue (which includes waiting for a place in the queue), from the
selection by the DMA engine, from the first bus request. All end with its completion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwright_evidence.cell.chip import SPES
from linkwright_evidence.cell.programs import run

CLOCKS = {"issue": "issued_ps", "selection": "selected_ps", "first request": "requested_ps"}
WARM, COUNTED = 100, 512
BIN_NS = 10
ALIKE = 0.02


def hot_spot(machine, get: bool, counted: int = COUNTED) -> dict[str, np.ndarray]:
    """Clock -> nanoseconds of every counted DMA, shape (SPEs, DMAs)."""
    step = f"{'get' if get else 'put'} MIC 16384"
    lines = [step] * (WARM + counted) + ["wait"]
    found = run(machine, [(f"SPE{i}", lines) for i in range(SPES)])
    order = np.lexsort((found["line"], found["program"]))
    times = {}
    for name, column in CLOCKS.items():
        taken = (found["complete_ps"] - found[column])[order].reshape(SPES, -1) / 1e3
        # While the last DMAs run, others have finished and leave the memory to them.
        times[name] = taken[:, WARM : WARM + counted - 32]
    return times


def hot_spots(machine) -> dict[str, dict[str, np.ndarray]]:
    """Operation -> its times by clock."""
    return {"get from memory" if get else "put to memory": hot_spot(machine, get) for get in (False, True)}


def summary(times: dict[str, np.ndarray], operation: str) -> list[dict]:
    """Mode, mean, percentiles and spread over the SPEs, by clock."""
    rows = []
    for clock, taken in times.items():
        figures = {
            "mode_ns": mode(taken),
            "mean_ns": float(taken.mean()),
            "p50_ns": float(np.median(taken)),
            "p99_ns": float(np.percentile(taken, 99)),
            "max_ns": float(taken.max()),
            "spe_medians_spread_percent": 100 * spread(taken),
        }
        rows.append({"operation": operation, "from": clock, **figures})
    return rows


def spread(taken: np.ndarray) -> float:
    """By which part the largest median of an SPE exceeds the smallest."""
    medians = np.median(taken, axis=1)
    return float(medians.max() / medians.min() - 1)


def alike(latencies: Mapping[str, np.ndarray]) -> bool:
    """Whether no SPE is treated better: medians within 2 %."""
    return all(spread(taken) <= ALIKE for taken in latencies.values())


def mode(taken: np.ndarray) -> float:
    """Middle of the fullest bin."""
    bins = (taken // BIN_NS).astype(int).ravel()
    return float((np.bincount(bins).argmax() + 0.5) * BIN_NS)


def histogram(times: dict[str, np.ndarray]) -> list[dict]:
    """Share of DMAs by latency from the selection by the DMA engine, all SPEs together and SPE by SPE.

    Latencies are distances from the median of all, in steps of `BIN_NS`.
    """
    taken = times["selection"]
    bins = np.round((taken - np.median(taken)) / BIN_NS).astype(int)
    rows = []
    for name, part in [("all", bins.ravel()), *((f"SPE{i}", row) for i, row in enumerate(bins))]:
        for index in range(bins.min() - 1, bins.max() + 2):
            share = 100 * float(np.count_nonzero(part == index)) / part.size
            rows.append({"of": name, "nanoseconds_from_the_median": int(index * BIN_NS), "share_percent": share})
    return rows
