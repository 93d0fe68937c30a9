"""The table that `expect` prints: a line for each size, then where the tolerances are from."""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.base.units import format_size, format_us

from .gate import Expectation, Expected, GateFormat, Judged, rate

HEADER = ("collective", "size", "time", "published", "at most", "busbw (GB/s)", "tolerance", "floor")
MEASURED = ("measured", "")


def render(expected: Expected) -> str:
    """The table, with what was measured if there is a log."""
    rows = [(*HEADER, *(MEASURED if expected.judged else ()))]
    judged = expected.judged or [None] * len(expected.expectations)
    rows += [_row(one, its) for one, its in zip(expected.expectations, judged, strict=True)]
    return "\n".join((f"{expected.title}", "", *_aligned(rows), "", *_verdict(expected), *expected.notes)) + "\n"


def _row(one: Expectation, judged: Judged | None) -> tuple[str, ...]:
    row = (
        one.collective, format_size(one.size_bytes), format_us(one.time_us), _spread(one), format_us(one.most_us),
        rate(one.busbw), f"{one.tolerance:.1%}", rate(one.floor),
    )  # fmt: skip
    if judged is None:
        return row
    return (*row, "" if judged.busbw is None else f"{judged.busbw:.3g}", str(judged.standing))


def _spread(one: Expectation) -> str:
    """Between which times eight published systems in ten are."""
    return " to ".join(format_us(one.time_us * factor) for factor in one.spread)


def _verdict(expected: Expected) -> list[str]:
    if not expected.judged:
        return []
    failed = expected.failed
    words = ", ".join(f"{one.expectation.label} ({one.standing})" for one in failed[:3])
    more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
    return [f"{expected.log}: failed at {words}{more}" if failed else f"{expected.log}: passed", ""]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, len(HEADER) + 1)
    return [
        "  ".join(
            f"{cell:<{width}}" if at in left else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


TEXT = GateFormat(
    "text", "a table for people",
    "For each size the modelled time, the times between which eight published systems in ten are, the bus rate, the "
    "tolerance, and the floor: bus rate less tolerance. With --log "
    "also what was measured; the exit status is 1 if a size is below its floor.",
    "this program", render, judges=True,
)  # fmt: skip
