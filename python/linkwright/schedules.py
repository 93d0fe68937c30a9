"""From an experiment to a schedule, and from a schedule to an executor: the calls into the native half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright import _native
from linkwright.experiment import HOW
from linkwright.stats.quantile import percentiles
from linkwright.store.record import UNCHECKED, UNWARMED, Note, Record, remarks

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkwright.experiment import Experiment

# A compute of traffic takes 1 ns for each operation, the unit of GOAL. What a collective computes, such as the tiles
# that a protocol skips, has the rate of the machine.
OPERATIONS_PER_S = 1e9


@dataclass(frozen=True)
class Simulated:
    """The result of a simulation, in the units of the rows."""

    rank_times_ns: np.ndarray
    time_ns: float
    limit_ns: float | None  # of the problem
    limit_name: str | None
    bound_ns: float | None  # of this schedule
    bound_name: str | None
    counts: dict[str, float]  # metric -> value: hops, byte-hops, load
    critical_share: float | None
    critical_cause: str | None
    moved_bytes: int = 0
    sent_bytes: np.ndarray | None = None  # by participant, of a pattern
    message_ns: np.ndarray | None = None  # latencies of messages, of a pattern


def of(experiment: Experiment, rings: Sequence[Sequence[int]] | None = None) -> _native.Schedule:
    """The schedule of an experiment; a ring algorithm goes round `rings`, by default in the order of ranks."""
    if experiment.own is not None:
        return experiment.own.given()
    if experiment.collective is None:
        return _native.Schedule.pattern(experiment.algorithm, **shape(experiment))
    return _native.Schedule.build(experiment.algorithm_key, **shape(experiment), rings=rings)


def shape(experiment: Experiment) -> dict[str, Any]:
    """What a schedule is asked for, by the keywords of `Schedule.build` or, of a pattern, of `Schedule.pattern`."""
    found: dict[str, Any] = {
        "ranks": experiment.ranks,
        "elements": experiment.elements,
        "element_bytes": experiment.element_bytes,
        "root": experiment.root,
        "grid": experiment.grid,
    }
    if experiment.collective is None:
        found |= {"count": experiment.messages, "both_ways": experiment.both_ways}
    return found


def moved_bytes(experiment: Experiment) -> int:
    """Bytes that all messages of a traffic pattern move, in both directions together if it has both."""
    if experiment.own is not None:
        return int(of(experiment).sent_bytes().sum())
    return _native.pattern_bytes(experiment.algorithm, **shape(experiment))


def run_threads(schedule: _native.Schedule, experiment: Experiment, **options: object) -> Record:
    """One launch on threads."""
    if experiment.placement:
        cpus = _native.cpus()
        options["cpus"] = [cpus[i] for i in experiment.placement]
    found = _native.run_threads(
        schedule,
        {name: getattr(experiment, name) for name in ("dtype", "op", "skew", "issue")} | options,
    )
    # Columns by (sample, rank) become one row for each rank.
    starts, finishes = (found[name].reshape(-1, found["ranks"]).T for name in ("start_ns", "finish_ns"))
    pattern = experiment.collective is None
    return Record(
        values_ns=rounded(found["slowest_ns"]),
        ranks_ns=[[rounded(s), rounded(f - s)] for s, f in zip(starts, finishes, strict=True)],
        first_ns=round(found["first_ns"], 2),
        rank_ns=rounded(np.median(finishes - starts, axis=1)) if pattern and starts.size else (),
        message_ns=rounded(percentiles(found["message_ns"])),
        row_ns=found["row_ns"] and rounded(np.array(found["row_ns"])),
        batch=found["batch"],
        dropped=found["drops"],
        notes=(*_notes(found), *_of_issue(experiment.issue)),
    )


def rounded(values_ns: npt.NDArray[np.float64] | Sequence[float]) -> list[float]:
    """To a hundredth of a nanosecond, far below what any clock resolves."""
    return list(map(float, np.round(np.asarray(values_ns), 2)))


def _of_issue(issue: str | None) -> list[Note]:
    """What threads make of an issue policy that they cannot keep to the letter."""
    if not issue or not issue.startswith("window("):
        return []
    batch = issue.replace("window", "batch")
    return remarks(f"a fence completes all puts under way at once, so {issue} runs as {batch}")


def _notes(found: _native._Launch) -> Iterator[Note]:
    """What a reader must know of these samples."""
    if found["oversubscribed"]:
        sharing = f"{found['ranks']} ranks share {len(set(found['cpus']))} processors"
        yield Note("oversubscribed", f"oversubscribed: {sharing}")
    if found["unpinned"]:
        yield Note("unpinned", found["unpinned"])
    if not found["warmed_up"]:
        yield UNWARMED
    if not found["checked_elements"]:
        yield UNCHECKED


def lowered(schedule: _native.Schedule, machine: _native.Machine, path: str | None) -> _native.Schedule:
    """The schedule as the machine and its path need it; verify this one, because this one runs."""
    return _native.lower(schedule, machine, path)


def simulate(schedule: _native.Schedule, machine: _native.Machine, experiment: Experiment, **more: object) -> Simulated:
    """One simulation of a lowered schedule."""
    return simulated(_native.simulate(schedule, machine, {**options(experiment), **more}))


def link_rows(found: _native._Simulation) -> list[dict[str, object]]:
    """The load of every link during a simulation that was asked for `links`, busiest first."""
    links, makespan_ps = found["links"], max(1, found["makespan_ps"])
    rows = [
        {"link": name, "busy_ns": busy / 1e3, "busy_share": busy / makespan_ps, "bytes": moved, "peak_messages": peak}
        for name, busy, moved, peak in zip(
            links["name"],
            links["busy_ps"].tolist(),
            links["bytes"].tolist(),
            links["peak"].tolist(),
            strict=True,
        )
    ]
    return sorted(rows, key=lambda row: -row["busy_ns"])


def options(experiment: Experiment) -> dict[str, object]:
    """How a schedule runs, by the options of the native `simulate`."""
    return {
        **{name: getattr(experiment, name) for name in HOW},
        **(experiment.own.started if experiment.own else {}),
        "placement": experiment.placement or None,
        "no_arithmetic": not experiment.arithmetic,
        "operations_per_s": None if experiment.collective else OPERATIONS_PER_S,
    }


def simulated(found: _native._Simulation) -> Simulated:
    """The columns of the native half in the units of result rows."""
    rank_times_ns = (found["finish_ps"] - found["start_ps"]) / 1e3
    shares = found["critical"]
    cause = max(shares, key=shares.__getitem__)
    return Simulated(
        rank_times_ns=rank_times_ns,
        time_ns=float(rank_times_ns.max()),
        limit_ns=None if found["limit_ps"] is None else found["limit_ps"] / 1e3,
        limit_name=found["limit_name"],
        bound_ns=None if found["bound_ps"] is None else found["bound_ps"] / 1e3,
        bound_name=found["bound_name"],
        counts={
            "hops_max": float(found["hops_max"]),
            "hops_mean": found["hops_mean"],
            "byte_hops": float(found["byte_hops"]),
            "peak_link_load": float(found["peak_load"]),
        },
        critical_share=shares[cause] if any(shares.values()) else None,
        critical_cause=cause,
        moved_bytes=found["bytes"],
        sent_bytes=found.get("sent_bytes"),
        message_ns=found["message_ps"] / 1e3 if "message_ps" in found else None,
    )
