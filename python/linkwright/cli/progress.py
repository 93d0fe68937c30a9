"""The live line on stderr: what is being done, elapsed and remaining time; only on a terminal."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable

import click

from .columns import shortened

TICK_S = 1.0
# Work that ends faster than the eye follows is not drawn each time.
REDRAW_S = 0.05
_START_OF_LINE, _CLEAR = "\r", "\x1b[K"


class Progress:
    """One line from the first second to the last, drawn anew each second and whenever something is done."""

    def __init__(self, total: int, what: str):
        """Begin to show `what`; with a `total` of 0 nothing is shown."""
        self.total, self._what = total, what
        self._start = time.monotonic()
        self._end: float | None = None  # when the work is expected to end
        self._budgeted = False  # whether a time budget says so
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._drawn = 0.0
        self._live = total > 0 and sys.stderr.isatty()
        if self._live:
            self._draw()
            threading.Thread(target=self._tick, daemon=True).start()
            if context := click.get_current_context(silent=True):
                context.call_on_close(self.close)  # so that an error message does not follow on the same line

    def end_in(self, left_s: float) -> None:
        """Expect the work to end after this time, whatever is done by then."""
        self._end, self._budgeted = time.monotonic() + left_s, True

    def show(self, done: int, what: str) -> None:
        """Show that `done` of the total are done, from which the remaining time follows unless it is budgeted."""
        now = time.monotonic()
        if done and not self._budgeted:
            self._end = now + (now - self._start) / done * max(0, self.total - done)
        self._what = what
        if self._live and now - self._drawn > REDRAW_S:
            self._draw()

    def print(self, line: str, echo: Callable[[str], None] = click.echo) -> None:
        """Print a line on stdout without tearing the live line on a shared terminal."""
        with self._lock:
            self._clear()
            echo(line)
        if self._live:
            self._draw()

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            self._clear()
            self._live = False
        self._closed.set()

    def text(self) -> str:
        """The line: `0:14, about 1:16 left  launch 3: 12 of 62`."""
        now = time.monotonic()
        left = "" if self._end is None else f", about {_clock(max(0.0, self._end - now))} left"
        return f"{_clock(now - self._start)}{left}  {self._what}"

    def _tick(self) -> None:
        while not self._closed.wait(TICK_S):
            self._draw()

    def _draw(self) -> None:
        width = shutil.get_terminal_size().columns - 1
        with self._lock:
            if self._live:
                self._drawn = time.monotonic()
                sys.stderr.write(_START_OF_LINE + shortened(self.text(), width) + _CLEAR)
                sys.stderr.flush()

    def _clear(self) -> None:
        if self._live:
            sys.stderr.write(_START_OF_LINE + _CLEAR)
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    """`1:16`, or `1:02:03` from an hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
