"""The first screen: verdicts, tiles, the earlier run, short names, and the same in the terminal."""

from __future__ import annotations

import json
import re

import made
import pandas as pd
import pytest
import synthetic
from reading import words

from linkwright.show import report
from linkwright.show.report import dissect, html, runs
from linkwright.show.report.first import earlier, overview, tiles, verdict
from linkwright.show.report.model import Finding
from linkwright.show.report.sections import glance, status
from linkwright.store import tally

ODD = Finding("L3 hides", "although it should not", "Look.", 50)
WEAK = Finding("The run is wide", "where it should be tight", "Repeat.", 60, subject="run")


def stated(run, found):
    return verdict.verdict(run, "here", found)


def test_a_healthy_machine_says_how_far_to_trust_it():
    run = made.run_of(*[made.sure(10, half) for half in (0.01, 0.08, 0.09, 0.04, 0.5)])
    assert stated(run, []) == (
        "healthy",
        "Nothing contradicts what it claims. 80 % of 5 values are tight or fair, none disturbed: "
        "trust the numbers within their ±.",
    )


def test_what_is_suspicious_comes_first_and_a_weak_run_is_not_a_sick_machine():
    run = made.run_of(*[made.sure(10, 0.5) | {"flags": "disturbed"}] * 4)
    state, sentence = stated(run, [WEAK, ODD])
    assert (state, sentence.partition(". ")[0]) == ("suspicious", "L3 hides, although it should not")
    assert "100 % disturbed: trust orders of magnitude" in sentence
    state, sentence = stated(run, [WEAK])
    assert (state, sentence.partition(". ")[0]) == ("unsure", "Nothing contradicts what it claims, but the run is weak")
    assert stated(made.run_of({"status": "waived", "reason": "no"}), [])[0] == "unsure"


def test_a_model_is_judged_by_its_published_values():
    rows = [{"value": 10.0, "reference": reference} | made.MODEL for reference in (10.0, 9.5, 7.0)]
    state, sentence = verdict.verdict(made.run_of(*rows), "drawn", [])
    assert state == "healthy"
    assert sentence.endswith("exact and without noise; 2 of 3 published values are met within 10 %.")


def test_a_tile_compares_a_measured_value_with_the_best_seen():
    (row,) = made.pairs({("a", "b"): 50.0}, best_seen=40.0, best_seen_name="cache_line")
    run = made.run_of(row, *made.allreduce((8, 100)))
    tile = tiles.latency(run, "here")
    assert (tile.value, tile.precision, tile.about) == ("50.00 ns", "±1.0 %", "8 B, a → b")
    assert (list(tile.compared), tile.rated) == ([("best seen", "40 ns, cache line: 80 %")], "80 % of best seen")


def test_a_tile_compares_a_modelled_value_with_its_limit_and_what_is_published():
    about = made.MODEL | {"limit": 40.0, "limit_name": "latency", "reference": 45.0}
    values = {(a, b): value for a, b, value in (("a", "b", 50), ("b", "a", 50), ("a", "c", 60), ("c", "a", 90))}
    run = made.run_of(*made.pairs(values, **about))
    tile = tiles.latency(run, "drawn")
    assert (tile.value, tile.precision, tile.about) == ("60.00 ns", "exact", "8 B, median of 4 pairs")
    assert list(tile.more) == ["50 ns to 90 ns over all pairs"]
    assert list(tile.compared) == [("limit", "40 ns, latency: 67 %"), ("published", "45 ns: +33.3 %")]


def test_wide_is_amber_and_single_is_grey():
    row = made.run_of(made.sure(10, 0.3), {"value": 10.0, "n": 2, "grade": "single"}).rows
    assert [tiles.precision(row[k]) for k in range(2)] == [("±30 %", "warn"), ("single", "quiet")]


def test_the_collective_tile_states_both_sizes():
    tile = tiles.all_together(made.run_of(*made.allreduce((8, 100), (1 << 20, 9000))), "here")
    assert (tile.value, tile.about) == ("100.0 ns", "allreduce, 8 B, ring, 2 ranks")
    assert list(tile.more) == ["9.000 µs ±1.0 % at 1 MiB, ring"]


@pytest.mark.parametrize(("last", "limit", "rises"), [(2e9, None, True), (2e9, 2.1e9, False), (1.02e9, None, False)])
def test_the_end_of_a_rising_sweep_is_not_called_the_best(last, limit, rises):
    about = {"collective": "pattern", "algorithm": "pairs", "metric": "bandwidth", "unit": "B/s", "ranks": 2}
    rates = [about | {"size_bytes": size, "limit": limit} | made.sure(rate) for size, rate in ((8, 1e9), (64, last))]
    tile = tiles.bandwidth(made.run_of(*rates), "here")
    assert tile.about == ("64 B, the last size, and still rising" if rises else "64 B, the best size")


def test_a_rate_of_the_caches_is_not_taken_for_that_of_memory():
    about = {"algorithm": "memory_bandwidth", "metric": "bandwidth", "unit": "B/s", "axes": "kernel=triad width=widest"}
    cached = about | {"ranks": 1, "size_bytes": 8192} | made.sure(9e10)
    tile = tiles.local_memory(made.run_of(cached, environment=made.host()), "here")
    assert (tile.value, tile.about) == ("", "nothing was measured beyond the caches")
    beyond = about | {"ranks": 1, "size_bytes": 64 << 20} | made.sure(2e10)
    tile = tiles.local_memory(made.run_of(cached, beyond, environment=made.host()), "here")
    assert (tile.value, tile.about) == ("20.00 GB/s", "triad, 1 thread, blocks of 64 MiB")


