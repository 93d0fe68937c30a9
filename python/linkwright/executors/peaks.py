"""What computing probes take at best on a measured machine: the best values that the same cores gave.

    flops      t >= operations / peak        peak: the best `fma_peak` or product of the same type and number of threads
    samples    t >= t_store                  `random` with generator `store`, same block and number of threads

Products use the units of the multiply-add kernel, and a generator must store what it makes. Neither is physical: it is
what was seen at best, over all runs of the host (`best.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from linkwright.ask.question import Probe, Question

from .measured import Measured

FLOP_RATE = "flop_rate"
STORE = "store"
# What computes with the multiply-add units.
_PRODUCTS = ("matmul", "convolution")


@dataclass(frozen=True)
class Peaks:
    """Operations per ns by (type, threads); ns of a stored block by (bytes, threads)."""

    flops: dict[tuple[str, int], float] = field(default_factory=dict)
    stores: dict[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Iterable[tuple[Question, Measured | None]]) -> Peaks:
        """From everything that was measured; the shortest time of each is its peak."""
        flops, stores = {}, {}
        for question, measured in found:
            if measured is None or not isinstance(question, Probe):
                continue
            axes, best_ns = dict(question.axes), measured.summary().min
            if question.algorithm == "fma_peak" or question.algorithm in _PRODUCTS:
                key = axes["dtype"], axes["threads"]
                flops[key] = max(measured.carried["work_rate"] / best_ns, flops.get(key, 0.0))
            elif question.algorithm == "random" and axes["generator"] == "store":
                stores[axes["block"], axes["threads"]] = best_ns
        return cls(flops, stores)

    def merged(self, other: Peaks) -> Peaks:
        """The better of both, number by number."""
        flops, stores = dict(self.flops), dict(self.stores)
        for key, rate in other.flops.items():
            flops[key] = max(rate, flops.get(key, rate))
        for key, time_ns in other.stores.items():
            stores[key] = min(time_ns, stores.get(key, time_ns))
        return Peaks(flops, stores)

    def best(self, question: Question, measured: Measured) -> tuple[float, str] | None:
        """The time of a computing probe in ns at best, and the name of what it follows from."""
        if not isinstance(question, Probe):
            return None
        axes = dict(question.axes)
        if question.algorithm in _PRODUCTS:
            peak = self.flops.get((axes["dtype"], axes["threads"]))
            return (measured.carried["work_rate"] / peak, FLOP_RATE) if peak else None
        if question.algorithm == "random" and axes["generator"] != "store":
            store_ns = self.stores.get((axes["block"], axes["threads"]))
            return (store_ns, STORE) if store_ns else None
        return None
