"""What the tests of DeepEP print: rates of dispatch and combine, within a node, between nodes, and at low latency.

    [config] num_tokens=4096, hidden=7168, num_topk_groups=4, num_topk=8
    [tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 32: 43.10 GB/s (RDMA), 140.70 GB/s (NVL)
    [tuning] Best dispatch (BF16): SMs 24, NVL chunk 24, 153.20 GB/s (NVL), t: 453.49 us
    [rank 0] Dispatch bandwidth: 88.01 GB/s, avg_t=85.2 us | Combine bandwidth: 68.61 GB/s, avg_t=210.1 us
    [rank 0] dispatch: 61 GB/s (SO), 205 GB/s (SU), 310.1 us

Rates are of a GPU: what it receives over its links to the GPUs of the node (NVL, SU), and what goes between nodes for
it (RDMA, SO). The latter counts all tokens, also those for the own node. The steps of tuning are passed over.

Source: deepseek-ai/DeepEP, tests/test_intranode.py, test_internode.py, test_low_latency.py.
"""

from __future__ import annotations

import re

from .kinds import Link, Medium, TextReader
from .lines import MOST_MICROS, MOST_RATE, number, shown
from .matrices import MOST_LINKS
from .reading import TextReading

TOOL = "DeepEP"
_BEST = re.compile(r"\s*\[tuning\] Best (dispatch|combine)(?: \((\w{1,12})\))?\s*:(.*)")
_RANK = re.compile(r"\[rank (\d{1,6})\] (.*)")
_ONE = re.compile(r"(Dispatch|Combine|Dispatch \+ combine) bandwidth: (\S+) GB/s, avg_t=(\S+) us")
_RATE = re.compile(r"(\S+) GB/s(?: \(([\w ]{1,12})\))?")
_TIME = re.compile(r"\b(?:avg_t|t|transmit): (\S+) us|\), (\S+) us\b")
_SCALED = re.compile(r"\b((?:\w+ )?(?:dispatch|combine)): (\S+) GB/s \(SO\), (\S+) GB/s \(SU\)")
_MEDIA: dict[str, Medium] = {"RDMA": "scale-out", "NVL": "scale-up", "NVL recv": "scale-up", "": "scale-up"}


class _Reading(TextReading):
    tool = TOOL

    def line(self, at: int, label: str, text: str) -> None:
        if match := _BEST.match(text):
            test = f"{match[1]} ({match[2]})" if match[2] else match[1]
            time = _TIME.search(match[3])
            rates = [(_MEDIA.get(tag), rate) for rate, tag in _RATE.findall(match[3])]
            self._take(at, text, "GPU", [(test, medium, rate) for medium, rate in rates if medium], time)
        elif "[rank" in text and (ranks := _RANK.findall(text.replace("[rank", "\n[rank"))):
            for rank, rest in ranks:
                if match := _SCALED.search(rest):
                    found = [(match[1], "scale-out", match[2]), (match[1], "scale-up", match[3])]
                    self._take(at, text, f"rank {rank}", found, _TIME.search(rest))
                for test, rate, took in _ONE.findall(rest):
                    self._take(at, text, f"rank {rank}", [(test.lower(), "exchange", rate)], None, took)
        elif match := _SCALED.search(text):
            found = [(match[1], "scale-out", match[2]), (match[1], "scale-up", match[3])]
            self._take(at, text, "GPU", found, _TIME.search(text))
        elif text.strip() and not text.lstrip().startswith("[tuning]") and not self.gathered.see(text, label):
            self.skipped += 1

    def _take(
        self, at: int, text: str, source: str, rates: list[tuple[str, Medium, str]],
        time: re.Match[str] | None, took: str | None = None,
    ) -> None:  # fmt: skip
        took = took if took is not None else (time[1] or time[2]) if time else None
        us = None if took is None else number(took, MOST_MICROS)
        values = [number(rate, MOST_RATE) for _, _, rate in rates]
        if not rates or None in values or not any(values) or (took is not None and not us):
            self.complaints.add(at, f"not a rate of dispatch or combine: `{shown(text)}`")
            return
        for (test, medium, _), value in zip(rates, values, strict=True):
            if value and len(self.links) < MOST_LINKS:  # no RDMA within a node
                self.links.append(Link(TOOL, test, medium, source, None, value, at, time=us))


def _knows(text: str) -> bool:
    if "[tuning] Best" in text:
        return _BEST.match(text) is not None
    return "GB/s" in text and (_SCALED.search(text) is not None or ("[rank" in text and _ONE.search(text) is not None))


READER = TextReader(
    TOOL, "the text of DeepEP's tests of dispatch and combine", "deepseek-ai/DeepEP, tests", ("[tuning] Best", "GB/s"),
    _knows, _Reading,
)  # fmt: skip
