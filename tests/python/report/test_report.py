"""What the page holds, without a browser: words, numbers, escaping, determinism."""

from __future__ import annotations

import json
import re

import made
import numpy as np
import pages
import pandas as pd
import pytest
import synthetic
from reading import words

from linkwright.base.errors import StoreError
from linkwright.show import report
from linkwright.show.report import dissect, html, model, quantity, runs
from linkwright.show.report.sections import collectives, matrices, spread, status, values


@pytest.mark.parametrize("name", ["run", "study"])
def test_golden_words(name, request):
    found = words(request.getfixturevalue(f"{name}_page").read_text(encoding="utf-8"))
    expected = (pages.GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert found == expected, "differs from tests/golden/report; tests/python/report/pages.py writes it again"


def test_the_first_table_on_a_terminal(tmp_path):
    assert pages.glance(tmp_path) == (pages.GOLDEN / "glance.txt").read_text(encoding="utf-8")


def test_what_a_share_is_of():
    run = run_of(
        {"value": 3.7e11, "unit": "Flop/s", "best_seen": 3.4e11, "best_seen_name": "flop_rate"},
        {"value": 3.4e11, "unit": "Flop/s", "limit": 6.8e11, "limit_name": "gpu_peak"},
    )
    seen, limited = (values.of_limit(row) for row in run.rows)
    assert (seen.text, seen.share, seen.detail) == ("109 %", 1.0, "of the best seen, 340 GFlop/s (flop rate)")
    assert (limited.text, limited.share, limited.detail) == ("50 %", 0.5, "of 680 GFlop/s, gpu peak")


@pytest.mark.parametrize(
    ("grade", "more", "tone", "mark", "detail"),
    [
        ("tight", {"precision": 0.012, "n": 12}, "strong", "", "±1.2 %, tight, n 12"),
        ("fair", {"precision": 0.07, "n": 6, "flags": "moved,disturbed"}, "strong", "disturbed", "±7.0 %, fair, n 6"),
        ("wide", {"precision": 60.7, "n": 6}, "warn", "", "±6,070 %, wide, n 6"),
        ("single", {"n": 2}, "quiet", "", "single, n 2"),
        (None, {"executor": "sim"}, "strong", "", ""),
    ],
)
def test_every_value_says_how_far_to_trust_it(grade, more, tone, mark, detail):
    cell = values.value(run_of({"value": 34, "grade": grade} | more).rows[0])
    assert (cell.tone, cell.mark, cell.detail) == (tone, mark, detail)


def test_one_part_is_its_own_summary(tmp_path):
    frame = synthetic.rows()
    one = frame[frame["experiment"].str.startswith(frame["experiment"].iloc[0].partition("/")[0] + "/")]
    assert report.conclude(synthetic.folder(tmp_path / "x", one))[0] == []


def test_same_folder_same_bytes(tmp_path):
    folder = synthetic.folder(tmp_path / "demo")
    first = report.render(folder).read_bytes()
    assert report.render(folder, tmp_path / "again.html").read_bytes() == first


def test_page_loads_nothing_from_elsewhere(run_page):
    page = run_page.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert "Copyright (c) 2022 Leon Sorokin" in page  # the licence of uPlot travels with it
    assert not re.search(r"<(script|img|iframe)[^>]+\bsrc=|<link[^>]+href=\"(?!data:)", page)
    assert len(page) < 700_000


def test_names_are_escaped_everywhere(study_page):
    page = study_page.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)
    assert any(json.loads(block).get("boxes", [{}])[0].get("name") == synthetic.NASTY for block in blocks)


def test_hostile_names_in_results(tmp_path):
    frame = synthetic.rows()
    frame["algorithm"] = frame["algorithm"] + synthetic.NASTY
    frame["reason"] = frame["reason"] + synthetic.NASTY
    frame["placement"] = frame["placement"] + synthetic.NASTY.replace(">", "")
    assert "<script>alert" not in report.render(synthetic.folder(tmp_path / "x", frame)).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (4.312e-8, "s", "43.12 ns"),
        (0, "s", "0 s"),
        (1.0, "s", "1 s"),
        (65536, "B", "64 KiB"),
        (0, "B", "0 B"),
        (22.25e9, "B/s", "22.25 GB/s"),
        (3, "1", "3"),
        (12.5, "cycles", "12.5 cycles"),
        (9.99996e-7, "s", "1 µs"),
    ],
)
def test_quantities(value, unit, shown):
    assert quantity.text(value, unit) == shown


