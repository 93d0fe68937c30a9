"""Measuring for real, on this machine's threads, with budgets of a second or two."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from linkwright.store import run as runs
from linkwright_cases import BRIEF, invoke

QUICK = (*BRIEF, "--iters", "8")


def run_allreduce(folder, *more):
    return invoke("run", "allreduce", "-a", "ring", "--sizes", "8,4K", *QUICK, "--runs", str(folder), *more)


def test_a_run_ends_with_the_path_of_its_report_and_keeps_every_sample(tmp_path):
    result = run_allreduce(tmp_path, "--wide", "--output", str(tmp_path / "rows.json"))
    assert result.status == 0, result.err
    report = result.out.splitlines()[-1]
    assert report.endswith("report/index.html")
    assert Path(report).exists()

    numbers = [line.split() for line in result.out.splitlines() if not line.startswith("#")][:-1]
    assert [(n[0], n[1], n[2], n[3], n[4], n[8]) for n in numbers] == [
        ("8", "2", "f32", "sum", "-1", "0"),
        ("4096", "1024", "f32", "sum", "-1", "0"),
    ]
    run = runs.find(tmp_path, "latest")
    assert run.plan["state"] == "done"
    assert not run.journal_path.exists()
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    time_row = next(row for row in rows if row["metric"] == "time")
    if time_row["ci_low"] is not None:  # beside other work launches are set aside
        assert time_row["ci_low"] <= time_row["value"] <= time_row["ci_high"]
    samples = pd.DataFrame(run.samples().records())
    assert samples["launch"].nunique() >= 6
    one = samples[(samples["experiment"] == time_row["experiment"]) & (samples["launch"] == 0)]
    assert set(one["rank"].dropna()) == {0, 1}
    assert len(one[one["rank"].isna()]) == len(one[one["rank"] == 0])


def test_two_runs_compare(tmp_path):
    assert run_allreduce(tmp_path).status == 0
    first = runs.find(tmp_path, "latest").id
    assert run_allreduce(tmp_path).status == 0
    compared = json.loads(invoke("compare", first, "latest", "--json", "--runs", str(tmp_path)).out)
    assert len(compared["pairs"]) >= 2
    assert {pair["verdict"] for pair in compared["pairs"]} <= {"SAME", "FASTER", "SLOWER", "UNKNOWN"}
    # Two experiments; one whose launches fall into two modes is compared mode by mode.
    words = invoke("compare", first, "latest", "--runs", str(tmp_path)).out.splitlines()[0]
    assert int(words.partition(" compared: ")[0]) in (2, 3, 4)
    itself = invoke("compare", first, first, "--runs", str(tmp_path))
    assert (itself.status, itself.out) == (2, "")
    assert f"{first} and {first} are the same run, {first}; name two (`linkwright list runs`)" in itself.err
    counted = invoke("query", "select count(distinct run) as runs from results", "--json", "--runs", str(tmp_path))
    assert json.loads(counted.out) == [{"runs": 2}]


def test_more_ranks_than_processors_are_marked(tmp_path):
    ranks = len(os.sched_getaffinity(0)) + 1
    result = run_allreduce(tmp_path, "--ranks", str(ranks))
    assert result.status == 0, result.err
    table = runs.find(tmp_path, "latest").results().records()
    assert any("oversubscribed" in (row["reason"] or "") for row in table)
    assert f"# run: allreduce, {ranks} ranks, f32 sum; oversubscribed" in result.out


def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(tmp_path):
    command = [sys.executable, "-m", "linkwright", "run", "allreduce", "-a", "ring", "--sizes", "8,64,512,4K,32K"]
    command += ["--time-budget", "20s", "--target", "90%", "--runs", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        journal = None
        for _ in range(200):
            time.sleep(0.05)
            journal = next(tmp_path.glob("*/journal.jsonl"), None)
            if journal and journal.stat().st_size:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err
    run = runs.find(tmp_path, "latest")
    before = len(run.records())
    assert before > 0
    assert len(run.results()) >= 0  # what is known is readable

    plan = run.plan
    plan["request"]["budget_s"] = 20.0  # what is left takes two seconds where nothing else runs
    (run.folder / "run.json").write_text(json.dumps(plan))
    result = invoke("dissect", "--resume", run.id, "--runs", str(tmp_path))
    assert result.status == 0, result.err
    assert run.plan["state"] == "done"
    done = {row["experiment"] for row in run.results().records() if row["metric"] == "time" and row["value"]}
    assert len(done) == 5
    again = invoke("dissect", "--resume", run.id, "--runs", str(tmp_path))
    assert again.status == 2
    assert "complete" in again.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "0"], "size 0"),
        (["--sizes", "3"], "not a whole number of f32 elements"),
        (["-b", "3 bytes"], "size `3 bytes`"),
        (["-b", "1K", "-e", "8"], "the largest size 8 is below the smallest, 1K"),
        (["-a", "rign"], "did you mean `ring`"),
        (["--ranks", "0"], "0 is not in the range"),
        (["--grid", "2by2"], "`2by2` is not a grid"),
        (["--on", "thread"], "did you mean `threads`"),
        (["--output", "rows.xls"], "unknown suffix `.xls`"),
        (["--time-budget", "never"], "duration `never`"),
        (["--root", "7"], "--root: allreduce has no root; omit it"),
        (["--skew", "sometimes"], "skew `sometimes`"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, arguments, message):
    result = invoke("run", "allreduce", *arguments, "--runs", str(tmp_path))
    assert result.status in (1, 2)
    assert message in result.err + result.out
    assert "Traceback" not in result.err
    assert result.err.count("\n") <= 1


def test_an_unknown_collective_is_named():
    assert "did you mean `allreduce`" in invoke("run", "alreduce").err


def test_an_unwritable_folder_stops_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    result = run_allreduce(tmp_path / "file" / "runs")
    assert result.status == 1
    assert "cannot be written" in result.err


def test_what_has_no_experiment_is_refused_and_leaves_no_folder(tmp_path):
    for asked in (["run", "allreduce", "-a", "own"], ["run", "matmul", "-x", "threads=4096"]):
        result = invoke(*asked, "--runs", str(tmp_path))
        assert result.status == 2
        assert "has no experiment for threads" in result.err
    assert invoke("run", "allreduce", "-a", "nccl", "--runs", str(tmp_path)).status == 2
    assert not list(tmp_path.iterdir())


def test_a_process_whose_parent_ended_before_it_asked_ends_quietly():
    command = [sys.executable, "-P", "-m", "linkwright.executors.threads.launch"]
    for told in ("", '{"work": ['):
        ended = subprocess.run(command, input=told, capture_output=True, text=True, timeout=30, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
