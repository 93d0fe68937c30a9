"""What measured links say, as text and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwright.advise.explain.links import LinkVerdict, verdict
from linkwright.formats.logs import Log
from linkwright.show.report.model import Cell, Column, Report, Section, Table, Text

from .shown import complained, wrapped


def text(found: Sequence[LinkVerdict], source: str, log: Log) -> Iterator[str]:
    """The answer to a log that holds links alone, for a terminal of 80 columns."""
    yield from wrapped(f"{source}: {log.tool}")
    yield from complained(log.skipped, log.named)
    yield from beside(found)
    if worst := verdict(found):
        yield ""
        yield f"Verdict: {worst}."


def beside(found: Sequence[LinkVerdict]) -> Iterator[str]:
    """What is said of links, below the answer to a table of the same log."""
    for one in found:
        yield ""
        yield from wrapped(f"{one.title}: {one.verdict}" if one.verdict else one.title)
        for what, rate, limit, share in one.rows:
            compared = f" of {limit}" if limit else ""
            yield f"  {what:40} {rate:>14}{compared}{'' if share is None else f'  {share:.0%}'}"
        for sentence in one.sentences:
            yield from wrapped(sentence)


def page(found: Sequence[LinkVerdict], name: str, log: Log) -> Report:
    """The page of a log that holds links alone."""
    columns = [Column("What"), Column("Rate"), Column("Compared with"), Column("Share", "%", numeric=True)]
    sections = [
        Section(
            f"{one.title}: {one.verdict}" if one.verdict else one.title,
            [
                Table("Its rates", columns, [
                    [what, rate, limit, Cell("" if share is None else f"{share:.0%}", share or -1)]
                    for what, rate, limit, share in one.rows
                ]),
                Text(list(one.sentences)),
            ],
        )
        for one in found
    ]  # fmt: skip
    return Report(f"{name}: {verdict(found) or 'no verdict'}", facts=[("Tool", log.tool)], sections=sections)
