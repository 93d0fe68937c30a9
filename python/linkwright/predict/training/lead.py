"""Two machines side by side: which is ahead, by how much, and whether a rough estimate agrees.

    lead of the first  = step on the second / step on the first - 1
    simple model       = f x a      f  share of the second's step spent in exposed communication
                                    a  allreduce of the second / allreduce of the first - 1

The simple model takes both machines to compute alike. With f of the first machine it would then be exact for whole
gradients:  (C + A2) / (C + A1) - 1 = A1 / (C + A1) x (A2 / A1 - 1). With f of the second, as its authors have it, it
holds to first order. Where ranks arrive unevenly, the lead is given four times: nobody late, a late rank on one of the
machines, on the other, on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwright.predict.training.step import Step, Trainer

COMMUNICATION = ("latency", "serialisation", "waiting", "overhead", "combining")
# With a smaller lead, the machines are level.
LEVEL = 0.005


@dataclass(frozen=True)
class Lead:
    """The lead of `first` over `second` for one batch on this number of devices; None unless it fits on both."""

    first: str
    second: str
    asked: int  # the batch as it was asked for, of all devices or of each
    batch: int
    gpus: int
    lead: float | None = None
    low: float | None = None
    high: float | None = None
    communication: float | None = None  # f
    allreduce: float | None = None  # a
    late: dict[str, float] | None = None  # who has a late rank -> lead

    @property
    def simple(self) -> float | None:
        """f x a."""
        return None if self.communication is None else self.communication * self.allreduce

    @property
    def leader(self) -> str | None:
        """Name of the faster machine, or `level`."""
        if self.lead is None:
            return None
        return "level" if abs(self.lead) < LEVEL else self.first if self.lead > 0 else self.second

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**vars(self), "simple_model": self.simple, "leader": self.leader}


def leads(first: Trainer, second: Trainer, cases: Sequence[tuple[int, int]]) -> list[Lead]:
    """The lead for every (batch, devices)."""
    return [_lead(first, second, *case) for case in cases]


def _lead(first: Trainer, second: Trainer, batch: int, gpus: int) -> Lead:
    one, two = first.step(batch, gpus), second.step(batch, gpus)
    head = (one.machine, two.machine, batch, one.batch, gpus)
    if not (one.causes_ns and two.causes_ns):
        return Lead(*head)
    # Compute is the same assumption on both sides, so its ends go together.
    ends = sorted((two.low_ns / one.low_ns - 1, two.high_ns / one.high_ns - 1))
    lead = two.time_ns / one.time_ns - 1
    share = sum(two.causes_ns[cause] for cause in COMMUNICATION) / two.time_ns
    gain = two.allreduce_ns / one.allreduce_ns - 1 if one.allreduce_ns else 0.0
    return Lead(*head, lead, min(lead, ends[0]), max(lead, ends[1]), share, gain, _late(first, second, batch, gpus))


def _late(first: Trainer, second: Trainer, batch: int, gpus: int) -> dict[str, float] | None:
    if first.choices.balanced or gpus == 1:
        return None

    def both(trainer: Trainer) -> tuple[Step, Step]:
        calm = replace(trainer.choices, imbalance=0.0, skew_ns=0.0)
        return trainer.step(batch, gpus, calm), trainer.step(batch, gpus)

    (calm_one, late_one), (calm_two, late_two) = both(first), both(second)
    pairs = {
        "nobody": (calm_one, calm_two),
        first.machine.name: (late_one, calm_two),
        second.machine.name: (calm_one, late_two),
        "both": (late_one, late_two),
    }
    return {who: two.time_ns / one.time_ns - 1 for who, (one, two) in pairs.items()}


def crossovers(found: Sequence[Lead]) -> list[str]:
    """For every batch and pair of machines, which one leads on how many devices, in words."""
    lines = []
    for first, second, batch in dict.fromkeys((lead.first, lead.second, lead.asked) for lead in found):
        own = [lead for lead in found if (lead.first, lead.second, lead.asked) == (first, second, batch)]
        words = [
            f"{who} on " + _listed([str(lead.gpus) for lead in own if lead.leader == who])
            for who in dict.fromkeys(lead.leader for lead in own if lead.leader)
        ]
        leading = [lead for lead in own if lead.leader in (first, second)]
        turns = [lead.gpus for before, lead in pairwise(leading) if lead.leader != before.leader]
        if leading:
            words.append("crossover at " + _listed([str(gpus) for gpus in turns]) if turns else "no crossover")
        lines.append(f"batch {batch}: {'; '.join(words) or 'nothing fits on both'}")
    return lines


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
