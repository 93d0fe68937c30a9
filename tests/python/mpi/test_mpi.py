"""`--on mpi` as a user starts it. Jobs are few, because a job of Python processes takes seconds."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest
from jobs import FOLDER, mpirun

from linkwright.executors.mpi.exchange import FlowArrivals, arrival_gaps, message_time
from linkwright.store import run as runs
from linkwright_cases import BRIEF, invoke

LINKWRIGHT = ("-m", "linkwright")


def test_every_algorithm_leaves_what_the_reference_leaves_on_2_4_and_7_ranks():
    done = mpirun(7, str(FOLDER / "parity.py"))
    assert done.returncode == 0, done.stderr
    count, *wrong = done.stdout.splitlines()
    assert wrong == []
    assert int(count.split()[0]) > 100


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run of ours and of the library's own allreduce, with what it printed."""
    folder = tmp_path_factory.mktemp("runs")
    done = mpirun(
        2, *LINKWRIGHT, "run", "allreduce", "--on", "mpi", "-a", "ring,mpi-native,mpi-native-in-place",
        "--sizes", "8,4K", "--iters", "3", *BRIEF, "--runs", str(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done, runs.find(folder, "latest")


def test_ours_and_the_librarys_own_are_measured_in_one_run(measured):
    done, run = measured
    rows = [row for row in run.results().records() if row["metric"] == "time"]
    assert {(row["algorithm"], row["size_bytes"]) for row in rows} == {
        (name, size) for name in ("ring", "mpi-native", "mpi-native-in-place") for size in (8, 4096)
    }
    assert {row["executor"] for row in rows} == {"mpi"}
    found = [row for row in rows if row["value"] is not None]
    assert all(row["status"] == "waived" for row in rows if row not in found)  # on a busy machine
    assert found
    assert all(row["value"] > 0 and "rounds of one mpirun" in row["reason"] for row in found)
    assert done.stdout.count("report/index.html") == 1  # rank 0 prints, and nobody else


def test_the_method_of_synchronisation_and_its_error_are_stated(measured):
    _, run = measured
    residuals = [row for row in run.results().records() if row["metric"] == "sync_residual"]
    assert residuals
    for row in residuals:
        assert set(row["reason"].split(", ")) <= {"window", "barrier"}
        assert 0 < row["value"] < 1e9


def test_every_ranks_starts_and_finishes_are_merged_from_its_own_file(measured):
    _, run = measured
    samples = pd.DataFrame(run.samples().records())
    assert set(samples["rank"].dropna()) == {0, 1}
    assert len(samples[samples["rank"].isna()]) == len(samples[samples["rank"] == 1])
    assert (samples["start_ns"].dropna() >= 0).all()
    assert not (run.folder / "ranks").exists()


def test_hosts_placement_and_library_stand_in_the_environment(measured):
    _, run = measured
    mpi = json.loads((run.folder / "environment.json").read_text())["mpi"]
    assert [rank["rank"] for rank in mpi["ranks"]] == [0, 1]
    assert all(rank["cpus"] and rank["host"] in mpi["hosts"] for rank in mpi["ranks"])
    assert re.search(r"MPI", mpi["library"])


def test_hosts_with_different_versions_end_with_one_message(tmp_path):
    other = "import linkwright._native as n; n.__version__ = '0.0.9'; import runpy; runpy.run_module('linkwright')"
    tail = ["run", "barrier", "--on", "mpi", "--runs", str(tmp_path)]
    done = mpirun(1, *LINKWRIGHT, *tail, ":", "-np", "1", sys.executable, "-c", other, *tail)
    assert done.returncode != 0
    complaints = [line for line in done.stderr.splitlines() if line.startswith("linkwright:")]
    assert len(complaints) == 1
    assert "different versions of linkwright: 0.1.0/0.1.0 on " in complaints[0]
    assert "0.1.0/0.0.9 on " in complaints[0]


def test_a_rank_that_dies_ends_the_run_with_one_message_and_finished_experiments_are_kept(tmp_path):
    victim = str(FOLDER / "dying_rank.py")
    done = mpirun(
        2, victim, "run", "allreduce", "--on", "mpi", "-a", "ring", "--sizes", "8,64,512", "--iters", "3",
        "--time-budget", "6s", "--runs", str(tmp_path),
    )  # fmt: skip
    assert done.returncode != 0
    complaints = [line for line in done.stderr.splitlines() if line.startswith("linkwright:")]
    assert len(complaints) == 1, done.stderr
    assert "all finished work is kept" in complaints[0]
    run = runs.find(tmp_path, "latest")
    assert len(run.records()) == 2
    plan = run.plan
    plan["request"]["budget_s"] = 1.5
    (run.folder / "run.json").write_text(json.dumps(plan))
    resumed = mpirun(2, *LINKWRIGHT, "dissect", "--resume", run.id, "--runs", str(tmp_path))
    assert resumed.returncode == 0, resumed.stderr
    assert run.plan["state"] == "done"
    times = [row for row in run.results().records() if row["metric"] == "time"]
    assert len(times) == 3


def test_wrong_usage_is_said_once_with_its_cure(tmp_path):
    alone = invoke("run", "allreduce", "--on", "mpi", "--runs", str(tmp_path))
    assert alone.status == 2
    assert "started alone" in alone.err
    assert "mpirun -np 4" in alone.err
    done = mpirun(2, *LINKWRIGHT, "run", "allreduce", "--on", "mpi", "--ranks", "5", "--runs", str(tmp_path))
    complaints = [line for line in done.stderr.splitlines() if line.startswith("linkwright:")]
    assert len(complaints) == 1, done.stderr
    assert "the MPI job has 2 ranks; start as many with `mpirun -np 5`" in complaints[0]
    assert done.returncode == 2


def test_only_the_first_rank_measures_what_is_no_job(tmp_path, monkeypatch):
    words = ["run", "fma_peak", "--on", "loggp,threads", "-n", "2", *BRIEF, "--runs", str(tmp_path)]
    said = ""
    for rank in (1, 2):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
        result = invoke(*words)
        assert (result.status, result.out) == (0, "")
        said += result.err
    assert said.count("only rank 0 runs: --on names no MPI job") == 1
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    invoke(*words)
    assert len(list(tmp_path.iterdir())) == 1


def test_slurm_prints_a_job_script_of_the_same_command():
    result = invoke("run", "allreduce/ring", "--on", "mpi", "--ranks", "64", "--slurm", "--time-budget", "10m")
    assert result.status == 0
    assert "#SBATCH --ntasks=64\n" in result.out
    assert "#SBATCH --time=00:15:00\n" in result.out
    assert invoke("run", "allreduce", "--on", "mpi", "--slurm").status == 2
    on_threads = invoke("run", "allreduce", "--ranks", "4", "--slurm")
    assert (on_threads.status, "use `--on mpi`" in on_threads.err) == (2, True)


def times_of(folder, *words):
    """The rows of times of a run on four ranks; all have one, on a busy machine from a second, longer run."""
    for budget in ("8s", "40s"):
        done = mpirun(
            4, *LINKWRIGHT, "run", *words, "--on", "mpi", "--iters", "3", "--time-budget", budget, "--target", "90%",
            "--runs", str(folder), timeout_s=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows = [row for row in runs.find(folder, "latest").results().records() if row["metric"] == "time"]
        # A row without a time ran nothing, so its data were not checked either.
        if "out-of-time" not in {row["status"] for row in rows}:
            break
    assert {row["status"] for row in rows} == {"ok"}, rows
    return rows


@pytest.mark.parametrize("collective", ["alltoallv", "dispatch", "combine"])
def test_uneven_exchanges_and_the_librarys_own_give_every_element(tmp_path, collective):
    """Every element of every launch is checked; with a wrong one the row is `failed`."""
    routed = ("--tokens", "24", "--experts", "16", "--topk", "4", "--hidden", "128", "--routing", "zipf:1.2")
    ours = "linear" if collective == "alltoallv" else "direct"
    rows = times_of(tmp_path, collective, "-a", f"{ours},rails_chunked,mpi-native", *routed, "--grid", "2x2")
    assert {row["algorithm"] for row in rows} == {ours, "rails_chunked", "mpi-native"}
    assert not any("data not checked" in (row["reason"] or "") for row in rows)


def test_counts_with_empty_rows_and_columns_on_the_library(tmp_path):
    (tmp_path / "counts.csv").write_text("0,1001,1001,5\n0,0,2001,0\n0,0,0,0\n1,0,3,4\n")
    rows = times_of(tmp_path, "alltoallv", "-a", "mpi-native,linear", "--counts", str(tmp_path / "counts.csv"))
    assert {row["algorithm"] for row in rows} == {"mpi-native", "linear"}


def test_native_algorithms_exist_on_mpi_only(tmp_path):
    result = invoke("run", "allreduce", "-a", "mpi-native", "--runs", str(tmp_path))
    assert result.status == 2
    assert "algorithm `mpi-native`: only `--on mpi` has it (any collective)" in result.err


def test_two_hosts_run_and_stand_in_the_results(tmp_path):
    mpirun(1, "-c", "pass")  # skips where there is no MPI
    words = [
        "run",
        "allreduce",
        "--on",
        "mpi",
        "-a",
        "ring,mpi-native",
        "--sizes",
        "4K",
        "--iters",
        "3",
        "--time-budget",
        "2s",
        "--runs",
    ]
    command = [str(FOLDER / "two_hosts.sh"), sys.executable, *LINKWRIGHT, *words, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    run = runs.find(tmp_path, "latest")
    assert json.loads((run.folder / "environment.json").read_text())["mpi"]["hosts"] == ["lw-a", "lw-b"]
    rows = run.results().records()
    assert all(row["machine"].startswith("2 x ") for row in rows)
    assert {row["status"] for row in rows if row["metric"] == "time"} <= {"ok", "waived", "out-of-time"}


def test_a_schedule_from_python_runs_on_the_ranks_that_call_it_together():
    done = mpirun(2, str(FOLDER / "api_run.py"))
    assert done.returncode == 0, done.stderr
    two, three, *others = done.stdout.splitlines()
    assert others == [two, three]
    assert re.fullmatch(r"mpi took [\d.]+ ns|run: every sample was disturbed .*", two)
    assert three.startswith("--ranks 3: the MPI job has 2 ranks")


def test_a_pattern_under_an_issue_policy_tells_of_its_messages(tmp_path):
    """Three senders with four messages each, one or two of them under way; one rank more than take part."""
    done = mpirun(
        4, *LINKWRIGHT, "run", "pattern/hot_spot", "--on", "mpi", "-p", "1,4", "--messages", "4", "-d", "u8",
        "--sizes", "64K", "--issue", "window(2)", "--iters", "3", *BRIEF, "--runs", str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = runs.find(tmp_path, "latest").results().records()
    alone, *loaded = rows
    assert (alone["ranks"], alone["status"]) == (1, "waived")
    assert {row["issue"] for row in loaded} == {"window(2)"}
    found = {row["metric"]: row for row in loaded if row["value"] is not None}
    if "time" not in found:
        return  # every launch was disturbed, and the row says so
    assert found["bandwidth"]["value"] == pytest.approx(3 * 4 * 65536 / found["time"]["value"] * 1e9)
    assert "unchecked" not in (found["time"]["flags"] or "")
    assert found["endpoint_rate_min"]["value"] <= found["endpoint_rate_max"]["value"]
    if "message_p50" in found or "oversubscribed" in (found["time"]["flags"] or ""):
        assert 0 < found["message_min"]["value"] <= found["message_p50"]["value"] <= found["message_max"]["value"]


def test_a_rank_that_starts_late_does_not_slow_its_messages():
    """Rank 0 sends and receives a fifth of a second late; 1 MiB takes milliseconds by the clock of each sender."""
    done = mpirun(3, str(FOLDER / "late_start.py"))
    assert done.returncode == 0, done.stderr
    late, between, back = map(float, done.stdout.split())
    assert min(late, between) > 2 * back  # the receiver of the last is late: until then, nothing has arrived


def test_the_time_of_a_message_is_from_its_start_by_one_clock():
    """The receiver's clock is 5 s ahead; arrivals after 1, 1 and 4 s; no time is below the error of the clocks."""
    arrivals = FlowArrivals(-5.0, 0.25, [16.0, 26.0, 39.0])
    assert message_time([10.0, 20.0, 30.0], arrivals) == 1.0
    assert message_time([10.9, 20.9, 30.0], arrivals) == 0.25


def test_gaps_of_a_burst_are_by_the_clock_of_the_rank_in_common():
    """From one rank, whose clock is 5 and 7 s behind those of its targets: arrivals at 11, 12 and 20, 24 by it."""
    burst = [FlowArrivals(-5.0, 0.0, [16.0, 29.0]), FlowArrivals(-7.0, 0.0, [19.0, 27.0])]
    assert arrival_gaps(burst, out=True) == [1.0, 4.0]
    assert arrival_gaps(burst, out=False) == [3.0, 2.0]
