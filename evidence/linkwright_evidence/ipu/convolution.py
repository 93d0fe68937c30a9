"""Section 5.2: 64 layers of six networks, forward in half precision, by batch, on an IPU and a V100.

The target holds for layers without groups and with at least 16 input channels, in cells of at least 0.3 TFlop/s;
layers with groups and first layers are shown apart, smaller cells have one or two digits and are not scored.
Both models were fitted to one layer in four (`given`), which is not scored; `fit_compute` finds the numbers again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from linkwright_evidence import scoring
from linkwright_evidence.ipu import matmul
from linkwright_evidence.ipu.arithmetic import device
from linkwright_evidence.ipu.tables import Table
from linkwright_evidence.outcome import Cell, Claim
from linkwright_evidence.published import reference_rows
from linkwright_evidence.scoring import Target

LAYER = Target(0.12, None, 0.25)
WITHIN, SHARE = 0.25, 0.85
LEAST_TFLOP_PER_S = 0.3
LEAST_CHANNELS = 16
HEAVY_CHANNELS = 256
FIRST = "first layers"
# A ratio of two modelled rates counts as met within this factor.
FACTOR = 1.5
NETWORKS = {
    "ResNeXt": "resnext",
    "ResNet-50 v1.5": "resnet50",
    "Inception v3": "inception3",
    "VGG16": "vgg16",
    "SSD v1.1": "ssd",
    "AlexNet": "alexnet",
}
GPU_BATCHES = tuple(2**power for power in range(12))
# I17: the IPU's column of table 5.3 is the best over these, not over all that fit.
IPU_BATCHES = GPU_BATCHES[:6]
ROUNDED = "below 0.3 TFlop/s: printed with one or two digits"


def layer(row: dict[str, str]) -> str:
    """Key of the layer of a row."""
    return f"{NETWORKS[row['network']]}.{row['layer'].lower()}"


def kind(row: dict[str, str]) -> str:
    """How a row is scored: the empty text stands for the class of the target."""
    if int(row["groups"]) > 1:
        return "groups"
    return "" if int(row["in_ch"]) >= LEAST_CHANNELS else FIRST


@dataclass(frozen=True)
class LayerTable(Table):
    """A table of layers, scored by class."""

    def cell(self, bench, row: dict[str, str]) -> Cell:
        """One cell under the name of its class; a cell of few digits is not scored."""
        made = super().cell(bench, row)
        device_name = row["device"] if self.key == "5.3" else ""
        label = " ".join(word for word in (self.key, device_name, _quantity(row), kind(row)) if word)
        if kind(row) == FIRST:
            made = replace(made, role="predicted")
        small = row["metric"].startswith("throughput") and row["unit"] == "TFlop/s" and made.reference is not None
        erratum = ROUNDED if small and made.reference < LEAST_TFLOP_PER_S else made.erratum
        return replace(made, table=label, erratum=erratum)


def _quantity(row: dict[str, str]) -> str:
    return "per W" if row["metric"].startswith("energy") else ""


@functools.cache
def rate(name: str, key: str, batch: int) -> float | None:
    """TFlop/s of a layer on a device."""
    return device(name).layer_rate(key, batch)


def by_batch(bench, row: dict[str, str]) -> float | None:
    """Tables 5.4 and 5.5."""
    return rate(row["device"], layer(row), int(row["batch"]))


def peak(name: str, key: str) -> float:
    """The best over the batches that table 5.3 takes."""
    batches = IPU_BATCHES if name == "IPU" else GPU_BATCHES
    return max(found for batch in batches if (found := rate(name, key, batch)) is not None)


def comparison(bench, row: dict[str, str]) -> float:
    """Table 5.3: best rate, rate per nominal watt, and both as ratios."""
    key = layer(row)
    values = {
        name: peak(name, key) / (device(name).power_w if row["metric"].startswith("energy") else 1.0)
        for name in ("IPU", "V100")
    }
    return values["IPU"] / values["V100"] if row["device"] == "IPU/V100" else values[row["device"]]


TABLES = [
    LayerTable("5.3", "t5_03_conv_peak_ipu_vs_v100.csv", LAYER, comparison),
    LayerTable("5.4", "t5_04_conv_v100_by_batch.csv", LAYER, by_batch),
    LayerTable("5.5", "t5_05_conv_ipu_by_batch.csv", LAYER, by_batch),
]


def score() -> Iterable[dict]:
    """The target of the layers: median and share within 25 %, by device, class and certainty of the batch column."""
    for table in TABLES[1:]:
        cells = [(row, table.cell(None, row)) for row in reference_rows("ipu", table.file)]
        for wanted in ("", "groups", FIRST):
            for certainty in ("complete", "all"):
                chosen = (
                    cell for row, cell in cells if kind(row) == wanted and certainty in (row["batch_certainty"], "all")
                )
                if found := scoring.score(table.key, chosen):
                    yield {
                        "table": table.key,
                        "class": wanted or "scored",
                        "batch_column": certainty,
                        "cells": len(found.errors),
                        "median": found.median,
                        "within_25_percent": found.within(WITHIN),
                    }


def claims() -> list[Claim]:
    """The statements of claim 18 on the model, and the target of the layers."""
    rows = [row for row in reference_rows("ipu", TABLES[0].file) if row["metric"] == "throughput_ratio"]
    return [_products(), _grouped(rows), _each_grouped(rows), _heavy(rows), _batches(rows), *_targets()]


def _ratio(row: dict[str, str]) -> float:
    return peak("IPU", layer(row)) / peak("V100", layer(row))


def _products() -> Claim:
    ipu, gpu = device("IPU"), device("V100")
    single, mixed = (matmul.best(ipu, p) / matmul.best(gpu, p) for p in ("single", "mixed"))
    why = f"IPU over V100: {single:.2f} single, {mixed:.2f} mixed"
    return Claim("I-18a", "the IPU beats the V100 in single products and loses in mixed ones", single > 1 > mixed, why)


def _grouped(rows: list[dict[str, str]]) -> Claim:
    grouped = [row for row in rows if int(row["groups"]) > 1]
    largest, where = max((_ratio(row), row["layer"]) for row in grouped)
    printed, there = max((float(row["value"]), row["layer"]) for row in grouped)
    statement = (
        f"on layers with groups the IPU beats the V100 by up to {printed:.0f} times, within a factor of {FACTOR}"
    )
    why = f"{largest:.0f} times on {where}; published on {there}"
    return Claim("I-18b", statement, _is_near(largest, printed), why)


def _each_grouped(rows: list[dict[str, str]]) -> Claim:
    found = [(row, _ratio(row)) for row in rows if int(row["groups"]) > 1]
    off = [f"{row['layer']} {ratio:.0f} ({row['value']})" for row, ratio in found if not _is_near(ratio, row["value"])]
    statement = f"IPU over V100 is within a factor of {FACTOR} of the published ratio on every layer with groups"
    why = f"on {len(found) - len(off)} of {len(found)}" + (f"; off: {', '.join(off)}" if off else "")
    return Claim("I-18e", statement, not off, why)


def _is_near(value: float, printed: str | float) -> bool:
    return 1 / FACTOR <= value / float(printed) <= FACTOR


def _heavy(rows: list[dict[str, str]]) -> Claim:
    plain = [row for row in rows if row["groups"] == "1"]
    heavy = [row for row in plain if row["filter"] == "3" and int(row["in_ch"]) >= HEAVY_CHANNELS]
    won = [f"{row['network']} {row['layer']} ({_ratio(row):.2f})" for row in heavy if _ratio(row) >= 1]
    statement = "the IPU loses the layers of 3 x 3 with at least 256 channels and without groups"
    why = f"it wins {len(won)} of {len(heavy)}" + (f": {', '.join(won)}" if won else "")
    return Claim("I-18c", statement, not won, why)


def _batches(rows: list[dict[str, str]]) -> Claim:
    scored = [layer(row) for row in rows if kind(row) == ""]
    smaller = sum(_best_batch("IPU", key) < _best_batch("V100", key) for key in scored)
    why = f"on {smaller} of {len(scored)} layers without groups; the IPU's best is the largest batch that fits"
    return Claim("I-18d", "the IPU is at its best at smaller batches, on most layers", 2 * smaller > len(scored), why)


def _best_batch(name: str, key: str) -> int:
    """The batch of the best rate, of those that fit."""
    found = {batch: rate(name, key, batch) for batch in GPU_BATCHES}
    return max((value, batch) for batch, value in found.items() if value is not None)[1]


def _targets() -> list[Claim]:
    made = []
    for row in score():
        if row["class"] == "scored" and row["batch_column"] == "all":
            holds = row["median"] <= LAYER.median and row["within_25_percent"] >= SHARE
            why = f"median {row['median']:.1%}, {row['within_25_percent']:.1%} within 25 %, {row['cells']} open cells"
            statement = f"table {row['table']}: median at most 12 %, 85 % within 25 %, by 6 numbers at most"
            made.append(Claim(f"I-{row['table']}", statement, holds, why))
    return made
