"""From an experiment to a schedule, and from a schedule to an executor: the calls into the native half."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from linkwright import _native

if TYPE_CHECKING:
    from linkwright.suite.experiment import Experiment


def of(experiment: Experiment) -> _native.Schedule:
    """The schedule of an experiment."""
    if experiment.collective is None:
        return _native.Schedule.pattern(
            experiment.algorithm,
            experiment.ranks,
            experiment.elements,
            element_bytes=experiment.element_bytes,
            root=experiment.root,
            grid=experiment.grid,
            count=experiment.messages,
            both_ways=experiment.both_ways,
        )
    return _native.Schedule.build(
        experiment.algorithm_key,
        experiment.ranks,
        experiment.elements,
        element_bytes=experiment.element_bytes,
        root=experiment.root,
        grid=experiment.grid,
    )


def run_threads(schedule: _native.Schedule, experiment: Experiment, **options: object) -> dict[str, object]:
    """One launch on threads, as plain values for the journal."""
    if experiment.placement:
        cpus = _native.cpus()
        options["cpus"] = [cpus[i] for i in experiment.placement]
    found = _native.run_threads(
        schedule,
        {"dtype": experiment.dtype, "op": experiment.op, "skew": experiment.skew, **options},
    )
    # Columns by (sample, rank) become one row for each rank.
    starts, finishes = (found[name].reshape(-1, found["ranks"]).T for name in ("start_ns", "finish_ns"))
    return {
        "values_ns": _rounded(found["slowest_ns"]),
        "ranks_ns": [[_rounded(s), _rounded(f - s)] for s, f in zip(starts, finishes, strict=True)],
        "first_ns": round(found["first_ns"], 2),
        "batch": found["batch"],
        "dropped": found["drops"],
        "notes": list(_notes(found)),
    }


def _rounded(values_ns: np.ndarray) -> list[float]:
    """To a hundredth of a nanosecond, far below what any clock resolves."""
    return np.round(values_ns, 2).tolist()


def _notes(found: dict) -> Iterator[str]:
    """What a reader must know of these samples."""
    if found["oversubscribed"]:
        yield f"oversubscribed: {found['ranks']} ranks share {len(set(found['cpus']))} processors"
    if found["unpinned"]:
        yield found["unpinned"]
    if not found["warmed_up"]:
        yield "warm-up ended before its batches agreed"
    if not found["checked_elements"]:
        yield "data not checked"
