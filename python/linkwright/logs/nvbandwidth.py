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
from .kinds import Log, Matrix, Reader
from .lines import MOST_RATE, Complaints, Source, clean, number, plain, shown

TOOL = "nvbandwidth"
_RUNNING = re.compile(r"Running\s+(\w+)")
_MOST = 4096  # rows of a matrix, and matrices
_DEVICE = re.compile(r"Device\s+\d+:\s+(.+?)(?:\s+\([0-9a-fA-F:.]+\))?$")


def _text(source: Source) -> Log:
    gathered, complaints = Gathered(), Complaints()
    found: list[Matrix] = []
    name, columns, rows, begun, skipped = "", 0, list[tuple[float | None, ...]](), 0, 0

    def end() -> None:
        if rows and len(found) < _MOST:
            found.append(Matrix(name, tuple(rows), begun))
        rows.clear()

    for at, raw in source.lines():
        text = plain(raw)[1]
        words = text.split()
        if match := _RUNNING.search(text):
            end()
            name, columns = match[1], 0
        elif "bandwidth (GB/s)" in text:
            end()
            columns, begun = -1, at
        elif columns == -1 and words and all(word.isdecimal() for word in words):
            columns = len(words)
        elif columns > 0 and words and words[0].isdecimal() and len(rows) < _MOST:
            values = [None if word == "N/A" else number(word, MOST_RATE) for word in words[1:]]
            if len(values) == columns and all(
                v is not None or w == "N/A" for v, w in zip(values, words[1:], strict=True)
            ):
                rows.append(tuple(values))
            else:
                complaints.add(at, f"a row of {columns} rates was expected: `{shown(text)}`")
        elif match := _DEVICE.match(text.strip()):
            gathered.facts.devices[match[1][:200]] = gathered.facts.devices.get(match[1][:200], 0) + 1
        elif words:
            end()
            columns = 0
            skipped += 1
    end()
    return Log(TOOL, (), gathered.facts, tuple(found), skipped, tuple(complaints.first))


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
        complaints.add(1, "the document is cut, or no JSON")
    return Log(TOOL, (), gathered.facts, tuple(found), 0, tuple(complaints.first))


TEXT = Reader(
    TOOL, "the text of nvbandwidth: a matrix for each test", "nvbandwidth, README",
    lambda source: source.has(re.compile("nvbandwidth Version|memcpy (?:CE|SM) .*bandwidth").search),
    _text,
)  # fmt: skip
JSON = Reader(
    TOOL, "the JSON of nvbandwidth (`-j`)", "nvbandwidth, README",
    lambda source: source.begins("{") and source.has(lambda text: '"nvbandwidth"' in text), _json,
)  # fmt: skip
