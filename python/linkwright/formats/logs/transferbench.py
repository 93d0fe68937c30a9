"""What TransferBench prints: matrices of `p2p`, and transfers one by one.

    Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
     SRC+EXE\\DST    CPU 00       GPU 00    GPU 01
      CPU 00  ->     24.37        27.32     27.30
      GPU 00  ->     27.11      1689.85     48.46

    Transfer 00 | 48.460 GB/s | 1.385 ms | 67108864 bytes | G0 -> GPU00:004 -> G1

Of a bidirectional matrix each pair has three rows: one way, the other, and both together.

Source: ROCm, TransferBench, documentation and src/header; versions 1.20 to 1.60.
"""

from __future__ import annotations

import re

from linkwright.base.units import KILO

from .facts import Gathered
from .kinds import Link, TextReader
from .lines import MOST_MICROS, MOST_RATE, MOST_SIZE, number, shown, whole
from .matrices import MOST_LINKS, Head, MatrixReading

TOOL = "TransferBench"
_HEAD = re.compile(r"\s*(Uni|Bi)directional copy peak bandwidth GB/s \[([^\]]{1,60})\]")
_TRANSFER = re.compile(
    r"\s*Transfer (\d{1,6})\s*[|\u2502]\s*([\d.]+) GB/s\s*[|\u2502]\s*([\d.]+) ms\s*[|\u2502]\s*(\d+) bytes\s*"
    r"[|\u2502]\s*(\S+) -> (\S+) -> (\S+)\s*"
)
_MEMORY = re.compile(r"([A-Z])(\d{1,4})")
_KINDS = {"G": "GPU", "F": "GPU", "C": "CPU", "B": "CPU", "D": "CPU", "U": "CPU", "H": "CPU"}
_APART = 0.03


class _Reading(MatrixReading):
    """Matrices, and transfers between them."""

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(TOOL, gathered, _head)

    def line(self, at: int, label: str, text: str) -> None:
        if "Transfer" in text and (match := _TRANSFER.fullmatch(text)):
            self._transfer(at, text, match)
        else:
            super().line(at, label, text)

    def _transfer(self, at: int, text: str, match: re.Match[str]) -> None:
        rate, ms = number(match[2], MOST_RATE), number(match[3], MOST_MICROS / KILO)
        size = whole(match[4], MOST_SIZE)
        ends = [_end(match[place]) for place in (5, 7)]
        if not rate or not ms or not size or None in ends:
            self.complaints.add(at, f"not a rate, a time and a size: `{shown(text)}`")
        elif abs(size / ms / KILO**2 - rate) > _APART * rate + 0.001:
            self.complaints.add(at, f"rate, time and size disagree: `{shown(text)}`")
        elif len(self.links) < MOST_LINKS:
            source, target = (str(end) for end in ends)
            self.links.append(
                Link(TOOL, f"transfer by {match[6][:40]}", "pair", source, target, rate, at, size=size, time=ms * KILO)
            )


def _end(memory: str) -> str | None:
    """`GPU 0` of `G0`; None of several memories, or of none."""
    match = _MEMORY.fullmatch(memory)
    return f"{_KINDS[match[1]]} {int(match[2])}" if match and match[1] in _KINDS else None


def _head(text: str) -> Head | None:
    match = _HEAD.match(text) if "copy peak" in text else None
    return Head(f"{match[1]}directional copy, {match[2].lower()}", both_ways=match[1] == "Bi") if match else None


READER = TextReader(
    TOOL, "the text of TransferBench: `p2p`, and transfers one by one", "ROCm, TransferBench, documentation",
    ("copy peak", "Transfer"),
    lambda text: _head(text) or "TransferBench v" in text or ("Transfer" in text and _TRANSFER.fullmatch(text)),
    _Reading,
)  # fmt: skip
