"""`kind = "training"`: steps of data-parallel training on one or several machines.

    workload    layers with operations, activations, parameters        workload.py
    compute     time of forward and backward pass on one device        compute.py
    gradients   allreduces, simulated, whole or in buckets             gradients.py
    recipes     which schedules an allreduce is                        recipes.py
    nodes       one of many alike, on behalf of all                    hierarchical.py
    input       from host memory over the host links                   staging.py
    step        all of it in order, for a batch on g devices           step.py
    lead        two machines side by side                              lead.py

Every time except that of computing comes from schedules on the machine's fabric. Compute times come from operations
and an assumed efficiency, or from rates measured on one device. The former are `uncalibrated`, and their low and high
ends are carried to every result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from linkwright import _native
from linkwright.advise.predict.training import compute as rates
from linkwright.advise.predict.training.lead import Lead, leads
from linkwright.advise.predict.training.step import Choices, Step, Trainer
from linkwright.advise.predict.training.workload import PROGRAM, Workload, read
from linkwright.base.errors import UsageError
from linkwright.base.toml import Table

__all__ = ["PROGRAM", "Choices", "Training", "Wanted", "training"]


GPUS = [1, 2, 4, 8]


@dataclass(frozen=True)
class Wanted:
    """What to forecast of a training file, and how it trains; None leaves it to the file or to this program."""

    depth: int | None = None
    batches: list[int] | None = None
    gpus: list[int] | None = None
    rate: str | None = None
    peak: float | None = None
    efficiency: float | None = None
    precision: str | None = None
    samples: int | None = None
    choices: Choices = field(default_factory=Choices)


@dataclass(frozen=True)
class Training:
    """Steps on every machine, and the lead of the first over each other one."""

    workload: Workload
    choices: Choices
    calibrated: bool
    basis: dict[str, str]  # machine -> where its compute times come from
    notes: list[str]
    steps: dict[str, list[Step]]
    leads: list[Lead]
    trainers: list[Trainer]  # by which what-if questions are answered

    @property
    def algorithms(self) -> list[str]:
        """What carries the gradients, each once."""
        found = (step.choice for steps in self.steps.values() for step in steps)
        return list(dict.fromkeys(choice for choice in found if choice))

    @property
    def fits(self) -> bool:
        """Whether every machine has a time for some step."""
        return all(any(step.causes_ns for step in found) for found in self.steps.values())

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        batches = sorted({step.batch for found in self.steps.values() for step in found})
        return {
            "app": self.workload.name,
            "kind": "training",
            "activations": self.workload.activations,
            "parameters": self.workload.parameters,
            "gradient_bytes": self.workload.gradient_bytes,
            "intensity": {str(batch): self.workload.intensity(batch) for batch in batches},
            "precision": self.workload.precision,
            "samples": self.workload.samples,
            "calibrated": self.calibrated,
            "compute": self.basis,
            "choices": vars(self.choices),
            "notes": self.notes,
            "steps": [self._step(step) for found in self.steps.values() for step in found],
            "leads": [lead.as_dict() for lead in self.leads],
        }

    def _step(self, step: Step) -> dict[str, object]:
        """A step, with the seconds that the training takes where the number of samples is known."""
        samples = self.workload.samples
        return {**step.as_dict(), "training_s": step.training_s(samples) if samples else None}


def training(document: Table, head: Table, machines: list[_native.Machine], wanted: Wanted) -> Training:
    """Steps of the network in `document`, whose table `[app]` is `head`, on each of the machines."""
    workload = read(document, head, wanted.depth)
    given = {name: getattr(wanted, name) for name in ("precision", "samples") if getattr(wanted, name)}
    workload = replace(workload, **given)
    batches = wanted.batches or workload.batches
    if not batches:
        raise UsageError(f"{head.where}: no batch size is given; add `batches = [64]` to the file, or give --batch")
    if len({machine.name for machine in machines}) < len(machines):
        raise UsageError("two machines have the same name; name each once")
    _check_peak(workload, machines, wanted)
    trainers = [Trainer(workload, machine, _compute(workload, machine, wanted), wanted.choices) for machine in machines]
    counts = wanted.gpus or workload.gpus or _counts(machines)
    cases = [(batch, gpus) for batch in batches for gpus in counts]
    steps = {t.machine.name: [t.attempt(*case) for case in cases] for t in trainers}
    _refuse_if_hopeless(trainers, steps)
    return Training(
        workload,
        wanted.choices,
        trainers[0].compute.calibrated,
        {t.machine.name: t.compute.basis for t in trainers},
        [note for t in trainers for note in t.notes()],
        steps,
        [lead for other in trainers[1:] for lead in leads(trainers[0], other, cases)],
        trainers,
    )


def _check_peak(workload: Workload, machines: list[_native.Machine], wanted: Wanted) -> None:
    """Refuse a peak that no machine needs; which one to believe is not for this program to choose."""
    stated = {machine.name: rates.stated(machine, workload.precision) for machine in machines}
    if wanted.peak and wanted.rate is None and all(stated.values()):
        told = ", ".join(f"{name} {peak.words}" for name, peak in stated.items() if peak)
        raise UsageError(f"--peak is for machines whose files state none, but all state one here: {told}; omit it")


def _compute(workload: Workload, machine: _native.Machine, wanted: Wanted) -> rates.Compute:
    if wanted.rate is None:
        # What is asked for serves the machines whose files state no peak.
        peak = None if rates.stated(machine, workload.precision) else wanted.peak
        return rates.from_flops(workload, machine, peak, wanted.efficiency)
    if wanted.peak or wanted.efficiency:
        raise UsageError("--rate is a measured rate and needs no --peak or --efficiency; give one or the other")
    return rates.from_rates(wanted.rate)


def _refuse_if_hopeless(trainers: list[Trainer], steps: dict[str, list[Step]]) -> None:
    """Raise what went wrong where it leaves no step with messages, or none at all and not for want of memory."""
    found = [step for steps_of_one in steps.values() for step in steps_of_one]
    errors = [error for trainer in trainers for error in trainer.errors]
    if errors and not any(step.causes_ns for step in found if step.gpus > 1):
        raise errors[0]
    if not any(step.causes_ns or step.fits is False for step in found):
        raise UsageError(f"{found[0].gpus} GPUs: {found[0].why}; give another --gpus or --batch")


def _counts(machines: list[_native.Machine]) -> list[int]:
    """The usual numbers of devices, as far as every machine has them."""
    least = min((machine.ranks for machine in machines if not machine.open_size), default=GPUS[-1])
    return [count for count in GPUS if count <= least]
