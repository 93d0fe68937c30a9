"""Tables that fit the terminal: aligned columns, colour, and what gives way when the terminal is too narrow.

Numbers are never cut. Of the text columns the widest gives way, unless a table says which one. In a table of results
its texts end with `…`; in a table of facts the last text goes on in the next line, or below its row where less than a
third of the width is left.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click

# The narrowest terminal that tables are made for, and the width of what goes into a pipe or a file.
LEAST_COLUMNS = 80
# The least that is left of a text.
LEAST_TEXT = 8
GAP = 2
INDENT = " " * 4


class Styled(str):
    """The text of a cell with a colour and a weight, which widths do not count."""

    colour: str | None
    bold: bool

    def __new__(cls, text: str, colour: str | None = None, bold: bool = False) -> Styled:
        """A text that knows how it is shown."""
        made = super().__new__(cls, text)
        made.colour, made.bold = colour, bold
        return made


def terminal_columns() -> int:
    """The width that tables may use: that of the terminal, or `COLUMNS`; at least 80, and 80 where there is neither."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return LEAST_COLUMNS
    return max(LEAST_COLUMNS, shutil.get_terminal_size((LEAST_COLUMNS, 24)).columns)


def shortened(text: str, width: int) -> str:
    """The text, which ends with `…` if it is longer than `width`."""
    if len(text) <= width:
        return text
    cut = text[: width - 1].rstrip() + "…"
    return Styled(cut, text.colour, text.bold) if isinstance(text, Styled) else cut


def aligned(
    heads: Sequence[Sequence[str]],
    rows: Iterable[Sequence[str]],
    left: Sequence[int],
    width: int,
    kept: Sequence[int] = (),
    first: Sequence[int] = (),
) -> list[str]:
    """The lines of a table; the texts, in the columns `left` that are aligned to the left, are shortened to fit.

    Columns in `kept` keep their width, those in `first` give way before others.
    """
    table = [*heads, *rows]
    widths = _narrowed(table, heads, [i for i in left if i not in kept], width, first)
    return [_line(row, widths, left) for row in table]


def wrapped(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int], width: int) -> list[str]:
    """The lines of a table whose last column, if it is a text, goes on in more lines where it is too wide."""
    body = list(rows)
    last = len(header) - 1
    widths = _widths([header, *body])
    rest = width - sum(widths[:-1]) - GAP * last
    if widths[-1] <= rest or last not in left or not last:
        return aligned([header], body, left, width)
    if rest < width // 3:
        return _hung(header, body, left, width)
    lines = [header]
    for *facts, text in body:
        first, *more = textwrap.wrap(text, rest) or [""]
        lines += [[*facts, first], *([*[""] * last, part] for part in more)]
    return aligned([], lines, left, width)


def _hung(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int], width: int) -> list[str]:
    """Each row, and below it its last text, indented."""
    first, *facts = aligned([header[:-1]], [row[:-1] for row in rows], left, width)
    lines = [first, INDENT + header[-1]]
    for line, row in zip(facts, rows, strict=True):
        lines += [line, *textwrap.wrap(row[-1], width, initial_indent=INDENT, subsequent_indent=INDENT)]
    return lines


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def _narrowed(
    table: Sequence[Sequence[str]],
    heads: Sequence[Sequence[str]],
    left: Sequence[int],
    width: int,
    first: Sequence[int],
) -> list[int]:
    """Widths of the columns; texts in `first`, then the widest text, give way, down to their headings."""
    widths = _widths(table)
    least = [max(LEAST_TEXT, head) for head in _widths(heads)] if heads else [LEAST_TEXT] * len(widths)
    for _ in range(sum(widths) + GAP * (len(widths) - 1) - width):
        loose = [i for i in left if i < len(widths) and widths[i] > least[i]]
        if not loose:
            break
        widths[max(loose, key=lambda i: (i in first, widths[i]))] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int], left: Sequence[int]) -> str:
    cells = []
    for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
        shown = shortened(cell, width) if i in left else cell
        space = " " * (width - len(shown))
        cells.append(_styled(shown) + space if i in left else space + _styled(shown))
    return (" " * GAP).join(cells).rstrip()


def _styled(cell: str) -> str:
    if not isinstance(cell, Styled) or not (cell.colour or cell.bold):
        return cell
    return click.style(str(cell), fg=cell.colour, bold=cell.bold or None)


def filled(text: str, width: int, indent: str = "") -> str:
    """The text with every line indented, and with paragraphs that hold a longer line broken anew.

    A paragraph is what stands between empty lines; one with indented lines is left as it is.
    """
    return "\n\n".join(_paragraph(part, width, indent) for part in text.strip().split("\n\n"))


def _paragraph(text: str, width: int, indent: str) -> str:
    lines = [indent + line for line in text.splitlines()]
    if all(len(line) <= width for line in lines) or any(line[len(indent)] == " " for line in lines):
        return "\n".join(lines)
    return _broken(" ".join(text.split()), width, indent, indent)


def items(text: str, width: int) -> str:
    """The text with every longer line continued below, indented by four more places."""
    return "\n".join(line if len(line) <= width else _item(line, width) for line in text.splitlines())


def _item(line: str, width: int) -> str:
    own = line[: len(line) - len(line.lstrip())]
    return _broken(line.strip(), width, own, own + INDENT)


def _broken(text: str, width: int, first: str, others: str) -> str:
    kept = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, **kept)


def remark(text: str, width: int) -> list[str]:
    """The lines of something that is no result: they begin with `#`."""
    return textwrap.wrap(text, width, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
