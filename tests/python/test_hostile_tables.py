"""Every file of a run, every field of a log and every option of a verb, each damaged in all the ways that we know.

Where `test_fuzz.py` draws mutants, these tables are complete: nothing that is added later escapes them. Each answer is
a value or one message, without a traceback and without a folder that is half made.
"""

import itertools
import re
import shutil
from pathlib import Path

import click
import pytest

import log_cases
import test_cluster
import test_fuzz
from linkwright.base.errors import LinkwrightError
from linkwright.cli.main import VERBS, linkwright
from linkwright.formats.interop.importing import Defaults
from linkwright.formats.interop.logs import take
from linkwright.show import playground
from linkwright_cases import invoke

good_runs = test_fuzz.good_runs


# --- run folders ------------------------------------------------------------------------------------


def _another(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "without its last byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 4),
    "text of another encoding": lambda path: path.write_bytes("é\n".encode("utf-16")),
    "a list": lambda path: path.write_text("[1, 2]"),
    "a number": lambda path: path.write_text("1e999"),
    "a table without keys": lambda path: path.write_text("{}"),
    "deeply nested": lambda path: path.write_text("[" * 100_000),
    "doubled": lambda path: path.write_bytes(path.read_bytes() * 2),
    "a folder": _another,
    "a link to itself": lambda path: (path.unlink(), path.symlink_to(path)),
    "a link to what never ends": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
}
ASKED = (
    ("draw", "--report", "RUN"),
    ("export", "RUN", "--as", "csv", "--out", "OUT"),
    ("compare", "RUN", "OTHER"),
    ("fit", "RUN"),
    ("dissect", "--resume", "RUN"),
    ("explain", "RUN"),
    ("query", "select count(*) from results"),
)
# Every verb reads these, each in its own way.
READ_BY_ALL = {"run.json", "results.parquet"}


def damages(good_runs):
    """(run, file, kind of damage) of every file that a run holds for later."""
    for run in sorted(good_runs.iterdir()):
        for path in sorted(path for path in run.rglob("*") if path.is_file() and "report" not in path.parts):
            for kind in DAMAGE:
                yield run, path.relative_to(run), kind


def test_every_file_of_a_run_may_be_damaged_in_every_way(tmp_path, good_runs):
    cases = list(damages(good_runs))
    assert len(cases) >= 160
    seen = set()
    for (run, path, kind), one in zip(cases, itertools.cycle(ASKED), strict=False):
        if (run.name.split("-")[-1], path, kind) in seen:  # both sweeps have the same files
            continue
        seen.add((run.name.split("-")[-1], path, kind))
        root = tmp_path / "runs"
        shutil.copytree(good_runs, root)
        DAMAGE[kind](root / run.name / path)
        other = next(entry.name for entry in sorted(root.iterdir()) if entry.name != run.name)
        words = {"RUN": run.name, "OTHER": other, "OUT": str(tmp_path / "x.csv")}
        with test_fuzz.judged("run folder", kind, f"{run.name}/{path}"):
            for asked in ASKED if path.name in READ_BY_ALL else (one,):
                test_fuzz.one_message(invoke(*(words.get(word, word) for word in asked), "--runs", str(root)))
            listed = invoke("list", "runs", "--runs", str(root))
            assert (listed.status, listed.out.count("\n") >= 2) == (0, True), listed
        shutil.rmtree(root)
    assert len(seen) >= 100


def test_a_damaged_table_or_plan_is_never_taken_for_whole(tmp_path, good_runs):
    """`run.json` holds the digests of the tables, and says whether a run that lacks one was interrupted."""
    (run, *_) = sorted(run for run in good_runs.iterdir() if (run / "results.parquet").exists())
    for damaged, kind, said in (
        ("run.json", "deeply nested", "run.json: "),
        ("run.json", "a list", "run.json: "),
        ("run.json", "a folder", "run.json: "),
        ("run.json", "a link to what never ends", "run.json: "),
        ("results.parquet", "missing", "is gone, although its run is complete"),
        ("results.parquet", "a folder", "Is a directory"),
    ):
        root = tmp_path / "runs"
        shutil.copytree(good_runs, root)
        DAMAGE[kind](root / run.name / damaged)
        for verb in ("compare RUN latest", "export RUN --as csv", "explain RUN", "fit RUN", "draw --report RUN"):
            done = invoke(*verb.replace("RUN", run.name).split(), "--runs", str(root))
            assert (done.status, said in done.err) == (1, True), (damaged, kind, verb, done)
        shutil.rmtree(root)


# --- imports ----------------------------------------------------------------------------------------

FIELDS = ("", "-1", "0", "16.5", "1e300", "1e308", str(1 << 63), "9" * 23, "nan", "inf", "x", "\x1b[2J", "٣", "1_0")


def test_every_field_of_a_log_may_be_anything():
    tried = 0
    for text in (test_fuzz.OSU, test_fuzz.NCCL, log_cases.nccl(), log_cases.imb(), log_cases.PINGPONG, log_cases.RING):
        for field in re.finditer(r"[^\s#]+", text):
            for put in FIELDS:
                changed = text[: field.start()] + put + text[field.end() :]
                with test_fuzz.judged("import", f"{field.group()} -> {put!r}", changed):
                    try:
                        rows = take(Path("log.txt"), Defaults("allreduce", 4), text=changed).rows
                    except LinkwrightError as error:
                        said = str(error)
                        rows = []
                    else:
                        said = "log.txt"
                    assert said.startswith("log.txt"), said
                    assert "\x1b" not in said
                    assert all(0 <= row.size_bytes <= 1 << 50 and row.machine.isprintable() for row in rows)
                tried += 1
    assert tried >= 500


