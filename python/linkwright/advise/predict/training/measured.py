"""Steps that `run training_step` measured on several ranks, predicted from one rank and simulated messages.

    predicted = step of one rank + waiting for the last of p ranks + allreduce of the gradients, simulated

Ranks are alike and vary as one rank does from step to step, so of p ranks the first and the last are expected at these
quantiles of its steps:

    first   1 - 2^(-1/p)            last   2^(-1/p)             p = 2: 29 % and 71 %

The allreduce runs on the machine that is named, or on LogGP with the exchanges that the run timed: a small message
both ways is the latency, a large one the bandwidth, and sums of arrays are the arithmetic. No step of several ranks is
used. A rank is late if its quick steps are longer than those of the quickest rank, by `LATE_SHARE` of a step.

Ranks slow each other down while they compute, for example because they share memory bandwidth. The prediction contains
this only if the run also timed one rank next to p - 1 independent trainings (`--axis neighbours=0,1`); their steps then
replace those of one rank alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from linkwright import _native
from linkwright.advise.predict.training.compute import from_rates
from linkwright.advise.predict.training.step import Choices, Step, Trainer
from linkwright.advise.predict.training.workload import BYTES_PER_NUMBER, Layer, Quantity, Workload
from linkwright.base.errors import UsageError
from linkwright.base.lazy import np
from linkwright.base.rows import given
from linkwright.base.units import NS_PER_S, format_rate, format_time
from linkwright.executors.training import LATE_SHARE
from linkwright.machines import writer

if TYPE_CHECKING:
    from linkwright.store.run import Run

PROBE = "training_step"
# A rank is late if its quick steps are longer than those of the quickest rank by this share of a step.
NAMED = 0.1
_NOTHING = Quantity(0.0, 0.0, 0.0)
PARTS = ("compute", "waiting", "communication")


@dataclass(frozen=True)
class TrainedStep:
    """One experiment of a run: what was trained, the value of every metric, and the samples that count."""

    model: str
    batch: int  # of each rank
    ranks: int
    delayed: bool  # a rank slept on purpose
    neighbours: int  # independent trainings on the same host at that time
    metrics: dict[str, float]
    steps_ns: np.ndarray
    interval_ns: tuple[float | None, float | None]
    flags: str | None


@dataclass(frozen=True)
class PredictedStep:
    """The step of several ranks, predicted and measured."""

    of: TrainedStep
    step: Step
    neighbours: int  # of the one rank whose steps it is predicted from

    @property
    def error(self) -> float:
        """How much longer the predicted step is than the measured one, as a share of the latter."""
        return self.step.time_ns / self.of.metrics["time"] - 1

    @property
    def parts_ns(self) -> dict[str, float]:
        """The predicted step by part."""
        compute, waiting = (self.step.causes_ns[cause] for cause in ("compute", "late rank"))
        return dict(zip(PARTS, (compute, waiting, self.step.time_ns - compute - waiting), strict=True))

    @property
    def late_rank(self) -> int | None:
        """The rank that is late in all steps, not only when other programs run; None if none is."""
        is_late = self.of.metrics["late_by"] >= LATE_SHARE * self.of.metrics["time"]
        return int(self.of.metrics["late_rank"]) if is_late else None

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        predicted = {"time": self.step.time_ns, **self.parts_ns}
        low, high = self.of.interval_ns
        measured = {part: self.of.metrics[part] for part in ("time", *PARTS)} | {"ci_low": low, "ci_high": high}
        return {
            "model": self.of.model, "batch": self.of.batch, "ranks": self.of.ranks, "neighbours": self.neighbours,
            "predicted_ns": predicted,
            "measured_ns": measured, "error": self.error, "late_rank": self.late_rank, "flags": self.of.flags,
        }  # fmt: skip


@dataclass(frozen=True)
class PredictedRun:
    """All steps of several ranks of a run."""

    run: str
    measured_on: str
    messages: str  # what they are simulated on, in words
    steps: list[PredictedStep]
    without_value: list[dict[str, object]]  # experiments of the run that gave none, and why

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        steps = [step.as_dict() for step in self.steps]
        about = {"run": self.run, "measured_on": self.measured_on, "messages": self.messages}
        return {**about, "steps": steps, "without_value": self.without_value}


def compare(run: Run, machine: _native.Machine | None, algorithm: str | None) -> PredictedRun:
    """Predict every step of several ranks in `run`, with messages on `machine`; None: LogGP of the run's exchanges."""
    rows = [row for row in run.results().records() if row["algorithm"] == PROBE]
    measured, host = _trainings(run, [row for row in rows if row["value"] is not None])
    keys = ("experiment", "status", "reason")
    missing = [{key: row[key] for key in keys} for row in rows if row["status"] != "ok"]
    if not measured:
        raise UsageError(f"run {run.id}: has no step of training; `linkwright run {PROBE} --ranks 1,2` measures some")
    several = [one for one in measured if one.ranks > 1 and not one.neighbours]
    if not several:
        raise UsageError(f"run {run.id}: has no step of several ranks to predict; measure with --ranks 1,2")
    single = {(one.model, one.batch, one.neighbours): one for one in measured if one.ranks == 1 and not one.delayed}
    pairs = [(one, _single(single, one)) for one in several]
    if one := next((one for one, from_one in pairs if not from_one), None):
        raise UsageError(
            f"run {run.id}: has no step of {one.model} with batch {one.batch} on one rank, from which several are "
            f"predicted; measure both: `linkwright run {PROBE} --model {one.model} --axis batch={one.batch} --ranks "
            f"1,{one.ranks}`"
        )
    words = f"{machine.name}" if machine else ""
    if machine is None:
        machine, words = _exchanged(several)
    steps = [
        PredictedStep(one, _step(one, from_one, machine, algorithm), from_one.neighbours)
        for one, from_one in pairs if from_one
    ]  # fmt: skip
    return PredictedRun(run.id, host, f"{steps[0].step.choice} on {words}", steps, missing)


