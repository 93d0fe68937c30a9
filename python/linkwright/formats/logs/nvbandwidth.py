"""What nvbandwidth prints, as text or as JSON: rates between pairs.

    Running host_to_device_memcpy_ce.
    memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
               0         1
     0     55.31     55.29

    {"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce", "status": "Passed",
                                    "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                                    "bandwidth_matrix": [["55.31", "55.29"]]}]}}

Matrices of latencies are passed over, and tests that were waived are named.

Source: nvbandwidth, README, output.cpp and json_output.cpp.
"""

from __future__ import annotations

import re

from .facts import Gathered
from .kinds import Link, Log, Reader, TextReader
from .lines import MOST_RATE, Complaints, Source, clean, number, shown
from .matrices import MOST_LINKS, Head, MatrixReading

TOOL = "nvbandwidth"
_ENDS = re.compile(r"\b(CPU|GPU)\(row\)\s*(<->|->|<-)\s*(CPU|GPU)\(column\)")


class _Reading(MatrixReading):
    """The text; the name of a test stands above its matrix."""

    def __init__(self, gathered: Gathered) -> None:
        self.name = ""
        super().__init__(TOOL, gathered, self._head)

    def _head(self, text: str) -> Head | None:
        words = text.split()
        if words[:1] == ["Running"] and len(words) > 1:
            self.name, self.current = words[1].rstrip(".")[:200], None
        return _head(self.name, text)


def _head(name: str, text: str) -> Head | None:
    """What the description of a matrix says."""
    if "(column)" not in text or ("(GB/s)" not in text and "(ns)" not in text):
        return None
    ends = _ENDS.search(text)
    rows, columns = (ends[1], ends[3]) if ends else ("all of" if "All " in text else None, "GPU")
    both = "bidirectional" in name or bool(ends and ends[2] == "<->")
    return Head(name or text.strip()[:80], "(GB/s)" in text, rows, columns, both, bool(ends and ends[2] == "<-"))


def _json(source: Source) -> Log:
    gathered, complaints, left_out = Gathered(), Complaints(), Complaints()
    document = source.document()
    inner = document.get("nvbandwidth") if isinstance(document, dict) else None
    cases = inner.get("testcases") if isinstance(inner, dict) else None
    found: list[Link] = []
    for case in cases[:4096] if isinstance(cases, list) else ():
        matrix = case.get("bandwidth_matrix") if isinstance(case, dict) else None
        name = clean(str(case.get("name", "")) if isinstance(case, dict) else "")[:200]
        if not isinstance(matrix, list) or not all(isinstance(row, list) for row in matrix):
            left_out.add(1, f"the test `{shown(name)}` has no matrix")
            continue
        described = clean(str(case.get("bandwidth_description", "")))[:400]
        head = _head(name, described) or Head(
            name,
            "latency" not in name,
            "CPU" if name.startswith("host") else None if "local" in name else "GPU",
            both_ways="bidirectional" in name,
        )
        for row, values in enumerate(matrix if head.has_rates else ()):
            for column, value in enumerate(values):
                rate = number(value, MOST_RATE)
                if rate is None and value != "N/A":
                    complaints.add(1, f"{shown(name)}: row {row}, column {column} is not a rate: `{shown(str(value))}`")
                elif rate and len(found) < MOST_LINKS:
                    ends = (
                        f"{head.rows} {row}" if head.rows else f"{head.columns} {column}",
                        f"{head.columns} {column}",
                    )
                    found.append(
                        Link(TOOL, name, "pair", *(ends[::-1] if head.to_row else ends), rate, 1, head.both_ways)
                    )
    if document is None:
        complaints.add(1, "the document is cut, or is not JSON")
    return Log(TOOL, (), gathered.facts, tuple(found), 0, tuple(complaints.first), tuple(left_out.first))


TEXT = TextReader(
    TOOL, "the text of nvbandwidth: a matrix for each test", "nvbandwidth, README", ("nvbandwidth Version", "(column)"),
    lambda text: "nvbandwidth Version" in text or _head("", text) is not None, _Reading,
)  # fmt: skip
JSON = Reader(
    TOOL, "the JSON of nvbandwidth (`-j`)", "nvbandwidth, README",
    lambda source: source.begins("{") and source.has(lambda text: '"nvbandwidth"' in text), _json,
)  # fmt: skip
