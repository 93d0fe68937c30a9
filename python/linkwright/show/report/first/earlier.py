"""The run before this one, on the same machine with the same suite, and how a value compares with it.

Runs lie side by side in one folder and are named after their time, so the one before is found by name. It counts only
if it is complete and was made on the same processor with as many processors.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from linkwright import executors
from linkwright.base.errors import StoreError
from linkwright.base.rows import Row, given
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.base.stats.launches import launch_medians
from linkwright.session.compare.verdict import Verdict, measured
from linkwright.store import documents

from .. import quantity
from ..runs import Run, load

_STAMPED = re.compile(r"(\d{8})-(\d{2})(\d{2})\d{2}-(.+?)(?:-\d+)?")
_SAME_HOST = ("host", "processor", "cpus_online", "affinity")
_NONE = np.array([])
_MOST_TRIED = 20  # runs that are looked at, so that a folder of thousands costs nothing


@dataclass(frozen=True)
class Change:
    """A value of this run over that of the earlier one."""

    before: float  # in the unit of the row
    ratio: float
    verdict: Verdict | None  # None: too few launches to tell

    @property
    def worse(self) -> bool:
        """Whether it became slower, beyond the noise."""
        return self.verdict is Verdict.SLOWER

    def __str__(self) -> str:
        judged = "beyond noise" if self.verdict in (Verdict.SLOWER, Verdict.FASTER) else "within noise"
        return f"{quantity.signed_percent(self.ratio - 1)}, {judged if self.verdict else 'few launches'}"


@lru_cache(maxsize=2)
def find(run: Run) -> Run | None:
    """The newest complete run of the same suite on the same machine that began before this one."""
    named = _STAMPED.fullmatch(run.id)
    if run.folder is None or named is None:
        return None
    folder = run.folder.resolve()
    names = [path.name for path in folder.parent.iterdir() if _of_suite(path, named[4]) and path.name < folder.name]
    for name in sorted(names, reverse=True)[:_MOST_TRIED]:
        if _comparable(run, folder.parent / name):
            with suppress(StoreError):  # this page does not depend on a run that cannot be read
                return load(folder.parent / name)
    return None


def _of_suite(path: Path, suite: str) -> bool:
    found = _STAMPED.fullmatch(path.name)
    return found is not None and found[4] == suite


def _comparable(run: Run, folder: Path) -> bool:
    """Whether a run is complete and measured the same host by the same executors, by its small files alone."""
    try:
        plan, environment = (
            documents.read(folder / name, form)
            for name, form in (("run.json", documents.RUN), ("environment.json", documents.ENVIRONMENT))
        )
    except StoreError:
        return False
    asked = set(str(plan.get("request", {}).get("on", "")).split(","))
    measures = {name for name in set(run.rows["executor"]) if not executors.is_modelled(name)}
    same = all(environment.get(key) == run.environment.get(key) for key in _SAME_HOST)
    return plan.get("state") == "done" and same and measures <= asked


def when(run: Run) -> str:
    """When the earlier run began: `2026-11-22 19:32`."""
    return _STAMPED.sub(lambda found: f"{datetime.fromisoformat(found[1]):%Y-%m-%d} {found[2]}:{found[3]}", run.id)


def change(run: Run, row: Row) -> Change | None:
    """How a measured row differs from the same one of the earlier run; None if that has none."""
    before = None if row["modelled"] else find(run)
    if before is None:
        return None
    value = _values(before).get((row["experiment"], row["executor"], row["metric"]))
    return Change(value, float(row["value"]) / value, _verdict(before, run, row["experiment"])) if value else None


def _verdict(before: Run, run: Run, experiment: str) -> Verdict | None:
    first, second = (_launch_medians(each).get(experiment, _NONE) for each in (before, run))
    if min(len(first), len(second)) < MIN_VALUES:
        return None
    found = [comparison.verdict for comparison in measured(first, second)]
    return found[0] if len(set(found)) == 1 else Verdict.UNKNOWN


@lru_cache(maxsize=2)
def _values(run: Run) -> dict[tuple[str, str, str], float]:
    rows = run.rows[given(run.rows["value"])]
    return dict(zip(zip(rows["experiment"], rows["executor"], rows["metric"], strict=True), rows["value"], strict=True))


@lru_cache(maxsize=4)
def _launch_medians(run: Run) -> dict[str, np.ndarray]:
    return launch_medians(run.samples)


def words(run: Run, row: Row) -> tuple[str, str] | None:
    """The earlier run and how this value compares, for a tile."""
    found = change(run, row)
    if found is None:
        return None
    return "earlier run", f"{quantity.text(float(f'{found.before:.4g}'), row['unit'])}: {found}"
