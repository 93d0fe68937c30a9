"""The page of one simulation: what stands on it, in text and in Chromium, and names of strangers."""

from __future__ import annotations

import re

import poison
import pytest

from linkwright.base import registry
from linkwright.show.report import simulation
from linkwright_cases import invoke, status_of

RING = ("simulate", "allreduce", "--algorithm", "ring", "--sizes", "64K")


def written(path, *arguments):
    result = invoke(*arguments, "--report", str(path))
    assert result.status == 0, result.err
    return path.read_text(encoding="utf-8")


def of_page(text):
    """The visible text of tables and paragraphs."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text.partition("<body>")[2]))


def test_the_page_says_how_long_how_good_and_why(tmp_path):
    shown = of_page(written(tmp_path / "a.html", *RING, "--on", "loggp", "-p", "4"))
    # 6 steps of 16 KiB: each is sent for (16384 - 1) B / 12.5 GB/s = 1.31064 us, and costs 1 us of latency and 0.4 us
    # of overhead; 3 of them combine 16 KiB at 10 GB/s, 1.6384 us: 6 * 2.71064 + 3 * 1.6384 = 21.18 us.
    assert "allreduce by ring on loggp" in shown
    assert "21.18 µs" in shown
    assert "no algorithm beats 7.864 µs (port), so it reaches" in shown
    assert "out of all ranks and memories together" in shown
    assert "The busiest link, rank 0 out," in shown
    assert "The critical path" in shown


def test_the_page_is_the_same_every_time(tmp_path):
    first, second = (written(tmp_path / f"{name}.html", *RING, "--on", "dgx1-p100") for name in "ab")
    assert first == second


def test_a_pattern_has_a_page_without_a_limit_of_the_problem(tmp_path):
    arguments = ("simulate", "pattern/neighbour", "--on", "dgx1-p100", "--sizes", "64K")
    assert "pattern by neighbour on dgx1-p100" in of_page(written(tmp_path / "a.html", *arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        (*RING, "--on", "loggp", "-p", "4", "--report", "a.txt"),
        ("simulate", "allreduce", "-a", "ring", "--sizes", "1K,2K", "--on", "loggp", "--report", "a.html"),
    ],
)
def test_what_has_no_page_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status_of(list(arguments)) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_of_strangers_are_text_and_the_console_is_quiet(browser, tmp_path, scheme):
    text = registry.machine_path("dgx1-p100").read_text(encoding="utf-8")
    hostile = poison.PAYLOADS[2]
    machine = tmp_path / "hostile.toml"
    machine.write_text(text.replace("PLX", hostile))
    page_file = tmp_path / "page.html"
    assert hostile.replace("<", "&lt;").replace(">", "&gt;") in written(page_file, *RING, "--on", str(machine))
    page, errors = browser.new_page(), []
    page.emulate_media(color_scheme=scheme)
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready]", timeout=30_000)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(40):
        page.keyboard.press("Tab")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img").count() == 0
    assert page.locator("main canvas").count() > 0
    assert errors == []
    page.close()


def test_a_path_that_repeats_the_schedule_says_what_the_picture_shows(tmp_path):
    arguments = ("simulate", "allreduce", "-a", "swing_latency", "--sizes", "1K", "--on", "wormhole-n150")
    assert "This path runs the schedule several times" in of_page(written(tmp_path / "a.html", *arguments))
    assert "several times" not in of_page(written(tmp_path / "b.html", *RING, "--on", "loggp", "-p", "4"))


def test_rounds_of_the_critical_path_are_one_row(tmp_path):
    """A ring of 8 sends 14 times: 7 that combine, 7 that only pass on."""
    assert list(simulation._turns("xababababyyyyz")) == [(0, 1, 1), (1, 2, 4), (9, 1, 4), (13, 1, 1)]
    assert list(simulation._turns("aabb")) == [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1)]
    text = written(tmp_path / "a.html", *RING, "--on", "loggp", "-p", "8")
    table = text.partition("Its operations</summary>")[2].partition("</table>")[0]
    counts = [
        int(row) for row in re.findall(r'<tr><td class="n "[^>]*>.*?</td><td class="n " data-sort="(\d+)"', table)
    ]
    assert sum(counts) >= 14
    assert len(counts) < 14
