"""The page of a search: what was found at each size, why it wins, and both schedules in step."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from linkwright.advise.synthesis import Lasting, Outcome
from linkwright.ask.answer import How
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import PS_PER_S
from linkwright.show.picture import subjects
from linkwright.show.picture.scene import Scene
from linkwright.show.report import quantity
from linkwright.show.report.model import Cell, Column, Item, Moving, Report, Section, Table, Text
from linkwright.show.report.spent import Spent, compared


def page(outcomes: Sequence[Outcome]) -> Report:
    """The page of searches for one collective on one machine."""
    question, target = outcomes[0].task.question, outcomes[0].task.target
    return Report(
        f"{question.collective} found for {target.machine_name}",
        "Modelled, not measured: exact for the machine as described. Every schedule is proved.",
        [("Machine", target.machine_name), ("Ranks", f"{question.ranks:,}"), ("Seed", f"{outcomes[0].task.seed}")],
        sections=[
            Section("In short", [Text([_conclusion(outcomes)]), *_moving(outcomes)]),
            Section("What was found", [_found(outcomes), *_passed_over(outcomes)]),
            Section("Why it wins", [_why(outcome) for outcome in outcomes]),
        ],
    )


def _conclusion(outcomes: Sequence[Outcome]) -> str:
    best = max(outcomes, key=_gain)
    size, time = best.task.size, _duration(best.best["time_ps"])
    if _gain(best) < 1.005:
        return f"The search found nothing faster than the best known schedule; at {size} that takes {time}."
    known = _duration(best.known["time_ps"]) if best.known else "nothing"
    told = f"At {size}, {best.best['recipe']} takes {time} where the best known schedule takes {known}"
    return f"{told}: {_gain(best):.2f} times as fast."


def _gain(outcome: Outcome) -> float:
    return outcome.gain or 1.0


def _moving(outcomes: Sequence[Outcome]) -> list[Item]:
    """The largest gain, over time."""
    best = max(outcomes, key=_gain)
    if best.task.question.ranks > subjects.MOST_RANKS:
        return []
    shown = {"best known": best.known} if best.known and _gain(best) > 1 else {}
    scenes = [_scene(best, one, words) for words, one in {**shown, "found": best.best}.items()]
    drawn = [scene for scene in scenes if scene is not None]
    return [Moving(drawn)] if drawn else []


def _scene(outcome: Outcome, one: Mapping[str, Any], words: str) -> Scene | None:
    task = outcome.task
    how = How(path=one["path"] or task.question.path, issue=one["issue"], serial_starts=bool(task.serial_starts))
    title = f"{words}: {one['recipe']}, {task.size}, {_duration(one['time_ps'])}"
    with contextlib.suppress(LinkwrightError):  # such as a schedule with too many operations
        return subjects.of_built(task.target.machine, one["schedule"], how, one["recipe"], title)
    return None


def _found(outcomes: Sequence[Outcome]) -> Table:
    columns = [
        Column("Size", "B", numeric=True), Column("Best known", "s", numeric=True), Column("Found", "s", numeric=True),
        Column("Gain", numeric=True),
        Column("Lasts", help="Share of drawn machines that leave the gain, and the gain with serial starts."),
        Column("Bound", "s", numeric=True, help="No schedule beats it."),
        Column("Found / bound", numeric=True), Column("Recipe"), Column("Issue policy"),
    ]  # fmt: skip
    return Table("By size", columns, [_row(outcome) for outcome in outcomes])


def _passed_over(outcomes: Sequence[Outcome]) -> list[Item]:
    """Faster schedules that were rejected, and why."""
    told = [_passed(outcome, outcome.fastest) for outcome in outcomes if outcome.fastest]
    return [Text([line]) for line in told]


def _passed(outcome: Outcome, one: Mapping[str, Any]) -> str:
    lasting = Lasting.of(one)
    why = "would be lost with serial starts" if lasting and lasting.lasts else "does not last"
    gain = outcome.known["time_ps"] / one["time_ps"] if outcome.known else 1.0
    how = f"{_duration(one['time_ps'])}, {gain:.2f} times as fast as the best known" + (
        f" ({lasting.long})" if lasting else ""
    )
    size, what = outcome.task.size, f"{one['method']}, {one['recipe']} ({one['issue']})"
    return f"At {size}, a faster schedule was rejected, because its gain {why}: {how}. It is {what}."


def _row(outcome: Outcome) -> list[Cell | str]:
    found = outcome.best["time_ps"]
    bound = outcome.bound.time.ps if outcome.bound else None
    known = outcome.known["time_ps"] if outcome.known else None
    over = found / bound if bound else None
    return [
        Cell(outcome.task.size, outcome.task.question.size_bytes),
        _time(known, outcome.known["recipe"] if outcome.known else ""),
        _time(found),
        Cell(f"{outcome.gain:.2f}", outcome.gain) if outcome.gain else "",
        Cell(outcome.lasting.short, outcome.lasting.share, outcome.lasting.long) if outcome.lasting else "",
        _time(bound, outcome.bound.name if outcome.bound else ""),
        Cell(f"{over:.2f}", over) if over else "",
        Cell(outcome.best["recipe"], tone="strong"),
        str(outcome.best["issue"]),
    ]


def _why(outcome: Outcome) -> Table:
    """Where the time goes, before and after."""
    size = outcome.task.size
    after: Any = outcome.task.binds(outcome.best)
    before: Any = outcome.task.binds(outcome.known) if outcome.known else {"critical_path": {}, "busiest_link": None}
    known = Spent("Best known", (outcome.known["time_ps"] if outcome.known else 0) / PS_PER_S, before["critical_path"])
    found = Spent("Found", outcome.best["time_ps"] / PS_PER_S, after["critical_path"])
    return compared(f"At {size}", known, found, _busiest(before["busiest_link"], after["busiest_link"]))


def _busiest(*links: Any) -> str:
    told = [
        f"{words}: {link['link']}, {link['busy_share']:.0%} of the time"
        for words, link in zip(("Best known", "Found"), links, strict=True)
        if link
    ]
    return f"The busiest link. {'; '.join(told)}." if told else ""


def _time(time_ps: float | None, note: str = "") -> Cell | str:
    return "" if time_ps is None else Cell(_duration(time_ps), time_ps, note)


def _duration(time_ps: float) -> str:
    return quantity.text(time_ps / PS_PER_S, "s")
