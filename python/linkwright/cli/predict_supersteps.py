"""The forecast of supersteps as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwright.cli.output import print_json, print_table
from linkwright.errors import UsageError
from linkwright.units import format_time

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.predict import Forecast, Opened


def answer(found: Opened, machines: list[_native.Machine], asked: dict[str, object], as_json: bool) -> int:
    """Print the forecast; the status says whether it fits."""
    from linkwright.predict import supersteps

    given = [name.replace("_", "-") for name, value in asked.items() if value not in (None, False)]
    if given:
        raise UsageError(f"--{given[0]} is for programs of kind training; {found.head.where} has kind {found.kind}")
    if len(machines) > 1:
        raise UsageError(
            f"{found.head.where}: kind {found.kind} is forecast on one machine at a time; give one by --on"
        )
    forecast = supersteps.forecast(found.document, found.head, machines[0])
    if as_json:
        print_json(forecast.as_dict())
    else:
        _print(forecast)
    return 1 if forecast.room.fits is False else 0


def _print(found: Forecast) -> None:
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
