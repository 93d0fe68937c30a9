"""Finds the fitted numbers of the machine files for products again: `python -m linkwright_evidence.ipu.fit_compute`.

Only cells of the layers that `given` sets aside are used, of at least 0.3 TFlop/s. The loss is the mean of
sqrt(1 + (log error / 0.1)^2), which weighs a miss by 10 % about like ten of 1 %. Layers without groups and with at
least 16 input channels give all numbers but one, which layers with groups give alone, also smaller cells, with the
others held. `--cross-validate` leaves out each network in turn and predicts it from the others.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterable

import numpy as np
from scipy.optimize import minimize

from linkwright_evidence.ipu import given
from linkwright_evidence.ipu.arithmetic import Device, device
from linkwright_evidence.ipu.convolution import LEAST_TFLOP_PER_S, kind, layer
from linkwright_evidence.published import reference_rows

PREFIX = "probe.compute.product."
# Device -> its table, and its fitted numbers by class of layers.
FITTED: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "IPU": ("t5_05_conv_ipu_by_batch.csv", {"": ("efficiency", "start", "block_overhead"), "groups": ("piece",)}),
    "V100": (
        "t5_04_conv_v100_by_batch.csv",
        {"": ("step", "pair_factor", "launch", "least", "memory_rate"), "groups": ("grouped_rate",)},
    ),
}
# Least rate of a cell that counts, by class of layers, in TFlop/s; the smallest are printed with one digit.
LEAST = {"": LEAST_TFLOP_PER_S, "groups": 0.05}
SCALE = 0.1
# What the models refuse costs as much as a factor of e^3.
REFUSED = 3.0

Cells = list[tuple[str, int, float, str]]


def cells_of(file: str, of: str, chosen: Callable[[dict[str, str]], bool] = given.is_fitted) -> Cells:
    """(layer, batch, TFlop/s, network) of the chosen cells of a class of layers."""
    rows = (row for row in reference_rows("ipu", file) if chosen(row) and kind(row) == of)
    found = [(layer(row), int(row["batch"]), float(row["value"]), row["network"]) for row in rows if row["value"]]
    return [cell for cell in found if cell[2] >= LEAST[of]]


def log_errors(one: Device, cells: Iterable[tuple]) -> np.ndarray:
    """Logarithms of predicted over published."""
    rates = [(one.layer_rate(key, batch), value) for key, batch, value, _ in cells]
    return np.array([math.log(rate / value) if rate else REFUSED for rate, value in rates])


def fit(name: str, of: str, cells: Cells, steps: int = 300) -> dict[str, float]:
    """The fitted numbers of a device that a class of layers gives, from these cells."""
    start, keys = device(name), [PREFIX + key for key in FITTED[name][1][of]]
    first = np.array([float(start.numbers[key]["value"]) for key in keys])

    def loss(factors: np.ndarray) -> float:
        values = dict(zip(keys, first * factors, strict=True))
        efficiency, pair = values.get(PREFIX + "efficiency", 0.5), values.get(PREFIX + "pair_factor", 1.5)
        if min(factors) <= 0 or efficiency > 1 or not 1 <= pair <= 2:
            return 1e9
        errors = log_errors(start.changed(values), cells)
        return float(np.mean(np.sqrt(1 + (errors / SCALE) ** 2) - 1))

    options = {"maxfev": steps, "xatol": 1e-4, "fatol": 1e-7}
    found = minimize(loss, np.ones(len(keys)), method="Nelder-Mead", options=options)
    return dict(zip(keys, (first * found.x).tolist(), strict=True))


def summary(errors: np.ndarray) -> str:
    """Median and share within 25 % of relative errors."""
    relative = np.abs(np.exp(errors) - 1)
    return f"{len(errors)} cells, median {statistics.median(relative):.1%}, {np.mean(relative <= 0.25):.1%} within 25 %"


def cross_validate(name: str, cells: Cells, say: Callable[[str], None]) -> None:
    """Every network predicted with numbers fitted to the others."""
    pooled = []
    for network in dict.fromkeys(cell[3] for cell in cells):
        others = [cell for cell in cells if cell[3] != network]
        left = [cell for cell in cells if cell[3] == network]
        errors = log_errors(device(name).changed(fit(name, "", others)), left)
        pooled.append(errors)
        say(f"  {network} from the others: {summary(errors)}")
    say(f"  all, each from the others: {summary(np.concatenate(pooled))}")


def main() -> None:
    """Fits both devices and prints the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cross-validate", action="store_true", help="also leave out each network in turn")
    asked = parser.parse_args()
    for name, (file, classes) in FITTED.items():
        for of in classes:
            cells = cells_of(file, of)
            found = fit(name, of, cells)
            print(f"{name} {of}: {summary(log_errors(device(name).changed(found), cells))}")
            for key, value in found.items():
                row = device(name).numbers[key]
                print(f"  {key} = {value:.5g} {row['unit']} (the machine file has {row['value']})")
        if asked.cross_validate:
            cross_validate(name, cells_of(file, "", lambda row: row["split"] == "open"), print)


if __name__ == "__main__":
    main()
