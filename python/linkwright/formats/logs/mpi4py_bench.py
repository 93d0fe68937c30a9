"""What `python -m mpi4py.bench` prints: `pingpong` and `ringtest`.

    # MPI PingPong Test
    # Size [B]  Bandwidth [MB/s] | Time Mean [s] ± StdDev [s]  Samples
             1              3.48 | 2.8734e-07 ± 1.5000e-08    10000

    time for 1000 loops = 0.0123 seconds (8 processes, 1 bytes)

A loop of the ring passes a message on as often as there are processes.

Source: mpi4py 4.1, bench.py.
"""

from __future__ import annotations

import re

from linkwright.base.units import KILO, MEGA, US_PER_S

from .facts import Gathered
from .kinds import LogRow, LogTable, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, number, shown, whole
from .reading import TextReading

TOOL = "mpi4py.bench"
_RING = re.compile(r"time for (\d{1,12}) loops = (\S+) seconds \((\d{1,9}) processes, (\d{1,18}) bytes\)")
_HEAD = "# Size [B]  Bandwidth [MB/s]"
_PAIRS = re.compile(r"\s*(\d+)\s+([\d.]+)(?:\s*\|\s*(\S+)\s*\u00b1.*)?$")


class _Reading(TextReading):
    tool = TOOL

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.pairs: list[LogRow] = []
        self.rings: dict[int, list[LogRow]] = {}
        self.headed = False

    def line(self, at: int, label: str, text: str) -> None:
        if match := _RING.search(text):
            self._ring(at, match, text)
        elif _HEAD in text:
            self.headed = True
        elif self.headed and text.strip()[:1].isdigit() and len(self.pairs) < MOST_ROWS:
            row = _pair(at, text)
            if row is None:
                self.complaints.add(at, f"a size or a value is not a number: `{shown(text)}`")
            else:
                self.pairs.append(row)
        elif text.strip() and not self.gathered.see(text, label):
            self.skipped += 1

    def _ring(self, at: int, match: re.Match[str], text: str) -> None:
        loops, processes = int(match[1]), int(match[3])
        seconds, size = number(match[2], MOST_MICROS / US_PER_S), whole(match[4], MOST_SIZE)
        if not loops or not processes or seconds is None or size is None:
            self.complaints.add(at, f"no time of a ring: `{shown(text)}`")
        elif len(self.rings.setdefault(processes, [])) < MOST_ROWS:
            self.rings[processes].append(LogRow(size, seconds / loops / processes * US_PER_S, at))

    def found(self) -> list[LogTable]:
        tables = [_table(2, self.pairs)] * bool(self.pairs)
        tables += [_table(processes, rows) for processes, rows in self.rings.items() if rows]
        return tables


def _pair(at: int, text: str) -> LogRow | None:
    match = _PAIRS.match(text)
    size = whole(match[1], MOST_SIZE) if match else None
    rate = number(match[2], MOST_RATE * KILO) if match else None
    if match is None or size is None or rate is None:
        return None
    seconds = number(match[3], MOST_MICROS / US_PER_S) if match[3] else size / rate / MEGA if rate else None
    return None if seconds is None else LogRow(size, seconds * US_PER_S, at, algbw=rate / KILO)


def _table(processes: int, rows: list[LogRow]) -> LogTable:
    return LogTable(TOOL, "sendrecv", processes, None, None, None, None, tuple(rows), "latency")


READER = TextReader(
    TOOL, "the text of `python -m mpi4py.bench`: pingpong and ringtest", "mpi4py 4.1, bench.py",
    (_HEAD, "time for"), lambda text: _HEAD in text or _RING.search(text), _Reading,
)  # fmt: skip
