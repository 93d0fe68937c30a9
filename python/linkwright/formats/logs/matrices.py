"""Matrices of rates between the devices of a node, which several tools print much alike.

    Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)        a heading, which says what is measured
       D\\D     0      1                                                    the columns
         0 2560.10 390.21                                                  a row: its end, and a rate for each column
         1  390.14 2559.8

A tool says which lines are headings, and what they are of. A matrix that holds no rates is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .facts import Gathered
from .kinds import Link
from .lines import MOST_RATE, number, shown
from .reading import TextReading

MOST_LINKS = 1_000_000
_END = re.compile(r"(?:(CPU|GPU|NIC)\s*)?(\d{1,4})\b")
_ROW = re.compile(r"\s*(?:(CPU|GPU|NIC)\s*)?(\d{1,4})\s*(<->|->|<-)?\s+(\S.*)")
_NONE = ("N/A", "-", "n/a")


@dataclass(frozen=True)
class Head:
    """What a heading says.

    Attributes:
        test: the name of the test.
        has_rates: whether its numbers are rates in 10^9 B/s.
        rows: the devices of the rows, where they are bare numbers; None if there is one row, of the columns' own
            memory.
        columns: those of the columns.
        both_ways: whether data go both ways at once.
        to_row: whether data go from the column to the row.
    """

    test: str
    has_rates: bool = True
    rows: str | None = "GPU"
    columns: str = "GPU"
    both_ways: bool = False
    to_row: bool = False


class MatrixReading(TextReading):
    """The matrices of a text. `head` is asked for every line: what it says, or None if it is no heading."""

    def __init__(self, tool: str, gathered: Gathered, head: Callable[[str], Head | None]) -> None:
        super().__init__(gathered)
        self.tool, self.head = tool, head
        self.current: Head | None = None
        self.columns: list[str] | None = None
        self.width = 0  # words behind the end of a row; more than its columns where sums follow

    def line(self, at: int, label: str, text: str) -> None:
        """Take a line."""
        if head := self.head(text):
            self.current, self.columns = head, None
        elif self.current and self.columns is None and text.strip():
            self._columns(text, self.current)
        elif self.current and self.columns and (match := _ROW.fullmatch(text)):
            self._row(at, text, match, self.current, self.columns)
        elif text.strip():
            self.current = self.current if self._device(text) else None if self.columns else self.current
            self.skipped += not self.gathered.see(text, label)

    def _columns(self, text: str, head: Head) -> None:
        """Take the line of columns: the ends, after a word such as `D\\D`, and names of sums behind them."""
        words = text.split()
        rest = text.strip()
        if (words and not _END.match(rest)) or words[0] in ("GPU", "CPU"):
            rest = rest[len(words[0]) :].strip()
        ends = list(_END.finditer(rest))
        if not ends or rest[: ends[0].start()].strip():
            return
        self.columns = [f"{match[1] or head.columns} {int(match[2])}" for match in ends]
        self.width = len(ends) + len(rest[ends[-1].end() :].split())

    def _row(self, at: int, text: str, match: re.Match[str], head: Head, columns: list[str]) -> None:
        words = match[4].split()
        values = [None if word in _NONE else number(word, MOST_RATE) for word in words]
        if len(words) != self.width or any(
            value is None and word not in _NONE for value, word in zip(values, words, strict=True)
        ):
            self.complaints.add(at, f"a row of {len(columns)} rates was expected: `{shown(text)}`")
            return
        row = f"{match[1] or head.rows} {int(match[2])}" if head.rows else ""
        arrow = match[3] if match[3] and head.both_ways else None
        for column, value in zip(columns, values, strict=False):
            if value and head.has_rates and len(self.links) < MOST_LINKS:
                ends = (column, row) if head.to_row or arrow == "<-" else (row or column, column)
                test = f"{head.test} {arrow}" if arrow else head.test
                self.links.append(Link(self.tool, test, "pair", *ends, value, at, head.both_ways))

    def _device(self, text: str) -> bool:
        """Take a line that names a device."""
        match = _DEVICE.match(" ".join(text.split())[:400])
        if not match:
            return False
        devices = self.gathered.facts.devices
        name = match[1].strip()[:200]
        if len(devices) < 4096 or name in devices:
            devices[name] = devices.get(name, 0) + 1
        return True


# `Device 0: NVIDIA H100 (00000000:18:00)`, `Device: 0, NVIDIA H100, pciBusID: 18, ...`
_DEVICE = re.compile(r"Device:? \d{1,4}[:,]\s*([^,(]{1,200})")
