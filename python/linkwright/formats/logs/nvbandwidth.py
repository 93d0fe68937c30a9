"""What nvbandwidth prints, as text or as JSON: rates between pairs.

    memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
               0         1
     0     55.31     55.29

    {"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce", "status": "Passed",
                                    "bandwidth_matrix": [["55.31", "55.29"]]}]}}

Source: nvbandwidth, README and output.cpp.
"""

from __future__ import annotations

import re

from .facts import Gathered
from .kinds import Log, Matrix, Reader, TextReader
from .lines import MOST_RATE, Complaints, Source, clean, number, shown

TOOL = "nvbandwidth"
_MOST = 4096  # rows of a matrix, and matrices
_DEVICE = re.compile(r"Device \d{1,9}: (.+?)(?: \([0-9a-fA-F:.]+\))?")


class _Reading:
    def __init__(self, gathered: Gathered) -> None:
        self.gathered, self.complaints = gathered, Complaints()
        self.found: list[Matrix] = []
        self.rows: list[tuple[float | None, ...]] = []
        self.name, self.begun, self.skipped = "", 0, 0
        self.columns: int | None = 0  # of the matrix that is being read; None if its heading is still to come

    def line(self, at: int, label: str, text: str) -> None:
        words = text.split()
        if words[:1] == ["Running"] and len(words) > 1:
            self._end()
            self.name = words[1].rstrip(".")[:200]
        elif "bandwidth (GB/s)" in text:
            self._end()
            self.columns, self.begun = None, at
        elif self.columns is None and words and all(word.isdecimal() for word in words):
            self.columns = len(words)
        elif self.columns and words and words[0].isdecimal() and len(self.rows) < _MOST:
            self._row(at, words[1:], text)
        elif match := _DEVICE.fullmatch(" ".join(words)[:400]):
            devices = self.gathered.facts.devices
            devices[match[1][:200]] = devices.get(match[1][:200], 0) + 1
        elif words:
            self._end()
            self.skipped += not self.gathered.see(text, label)

    def _row(self, at: int, words: list[str], text: str) -> None:
        values = [None if word == "N/A" else number(word, MOST_RATE) for word in words]
        wrong = any(value is None and word != "N/A" for value, word in zip(values, words, strict=True))
        if wrong or len(values) != self.columns:
            self.complaints.add(at, f"a row of {self.columns} rates was expected: `{shown(text)}`")
        else:
            self.rows.append(tuple(values))

    def _end(self) -> None:
        if self.rows and len(self.found) < _MOST:
            self.found.append(Matrix(self.name, tuple(self.rows), self.begun))
        self.rows, self.columns = [], 0

    def log(self) -> Log:
        self._end()
        return Log(TOOL, (), self.gathered.facts, tuple(self.found), self.skipped, tuple(self.complaints.first))


def _json(source: Source) -> Log:
    gathered, complaints = Gathered(), Complaints()
    document = source.document()
    inner = document.get("nvbandwidth") if isinstance(document, dict) else None
    cases = inner.get("testcases") if isinstance(inner, dict) else None
    found = []
    for case in cases[:_MOST] if isinstance(cases, list) else ():
        matrix = case.get("bandwidth_matrix") if isinstance(case, dict) else None
        if not isinstance(matrix, list) or not all(isinstance(row, list) for row in matrix):
            continue
        rows = tuple(tuple(number(value, MOST_RATE) for value in row) for row in matrix[:_MOST])
        found.append(Matrix(clean(str(case.get("name", "")))[:200], rows, 1))
    if document is None:
        complaints.add(1, "the document is cut, or is not JSON")
    return Log(TOOL, (), gathered.facts, tuple(found), 0, tuple(complaints.first))


TEXT = TextReader(
    TOOL, "the text of nvbandwidth: a matrix for each test", "nvbandwidth, README",
    lambda text: "nvbandwidth Version" in text or ("memcpy" in text and "bandwidth (GB/s)" in text), _Reading,
)  # fmt: skip
JSON = Reader(
    TOOL, "the JSON of nvbandwidth (`-j`)", "nvbandwidth, README",
    lambda source: source.begins("{") and source.has(lambda text: '"nvbandwidth"' in text), _json,
)  # fmt: skip
