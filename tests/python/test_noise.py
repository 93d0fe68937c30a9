"""Noise of machines: launches with it, how a fit measures it; and the path that patterns take by default."""

import json
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest

from linkwright.advise.fit import noise
from linkwright.ask.question import Pattern
from linkwright.base.rows import Rows
from linkwright.machines import load
from linkwright.store import schema
from linkwright_cases import invoke

NOISE = """
[noise]
start_up = { value = 400, unit = "ns", status = "assumed", source = "test" }
interrupt = { value = 5, unit = "us", status = "assumed", source = "test" }
interrupt_every = { value = 200, unit = "us", status = "assumed", source = "test" }
"""


@pytest.fixture
def noisy(tmp_path):
    file = tmp_path / "noisy.toml"
    file.write_text(load("loggp").text + NOISE)
    return str(file)


def simulated(tmp_path, *asked):
    """The rows by metric, and what the command printed."""
    output = tmp_path / "rows.json"
    result = invoke("simulate", *asked, "--output", str(output))
    assert result.status == 0, result.err
    rows = json.loads(output.read_text())["rows"]
    return {row["metric"]: row for row in rows}, result.out, output.read_bytes()


def test_launches_have_the_columns_of_measured_rows(noisy, tmp_path):
    asked = ("allreduce", "-a", "ring", "-p", "8", "--sizes", "4K", "--on", noisy)
    quiet, _, _ = simulated(tmp_path, *asked)
    rows, out, written = simulated(tmp_path, *asked, "--launches", "20")
    time = rows["time"]
    assert "20 launches" in out
    assert time["n"] == rows["samples"]["value"] == 20
    assert time["ci_low"] <= time["value"] <= time["ci_high"] <= rows["time_max"]["value"]
    assert quiet["time"]["value"] < rows["time_min"]["value"] < rows["time_p99"]["value"] <= rows["time_max"]["value"]
    assert time["limit"] == quiet["time"]["limit"]
    assert time["grade"] in ("tight", "fair", "wide")
    # The same seed gives the same bytes, and another one other launches.
    assert simulated(tmp_path, *asked, "--launches", "20")[2] == written
    later = simulated(tmp_path, *asked, "--launches", "20", "--seed", "100")[0]
    assert later["time_max"]["value"] != rows["time_max"]["value"]


def test_a_machine_without_noise_says_that_launches_are_alike(tmp_path):
    asked = ("allreduce", "-a", "ring", "-p", "8", "--sizes", "4K", "--on", "loggp")
    quiet, _, _ = simulated(tmp_path, *asked)
    rows, out, _ = simulated(tmp_path, *asked, "--launches", "6")
    assert "no [noise]" in out.replace("\n#  ", "")
    assert "no [noise]" in rows["time"]["reason"]
    assert rows["time"]["value"] == rows["time_max"]["value"] == quiet["time"]["value"]


def test_what_shows_one_run_is_refused_for_several(noisy, tmp_path):
    asked = ("simulate", "allreduce", "-a", "ring", "--sizes", "4K", "--on", noisy, "--launches", "2")
    refused = invoke(*asked, "--links", str(tmp_path / "links.csv"))
    assert refused.status == 2
    assert "--launches makes several" in refused.err


def test_the_plain_command_repeats_the_experiment_of_the_article(tmp_path):
    asked = ("pattern/complement", "--on", "cell-be", "--sizes", "16K", "--messages", "128")
    rows, out, _ = simulated(tmp_path, *asked)
    assert (rows["time"]["path"], rows["time"]["issue"]) == ("dma", "unlimited")
    assert "path=dma" in out
    assert rows["bandwidth"]["value"] == pytest.approx(204.8e9, rel=0.01)  # "slightly below 200 GB/s"
    own, _, _ = simulated(tmp_path, *asked, "--path", "put")
    assert (own["time"]["path"], own["time"]["issue"]) == ("put", None)
    assert own["bandwidth"]["value"] < 100e9


@pytest.mark.parametrize(
    ("machine", "path"),
    [("dgx1-p100", "copy"), ("gx8-p100", "copy"), ("ipu-c2-chip", "pairs"), ("wormhole-n150", "stream")],
)
def test_patterns_take_the_path_of_each_paper(machine, path, tmp_path):
    rows, _, _ = simulated(tmp_path, "pattern/pairs", "--on", machine, "--sizes", "4K")
    assert (rows["time"]["path"], rows["time"]["issue"]) == (path, "unlimited")
    assert load(machine).traffic == (path, "unlimited")


def measured_run(values, messages=16):
    """A run with these samples of messages in a row, by launch."""
    question = Pattern("bandwidth", "pairs", 2, 1 << 20, "u8", messages=messages)
    row = schema.row(
        run="r", machine="host", executor="threads", metric="time", value=float(np.median(values)), unit="ns",
        status="ok", placement="topology", experiment=question.key, **{
            key: value for key, value in question.columns().items() if key != "experiment"
        },
    )  # fmt: skip
    samples = [
        {"experiment": question.key, "launch": launch, "sample": at, "rank": None, "set_aside": None, "value_ns": value}
        for launch, its in enumerate(values)
        for at, value in enumerate(its)
    ]
    return SimpleNamespace(
        id="r", results=lambda: Rows.from_records([row]), samples=lambda: Rows.from_records(samples)
    )  # fmt: skip


def test_a_fit_finds_the_rate_and_the_interrupts_of_an_invented_machine():
    drawn = np.random.default_rng(1)
    # 16 messages of 10 us, each up to 30 % longer; one sample in 50 is interrupted for 40 us.
    values = (10_000 * (1 + 0.3 * drawn.random((6, 2000, 16)))).sum(axis=2)
    values += 40_000 * (drawn.random(values.shape) < 0.02)
    found = tomllib.loads(noise.table(measured_run(values), "host"))["noise"]
    assert found["rate"]["value"] == pytest.approx(0.3 / 1.15, rel=0.05)  # of the mean, which has half of it
    assert found["interrupt"]["value"] == pytest.approx(40_000, rel=0.1)
    # Two ranks of 184 us a sample, of which one in 50 is interrupted.
    assert found["interrupt_every"]["value"] == pytest.approx(2 * 50 * 184_800, rel=0.2)
    assert found["rate"]["status"] == "fitted"


def test_a_fit_writes_no_noise_where_none_is_seen():
    assert noise.table(measured_run(np.full((6, 100), 50_000.0)), "host") == ""
    # Shorter operations are timed in batches.
    assert noise.table(measured_run(10 * np.random.default_rng(1).random((6, 100))), "host") == ""
