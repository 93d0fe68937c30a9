"""What an answer looks like over time: scenes of `linkwright.show.picture`, none where there is nothing to draw."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwright import _native
from linkwright.advise.explain.faster import Faster
from linkwright.advise.explain.log import Answer
from linkwright.advise.explain.system import System
from linkwright.ask.question import Scheduled
from linkwright.base import units
from linkwright.base.errors import LinkwrightError
from linkwright.libraries import times
from linkwright.show.picture.scene import Scene
from linkwright.store.run import Run

if TYPE_CHECKING:
    from linkwright.advise.explain.schedule import Found


def of_logs(answers: Sequence[Answer]) -> dict[int, list[Scene]]:
    """The place of the worst answer that can be drawn -> the healthy machine, and the nearest hypothesis if any.

    The size is that of `worst_size`.
    """
    order = sorted(range(len(answers)), key=lambda at: answers[at].verdict.share)
    for at in order:
        if scenes := _of_log(answers[at]):
            return {at: scenes}
    return {}


def _of_log(answer: Answer) -> list[Scene]:
    systems = {"healthy": answer.system}
    if answer.suspects:
        nearest = answer.suspects[0].cases[0]
        systems[nearest.what] = nearest.system
    size = answer.worst_size
    scenes = [_of_system(system, size, words) for words, system in systems.items()]
    return [scene for scene in scenes if scene is not None] if scenes[0] else []


def _of_system(system: System, size: int, words: str) -> Scene | None:
    if system.collective == "sendrecv" or system.described.library() is None:
        return None
    with contextlib.suppress(LinkwrightError):  # such as a hypothesis that does not serve this size
        title = f"{words}: {units.format_us(system.time(size).time_us)}"
        return _drawn(system.described, times.question(system.described, system, size), title)
    return None


def of_schedule(found: Found) -> list[Scene]:
    """The schedule, next to the fastest known one if that can be drawn."""
    from linkwright.advise.explain import schedule

    asked, machine = found.question, found.machine
    scenes = [_drawn(machine, asked, f"{found.name}: {units.format_us(found.time_us)}")]
    if found.faster and all(found.faster.time_us <= time_us for _, time_us in found.better):
        scenes.append(_of_found(machine, found.faster))
    elif found.better:
        name, time_us = found.better[0]
        other = schedule.by_algorithm(machine, asked, name.partition("/")[2])
        scenes.append(_drawn(machine, other, f"{name}: {units.format_us(time_us)}"))
    return [scene for scene in scenes if scene is not None] if scenes[0] else []


def _of_found(machine: _native.Machine, found: Faster) -> Scene | None:
    from linkwright.show.picture import subjects

    with contextlib.suppress(LinkwrightError):
        title = f"found by a search: {units.format_us(found.time_us)}"
        return subjects.of_built(machine, found.schedule, found.how, found.recipe, title)
    return None


def of_run(run: Run, experiment: str | None = None) -> list[Scene]:
    """One simulated experiment of a run; without a name, the fastest schedule of its largest message."""
    from linkwright.show.picture import subjects

    with contextlib.suppress(LinkwrightError):  # such as a run that measured
        return [subjects.of_run(run, experiment)]
    return []


def _drawn(machine: _native.Machine, asked: Scheduled, title: str) -> Scene | None:
    from linkwright.show.picture import subjects

    if asked.ranks > subjects.MOST_RANKS:
        return None
    with contextlib.suppress(LinkwrightError):  # such as a schedule with too many operations
        return subjects.of_question(machine, asked, asked.algorithm, title)
    return None
