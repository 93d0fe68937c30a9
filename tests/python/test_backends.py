"""Where modelled experiments run changes no byte of the results: threads, Dask, workers and schedulers that die."""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwright.base import registry
from linkwright.base.errors import BackendError
from linkwright.session.suite import load
from linkwright.session.suite.backends import Dask, Local, dask
from linkwright.session.suite.session import Request, Watcher, resume, start
from linkwright.store import run as runs
from linkwright_cases import invoke

SUITE = """
[suite]
format = 1
name = "small"
summary = "a few collectives, and a probe that has no model"
machines = ["loggp", "wormhole-n150"]

[[part]]
name = "collectives"
summary = "every algorithm"
collectives = ["allreduce", "alltoall"]
sizes = ["1K", "64K"]
ranks = [4, 16]
metrics = ["time", "alg_bw"]

[[part]]
name = "lines"
summary = "waived"
probe = "cache_line"
"""
REQUEST = Request(on="loggp,wormhole-n150", budget_s=1)


@pytest.fixture
def suite_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return str(path)


def started(folder, backend, watcher=None):
    return start(folder, load.parse(SUITE, "small.toml"), REQUEST, watcher or Watcher(), backend).run


def rows_of(run):
    return [{name: value for name, value in row.items() if name != "run"} for row in run.results().records()]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The rows on one thread."""
    return rows_of(started(tmp_path_factory.mktemp("one"), Local(jobs=1)))


class At(Watcher):
    """Does something once, after so many experiments of the last machine."""

    def __init__(self, count, do):
        self.count, self.do, self.done, self.of = count, do, None, 0

    def target(self, target, experiments):
        self.of = len(experiments)

    def progress(self, launch, done, text):
        if done >= self.count and self.done is None:
            self.done = done
            self.do()


# --- threads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [0, 2, 7])
def test_any_number_of_threads_gives_the_same_rows(tmp_path, expected, jobs):
    assert rows_of(started(tmp_path, Local(jobs))) == expected


@pytest.mark.parametrize("verb", [["sweep"], ["dissect", "--level", "full"]], ids="_".join)
def test_a_run_ends_with_its_report_and_says_what_ran_it(tmp_path, suite_file, expected, verb):
    result = invoke(*verb, suite_file, "--jobs", "2", "--runs", str(tmp_path))
    assert result.status == 0, result.err
    assert result.out.splitlines()[-1].endswith("report/index.html")
    run = runs.find(tmp_path, "latest")
    assert rows_of(run) == expected
    environment = json.loads((run.folder / "environment.json").read_text())
    assert environment["backend"] == {"key": "local", "jobs": 2}


class Counting(Local):
    """Remembers what it was asked for."""

    def run(self, work, experiments):
        self.__dict__.setdefault("asked", []).extend(e.key for e in experiments)
        return super().run(work, experiments)


def interrupt():
    raise KeyboardInterrupt


def test_after_ctrl_c_only_the_rest_is_run(tmp_path, expected):
    outcome = start(tmp_path, load.parse(SUITE, "small.toml"), REQUEST, At(9, interrupt), Local(jobs=1))
    assert outcome.interrupted
    kept = {row["experiment"] for record in outcome.run.records() for row in record["rows"]}
    assert len(kept) >= 9
    rest = Counting(jobs=1)
    assert not resume(outcome.run, Watcher(), rest).interrupted
    assert rows_of(outcome.run) == expected
    on_both = len({row["experiment"] for row in expected})
    assert len(rest.asked) == 2 * on_both - len(kept)


# --- Dask -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process of its own, that whoever knows the address may use, as of `dask scheduler`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask, "_private", lambda: contextlib.nullcontext({}))
        with dask._processes(2) as opened:
            yield opened


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_who_lacks_the_key_of_a_sweep_cannot_use_its_workers(tmp_path, suite_file):
    from distributed import Client
    from distributed.security import Security

    with dask._processes(1) as opened:
        address = opened.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        folder = Path(opened.security.tls_scheduler_key).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with dask._private() as other:  # a certificate, but another sweep's
            for security in (None, other["security"], Security(require_encryption=False)):
                with pytest.raises((OSError, TypeError)):
                    Client(address.replace("tls", "tcp") if security is None else address, timeout=3, security=security)
        result = invoke(
            "dissect",
            "--level",
            "full",
            suite_file,
            "--backend",
            "dask",
            "--scheduler",
            address,
            "--runs",
            str(tmp_path),
        )
        assert result.status == 1
        assert "configured with no certificate" in result.err
    assert not folder.exists()


def pids(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        return set(client.run(os.getpid).values())


def test_a_worker_killed_in_the_middle_costs_nothing(tmp_path, cluster, expected):
    before = pids(cluster)
    victim = min(before)
    killing = At(3, lambda: os.kill(victim, signal.SIGKILL))
    with Dask(cluster.scheduler_address, grain=1) as backend:
        run = started(tmp_path, backend, killing)
    assert killing.done < killing.of
    assert victim not in pids(cluster)
    assert rows_of(run) == expected
    environment = json.loads((run.folder / "environment.json").read_text())
    assert len(environment["backend"]["workers"]) == 2


@pytest.mark.slow
def test_an_experiment_that_kills_workers_fails_alone(tmp_path, cluster, expected, monkeypatch):
    harmless = dask.run_task

    def deadly(task):  # sent by value
        if any("alltoall/linear/p16/64K" in experiment.key for experiment in task.questions):
            os.kill(os.getpid(), signal.SIGKILL)
        return harmless(task)

    monkeypatch.setattr(dask, "run_task", deadly)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with Dask(cluster.scheduler_address, grain=4) as backend:
        suite = load.parse(SUITE, "small.toml")
        run = start(tmp_path, suite, Request(on="loggp", budget_s=1), Watcher(), backend).run
    found = rows_of(run)
    failed = [row for row in found if row["status"] == "failed"]
    assert ["alltoall/linear/p16/64K" in row["experiment"] for row in failed] == [True]
    assert "every worker that ran it was killed" in failed[0]["reason"]
    others = [row for row in expected if row["machine"] == "loggp"]
    others = [row for row in others if row["experiment"] != failed[0]["experiment"]]
    assert [row for row in found if row["status"] != "failed"] == others


def test_workers_with_another_linkwright_are_refused(tmp_path, cluster, suite_file, monkeypatch):
    monkeypatch.setattr(dask, "version", lambda: "9.9.9")
    command = ("dissect", "--level", "full", suite_file, "--backend", "dask", "--scheduler", cluster.scheduler_address)
    result = invoke(*command, "--runs", str(tmp_path / "runs"))
    assert result.status == 1
    assert "has linkwright 0.1.0, this sweep is of 9.9.9; install 9.9.9 on all workers" in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
    # One that joins later is refused by its first task.
    monkeypatch.setattr(dask, "_refuse_strangers", lambda client: None)
    result = invoke(*command, "--runs", str(tmp_path / "runs"))
    assert result.status == 1
    assert "has linkwright 0.1.0, this sweep is of 9.9.9" in result.err
    assert "dissect --backend dask --scheduler" in result.err


@contextlib.contextmanager
def scheduler_process(folder):
    """A scheduler and a worker, as a user starts them."""
    file = folder / "scheduler.json"
    dask_command = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [*dask_command, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    worker = [*dask_command, "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--scheduler-file", str(file)]
    with subprocess.Popen(scheduler, **quiet) as head, subprocess.Popen(worker, **quiet) as hand:
        try:
            until = time.monotonic() + 60
            while not file.exists() or not file.read_text().endswith("}"):
                assert head.poll() is None, "the scheduler ended"
                assert time.monotonic() < until, "the scheduler does not start"
                time.sleep(0.05)
            yield head, json.loads(file.read_text())["address"]
        finally:
            head.kill()
            hand.kill()


def test_after_the_scheduler_is_killed_a_run_goes_on(tmp_path, expected):
    with scheduler_process(tmp_path) as (process, address):
        killing = At(3, process.kill)
        with (
            Dask(address, grain=1) as backend,
            pytest.raises(BackendError, match=rf"{address} is gone; .* `linkwright dissect --backend dask .*--resume"),
        ):
            started(tmp_path / "runs", backend, killing)
    run = runs.find(tmp_path / "runs", "latest")
    kept = len({row["experiment"] for record in run.records() for row in record["rows"]})
    assert kept >= 3
    assert len(run.results())  # what is known is readable
    result = invoke("dissect", "--resume", run.id, "--runs", str(tmp_path / "runs"))
    assert result.status == 0, result.err
    assert rows_of(run) == expected


def test_ctrl_c_reaches_a_sweep_on_dask(tmp_path, suite_file, expected):
    command = [
        sys.executable,
        "-m",
        "linkwright",
        "dissect",
        "--level",
        "full",
        suite_file,
        "--backend",
        "dask",
        "--jobs",
        "1",
    ]
    command += ["--grain", "1", "--runs", str(tmp_path / "runs")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        for line in process.stdout:
            if line.startswith("# collectives: "):
                break
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "dissect --backend dask --resume" in err
    assert err.count("\n") == 1
    run = runs.find(tmp_path / "runs", "latest")
    assert run.records()
    assert invoke("dissect", "--resume", "latest", "--runs", str(tmp_path / "runs")).status == 0
    assert rows_of(run) == expected


# --- wrong usage ------------------------------------------------------------------------------------


def test_without_distributed_the_cure_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = invoke(
        "dissect", "--level", "full", "dissect", "--on", "loggp", "--backend", "dask", "--runs", str(tmp_path)
    )
    assert result.status == 2
    assert "`.venv/bin/pip install -e '.[dask]'` in the checkout" in result.err
    assert not list(tmp_path.iterdir())


def test_a_scheduler_that_does_not_answer_is_named_at_once(tmp_path):
    where = ["--backend", "dask", "--scheduler", "127.0.0.1:1", "--runs", str(tmp_path)]
    result = invoke("dissect", "--level", "full", "dissect", "--on", "loggp", *where)
    assert result.status == 1
    assert "--scheduler 127.0.0.1:1: no Dask scheduler answers there" in result.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["dissect", "--resume", "latest"], 2, "leave out '[SUITE|SOURCE]'"),
        (["dissect", "--suite", "scaling"], 2, "both name the suite"),
        (["--on", "threads", "--engine", "dask"], 2, "this executor measures, and a second job would"),
        (["dissect", "--on", "loggp,threads", "--jobs", "2"], 2, "--on threads: this executor measures"),
        (["dissect", "--on", "loggp", "--scheduler", "tcp://x:1"], 2, "add --backend dask"),
        (["dissect", "--on", "loggp", "--grain", "3"], 2, "add --backend dask"),
        (["dissect", "--on", "logp"], 2, "did you mean `loggp`"),
        (["disect", "--on", "loggp"], 2, "did you mean `dissect`"),
        (["dissect", "--on", "loggp", "--backend", "dask", "--scheduler", "nowhere"], 2, "is not an address"),
        (["dissect", "--on", "loggp", "--backend", "dask", "--scheduler", "tcp://nowhere"], 2, "`tcp://HOST:PORT`"),
        (["--resume", "latest", "--on", "loggp"], 2, "leave out '--on'"),
        (["dissect", "--backend", "dask", "--scheduler", "tcp://x:1", "--jobs", "2"], 2, "--jobs counts processes"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, arguments, status, message):
    result = invoke("dissect", *arguments, "--runs", str(tmp_path))
    assert result.status == status
    assert message in result.err
    assert result.err.count("\n") == 1


def test_the_option_knows_every_engine():
    from linkwright.cli.dissect import BACKENDS

    assert list(BACKENDS) == registry.keys("backends")