def _single(single: Mapping[tuple[str, int, int], TrainedStep], one: TrainedStep) -> TrainedStep | None:
    """The steps of one rank to predict from: timed next to as many neighbours as it will have, else alone."""
    beside = single.get((one.model, one.batch, one.ranks - 1))
    return beside or single.get((one.model, one.batch, 0))


def _trainings(run: Run, rows: list[dict]) -> tuple[list[TrainedStep], str]:
    """What the run has values for, and the machine that was measured."""
    found: dict[str, list[dict]] = {}
    for row in rows:
        found.setdefault(row["experiment"], []).append(row)
    samples = run.samples()
    samples = samples[~given(samples["rank"]) & ~given(samples["set_aside"])]
    trainings, host = [], ""
    for its in found.values():
        head = next(row for row in its if row["metric"] == "time")
        axes = dict(word.split("=", 1) for word in head["axes"].split())
        interval = head["ci_low"], head["ci_high"]
        metrics = {row["metric"]: row["value"] for row in its}
        delayed, host = axes["delay_ms"] != "0", head["machine"]
        steps_ns = np.array(samples[samples["experiment"] == head["experiment"]]["value_ns"], float)
        trainings.append(
            TrainedStep(
                axes["model"],
                int(axes["batch"]),
                head["ranks"],
                delayed,
                int(axes.get("neighbours", 0)),
                metrics,
                steps_ns,
                interval,
                head["flags"],
            )
        )
    return trainings, host


def _step(one: TrainedStep, alone: TrainedStep, machine: _native.Machine, algorithm: str | None) -> Step:
    last = 0.5 ** (1 / one.ranks)
    first_ns, last_ns = np.quantile(alone.steps_ns, (1 - last, last)).tolist()
    choices = Choices(scaling="weak", algorithm=algorithm, input="none", skew_ns=last_ns - first_ns)
    gradient_bytes = int(one.metrics["gradient_bytes"])
    layer = Layer(one.model, _NOTHING, 0, gradient_bytes // BYTES_PER_NUMBER, gradient_bytes)
    workload = Workload(one.model, [layer], None, [one.batch], [one.ranks])
    compute = from_rates(f"{one.batch}:{one.batch / first_ns * NS_PER_S!r}")
    return Trainer(workload, machine, compute, choices).step(one.batch, one.ranks)


def _exchanged(several: list[TrainedStep]) -> tuple[_native.Machine, str]:
    """LogGP with the medians of the exchanges that were timed, and the same in words."""
    names = ("message_latency", "message_rate", "sum_rate")
    latency_ns, rate, sums = (median(one.metrics[name] for one in several) for name in names)
    of_host = "processes of a host"
    number = {"status": "measured", "source": "exchanges of the run"}
    latency, nothing = ({"value": ns, "unit": "ns", **number} for ns in (latency_ns, 0))
    bandwidth, summed = ({"value": one / NS_PER_S, "unit": "GB/s", **number} for one in (rate, sums))
    document = {
        "machine": {
            "name": "exchanges", "summary": "LogGP of timed exchanges", "format": 1, "sources": ["the run"],
            "description": "Ranks of a training on one host",
        },
        "level": [{"name": "process", "count": "any", "source": of_host}],
        "endpoints": {"count": "any", "source": of_host},
        "fabric": {"kind": "loggp", "latency": latency, "gap": nothing, "bandwidth": bandwidth},
        "path": {
            "message": {
                "summary": "one message", "completion": "source_free", "fused_combine": True, "start": nothing,
                "receive": nothing, "notice_start": nothing, "combine_rate": summed, "copy_rate": summed,
            }
        },
    }  # fmt: skip
    words = f"LogGP of the run's exchanges: {format_time(latency_ns)}, {format_rate(rate)}, sums {format_rate(sums)}"
    return _native.Machine.parse(writer.text(document), "exchanges.toml"), words
