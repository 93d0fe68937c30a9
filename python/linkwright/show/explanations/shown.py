"""Answers as text, for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from linkwright.advise.explain.faster import Faster
from linkwright.advise.explain.log import Answer, apart_in_words, binds_in_words, doubts, heading, verdict_in_words
from linkwright.advise.explain.sensitivity import Effect
from linkwright.base import units
from linkwright.base.units import GIGA
from linkwright.formats.logs import Log

if TYPE_CHECKING:
    from linkwright.advise.explain.schedule import Found

WIDTH = 80
ADVISED = 3  # hypotheses with what to do; a page has it for all
LEAST = 0.01  # of a time, to be faster


def of_logs(answers: Sequence[Answer], source: str, log: Log) -> Iterator[str]:
    """The answers to the tables of a log, equal ones once."""
    said = Counter(tuple(of_log(answer, source, log.skipped, log.named)) for answer in answers)
    for number, (lines, count) in enumerate(said.items()):
        if number:
            yield ""
        yield from lines
        if count > 1:
            yield from ("", f"{count} tables of the log have this answer.")


def of_log(answer: Answer, source: str, skipped: int, complaints: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The answer to a table of a log."""
    table, system = answer.table, answer.system
    if answer.wrong:
        yield from wrapped(answer.wrong)
    kind = " ".join(filter(None, (table.dtype, table.reduction)))
    inferred = ", inferred from its rates" if table.inferred else ""
    yield from wrapped(
        f"{source}: {table.tool}, {table.collective}{inferred}, {system.ranks} ranks"
        + (f" on {system.nodes} nodes" if system.nodes > 1 else "")
        + (f", {kind}" if kind else "")
    )
    network = f" over {system.fabric}" if system.nodes > 1 else ""
    yield from wrapped(
        f"healthy machine: {', '.join(filter(None, (f'{system.machine}{network}', system.algorithm)))} ({answer.why})"
    )
    yield from complained(skipped, complaints)
    yield ""
    yield f"{'size':>8} {'yours':>10} {'healthy':>10} {'busbw':>10} {'healthy':>10}   yours / healthy"
    for point in answer.points:
        share = point.healthy / point.time
        bar = "#" * min(20, round(20 * share))
        yield (
            f"{units.format_size(point.size):>8} {units.format_us(point.time):>10} "
            f"{units.format_us(point.healthy):>10} {units.format_rate(GIGA * point.busbw):>10} "
            f"{units.format_rate(GIGA * point.healthy_busbw):>10}"
            f"   {share:5.0%} {bar}"
        ).rstrip()
    yield ""
    for sentences in verdict_in_words(answer):
        yield from wrapped(sentences)
    yield from _suspects(answer)
    yield from _faster(answer.faster, answer.points[-1].healthy)
    yield from _effects(answer.binds, binds_in_words(answer))


def complained(skipped: int, complaints: Sequence[tuple[int, str]]) -> Iterator[str]:
    """What was not read of a log."""
    if skipped or complaints:
        yield f"{units.counted(skipped, 'line')} skipped"
    for line, text in complaints[:3]:
        yield from wrapped(f"line {line}: {text}")
    if len(complaints) > 3:
        yield f"and {len(complaints) - 3} more such lines"


def _suspects(answer: Answer) -> Iterator[str]:
    if not answer.suspects:
        for sentence in doubts(answer):
            yield ""
            yield from wrapped(sentence)
        return
    yield ""
    away = apart_in_words(answer.distance)
    yield from wrapped(f"{heading(answer)}; the healthy machine is {away} away")
    for sentence in doubts(answer):
        yield from wrapped(sentence)
    for number, suspect in enumerate(answer.suspects, 1):
        likely = "" if suspect.probability == 1 else f"{suspect.probability:.0%} likely, "
        first = f"{number}. {likely}{apart_in_words(suspect.distance)} away: "
        for case in suspect.cases:
            stated = f" (stated by the log: {case.stated})" if case.stated else ""
            yield from wrapped(first + case.what + stated, indent="   ")
            advice = (("why", case.cause), ("check", case.check), ("cure", case.cure))
            for word, text in advice if number <= ADVISED else ():
                yield from wrapped(f"   {word}: {text}", indent="     ")
            first = "   or, which this log cannot tell apart: "


def _effects(effects: Sequence[Effect], title: str) -> Iterator[str]:
    if not effects:
        return
    yield ""
    yield f"{title}: each twice as good, simulated again"
    for one in effects:
        yield (
            f"  {one.key:38} {one.value:>14}  {units.format_us(one.time_us):>9}  {-one.gain:+.0%}"
            f"{'  ' + one.status if one.status in ('fitted', 'assumed', 'post_hoc') else ''}"
        )


def of_schedule(found: Found) -> Iterator[str]:
    """The answer to a schedule."""
    asked = found.question
    chosen = f": {asked.chosen}" if asked.chosen else ""
    yield from wrapped(
        f"{found.name} on {found.machine.name}, {asked.ranks} ranks, {units.format_size(found.size)}{chosen}"
    )
    yield ""
    limit = (
        f"{found.limit_us / found.time_us:.0%} of the limit ({found.limit})"
        if found.limit_us
        else "the limit is unknown"
    )
    yield from wrapped(f"{units.format_us(found.time_us)}, {limit}")
    spent = ", ".join(f"{share:.0%} {name}" for name, share in found.spent)
    yield from wrapped(f"critical path: {spent}")
    for name, share in found.busiest:
        yield from wrapped(f"busy {share:.0%} of the time: {name}")
    yield from _effects(found.binds, "what binds it")
    yield from _faster(found.faster, found.time_us)
    if found.better:
        yield ""
        yield "what would be faster"
        for name, time in found.better:
            yield f"  {name:46} {units.format_us(time):>9}  {time / found.time_us - 1:+.0%}"
    else:
        yield ""
        looks = "" if found.faster else "; `--search 10s` looks for new ones"
        yield f"no known algorithm is faster here{looks}"


def _faster(found: Faster | None, time_us: float) -> Iterator[str]:
    """Result of a search, compared with a time on the healthy machine."""
    if found is None:
        return
    yield ""
    if found.time_us >= time_us * (1 - LEAST):
        yield "the search found nothing faster"
        return
    kind = "a new schedule" if found.new else "a known algorithm"
    takes = units.format_us(found.time_us)
    yield from wrapped(f"what a search found: {kind}, {takes}, {found.time_us / time_us - 1:+.0%}: {found.recipe}")
    cause, share = max(found.spent.items(), key=lambda one: one[1])
    yield from wrapped(f"  why: {share:.0%} of its critical path is {cause}", indent="    ")
    yield from wrapped(f"  write it: {found.write}", indent="    ")
    yield from wrapped(f"  enable it {found.switch_on}", indent="    ")


def wrapped(text: str, indent: str = "  ") -> Iterable[str]:
    """Lines of a terminal, the second and later ones indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
