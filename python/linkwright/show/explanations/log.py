"""The page of a log: the verdict, its curve next to that of the healthy machine, and the causes that fit its numbers.

Curves of a log are measured, all others are simulated. The picture plays the healthy machine next to the nearest
hypothesis, in step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwright.advise.explain.hypotheses import Case
from linkwright.advise.explain.log import (
    Answer,
    apart_in_words,
    binds_in_words,
    bus_rate,
    doubts,
    heading,
    verdict_in_words,
)
from linkwright.base import units
from linkwright.base.units import GIGA
from linkwright.formats.logs import Log
from linkwright.show.picture.scene import Scene
from linkwright.show.report import quantity
from linkwright.show.report.model import Axis, Cell, Column, Curve, Item, Moving, Plot, Report, Section, Table, Text

from .shared import duration, effects, share, time

_CURVES = 3  # hypotheses in the chart
_SUSPECTS = (
    Column("Place", numeric=True),
    Column("Likely", "%", numeric=True, help="among all simulated faults, and one that nobody thought of"),
    Column("Away", "%", numeric=True, help="difference between its curve and yours, where the model knows the times"),
    Column("Hypothesis"),
    Column("Usual cause"),
    Column("Command that checks it"),
    Column("Cure"),
)


def log(name: str, log: Log, answers: Sequence[Answer], scenes: Mapping[int, Sequence[Scene]]) -> Report:
    """The page of the tables of a log; `scenes` are pictures by the place of the answer."""
    several = len(answers) > 1
    sections: list[Section] = []
    for at, answer in enumerate(answers):
        parts = _parts(answer, scenes.get(at, ()))
        sections += [Section(f"{_what(answer)}: {answer.verdict.word}", parts=parts)] if several else parts
    return Report(
        f"{name}: {'; '.join(f'{_what(one)} {one.verdict.word}' for one in answers[:3])}",
        "Yours is measured. The healthy machine and all hypotheses are simulated.",
        _facts(log, answers),
        sections=[*sections, *_read(log)],
    )


def _what(answer: Answer) -> str:
    return f"{answer.table.collective} of {answer.system.ranks} ranks"


def _facts(log: Log, answers: Sequence[Answer]) -> list[tuple[str, str]]:
    first = answers[0]
    nodes = [("Nodes", f"{first.system.nodes}")] if first.system.nodes > 1 else []
    network = [("Network", first.system.fabric)] if first.system.nodes > 1 and first.system.fabric else []
    return [
        ("Tool", log.tool),
        ("Ranks", f"{first.system.ranks:,}"),
        *nodes,
        ("Healthy machine", first.system.machine),
        *network,
        ("Its library", first.system.algorithm),
    ]


def _parts(answer: Answer, scenes: Sequence[Scene]) -> list[Section]:
    return [
        Section("In short", [_verdict(answer), *_charts(answer)]),
        *_suspects(answer),
        *([_motion(answer, scenes)] if scenes else []),
        Section("Every size", [_points(answer)]),
        *_faster(answer),
        *effects(answer.binds, "W" + binds_in_words(answer)[1:]),
    ]


def _verdict(answer: Answer) -> Text:
    first = [answer.wrong] if answer.wrong else []
    return Text([*first, *verdict_in_words(answer), *doubts(answer), f"How the machine was found: {answer.why}."])


def _motion(answer: Answer, scenes: Sequence[Scene]) -> Section:
    size = units.format_size(answer.worst_size)
    if len(scenes) == 1:
        return Section("In motion", [Moving(scenes)], f"{size} on the healthy machine.")
    told = f"{size}: of the sizes that decide the verdict, the one where yours is farthest from the healthy machine."
    return Section("In motion", [Moving(scenes, "The healthy machine and the nearest hypothesis, in step")], told)


def _charts(answer: Answer) -> list[Plot]:
    """All sizes of the log, the healthy machine and the nearest hypotheses: rates, and rates that start-ups hide."""
    its = answer.measured
    curves = [
        Curve("yours", list(its), [_rate(answer, size, its[size]) for size in its]),
        _model("healthy machine", answer, {point.size: point.healthy for point in answer.points}),
        *(
            _model(f"{place}. {one.cases[0].what}", answer, one.times)
            for place, one in enumerate(answer.suspects[:_CURVES], 1)
        ),
    ]
    size, told = Axis("size", "B", "log2"), "Points are yours; lines are simulated."
    return [
        Plot("Bus rate over size", size, Axis("bus rate", "B/s", "linear"), curves, told),
        Plot("The same, logarithmic", size, Axis("bus rate", "B/s", "log10"), curves, told),
    ]


def _model(name: str, answer: Answer, times: Mapping[int, float]) -> Curve:
    sizes = sorted(times)
    return Curve(name, sizes, [_rate(answer, size, times[size]) for size in sizes], kind="model")


def _rate(answer: Answer, size: int, time_us: float) -> float:
    return GIGA * bus_rate(answer.system, size, time_us)


def _suspects(answer: Answer) -> list[Section]:
    if not answer.suspects:
        return []
    body = [
        [
            Cell(f"{place}", place, tone="strong"),
            Cell("stated" if suspect.probability == 1 else f"{suspect.probability:.0%}", suspect.probability),
            Cell(apart_in_words(suspect.distance), suspect.distance),
            Cell(case.what, tone="strong", detail=_detail(case, at)),
            case.cause, Cell(case.check, tone="code"), case.cure,
        ]
        for place, suspect in enumerate(answer.suspects, 1)
        for at, case in enumerate(suspect.cases)
    ]  # fmt: skip
    away = apart_in_words(answer.distance)
    why = f"{heading(answer).capitalize()}."
    read = f"{why} Each is simulated; the strength of a fault may be off. The healthy machine is {away} away."
    return [Section("What would give these numbers", [Table("Hypotheses, the likeliest first", _SUSPECTS, body, read)])]


def _detail(case: Case, at: int) -> str:
    return (
        f"stated by the log: {case.stated}"
        if case.stated
        else "this log cannot tell it from the one above"
        if at
        else ""
    )


def _points(answer: Answer) -> Table:
    columns = [
        Column("Size", "B", numeric=True),
        Column("Yours", "s", numeric=True),
        Column("Healthy", "s", numeric=True),
        Column("Your bus rate", "B/s", numeric=True),
        Column("Healthy bus rate", "B/s", numeric=True),
        Column("Yours of healthy", "%", numeric=True),
    ]
    body = [
        [
            Cell(quantity.size(one.size), one.size), time(one.time), time(one.healthy),
            Cell(quantity.text(GIGA * one.busbw, "B/s"), one.busbw),
            Cell(quantity.text(GIGA * one.healthy_busbw, "B/s"), one.healthy_busbw),
            share(one.healthy / one.time),
        ]
        for one in answer.points
    ]  # fmt: skip
    return Table("Yours next to the healthy machine", columns, body)


def _faster(answer: Answer) -> list[Section]:
    found, healthy = answer.faster, answer.points[-1].healthy
    if found is None:
        return []
    less = 1 - found.time_us / healthy
    told = f"A search on the healthy machine found {duration(found.time_us)}, {less:.0%} less: {found.recipe}."
    words = [told, f"Write it: {found.write}", f"Enable it {found.switch_on}"]
    return [Section("What would be faster", [Text(words if less > 0 else ["A search found nothing faster."])])]


def _read(log: Log) -> list[Section]:
    """What was passed over."""
    if not log.skipped and not log.named:
        return []
    items: list[Item] = [Text([f"{units.counted(log.skipped, 'line')} skipped, which belong to no table."])]
    if log.named:
        columns = [Column("Line", numeric=True), Column("Because")]
        body = [[Cell(f"{line}", line), text] for line, text in log.named]
        items.append(Table("Lines and tables that were skipped", columns, body))
    return [Section("What was not read", items)]
