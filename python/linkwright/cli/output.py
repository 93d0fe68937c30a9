"""How text leaves: aligned columns, JSON, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


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
        cells = (
            f"{c:<{w}}" if i in left else f"{c:>{w}}"
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(cells).rstrip())


class Progress:
    """A bar on stderr that appears only once the work has taken two seconds, and only on a terminal."""

    PATIENCE_S = 2.0

    def __init__(self, total: int, what: str):
        import time

        self._clock = time.monotonic
        self._start = self._clock()
        self._total, self._what, self._done = total, what, 0
        self._bar = None

    def advance(self, what: str | None = None) -> None:
        """One more of the total is done; `what` replaces the text beside the bar."""
        self._done += 1
        self._what = what or self._what
        if self._bar is None and sys.stderr.isatty() and self._clock() - self._start > self.PATIENCE_S:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=self._what)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress(total: int, what: str) -> Iterator[Progress]:
    """A `Progress` that is removed at the end, also after an error."""
    bar = Progress(total, what)
    try:
        yield bar
    finally:
        bar.close()
