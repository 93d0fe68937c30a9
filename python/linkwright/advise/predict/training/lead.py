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

from linkwright.advise.predict.training.step import Step, Trainer

COMMUNICATION = ("latency", "serialisation", "waiting", "overhead", "combining")
# With a smaller lead, the machines are level.
LEVEL = 0.005


@dataclass(frozen=True)
class Lead:
    """The lead of `first` over `second` for one batch on this number of devices; None unless both have a time."""

    first: str
    second: str
    asked: int  # the batch as it was asked for, of all devices or of each
    batch: int
    gpus: int
    lead: float | None = None
    low: float | None = None
    high: float | None = None
    communication: float | None = None  # f
    first_communication: float | None = None  # the same share of the first's step
    allreduce: float | None = None  # a
    late: dict[str, float] | None = None  # who has a late rank -> lead
    why: str = ""  # there is no lead

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

    @property
    def times_faster(self) -> float | None:
        """Time of the slower machine over that of the faster one, at least 1."""
        return None if self.lead is None else times_faster(self.lead)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            **vars(self), "simple_model": self.simple, "leader": self.leader, "times_faster": self.times_faster,
        }  # fmt: skip


def times_faster(lead: float) -> float:
    """Of a lead: 0.25 and -0.2 are both 1.25 times."""
    return max(1 + lead, 1 / (1 + lead))


def leads(first: Trainer, second: Trainer, cases: Sequence[tuple[int, int]]) -> list[Lead]:
    """The lead for every (batch, devices)."""
    return [_lead(first, second, *case) for case in cases]


def _lead(first: Trainer, second: Trainer, batch: int, gpus: int) -> Lead:
    one, two = first.attempt(batch, gpus), second.attempt(batch, gpus)
    head = (one.machine, two.machine, batch, one.batch, gpus)
    if not (one.causes_ns and two.causes_ns):
        return Lead(*head, why=one.why or two.why)
    # Compute is the same assumption on both sides, so its ends go together.
    ends = sorted((two.low_ns / one.low_ns - 1, two.high_ns / one.high_ns - 1))
    lead = two.time_ns / one.time_ns - 1
    shares = two.share(*COMMUNICATION), one.share(*COMMUNICATION)
    gain = two.allreduce_ns / one.allreduce_ns - 1 if one.allreduce_ns else 0.0
    return Lead(*head, lead, min(lead, ends[0]), max(lead, ends[1]), *shares, gain, _late(first, second, batch, gpus))


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


def verdict(found: Sequence[Lead]) -> str:
    """The largest lead of one pair of machines in words; `crossovers` says where none has a time on both."""
    known = [lead for lead in found if lead.lead is not None]
    if not known:
        return "no comparison"
    best = max(known, key=lambda lead: lead.times_faster)
    if best.leader == "level":
        return "both take equally long, within 0.5 %"
    shares = {best.first: best.first_communication, best.second: best.communication}
    other = best.second if best.leader == best.first else best.first
    most = "up to " if len(known) > 1 else ""
    return (
        f"{best.leader} is {most}{ratio(best.times_faster)} faster (batch {best.batch} on {best.gpus} GPUs), with "
        f"{100 * shares[best.leader]:.1f} % of the step in messages; {other} has {100 * shares[other]:.1f} %"
    )


def ratio(times: float) -> str:
    """`1.07 x`, `12.3 x`, `1,234 x`."""
    return f"{times:,.0f} x" if times >= 100 else f"{times:.1f} x" if times >= 10 else f"{times:.2f} x"


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
        lines.append(f"batch {batch}: {'; '.join(words) or 'no count has a time on both'}")
    return lines


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
