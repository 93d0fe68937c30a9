"""What if computing were faster, or gradients were sent meanwhile? Sliders over steps that are computed for the page.

Messages are simulated on the described machine in every point; only the time of computing is scaled.
"""

from __future__ import annotations

from dataclasses import replace

from linkwright.advise.predict.training import Training
from linkwright.advise.predict.training.lead import COMMUNICATION
from linkwright.advise.predict.training.step import Choices, Step, Trainer
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import NS_PER_S
from linkwright.show.shown import duration

from . import quantity
from .model import Point, Slider, WhatIf

FASTER = (0.5, 1.0, 2.0, 4.0)  # than assumed
BUCKET_BYTES = 25 << 20  # what PyTorch takes where nothing else is asked for
MOST_POINTS = 4000  # steps on one page; each takes a millisecond or more
# Part of a step -> its causes; together they are the whole step.
PARTS = {
    "Compute": ("compute",),
    "Exposed messages": tuple(cause for cause in COMMUNICATION if cause != "waiting"),
    "Waiting": ("waiting", "late rank"),
    "Input": ("input",),
}


def training(made: Training) -> list[WhatIf]:
    """Sliders for each machine whose steps have times; none where there would be too many points."""
    ways = _ways(made.choices)
    if len(FASTER) * len(ways) * sum(map(len, made.steps.values())) > MOST_POINTS:
        return []
    found = [_of(made, trainer, made.steps[trainer.machine.name], ways) for trainer in made.trainers]
    return [each for each in found if any(each.points)]


def _ways(choices: Choices) -> dict[str, Choices]:
    """How gradients may be sent: whole, and in buckets."""
    size = choices.bucket_bytes or BUCKET_BYTES
    buckets = f"in buckets of {quantity.size(size)}"
    found = {
        "whole, after the backward pass": replace(choices, bucket_bytes=None),
        f"{buckets}, during it": replace(choices, bucket_bytes=size, overlap=True),
    }
    if choices.bucket_bytes and not choices.overlap:
        found[f"{buckets}, after it"] = choices
    return found


def _of(made: Training, trainer: Trainer, steps: list[Step], ways: dict[str, Choices]) -> WhatIf:
    # The batch of a step is that of all devices, so in weak scaling it depends on their number.
    weak = made.choices.scaling == "weak"
    batches = list(dict.fromkeys(_batch(step, weak) for step in steps))
    counts = list(dict.fromkeys(step.gpus for step in steps))
    by_case = {(_batch(step, weak), step.gpus): step for step in steps}
    points = [
        _point(made, trainer, by_case[batch, gpus], faster, choices)
        for batch in batches
        for gpus in counts
        for faster in FASTER
        for choices in ways.values()
    ]
    sliders = [
        Slider("Batch per GPU" if weak else "Batch", [f"{batch:,}" for batch in batches]),
        Slider("GPUs", [f"{count:,}" for count in counts], len(counts) - 1),
        Slider("Computing", [_speed(faster) for faster in FASTER], FASTER.index(1.0)),
        Slider("Gradients", list(ways), list(ways.values()).index(made.choices)),
    ]
    names = ["Step", "Samples per second", *(["Time to train"] if made.workload.samples else [])]
    read = "Every setting is a step that was computed, with its messages simulated. Assumptions are those below."
    return WhatIf(f"{trainer.machine.name}: what if", sliders, names, points, list(PARTS), read)


def _batch(step: Step, weak: bool) -> int:
    return step.batch // step.gpus if weak else step.batch


def _speed(faster: float) -> str:
    return "as assumed" if faster == 1 else f"{faster:g} × as fast"


def _point(made: Training, trainer: Trainer, step: Step, faster: float, choices: Choices) -> Point | None:
    if not step.causes_ns:
        return None
    try:
        found = trainer.what_if(step, faster, choices)
    except LinkwrightError:  # such as a bucket that the algorithm does not serve
        return None
    texts = [quantity.text(found.time_ns / NS_PER_S, "s"), f"{found.samples_per_s:,.4g}"]
    if made.workload.samples:
        texts.append(duration(found.training_s(made.workload.samples)))
    return Point(texts, [found.share(*causes) for causes in PARTS.values()])
