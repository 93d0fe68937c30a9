"""Training on one machine as a table, on several side by side."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from linkwright.cli import options
from linkwright.cli.output import print_json, print_table
from linkwright.errors import UsageError
from linkwright.units import format_time

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.predict import Program
    from linkwright.predict.training import Training
    from linkwright.predict.training.lead import Lead
    from linkwright.predict.training.step import Step
    from linkwright.predict.training.workload import Workload


class Counts(click.ParamType):
    """Whole numbers such as `1,2,4`."""

    name = "N,.."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """[1, 2, 4] from `1,2,4`."""
        if not re.fullmatch(r"[1-9]\d{0,8}(,[1-9]\d{0,8})*", str(value), re.ASCII):
            self.fail(f"`{value}` is not a list of counts; write whole numbers such as `1,2,4,8`", param, ctx)
        return list(dict.fromkeys(int(part) for part in str(value).split(",")))


class Positive(click.ParamType):
    """A number above 0 such as `8.8e12`."""

    name = "NUMBER"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """8.8e12 from its text."""
        try:
            number = float(str(value))
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            self.fail(f"`{value}` is not a number above 0; write one such as `8.8e12`", param, ctx)
        return number


_OPTIONS = (
    click.option("--depth", type=click.IntRange(1), help="Training: depth of a network that has one."),
    click.option("--batch", type=Counts(), help="Training: batches; default: those of the network."),
    click.option("--gpus", type=Counts(), help="Training: numbers of devices; default: those of the network."),
    click.option(
        "--scaling", type=click.Choice(["strong", "weak"]),
        help="Training: split a batch over the devices (strong, default), or give each device one (weak).",
    ),
    click.option(
        "--rate", metavar="RATE",
        help="Training: samples per second measured on one device, `250`, or by local batch, `16:210,64:250`.",
    ),
    click.option(
        "--efficiency", type=options.Share(),
        help="Training: share of the peak that one device reaches; default: 50 %, from 25 to 75 %.",
    ),
    click.option("--peak", type=Positive(), help="Training: operations per second of a device whose file states none."),
    click.option(
        "--algorithm", "-a", metavar="NAME",
        help="Training: allreduce algorithm (default ring), `best`, `nccl-1.3.4` or `nccl-2.3.5`.",
    ),
    click.option("--path", metavar="NAME", help="Training: path of the machine for allreduces; default: its first."),
    click.option(
        "--bucket", type=options.Size(), metavar="SIZE",
        help="Training: send gradients in buckets of at least SIZE during the backward pass; default: whole, after it.",
    ),
    click.option("--no-overlap", is_flag=True, help="Training: send buckets only after the backward pass."),
    click.option(
        "--input", type=click.Choice(["prefetched", "serial", "none"]),
        help="Training: copy input during the step (prefetched, default), before it (serial), or not at all.",
    ),
    click.option("--imbalance", type=options.Share(), help="Training: how much longer the last device computes."),
    click.option(
        "--skew", type=options.Duration(with_unit=True), help="Training: how much later the last device starts.",
    ),
)  # fmt: skip


def training_options(function: Callable) -> Callable:
    """The options that only training takes."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def answer(found: Program, machines: list[_native.Machine], asked: dict, as_json: bool) -> int:
    """Print the steps; the status says whether some fit on every machine."""
    from linkwright.predict.training import training

    made = training(found.document, found.head, machines, _asked(asked))
    if as_json:
        print_json(made.as_dict())
    else:
        _print(made)
    return 0 if made.fits else 1


def _asked(asked: dict) -> object:
    from linkwright.predict.training import Wanted
    from linkwright.predict.training.step import Choices

    if asked["no_overlap"] and asked["bucket"] is None:
        raise UsageError("--no-overlap is about buckets; add --bucket SIZE, or leave out --no-overlap")
    if asked["bucket"] == 0:
        raise UsageError("--bucket 0: an empty bucket never fills; give a size such as `1M`, or leave out --bucket")
    if asked["efficiency"] is not None and not 0 < asked["efficiency"] <= 1:
        raise UsageError(f"--efficiency {asked['efficiency']:.0%}: give more than 0 and at most 100 %")
    names = ("scaling", "algorithm", "path", "input", "imbalance")
    given = {name: asked[name] for name in names if asked[name] is not None}
    if asked["algorithm"] is not None:
        given["algorithm"] = options.own_names("allreduce", asked["algorithm"])
    skew_ns = (asked["skew"] or 0.0) * 1e9
    choices = Choices(**given, bucket_bytes=asked["bucket"], overlap=not asked["no_overlap"], skew_ns=skew_ns)
    wanted = ("depth", "batch", "gpus", "rate", "peak", "efficiency")
    return Wanted(*(asked[name] for name in wanted), choices)


