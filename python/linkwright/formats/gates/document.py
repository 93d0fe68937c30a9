"""The JSON document of `expect`; `linkwright describe --schema expect` prints its schema."""

from __future__ import annotations

import json

from .gate import Expected, GateFormat, Judged

FORMAT = 1
# Key of the document -> (JSON type, meaning). `rows` and `library` have their own shapes.
HEAD = {
    "format": ("integer", "version of this format"),
    "machine": ("string", "the machine, with the options that make it"),
    "nodes": ("integer", "copies of the machine"),
    "ranks": ("integer", "ranks that take part"),
    "notes": ("array", "where the tolerances are from, one sentence each"),
    "log": ("string", "the measured log; empty if none was given"),
    "passed": ("boolean", "whether no measured size is below its floor or wrong; null without a log"),
}
# Column of a row -> (JSON type, whether it may be null, meaning).
ROW = {
    "collective": ("string", False, "the collective, or `sendrecv`"),
    "size_bytes": ("integer", False, "the size, as nccl-tests counts it"),
    "time_us": ("number", False, "modelled time of a healthy machine, us"),
    "published_low_us": ("number", False, "time below which one published system in ten is, us"),
    "published_high_us": ("number", False, "time above which one published system in ten is, us"),
    "time_most_us": ("number", False, "longest time of a healthy machine, us"),
    "busbw_gb_per_s": ("number", False, "modelled bus rate, 10^9 B/s"),
    "tolerance": ("number", False, "share by which a healthy machine may be below the modelled rate"),
    "floor_gb_per_s": ("number", False, "smallest bus rate of a healthy machine, 10^9 B/s"),
    "basis": ("string", False, "tables the tolerance is from: system, machine, collective or any, the nearest first"),
    "tables": ("integer", False, "number of published tables that decide the tolerance"),
    "sites": ("integer", False, "number of sites of these tables"),
    "choice": ("string", False, "what the library chooses"),
    "measured_time_us": ("number", True, "time in the log, us"),
    "measured_busbw_gb_per_s": ("number", True, "bus rate in the log, 10^9 B/s"),
    "standing": ("string", True, "passed, below the floor, wrong results, or not in the log; null without a log"),
}
DIGITS = 6


def render(expected: Expected) -> str:
    """The document."""
    judged = expected.judged or [None] * len(expected.expectations)
    values = (
        FORMAT, expected.machine, expected.nodes, expected.ranks, list(expected.notes), expected.log,
        not expected.failed if expected.judged else None,
    )  # fmt: skip
    rows = [_row(expected, at, its) for at, its in enumerate(judged)]
    found = {**dict(zip(HEAD, values, strict=True)), "library": expected.library, "rows": rows}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _row(expected: Expected, at: int, judged: Judged | None) -> dict[str, object]:
    one = expected.expectations[at]
    values = (
        one.collective, one.size_bytes, one.time_us, *(one.time_us * at for at in one.spread), one.most_us, one.busbw,
        one.tolerance, one.floor, str(one.basis), one.tables, one.sites, one.choice, judged and judged.time_us,
        judged and judged.busbw, judged and str(judged.standing),
    )  # fmt: skip
    return {key: _short(value) for key, value in zip(ROW, values, strict=True)}


def _short(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


JSON = GateFormat(
    "json", "a JSON document with a schema",
    "All numbers of the table, with their units in the keys; `linkwright describe --schema expect` prints the schema.",
    "this program", render, judges=True,
)  # fmt: skip
