"""What is drawn: a machine, schedules on one, or a run of such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from linkwright import _native, machines
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.ask.exchange import refuse_unstated
from linkwright.ask.question import Scheduled, check_size
from linkwright.base import units
from linkwright.base.errors import UsageError, unknown
from linkwright.base.files import read_text
from linkwright.base.rows import Rows, given, largest
from linkwright.executors import EXECUTORS, sim
from linkwright.libraries import questions
from linkwright.machines.variant import grid_of
from linkwright.session import timeline
from linkwright.store import run as runs

from .scene import Scene, scene

USUAL_SIZE = 1 << 20
MOST_OPERATIONS = 2_000_000
MOST_ENDPOINTS = 1 << 18  # a picture of so many takes some seconds
MOST_RANKS = 256  # in a page's picture; of more ranks, a simulation with all links takes too long for a page


@dataclass(frozen=True)
class Asked:
    """How large machines and schedules are, and how the schedules run; None where the usual will do."""

    ranks: int | None = None
    grid: tuple[int, ...] | None = None
    size: int | None = None
    dtype: str = "f32"
    root: int = 0
    path: str | None = None


def scenes(what: Sequence[str], on: str | None, variant: machines.Variant, asked: Asked, root: Path) -> list[Scene]:
    """The pictures of what a command names: schedules `on` a machine, or one machine or run."""
    count = math.prod(asked.grid) if asked.grid else asked.ranks or 0
    if count > MOST_ENDPOINTS:
        raise UsageError(f"{count:,} endpoints, of which no picture shows one; at most {MOST_ENDPOINTS:,} are drawn")
    if on is not None:
        machine = sized(machines.load(on, variant), asked)
        return [of_schedule(machine, named, asked, variant) for named in what]
    if len(what) > 1:
        raise UsageError(f"{len(what)} pictures: name the machine of the schedules with --on, or draw one thing")
    if asked != Asked(asked.ranks, asked.grid):
        raise UsageError("--size, --dtype, --root and --path apply to schedules; name their machine with --on")
    run, _, experiment = what[0].partition(":")
    if is_run(root, run):
        if variant or asked != Asked():
            raise UsageError(f"{run}: a run keeps its machine and its ranks; omit these options")
        return [of_run(runs.find(root, run), experiment)]
    if what[0].partition("/")[0] in _collectives():
        raise UsageError(f"{what[0]}: a schedule is drawn on a machine; name it with --on")
    machine = machines.load(what[0], variant)
    if asked.ranks and not machine.open_size:
        raise UsageError(f"--ranks: {machine.name} has the endpoints that its file states; omit --ranks")
    return [scene(sized(machine, asked))]


def is_run(root: Path, name: str) -> bool:
    """Whether a name is that of a run: `latest`, an id or a path."""
    return name.startswith("latest") or any((folder / "run.json").is_file() for folder in (root / name, Path(name)))


def _collectives() -> dict[str, str]:
    """Collective -> the first of its algorithms."""
    return {row["key"].partition("/")[0]: row["key"] for row in reversed(_native.algorithms())}


def sized(machine: _native.Machine, asked: Asked) -> _native.Machine:
    """The machine with a size, if its file leaves that open."""
    if not machine.open_size and asked.grid is not None:
        raise UsageError(f"--grid: {machine.name} has the size that its file states; omit --grid")
    return sim.sized(machine, asked.ranks, asked.grid)


def of_schedule(
    machine: _native.Machine, named: str, asked: Asked, variant: machines.Variant = machines.AS_DESCRIBED
) -> Scene:
    """`allreduce/ring`, or a source such as `own.py:bucket`, on a machine."""
    return of_question(machine, question(machine, named, asked, variant), named)


def question(
    machine: _native.Machine, named: str, asked: Asked, variant: machines.Variant = machines.AS_DESCRIBED
) -> Scheduled:
    """`allreduce/ring`, or a source such as `own.py:bucket`, as it runs on a machine that has a size."""
    if asked.size is not None:
        check_size(named.partition("/")[0], asked.size, asked.dtype)
    refuse_unstated(named.partition("/")[0], None)
    if first := _collectives().get(named):
        raise UsageError(f"{named}: is a collective; add one of its algorithms, such as `{first}`")
    places = variant.places(machine, asked.ranks)
    ranks = len(places) if places else asked.ranks
    count = ranks or machine.ranks
    grid = asked.grid if asked.grid and math.prod(asked.grid) == count else grid_of(machine, count)
    how: dict[str, Any] = {"root": asked.root, "grid": grid, "path": asked.path, "placement": places}
    made = questions.named("", named, ranks, asked.size, (machine.ranks, USUAL_SIZE), asked.dtype, **how)
    if made.ranks != count:  # those of a file
        made = replace(made, grid=None, placement=variant.places(machine, made.ranks))
    return questions.planned(machine, None, made)


def of_question(machine: _native.Machine, asked: Scheduled, named: str, title: str = "") -> Scene:
    """A question on a machine that has a size; `named` is what it is called, `title` what stands above it."""
    planned = asked if asked.own else questions.planned(machine, None, asked)
    return of_built(machine, schedules.of(planned), schedules.how(planned), named, title, planned.placement)


def of_built(
    machine: _native.Machine,
    schedule: _native.Schedule,
    how: How,
    named: str,
    title: str = "",
    placement: Sequence[int] | None = None,
) -> Scene:
    """A schedule, and how it runs."""
    if len(schedule) > MOST_OPERATIONS:
        count = f"{len(schedule):,} operations, of which no picture shows one"
        raise UsageError(f"{named}: {count}; at most {MOST_OPERATIONS:,} are drawn: ask for fewer --ranks or --nodes")
    schedule.verify()
    answer = ask(machine, schedule, how.but(links=True, operations=True, bins=timeline.BINS))
    if not answer.time.ps:
        raise UsageError(f"{named}: takes no time on {units.counted(schedule.ranks, 'rank')}; ask for more ranks")
    found = timeline.of(answer)
    size, time = units.format_size(schedule.size_bytes), units.format_us(found.span_us)
    told = f"{named}, {size}, {units.counted(schedule.ranks, 'rank')} of {machine.name}: {time}"
    return scene(machine, found, title=title or told, placement=placement)


def of_run(run: runs.Run, experiment: str | None = None) -> Scene:
    """One experiment that a run simulated; without a name, the fastest schedule of its largest message."""
    rows = run.results()
    modelled = [key for key, executor in EXECUTORS.items() if executor.modelled]
    simulated = np.isin(rows["executor"], modelled)
    timed = rows[(rows["metric"] == "time") & simulated & given(rows["value"]) & given(rows["collective"])]
    if not len(timed):
        raise UsageError(f"{run.id}: holds no simulated collective; draw a run of `linkwright dissect`, or a machine")
    if experiment:
        timed = _named(rows, timed, experiment)
    row = timed[timed["size_bytes"] == largest(timed["size_bytes"])].least("value")
    machine = _described(run, str(row["machine"]), int(row["ranks"]), row["grid"])
    named = f"{row['collective']}/{row['algorithm']}"
    return of_schedule(
        machine, named, Asked(int(row["ranks"]), None, int(row["size_bytes"]), row["dtype"], int(row["root"]), None)
    )


def _named(rows: Rows, timed: Rows, experiment: str) -> Rows:
    found: Rows = timed[timed["experiment"] == experiment]
    if not len(found):
        if (rows["experiment"] == experiment).any():
            raise UsageError(f"{experiment}: was not simulated, or is not a collective, so there is nothing to draw")
        raise unknown("simulated experiment of this run", experiment, set(timed["experiment"]))
    return found


def _described(run: runs.Run, name: str, ranks: int, grid: str | None) -> _native.Machine:
    path = run.folder / "machines" / f"{name}.toml"
    machine = _native.Machine.parse(read_text(path, "a machine file"), path.name)
    sides = tuple(map(int, grid.split("x"))) if grid and machine.open_size else None
    return sized(machine, Asked(ranks, sides))