# --- command lines ----------------------------------------------------------------------------------

# A quick and right command line for each verb, and each subcommand; its options are then tried one by one.
RIGHT = {
    "list": "list machines",
    "describe": "describe ring",
    "draw": "draw allreduce/ring --on loggp -p 4 --size 64 --out x.svg",
    "play": "play",
    "explain": "explain log.txt --on loggp",
    "machines": "machines show loggp",
    "verify": "verify allreduce/ring -p 4",
    "simulate": "simulate allreduce -a ring --on loggp -p 4 --sizes 8",
    "run": "run allreduce -a ring --on threads -p 2 --sizes 8 --time-budget 1s",
    "run probe": "run memory_latency --on loggp",
    "dissect": "dissect --suite x.toml --on loggp -p 2",
    "reproduce": "reproduce vollo",
    "locate": "locate --on hgx-h100",
    "cluster": "cluster describe lab.toml",
    "expect": "expect allreduce --on hgx-h100 --sizes 1M",
    "predict": "predict resnet --batch 16 --gpus 1 --on dgx1-p100",
    "plan": "plan io --on vollo-ia420f --in 8 --out 8",
    "plan cost": "plan cost allreduce --on loggp -p 2 --sizes 8,64",
    "plan order": "plan order --on dgx1-p100 --tensor 2:1M --data 2:1M",
    "plan experts": "plan experts --on dgx1-p100 --tokens 4 --experts 16 --topk 2 --hidden 128",
    "synthesize": "synthesize broadcast --on loggp -p 2 --sizes 8 --budget 1s",
    "tune": "tune --on loggp --for ucc -p 2 --sizes 8",
    "fit": "fit latest --name x",
    "compare": "compare first second",
    "query": "query select(1)",
    "export": "export allreduce/ring -p 4 --size 64 --as goal",
    "import": "import log.txt --as nccl-tests",
    "draw report": "draw latest --report",
    "completion": "completion bash",
}
VALUES = ("", "nan", "-1", "9" * 400, "\x1b[31mred", "x" * 5000, "a\nb", "../../x", "18446744073709551616", "0")
# A number of processes is bounded, but a thousand of them are allowed.
TAKES_LONG = {"--jobs", "--backend", "--scheduler"}


@pytest.fixture
def place(tmp_path, monkeypatch, good_runs):
    """A folder with all that the right command lines name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good_runs, "runs")
    sweeps = sorted(run for run in Path("runs").iterdir() if "import" not in run.name)
    for run, name in zip(sweeps, ("first", "second"), strict=True):
        run.rename(run.with_name(name))
    Path("x.toml").write_text(test_fuzz.RUN_SUITE, encoding="utf-8")
    Path("log.txt").write_text(test_fuzz.NCCL, encoding="utf-8")
    Path("lab.toml").write_text(test_cluster.LAB.format(name="lab"), encoding="utf-8")


@pytest.mark.parametrize("words", RIGHT.values())
def test_the_right_command_lines_are_right(place, words):
    """Of a wrong one, no option would ever be looked at."""
    if words == "play" and not playground.ENGINE.exists():
        pytest.skip("there is no engine for browsers: make play")
    assert invoke(*words.split()).status in (0, 1)


def options(verb):
    """The options of a verb, or of the subcommand of it that `RIGHT` names."""
    command = linkwright.get_command(click.Context(linkwright), verb.split()[0])
    if isinstance(command, click.Group):
        command = command.get_command(click.Context(command), RIGHT[verb].split()[1])
    for option in command.params:
        if isinstance(option, click.Option) and not option.is_flag and not TAKES_LONG & set(option.opts):
            yield max(option.opts, key=len)


def test_every_option_may_be_given_anything(place):
    assert {line.split()[0] for line in RIGHT} == set(VERBS)
    tried, refused, wrong = 0, 0, []
    # One value for each option, or all of them (`make fuzz`).
    values = itertools.cycle([[value] for value in VALUES] if not test_fuzz.SECONDS else [VALUES])
    for verb in RIGHT:
        for option, value in ((option, value) for option in options(verb) for value in next(values)):
            try:
                with test_fuzz.judged("command", f"{verb} {option}", value[:80]):
                    result = invoke(*RIGHT[verb].split(), option, value)
                    test_fuzz.one_message(result)
                    assert len(result.err) < 5000
            except pytest.fail.Exception as error:
                wrong.append(str(error))
            tried, refused = tried + 1, refused + (result.status == 2)
    assert not wrong, "\n".join(wrong)
    assert tried >= 150
    assert refused > tried / 2


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_without_its_words_is_no_traceback(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if verb in ("dissect", "run", "list"):  # these have defaults that measure for a minute
        verb += " \x1b[31m"
    result = invoke(*verb.split(" "))
    assert result.status in (0, 1, 2), result
    assert "Traceback" not in result.err
    assert "\x1b" not in result.err