def test_digits_follow_the_interval():
    assert quantity.with_interval(43.21e-9, 41e-9, 47e-9, "s") == ("43.2 ns", "41.0 – 47.0")
    assert quantity.with_interval(43.2123e-9, 43.2e-9, 43.22e-9, "s") == ("43.212 ns", "43.200 – 43.220")
    assert quantity.with_interval(1.0, None, None, "B/s") == ("1 B/s", "")


def run_of(*rows: dict, samples: pd.DataFrame | None = None) -> runs.Run:
    common = {"run": "r", "metric": "time", "unit": "ns", "status": "ok", "executor": "threads", "machine": "here"}
    frame = pd.DataFrame([common | {"experiment": str(n)} | row for n, row in enumerate(rows)])
    return runs.Run("r", runs.normalise(frame), made.columns(pd.DataFrame() if samples is None else samples))


def test_share_of_a_limit_never_depends_on_the_direction():
    run = run_of({"value": 200, "limit": 100}, {"value": 8.0, "limit": 10.0, "unit": "GB/s", "metric": "bandwidth"})
    assert run.rows["share"].tolist() == [0.5, 0.8]


def test_winners_split_where_the_order_changes():
    times = pd.DataFrame({8: (50, 10), 64: (60, 59.5), 512: (70, 200)}, index=["ring", "tree"]).stack()
    rows = [
        {"collective": "allreduce", "algorithm": name, "size_bytes": size, "value": value, "n": 12}
        | {"ci_low": value - 1, "ci_high": value + 1}
        for (name, size), value in times.items()
    ]
    section = collectives.section(run_of(*rows))
    table = next(item for item in section.parts[0].items if getattr(item, "title", "").startswith("Fastest algorithm"))
    found = [[row[0].text, row[1].text, row[2].text, row[-1].detail] for row in table.rows]
    assert found == [
        ["8 B", "64 B", "tree", "not separable from ring"],
        ["512 B", "512 B", "ring", "over tree"],
    ]


def test_missing_is_empty_with_its_reason():
    about = {"collective": "allreduce", "size_bytes": 8}
    waived = about | {"algorithm": "swing", "status": "waived", "reason": "needs p = 2^k"}
    page = words(html.page(dissect.report(run_of(waived, about | {"algorithm": "ring", "value": 10}))))
    assert "needs p = 2^k" in page
    assert "N/A" not in page
    assert "nan" not in page.lower().split()


def pairs_of(names: str, values_ns: dict[tuple[str, str], float]) -> runs.Run:
    about = {"collective": "pattern", "algorithm": "ping_pong", "metric": "latency", "size_bytes": 8}
    every = ((a, b) for a in names for b in names if a != b)
    return run_of(*(about | {"placement": f"{a}>{b}", "value": values_ns.get((a, b), 10)} for a, b in every))


def test_a_full_set_of_pairs_is_a_matrix_with_direction():
    heat, groups = matrices.section(pairs_of("abcd", {("b", "a"): 20})).items
    assert [row[1].text for row in groups.rows] == ["level 1", "level 2"]
    assert heat.rows == ["a", "b", "c", "d"]
    assert heat.values[0, 1] == np.float32(10e-9)
    assert heat.values[1, 0] == np.float32(20e-9)
    assert np.isnan(heat.values[1, 1])


def test_few_pairs_are_a_table():
    table = matrices.section(pairs_of("ab", {("b", "a"): 20})).items[0]
    assert [[cell.text.replace("\u00a0", " ") for cell in row] for row in table.rows] == [
        ["a → b", "10 ns"],
        ["b → a", "20 ns"],
    ]


@pytest.mark.parametrize(("rows", "columns", "tables"), [(3, 9, 1), (9, 3, 1), (4, 4, 0)])
def test_a_map_below_four_by_four_is_a_table(rows, columns, tables):
    grid = np.arange(rows * columns, dtype=float).reshape(rows, columns) + 1
    heat = model.HeatMap("m", "s", [f"r{n}" for n in range(rows)], [f"c{n}" for n in range(columns)], grid)
    page = html.page(model.Report("r", sections=[model.Section("s", [heat])]))
    assert page.count("<table") == tables
    if tables:
        shown = html.matrix_table(heat)
        assert (len(shown.rows), len(shown.columns)) == (9, 4)
        cells = {(row[0].text, head.title): cell.sort for row in shown.rows
                 for head, cell in zip(shown.columns[1:], row[1:], strict=True)}  # fmt: skip
        assert cells[("c1", "r2") if rows == 3 else ("r2", "c1")] == grid[2, 1]


