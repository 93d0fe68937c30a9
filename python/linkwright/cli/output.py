"""Output: aligned columns, JSON, progress on stderr."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence

import click


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
    """`key  summary` lines with aligned summaries."""
    width = max((len(key) for key, _ in pairs), default=0)
    for key, summary in pairs:
        click.echo(f"{'':{indent}}{key:<{width}}  {summary}".rstrip())


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Rows below a header; the columns in `left` are aligned to the left, all others to the right."""
    table = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    for row in table:
        cells = (f"{c:<{w}}" if i in left else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        click.echo("  ".join(cells).rstrip())


class Progress:
    """A bar on stderr that appears once the work has taken two seconds, and only on a terminal."""

    PATIENCE_S = 2.0

    def __init__(self, total: int, what: str):
        self._start = time.monotonic()
        self.total, self._what = total, what
        self._bar = None

    def show(self, done: int, what: str) -> None:
        """Show that `done` of the total are done, with `what` next to the bar."""
        patient = time.monotonic() - self._start < self.PATIENCE_S
        if self._bar is None and sys.stderr.isatty() and not patient:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
            self._task = self._bar.add_task(self._what, total=self.total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=what)

    def print(self, line: str, echo: Callable[[str], None] = click.echo) -> None:
        """Print a line on stdout without tearing the bar on a shared terminal."""
        if self._bar is not None:
            self._bar.stop()
        echo(line)
        if self._bar is not None:
            self._bar.start()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
