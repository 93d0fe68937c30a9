"""The rows of a run: how near each collective is to its limit, and which algorithm of the run is the fastest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwright.base import units
from linkwright.base.errors import unknown

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Fastest:
    """The fastest algorithm of a run at one size.

    Attributes:
        machine: what was measured or modelled.
        collective: its key.
        ranks: how many.
        size_bytes: of the message.
        algorithm: the fastest.
        time_ns: its time.
        share: of the limit, or of the best seen there; None where neither is known.
        others: (algorithm, how much slower) of the others, the nearest first.
    """

    machine: str
    collective: str
    ranks: int
    size_bytes: int
    algorithm: str
    time_ns: float
    share: float | None
    others: tuple[tuple[str, float], ...]


def fastest(rows: Iterable[Row]) -> list[Fastest]:
    """At the largest size of each collective, for each machine and number of ranks."""
    times = [row for row in rows if row["metric"] == "time" and row["status"] == "ok" and row["collective"]]
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in times:
        groups.setdefault((row["machine"], row["collective"], row["ranks"]), []).append(row)
    return [_fastest(key, its) for key, its in sorted(groups.items())]


def _fastest(key: tuple[str, str, int], rows: list[Row]) -> Fastest:
    size = max(row["size_bytes"] or 0 for row in rows)
    best: dict[str, Row] = {}
    for row in rows:
        if row["size_bytes"] == size and row["value"] < best.get(row["algorithm"], {"value": float("inf")})["value"]:
            best[row["algorithm"]] = row
    first, *others = sorted(best.values(), key=lambda row: (row["value"], row["algorithm"]))
    slower = tuple((row["algorithm"], row["value"] / first["value"]) for row in others)
    return Fastest(*key, size, first["algorithm"], first["value"], share_of(first), slower)


def share_of(row: Row) -> float | None:
    """The limit over the time, or the best that was seen over it."""
    known = row["limit"] or row["best_seen"]
    return known / row["value"] if known and row["value"] else None


@dataclass(frozen=True)
class OneRow:
    """One experiment of a run.

    Attributes:
        experiment: its name.
        rows: its values, one row for each metric.
        share: of its time of the limit, or of the best seen; None where neither is known or there is no time.
        of: what that is a share of, in words.
        faster: (algorithm, time over its time) of the faster ones in the same run; None where it has no time.
    """

    experiment: str
    rows: Sequence[Row]
    share: float | None
    of: str
    faster: Sequence[tuple[str, float]] | None

    @property
    def machine(self) -> str:
        """What it ran on."""
        return str(self.rows[0]["machine"])


def row(rows: Iterable[Row], experiment: str) -> OneRow:
    """One experiment of a run.

    Raises:
        UnknownNameError: the run has no such experiment.
    """
    rows = list(rows)
    its = [row for row in rows if row["experiment"] == experiment]
    if not its:
        raise unknown("experiment of this run", experiment, {row["experiment"] for row in rows})
    time = next((row for row in its if row["metric"] == "time" and row["value"]), None)
    if time is None:
        return OneRow(experiment, its, None, "", None)
    of = f"limit ({time['limit_name']})" if time["limit"] else f"best seen ({time['best_seen_name']})"
    same = ("machine", "collective", "ranks", "size_bytes", "dtype", "metric")
    others = [row for row in rows if row["status"] == "ok" and all(row[name] == time[name] for name in same)]
    faster = sorted((row for row in others if row["value"] < time["value"]), key=lambda row: row["value"])
    shares = [(str(row["algorithm"]), row["value"] / time["value"]) for row in faster[:5]]
    return OneRow(experiment, its, share_of(time), of, shares)


def of_row(found: OneRow) -> Iterator[str]:
    """One experiment: its values with their precision, its limit, and what was faster in the same run."""
    yield f"{found.experiment} on {found.machine}"
    for row in found.rows:
        yield f"  {row['metric']:16} {value(row)}"
        if row["reason"]:
            yield f"  {'':16} {row['reason']}"
    if found.faster is None:
        return
    yield f"  {found.share:.0%} of the {found.of}" if found.share else "  the limit is unknown"
    yield "  faster in this run: " + (
        ", ".join(f"{name} ({part - 1:+.0%})" for name, part in found.faster) or "nothing"
    )


def value(row: Row) -> str:
    """The value with its precision, or why there is none."""
    if row["value"] is None:
        return str(row["status"])
    value = units.format_time(row["value"]) if row["unit"] == "ns" else f"{row['value']:.4g} {row['unit']}"
    return value + (f" +- {row['precision']:.1%}, {row['grade']}" if row["precision"] else "")


def of_run(rows: Iterable[Row]) -> Iterator[str]:
    """All collectives of a run."""
    yield f"{'collective':16} {'ranks':>6} {'size':>7} {'fastest':24} {'time':>9} {'of limit':>8}  next"
    for one in fastest(rows):
        share = f"{one.share:.0%}" if one.share else "-"
        after = f"{one.others[0][0]} x{one.others[0][1]:.2f}" if one.others else ""
        yield (
            f"{one.collective:16} {one.ranks:6} {units.format_size(one.size_bytes):>7} {one.algorithm:24} "
            f"{units.format_time(one.time_ns):>9} {share:>8}  {after}"
        )
