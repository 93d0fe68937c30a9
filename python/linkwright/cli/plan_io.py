"""`linkwright plan io`: which transport to use between a host and a device, or between two processes."""

from __future__ import annotations

import math
from pathlib import Path

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size, format_time, parse_size
from linkwright.cli import options, values
from linkwright.cli.output import print_json, print_table


def _bytes(text: str) -> int:
    """512 from `512` or `512B`; at least one."""
    size = parse_size(text[:-1] if text.endswith("B") and text[:-1].isdigit() else text)
    if size == 0:
        raise UsageError(f"{text}: a round trip carries at least one byte each way; write 1 or more")
    return size


_BYTES = values.OptionType("SIZE", _bytes)


@click.command(cls=options.Command, name="io")
@click.option("--in", "in_bytes", type=_BYTES, required=True, help="Bytes of the request; K and M are 1024-based.")
@click.option("--out", "out_bytes", type=_BYTES, required=True, help="Bytes of the reply.")
@options.on(
    "machine", help="A described machine, or its file; default: the only shipped machine that describes round trips."
)
@click.option("--run", "run_name", metavar="RUN", help="A run with measured round trips: its id, or `latest`.")
@options.as_json
@options.runs
def command(
    in_bytes: int, out_bytes: int, machine: str | None, run_name: str | None, as_json: bool, root_folder: Path
) -> None:
    """Choose the transport for one request and its reply.

    Compares the transports of a described machine or, with --run, those that a run measured here, for example by
    `linkwright run round_trip`. Times are means, followed by the 99th percentile.
    """
    from linkwright.advise.plans import io

    if machine and run_name:
        raise UsageError("--on and --run exclude each other; give a described machine or a run")
    if run_name:
        from linkwright.store import run as runs

        found = runs.find(root_folder, run_name)
        source = f"run {found.id}, measured"
        choices = io.from_rows(found.results().records(), in_bytes, out_bytes, found.id)
    else:
        described = _described(machine)
        source = f"machine {described.name}, modelled"
        choices = io.on_model(described, in_bytes, out_bytes)
    if as_json:
        transports = [
            {
                "transport": choice.transport,
                "mean_ns": choice.mean_ns,
                "p99_ns": choice.p99_ns,
                "between_measured_sizes": choice.between,
            }
            for choice in choices
        ]
        print_json({"in_bytes": in_bytes, "out_bytes": out_bytes, "source": source, "transports": transports})
    else:
        _print(source, in_bytes, out_bytes, choices)


def _described(name: str | None):
    """The machine of that name or file; without a name the only shipped one that describes round trips."""
    from linkwright.base import registry
    from linkwright.machines import load

    if name:
        return load(name)
    keys = registry.keys("machines")
    able = [key for key in keys if "[probe.round_trip]" in registry.machine_path(key).read_text(encoding="utf-8")]
    if len(able) != 1:
        raise UsageError(f"which machine? name one that describes round trips with --on ({', '.join(able) or 'none'})")
    return load(able[0])


def _print(source: str, in_bytes: int, out_bytes: int, choices: list) -> None:
    best = choices[0]
    click.echo(f"{source}: {format_size(in_bytes)} B there, {format_size(out_bytes)} B back")
    advice = f"take {best.transport}: {format_time(best.mean_ns)}"
    for following in choices[1:2]:
        advice += f", {following.mean_ns - best.mean_ns:,.0f} ns less than {following.transport}"
    click.echo(advice + "\n")
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
    print_table(["transport", "mean", "p99", "relative to best", ""], rows)
