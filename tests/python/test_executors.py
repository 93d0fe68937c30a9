"""One registry of executors behind one protocol; whatever differs between them is a field, not a name to compare."""

import dataclasses
import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright import executors
from linkwright.ask import schedules
from linkwright.ask.question import Collective, Pattern, of_row
from linkwright.base.errors import CudaError, UsageError
from linkwright.base.rows import Rows
from linkwright.executors import EXECUTORS, process
from linkwright.executors.protocol import Executor, Extent, Launch, Options, Target
from linkwright.libraries.questions import collective_question
from linkwright.store import run as runs
from linkwright.store import schema, upgrade
from linkwright.store.record import UNCHECKED, Ended, Note, Record, from_json, to_json
from linkwright_cases import BRIEF, invoke

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "python" / "linkwright").rglob("*.py"))
RING = lw.schedule("allreduce", "ring", ranks=2, size="4K")
RECORD = Record(
    experiment="e", launch=3, values_ns=[1.5, 2.5], first_ns=9.0, dropped={"migrated": 2},
    notes=(UNCHECKED, Note("remark", "a library, version 2")), canary_ns=(100.0, None), columns={"near": [1.0]},
)  # fmt: skip


@pytest.mark.parametrize("outcome", [RECORD, Ended("e", 1, "waived", "why, and what would do", "out-of-time")])
def test_an_outcome_survives_the_journal(outcome):
    assert from_json(json.loads(json.dumps(to_json(outcome)))) == outcome


def test_codes_of_notes_and_outcomes_are_documented():
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    flags = set(re.findall(r'Note\(\s*"([a-z-]+)"', text)) - {"remark"}
    assert flags <= schema.FLAGS.keys() | schema.CODES.keys()
    assert schema.FLAGS.keys() <= flags


@pytest.mark.parametrize(
    "pattern",
    [
        r'executor(\.key)?("\])?\s*(==|!=|in|not in)\s*[("{\[]',
        r'" (not )?in (str\()?[\w.\[\]"]*reason',
        r'reason("\])?(\.str)?\.(contains|startswith|endswith|partition|split|find|index)\b',
        r're\.\w+\([^)]*\["(reason|experiment)"\]',
    ],
)
def test_nothing_compares_names_of_executors_nor_searches_words_in_reasons(pattern):
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == []


class Doubling(Executor):
    """Takes twice as long with every launch; waives what is no allreduce."""

    key = "doubling"
    summary = "for a test"
    description = "For a test."
    is_host = True

    def resolve(self, ranks, grid):
        return Target(self.key, self, "Box", Extent("measured", ranks or 2, grid), ("left", "right"))

    def launch(self, target, launch, *, isolated=True):
        for experiment in launch.work:
            if experiment.what == "allreduce":
                yield Record(values_ns=[2.0**launch.number] * 4, first_ns=1.0).named(experiment.key, launch.number)
            else:
                yield Ended(experiment.key, launch.number, "waived", "an allreduce would do", "untimed")


@pytest.fixture
def doubling(monkeypatch):
    monkeypatch.setitem(EXECUTORS, "doubling", Doubling())


def test_an_executor_is_an_object_and_a_line(doubling, tmp_path):
    arguments = ["--sizes", "1K", *BRIEF, "--runs", str(tmp_path)]
    result = invoke("run", "allreduce/ring", "--on", "doubling,loggp", *arguments)
    assert result.status == 0, result.err
    (row,) = (
        row
        for row in lw.results(folder=tmp_path).to_dict("records")
        if row["executor"] == "doubling" and row["metric"] == "time"
    )
    assert (row["machine"], row["status"], row["grade"]) == ("Box", "ok", "wide")
    assert "doubling" in invoke("list", "executors").out
    assert lw.run(RING, on="doubling", launches=1).time_us == 0.001


