"""`linkwright describe SOURCE`: what a schedule of the user's is, and whether it is right."""

from __future__ import annotations

from typing import Any

import click

from linkwright.ask import schedules, sources
from linkwright.base.errors import LinkwrightError, UsageError
from linkwright.base.units import counted, format_size, parse_size
from linkwright.cli.output import print_json
from linkwright.libraries.questions import own_question
from linkwright.session import verification

USUAL_RANKS, USUAL_SIZE = 8, "64K"


def show(name: str, ranks: int | None, sizes: str | None, grid: tuple[int, ...] | None, as_json: bool) -> None:
    """Print the facts of the schedule of `name`, and the outcome of its proof."""
    source = sources.find(name)
    if sizes and "," in sizes:
        raise UsageError(f"--sizes {sizes}: a schedule has one size; give one")
    size = sizes or (USUAL_SIZE if source.size_bytes is None else None)
    made = own_question(
        "describe", name, ranks or source.ranks or USUAL_RANKS, size and parse_size(size), "f32", "sum", grid=grid
    )
    facts = _facts(schedules.of(made)) | {"name": source.label, "size_bytes": made.size_bytes}
    if as_json:
        print_json([{"kind": "schedule", **facts}])
        return
    click.echo(f"{source.label} (schedule)")
    what = facts["collective"] if facts["collective"] != "pattern" else "traffic"
    click.echo(f"  {what} over {counted(facts['ranks'], 'rank')}, {format_size(facts['size_bytes'])}")
    for key in ("operations", "messages", "steps", "lanes", "memories"):
        click.echo(f"  {key:<12}{facts[key]}")
    click.echo(f"  {'moves':<12}{format_size(facts['moved_bytes'])} between ranks")
    click.echo(f"  {'proof':<12}{facts['proof']}")


def _facts(schedule: Any) -> dict[str, Any]:
    table = schedule.operations()
    try:
        proof = verification.describe(schedule.verify())
    except LinkwrightError as error:
        proof = f"none: {error}"
    return {
        "collective": schedule.collective,
        "ranks": schedule.ranks,
        "memories": schedule.memories,
        "operations": len(schedule),
        "messages": schedule.messages,
        "steps": len(set(table["step"].tolist())),
        "lanes": len(set(table["lane"].tolist())),
        "moved_bytes": sources.moved_bytes(schedule),
        "proof": proof,
    }