def _print(made: Training) -> None:
    load = made.workload
    click.echo(
        f"{load.name}: {load.parameters:,} parameters, {load.activations:,} activations per sample, gradients of "
        f"{load.gradient_bytes:,} B"
    )
    for machine, basis in made.basis.items():
        click.echo(f"compute on {machine}: {basis}")
    if not made.calibrated:
        click.echo("uncalibrated: times are only as good as these assumptions; low to high is what they allow")
    for note in made.notes:
        click.echo(f"note: {note}")
    for machine, steps in made.steps.items():
        click.echo(f"\n{machine}")
        _print_steps(steps, load, made.calibrated)
    for second in dict.fromkeys(lead.second for lead in made.leads):
        own = [lead for lead in made.leads if lead.second == second]
        click.echo(f"\nlead of {own[0].first} over {second}")
        _print_leads(own, made.calibrated)


_STEP_HEADER = (
    "batch", "GPUs", "each", "intensity/GPU", "step", "low to high", "steps/s",
    "compute", "messages", "mostly", "late", "input",
)  # fmt: skip


def _print_steps(steps: list[Step], load: Workload, calibrated: bool) -> None:
    print_table(_STEP_HEADER, [_step_row(step, load, calibrated) for step in steps], left=(9,))
    if all(step.fits is False for step in steps):
        click.echo("fits on none of these: split over more devices, or take a smaller batch")
    choices = dict.fromkeys(step.choice for step in steps if step.choice)
    if choices:
        click.echo("gradients by " + ", ".join(choices))


def _step_row(step: Step, load: Workload, calibrated: bool) -> list[str]:
    from linkwright.predict.training.lead import COMMUNICATION

    head = [str(step.batch), str(step.gpus), str(step.images), _short(load.intensity(step.batch) / step.gpus)]
    if not step.causes_ns:
        return [*head, "too big", f"{_bytes(step.needed_bytes)} of {_bytes(step.capacity_bytes)}", *["-"] * 6]
    exposed = {cause: step.share(cause) for cause in COMMUNICATION}
    mostly = max(exposed, key=exposed.get) if any(exposed.values()) else "-"
    ends = "-" if calibrated else f"{format_time(step.low_ns)} to {format_time(step.high_ns)}"
    shares = [step.share("compute"), sum(exposed.values()), step.share("late rank"), step.share("input")]
    compute, messages, late, staged = (f"{share:.1%}" for share in shares)
    rate = 1e9 / step.time_ns
    times = [format_time(step.time_ns), ends, _short(rate)]
    return [*head, *times, compute, messages, mostly, late, staged]


def _print_leads(leads: list[Lead], calibrated: bool) -> None:
    from linkwright.predict.training.lead import crossovers

    late = list(next((lead.late for lead in leads if lead.late), {}))
    header = ["batch", "GPUs", "lead", "low to high", "f", "a", "f x a", *(f"late: {who}" for who in late)]
    rows = []
    for lead in leads:
        if lead.lead is None:
            rows.append([str(lead.batch), str(lead.gpus), *["-"] * (len(header) - 2)])
            continue
        ends = "-" if calibrated else f"{lead.low:+.1%} to {lead.high:+.1%}"
        told = [f"{lead.communication:.1%}", f"{lead.allreduce:+.1%}", f"{lead.simple:+.1%}"]
        cells = [f"{lead.late[who]:+.1%}" if lead.late else "-" for who in late]
        rows.append([str(lead.batch), str(lead.gpus), f"{lead.lead:+.1%}", ends, *told, *cells])
    print_table(header, rows, left=())
    for line in crossovers(leads):
        click.echo(line)


def _bytes(size: int) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def _short(value: float) -> str:
    """Four significant digits, and those before the point in full."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