def test_modes_are_told():
    metrics = {"time": 34, "mode1": 34, "mode1_share": 0.62, "mode2": 171, "mode2_share": 0.38}
    about = {"experiment": "e", "collective": "barrier", "algorithm": "linear"}
    rows = [
        about | {"metric": name, "value": value, "unit": "1" if "share" in name else "ns"}
        for name, value in metrics.items()
    ]
    page = words(html.page(dissect.report(run_of(*rows)))).replace("\u00a0", " ")
    assert "two modes: 34 ns (62 %), 171 ns (38 %)" in page


def test_an_experiment_counts_once_by_its_worst_row():
    failed = {"experiment": "e", "status": "failed", "metric": "wrong"}
    found = status.experiments(run_of({"experiment": "e", "value": 1}, failed, {"value": 2}))
    assert found["status"].tolist() == ["failed", "ok"]


def test_empty_and_interrupted_runs(tmp_path):
    empty = report.render(synthetic.folder(tmp_path / "empty", synthetic.rows().iloc[:0]))
    assert "empty" in empty.read_text(encoding="utf-8")
    with pytest.raises(StoreError, match="neither results"):
        report.render(tmp_path / "nothing")
    (tmp_path / "empty" / "results.parquet").write_bytes(b"half a file")
    with pytest.raises(StoreError, match="is not a whole Parquet file"):
        report.render(tmp_path / "empty")


def test_types_refuse_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="2 values of y for 1 of x"):
        model.Curve("c", [1], [1, 2])
    with pytest.raises(ValueError, match="row 0 has 1 cells for 2 columns"):
        model.Table("t", [model.Column("a"), model.Column("b")], [["x"]])
    with pytest.raises(ValueError, match="its names give"):
        model.HeatMap("h", "s", ["a"], ["a"], np.zeros((2, 2)))


def test_parts_of_a_suite_are_not_mixed():
    about = {"collective": "pattern", "algorithm": "pairs", "metric": "bandwidth", "unit": "B/s"}
    sizes = [{"part": "bw", "experiment": f"bw/{s}", "ranks": 2, "size_bytes": s, "value": s} for s in (8, 64, 512)]
    loads = [{"part": "load", "experiment": f"load/{r}", "ranks": r, "size_bytes": 8, "value": r} for r in (2, 4)]
    sections = dissect.report(run_of(*(about | row for row in sizes + loads))).sections
    plots = {section.title: section.items for section in sections}
    assert [list(curve.x) for curve in plots["By message size"][0].curves] == [[8, 64, 512]]
    assert [list(curve.x) for curve in plots["Under load"][0].curves] == [[2, 4]]
    questions = [row[0].text for row in plots["At a glance"][0].rows]
    assert questions == ["Bw: bandwidth, best size", "Load: bandwidth, all at once"]


def test_collectives_on_the_most_ranks_are_told():
    about = {"collective": "allreduce", "metric": "time"}
    times = [("ring", 2, 8, 1), ("ring", 8, 64, 9), ("tree", 8, 64, 7), ("tree", 8, 512, 70)]
    rows = [
        about | {"experiment": f"all/{n}", "algorithm": name, "ranks": ranks, "size_bytes": size, "value": value}
        for n, (name, ranks, size, value) in enumerate(times)
    ]
    sections = {section.title: section for section in dissect.report(run_of(*rows)).sections}
    questions = [[row[0].text, row[1].detail.splitlines()[0]] for row in sections["At a glance"].items[0].rows]
    assert questions == [["allreduce, 64 B", "tree, 8 ranks"], ["allreduce, 512 B", "tree, 8 ranks"]]
    winners = next(i for i in sections["Collectives"].parts[0].items if i.title.startswith("Fastest algorithm"))
    assert [row[2].text for row in winners.rows] == ["tree, 8 ranks"]


def test_patterns_of_one_part_are_told_apart():
    about = {"part": "traffic", "collective": "pattern", "metric": "time", "ranks": 4, "size_bytes": 8}
    rows = [
        about | {"experiment": f"traffic/{name}", "algorithm": name, "value": 5} for name in ("hot_spot", "tornado")
    ]
    table = dissect.report(run_of(*rows)).sections[0].items[0]
    names = [row[0].text for row in table.rows]
    assert names == ["Traffic, hot spot: time, smallest message", "Traffic, tornado: time, smallest message"]


def test_the_least_steady_experiment_comes_first():
    launches = [(name, k, 100 + k * width) for name, width in (("calm", 0.1), ("wild", 9)) for k in range(8)]
    samples = pd.DataFrame(launches, columns=["experiment", "launch", "value_ns"]).assign(rank=None)
    (plot,) = spread.section(run_of({"experiment": "calm", "value": 1}, samples=samples)).items
    assert [box.n for box in plot.boxes] == [8, 8]
    assert plot.boxes[0].name == "wild"
