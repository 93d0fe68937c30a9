"""`linkwright plan WHAT`: which way to take on a machine, and what it costs."""

from __future__ import annotations

import math
from pathlib import Path

import click

from linkwright.cli import options
from linkwright.cli.output import print_json, print_table
from linkwright.errors import UsageError


class Bytes(click.ParamType):
    """A size of at least one byte: `512`, `512B`, `4K`."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        from linkwright.units import parse_size

        text = str(value)
        size = parse_size(text[:-1] if text.endswith("B") and text[:-1].isdigit() else text)
        if size == 0:
            flag = param.opts[0] if param else "size"
            raise UsageError(f"{flag} {text}: a round trip has at least one byte each way; write 1 or more")
        return size


@click.group(name="plan")
def command() -> None:
    """Say which way to take on a machine, and what it costs."""


@command.command(name="io")
@click.option("--in", "in_bytes", type=Bytes(), required=True, help="Bytes of the request; K, M are 1024-based.")
@click.option("--out", "out_bytes", type=Bytes(), required=True, help="Bytes of the reply.")
@click.option(
    "--on", "machine", metavar="MACHINE", shell_complete=options.completed("machines"),
    help="A described machine, or its file; default: the one that describes round trips.",
)  # fmt: skip
@click.option("--run", "run_name", metavar="RUN", help="A run with measured round trips: its id, or `latest`.")
@click.option("--json", "as_json", is_flag=True, help="The transports as JSON.")
@options.runs
def io(
    in_bytes: int, out_bytes: int, machine: str | None, run_name: str | None, as_json: bool, root_folder: Path
) -> None:
    """Which transport for one request and its reply.

    From the model of a described machine, or with --run from what was measured here, such as by
    `linkwright probe round_trip`. Times are means; p99 is beside them.
    """
    from linkwright.plans import io as plan

    if machine and run_name:
        raise UsageError("--on and --run exclude each other; give a described machine or a run")
    if run_name:
        from linkwright.store import run as runs

        found = runs.find(root_folder, run_name)
        source = f"run {found.id}, measured"
        choices = plan.from_rows(found.results().to_pylist(), in_bytes, out_bytes, found.id)
    else:
        described = _described(machine)
        source = f"machine {described.name}, modelled"
        choices = plan.on_model(described, in_bytes, out_bytes)
    if as_json:
        print_json(
            {"in_bytes": in_bytes, "out_bytes": out_bytes, "source": source, "transports": [_plain(c) for c in choices]}
        )
        return
    _print(source, in_bytes, out_bytes, choices)


def _described(name: str | None):
    """The machine of that name or file; without a name the only shipped one that describes round trips."""
    from linkwright import registry
    from linkwright.machines import load

    if name:
        return load(name)
    texts = {key: registry.machine_path(key).read_text(encoding="utf-8") for key in registry.keys("machines")}
    able = [key for key, text in texts.items() if "[probe.round_trip]" in text]
    if len(able) != 1:
        names = ", ".join(able) or "none does"
        raise UsageError(f"which machine? name one that describes round trips with --on ({names})")
    return load(able[0])


def _plain(choice) -> dict:
    p99 = None if math.isnan(choice.p99_ns) else choice.p99_ns
    return {
        "transport": choice.transport,
        "mean_ns": choice.mean_ns,
        "p99_ns": p99,
        "between_measured_sizes": choice.between,
    }


def _print(source: str, in_bytes: int, out_bytes: int, choices: list) -> None:
    from linkwright.units import format_size, format_time

    best = choices[0]
    click.echo(f"{source}: {format_size(in_bytes)} B there, {format_size(out_bytes)} B back")
    lead = f"take {best.transport}: {format_time(best.mean_ns)}"
    if len(choices) > 1:
        following = choices[1]
        lead += f", {following.mean_ns - best.mean_ns:,.0f} ns less than {following.transport}"
    click.echo(lead + "\n")
    rows = [
        [
            choice.transport,
            format_time(choice.mean_ns),
            "-" if math.isnan(choice.p99_ns) else format_time(choice.p99_ns),
            f"{choice.mean_ns / best.mean_ns:.2f}",
            "between measured sizes" if choice.between else "",
        ]
        for choice in choices
    ]
    print_table(["transport", "mean", "p99", "times the best", ""], rows)
