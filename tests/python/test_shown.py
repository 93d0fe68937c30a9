"""Results, schedules and machines as Python and notebooks print them."""

import re
from html.parser import HTMLParser

import pytest

import linkwright as lw
from linkwright.base import registry
from linkwright.show import shown

RING = lw.schedule("allreduce", "ring", ranks=4, size="4K")


def row(**values):
    """The row of a measured time, with other values in some columns."""
    known = {
        "metric": "time", "collective": "allreduce", "ranks": 8, "size_bytes": 4096, "machine": "here",
        "executor": "threads", "value": 12_300.0, "unit": "ns", "precision": 0.012, "grade": "tight",
        "status": "ok", "reason": None, "limit": None,
    }  # fmt: skip
    return {**known, **values}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, "allreduce, 8 ranks, 4K on threads: 12.30 us ±1.2 % (tight)"),
        ({"precision": 0.6, "grade": "wide"}, "allreduce, 8 ranks, 4K on threads: 12.30 us ±60 % (wide)"),
        ({"precision": None, "grade": "single"}, "allreduce, 8 ranks, 4K on threads: 12.30 us (single)"),
        (
            {"precision": None, "grade": None, "executor": "sim", "limit": 6150.0},
            "allreduce, 8 ranks, 4K on here: 12.30 us, 50 % of limit",
        ),
        (
            {"value": None, "status": "waived", "reason": "needs a grid", "collective": None},
            "pattern, 8 ranks, 4K on threads: waived, needs a grid",
        ),
    ],
)
def test_a_result_is_one_line_with_its_precision(values, line):
    assert shown.line([row(**values)]) == line
    assert repr(lw.Result([row(**values)])) == str(lw.Result([row(**values)])) == f"<Result {line}>"


class Cells(HTMLParser):
    """The texts of a table's cells; a tag that is not of a table is an error."""

    def __init__(self, html):
        super().__init__()
        self.texts = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        assert tag in ("table", "caption", "tr", "th", "td")
        assert not attributes

    def handle_data(self, data):
        self.texts.append(data)


def test_a_notebook_shows_a_result_as_a_table_and_escapes_it():
    rate = {"metric": "bus_bw", "unit": "B/s", "value": 2.5e9, "limit": 1e10}
    hostile = row(machine="<script>&", executor="sim")
    texts = Cells(lw.Result([hostile, row(**rate), row(metric="clock", value=None)])._repr_html_()).texts
    assert texts == [
        "allreduce, 8 ranks, 4K on <script>&: 12.30 us ±1.2 % (tight)",
        "time", "12.30 us ±1.2 % (tight)", "bus_bw", "2.50 GB/s ±1.2 % (tight)", "25 % of limit",
    ]  # fmt: skip


def test_a_notebook_shows_a_schedule_and_a_machine_as_tables():
    assert Cells(RING._repr_html_()).texts == [
        "schedule of allreduce", "ranks", "4", "size", "4096 B", "operations", "24", "messages", "24",
    ]  # fmt: skip
    summary = "LogGP: latency, overhead, gap and bandwidth"
    text = registry.machine_path("loggp").read_text().replace(summary, "<b>a & b</b>")
    machine = lw.Machine.parse(text, "mine.toml")
    assert Cells(machine._repr_html_()).texts == [
        "loggp: <b>a & b</b>; any number of ranks", "fabric", "loggp", "size", "any number of ranks",
        "paths", "message", "numbers", "8, of which 0 fitted",
    ]  # fmt: skip
    assert "64 ranks, 12 memories" in Cells(lw.machine("wormhole-n150")._repr_html_()).texts


def test_a_printed_frame_shows_values():
    printed = str(lw.simulate(RING, "loggp").frame())
    assert max(map(len, printed.splitlines())) <= 80
    head, time = printed.splitlines()[:2]
    assert head.split()[:3] == ["metric", "value", "unit"]
    assert re.match(r"0 +time +9\.198240e\+03 +ns ", time)
    assert "status" in head


def test_a_builder_says_what_it_builds():
    assert repr(lw.Builder("broadcast", 3, "4K")) == "<Builder broadcast over 3 ranks, 4K>"
