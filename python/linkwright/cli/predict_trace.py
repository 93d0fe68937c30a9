"""The forecast of a recorded execution as tables, JSON or a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from linkwright.base.units import counted, format_ps, format_size
from linkwright.cli.output import print_table
from linkwright.cli.predict_supersteps import refuse_training_options
from linkwright.cli.training_table import say

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.advise.predict import Program
    from linkwright.advise.predict.trace.outcome import Outcome, Row
    from linkwright.cli.predict_shown import Shown

# Rows of a table without `--wide`.
MOST_ROWS = 10


def answer(found: Program, machines: list[_native.Machine], asked: dict[str, object], shown: Shown) -> int:
    """Print the forecast."""
    from linkwright.advise.predict import trace

    refuse_training_options(found, asked)
    outcomes = trace.forecasts(found, machines)
    if shown.as_json:
        shown.print_json(outcomes, lead)
    else:
        _print_all(outcomes, shown.wide)
    if shown.report is not None:
        from linkwright.show.report import forecast_trace

        shown.write(forecast_trace.page(outcomes))
    return 0


def lead(first: Outcome, second: Outcome) -> float | None:
    """How much longer the step takes on `second`."""
    from linkwright.advise import predict

    return predict.lead(float(first.step_ps), float(second.step_ps))


def _print_all(outcomes: Sequence[Outcome], wide: bool) -> None:
    from linkwright.advise.predict.trace.outcome import NOT_MODELLED

    for number, found in enumerate(outcomes):
        click.echo("\n" if number else "", nl=False)
        _print(found, wide)
    click.echo()
    for note in outcomes[0].notes:
        say(f"note: {note}")
    for limit in NOT_MODELLED:
        say(f"not modelled: {limit}")
    if outcomes[1:]:
        click.echo("\nside by side")
        print_table(["machine", "step", "computation", "exposed messages", "waiting", "host"], map(_compared, outcomes))
        for other in outcomes[1:]:
            say(_verdict(outcomes[0], other))


def _print(found: Outcome, wide: bool) -> None:
    click.echo(
        f"{found.app} (trace) on {found.machine}, {counted(len(found.ranks), 'rank')}, {counted(found.nodes, 'node')}"
    )
    click.echo(f"step {format_ps(found.step_ps)}\n")
    rows = [
        [_CALLED.get(cause, cause), *(format_ps(time) for time in times), f"{found.share(cause):.1%}"]
        for cause, times in found.causes().items()
    ]
    print_table(["of a rank", "mean", "least", "most", "share"], rows)
    click.echo("\ncritical path")
    print_table(["", "times", "together", "share"], _path(found, wide), left=(0,))
    if found.rows:
        click.echo("\nmessages; share: of the step, averaged over all ranks, hidden or not")
        header = ["kind", "bytes", "ranks", "times", "once", "together", "share", "by"]
        listed = found.rows if wide else found.rows[:MOST_ROWS]
        print_table(header, map(_row, listed), left=(0, 7))
        if len(listed) < len(found.rows):
            click.echo(f"and {counted(len(found.rows) - len(listed), 'row')} more; --wide has all")


# What a cause is called where people read it, if not by its name.
_CALLED = {"communication": "exposed messages", "waiting": "waiting for others"}


def _path(found: Outcome, wide: bool) -> list[list[str]]:
    """The segments in the order of time; of a long path the longest, and the others together."""
    numbered = list(enumerate(found.path))
    if not wide and len(numbered) > MOST_ROWS:
        numbered = sorted(sorted(numbered, key=lambda one: (-one[1].time_ps, one[0]))[: MOST_ROWS - 1])
    rows = [_segment(found, f"{one.what}, {one.detail}", one.count, one.time_ps) for _, one in numbered]
    shown = {number for number, _ in numbered}
    if others := [one for number, one in enumerate(found.path) if number not in shown]:
        times = sum(one.count for one in others)
        rows.append(_segment(found, f"{len(others)} shorter stretches", times, sum(one.time_ps for one in others)))
    return rows


def _segment(found: Outcome, what: str, count: int, time_ps: int) -> list[str]:
    return [what, str(count), format_ps(time_ps), f"{time_ps / found.step_ps:.1%}"]


def _row(row: Row) -> list[str]:
    once, together = format_ps(row.price.time_ps), format_ps(row.total_ps)
    head = [row.kind, format_size(row.size_bytes), str(row.ranks), str(row.count)]
    return [*head, once, together, f"{row.share:.1%}", row.price.algorithm]


def _compared(found: Outcome) -> list[str]:
    shares = (f"{found.share(cause):.1%}" for cause in ("computation", "communication", "waiting", "host"))
    return [found.machine, format_ps(found.step_ps), *shares]


def _verdict(first: Outcome, second: Outcome) -> str:
    from linkwright.advise.predict.training.lead import LEVEL, ratio, times_faster

    found = lead(first, second)
    if found is None:
        return f"{first.machine} takes no time, so there is no ratio"
    if abs(found) < LEVEL:
        return f"{first.machine} and {second.machine} take equally long, within {LEVEL:.1%}"
    faster, slower = (first, second) if found >= 0 else (second, first)
    return f"{faster.machine} is {ratio(times_faster(found))} faster than {slower.machine}"
