"""`kind = "transformer"`: training and serving a large language model with any layout, memory first.

    model      parameters, operations and bytes of one token        model.py
    layout     degrees of parallelism, groups of ranks              layout.py
    memory     what one GPU holds                                   memory.py
    compute    products, attention, memory of a layer               compute.py
    together   collectives of all groups at once, simulated         together.py
    step       all of it                                            step.py
    search     the fastest layouts that fit                         search.py
    serving    first token and output tokens of requests            serving.py
    errors     how far published runs are from all this             errors.py, errors.toml

A forecast says first whether the model fits. Every time of a message is simulated, as the machine's library would send
it; every time of arithmetic comes from a peak and one share of it that the chip reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.advise.predict.llm import compute, errors
from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.memory import GpuMemory, memory
from linkwright.advise.predict.llm.model import PROGRAM, Transformer, read
from linkwright.advise.predict.llm.step import StepTime, step
from linkwright.advise.predict.llm.together import GroupExchanges, per_node
from linkwright.advise.predict.rates import capacity_bytes
from linkwright.base.errors import UsageError
from linkwright.base.units import KILO, NS_PER_S, S_PER_H

__all__ = [
    "PROGRAM",
    "TIE",
    "GroupExchanges",
    "ModelForecast",
    "ParallelLayout",
    "Transformer",
    "forecast_model",
    "read",
]

# Steps nearer than this are ties: the median error of study `training` is 8.8 %.
TIE = 0.1
ORDER = "tp, cp, dp (ep across them), pp; the first are neighbours"
NOT_MODELLED = (
    "start-up of kernels without CUDA graphs", "imbalance of experts and late ranks",
    "kernels of DeepEP and of in-switch exchanges: experts exchange by the library's alltoall",
    "groups of different kinds that meet on links: each kind is simulated with its own groups",
    "checkpoints, data loading and restarts",
)  # fmt: skip


@dataclass(frozen=True)
class ModelForecast:
    """A model trained with one layout on one machine; without `step` if it does not fit."""

    model: Transformer
    machine: str
    layout: ParallelLayout
    chip: compute.ChipRates
    memory: GpuMemory
    capacity_bytes: int | None
    step: StepTime | None = None
    low_ns: float = 0.0
    high_ns: float = 0.0
    spread: errors.Spread | None = None  # of published runs, from which the range is
    stages: int = 0  # simulated, which stand for all; 0: all were

    @property
    def fits(self) -> bool | None:
        """None if the machine states no capacity."""
        return None if self.capacity_bytes is None else self.memory.total <= self.capacity_bytes

    @property
    def sampled(self) -> list[str]:
        """What was simulated in part and stands for the rest."""
        stages = [f"{self.stages} of {self.layout.pp} pipeline stages were simulated"] if self.stages else []
        groups = [group.as_dict() for group in self.step.groups] if self.step else []
        choices = ((one["group"], str(one["choice"]).partition("; ")[2]) for one in groups)
        rings = [f"{kind} groups were simulated by {steps}" for kind, steps in choices if steps]
        return (
            stages
            + rings
            + [
                f"{one['compared']} of {one['groups_at_once']} {one['group']} groups were looked at for shared links"
                for one in groups
                if int(str(one["compared"])) < int(str(one["groups_at_once"]))
            ]
        )

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.layout.batch * self.layout.sequence

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        """Tokens per second and GPU; None without a time."""
        return self.tokens / self.layout.ranks / self.step.time_ns * NS_PER_S if self.step else None

    @property
    def flops_per_s(self) -> float | None:
        """Operations of the model per second and GPU, nothing computed twice; None without a time."""
        rate = self.tokens_per_s_per_gpu
        return rate * self.model.step_flops(self.layout.sequence) if rate else None

    @property
    def mfu(self) -> float | None:
        """Model FLOP utilisation, of the peak of the precision; None without a time."""
        return self.flops_per_s / self.chip.peak_flops_per_s if self.flops_per_s else None

    def whole(self, tokens: float, watts: float | None, price: float | None) -> dict[str, float | None]:
        """Return what training on so many tokens takes: seconds, and energy and cost of its GPUs where those are given.

        Args:
            tokens: of the whole training.
            watts: power of a GPU; None leaves out the energy.
            price: of a GPU and hour; None leaves out the cost.
        """
        rate = self.tokens_per_s_per_gpu
        seconds = tokens / (rate * self.layout.ranks) if rate and self.step else None
        known = seconds is not None and self.step
        hours = seconds * self.layout.ranks / S_PER_H if known else None
        return {
            "training_s": seconds,
            "low_s": seconds * self.low_ns / self.step.time_ns if known else None,
            "high_s": seconds * self.high_ns / self.step.time_ns if known else None,
            **({"energy_kwh": hours * watts / KILO if known else None} if watts else {}),
            **({"cost": hours * price if known else None} if price else {}),
        }

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        made = self.step
        return {
            "app": self.model.name,
            "kind": "transformer",
            "machine": self.machine,
            "gpus": self.layout.ranks,
            "parameters": self.model.parameters,
            "active_parameters": self.model.active,
            "layout": vars(self.layout),
            "order": ORDER,
            "fits": self.fits,
            "memory_bytes": {**vars(self.memory), "total": self.memory.total},
            "memory_capacity_bytes": self.capacity_bytes,
            "step_ns": made.time_ns if made else None,
            "low_ns": self.low_ns if made else None,
            "high_ns": self.high_ns if made else None,
            "range": vars(self.spread) if self.spread else None,
            "compute_ns": made.compute_ns if made else None,
            "bubble_ns": made.bubble_ns if made else None,
            "optimizer_ns": made.optimizer_ns if made else None,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu,
            "flops_per_s_per_gpu": self.flops_per_s,
            "mfu": self.mfu,
            "groups": [group.as_dict() for group in made.groups] if made else [],
            "precision": self.chip.precision,
            "peak_flops_per_s": self.chip.peak_flops_per_s,
            "reached": self.chip.reached,
            "calibration": self.chip.basis,
            "sampled": self.sampled,
            "not_modelled": list(NOT_MODELLED),
        }


def forecast_model(
    model: Transformer,
    layout: ParallelLayout,
    machine: _native.Machine,
    places: Sequence[int],
    chip: compute.ChipRates,
    *,
    exchanges: GroupExchanges | None = None,
    capacity: int | None = None,
    anyway: bool = False,
    ranks: int = 0,
) -> ModelForecast:
    """Return the forecast of a model on the endpoints `places` of a machine.

    Args:
        model: what is trained.
        layout: how; its copies are what the number of places leaves.
        machine: composed, with its network.
        places: endpoint of each rank, at least of the first two stages.
        chip: rates of a GPU.
        exchanges: what was simulated on these places before.
        capacity: bytes of a GPU instead of those that the machine file states.
        anyway: give a time although it does not fit.
        ranks: all GPUs, where `places` are those of the first stages only.

    Raises:
        UsageError: the layout does not divide the model or the ranks.
    """
    if layout.ep > 1 and not model.experts:
        raise UsageError(f"--ep {layout.ep}: {model.name} has no experts; omit --ep")
    found = layout.checked(model, ranks or len(places))
    held, room = memory(model, found), capacity or capacity_bytes(machine)
    bare = ModelForecast(model, machine.name, found, chip, held, room)
    if bare.fits is False and not anyway:
        return bare
    exchanges = exchanges or GroupExchanges(machine, places)
    slow, fast = (step(model, found, compute.at(chip, end), exchanges).time_ns for end in chip.ends)
    made, spread = step(model, found, chip, exchanges), errors.of_step(bool(model.experts), per_node(machine))
    low, high = min(fast, made.time_ns / spread.high), max(slow, made.time_ns / spread.low)
    stages = 2 if ranks > len(places) else 0
    return ModelForecast(model, machine.name, found, chip, held, room, made, low, high, spread, stages)
