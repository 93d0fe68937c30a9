"""One training step on one machine: its compute, and the messages that compute does not hide.

    host     | input of the next batch ...  |                        prefetched: hidden while shorter than the rest
    device   | forward | backward           |
    network            | allreduces, as gradients come | exposed |
                                            ^ the last rank has computed

    step = last rank's last event, or the input where that takes longer; input that is not prefetched comes before

Images are split evenly (`strong`: the batch is fixed; `weak`: the batch of each device is). One late rank computes
`imbalance` longer and starts `skew` later; the others wait for it in the allreduce. A device must at least hold the
activations of its images, 4 B each, or 2 B in half and bf16: necessary, not sufficient. Left out: the update of the
parameters, processors that prepare images, and links that input and gradients share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from linkwright import _native
from linkwright.advise.predict.rates import capacity_bytes
from linkwright.advise.predict.training.compute import FORWARD_SHARE, Compute
from linkwright.advise.predict.training.gradients import Allreduce, Buckets, buckets
from linkwright.advise.predict.training.staging import Staging
from linkwright.advise.predict.training.workload import Workload
from linkwright.base.errors import LinkwrightError, UsageError
from linkwright.base.units import KILO, NS_PER_S


@dataclass(frozen=True)
class Choices:
    """How to train."""

    scaling: str = "strong"
    algorithm: str | None = None  # the plan of the machine's library, or `ring` where there is none
    path: str | None = None
    bucket_bytes: int | None = None  # whole gradients where None
    overlap: bool = True  # of buckets with the backward pass
    input: str = "prefetched"
    imbalance: float = 0.0
    skew_ns: float = 0.0

    @property
    def balanced(self) -> bool:
        """Whether all ranks arrive together."""
        return self.imbalance == 0 and self.skew_ns == 0


@dataclass(frozen=True)
class Step:
    """One step of a batch on a number of devices; without `causes_ns`, and with `why`, if it cannot be done."""

    machine: str
    batch: int
    gpus: int
    images: int  # of the device that has most
    needed_bytes: int
    capacity_bytes: int | None
    low_ns: float = 0.0
    high_ns: float = 0.0
    allreduce_ns: float = 0.0  # of all gradients by themselves, all ranks on time
    causes_ns: dict[str, float] = field(default_factory=dict)
    choice: str = ""
    why: str = ""  # there is no time

    @property
    def fits(self) -> bool | None:
        """None if the machine states no capacity."""
        return None if self.capacity_bytes is None else self.needed_bytes <= self.capacity_bytes

    @property
    def time_ns(self) -> float | None:
        """Time of the step; None if it does not fit."""
        return sum(self.causes_ns.values()) if self.causes_ns else None

    @property
    def samples_per_s(self) -> float | None:
        """Of all devices; None without a time."""
        return self.batch / self.time_ns * NS_PER_S if self.time_ns else None

    def training_s(self, samples: int) -> float | None:
        """Seconds of as many whole steps as that number of samples needs; None without a time."""
        return -(-samples // self.batch) * self.time_ns / NS_PER_S if self.time_ns else None

    def share(self, *causes: str) -> float:
        """Of the time, by all these causes together."""
        return sum(self.causes_ns[cause] for cause in causes) / self.time_ns

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        timed = {
            "step_ns": self.time_ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "steps_per_s": NS_PER_S / self.time_ns if self.time_ns else None,
            "samples_per_s": self.samples_per_s,
            "allreduce_ns": self.allreduce_ns,
            "causes_ns": self.causes_ns,
            "algorithm": self.choice,
        }
        return {
            "machine": self.machine,
            "batch": self.batch,
            "gpus": self.gpus,
            "images_per_gpu": self.images,
            "fits": self.fits,
            "memory_needed_bytes": self.needed_bytes,
            "memory_capacity_bytes": self.capacity_bytes,
            "reason": self.why or None,
            **(timed if self.causes_ns else dict.fromkeys(timed)),
        }


class Trainer:
    """Steps of one workload on one machine."""

    def __init__(self, workload: Workload, machine: _native.Machine, compute: Compute, choices: Choices):
        self.machine, self.compute, self.choices = machine, compute, choices
        self._workload = workload
        self._parts: dict[int, tuple[Allreduce, Staging]] = {}
        self._attempts: dict[tuple[int, int], Step] = {}
        self.errors: list[LinkwrightError] = []  # of attempts that had the devices

    def attempt(self, batch: int, gpus: int) -> Step:
        """One step, or the reason why this machine cannot make it."""
        if (batch, gpus) not in self._attempts:
            self._attempts[batch, gpus] = self._attempted(batch, gpus)
        return self._attempts[batch, gpus]

    def _attempted(self, batch: int, gpus: int) -> Step:
        bare = Step(self.machine.name, self._whole(batch, gpus), gpus, 0, 0, None)
        if not self.machine.open_size and gpus > self.machine.ranks:
            return replace(bare, why=f"{self.machine.name} has {self.machine.ranks} GPUs")
        if self.choices.scaling == "strong" and batch < gpus:
            return replace(bare, why="fewer samples than GPUs")
        try:
            return self.step(batch, gpus)
        except LinkwrightError as error:
            self.errors.append(error)
            return replace(bare, why=str(error))

    @property
    def precision(self) -> str:
        """That of the products as this machine computes them."""
        return self.compute.peak.precision if self.compute.peak else self._workload.precision

    def _whole(self, batch: int, gpus: int) -> int:
        """The batch of all devices."""
        return batch if self.choices.scaling == "strong" else batch * gpus

    def step(self, batch: int, gpus: int, choices: Choices | None = None) -> Step:
        """One step; `batch` is that of all devices, or of each in weak scaling."""
        how = choices or self.choices
        strong = how.scaling == "strong"
        if strong and batch < gpus:
            raise UsageError(
                f"batch {batch} on {gpus} GPUs leaves some without a sample; use fewer --gpus, or weak scaling"
            )
        images = -(-batch // gpus) if strong else batch
        needed = self._workload.activation_bytes(images, self.precision)
        head = (
            self.machine.name,
            self._whole(batch, gpus),
            gpus,
            images,
            needed,
            capacity_bytes(self.machine),
        )
        if Step(*head).fits is False:
            return Step(*head, why=f"too large: {_bytes(needed)} of {_bytes(head[-1])}")
        allreduce, staging = self._on(gpus)
        order = buckets(self._workload.layers, how.bucket_bytes)
        low, usual, high = (
            self._causes(time_ns(images), images, allreduce, staging, order, how)
            for time_ns in (self.compute.low_ns, self.compute.time_ns, self.compute.high_ns)
        )
        alone = sum(allreduce.time_ns(size) for size, _ in order)
        choice = allreduce.balanced(order[-1][0]).choice
        return Step(*head, sum(low.values()), sum(high.values()), alone, usual, choice)

    def what_if(self, step: Step, faster: float, choices: Choices) -> Step:
        """A step that has a time, with a device that computes `faster` times as fast, under other choices."""
        allreduce, staging = self._on(step.gpus)
        order = buckets(self._workload.layers, choices.bucket_bytes)
        compute_ns = self.compute.time_ns(step.images) / faster
        return replace(step, causes_ns=self._causes(compute_ns, step.images, allreduce, staging, order, choices))

    def _on(self, gpus: int) -> tuple[Allreduce, Staging]:
        if gpus not in self._parts:
            machine = sized(self.machine, gpus)
            allreduce = Allreduce(machine, gpus, self.choices.algorithm, self.choices.path)
            self._parts[gpus] = allreduce, Staging(machine, gpus)
        return self._parts[gpus]

    def _causes(
        self, compute_ns: float, images: int, allreduce: Allreduce, staging: Staging, order: Buckets, how: Choices
    ) -> dict[str, float]:
        """The step by cause: `compute`, `waiting` for the late rank, causes of the exposed messages, `input`."""
        ranks = len(allreduce.balanced(order[0][0]).finish_ns)
        late = 1.0 + (how.imbalance if ranks > 1 else 0.0), how.skew_ns if ranks > 1 else 0.0
        ends = _per_rank(lambda factor, start: start + factor * compute_ns, ranks, late)
        through = [0.0] * ranks
        for size, done in order:
            share = FORWARD_SHARE + (1 - FORWARD_SHARE) * done if how.overlap else 1.0
            ready = _per_rank(lambda factor, start, s=share: start + s * factor * compute_ns, ranks, late)
            through = allreduce.run(size, [max(pair) for pair in zip(ready, through, strict=True)]).finish_ns
        exposed = max(0.0, max(through) - max(ends))
        causes = {"compute": compute_ns, "late rank": max(ends) - compute_ns}
        causes |= _exposed(exposed, allreduce, order)
        sample = self._workload.sample_bytes or 0
        input_ns = staging.time_ns(images * sample)[0] if how.input != "none" else 0.0
        rest = sum(causes.values())
        causes["input"] = input_ns if how.input == "serial" else max(0.0, input_ns - rest)
        return causes

    def notes(self) -> list[str]:
        """Notes on this machine and this network for the reader, once a step was made."""
        described = any(staging.described for _, staging in self._parts.values())
        found = list(self.compute.notes)
        if self.choices.input != "none" and self._workload.sample_bytes is None:
            found.append("input costs nothing: the network states no `sample`")
        elif self.choices.input != "none" and self._parts and not described:
            found.append("input costs nothing: the machine describes no path from host memory")
        if capacity_bytes(self.machine) is None:
            found.append("the machine states no capacity, so it was not checked whether a batch fits")
        return [f"{self.machine.name}: {note}" for note in found]


def _per_rank(time_ns: Callable[[float, float], float], ranks: int, late: tuple[float, float]) -> list[float]:
    """Arrival of every rank; the last one is late."""
    return [time_ns(1.0, 0.0)] * (ranks - 1) + [time_ns(*late)]


def _exposed(exposed_ns: float, allreduce: Allreduce, order: Buckets) -> dict[str, float]:
    """Exposed time of messages by the causes of the last allreduce, which is the one that is exposed."""
    shares = allreduce.balanced(order[-1][0]).causes
    total = sum(shares.values())
    names = ("latency", "serialisation", "waiting", "overhead")
    if total == 0:
        return dict.fromkeys((*names, "combining"), 0.0) | {"serialisation": exposed_ns}
    causes = {name: exposed_ns * shares.get(name, 0.0) / total for name in names}
    return causes | {"combining": exposed_ns * shares.get("compute", 0.0) / total}


def _bytes(size: int) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / KILO:.3g} kB"


def sized(machine: _native.Machine, gpus: int) -> _native.Machine:
    """The machine with at least this number of devices."""
    if machine.open_size == "grid":
        raise UsageError(f"machine {machine.name} is a grid of any size; choose one with a number of devices")
    if machine.open_size:
        return machine.with_endpoints(gpus)
    if gpus > machine.ranks:
        raise UsageError(f"{gpus} GPUs: {machine.name} has {machine.ranks}; give --gpus up to that")
    return machine
