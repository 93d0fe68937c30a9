"""Steps of training as tables: one for each machine, and one for each other machine against the first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from linkwright.base.units import NS_PER_S, format_time
from linkwright.show.shown import duration, span

if TYPE_CHECKING:
    from linkwright.advise.predict.training import Training
    from linkwright.advise.predict.training.lead import Lead
    from linkwright.advise.predict.training.step import Step
    from linkwright.advise.predict.training.workload import Workload

WIDTH = 80


def show(made: Training, wide: bool) -> None:
    """Print everything; `wide` adds the columns that do not fit into 80."""
    for paragraph in head(made):
        say(paragraph)
    for machine, steps in made.steps.items():
        click.echo(f"\n{machine}")
        _print_steps(steps, made, wide)
    for second in dict.fromkeys(lead.second for lead in made.leads):
        own = [lead for lead in made.leads if lead.second == second]
        click.echo(f"\n{own[0].first} against {second}; messages: share of the step on each")
        _print_leads(own, made.calibrated, wide)


def say(paragraph: str) -> None:
    """Print a paragraph in lines of at most 80 characters."""
    click.echo(textwrap.fill(paragraph, WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def head(made: Training) -> list[str]:
    """What is trained and what the times rest on, one paragraph each."""
    load = made.workload
    told = [
        f"{load.name}: {load.parameters:,} parameters, {load.activations:,} activations per sample, gradients of "
        f"{load.gradient_bytes:,} B, {load.precision} precision"
    ]
    told += [f"compute on {machine}: {basis}" for machine, basis in made.basis.items()]
    if not made.calibrated:
        told.append(
            "uncalibrated: times are only as good as these assumptions; low to high is the range that they allow"
        )
    return told + [f"note: {note}" for note in made.notes]


def _print_steps(steps: list[Step], made: Training, wide: bool) -> None:
    header = ["batch", "GPUs", "step", "low to high", "samples/s", "compute", "messages"]
    header += ["to train"] if made.workload.samples else []
    header += ["each", "intensity/GPU", "steps/s", "mostly", "late", "input"] if wide else []
    _print_rows(header, [_step_row(step, made, wide) for step in steps])
    if all(step.fits is False for step in steps):
        click.echo("fits on none of these: use more devices, or a smaller batch")
    for cause in ("late rank", "input"):
        shares = [step.share(cause) for step in steps if step.causes_ns]
        if max(shares, default=0.0) >= 0.0005 and not wide:
            click.echo(f"{cause}: up to {100 * max(shares):.1f} % of a step; --wide has it for each")
    choices = dict.fromkeys(step.choice for step in steps if step.choice)
    if choices:
        say("gradients by " + ", ".join(choices))


def _step_row(step: Step, made: Training, wide: bool) -> list[str]:
    from linkwright.advise.predict.training.lead import COMMUNICATION

    cells = [str(step.batch), str(step.gpus)]
    if not step.causes_ns:
        return [*cells, step.why]
    ends = "-" if made.calibrated else span(step.low_ns, step.high_ns)
    cells += [format_time(step.time_ns), ends, short(step.samples_per_s)]
    cells += [f"{step.share('compute'):.1%}", f"{step.share(*COMMUNICATION):.1%}"]
    cells += [duration(step.training_s(made.workload.samples))] if made.workload.samples else []
    return cells + (_wide_cells(step, made.workload) if wide else [])


def _wide_cells(step: Step, load: Workload) -> list[str]:
    from linkwright.advise.predict.training.lead import COMMUNICATION

    exposed = {cause: step.share(cause) for cause in COMMUNICATION}
    mostly = max(exposed, key=exposed.get) if any(exposed.values()) else "-"
    intensity = short(load.intensity(step.batch) / step.gpus)
    shares = (f"{step.share(cause):.1%}" for cause in ("late rank", "input"))
    return [str(step.images), intensity, short(NS_PER_S / step.time_ns), mostly, *shares]


def _print_leads(leads: list[Lead], calibrated: bool, wide: bool) -> None:
    from linkwright.advise.predict.training.lead import crossovers, verdict

    late = list(next((lead.late for lead in leads if lead.late), {}))
    header = ["batch", "GPUs", "faster", "by", "low to high", "messages"]
    header += ["second/first", "f", "a", "f x a", *(f"late: {who}" for who in late)] if wide else []
    _print_rows(header, [_lead_row(lead, calibrated, late if wide else None) for lead in leads], left=(2,))
    for line in (verdict(leads), *crossovers(leads)):
        say(line)


def _lead_row(lead: Lead, calibrated: bool, late: list[str] | None) -> list[str]:
    from linkwright.advise.predict.training.lead import ratio

    cells = [str(lead.batch), str(lead.gpus)]
    if lead.lead is None:
        return [*cells, lead.why]
    ends = "-" if calibrated else _ratios(lead)
    cells += [lead.leader, ratio(lead.times_faster), ends]
    cells.append(f"{lead.first_communication:.1%}, {lead.communication:.1%}")
    if late is None:
        return cells
    simple = [f"{1 + lead.lead:.3f}", f"{lead.communication:.1%}", f"{lead.allreduce:+.1%}", f"{lead.simple:+.1%}"]
    return [*cells, *simple, *(f"{1 + lead.late[who]:.3f}" if lead.late else "-" for who in late)]


def _ratios(lead: Lead) -> str:
    """The range of `by`: below 1, the other machine is ahead."""
    ends = 1 + lead.low, 1 + lead.high
    low, high = ends if lead.lead >= 0 else (1 / ends[1], 1 / ends[0])
    return f"{low:.2f} to {high:.2f} x"


def _print_rows(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> None:
    """A table whose shorter rows end in a text that goes on as long as it likes."""
    whole = [header, *(row for row in rows if len(row) == len(header))]
    widths = [max(len(row[i]) for row in whole) for i in range(len(header))]
    widths[:2] = [max(len(row[i]) for row in [header, *rows]) for i in (0, 1)]
    for row in [header, *rows]:
        aligned = len(row) if len(row) == len(header) else len(row) - 1
        cells = [f"{c:<{widths[i]}}" if i in left else f"{c:>{widths[i]}}" for i, c in enumerate(row[:aligned])]
        click.echo("  ".join([*cells, *row[aligned:]]).rstrip())


def short(value: float) -> str:
    """Four significant digits, and those before the point in full."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
