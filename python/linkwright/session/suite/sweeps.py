"""The result of a sweep over sizes as a whole: the size at which half of the peak rate is reached, n_1/2.

A mean over sizes says nothing about a machine; peak, n_1/2 and the latency of the smallest message do.
The row stands with the experiment that reached the peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkwright.base.stats.bandwidth import half_peak_size
from linkwright.libraries import library
from linkwright.store import schema

from .rows import Row

# Fewer sizes do not make a sweep.
MIN_SIZES = 3
_SAME = ("machine", "executor", "collective", "algorithm", "ranks", "dtype", "op", "placement")
_RATES = ("bandwidth", "alg_bw")


def half_peaks(rows: Iterable[Row]) -> Iterator[Row]:
    """One row for each sweep of a rate over at least three sizes."""
    sweeps: dict[tuple, dict[int, Row]] = {}
    for row in rows:
        if row["metric"] in _RATES and row["value"] is not None:
            how = () if library.is_plan(row["algorithm"]) else (row["issue"], row["path"])
            key = (row["part"], row["metric"], *(row[key] for key in _SAME), *how)
            sweeps.setdefault(key, {})[row["size_bytes"]] = row
    for sweep in sweeps.values():
        if len(sweep) >= MIN_SIZES:
            yield _half_peak(sweep)


def _half_peak(sweep: dict[int, Row]) -> Row:
    peak = max(sweep.values(), key=lambda row: row["value"])
    size = half_peak_size(list(sweep), [row["value"] for row in sweep.values()])
    unit = schema.METRICS["half_peak_size"][0]
    below = f"half of the peak is reached below the smallest size, {min(sweep)} B"
    cleared = dict.fromkeys(("ci_low", "ci_high", "reference", *schema.COMPARED, *schema.COMPARED_NAMES))
    return {
        **peak, **cleared, "metric": "half_peak_size", "unit": unit, "value": size,
        "status": "ok" if size is not None else "waived", "reason": None if size is not None else below,
        "code": None if size is not None else "below-sweep",
    }  # fmt: skip
