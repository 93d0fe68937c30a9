"""What the charts are made of: looks of series, choices, bus bandwidth, sweeps that end rising."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from linkwright.show.report import html, model, runs, series
from linkwright.show.report.sections import collectives, rising, round_trips, values
from linkwright_evidence.report import plain

SIZE, TIME = model.Axis("size", "B", "log2"), model.Axis("time", "s", "log10")
CSS = (Path(html.__file__).parent / "assets" / "report.css").read_text(encoding="utf-8")


def run_of(*rows: dict) -> runs.Run:
    common = {"run": "r", "metric": "time", "unit": "ns", "status": "ok", "executor": "threads", "machine": "here"}
    return runs.Run(
        "r", runs.normalise(pd.DataFrame([common | {"experiment": str(n)} | r for n, r in enumerate(rows)]))
    )


def page_of(*charts: list[str]) -> model.Report:
    plots = [model.Plot("p", SIZE, TIME, [model.Curve(name, [1], [1]) for name in names]) for names in charts]
    return model.Report("r", sections=[model.Section("s", plots)])


def test_a_series_looks_the_same_in_every_chart_and_like_no_other():
    charts = [["ring", "tree", "swing"], ["swing", "bruck"], [f"series {n}" for n in range(40)], ["ring", "series 7"]]
    found = series.looks(page_of(*charts))
    assert list(found) == list(dict.fromkeys(itertools.chain(*charts)))
    assert len(set(found.values())) == len(found)
    first_page, again = series.looks(page_of(*charts)), series.looks(page_of(*reversed(charts)))
    assert first_page == found
    assert set(again) == set(found)


def test_eight_series_of_a_chart_have_eight_colours_and_markers():
    crowd = [[f"other {n}" for n in range(8)], [f"series {n}" for n in range(8)]]
    found = series.looks(page_of(*crowd))
    for names in crowd:
        assert len({found[name][0] for name in names}) == len({found[name][1] for name in names}) == 8


def test_more_series_than_looks_still_differ_within_each_chart():
    charts = [[f"{chart} {n}" for n in range(30)] for chart in "abcd"]
    found = series.looks(page_of(*charts))
    assert all(len({found[name] for name in names}) == 30 for names in charts)


def test_a_limit_takes_the_colour_of_its_series_and_a_group_is_grey():
    curves = [
        model.Curve("ring", [1], [2]),
        model.Curve("limit of ring", [1], [1], kind="limit", series="ring"),
        model.Curve("best seen", [1], [1], kind="limit"),
        model.Curve("slow", [1], [9], group="1 slower"),
    ]
    plot = model.Plot("p", SIZE, TIME, curves)
    looks = series.looks(model.Report("r", sections=[model.Section("s", [plot])]))
    data = html.json.loads(str(html.chart_data(plot, looks)))
    assert list(looks) == ["ring"]
    assert [curve["colour"] for curve in data["curves"]] == [looks["ring"][0]] * 2 + [None] * 2
    assert [curve["group"] for curve in data["curves"]] == ["", "", "", "1 slower"]


def test_every_colour_and_marker_exists():
    for theme in re.findall(r":root[^{]*{[^}]*}", CSS):
        assert len(re.findall(r"--s\d: #", theme)) == series.COLOURS
    script = (Path(html.__file__).parent / "assets" / "curve.js").read_text(encoding="utf-8")
    markers = re.search(r"LW.markers = \[(.*?)\n\];", script, re.S)[1]
    assert len(re.findall(r"LW\.polygon|LW\.star|c\.arc", markers)) == series.MARKERS


# Machado, Oliveira and Fernandes 2009, severity 1.
SIGHT = {
    "full": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(TO_XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089])  # exact enough for colours that are not black
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1])
def test_colours_are_told_apart_with_any_sight(theme, sight):
    colours = re.findall(r"--s\d: #(\w{6})", re.findall(r":root[^{]*{[^}]*}", CSS)[theme])
    seen = [lab(np.array(SIGHT[sight]) @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 14  # 2.3 is just noticeable


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([1e9, 2e9, 4e9], "still rising at 16 KiB: 4 GB/s ±1.2 %"),
        ([1e9, 3.9e9, 4e9], "best 4 GB/s ±1.2 % at 16 KiB"),
        ([1e9, 4e9, 2e9], "best 4 GB/s ±1.2 % at 4 KiB"),
        ([4e9], "best 4 GB/s ±1.2 % at 1 KiB"),
    ],
)
def test_no_best_is_claimed_where_a_sweep_ends_rising(rates, said):
    common = {"metric": "bandwidth", "unit": "B/s", "precision": 0.012, "grade": "tight"}
    run = run_of(*(common | {"value": rate, "size_bytes": 1024 * 4**k} for k, rate in enumerate(rates)))
    assert rising.words(run.rows) == said


def allreduce(count: int, **more) -> runs.Run:
    """Times of `count` algorithms at two sizes, the first the fastest, and their bus bandwidth of size over time."""
    about = {"collective": "allreduce", "ranks": 2} | more
    made = []
    for n, size in itertools.product(range(count), (1000, 64000)):
        time = (n + 1) * size / 10
        row = about | {"experiment": f"{n}/{size}", "algorithm": f"a{n:02}", "size_bytes": size, "limit": size / 20}
        row |= {"limit_name": "port", "bound": time * 0.9, "bound_name": "cut"}
        rate = {"metric": "bus_bw", "unit": "B/s", "value": size / time * 1e9, "limit": 20e9, "bound": None}
        made += [row | {"value": time}, row | rate]
    return run_of(*made)


def test_a_collective_shows_bus_bandwidth_and_time_by_size():
    rates, times, winners, numbers = collectives.section(allreduce(2)).parts[0].items
    assert [plot.title for plot in (rates, times)] == ["allreduce on here: bus bandwidth", "allreduce on here: time"]
    assert [[curve.name, *curve.y] for curve in rates.curves] == [
        ["a00", 10e9, 10e9], ["a01", 5e9, 5e9], ["limit", 20e9, 20e9],
    ]  # fmt: skip
    assert rates.summary == "Best 10 GB/s at 1,000 B (a00)"
    assert times.summary == "1,000 B: 100 ns (a00)"
    assert [cell.text for cell in winners.rows[0]][-3:] == ["10 GB/s", "50 %", "2.00×"]
    heads = [column.title for column in numbers.columns]
    assert heads[-2:] == ["% of limit", "Bound of this schedule"]
    assert [[row[1].text, row[-2].text, row[-1].text] for row in numbers.rows[:2]] == [
        ["a00", "50 %", "90 ns"], ["a01", "25 %", "180 ns"],
    ]  # fmt: skip


def test_the_winner_in_time_is_the_winner_in_percent():
    section = collectives.section(allreduce(5))
    for row in section.parts[0].items[2].rows:
        assert row[2].text == "a00"
    shares = {row[1].text: row[-2].sort for row in section.parts[0].items[3].rows}
    assert max(shares, key=shares.get) == "a00"


def test_what_is_slower_everywhere_is_one_grey_group():
    rates, times, *_ = collectives.section(allreduce(11)).parts[0].items
    for plot in (rates, times):
        assert [curve.name for curve in plot.curves if curve.group] == ["a07", "a08", "a09", "a10"]
        assert {curve.group for curve in plot.curves} == {"", "4 slower"}


def test_a_measured_machine_is_compared_with_the_best_seen():
    run = allreduce(2)
    best = {"best_seen": run.rows["limit"], "best_seen_name": ["copy_rate"] * len(run.rows)}
    rows = run.rows.assign(limit=[None] * len(run.rows), **best)
    run = runs.Run("r", runs.normalise(rows))
    rates, _, winners, _ = collectives.section(run).parts[0].items
    assert [curve.name for curve in rates.curves if curve.kind == "limit"] == ["best seen"]
    assert "% of best seen" in [column.title for column in winners.columns]
    assert "not a physical limit" in collectives.section(run).intro
    assert set(run.rows["yardstick_kind"]) == {runs.BEST_SEEN}


def test_a_modelled_page_says_nothing_of_measurements():
    run = allreduce(2, executor="sim", machine="model")
    intro = collectives.section(run).intro + values.how_drawn(run)
    assert "easured" not in intro
    assert "±%" not in [column.title for column in collectives.section(run).parts[0].items[2].columns]


def trips(sizes: int) -> runs.Run:
    about = {"algorithm": "round_trip", "collective": None, "ranks": 2, "unit": "ns"}
    grid = itertools.product(("pipe", "word_store"), range(sizes), range(sizes), round_trips.METRICS)
    return run_of(
        *(
            about | {"experiment": f"{t}/{a}/{b}", "axes": f"transport={t} out_bytes={64 << b}", "metric": metric}
            | {"size_bytes": 64 << a, "value": 10 * (a + b + 1)}
            for t, a, b, metric in grid
        )
    )  # fmt: skip


def test_round_trips_of_few_sizes_are_one_table():
    (table,) = round_trips.section(trips(2)).items
    assert [column.title for column in table.columns] == [
        "Transport", "Request", "Reply", "Median", "Mean", "99th percentile",
    ]  # fmt: skip
    assert len(table.rows) == 8
    assert [cell.text for cell in table.rows[1]] == ["pipe", "64 B", "128 B", "20 ns", "20 ns", "20 ns"]


def test_round_trips_of_many_sizes_are_one_chart_with_a_choice():
    (choice,) = round_trips.section(trips(4)).items
    assert [chart.title for chart in choice.items][:2] == ["pipe, median", "pipe, mean"]
    assert len(choice.items) == 6
    assert plain.dump(plain.load(plain.dump(choice))) == plain.dump(choice)
    page = html.page(model.Report("r", sections=[model.Section("s", [choice])]))
    assert page.count("<option>") == page.count("<figure") == 6
