"""Figures 12 and 13 as charts of the model, with intervals of what is assumed; leads, with and without a late rank.

The paper prints none of these rates. Iterations per second are `uncalibrated`: compare lines with each other, and how
their distance changes, rather than their absolute positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwright.advise.predict.training.lead import Lead
from linkwright.show.report.model import Axis, Choice, Curve, Plot, Section
from linkwright_evidence.report import plain

from .machine_pair import NAMES, Machines
from .training import GPUS, Scaling, by_library, late_ranks, scalings

COUNT = Axis("GPUs", "1", "log2")
RATE = Axis("iterations per second", "1", "log10")
LEAD = Axis("lead of the DGX-1", "%", "linear")
HOW = "Uncalibrated. Bars: from the slowest to the fastest computing that the assumptions allow."


def section(machines: Machines) -> dict:
    """One section with a part per figure, in the plain form that a run folder keeps."""
    found = scalings(machines)
    large = [scaling for scaling in found if not scaling.network.startswith("ResNet")]
    small = [scaling for scaling in found if scaling.network.startswith("ResNet")]
    parts = [
        Section("Figure 12: AlexNet and GoogLeNet", [_rates("Iterations per second", large), _leads("Leads", large)]),
        Section(
            "Figure 13: ResNet/x",
            [
                Choice("Iterations per second,", [_rates(f"batch {batch}", own) for batch, own in _by_batch(small)]),
                Choice("Leads,", [_leads(f"batch {batch}", own) for batch, own in _by_batch(small)]),
            ],
        ),
    ]
    intro = "Training steps on the model, one allreduce after the backward pass. No published points: there are none."
    return plain.dump(Section("Training", parts=parts, intro=intro))


def _by_batch(found: Sequence[Scaling]) -> Iterator[tuple[int, list[Scaling]]]:
    for batch in sorted({scaling.batch for scaling in found}):
        yield batch, [scaling for scaling in found if scaling.batch == batch]


def _name(scaling: Scaling, own: Sequence[Scaling]) -> str:
    """The network, with its batch where a chart shows several."""
    batches = {other.batch for other in own}
    return scaling.network if len(batches) == 1 else f"{scaling.network}, {scaling.batch}"


def _rates(title: str, own: Sequence[Scaling]) -> Plot:
    curves = []
    for scaling in own:
        for name in NAMES:
            steps = [step for step in scaling.steps[name] if step.causes_ns]
            curves.append(
                Curve(
                    f"{_name(scaling, own)}, {name}",
                    [step.gpus for step in steps],
                    [1e9 / step.time_ns for step in steps],
                    [1e9 / step.high_ns for step in steps],
                    [1e9 / step.low_ns for step in steps],
                    kind="model",
                )
            )
    return Plot(title, COUNT, RATE, curves, how_to_read=HOW)


def _leads(title: str, own: Sequence[Scaling]) -> Plot:
    curves = []
    for scaling in own:
        leads = [lead for lead in scaling.leads if lead.lead is not None]
        values = [[100 * value for value in column] for column in zip(*map(_ends, leads), strict=True)]
        curves.append(Curve(_name(scaling, own), [lead.gpus for lead in leads], *values, kind="model"))
    return Plot(title, COUNT, LEAD, curves, how_to_read=HOW)


def _ends(lead: Lead) -> tuple[float, float, float]:
    return lead.lead, lead.low, lead.high


def rows(machines: Machines) -> list[dict]:
    """Every step and lead as a table."""
    return [
        {"network": scaling.network, "batch": str(scaling.batch), "gpus": str(gpus)}
        | {name: _step(scaling, name, gpus) for name in NAMES}
        | _lead(scaling.lead(gpus))
        for scaling in scalings(machines)
        for gpus in GPUS
    ]


def _step(scaling: Scaling, name: str, gpus: int) -> str:
    step = next(step for step in scaling.steps[name] if step.gpus == gpus)
    if not step.causes_ns:
        return f"too big: {step.needed_bytes / 1e9:.1f} GB"
    rate, low, high = (_digits(1e9 / time_ns) for time_ns in (step.time_ns, step.high_ns, step.low_ns))
    return f"{rate} it/s ({low} to {high})"


def _digits(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


def _lead(lead: Lead) -> dict[str, str]:
    if lead.lead is None:
        return dict.fromkeys(("lead", "f", "a", "f_x_a"), "-")
    return {
        "lead": f"{lead.lead:+.1%} ({lead.low:+.1%} to {lead.high:+.1%})",
        "f": f"{lead.communication:.1%}",
        "a": f"{lead.allreduce:+.1%}",
        "f_x_a": f"{lead.simple:+.1%}",
    }


def libraries(machines: Machines) -> list[dict]:
    """How much of a lead is the library's."""
    rows = []
    for name, found in by_library(machines):
        first = next(iter(found.values()))
        spans = {key: f"{lead.lead:+.1%} ({lead.low:+.1%} to {lead.high:+.1%})" for key, lead in found.items()}
        rows.append({"network": name, "batch": str(first.batch), "gpus": str(first.gpus)} | spans)
    return rows


def late(machines: Machines) -> list[dict]:
    """What a rank that computes 5 % longer does to the lead."""
    return [
        {"network": name, "batch": str(lead.batch), "gpus": str(lead.gpus)}
        | {f"late_{who}": f"{value:+.1%}" for who, value in lead.late.items()}
        for name, lead in late_ranks(machines)
    ]
