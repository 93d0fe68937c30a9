"""What a machine does to a run that is under way: it is killed, stopped, starved of disk, files, memory or processors.

After each of it a run is complete once it is resumed, holds every experiment once, and has the values of a run that
nothing happened to. Moments of kills are drawn from `LINKWRIGHT_FUZZ_SEED`; `LINKWRIGHT_FAULTS` asks for more of them.
"""

import contextlib
import datetime
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from linkwright.store import environment
from linkwright.store import run as runs
from linkwright_cases import BRIEF, invoke
from test_fuzz import NCCL

KILLS = int(os.environ.get("LINKWRIGHT_FAULTS", "4"))
SEED = int(os.environ.get("LINKWRIGHT_FUZZ_SEED", "0"))
LINKWRIGHT = [sys.executable, "-m", "linkwright"]
SUITE = """
[suite]
format = 1
name = "x"
summary = "s"
[[part]]
name = "a"
summary = "b"
collectives = ["allreduce", "broadcast", "allgather"]
algorithms = "all"
sizes = ["64", "4K", "64K"]
"""
RUN = ["run", "allreduce", "-a", "ring", "-p", "2", "--iters", "4", "--on", "threads"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "x.toml"
    path.write_text(SUITE, encoding="utf-8")
    return path


def sweep(suite, folder):
    return ["dissect", "--level", "full", str(suite), "--on", "loggp", "-p", "16", "-j", "1", "--runs", str(folder)]


@pytest.fixture(scope="module")
def undisturbed(suite, tmp_path_factory):
    """Experiment -> value of every metric, of a sweep that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert invoke(*sweep(suite, folder)).status == 0
    return values(runs.find(folder, "latest"))


def values(run):
    rows = run.results().records()
    counted = Counter((row["experiment"], row["metric"]) for row in rows)
    assert set(counted.values()) == {1}, counted.most_common(3)
    return {(row["experiment"], row["metric"]): row["value"] for row in rows}


def begun(words, **how):
    return subprocess.Popen([*LINKWRIGHT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def killed_after(words, seconds):
    """Whether the process was still alive when it was killed."""
    with begun(words, start_new_session=True) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def ended(words, **how):
    """Status and message of a command that ran to its end; it is one of ours, without a traceback."""
    with begun(words, **how) as process:
        try:
            _, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode in (0, 1, 2), (process.returncode, err)
    assert "Traceback" not in err
    return process.returncode, err


def finish(folder):
    """Resume the newest run until it is done, if there is one to resume."""
    run = runs.find(folder, "latest")
    if run.plan["state"] != "done":
        result = invoke("dissect", "--resume", run.id, "--runs", str(folder))
        assert result.status == 0, result.err
    return run


def test_a_sweep_that_is_killed_at_any_moment_is_completed_by_a_resume(suite, undisturbed, tmp_path):
    draw = random.Random(SEED)
    began = time.monotonic()
    assert ended(sweep(suite, tmp_path / "whole")) == (0, "")
    whole = time.monotonic() - began
    hits = 0
    for number in range(20 * KILLS):  # a machine whose load changes may end some of them before they are killed
        if hits == KILLS:
            break
        folder = tmp_path / str(number)
        hits += killed_after(sweep(suite, folder), draw.uniform(0.1, 1.0) * whole)
        listed = invoke("list", "runs", "--runs", str(folder))
        assert listed.status == 0, listed.err
        if any(folder.glob("*/run.json")):
            assert values(finish(folder)) == undisturbed
    assert hits > 0


def test_a_sweep_that_is_killed_again_and_again_ends(suite, undisturbed, tmp_path):
    draw = random.Random(SEED + 1)
    killed_after(sweep(suite, tmp_path), 3.0)
    for _ in range(KILLS // 2):
        run = runs.find(tmp_path, "latest")
        killed_after(["dissect", "--resume", run.id, "--runs", str(tmp_path)], draw.uniform(0.5, 1.5))
    assert values(finish(tmp_path)) == undisturbed
    assert len(list(tmp_path.iterdir())) == 1


def test_a_measurement_that_is_killed_is_completed_by_a_resume(tmp_path):
    draw = random.Random(SEED + 2)
    for number in range(max(1, KILLS // 4)):
        folder = tmp_path / str(number)
        words = [*RUN, "--sizes", "8,64,512", "--time-budget", "6s", "--runs", str(folder)]
        killed_after(words, draw.uniform(1.0, 4.0))
        if not any(folder.glob("*/run.json")):
            continue
        run = finish(folder)
        assert len({experiment for experiment, metric in values(run) if metric == "time"}) == 3
        samples = run.samples().records()
        counted = Counter((s["experiment"], s["launch"], s["rank"], s["sample"]) for s in samples)
        assert set(counted.values()) == {1}


def test_an_import_that_is_killed_leaves_a_whole_run_or_none(tmp_path):
    draw = random.Random(SEED + 3)
    log = tmp_path / "log.txt"
    log.write_text(NCCL, encoding="utf-8")
    for number in range(KILLS):
        folder = tmp_path / str(number)
        killed_after(["import", "--as", "nccl-tests", str(log), "--runs", str(folder)], draw.uniform(0.3, 1.5))
        listed = json.loads(invoke("list", "runs", "--json", "--runs", str(folder)).out)
        assert len(listed) <= 1
        if listed:
            assert len(runs.find(folder, "latest").results()) > 0
        assert invoke("import", "--as", "nccl-tests", str(log), "--runs", str(folder)).status == 0


# --- disk -------------------------------------------------------------------------------------------


def limited(**limits):
    """Sets limits of the process that is about to start."""

    def set_them():
        for name, value in limits.items():
            which = getattr(resource, f"RLIMIT_{name.upper()}")
            resource.setrlimit(which, (value, resource.getrlimit(which)[1]))

    return set_them


@pytest.mark.parametrize("most_bytes", [0, 300, 2000, 6000, 20_000])
def test_a_write_that_fails_is_a_message_and_the_run_goes_on_later(suite, undisturbed, tmp_path, most_bytes):
    status, err = ended(sweep(suite, tmp_path), preexec_fn=limited(fsize=most_bytes))
    assert status in (1, 2)
    assert err.startswith("linkwright: ") or "\nlinkwright: " in err
    if any(tmp_path.glob("*/run.json")):
        assert values(finish(tmp_path)) == undisturbed
    else:
        assert invoke(*sweep(suite, tmp_path)).status == 0
    assert not list(tmp_path.rglob("*.tmp"))


def namespace(script, *arguments):
    """Run a shell script as root of a mount namespace of its own; skips where that is forbidden."""
    if subprocess.run(["unshare", "-Urm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system forbids namespaces to users")
    words = ["unshare", "-Urm", "sh", "-c", script, "sh", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("most_kib", [4, 24, 60])
def test_a_full_disk_ends_with_a_message_and_with_space_the_run_goes_on(suite, tmp_path, most_kib):
    script = f"""
        mount -t tmpfs -o size={most_kib}k none "$1" || exit 77
        {" ".join(LINKWRIGHT)} sweep "$2" --on loggp -p 16 -j 1 --runs "$1" > /dev/null; echo "status $?"
        mount -o remount,size=100m "$1"
        id=$(ls "$1" | head -1)
        test -f "$1/$id/run.json" || exit 0
        {" ".join(LINKWRIGHT)} sweep --resume "$id" --runs "$1" > /dev/null; echo "resumed $?"
    """
    done = namespace(script, tmp_path, suite)
    if done.returncode == 77:
        pytest.skip("this system forbids tmpfs to users")
    assert "Traceback" not in done.stderr
    assert "status 1" in done.stdout, done
    assert "disk is full" in done.stderr
    assert "resumed 0" in done.stdout or "resumed" not in done.stdout, done


# --- time, processors, memory, files ----------------------------------------------------------------


def children(pid):
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_rank_that_stops_costs_at_most_its_launch(tmp_path, comes_back):
    words = [*RUN, "--sizes", "64", "--time-budget", "4s", "--runs", str(tmp_path)]
    with begun(words) as process:
        for _ in range(200):
            if (found := children(process.pid)) or process.poll() is not None:
                break
            time.sleep(0.02)
        time.sleep(0.3)
        for child in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
        if comes_back:
            time.sleep(0.5)
            for child in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGCONT)
        _, err = process.communicate(timeout=110)
    assert found
    assert process.returncode in (0, 1), err
    assert "Traceback" not in err
    run = runs.find(tmp_path, "latest")
    assert run.plan["state"] == "done"
    rows = [row for row in run.results().records() if row["metric"] == "time"]
    assert all(row["value"] or row["reason"] for row in rows)


def test_a_clock_that_jumps_back_overwrites_no_run(suite, undisturbed, tmp_path, monkeypatch):
    noon = datetime.datetime(2026, 3, 29, 12, tzinfo=datetime.UTC)
    jumps = iter([0, 86400, -86400, 0, 0])  # seconds; the last two runs begin in the second of the first

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return noon + datetime.timedelta(seconds=next(jumps))

    monkeypatch.setattr(runs.datetime, "datetime", Clock)
    monkeypatch.setattr(environment, "collect", lambda: {"time": str(noon)})
    made = [runs.create(tmp_path, "x", "", {}).id for _ in range(4)]
    assert len(set(made)) == 4
    assert runs.find(tmp_path, "latest").id == made[1]  # by the clock, as ids are
    assert invoke(*sweep(suite, tmp_path)).status == 0
    (new,) = {path.name for path in tmp_path.iterdir()} - set(made)
    assert values(runs.find(tmp_path, new)) == undisturbed


def test_two_processes_share_a_folder_of_runs(suite, undisturbed, tmp_path):
    with begun(sweep(suite, tmp_path)) as one, begun(sweep(suite, tmp_path)) as other:
        for process in (one, other):
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
    found = [entry["key"] for entry in runs.entries(tmp_path)]
    assert len(found) == 2
    for key in found:
        assert values(runs.find(tmp_path, key)) == undisturbed


def test_two_resumes_of_one_run_are_one_run(suite, undisturbed, tmp_path):
    killed_after(sweep(suite, tmp_path), 2.0)
    if not any(tmp_path.glob("*/run.json")):
        pytest.skip("this system is too slow to have begun")
    again = ["dissect", "--resume", "latest", "--runs", str(tmp_path)]
    with begun(again) as one, begun(again) as other:
        said = [(process.communicate(timeout=120)[1], process.returncode) for process in (one, other)]
    assert all(status == 0 or (status in (1, 2) and "Traceback" not in err) for err, status in said), said
    assert values(finish(tmp_path)) == undisturbed


@pytest.mark.parametrize("words", [[*RUN, "--sizes", "64", *BRIEF], ["run", "cache_line", *BRIEF]])
def test_one_processor_is_enough_or_said_to_be_too_few(tmp_path, words):
    one = {min(os.sched_getaffinity(0))}
    status, err = ended([*words, "--runs", str(tmp_path)], preexec_fn=lambda: os.sched_setaffinity(0, one))
    assert status == 0 or "processor" in err or "no experiment gave a value" in err, err


@pytest.mark.parametrize("limits", [{"nofile": 12}, {"nofile": 24}, {"as": 1 << 30}], ids=str)
@pytest.mark.parametrize("verb", ["sweep", "run"])
def test_limits_of_the_shell_end_with_a_message(suite, tmp_path, limits, verb):
    words = sweep(suite, tmp_path)
    if verb == "run":
        words = [*RUN, "--sizes", "64", "--time-budget", "2s", "--runs", str(tmp_path)]
    ended(words, preexec_fn=limited(**limits))


def test_no_shared_memory_and_no_home_are_needed(suite, tmp_path):
    script = f"""
        mount -t tmpfs -o ro none /dev/shm || exit 77
        HOME=/proc/none XDG_CACHE_HOME=/proc/none; export HOME XDG_CACHE_HOME
        {" ".join(LINKWRIGHT)} sweep "$2" --on loggp -p 4 --runs "$1" > /dev/null || exit 1
        {" ".join(LINKWRIGHT)} {" ".join(RUN)} --sizes 64 {" ".join(BRIEF)} --runs "$1" > /dev/null || exit 1
    """
    done = namespace(script, tmp_path, suite)
    if done.returncode == 77:
        pytest.skip("this system forbids tmpfs to users")
    assert done.returncode == 0, done.stderr


def test_what_needs_more_memory_than_the_process_may_have_is_refused():
    words = ["verify", "allreduce/ring", "-p", "4096", "--size", "16M"]
    with begun(words, preexec_fn=limited(**{"as": 800 << 20})) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "operations, waits, buffers or chunks" in " ".join(out.split()), out + err


def test_a_small_question_needs_little_memory():
    with begun(
        ["simulate", "allreduce", "-a", "ring", "--on", "loggp"], preexec_fn=limited(**{"as": 1 << 30})
    ) as process:
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")


def test_memory_that_runs_out_in_the_middle_is_one_message():
    words = ["simulate", "allreduce", "-a", "all", "--on", "loggp", "-p", "1024", "--sizes", "64K"]
    with begun(words, preexec_fn=limited(**{"as": 600 << 20})) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert err.startswith("linkwright: out of memory; ask for less at once"), err
    assert err.count("\n") == 1, err
