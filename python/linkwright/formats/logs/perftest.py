"""What the programs of perftest print: ib_write_bw, ib_read_bw, ib_send_bw, ib_write_lat, ib_read_lat, ib_send_lat.

                        RDMA_Write BW Test
     Dual-port       : OFF          Device         : mlx5_0
     Link type       : Ethernet
     #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
     131072     5000             392.10             392.00             0.373840

`MB/sec` and `MiB/sec` are both 2^20 B/s. Taken are the mean rate, and of latencies the mean or the typical one. The
rate is checked against size and messages a second.

Source: linux-rdma/perftest, src/perftest_parameters.h and src/perftest_resources.c.
"""

from __future__ import annotations

import re

from linkwright.base.units import GIGA, MEGA

from .facts import Gathered
from .kinds import Link, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_SIZE, number, shown, whole
from .matrices import MOST_LINKS
from .reading import TextReading

TOOL = "perftest"
_TITLE = re.compile(r"\s*(RDMA_Write|RDMA_Read|Send|Atomic)\b([\w ]{0,40}?)\s(BW|Latency|Bandwidth) Test\s*")
_DEVICE = re.compile(r"\bDevice\s*:\s*([\w.-]{1,64})")
_TYPE = re.compile(r"\bLink type\s*:\s*(\w{1,20})")
_DUAL = re.compile(r"\bDual-port\s*:\s*ON\b")
_RATE = re.compile(r"BW average\[(MB|MiB|Gb)/sec\]")
_UNITS = {"MB": 2**20 / GIGA, "MiB": 2**20 / GIGA, "Gb": 1 / 8}  # in 10^9 B/s
_LATENCY = re.compile(r"(t_\w+)\[usec\]")
_APART = 0.02


class _Reading(TextReading):
    tool = TOOL

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.test, self.port, self.both_ways, self.dual = "", "", False, False
        self.unit: float | None = None
        self.time: int | None = None  # the column of a latency

    def line(self, at: int, label: str, text: str) -> None:
        words = text.split()
        if match := _TITLE.fullmatch(text):
            self.test, self.both_ways = f"{match[1]}{' latency' if match[3] == 'Latency' else ''}", "Bidir" in match[2]
            self.port, self.dual, self.unit, self.time = "", False, None, None
        elif "#bytes" in text and "#iterations" in text:
            self._columns(text)
        elif (self.unit or self.time is not None) and words and words[0].isdecimal():
            self._row(at, text, words)
        elif words and words[0].startswith("----"):
            self.unit = self.time = None
        elif words:
            found = [
                pattern.search(text) if mark in text else None
                for mark, pattern in (("Device", _DEVICE), ("Link type", _TYPE), ("Dual-port", _DUAL))
            ]
            if found[0]:
                self.port = found[0][1]
            if found[1] and self.port and " (" not in self.port:
                self.port += f" ({found[1][1]})"
            self.dual = self.dual or bool(found[2])
            self.skipped += not any(found) and not self.gathered.see(text, label)

    def _columns(self, text: str) -> None:
        rate = _RATE.search(text)
        times = _LATENCY.findall(text)
        wanted = next((name for name in ("t_avg", "t_typical") if name in times), None)
        self.unit = _UNITS[rate[1]] if rate else None
        before = 2 if "#iterations" in text else 1
        self.time = before + times.index(wanted) if wanted and not rate else None

    def _row(self, at: int, text: str, words: list[str]) -> None:
        size = whole(words[0], MOST_SIZE)
        port = f"{self.port or 'port'}{', both ports' if self.dual else ''}"
        about = (TOOL, self.test or "perftest", "port", port, None)
        if self.unit is None:
            time = number(words[self.time or 0] if len(words) > (self.time or 0) else "", MOST_MICROS)
            if not size or not time:
                self.complaints.add(at, f"columns are missing or not numeric: `{shown(text)}`")
            elif len(self.links) < MOST_LINKS:
                self.links.append(Link(*about, None, at, self.both_ways, size, time))
            return
        peak, mean, messages = (number(word, MOST_RATE) for word in (*words[2:5], "", "", "")[:3])
        if not size or mean is None or messages is None or peak is None or not mean:
            self.complaints.add(at, f"columns are missing or not numeric: `{shown(text)}`")
            return
        rate = mean * self.unit
        expected = size * messages * MEGA / GIGA
        rounding = 0.005 * self.unit + size * 5e-7 * MEGA / GIGA
        if abs(rate - expected) > _APART * rate + rounding or (peak and peak < mean * (1 - _APART)):
            self.complaints.add(at, f"rate, peak, size and messages a second disagree: `{shown(text)}`")
        elif len(self.links) < MOST_LINKS:
            self.links.append(Link(*about, rate, at, self.both_ways, size))


READER = TextReader(
    TOOL, "the text of perftest: ib_write_bw, ib_read_bw, ib_send_bw, and their latencies",
    "linux-rdma/perftest, src/perftest_parameters.h", ("#bytes", " Test"),
    lambda text: ("#bytes" in text and "#iterations" in text) or ("Test" in text and _TITLE.fullmatch(text)), _Reading,
)  # fmt: skip
