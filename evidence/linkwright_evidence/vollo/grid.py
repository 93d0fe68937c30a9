"""Round trips on the grid of the tables: modelled ones from the probe `round_trip`, published ones from the page.

A grid is a mapping (mode, statistic, input values, output values) -> microseconds; one value has two bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from linkwright import _native

Key = tuple[str, str, int, int]
Grid = Mapping[Key, float]

MODES = ("user", "raw", "mmio")
STATISTICS = ("mean", "p99")
VALUES = tuple(32 << k for k in range(9))
FITTED_SIZES = frozenset(VALUES[::2])
BYTES_PER_VALUE = 2
PRINT_STEP_US = 0.1

# What the page calls a mode is a transport of the probe.
TRANSPORT = {"user": "user_buffers", "raw": "in_place", "mmio": "word_store"}
# Modes that a fitted number affects, mean and p99. The rule of the p99 is not listed; it affects all modes.
_MODES_OF = {
    "fabric.read_latency": ("user", "raw"),
    "fabric.dma_rate": MODES,
    "probe.round_trip.pipeline": MODES,
    "fabric.store_interval": ("mmio",),
    "fabric.copy_start": ("user",),
    "fabric.copy_read_rate": ("user",),
    "fabric.copy_write_rate": ("user",),
}
_COLUMN = {"mean": "round_trip_mean", "p99": "round_trip_p99"}


def round_trip_us(machine, mode: str, in_bytes: int, out_bytes: int) -> dict[str, float]:
    """Mean and 99th percentile of one round trip on a machine."""
    axes = {"transport": TRANSPORT[mode], "in_bytes": in_bytes, "out_bytes": out_bytes}
    columns = _native.model_probe(machine, "round_trip", axes)["columns"]
    return {statistic: columns[_COLUMN[statistic]] / 1e3 for statistic in STATISTICS}


def modelled(machine, pairs: Iterable[tuple[str, int, int]] | None = None) -> dict[Key, float]:
    """All cells of the tables, or those of (mode, input, output) in values."""
    if pairs is None:
        pairs = [(mode, i, o) for mode in MODES for o in VALUES for i in VALUES]
    grid = {}
    for mode, i, o in pairs:
        found = round_trip_us(machine, mode, BYTES_PER_VALUE * i, BYTES_PER_VALUE * o)
        grid |= {(mode, statistic, i, o): time for statistic, time in found.items()}
    return grid


def published(rows: Iterable[Mapping[str, str]], split: str | None = None) -> dict[Key, float]:
    """The cells of the reference file, or those that were `open` or `holdout` while the model was built."""
    return {
        (row["mode"], row["stat"], int(row["in_values"]), int(row["out_values"])): float(row["us"])
        for row in rows
        if split in (None, row["split"])
    }


def fitted_to(rows: Iterable[Mapping[str, str]]) -> dict[Key, float]:
    """The cells that the numbers were fitted to: open ones with every other size each way, from the smallest on."""
    return {key: time for key, time in published(rows, "open").items() if set(key[2:]) <= FITTED_SIZES}


def tables_of(key: str) -> list[str]:
    """The tables that a fitted number affects; the rule of the 99th percentile affects only those of p99."""
    statistics = STATISTICS if key in _MODES_OF else ("p99",)
    return [f"{mode}, {statistic}" for mode in _MODES_OF.get(key, MODES) for statistic in statistics]
