"""The first screen as text for the terminal: for each machine the verdict, the four values and the weightiest findings.

Only a run of several parts has it: the rows of a single part need no summary.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from linkwright.base.rows import nunique

from ..first import overview
from ..model import Overview, Tile
from ..runs import Run

WIDTH = 78  # of a line, so that it fits 80 columns behind its `# `
LINES = 12  # for all machines together, as long as each has its verdict and its values
_INDENT = "  "


def lines(run: Run) -> Iterator[str]:
    """A few lines for each machine, together at most `LINES` if there are one or two machines."""
    if nunique(run.rows["part"]) < 2:
        return
    seen = overview.overviews(run)
    heads = [_head(each) for each in seen]
    left = LINES - sum(map(len, heads))
    for each, head in zip(seen, heads, strict=True):
        yield from head
        for finding in each.findings:
            if str(finding) in each.verdict:
                continue
            told = _wrapped(f"- {finding}.", hanging="  ")
            if len(told) > left:
                break
            left -= len(told)
            yield from told


def _head(seen: Overview) -> list[str]:
    """The verdict, and a line for each tile with a value."""
    tiles = [tile for tile in seen.tiles if tile.value]
    sentence = f"{seen.name}, {seen.kind}: {seen.headline.lower()}. {seen.verdict}"
    widths = [max((len(text) for text in column), default=0) for column in zip(*map(_cells, tiles), strict=True)]
    return [*_wrapped(sentence, indent=""), *(_line(tile, widths) for tile in tiles)]


def _cells(tile: Tile) -> tuple[str, str, str, str]:
    return tile.title.lower(), tile.value, tile.precision, tile.rated


def _line(tile: Tile, widths: list[int]) -> str:
    name, value, sure, rated = _cells(tile)
    told = f"{_INDENT}{name:<{widths[0]}}  {value:>{widths[1]}}  {sure:<{widths[2]}}  {rated:>{widths[3]}}"
    return _cut(f"{told}  {tile.about}" if widths[3] else f"{told.rstrip()}  {tile.about}")


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip(' ,;:')}…"


def _wrapped(text: str, indent: str = _INDENT, hanging: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=_INDENT + hanging)
