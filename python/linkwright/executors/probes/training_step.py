"""One step of training with PyTorch on processes of this host: compute, waiting and communication, measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwright import _native
from linkwright.base.errors import UsageError, WaivedError
from linkwright.base.units import counted
from linkwright.executors import training
from linkwright.store.record import Note, Record, remarks

from . import Axes, Axis, Metric, ProbeKind, Setting

KEY = "training_step"
MODELS = ("resnet", "alexnet", "vgg", "mlp", "transformer-tiny")


def measure(axes: Axes, setting: Setting) -> Record:
    """One launch: fresh processes, one for each rank."""
    numbers = {name: int(axes[name]) for name in ("batch", "ranks", "delay_ms", "delayed", "neighbours")}
    asked = training.TrainingJob(str(axes["model"]), **numbers)
    if asked.batch < 1 or asked.ranks < 1:
        raise WaivedError(f"{KEY}: waived: a step has at least one rank and one sample; ask for at least 1")
    if (needed := asked.ranks + asked.neighbours) > len(setting.cpus):
        beside = f" and {counted(asked.neighbours, 'neighbour')}" if asked.neighbours else ""
        raise WaivedError(
            f"{KEY}: waived: {counted(asked.ranks, 'rank')}{beside} need {counted(needed, 'processor')}; this process "
            f"has {len(setting.cpus)}"
        )
    if asked.delayed >= asked.ranks:
        raise WaivedError(f"{KEY}: waived: delayed={asked.delayed} is none of {asked.ranks} ranks; they count from 0")
    steps = None if setting.settle_within else setting.samples
    found = training.train(asked, setting.cpus, setting.budget_s, steps, setting.seed)
    columns = {"compute": found.compute_ns, "waiting": found.waiting_ns, "communication": found.communication_ns}
    columns |= {"gradient_bytes": np.array([float(found.gradient_bytes)])}
    if asked.ranks > 1:
        columns |= {
            "late_rank": np.array([float(found.late_rank)]), "late_by": np.array([found.late_ns]),
            "message_latency": found.small_ns, "message_rate": found.bytes_per_s, "sum_rate": found.sum_bytes_per_s,
        }  # fmt: skip
    unpinned = [] if found.pinned else [Note("unpinned", "ranks could not be pinned to processors")]
    return Record(
        values_ns=found.step_ns.tolist(), first_ns=found.first_ns,
        notes=(*remarks(f"PyTorch {found.torch}, gloo, one thread for each rank"), *unpinned),
        columns={name: values.tolist() for name, values in columns.items()},
    )  # fmt: skip


def check_host(axes: Mapping[str, object]) -> None:
    """Raise the reason for which nothing, or not all, of these axes can be measured on this host."""
    try:
        training.python()
    except WaivedError as error:
        raise UsageError(str(error).replace(" waived:", "")) from error
    stated, processors = axes.get("ranks", ()), len(_native.cpus())
    most = max((int(text) for text in stated if isinstance(text, str) and text.isdecimal()), default=1)
    if most > processors:
        raise UsageError(
            f"--ranks {most}: {KEY} gives each rank a processor of its own, and there are {processors}; ask for at "
            f"most {processors}"
        )


PROBE = ProbeKind(
    key=KEY,
    summary="one step of data-parallel training with PyTorch on this host: compute, waiting, communication",
    description=(
        "Each rank is a process with one thread on a processor of its own, and trains one of five small models on "
        "random samples. All gradients are summed at once after the backward pass, by gloo. A step lasts from when "
        "all ranks have finished one step until all have finished the next. Its compute is that of the rank whose "
        "gradients are ready first, and its waiting the time until the last rank is ready. `linkwright predict "
        "training_step --run latest` predicts the steps of p ranks from those of one, beside p - 1 neighbours if the "
        "run has that."
    ),
    axes=(
        Axis("model", "word", "what is trained; --model for short", "resnet", MODELS),
        Axis("batch", "count", "samples of each rank", "8"),
        Axis("ranks", "count", "processes that train together; --ranks for short", "1"),
        Axis("delay_ms", "count", "milliseconds that one rank sleeps in each step, to try the attribution", "0"),
        Axis("delayed", "count", "the rank that sleeps", "0"),
        Axis("neighbours", "count", "trainings of one rank beside it, each on a processor of its own", "0"),
    ),
    metrics=(
        Metric("time", "ns", "low", "one step, from all done to all done", "time"),
        Metric("compute", "ns", "low", "of the rank that is ready first, with packing and update", "column"),
        Metric("waiting", "ns", "low", "of that rank until the last one is ready", "column"),
        Metric("communication", "ns", "low", "from then until all ranks have the sum", "column"),
        Metric("late_rank", "1", "", "the rank whose quick steps (lower quartile) take longest until ready", "column"),
        Metric("late_by", "ns", "low", "how much longer they take than those of the quickest rank", "column"),
        Metric("gradient_bytes", "B", "", "what the allreduce carries", "column"),
        Metric("message_latency", "ns", "low", "64 bytes both ways at once between ranks 0 and 1", "column"),
        Metric("message_rate", "B/s", "high", "8 MiB both ways at once, bytes of one way", "column"),
        Metric("sum_rate", "B/s", "high", "sums of two arrays of 8 MiB, bytes of one of them", "column"),
    ),
    source="compute, waiting for the last rank and communication, as in bulk-synchronous training (Valiant 1990)",
    waived="where no Python with PyTorch is known, or where ranks outnumber processors",
    measure=measure,
    check_host=check_host,
)
