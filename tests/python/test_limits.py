"""Limits as Python and the command line show them; `crates/linkwright-sim/tests/limits.rs` derives them."""

import csv
import json

import pytest

import linkwright as lw
from linkwright_cases import invoke


def test_every_limit_comes_with_its_arithmetic():
    port, cut, latency = (
        next(one for one in lw.limits("alltoall", "dgx1-p100", ranks=8, size="64M") if one.name == name)
        for name in ("port", "cut", "latency")
    )
    # Four NVLinks of 18.5 GB/s between the halves, of which a pair takes 0.866, and half of what a socket receives and
    # sends.
    assert cut.rate == pytest.approx(4 * 0.866 * 18.5e9 + 35.6e9 / 2)
    assert (cut.size_bytes, cut.what) == (4 * 4 * (64 << 20) // 8, "out of ranks 0, 1, 2, 3")
    for one in (port, cut):
        assert one.time_us == pytest.approx(one.size_bytes / one.rate * 1e6, rel=1e-6)
        assert one.derivation.startswith(f"{one.size_bytes} B {one.what} / ")
    assert latency.derivation.endswith("without data")


def test_describe_prints_the_largest_first():
    status, out, _ = invoke("describe", "alltoall", "--limit", "--on", "dgx1-p100", "--sizes", "8,64M")
    assert status == 0
    title, _, header, *lines = out.splitlines()
    assert title == "alltoall, 8 ranks of dgx1-p100; no schedule beats the first of a size"
    assert header.split() == ["size", "limit", "time", "from"]
    assert [line.split()[:2] for line in lines[:2]] == [["8", "none"], ["64M", "arrival"]]
    status, out, _ = invoke("describe", "allreduce/ring", "--limit", "--on", "loggp", "-p", "4", "--json")
    times = [(row["size_bytes"], row["time_us"]) for row in json.loads(out)]
    assert times == sorted(times, key=lambda row: (row[0], -row[1]))


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["allreduce", "--limit"], "--on"),
        (["--limit", "--on", "loggp"], "needs a collective"),
        (["allreduce", "--limit", "--on", "loggp"], "--ranks"),
        (["allreduse", "--limit", "--on", "loggp", "-p", "4"], "allreduce"),
        (["allreduce", "--limit", "--on", "wormhole-n150", "-p", "65"], "64"),
        (["broadcast", "--limit", "--on", "loggp", "-p", "4", "--root", "4"], "root 4"),
        (["allreduce", "--limit", "--on", "loggp", "-p", "4", "--sizes", "6"], "whole number of f32"),
        (["barrier", "--limit", "--on", "loggp", "-p", "4", "--sizes", "8"], "omit --sizes"),
        (["allreduce", "--limit", "--on", "loggp", "-p", "4", "--path", "nowhere"], "nowhere"),
        (["allreduce", "--ranks", "4"], "add --limit"),
        (["--schema", "suite", "--limit"], "one of the two"),
    ],
)
def test_a_question_that_has_no_limit_is_refused(arguments, cure):
    status, _, errors = invoke("describe", *arguments)
    assert status == 2
    assert cure in errors


def test_algorithms_share_a_limit_and_the_fastest_comes_nearest():
    found = {}
    for name in ("ring", "recursive_doubling_bandwidth", "swing_bandwidth", "recursive_doubling_latency"):
        schedule = lw.schedule("allreduce", name, ranks=64, size="128K", grid=(8, 8))
        found[name] = lw.simulate(schedule, "wormhole-n150")
    assert {one.limit_name for one in found.values()} == {"compute"}
    (limit_us,) = {one.limit_us for one in found.values()}
    assert limit_us == pytest.approx(lw.limits("allreduce", "wormhole-n150", ranks=64, size="128K")[0].time_us)
    assert all(one.limit_us <= one.time_us and one.bound_us <= one.time_us for one in found.values())
    assert len({one.bound_us for one in found.values()}) > 1
    for metric in ("time", "bus_bw"):
        row = found["ring"].row(metric)
        assert (row["limit_name"], row["bound_name"]) == ("compute", found["ring"].bound_name)


def test_folded_ranks_have_the_same_limit(tmp_path, monkeypatch):
    times = {}
    for walk in ("fold", "stream", "collective"):
        monkeypatch.setattr("linkwright.ask.schedules.engine_kind", lambda _, walk=walk: walk)
        out = tmp_path / f"{walk}.csv"
        asked = ["simulate", "allreduce", "-a", "ring", "--on", "loggp", "-p", "16", "--sizes", "64K"]
        status, _, errors = invoke(*asked, "--output", str(out))
        assert status == 0, errors
        with out.open() as file:
            time = next(row for row in csv.DictReader(file) if row["metric"] == "time")
        times[walk] = [time[key] for key in ("value", "limit", "limit_name", "bound", "bound_name")]
    assert times["fold"] == times["stream"] == times["collective"]
    assert all(times["fold"])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"size": 1023}, "size 1023 is not a whole number of f32 elements"),
        ({"size": 0}, "moves at least one element"),
        ({"size": -8}, "a size is at least 0"),
        ({"size": 8, "dtype": "f33"}, "f33"),
        ({"size": 8, "root": -1}, "numbered from 0"),
    ],
)
def test_limits_refuse_what_no_schedule_moves(asked, message):
    with pytest.raises(lw.LinkwrightError, match=message):
        lw.limits("allreduce", "loggp", ranks=4, **asked)
