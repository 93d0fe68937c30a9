"""Gradients on their way: whole or in buckets, each an allreduce simulated on the machine's fabric.

    backward   |  bucket 1 ready |  bucket 2 ready |  bucket 3 ready
    network                      | allreduce 1 | allreduce 2 .. | allreduce 3 |
                                                                 <-exposed--->

The backward pass runs from the last layer to the first; a bucket is full once its layers hold `bucket_bytes`.
Allreduces follow each other, as on one communicator: a rank enters bucket k when its gradients are there and bucket
k-1 has finished on it. These entries go into the simulation as arrivals of ranks, so a late rank holds up its
neighbours exactly as the algorithm's messages do. Computing is not slowed by the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from linkwright import _native
from linkwright.advise.predict.training import hierarchical
from linkwright.advise.predict.training.recipes import recipes
from linkwright.advise.predict.training.workload import Layer
from linkwright.ask.answer import How, ask
from linkwright.base import units
from linkwright.base.errors import SimError, UsageError

Buckets = list[tuple[int, float]]  # bytes, share of the backward pass that must be over


def buckets(layers: Sequence[Layer], bucket_bytes: int | None) -> Buckets:
    """Gradients in the order in which they are ready; without a size, one bucket at the end."""
    # Layers without operations would be ready at once, so they share what all have.
    total = sum(layer.flops.value for layer in layers)
    found, held, done = [], 0, 0.0
    for number, layer in enumerate(reversed(layers), 1):
        held += layer.gradient_bytes
        done += layer.flops.value / total if total else 1 / len(layers)
        last = number == len(layers)
        if held and (last or (bucket_bytes is not None and held >= bucket_bytes)):
            found.append((held, 1.0 if last else min(done, 1.0)))
            held = 0
    if held:
        found.append((held, 1.0))
    return found


@dataclass(frozen=True)
class Reduced:
    """One allreduce: when each rank finishes, and where its time goes."""

    finish_ns: list[float]
    causes: dict[str, float]
    choice: str


class Allreduce:
    """Allreduces of one algorithm over `ranks` devices of one machine; results are kept."""

    def __init__(self, machine: _native.Machine, ranks: int, algorithm: str | None, path: str | None):
        self._machine, self._ranks = machine, ranks
        self._how = (algorithm, path)
        self._recipes: dict[int, dict[str, tuple[_native.Schedule, How]]] = {}
        self._known: dict[tuple[int, tuple[float, ...]], Reduced] = {}

    def balanced(self, size: int) -> Reduced:
        """All ranks enter together."""
        return self.run(size, [0.0] * self._ranks)

    def run(self, size: int, arrivals_ns: Sequence[float]) -> Reduced:
        """The ranks enter at these times."""
        first = min(arrivals_ns)
        if max(arrivals_ns) == first:
            late = (0.0,) * len(arrivals_ns)
        else:
            late = tuple(round(arrival - first, 3) for arrival in arrivals_ns)
        if (size, late) not in self._known:
            self._known[size, late] = self._simulated(size, late)
        found = self._known[size, late]
        return Reduced([first + finish for finish in found.finish_ns], found.causes, found.choice)

    def time_ns(self, size: int) -> float:
        """Time of one allreduce that all ranks enter together."""
        return max(self.balanced(size).finish_ns)

    def _simulated(self, size: int, late: tuple[float, ...]) -> Reduced:
        if self._ranks == 1:
            return Reduced([0.0], {}, "")
        if self._how[0] == hierarchical.NAME:
            return self._alike(size, late)
        if size not in self._recipes:
            self._recipes[size] = recipes(self._machine, self._ranks, size, *self._how)
        skew = "list:" + ",".join(f"{ns:.3f}ns" for ns in late) if any(late) else None
        tried = []
        choices = self._recipes[size]
        for name, (schedule, how) in choices.items():
            try:
                answer = ask(self._machine, schedule, how.but(skew=skew))
            except SimError:
                # Some of several algorithms may need memories or pairs that the path does not reach.
                if len(choices) == 1:
                    raise
                continue
            finish_ns = units.in_ns(answer.ranks.finish_ps).tolist()
            tried.append((max(finish_ns), Reduced(finish_ns, answer.critical, name)))
        if not tried:
            raise UsageError(f"{self._machine.name}: no allreduce algorithm works on this path; choose another --path")
        return min(tried, key=lambda one: one[0])[1]

    def _alike(self, size: int, late: tuple[float, ...]) -> Reduced:
        if any(late):
            raise UsageError(
                "hierarchical assumes that all nodes are alike, and a late rank is not; omit --imbalance and --skew, "
                "or use --algorithm ring"
            )
        time_ns, causes = self._nodes.simulated(size)
        return Reduced([time_ns] * self._ranks, causes, hierarchical.WHOLE)

    @cached_property
    def _nodes(self) -> hierarchical.Nodes:
        return hierarchical.Nodes.of(self._machine, self._ranks, self._how[1])
