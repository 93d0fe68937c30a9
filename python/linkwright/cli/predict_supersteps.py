"""The forecast of supersteps as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import format_time
from linkwright.cli.output import print_table
from linkwright.cli.training_table import say

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.advise.predict import Forecast, Program
    from linkwright.cli.predict_shown import Shown


def answer(found: Program, machines: list[_native.Machine], asked: dict[str, object], shown: Shown) -> int:
    """Print the forecast; the status says whether it fits."""
    from linkwright.advise.predict import Forecast, supersteps

    refuse_training_options(found, asked)
    forecasts = [supersteps.forecast(found.document, found.head, machine) for machine in machines]
    if shown.as_json:
        shown.print_json(forecasts, Forecast.lead)
    else:
        for number, forecast in enumerate(forecasts):
            click.echo("\n" if number else "", nl=False)
            _print(forecast)
        if forecasts[1:]:
            _print_side_by_side(forecasts)
    if shown.report is not None:
        from linkwright.show.report import forecast as pages

        shown.write(pages.supersteps(forecasts))
    return 1 if any(forecast.room.fits is False for forecast in forecasts) else 0


def refuse_training_options(found: Program, asked: dict[str, object]) -> None:
    """Other kinds state everything in their file."""
    given = [name.replace("_", "-") for name, value in asked.items() if value not in (None, False)]
    if given:
        raise UsageError(f"--{given[0]} applies to programs of kind training; {found.head.where} has kind {found.kind}")


def _print(found: Forecast) -> None:
    click.echo(f"{found.app} ({found.kind}) on {found.machine}, {found.endpoints} endpoints")
    say(_room(found))
    click.echo()
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
    click.echo()
    say(f"{format_time(found.time_ns)} in all: {shares}")


def _print_side_by_side(forecasts: list[Forecast]) -> None:
    """Every part and the whole on all machines, and how many times longer each takes than on the first."""
    first, *others = forecasts
    click.echo(f"\nside by side; / {first.machine}: how many times as long as there")
    parts = [forecast.parts for forecast in forecasts]
    rows = []
    # The parts of a program are the same everywhere, unless a machine has no room for it.
    if all(parts):
        rows = [[group[0].name, *(part.time_ns for part in group)] for group in zip(*parts, strict=True)]
    rows.append(["in all", *(forecast.time_ns if forecast.parts else None for forecast in forecasts)])
    header = ["part", first.machine, *(cell for o in others for cell in (o.machine, f"/ {first.machine}"))]
    print_table(header, [_compared(name, times) for name, *times in rows])
    for other in others:
        if (lead := first.lead(other)) is not None:
            say(_verdict(first, other, lead))


def _verdict(first: Forecast, second: Forecast, lead: float) -> str:
    from linkwright.advise.predict.training.lead import ratio, times_faster

    faster, slower = (first, second) if lead >= 0 else (second, first)
    return (
        f"{faster.machine} is {ratio(times_faster(lead))} faster than {slower.machine}, with "
        f"{100 * faster.message_share:.1f} % of the time in messages; {slower.machine} has "
        f"{100 * slower.message_share:.1f} %"
    )


def _compared(name: str, times_ns: list[float | None]) -> list[str]:
    from linkwright.advise.predict import lead

    def told(time_ns: float | None) -> str:
        return "does not fit" if time_ns is None else format_time(time_ns)

    row = [name, told(times_ns[0])]
    for other in times_ns[1:]:
        ahead = lead(times_ns[0], other)
        row += [told(other), "-" if ahead is None else f"{1 + ahead:.2f}"]
    return row


def _room(found: Forecast) -> str:
    room = found.room
    needed = f"{_kib(room.needed_bytes)} at each endpoint (fullest in {room.where})"
    if room.capacity_bytes is None:
        return f"needs {needed}; the machine states no capacity, so this was not checked"
    if room.fits:
        return f"needs {needed} of {_kib(room.capacity_bytes)}"
    return f"does not fit: needs {needed} of {_kib(room.capacity_bytes)}; split it over more endpoints"


def _kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:,.1f} KiB"
