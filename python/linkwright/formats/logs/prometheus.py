"""Metrics that NCCL's Inspector writes for Prometheus, as its exporter's text: rates of a running job.

    nccl_bus_bandwidth_gbs{version="v5.1",node="n0",gpu="GPU0",comm_name="DP",n_nodes="1",nranks="8",
                           collective="AllReduce",message_size="1-2GB",algo_proto="RING_SIMPLE"} 470.2

in one line each. `message_size` is a range, whose lower end is taken for the size: sizes of programs are mostly powers
of two, which ranges begin with. The time follows from the rate. Each GPU has rates of its own, which hold its waiting
for the others; a table has a row for each.

Source: NCCL, plugins/profiler/inspector, README, Prometheus Output Mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from linkwright.base.units import KILO

from . import checks
from .facts import Gathered
from .inspector import BY_RANK, COLLECTIVES
from .kinds import LogRow, LogTable, TextReader
from .lines import MOST_RATE, MOST_ROWS, MOST_SIZE, number, shown, whole
from .reading import REDUCES, TextReading

TOOL = "NCCL Prometheus"
_LINE = re.compile(
    r"\s*(nccl_(?:p2p_)?bus_bandwidth_gbs)\{((?:[a-zA-Z_]\w*=\"(?:[^\"\\]|\\.)*\",?)*)\}\s+(\S+)(?:\s+-?\d+)?\s*"
)
_METRIC = re.compile(r"\s*nccl_(?:p2p_)?bus_bandwidth_gbs\{")
_LABEL = re.compile(r"([a-zA-Z_]\w*)=\"((?:[^\"\\]|\\.)*)\"")
# A range of whole units, or one size.
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(?:-(\d{1,9}))?\s?([KMGT]?)i?B")
_FACTORS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MOST_RANKS = 1 << 22

_Key = tuple[str, int, int | None]  # collective, ranks, nodes


class _Reading(TextReading):
    """The metrics so far."""

    tool = TOOL
    waits = True

    def __init__(self, gathered: Gathered) -> None:
        super().__init__(gathered)
        self.rows: dict[_Key, list[LogRow]] = {}
        self.count = 0

    def line(self, at: int, label: str, text: str) -> None:
        """Take a rate; other metrics are counted."""
        if not _METRIC.match(text):
            self.skipped += bool(text.strip())
        elif (found := _row(at, text)) is None:
            self.complaints.add(at, f"no rate of a collective with its ranks and its size: `{shown(text)}`")
        elif self.count < MOST_ROWS:
            self.count += 1
            self.rows.setdefault(found[0], []).append(found[1])

    def found(self) -> Iterator[LogTable]:
        """A table for each collective, number of ranks and of nodes."""
        if self.rows:
            self.gathered.facts.library = "NCCL"
        return (
            LogTable(TOOL, name, ranks, nodes, None, "sum" if name in REDUCES else None, None, tuple(rows))
            for (name, ranks, nodes), rows in self.rows.items()
        )


def _row(at: int, text: str) -> tuple[_Key, LogRow] | None:
    """The table that a line belongs to, and its row; None if the line lacks what it needs."""
    match = _LINE.fullmatch(text)
    labels: dict[str, str] = dict(_LABEL.findall(match[2])) if match else {}
    name = COLLECTIVES.get(labels.get("collective", labels.get("p2p_operation", "")))
    ranks = whole(labels.get("nranks", labels.get("n_ranks")), _MOST_RANKS)
    size, rate = _size(labels.get("message_size", "")), number(match[3], MOST_RATE) if match else None
    if name is None or not ranks or not size or not rate or ranks < 2:
        return None
    if name in BY_RANK:
        size *= ranks
    algbw = rate / checks.bus_factor(name, ranks)
    time = size / algbw / KILO
    if not math.isfinite(time) or size > MOST_SIZE:
        return None
    return (name, ranks, whole(labels.get("n_nodes"), _MOST_RANKS)), LogRow(size, time, at, algbw, rate)


def _size(text: str) -> int | None:
    """Bytes at the lower end of a range such as `4-5GB`, whose units are powers of 1024."""
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and float(match[1]) >= int(match[2])):
        return None
    return int(float(match[1]) * (1 << _FACTORS[match[3]]))


READER = TextReader(
    TOOL, "the metrics of NCCL's Inspector in Prometheus' text format", "NCCL, plugins/profiler/inspector, README",
    ("bus_bandwidth_gbs{",), _METRIC.match, _Reading,
)  # fmt: skip
