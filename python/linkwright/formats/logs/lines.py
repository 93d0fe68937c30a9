"""Lines of logs: without colours, control characters and what launchers write in front; and numbers in them."""

from __future__ import annotations

import codecs
import contextlib
import functools
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from linkwright.base import files
from linkwright.base.errors import FileError

MOST_LINE = 1 << 16  # characters that are read of a line
MOST_LINES = 20_000_000
PIECE_BYTES = 1 << 15  # that are read at once
MOST_ROWS = 1_000_000
MOST_TEXT = 4 << 30  # characters
MOST_JSON = 256 << 20  # characters of a document that is read as a whole
MOST_COMPLAINTS = 100
SHOWN = 80
MOST_SIZE = 1 << 60
MOST_DIGITS = 30
MOST_MICROS = 1e12
MOST_RATE = 1e9  # 10^9 B/s

_EMPHASIS = re.compile(r"_?\*\*_?")  # of Markdown
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PREFIX = re.compile(
    r"\s*(?:"
    r"(?P<task>\d+):(?=[\s#]|$)\s?"  # srun --label
    r"|\[(?P<job>\d+,\d+)\](?:<\w+>)?:?\s?"  # Open MPI --tag-output
    r"|\[(?P<rank>\d+)\]\s"  # MPICH -prepend-rank
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?\s"  # time stamps
    r")"
)


# A log that was kept as a list of strings in JSON.
_QUOTED = re.compile(r"\s*\"(.*)\",?\s*")


class Source:
    """A log on disk, or its text, read line by line, as often as it takes.

    `count` is the number of lines, once all are read; `open_ended` says that the last one has no end.
    """

    def __init__(self, path: Path, text: str | None = None):
        self.path = path
        self.text = text
        self.count = 0
        self.open_ended = False
        if text is None and not files.is_readable(path):
            raise FileError(f"{path}: does not exist or is not a file; give the log of a benchmark")

    def lines(self) -> Iterator[tuple[int, str]]:
        """(number from 1, text) of every line."""
        for first, piece in self.pieces():
            yield from enumerate(lines_of(piece), first)

    def pieces(self) -> Iterator[tuple[int, str]]:
        """(number of the first line, text) of a few hundred lines after another; a line ends with a line feed."""
        rest, length = "", 0
        self.count, self.open_ended = 0, False
        for text in self._decoded():
            length += len(text)
            if length > MOST_TEXT:  # a small archive may hold anything
                raise FileError(
                    f"{self.path}: more than {MOST_TEXT >> 30} GiB of text; remove everything but the tables"
                )
            whole, end, begun = text.rpartition("\n")
            if end:
                yield self._counted(rest + whole), f"{rest}{whole}\n"
                rest = ""
            rest = (rest + begun)[:MOST_LINE]
        if rest:
            self.open_ended = True
            yield self._counted(rest), rest

    def _counted(self, piece: str) -> int:
        """The number of the first line of a piece, which is counted."""
        first = self.count + 1
        self.count += piece.count("\n") + 1
        if self.count > MOST_LINES:
            raise FileError(f"{self.path}: more than {MOST_LINES:,} lines; remove everything but the tables")
        return first

    def _decoded(self) -> Iterator[str]:
        """The text as it is read, with the line ends of Unix."""
        if self.text is not None:
            with self._opened() as file:
                yield from iter(functools.partial(file.read, PIECE_BYTES), "")
            return
        try:
            with files.opened(self.path) as file:
                decode = codecs.getincrementaldecoder(files.encoding(file.peek(2)))("replace")
                decoder = io.IncrementalNewlineDecoder(decode, translate=True)
                while piece := file.read1(PIECE_BYTES):
                    yield decoder.decode(piece)
                yield decoder.decode(b"", final=True)
        except OSError as error:
            raise FileError(f"{self.path}: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _opened(self) -> Iterator[TextIO]:
        if self.text is not None:
            yield io.StringIO(self.text.removeprefix("\ufeff"), newline=None)
            return
        with files.opened(self.path) as file:
            encoding = files.encoding(file.peek(2))
            yield io.TextIOWrapper(file, encoding=encoding, errors="replace", newline=None)

    def has(self, known: Callable[[str], object]) -> bool:
        """Whether a line is `known`."""
        return any(known(text) for _, text in self.lines())

    def begins(self, character: str) -> bool:
        """Whether the first character that is no space is this one."""
        return next((text.lstrip()[:1] for _, text in self.lines() if text.strip()), "") == character

    def document(self) -> Any:
        """The JSON document that the file holds; None if it holds none."""
        try:
            with self._opened() as file:
                text = file.read(MOST_JSON + 1)
        except OSError as error:
            raise FileError(f"{self.path}: {error.strerror or error}") from error
        if len(text) > MOST_JSON:
            raise FileError(f"{self.path}: a document of more than {MOST_JSON >> 20} MiB; cut it into parts")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def lines_of(piece: str) -> Iterator[str]:
    """The lines of a text as they are read."""
    return map(legible, piece.removesuffix("\n").split("\n"))


def legible(line: str) -> str:
    """A line as it is read: cut if it is very long, and clean."""
    return clean(line[:MOST_LINE])


def clean(line: str) -> str:
    """A line without colours and control characters."""
    if "\x1b" in line:
        line = _COLOUR.sub("", line)
    line = line.rstrip("\r\n")
    if "**" in line and "***" not in line:
        line = _EMPHASIS.sub("", line)
    if line.startswith("\\#"):  # as Markdown escapes it
        line = line[1:]
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else " " for c in line)


def plain(line: str) -> tuple[str, str]:
    """(which task wrote it, the line) without what a launcher wrote in front."""
    label = ""
    if '"' in line and (match := _QUOTED.fullmatch(line)):
        line = match[1].replace("\\t", " ").replace("\\n", " ")
    for _ in range(3):
        match = _PREFIX.match(line)
        if not match or not match[0]:
            break
        label = next((f"{key} {value}" for key, value in match.groupdict().items() if value), label)
        line = line[match.end() :]
    return label, line


def shown(text: str) -> str:
    """A text of a file, fit for a message."""
    return text.strip()[:SHOWN] + ("..." if len(text.strip()) > SHOWN else "")


_NUMBER = re.compile(r"\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number(text: object, most: float) -> float | None:
    """A number from 0 to `most`; None if the text is none."""
    if isinstance(text, str):
        if not _NUMBER.fullmatch(text):
            return None
    elif isinstance(text, bool) or not isinstance(text, (int, float)):
        return None
    value = float(text)
    return value if 0 <= value <= most else None


def whole(text: object, most: int) -> int | None:
    """A whole number from 0 to `most`; None if the text is none."""
    if isinstance(text, str):
        if len(text) > MOST_DIGITS or not (text.isascii() and text.isdecimal()):
            return None
    elif isinstance(text, bool) or not isinstance(text, int):
        return None
    return value if 0 <= (value := int(text)) <= most else None


class Complaints:
    """Lines that look like rows and are none."""

    def __init__(self) -> None:
        self.first: list[tuple[int, str]] = []

    def add(self, line: int, what: str) -> None:
        """Keep it, if there are not too many."""
        if len(self.first) < MOST_COMPLAINTS:
            self.first.append((line, what))
