"""Turn experiments into schedules, and run schedules: the calls into the native half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright import _native
from linkwright._native import How
from linkwright.base.stats.quantile import percentiles
from linkwright.store.record import UNCHECKED, UNWARMED, Note, Record, remarks

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkwright.ask.experiment import Experiment
    from linkwright.base.native_types import LaunchColumns


# A compute in traffic takes 1 ns for each operation, the unit of GOAL. Computes of a collective, such as the tiles that
# a protocol skips, run at the rate of the machine.
OPERATIONS_PER_S = 1e9


def of(experiment: Experiment, rings: Sequence[Sequence[int]] | None = None) -> _native.Schedule:
    """Return the schedule of an experiment; a ring algorithm follows `rings`, by default in rank order."""
    if experiment.own is not None:
        return experiment.own.given()
    if experiment.collective is None:
        return _native.Schedule.pattern(experiment.algorithm, **shape(experiment))
    return _native.Schedule.build(experiment.algorithm_key, **shape(experiment), rings=rings)


def shape(experiment: Experiment) -> dict[str, Any]:
    """Return the keywords for `Schedule.build` or, for a pattern, for `Schedule.pattern`."""
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
    """Return the bytes that all messages of a traffic pattern move, both directions together."""
    if experiment.own is not None:
        return int(of(experiment).sent_bytes().sum())
    return _native.pattern_bytes(experiment.algorithm, **shape(experiment))


def run_threads(schedule: _native.Schedule, experiment: Experiment, **options: object) -> Record:
    """Run one launch on threads."""
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
    """Round to a hundredth of a nanosecond, far below the resolution of any clock."""
    return list(map(float, np.round(np.asarray(values_ns), 2)))


def _of_issue(issue: str | None) -> list[Note]:
    """Note the issue policy that threads use in place of one that they cannot follow exactly."""
    if not issue or not issue.startswith("window("):
        return []
    batch = issue.replace("window", "batch")
    return remarks(f"a fence completes all puts under way at once, so {issue} runs as {batch}")


def _notes(found: LaunchColumns) -> Iterator[Note]:
    """Yield the caveats of these samples."""
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
    """Lower a schedule for a machine and its path, to run it more than once or to look at it first."""
    return _native.lower(schedule, machine, path)


def how(experiment: Experiment, **more: Any) -> How:
    """Return how the schedule of an experiment runs; `more` are further fields of `How`."""
    own = experiment.own
    return How(
        issue=experiment.issue, path=experiment.path, skew=experiment.skew, placement=experiment.placement or None,
        arithmetic=experiment.arithmetic, operations_per_s=None if experiment.collective else OPERATIONS_PER_S,
        launch_ps=own.launch_ps if own else 0, channels=own.channels if own else None, **more,
    )  # fmt: skip
