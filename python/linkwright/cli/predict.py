"""`linkwright predict APP --on MACHINE`: what a program of one's own would take on a described machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.cli import options
from linkwright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from linkwright.predict import Forecast


@click.command(name="predict")
@click.argument("app", type=click.Path(path_type=Path))
@click.option(
    "--on", "machine", required=True, metavar="MACHINE", shell_complete=options.completed("machines"),
    help="A described machine, or a machine file.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(app: Path, machine: str, as_json: bool) -> int:
    """Forecast the program in the file APP on a described machine.

    APP is a TOML file with what every endpoint computes, holds and sends; docs/predict.md explains it.
    Messages are simulated on the machine's fabric. The exit status is 1 where the program does not fit
    into the memory of an endpoint.
    """
    from linkwright import predict
    from linkwright.machines import load

    found = predict.predict(app, load(machine))
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found)
    return 1 if found.room.fits is False else 0


def _print(found: Forecast) -> None:
    from linkwright.units import format_time

    click.echo(f"{found.app} ({found.kind}) on {found.machine}, {found.endpoints} endpoints")
    click.echo(_room(found) + "\n")
    if not found.parts:
        return
    rows = []
    for part in found.parts:
        cause = max(part.causes_ns, key=part.causes_ns.get)
        once = format_time(part.time_ns / part.times)
        share = f"{part.time_ns / found.time_ns:.1%}" if found.time_ns else "-"
        rows.append([part.name, str(part.times), once, format_time(part.time_ns), share, cause, part.choice])
    print_table(["part", "times", "once", "together", "share", "mostly", "by"], rows, left=(0, 5, 6))
    shares = ", ".join(f"{share:.1%} {cause}" for cause, share in found.shares().items())
    click.echo(f"\n{format_time(found.time_ns)} in all: {shares}")


def _room(found: Forecast) -> str:
    room = found.room
    needed = f"{_kib(room.needed_bytes)} at each endpoint (fullest in {room.where})"
    if room.capacity_bytes is None:
        return f"needs {needed}; the machine states no capacity, so nobody checked that"
    if room.fits:
        return f"needs {needed} of {_kib(room.capacity_bytes)}"
    return f"does not fit: needs {needed}, where there are {_kib(room.capacity_bytes)}; split it over more endpoints"


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:,.1f} KiB"
