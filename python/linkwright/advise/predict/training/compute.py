"""How long one device computes on its share of a batch.

Either from operations, which give only bounds:

    time = images x 3 x forward operations / (peak x efficiency)      3: forward, and two products backward

The peak is that of the unit which computes products of the program's precision, by the facts of the machine file:

    half, bf16, tf32    `tensor_half`, ... of tensor cores; else `vector_half`, ...; else as single
    single              `vector_single`, or `cores` x 2 x `clock`

with low (few operations, high efficiency) and high (the reverse) as bounds; such a forecast is `uncalibrated`. Or from
rates measured on one device, in samples per second, for one or several local batches: the time is linear between two
of them and continues on that line beyond, so costs that do not shrink with the batch remain. Never from a rate of the
predicted run itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from linkwright import _native
from linkwright.advise.predict.training.workload import PRECISIONS, SINGLE, Quantity, Workload
from linkwright.base.errors import UsageError
from linkwright.base.units import GIGA, NS_PER_S, TERA

# One pass forward; backward, the gradients of inputs and of weights cost as much again each.
PASSES = 3
FORWARD_SHARE = 1 / PASSES
# Convolution libraries reach a quarter to three quarters of the peak, by shape and batch; an assumption.
EFFICIENCY = (0.25, 0.5, 0.75)
_FLOPS = {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}
_HZ = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}


@dataclass(frozen=True)
class Peak:
    """Operations per second of one device, and what reaches them."""

    flops_per_s: float
    precision: str
    unit: str  # `tensor cores`, `vector units`, `given`

    @property
    def words(self) -> str:
        """`989 TFlop/s (bf16 on tensor cores)`."""
        where = self.unit if self.unit == GIVEN else f"{self.precision} on {self.unit}"
        return f"{self.flops_per_s / TERA:,.4g} TFlop/s ({where})"


TENSOR, VECTOR, GIVEN = "tensor cores", "vector units", "given"


@dataclass(frozen=True)
class Compute:
    """Time of forward and backward pass by samples per device: as assumed, with the bounds of the assumptions."""

    time_ns: Callable[[float], float]
    low_ns: Callable[[float], float]
    high_ns: Callable[[float], float]
    calibrated: bool
    basis: str  # where the time comes from, in words
    peak: Peak | None = None  # None: from measured rates
    notes: tuple[str, ...] = ()  # what a reader must know of the unit that was taken


def peak_flops(machine: _native.Machine) -> float | None:
    """Single-precision operations per second of one device, if the machine file states them."""
    facts = _facts(machine)
    if "vector_single" in facts:
        return _flops(machine, facts["vector_single"])
    if "cores" not in facts or "clock" not in facts:
        return None
    clock = facts["clock"]
    return float(facts["cores"]["value"]) * 2 * float(clock["value"]) * _HZ[clock["unit"]]


def peak_of(machine: _native.Machine, precision: str) -> Peak | None:
    """The peak of the unit that computes products of this precision; None if the machine file states none."""
    facts = _facts(machine)
    for unit, key in ((TENSOR, f"tensor_{precision}"), (VECTOR, f"vector_{precision}")):
        if key in facts:
            return Peak(_flops(machine, facts[key]), precision, unit)
    single = peak_flops(machine)
    return None if single is None else Peak(single, SINGLE, VECTOR)


def stated(machine: _native.Machine, precision: str) -> Peak | None:
    """The peak in exactly this precision, if the machine file states one."""
    peak = peak_of(machine, precision)
    return peak if peak and peak.precision == precision else None


def _facts(machine: _native.Machine) -> dict[str, dict]:
    return {row["key"].removeprefix("facts."): row for row in machine.numbers() if row["key"].startswith("facts.")}


def _flops(machine: _native.Machine, row: dict) -> float:
    if row["unit"] not in _FLOPS:
        raise UsageError(f"machine {machine.name}: {row['key']} is in {row['unit']}; state it in {', '.join(_FLOPS)}")
    return float(row["value"]) * _FLOPS[row["unit"]]


def _notes(machine: _native.Machine, precision: str, peak: Peak) -> tuple[str, ...]:
    if peak.unit == GIVEN:
        return ()
    if peak.precision != precision:
        return (f"its file states no rate for {precision} (fact `tensor_{precision}`), so products run as single",)
    idle = [name for name in PRECISIONS if f"tensor_{name}" in _facts(machine)]
    if peak.unit == VECTOR and idle:
        return (f"{precision} products leave its tensor cores idle; those support --precision {' or '.join(idle)}",)
    return ()


def from_flops(workload: Workload, machine: _native.Machine, peak: float | None, efficiency: float | None) -> Compute:
    """From operations, a peak and the share of it that is reached."""
    found = Peak(peak, workload.precision, GIVEN) if peak else peak_of(machine, workload.precision)
    if found is None:
        raise UsageError(
            f"machine {machine.name}: its file states no peak (facts `tensor_{workload.precision}`, `vector_single`, "
            "or `cores` and `clock`); give --rate, a rate measured on one device, or --peak in operations per second"
        )
    flops = workload.flops
    if flops.value == 0:
        raise UsageError(f"{workload.name}: no layer has `flops`; add them, or give --rate")
    low, usual, high = (efficiency,) * 3 if efficiency else EFFICIENCY

    def line(operations: float, share: float) -> Callable[[float], float]:
        return lambda images: images * PASSES * operations / (found.flops_per_s * share) * NS_PER_S

    share = f"{usual:.0%} of it, given" if efficiency else f"{usual:.0%} of it, assumed ({low:.0%} to {high:.0%})"
    basis = f"{PASSES} x {_giga(flops)} forward per sample, peak {found.words}, {share}"
    return Compute(
        line(flops.value, usual), line(flops.low, high), line(flops.high, low), calibrated=False, basis=basis,
        peak=found, notes=_notes(machine, workload.precision, found),
    )  # fmt: skip


def _giga(flops: Quantity) -> str:
    text = f"{flops.value / GIGA:.3g} GFlop"
    return text if flops.low == flops.high else f"{text} ({flops.low / GIGA:.3g} to {flops.high / GIGA:.3g})"


def from_rates(text: str) -> Compute:
    """From `250` (samples per second) or `16:210,64:400` (at these local batches)."""
    points = sorted(_points(text))
    if len({images for images, _ in points}) < len(points):
        raise UsageError(f"rate `{text}` names a batch twice; give one rate for each")
    times = [(images, images / rate * NS_PER_S) for images, rate in points]
    for (fewer, shorter), (more, longer) in pairwise(times):
        if longer < shorter:
            raise UsageError(f"rate `{text}`: {more:g} samples would take less time than {fewer:g}; check the rates")

    def time_ns(images: float) -> float:
        if len(times) == 1:
            return times[0][1] * images / times[0][0]
        place = 1
        while place < len(times) - 1 and images > times[place][0]:
            place += 1
        (x0, y0), (x1, y1) = times[place - 1], times[place]
        # A line steeper than proportional would end below zero; use a proportional one then.
        return max(y0 + (y1 - y0) * (images - x0) / (x1 - x0), min(y0 * images / x0, y0))

    return Compute(time_ns, time_ns, time_ns, calibrated=True, basis=f"given: {text} samples per second on one device")


def _points(text: str) -> list[tuple[float, float]]:
    points = []
    for part in text.split(","):
        images, colon, rate = part.rpartition(":")
        try:
            point = (float(images) if colon else 1.0, float(rate))
        except ValueError:
            point = (0.0, 0.0)
        if not all(0 < value < float("inf") for value in point) or (not colon and "," in text):
            raise UsageError(
                f"rate `{text}` is not a rate; write samples per second such as `250`, or by local batch "
                "`16:210,64:400`"
            )
        points.append(point)
    return points
