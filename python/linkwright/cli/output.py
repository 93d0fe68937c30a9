"""Output: lines that may lose their reader, JSON, tables, `key  summary` lines."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence

import click

from .columns import shortened, terminal_columns, wrapped


def say(line: str) -> None:
    """Print a line about work whose results are kept: it continues even if the reader goes away, as `head` does."""
    try:
        click.echo(line)
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    import json

    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False, default=_text))


def _text(value: object) -> float | str:
    """Types that JSON lacks: decimals as numbers, times and the like as text."""
    import decimal

    return float(value) if isinstance(value, decimal.Decimal) else str(value)


def _plain(value: object) -> object:
    """The same value with null for infinity and NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_pairs(pairs: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """`key  summary` lines, shortened to the width of the terminal; summaries are aligned unless a key is too long."""
    columns = terminal_columns()
    width = min(max((len(key) for key, _ in pairs), default=0), columns // 3)
    for key, summary in pairs:
        click.echo(shortened(f"{'':{indent}}{key:<{width}}  {summary}".rstrip(), columns))


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Rows below a header; the columns in `left` are aligned to the left, all others to the right."""
    for line in wrapped(header, rows, left, terminal_columns()):
        click.echo(line)
