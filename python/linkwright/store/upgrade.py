"""Results and samples of earlier formats, read as today's.

1 -> 2    columns that stood in the experiment's key only (`part`, `root`, `grid`, `skew`, `messages`, ...); the
          canary was called a probe; codes and flags, which existed only in words, are unknown
2 -> 3    `unconverged` was a status and is a grade; what ran out of time or was disturbed was `waived`; the bound of a
          schedule was called its limit, and so was the best that a measured machine had shown
3 -> 4    schedules of the user's, which rows name by `schedule`
"""

from __future__ import annotations

import re
from collections.abc import Callable

from linkwright.base.rows import Rows
from linkwright.base.stats import grade as grades

from . import schema

_RENAMED = {
    "probe_before_ns": "canary_before_ns",
    "probe_after_ns": "canary_after_ns",
}
# Code of a row without a value -> its status.
_WAIVED = {"out-of-time": "out-of-time", "all-disturbed": "disturbed"}
_METRICS = {"probe_before": "canary_before", "probe_after": "canary_after"}


def samples(rows: Rows) -> Rows:
    """The samples of a run of any format."""
    return rows.renamed(_RENAMED)


def results(rows: Rows) -> Rows:
    """The results of a run of any format, with the columns of today."""
    if "schedule" in rows:
        return rows
    found = rows.records()
    if "part" not in rows:
        found = [_from_1(row) for row in found]
    if "grade" not in rows:
        found = [_from_2(row) for row in found]
    return Rows.from_records(found)


def _from_2(row: dict[str, object]) -> dict[str, object]:
    disturbed = row["code"] == "disturbed"
    status = "ok" if row["status"] == "unconverged" else _WAIVED.get(row["code"], row["status"])
    bound, name = row["limit"], str(row["limit_name"] or "")
    if name.startswith("measured_"):
        found = {"best_seen": bound, "best_seen_name": name.removeprefix("measured_")}
    elif name == "gpu_peak":
        found = {"limit": bound, "limit_name": name}
    else:
        found = {"bound": bound, "bound_name": row["limit_name"]}
    if status == "ok" and row["n"] is not None and row["value"] is not None:
        found["precision"] = grades.precision(row["value"], row["ci_low"], row["ci_high"])
        found["grade"] = grades.grade(found["precision"])
    return {
        **dict.fromkeys(schema.RESULTS),
        **row,
        "status": status,
        "code": None if status == "ok" else row["code"],
        "flags": ",".join(filter(None, ["disturbed" if disturbed else "", row["flags"]])) or None,
        "limit": None,
        "limit_name": None,
        **found,
    }


def _from_1(row: dict[str, object]) -> dict[str, object]:
    part, *words = str(row["experiment"]).split("/")
    schedule = words[:1] != ["probe"]
    found = {
        "part": part,
        "metric": _METRICS.get(str(row["metric"]), row["metric"]),
        "flags": "no-arithmetic" if schedule and "no-arithmetic" in words else None,
        **{name: read(words) for name, read in _READERS.items() if schedule},
    }
    if row.get("collective"):
        found |= {"messages": None, "both_ways": None}
    return {**dict.fromkeys(schema.RESULTS), **row, **found}


def _matched(pattern: str, read: Callable[[str], object], default: object = None) -> Callable[[list[str]], object]:
    def of(words: list[str]) -> object:
        found = next(filter(None, (re.fullmatch(pattern, word) for word in words)), None)
        return read(found[1]) if found else default

    return of


# Column -> its value from the words of a key behind the part.
_READERS: dict[str, Callable[[list[str]], object]] = {
    "root": _matched(r"root(\d+)", int, 0),
    "grid": _matched(r"(\d+x\d+)", str),
    "skew": _matched(r"skew=(.+)", str),
    "endpoints": _matched(r"(\d+(?:->\d+)+)", str),
    "messages": _matched(r"x(\d+)", int, 1),
    "both_ways": _matched(r"(both-ways)", bool, False),
}
