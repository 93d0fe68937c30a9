"""The two devices whose arithmetic the report compares, one IPU and one V100, asked through their probes.

Rates are in TFlop/s; efficiency is per watt of nominal power, as the report counts.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.base.errors import WaivedError
from linkwright.machines import load
from linkwright_evidence.numbers import changed

# Name in the reference files -> (machine file, how the arithmetic of one product is spread over endpoints).
MACHINES = {"IPU": "ipu-c2-chip", "V100": "v100"}
DTYPES = {"single": "f32", "mixed": "f16", "half": "f16"}
# Worth of the units of rates of arithmetic in TFlop/s; per cycle it depends on the clock.
_TERA = {"TFLOP/s": 1.0, "GFLOP/s": 1e-3}


@dataclass(frozen=True)
class Device:
    """One device; `threads` endpoints work on one product."""

    name: str
    machine: _native.Machine
    threads: int
    numbers: dict[str, dict]

    @property
    def power_w(self) -> float:
        """Nominal power."""
        return float(self.numbers["facts.power"]["value"])

    def fact(self, key: str) -> float:
        """A number that no model reads."""
        return float(self.numbers[f"facts.{key}"]["value"])

    def work_rate(self, key: str) -> float:
        """A rate of arithmetic of the whole device, in TFlop/s."""
        row = self.numbers[key]
        if row["unit"] == "FLOP/cycle":
            clock_ghz = float(self.numbers["machine.clock"]["value"])
            return float(row["value"]) * clock_ghz * self.threads / 1e3
        return float(row["value"]) * _TERA[row["unit"]]

    def peak(self, precision: str) -> float:
        """What nothing exceeds."""
        return self.work_rate(f"probe.compute.product.{'half' if DTYPES[precision] == 'f16' else 'single'}")

    def ask(self, probe: str, axes: dict[str, object]) -> dict | None:
        """The model's answer; None where it has none, as where the operands do not fit."""
        try:
            return _native.model_probe(self.machine, probe, axes)
        except WaivedError:
            return None

    def product_s(self, n: int, precision: str) -> float | None:
        """Time of a product of two n x n matrices."""
        found = self.ask("matmul", {"n": n, "dtype": DTYPES[precision], "threads": self.threads})
        return None if found is None else found["time_ps"] / 1e12

    def layer_rate(self, layer: str, batch: int) -> float | None:
        """TFlop/s of a layer in half precision; None where it does not fit."""
        found = self.ask("convolution", {"layer": layer, "batch": batch, "dtype": "f16", "threads": self.threads})
        return None if found is None else found["work"] / found["time_ps"]

    def changed(self, values: dict[str, float]) -> Device:
        """The same with other numbers."""
        written = {key: repr(float(value)) for key, value in values.items()}
        return replace(self, machine=changed(self.machine, written))


@functools.cache
def device(name: str) -> Device:
    """A device as its machine file describes it."""
    machine = load(MACHINES[name])
    gpu = machine.library() is not None  # of a node of several, one is compared
    return Device(name, machine, 1 if gpu else machine.ranks, {row["key"]: row for row in machine.numbers()})


def named(text: str) -> Device:
    """The device that a reference file calls `C2 IPU (1 IPU)`, `V100 SXM2 (1 GPU)` or by its name."""
    return device("IPU" if "IPU" in text else "V100")