def test_a_run_of_one_question_has_one_tile():
    run = made.run_of(*made.allreduce((8, 100)))
    assert [tile.title for tile in tiles.tiles(run, "here")] == ["Collectives"]
    both = made.run_of(*made.allreduce((8, 100)), *made.pairs({("a", "b"): 5}))
    assert [bool(tile.value) for tile in tiles.tiles(both, "here")] == [True, False, False, True]


@pytest.fixture
def two(tmp_path):
    """Two runs of one host, the second 30 % slower, and others that must not be taken for the earlier one."""
    frame = synthetic.rows()
    environment = json.dumps(synthetic.ENVIRONMENT)
    made_of = {
        "20261121-100000-dissect": (frame, environment, "done"),
        "20261121-110000-dissect": (frame, environment.replace("Xeon", "Atom"), "done"),
        "20261121-120000-scaling": (frame, environment, "done"),
        "20261121-130000-dissect": (frame, environment, "running"),
        "20261121-150000-dissect": (frame, environment, "done"),
    }
    slower = frame.assign(**{name: frame[name] * 1.3 for name in ("value", "ci_low", "ci_high")})
    for name, (rows, said, state) in {**made_of, "20261121-140000-dissect": (slower, environment, "done")}.items():
        folder = synthetic.folder(tmp_path / name, rows)
        (folder / "environment.json").write_text(said)
        plan = {**synthetic.PLAN, "id": name, "state": state, "request": {"on": "threads,wormhole-n150"}}
        (folder / "run.json").write_text(json.dumps(plan))
    return tmp_path


def test_the_earlier_run_is_the_newest_complete_one_of_the_same_host_and_suite(two):
    run = runs.load(two / "20261121-140000-dissect")
    assert earlier.find(run).id == "20261121-100000-dissect"
    assert earlier.find(runs.load(two / "20261121-100000-dissect")) is None
    tile = tiles.latency(run, run.machines[0])
    assert dict(tile.compared)["earlier run"] == "98.76 ns: +30 %, beyond noise"
    assert any("Slower: " in str(finding) for finding in overview.overviews(run)[0].findings)


def test_the_page_shows_the_short_name_and_never_the_processor_as_a_model(tmp_path):
    frame = synthetic.rows().replace({"machine": {"xeon-2core": synthetic.ENVIRONMENT["processor"]}})
    assert runs.load(synthetic.folder(tmp_path / "a", frame)).machines == ["xeon-2.60GHz 2 cores", "wormhole-n150"]
    folder = synthetic.folder(tmp_path / "b", frame)
    (folder / "run.json").write_text(json.dumps({**synthetic.PLAN, "request": {"name": "my machine"}}))
    assert runs.load(folder).machines == ["my machine", "wormhole-n150"]
    model = synthetic.folder(tmp_path / "c", frame[frame["executor"] == "sim"])
    page = words(report.render(model).read_text(encoding="utf-8"))
    assert "measured against" not in page
    assert synthetic.ENVIRONMENT["processor"] not in page  # but it stands in the folded table of the environment
    assert "it is not the machine that is described" in page


def test_page_and_terminal_count_alike():
    rows = [made.sure(1), made.sure(1, 0.08), made.sure(1, 0.3), {"value": 1.0, "grade": "single"}]
    rows += [{"status": name} for name in ("failed", "waived", "out-of-time", "disturbed", "waived")]
    run = made.run_of(*rows, {"value": 1.0} | made.MODEL, made.sure(1) | {"flags": "disturbed"})
    counts = tally.tally(run.rows)
    shown = {badge.label: badge.count for badge in status.badges(run)}
    assert shown == {
        **{"ok": 1, "tight": 2, "fair": 1, "wide": 1, "single": 1, "failed": 1},
        **{"waived": 2, "out of time": 1, "disturbed": 1, "with a disturbance": 1},
    }
    assert sum(counts.values()) == sum(shown.values()) - 1


def test_statuses_are_words_of_their_own():
    kinds = {"failed": "wrong", "waived": "not meant", "out-of-time": "late", "disturbed": "busy"}
    run = made.run_of(*({"status": name, "reason": why} for name, why in kinds.items()), made.sure(1, 0.4))
    titles = [table.title for table in status.section(run).items]
    assert titles == ["Failed", "Disturbed", "Out of time", "Wide", "Waived"]


def test_the_terminal_says_the_same_in_few_lines(tmp_path):
    run = runs.load(synthetic.folder(tmp_path / "demo"))
    lines = list(glance.lines(run))
    assert len(lines) <= glance.LINES + 4
    assert max(map(len, lines)) <= glance.WIDTH
    joined = re.sub(r"\s+", " ", " ".join(lines))
    for seen in overview.overviews(run):
        assert seen.verdict in joined
        assert all(tile.value in joined for tile in seen.tiles)


def test_at_most_five_findings_are_open():
    found = [Finding(f"number {k}", "than", "cure", k) for k in range(7)]
    run = made.run_of(*made.allreduce((8, 100)))
    seen = [overview.Overview("here", "measured", "healthy", "fine", (), found)]
    page = html.page(dissect.Report("r", overviews=seen, sections=dissect.report(run).sections))
    assert page.index("number 4") < page.index("<summary>2 more</summary>") < page.index("number 5")


def test_hostile_names_do_not_leave_the_first_screen(tmp_path):
    frame = synthetic.rows()
    frame["machine"] = frame["machine"] + synthetic.NASTY
    frame["placement"] = frame["placement"] + synthetic.NASTY.replace(">", "")
    page = report.render(synthetic.folder(tmp_path / "x", frame)).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert pd.Series(page).str.contains("&lt;script&gt;alert").all()
