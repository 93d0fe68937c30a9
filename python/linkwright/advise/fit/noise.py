"""The `[noise]` of a measured machine, from how the samples of its messages in a row differ within a launch.

    rate        n messages of a row take T = n t, each up to r t longer, so the variance of T is n (r t)^2 / 12 and
                r = sqrt(12 n) s / T, with s from the quartiles of the samples (the tail is for interrupts)
    interrupts  samples beyond the median by more than `TAIL` s: their mean excess is the length, and the observed time
                of all ranks over their number is the interval

Only samples of at least `LEAST_NS` count: shorter operations are timed in batches, whose mean hides what one of them
does. For the same reason the jitter of start-ups and polls is not measured. A sample during which a processor was taken
away is set aside before it gets here, so the interrupts are those that the guards let pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwright.base.rows import given
from linkwright.machines import writer
from linkwright.store.run import Run

from .machine_file import number
from .points import measured_rows
from .regimes import Fit

LEAST_NS = 20_000.0
LEAST_SAMPLES = 30  # of one experiment
TAIL = 6.0
LEAST_INTERRUPTS = 5
_NORMAL_IQR = 1.349  # interquartile range of a normal distribution with deviation 1


def table(run: Run, machine: str) -> str:
    """The section of the machine file; empty where the run shows no noise."""
    rates, lengths, observed_ns = [], [], 0.0
    for messages, samples in _rows_of_messages(run, machine):
        low, middle, high = np.percentile(samples, (25, 50, 75))
        spread = (high - low) / _NORMAL_IQR
        rates.append(np.sqrt(12 * messages) * spread / middle)
        late = samples[samples > middle + max(TAIL * spread, 0.01 * middle)]
        lengths += (late - middle).tolist()
        observed_ns += 2 * float(samples.sum())
    numbers: dict[str, object] = {}
    if rates and np.median(rates) > 0:
        rate = Fit(*(float(np.percentile(rates, share)) for share in (50, 25, 75)))
        source = (
            f"quartiles of messages in a row, run {run.id}; half of the sizes within {rate.low:.3g} to {rate.high:.3g}"
        )
        numbers["rate"] = writer.fitted(min(rate.value, 10.0), "ratio", source, digits=4)
    if len(lengths) >= LEAST_INTERRUPTS:
        length, every = float(np.mean(lengths)), observed_ns / len(lengths)
        if 2 * length < every:
            error = 1.96 / np.sqrt(len(lengths))
            for key, value in (("interrupt", length), ("interrupt_every", every)):
                found = Fit(value, value * (1 - error), value * (1 + error))
                evidence = f"{len(lengths)} samples of messages in a row beyond the others"
                numbers[key] = number(found, evidence, run.id, rate=False)
    return "\n" + writer.text({"noise": numbers}) if numbers else ""


def _rows_of_messages(run: Run, machine: str) -> Iterator[tuple[int, np.ndarray]]:
    """(messages, samples in ns) of each long experiment with messages in a row between two ranks."""
    known = {row["experiment"]: row for row in measured_rows(run, machine) if row["algorithm"] == "pairs"}
    samples = run.samples()
    samples = samples[~given(samples["rank"]) & ~given(samples["set_aside"])]
    for (experiment,), its in samples.by("experiment", sort=True):
        row = known.get(experiment)
        if not row or row["ranks"] != 2 or row["value"] < LEAST_NS:
            continue
        # Launches may find the machine in different states; within one it is the same.
        medians = {launch: np.median(group["value_ns"]) for (launch,), group in its.by("launch", sort=True)}
        values = np.array([float(s["value_ns"]) / medians[s["launch"]] * row["value"] for s in its])
        if len(values) >= LEAST_SAMPLES:
            yield row["messages"] or 1, values