@pytest.mark.parametrize(
    ("file", "heading"), [("CONTRIBUTING.md", "## Add an executor"), ("docs/executors.md", "### A whole executor")]
)
def test_the_sample_of_an_executor_works_as_printed(file, heading, monkeypatch, tmp_path):
    """Both say how to add one; what they print is registered and asked for by every door."""
    text = (ROOT / file).read_text(encoding="utf-8").partition(heading)[2]
    sample: dict[str, object] = {}
    exec(textwrap.dedent(re.search(r"^( *)```python\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)[2]), sample)
    monkeypatch.setitem(EXECUTORS, "serial", sample["Serial"]())
    arguments = ["--on", "serial", "-p", "3", "--sizes", "1K", "--iters", "5", "--runs", str(tmp_path)]
    result = invoke("run", "allreduce/ring", *arguments, "--time-budget", "20s")
    assert result.status == 0, result.err
    rows = lw.results(folder=tmp_path)
    (time,) = rows[rows["metric"] == "time"].to_dict("records")
    assert (time["executor"], time["machine"], time["ranks"], time["n"] >= 6) == ("serial", "one core", 3, True)
    assert lw.run(RING, on="serial", launches=6, samples=3).time_us > 0


def test_an_outcome_without_samples_is_a_row(doubling):
    gather = lw.schedule("gather", "linear", ranks=2, size="4K")
    row = lw.run(gather, on="doubling").row("time")
    assert (row["status"], row["code"], row["reason"]) == ("waived", "untimed", "an allreduce would do")


def test_a_schedule_of_ones_own_runs_on_every_executor_that_is_here():
    assert lw.run(RING, on="reference").row("time")["code"] == "untimed"
    assert lw.run(RING, on="loggp").row("time")["executor"] == "sim"
    assert lw.run(RING, on="threads", launches=2, samples=4, budget_s=0.2).row("time")["executor"] == "threads"
    for on in ("cuda", "gpus", "sim", "nothing"):
        with pytest.raises(lw.LinkwrightError, match="--on"):
            lw.run(RING, on=on)


def test_a_machine_that_is_lost_ends_a_launch_in_this_process():
    class Lost:
        def canary_ns(self, budget_s):
            return None

        def disturbances(self):
            raise CudaError("the GPU is gone")

        def measure(self, experiment, sampling):
            return Record(values_ns=[1.0], first_ns=1.0)

    work = [collective_question("t", "allreduce", "ring", 2, size, "f32", "sum") for size in (8, 16)]
    (ended,) = process.here(Lost, Launch(0, work, 60.0))
    assert (ended.experiment, ended.status, ended.code) == (work[0].key, "failed", "cuda.failed")


def test_two_executors_on_one_host_are_two_runs():
    with pytest.raises(UsageError, match="compete for the processors"):
        executors.resolve("threads,mpi")


def test_a_launch_that_dies_costs_one_experiment(tmp_path, monkeypatch):
    module = tmp_path / "dying.py"
    module.write_text(
        "import os\n"
        "from linkwright.executors.process import serve\n"
        "from linkwright.store.record import Record\n"
        "class Dying:\n"
        "    def canary_ns(self, budget_s): return None\n"
        "    def disturbances(self): return {}\n"
        "    def measure(self, experiment, sampling):\n"
        "        if experiment.size_bytes == 8: os._exit(7)\n"
        "        return Record(values_ns=[float(experiment.size_bytes)], first_ns=1.0)\n"
        "serve(lambda about: Dying())\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    work = [collective_question("t", "allreduce", "ring", 2, size, "f32", "sum") for size in (16, 8, 32)]
    found = list(process.fresh("dying", Launch(0, work, 60.0, Options())))
    assert [type(outcome).__name__ for outcome in found] == ["Record", "Ended", "Record"]
    assert (found[1].code, found[1].status) == ("process-ended", "failed")
    assert "status 7" in found[1].reason


def test_a_process_that_cannot_start_is_started_once(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text(
        f"open({str(tmp_path / 'started')!r}, 'a').write('x')\nimport no_such_module\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    work = [collective_question("t", "allreduce", "ring", 2, size, "f32", "sum") for size in (16, 8, 32)]
    found = list(process.fresh("broken", Launch(0, work, 60.0, Options())))
    assert [(outcome.experiment, outcome.status) for outcome in found] == [(e.key, "failed") for e in work]
    assert "ended with status 1 before it could measure" in found[0].reason
    assert (tmp_path / "started").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize(
    "experiment",
    [
        collective_question(
            "c", "broadcast", "binomial", 8, 64, "f32", "sum", root=3, grid=(4, 2), skew="uniform:5us", arithmetic=False
        ),
        Pattern("p", "pairs", 2, 64, "u8", placement=(3, 0), messages=16, both_ways=True),
        Collective("a", "ring", 4, 64, "f32", op="sum", issue="window(2)", path="fast", collective="allreduce"),
    ],
)  # fmt: skip
def test_a_row_says_all_of_its_experiment(experiment):
    flags = None if experiment.arithmetic else "unwarmed,no-arithmetic"
    row = schema.row(status="ok", metric="time", flags=flags, **experiment.columns())
    assert of_row(row) == experiment
    # Rows of the first format had these columns in the key only.
    first = {name: row[name] for name in schema.RESULTS if name not in _SINCE_2}
    old = Rows.from_records([first])
    assert of_row(upgrade.results(old).records()[0]) == experiment


_SINCE_4 = {"schedule"}
_SINCE_3 = {*_SINCE_4, "precision", "grade", "bound", "bound_name", "best_seen", "best_seen_name"}
_SINCE_2 = {"part", "endpoints", "root", "grid", "skew", "messages", "both_ways", "code", "flags", *_SINCE_3}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"status": "unconverged", "code": "wide-interval", "value": 10.0, "ci_low": 8.0, "ci_high": 11.0, "n": 6},
            {"status": "ok", "code": None, "precision": 0.15, "grade": "wide"},
        ),
        (
            {"status": "unconverged", "code": "few-launches", "value": 10.0, "n": 2, "flags": "unpinned"},
            {"status": "ok", "grade": "single", "flags": "unpinned"},
        ),
        (
            {"status": "unconverged", "code": "disturbed", "value": 10.0, "ci_low": 9.9, "ci_high": 10.1, "n": 6},
            {"status": "ok", "grade": "tight", "flags": "disturbed"},
        ),
        ({"status": "waived", "code": "out-of-time"}, {"status": "out-of-time", "grade": None}),
        ({"status": "waived", "code": "all-disturbed"}, {"status": "disturbed", "grade": None}),
        ({"status": "waived", "code": "not-on-mpi"}, {"status": "waived", "code": "not-on-mpi"}),
        (
            {"status": "ok", "value": 10.0, "limit": 4.0, "limit_name": "port"},
            {"grade": None, "limit": None, "limit_name": None, "bound": 4.0, "bound_name": "port"},
        ),
        (
            {"status": "ok", "value": 10.0, "limit": 4.0, "limit_name": "measured_copy_rate"},
            {"limit": None, "best_seen": 4.0, "best_seen_name": "copy_rate"},
        ),
        ({"status": "ok", "limit": 4.0, "limit_name": "gpu_peak"}, {"limit": 4.0, "limit_name": "gpu_peak"}),
    ],
)  # fmt: skip
def test_rows_of_the_second_format_are_read_as_todays(old, new):
    second = {name: old.get(name) for name in schema.RESULTS if name not in _SINCE_3}
    (row,) = upgrade.results(Rows.from_records([second])).records()
    assert {name: row[name] for name in new} == pytest.approx(new)


def test_records_are_frozen_and_samples_are_what_was_measured():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RECORD.launch = 4
    sampling = process.Sampling.of(Options(samples=5, seed=1), 2, 0.2)
    record = schedules.run_threads(
        RING, Collective("t", "ring", 2, 4096, "f32", op="sum", collective="allreduce"), **vars(sampling)
    )
    assert len(record.values_ns) <= 5
    assert np.max(np.array([times for _, times in record.ranks_ns]), axis=0).tolist() == record.values_ns


def test_a_run_begun_by_another_version_is_not_continued(tmp_path):
    run = runs.create(tmp_path, "dissect", "", {"request": {"on": "threads", "budget_s": 1.0}})
    plan = run.folder / "run.json"
    plan.write_text(plan.read_text(encoding="utf-8").replace('"format": 4', '"format": 3'), encoding="utf-8")
    result = invoke("dissect", "--resume", run.id, "--runs", str(tmp_path))
    assert (result.status, result.out) == (2, "")
    assert "another version of linkwright began this run" in result.err
