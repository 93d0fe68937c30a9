"""Schedules of the user's own: files and functions in every verb, executed only where they were named."""

import io
import json
import os
import pickle
import shutil
import sys
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.ask import schedules, sources
from linkwright.ask.question import Collective, Program, changed, of_json
from linkwright.base.errors import FileError, ScheduleError, ShapeError, UsageError, WaivedError
from linkwright.libraries.questions import collective_question, own_question
from linkwright.session.suite import load
from linkwright.store import run as runs
from linkwright_cases import BRIEF, invoke

ROOT = Path(__file__).parents[2]
OWN = '''
import linkwright as lw

CALLS = []


def star(ranks, size, dtype="f32"):
    """Everyone adds into rank 0, which sends the sum to everyone."""
    CALLS.append((ranks, size))
    print("hello")
    b = lw.Builder("allreduce", ranks, size, dtype=dtype)
    b.buffer("output")
    for rank in range(1, ranks):
        b.step()
        b.put(rank, 0, "output", 0, reduce=True)
    b.step()
    for rank in range(1, ranks):
        b.put(0, rank, "output", 0)
    return b.finish()


def raises(ranks, size):
    return 1 // (ranks - ranks)


def refuses(ranks):
    raise lw.WaivedError("only on Sundays")


def nothing(ranks):
    pass


def other_ranks(ranks, size):
    return lw.schedule("allreduce", "ring", ranks=ranks + 1, size=size)


def other_size(ranks):
    return lw.schedule("allreduce", "ring", ranks=ranks, size="4K")


def broadcast(ranks, size, root):
    return lw.schedule("broadcast", "linear", ranks=ranks, size=size, root=root)


def wrong(ranks, size):
    b = lw.Builder("allreduce", ranks, size)
    b.buffer("output")
    b.step()
    b.put(0, 1, "output", 0, reduce=True)
    return b.finish()


def asks(ranks, colour):
    pass


def ring(ranks, size):
    return lw.schedule("allreduce", "ring", ranks=ranks, size=size)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources.find.cache_clear()
    sources._function.cache_clear()  # another test's own.py has functions of these names
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own.lw").write_text(lw.schedule("allreduce", "ring", ranks=4, size="64K").text())
    return tmp_path


def of(name, ranks=4, size=4096, **more):
    return collective_question("x", "allreduce", name, ranks, size, "f32", "sum", **more)


def test_a_function_is_called_for_each_experiment_and_what_it_prints_is_no_result(folder):
    result = invoke("simulate", "allreduce", "-a", "ring,own.py:star", "--on", "loggp", "-p", "4", "--sizes", "1K,1M")
    assert result.status == 0
    assert "hello" not in result.out
    assert result.err.count("hello") >= 2
    assert [line.split()[1] for line in result.out.splitlines() if line.endswith("ok")] == ["ring", "own.py:star"] * 2


def test_the_same_algorithm_has_the_same_time_from_every_source(folder):
    times = set()
    for name in ("ring", "own.py:ring", "own.lw", "./own.lw", str(folder / "own.py") + ":ring"):
        schedule = schedules.of(of(name, size=1 << 20))
        times.add(lw.simulate(schedule, "loggp").time_us)
    assert len(times) == 1


def test_a_file_has_its_own_size_or_the_one_asked_for(folder):
    assert lw.load("own.lw").size_bytes == 64 << 10
    assert lw.load("own.lw", size="1M").size_bytes == 1 << 20
    result = invoke("simulate", "own.lw", "--on", "loggp")
    assert "64K" in result.out
    assert "4 ranks" in result.out
    assert "1K" in invoke("simulate", "own.lw", "--on", "loggp", "--sizes", "1K").out


def test_standard_input_is_a_file(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper((folder / "own.lw").open("rb")))
    result = invoke("simulate", "-", "--on", "loggp", "--sizes", "1M")
    assert result.status == 0
    assert "stdin" in result.out


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("verify", ()),
        ("describe", ()),
        ("simulate", ("--on", "crossbar", "--sizes", "4K")),
        ("dissect", ("--on", "loggp", "--runs", "runs")),
        ("export", ("--as", "lw")),
    ],
)
@pytest.mark.parametrize("name", ["own.lw", "./own.py:ring"])
def test_every_verb_takes_a_source(folder, verb, arguments, name):
    ranks = ("-p", "4") if name.endswith("ring") else ()
    assert invoke(verb, name, *arguments, *ranks).status == 0


def test_threads_run_a_source_in_processes_that_never_see_it(folder):
    result = invoke("run", "own.py:ring", "--on", "threads", "-p", "2", "--sizes", "1K", *BRIEF, "--runs", "runs")
    assert result.status == 0, result.out + result.err
    run = runs.find(folder / "runs", "latest")
    (row,) = [row for row in run.results().records() if row["metric"] == "time"]
    assert (row["algorithm"], row["status"]) == ("own.py:ring", "ok")
    kept = run.schedule(row["schedule"])
    assert kept == lw.schedule("allreduce", "ring", ranks=2, size="1K").text()


def test_a_resumed_run_executes_nothing_of_the_users(folder):
    asked = ("dissect", "own.py:star", "--on", "loggp", "-p", "3", "--runs", "runs")
    assert invoke(*asked).status == 0
    run = runs.find(folder / "runs", "latest")
    before = run.results().records()
    run.mark("running")  # as if it had been interrupted before it measured anything
    (folder / "own.py").write_text("raise SystemExit('executed')")
    sources.find.cache_clear()
    assert invoke("dissect", "--resume", "latest", "--runs", "runs").status == 0
    assert run.results().records() == before


def test_a_comparison_says_what_was_edited(folder):
    for edited in (False, True):
        if edited:
            text = (folder / "own.lw").read_text()
            (folder / "own.lw").write_text(text.replace("step 1\n", "step 0\n", 1))
        sources.find.cache_clear()
        asked = ("dissect", "own.lw", "--on", "loggp", "--runs", "runs")
        assert invoke(*asked).status == 0
    result = invoke("compare", "latest~1", "latest", "--runs", "runs")
    assert "1 experiment whose schedule was edited" in " ".join(result.out.split())


def test_two_sources_of_one_name_are_refused(folder):
    (folder / "other").mkdir()
    shutil.copy(folder / "own.lw", folder / "other" / "own.lw")
    result = invoke("simulate", "allreduce", "-a", "own.lw,other/own.lw", "--on", "loggp", "--sizes", "4K")
    assert result.status == 2
    assert "two schedules are called own.lw" in result.err


def test_a_size_that_chunks_of_different_buffers_do_not_divide_is_waived_with_one_that_they_do(folder):
    builder = lw.Builder("broadcast", 2, 12)  # 3 elements
    builder.buffer("output", 3)
    builder.buffer("relay", 1, parts=3)
    builder.step()
    builder.put(0, 1, "output", 0, into="relay", at=0)
    builder.put(0, 1, "output", 1, 2)
    builder.step()
    builder.local(1, "relay", 0, "output", 0)
    (folder / "thirds.lw").write_text(builder.finish().text())
    # 4 elements are cut into 2, 1 and 1, and the relay has one: 16 B do not do, 12 B and 24 B do.
    assert lw.verify(lw.load("thirds.lw", size=24)).exact
    with pytest.raises(
        WaivedError, match=r"thirds.lw: its chunks do not divide 16 B; .* multiple of 12 B, such as 12 B"
    ):
        lw.load("thirds.lw", size=16)


def test_what_never_ends_is_refused(folder, monkeypatch):
    monkeypatch.setattr(sources, "MAX_CHARACTERS", 1 << 20)
    result = invoke("simulate", "/dev/zero", "--on", "loggp")
    assert result.status == 2
    assert "/dev/zero: has more than 1 Mi characters" in result.err


@pytest.mark.parametrize("name", ["./own.py:ring", "own.lw", "own.xml"])
@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("simulate", ("--on", "loggp")),
        ("run", ("--on", "threads", *BRIEF, "--runs", "runs")),
        ("dissect", ("--on", "loggp", "--runs", "runs")),
        ("predict", ("--on", str(ROOT / "examples" / "eight_gpus.toml"))),
    ],
)
def test_every_kind_of_source_goes_everywhere(folder, verb, arguments, name):
    ranks = 8 if verb == "predict" else 4
    ring = lw.schedule("allreduce", "ring", ranks=ranks, size="64K")
    (folder / "own.lw").write_text(ring.text())
    (folder / "own.xml").write_text(ring.export("msccl-xml"))
    (folder / "step.toml").write_text(
        '[app]\nformat = 1\nkind = "supersteps"\nname = "mine"\n[[superstep]]\nname = "x"\n'
        f'[[superstep.message]]\ncollective = "allreduce"\nsize = "64K"\nalgorithm = "{name}"\n'
    )
    what = "step.toml" if verb == "predict" else name
    asked = ("-p", "4") if name.endswith("ring") and verb != "predict" else ()
    sizes = ("--sizes", "64K") if verb in ("simulate", "run") else ()
    result = invoke(verb, what, *arguments, *asked, *sizes)
    assert result.status == 0, result.out + result.err


def test_a_suite_names_sources_next_to_it(folder, monkeypatch):
    (folder / "suite.toml").write_text(
        '[suite]\nformat = 1\nname = "mine"\nsummary = "s"\n'
        '[[part]]\nname = "a"\nsummary = "s"\ncollectives = "allreduce"\nalgorithms = ["ring", "own.py:star"]\n'
        'sizes = ["4K"]\nranks = [4]\n'
        '[[part]]\nname = "b"\nsummary = "s"\nschedules = ["own.lw"]\n'
    )
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    result = invoke("dissect", "../suite.toml", "--on", "loggp", "--runs", "runs")
    assert result.status == 0, result.out + result.err
    rows = runs.find(folder / "elsewhere" / "runs", "latest").results().records()
    found = {(row["part"], row["algorithm"], row["size_bytes"]) for row in rows}
    assert found == {("a", "ring", 4096), ("a", "own.py:star", 4096), ("b", "own.lw", 65536)}
    suite = load.load(folder / "suite.toml")
    assert load.parse(suite.text, "again.toml") == suite


def test_a_program_to_predict_names_sources_next_to_it(folder, monkeypatch):
    (folder / "step.toml").write_text(
        '[app]\nformat = 1\nkind = "supersteps"\nname = "mine"\n[[superstep]]\nname = "x"\n'
        '[[superstep.message]]\ncollective = "allreduce"\nsize = "4K"\nalgorithm = "own.py:ring"\n'
    )
    monkeypatch.chdir("/")
    result = invoke("predict", str(folder / "step.toml"), "--on", "cell-be", "--json")
    assert result.status == 0, result.err
    named = invoke("predict", str(folder / "step.toml"), "--on", "cell-be").out
    assert "own.py:ring" in named


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("own.py:raises", ScheduleError, r"own.py:raises \(line 23, in raises\): ZeroDivisionError: "),
        ("own.py:refuses", WaivedError, r"own.py:refuses \(line 27, in refuses\): only on Sundays"),
        ("own.py:nothing", ScheduleError, "returned nothing for 4 ranks and 4K; return a schedule"),
        ("own.py:other_ranks", ScheduleError, "was asked for ranks 4 and returned a schedule with 5"),
        ("own.py:other_size", ScheduleError, "was asked for 8192 B and returned a schedule of 4096 B"),
        ("own.py:broadcast", UsageError, "implements broadcast, not allreduce"),
        (
            "own.py:asks",
            UsageError,
            "has a parameter `colour`, which nothing passes; it may have ranks, size",
        ),
        ("own.lw", WaivedError, "is a schedule for 4 ranks, not for 3"),
    ],
)
def test_what_a_source_does_wrong_is_an_error_with_its_own_line(folder, name, kind, message):
    ranks = 3 if name == "own.lw" else 4
    experiment = of(name, ranks, 8192 if name.endswith("size") else 4096)
    with pytest.raises(kind, match=message):
        schedules.of(experiment)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own.py", "name a function in it as well"),
        ("own.py:stra", "did you mean `star`"),
        ("gone.py:f", "gone.py: does not exist"),
        ("gone.lw", "gone.lw: cannot be read: No such file"),
        ("no_such_module:f", "no module `no_such_module` is installed; of a file, write"),
        ("not a module:f", "is not the name of a module"),
        ("broken.py:f", r"broken.py \(line 2\): SyntaxError"),
        ("raising.py:f", r"raising.py \(line 1, in <module>\): RuntimeError: at once"),
        ("binary.lw", "is not text in UTF-8"),
        ("./plan.xml", "plan.xml: line 1: .* begins no known format"),
    ],
)
def test_what_cannot_be_loaded_is_refused_at_once(folder, name, message):
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    (folder / "raising.py").write_text("raise RuntimeError('at once')\n")
    (folder / "binary.lw").write_bytes(b"\xff\xfe\x00")
    (folder / "plan.xml").write_text("hello")
    with pytest.raises(UsageError, match=message):
        of(name)


def test_a_wrong_schedule_is_a_failed_row_not_a_number(folder):
    result = invoke("simulate", "allreduce", "-a", "ring,own.py:wrong", "--on", "loggp", "-p", "4", "--sizes", "4K")
    assert result.status == 1
    assert "failed" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "own.lw", "--on", "loggp", "-p", "8"), "own.lw is a schedule for 4 ranks; omit --ranks"),
        (("simulate", "own.lw", "-a", "ring", "--on", "loggp"), "states its own collective; omit --algorithm"),
        (("export", "allreduce", "--as", "lw"), "writes one schedule; name it"),
        (("export", "own.lw", "--as", "lw", "--machine", "x"), "a schedule has no machine"),
        (("describe", "own.lw", "--path", "x"), "--path applies to a limit"),
    ],
)
def test_options_that_a_source_has_no_use_for_are_refused(folder, arguments, message):
    result = invoke(*arguments)
    assert result.status == 2
    assert message in " ".join(result.err.split())


def test_an_experiment_with_a_schedule_survives_json_and_pickle(folder):
    experiment = of("own.py:ring")
    for copy in (
        of_json(json.loads(json.dumps(experiment.to_json()))),
        pickle.loads(pickle.dumps(experiment)),
    ):
        assert copy.key == experiment.key
        assert schedules.of(copy).text() == schedules.of(experiment).text()
    failing = of("own.py:raises")
    again = of_json(json.loads(json.dumps(failing.to_json())))
    with pytest.raises(ScheduleError, match="ZeroDivisionError"):
        schedules.of(again)


def test_traffic_is_marked_and_counts_the_bytes_that_move(folder):
    builder = lw.Builder("pattern", ranks=3, size="4K")
    builder.buffer("input")
    builder.buffer("output")
    builder.step()
    for rank in (1, 2):
        builder.put(rank, 0, "input", 0, into="output")
        builder.step()
    (folder / "hot.lw").write_text(builder.finish().text())
    experiment = own_question("x", "hot.lw", None, None, "f32", "sum")
    assert (type(experiment), experiment.size_bytes) == (Program, 8192)
    result = invoke("simulate", "hot.lw", "--on", "loggp", "--output", "rows.csv")
    assert result.status == 0, result.err
    assert "traffic" in (folder / "rows.csv").read_text()


def test_an_installed_package_brings_algorithms(folder, monkeypatch):
    package = folder / "site" / "mine"
    package.mkdir(parents=True)
    shutil.copy(folder / "own.py", package / "__init__.py")
    about = folder / "site" / "mine-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(
        "[linkwright.algorithms]\nallreduce.star2 = mine:star\nnope.x = mine:star\n"
    )
    monkeypatch.syspath_prepend(str(folder / "site"))
    sources._entry_points.cache_clear()
    try:
        listed = invoke("list", "algorithms").out
        assert "allreduce/star2" in listed
        assert "mine 1.2" in listed
        assert "nope" not in listed
        assert "mine" not in sys.modules  # nothing was executed to list it
        assert schedules.of(of("star2")).messages == 8  # 3 in, 3 out, and 2 notices
        assert invoke("simulate", "allreduce/star2", "--on", "loggp", "-p", "4", "--sizes", "1K").status == 0
        assert "star2" not in invoke("simulate", "allreduce", "--on", "loggp", "-p", "4", "--sizes", "1K").out
    finally:
        sources._entry_points.cache_clear()


def test_modules_are_named_by_their_dotted_names(folder, monkeypatch):
    shutil.copy(folder / "own.py", folder / "mymodule.py")
    monkeypatch.syspath_prepend(str(folder))
    assert schedules.of(of("mymodule:ring")).ranks == 4
    (folder / "broken_module.py").write_text("import imports_what_is_gone\n")
    with pytest.raises(FileError, match="imports_what_is_gone"):
        of("broken_module:f")


def test_a_collective_out_of_place_is_checked_by_the_judge(folder):
    builder = lw.Builder("allreduce", 2, "4K", out_of_place=True)
    builder.buffer("input")
    builder.buffer("output")
    builder.step()
    for rank in (0, 1):
        builder.local(rank, "input", 0, "output", 0)
    builder.step()
    for rank in (0, 1):
        builder.put(rank, 1 - rank, "input", 0, into="output", reduce=True)
    schedule = builder.finish()
    assert schedule.text().splitlines()[5] == "spec allreduce out_of_place"
    # 1024 elements of input, which must have stayed, and of output, on each of 2 ranks.
    assert lw.run(schedule, on="reference").rows[0]["reason"].startswith("4096 elements compared")
    assert lw.run(schedule, on="threads", launches=2, samples=5).time_us > 0


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun")
def test_mpi_starts_ranks_of_its_own_outside_a_job(folder, monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    for name in [name for name in os.environ if name.startswith(("OMPI_COMM", "PMIX", "PMI_"))]:
        monkeypatch.delenv(name)
    result = lw.run(lw.load("own.lw"), on="mpi", launches=2, samples=5)
    assert result.rows[0]["status"] == "ok"
    assert result.time_us > 0
    wrong = lw.load("own.py:wrong", ranks=2, size="4K")
    with pytest.raises(lw.VerifyError):
        lw.run(wrong, on="mpi")


def test_workers_import_nothing_from_the_current_folder(folder):
    (folder / "numpy.py").write_text("raise SystemExit('executed')\n")
    asked = ("run", "own.lw", "--on", "threads", *BRIEF, "--runs", "runs")
    result = invoke(*asked)
    assert result.status == 0, result.out + result.err


def test_a_field_of_another_kind_of_question_is_refused() -> None:
    asked = Collective("x", "ring", 4, 1024, collective="allreduce", op="sum")
    with pytest.raises(ShapeError, match="ring: messages does not apply to a collective; omit it"):
        changed(asked, messages=4)
    with pytest.raises(ShapeError, match="ring: wheels does not apply"):
        of_json({**asked.to_json(), "wheels": 4})
