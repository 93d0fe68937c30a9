"""Pages of `explain`: what stands on them, how large they are, and that texts of a log stay text."""

from __future__ import annotations

import json
import re

import poison
import pytest

from linkwright.advise.explain.system import System
from linkwright.base import registry
from linkwright.store.run import find
from linkwright_cases import invoke, status_of
from log_cases import nccl

NODE = System("hgx-h100", 1, 8, None, "nccl-2.27", "allreduce")
SIZES = (1 << 14, 1 << 20, 1 << 26, 1 << 30)
RING = ("allreduce/ring", "--on", "dgx1-p100", "--size", "64M")


def log_of(folder, system=NODE, name="NVIDIA H100 80GB HBM3", sizes=SIZES, file="all_reduce.log"):
    times = {size: system.time(size).time_us for size in sizes}
    made = folder / file
    made.write_text(nccl(times=times, in_place=False, name=name, ranks=system.ranks, nodes=system.nodes))
    return made


def page_of(path, *arguments):
    result = invoke("explain", *arguments, "--report", str(path))
    assert result.status == 0, result.err
    assert result.out.endswith(f"wrote {path}\n")
    return path.read_text(encoding="utf-8")


def of_page(text):
    """The visible text of tables and paragraphs."""
    words = text.partition("<body>")[2].replace("<wbr>", "")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", words))


def test_the_page_of_a_log_says_what_is_wrong(tmp_path):
    made = log_of(tmp_path, NODE.having(algorithm="nccl-2.27/ring"))
    shown = of_page(page_of(tmp_path / "a.html", str(made), "--on", "hgx-h100"))
    assert "all_reduce.log: allreduce of 8 ranks suspicious" in shown
    assert "you have 360 GB/s, a healthy machine has 477" in shown
    assert "the library uses Ring" in shown
    assert "env | grep NCCL_" in shown
    assert "What binds a healthy machine at 1G" in shown
    assert "nvlink" in shown.partition("Time if twice as good")[2]
    assert "The healthy machine and the nearest hypothesis, in step" in shown


def test_two_tables_are_two_sections(tmp_path):
    made = log_of(tmp_path)
    made.write_text(2 * made.read_text())
    assert of_page(page_of(tmp_path / "a.html", str(made))).count("allreduce of 8 ranks: fine") == 4  # and in contents


def test_the_page_of_a_schedule_plays_it_beside_a_faster_one(tmp_path):
    shown = of_page(page_of(tmp_path / "a.html", *RING))
    assert "allreduce/ring of 64M on dgx1-p100" in shown
    assert "2 schedules on dgx1-p100, in step" in shown
    assert "allreduce/hamiltonian_rings_bidirectional" in shown


def test_the_pages_of_a_run_and_of_a_row(tmp_path):
    runs = ("--runs", str(tmp_path / "runs"))
    assert status_of(["dissect", "scaling", "--on", "loggp", "-p", "4", "--level", "quick", *runs]) == 0
    shown = of_page(page_of(tmp_path / "a.html", "latest", *runs))
    assert "The largest size of each collective" in shown
    rows = find(tmp_path / "runs", "latest").results().records()
    name = next(row["experiment"] for row in rows if row["algorithm"] == "ring" and row["value"])
    shown = of_page(page_of(tmp_path / "b.html", f"latest:{name}", *runs))
    assert f"{name} on loggp" in shown
    assert "Faster in this run" in shown
    assert "In motion" in shown
    assert invoke("draw", f"latest:{name}", "--out", str(tmp_path / "c.html"), *runs).status == 0
    assert f"allreduce/ring, {name.split(chr(47))[4]}, " in (tmp_path / "c.html").read_text()
    answer = invoke("draw", f"latest:{name}s", "--out", str(tmp_path / "b.svg"), *runs)
    assert (answer.status, f"did you mean `{name}`" in answer.err) == (2, True)


def test_the_page_of_64_ranks_is_small_and_the_same_every_time(tmp_path):
    eight = System("hgx-h100", 8, 8, "ndr-fat-tree", "nccl-2.27", "allreduce")
    made = log_of(tmp_path, eight.having(fabric="sockets"), sizes=(1 << 20, 1 << 28))
    asked = (str(made), "--on", "hgx-h100", "--nodes", "8", "--fabric", "ndr-fat-tree")
    first, second = (page_of(tmp_path / f"{name}.html", *asked) for name in "ab")
    assert first == second
    assert len(first) < 3 << 20
    assert "lwp-panels" in first


@pytest.mark.parametrize("place", ["a.txt", "none/a.html"])
def test_a_page_without_a_place_is_refused_before_any_work(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    assert status_of(["explain", *RING, "--report", place]) == 2
    assert not list(tmp_path.iterdir())


@pytest.fixture
def quiet(browser):
    """Opens a page, walks through it by keyboard, and fails on errors and scripts of strangers."""
    errors = []

    def look(path, scheme="light", ready="body[data-ready]"):
        page = browser.new_page()
        page.emulate_media(color_scheme=scheme)
        page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(ready, timeout=30_000)
        for _ in range(20):
            page.keyboard.press("Tab")
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.querySelectorAll('main img, main iframe').length") == 0
        page.close()

    yield look
    assert errors == []


@pytest.mark.browser
@pytest.mark.parametrize("number", range(len(poison.PAYLOADS)))
def test_texts_of_a_log_run_no_script(quiet, tmp_path, number):
    """The payload stands behind the device, the host, the type and in lines that look like rows."""
    payload = poison.PAYLOADS[number]
    made = log_of(tmp_path, NODE.having(algorithm="nccl-2.27/ring"), f"NVIDIA H100 80GB HBM3 {payload}")
    broken = f"   1048576   262144   float{payload}  sum  -1  {payload}  1.00  1.00  0\n 2048 {payload}\n"
    made.write_text(made.read_text() + broken + f"node0:1:1 [0] NCCL INFO {payload}\n")
    file = tmp_path / "a.html"
    assert "pwned=1" in page_of(file, str(made))
    quiet(file, ("light", "dark")[number % 2])


@pytest.mark.browser
@pytest.mark.parametrize("number", range(len(poison.PAYLOADS)))
def test_names_of_a_machine_run_no_script_in_any_picture(quiet, tmp_path, number):
    text = registry.machine_path("dgx1-p100").read_text(encoding="utf-8")
    machine = tmp_path / "hostile.toml"
    machine.write_text(text.replace("PLX", json.dumps(poison.PAYLOADS[number])[1:-1]), encoding="utf-8")
    on, schedule = ("--on", str(machine)), "allreduce/ring"
    asked = {
        "explain.html": ("explain", schedule, *on, "--size", "64K", "--report"),
        "draw.html": ("draw", schedule, *on, "--size", "64K", "--out"),
        "draw.svg": ("draw", schedule, *on, "--size", "64K", "--out"),
        "simulate.html": ("simulate", "allreduce", "-a", "ring", "--sizes", "64K", *on, "--report"),
    }
    for name, words in asked.items():
        answer = invoke(*words, str(tmp_path / name))
        assert answer.status == 0, answer.err
    for name, ready in {"explain.html": "body[data-ready]", "draw.html": "figure[data-ready]",
                        "simulate.html": "body[data-ready]", "draw.svg": "svg"}.items():  # fmt: skip
        quiet(tmp_path / name, ready=ready)
