"""Cost tables: what they promise between their points, their files, and what is refused."""

import itertools
import json

import numpy as np
import pytest

import linkwright as lw
from linkwright import _native
from linkwright.advise.cost_curve import CostCurve, Error, rising
from linkwright_cases import invoke, status_of


@pytest.fixture(scope="module")
def table():
    return lw.CostTable.build("loggp", ["allreduce", "broadcast"], [4], sizes=["64", "4K", "256K", "16M"])


def test_a_time_between_two_points_is_on_the_straight_line():
    # 100 to 300 B take 1 to 5 us, 2 us for each 100 B: 150 B take 1 + 0.5 * 2 = 2 us.
    curve = CostCurve("allreduce", 4, (100, 300), (1.0, 5.0), ("ring", "tree"), Error(0, 0, 0, 0))
    assert [curve.time_us(size) for size in (0, 100, 150, 300)] == [1.0, 1.0, 2.0, 5.0]
    assert [curve.algorithm(size) for size in (1, 100, 101, 300)] == ["ring", "ring", "tree", "tree"]


def test_times_that_fall_become_level_in_between():
    # Largest so far: 8, 8, 9, 9; smallest from there on: 2, 2, 4, 4. Roots of 16 and of 36.
    assert rising([8.0, 2.0, 9.0, 4.0]) == [4.0, 4.0, 6.0, 6.0]
    assert rising([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("collective", ["allreduce", "broadcast"])
def test_a_larger_message_never_costs_less(table, collective):
    sizes = np.unique(np.geomspace(1, 16 << 20, 3000).astype(int)).tolist()
    times = [lw.estimate(collective, size, 4, table) for size in sizes]
    assert all(b >= a for a, b in itertools.pairwise(times))


def test_the_stated_error_holds_at_sizes_that_the_table_has_never_seen(table):
    curve = table.curve("allreduce", 4)
    assert curve.error.checked == len(curve.sizes) - 1
    for size in (200, 9000, 70_000, 3_000_000):
        best = min(
            lw.simulate(lw.schedule("allreduce", row["name"], ranks=4, size=size), "loggp").time_us
            for row in _native.algorithms()
            if row["collective"] == "allreduce" and row["name"] in set(curve.algorithms)
        )
        assert curve.time_us(size) == pytest.approx(best, rel=max(curve.error.largest, 0.02) * 1.5)


def test_the_points_are_the_simulated_times(table):
    curve = table.curve("allreduce", 4)
    at = curve.sizes.index(4096)
    schedule = lw.schedule("allreduce", curve.algorithms[at], ranks=4, size=4096)
    assert curve.times_us[at] == pytest.approx(lw.simulate(schedule, "loggp").time_us, abs=1e-6)


def test_a_file_gives_the_table_back_and_is_the_same_bytes_every_time(table, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    table.save(first)
    lw.CostTable.load(first).save(second)
    assert lw.CostTable.load(first) == table
    assert first.read_bytes() == second.read_bytes()


def test_a_table_in_a_file_answers_without_a_simulation(table, tmp_path, monkeypatch):
    table.save(tmp_path / "costs.json")
    monkeypatch.setattr(lw.CostTable, "build", None)
    assert lw.estimate("broadcast", "1M", 4, tmp_path / "costs.json") == table.time_us("broadcast", 1 << 20, 4)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("allreduce", "17M", 4), "the table ends at 16M B"),
        (("allreduce", 64, 8), "the table has 4"),
        (("allreduc", 64, 4), "did you mean `allreduce`"),
    ],
)
def test_what_a_table_does_not_hold_is_refused_with_the_cure(table, asked, said):
    with pytest.raises(lw.UsageError, match=said):
        lw.estimate(*asked, table)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "its format"),
        ({"machine": 3}, "`machine` is not text"),
        ({"curves": [{}]}, "is missing"),
        ({"time_us": [2.0, 1.0]}, "a time falls"),
        ({"time_us": [1.0, float("nan")]}, "NaN is not a number"),
        ({"bytes": [8, 8]}, "bytes must rise"),
        ({"bytes": [8.0, 9.5]}, "whole numbers"),
        ({"algorithm": ["ring"]}, "points are missing"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, change, said):
    curve = {"collective": "allreduce", "ranks": 2, "bytes": [8, 16], "time_us": [1.0, 2.0], "algorithm": ["a", "b"]}
    curve["error"] = {"checked": 0, "median": 0, "p90": 0, "largest": 0}
    curve.update({name: value for name, value in change.items() if name in curve})
    values = {"format": "linkwright-costs-1", "machine": "m", "digest": "0", "algorithms": "all", "dtype": "f32"}
    values |= {"curves": [curve]} | {name: value for name, value in change.items() if name not in curve}
    (tmp_path / "costs.json").write_text(json.dumps(values))
    with pytest.raises(lw.UsageError, match=said):
        lw.CostTable.load(tmp_path / "costs.json")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"[]", b"[" * 100_000])
def test_rubbish_is_refused(tmp_path, content):
    (tmp_path / "costs.json").write_bytes(content)
    with pytest.raises(lw.UsageError):
        lw.CostTable.load(tmp_path / "costs.json")


def test_another_suffix_is_refused_with_the_cure(table, tmp_path):
    for use in (table.save, lw.CostTable.load):
        with pytest.raises(
            lw.UsageError, match=r"is a .json file; create one with `linkwright plan cost --out FILE.json`"
        ):
            use(tmp_path / "costs.npz")


def test_the_command_prints_the_error_and_writes_the_table(tmp_path):
    file = tmp_path / "costs.json"
    result = invoke("plan", "cost", "allreduce", "--on", "loggp", "-p", "2,4", "--sizes", "1K,1M", "--out", str(file))
    assert result.status == 0, result.err
    assert "largest" in result.out
    assert [curve.ranks for curve in lw.CostTable.load(file).curves] == [2, 4]


@pytest.mark.parametrize(
    "arguments",
    [
        ["allreduce", "--on", "loggp", "--out", "costs.csv"],
        ["allreduce", "--on", "threads"],
        ["nonsense", "--on", "loggp"],
        ["allreduce,", "--on", "loggp", "-p", "4"],
        ["allreduce", "--on", "loggp", "-p", "4", "--sizes", "1K,"],
        ["allreduce", "--on", "loggp", "-p", "4", "--sizes", "many"],
        ["allreduce", "--on", "loggp", "-p", "4", "-a", "nccl-2.27", "--sizes", "1K"],
    ],
)
def test_wrong_usage_is_refused(arguments):
    assert status_of(["plan", "cost", *arguments]) == 2


def test_one_rank_alone_costs_nothing_and_its_error_is_not_claimed():
    result = invoke("plan", "cost", "allreduce", "--on", "loggp", "-p", "1", "--sizes", "1K,64K")
    assert result.status == 0, result.err
    assert result.out.splitlines()[-1].split() == ["allreduce", "1", "1K", "to", "64K", "2", "0", "-", "-", "-"]


def test_a_barrier_has_a_single_point():
    table = lw.CostTable.build("loggp", ["barrier"], [4])
    assert len(table.curves[0].sizes) == 1
    assert lw.estimate("barrier", 0, 4, table) > 0


def test_a_size_without_a_time_is_named():
    """A tile of the n150 has 1.43 MiB, and an allreduce of 1 MiB needs more."""
    done = invoke("plan", "cost", "allreduce", "--on", "wormhole-n150", "-a", "ring", "--sizes", "64K,1M")
    assert done.status == 0
    assert done.err == (
        "linkwright: allreduce on 64 ranks: no time for 1M, so the table ends at 64K; `linkwright simulate` says why\n"
    )
