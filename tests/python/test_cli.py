import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from linkwright.base import registry
from linkwright.base.errors import unknown
from linkwright.cli.main import VERBS, linkwright
from linkwright.cli.options import Command
from linkwright_cases import invoke

# Prints which verb's help was the first to import one of the modules named as arguments.
WATCH_IMPORTS = """
import sys
from linkwright.cli.main import VERBS, status_of
for verb in (None, *VERBS):
    status_of([verb, "--help"] if verb else ["--help"])
    if found := set(sys.argv[1:]) & set(sys.modules):
        sys.exit(f"{verb or 'linkwright'} --help imports {sorted(found)}")
"""


def test_help_imports_nothing_slow():
    slow = ("numpy", "pandas", "pyarrow", "scipy", "duckdb", "jinja2", "linkwright._native")
    result = subprocess.run([sys.executable, "-c", WATCH_IMPORTS, *slow], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("Usage:") == 1 + len(VERBS)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_lists_have_one_line_for_each_entry(kind):
    lines = invoke("list", kind).out.splitlines()
    entries = json.loads(invoke("list", kind, "--json").out)
    assert all(line.startswith(f"{entry['key']} ") for line, entry in zip(lines, entries, strict=True))
    assert max(map(len, lines)) <= 80
    assert all(entry["summary"] for entry in entries)


@pytest.mark.parametrize(("kind", "entry"), [(k, e) for k in registry.KINDS for e in registry.entries(k)])
def test_every_entry_can_be_described(kind, entry):
    result = invoke("describe", str(entry["key"]))
    assert result.status == 0
    assert " ".join(str(entry["summary"]).split()) in " ".join(result.out.split())


@pytest.mark.parametrize("name", registry.keys("machines"))
def test_every_machine_shows_its_numbers(name):
    result = invoke("machines", "show", name)
    assert result.status == 0
    assert "fitted" in result.out.splitlines()[-1]
    assert json.loads(invoke("machines", "show", name, "--json").out)["numbers"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_LINKWRIGHT_COMPLETE" in invoke("completion", shell).out


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("linkwright simulate allg", "allgather"),
        ("linkwright describe allreduce/swing_b", "allreduce/swing_bandwidth"),
        ("linkwright machines show worm", "wormhole-n150"),
        ("linkwright simulate allreduce --on loggp,cross", "loggp,crossbar"),
        ("linkwright run memory_lat", "memory_latency"),
        ("linkwright run probe/memory_lat", "probe/memory_latency"),
        ("linkwright probe memory_lat", "memory_latency"),
    ],
)
def test_names_are_completed_from_the_registries(words, completed):
    environment = {"_LINKWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split()) - 1)
    command = [sys.executable, "-m", "linkwright"]
    found = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert found.stdout == f"plain,{completed}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lst"], "unknown verb `lst`; did you mean `list`?"),
        (["describe", "rign"], "unknown name `rign`"),
        (["machines", "show", "ipu-c2-server", "--rules", "--devices"], "give one of the two"),
        (["machines", "show", "loggp", "--devices"], "linkwright: machine loggp has a fabric of kind loggp and no"),
        (["machines", "show", "ipu-c2-chip", "--device", "1"], "linkwright: machine ipu-c2-chip is one chip"),
        (["machines", "show", "ipu-c2-board", "--device", "1,77"], "linkwright: there is no chip 77"),
        (["machines", "show", "wormhole"], "unknown machine `wormhole`; did you mean `wormhole-n150`?"),
        (["machines", "show", "nowhere/x.toml"], "`nowhere/x.toml` does not exist"),
        (["simulate", "allreduce", "--on", "./"], "machine file `./` is a folder; give a path"),
        (["verify", "allreduce", "-a", "nccl"], "only `--on gpus` has it (allreduce, allgather, broadcast)"),
        (["verify", "allreduce", "-a", "ring", "--ranks", "2", "--on", "threads"], "name a described machine"),
        (["run", "allreduce", "-a", "ring,cuda-native"], "algorithm `cuda-native`: only `--on cuda` has it"),
        (["fit", "nosuch"], "runs: unknown run `nosuch`"),
        (["draw", "latest", "--report", "--runs", "nowhere"], "nowhere: holds 0 runs, so no `latest`"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments, message):
    result = invoke(*arguments)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


# What each kind of name says of one that it does not know.
UNKNOWN = [
    (["lst"], "`list`", "linkwright --help"),
    (["list", "machine"], "`machine-importers` or `machines`", "linkwright list --help"),
    (["describe", "rign"], "`ring`", "linkwright list"),
    (["describe", "allreduce/rign"], "`allreduce/ring`", "linkwright list"),
    (["machines", "show", "logp"], "`loggp`", "linkwright list machines"),
    (["machines", "show", "ipu"], "`ipu-c2-board` or `ipu-c2-chip` or `ipu-c2-server`", "linkwright list machines"),
    (["simulate", "alreduce", "--on", "loggp"], "`allreduce` or `reduce`", "linkwright list collectives"),
    (["simulate", "allreduce/rign", "--on", "loggp"], "`ring`", "linkwright list algorithms"),
    (["simulate", "allreduce", "--on", "logp"], "`loggp`", "linkwright list executors"),
    (["run", "allreduce", "--on", "thread"], "`threads`", "linkwright list machines"),
    (["dissect", "scalng"], "`scaling`", "linkwright list suites"),
    (["predict", "resnt", "--on", "loggp"], "`resnet`", "linkwright list workloads"),
    (["run", "memory_latncy"], "`memory_latency`", "linkwright list probes"),
    (["run", "memory_latency", "-x", "ordr=random"], "`order`", "linkwright describe memory_latency"),
    (["export", "--as", "parket"], "`parquet`", "linkwright list exporters"),
    (["export", "allreduce/ring", "--as", "msccl-xm"], "`msccl-xml`", "linkwright list plans"),
    (["import", "--as", "ossu", "x"], "`osu`", "linkwright list importers"),
]


@pytest.mark.parametrize(("arguments", "near", "lists"), UNKNOWN)
def test_an_unknown_name_gets_the_nearest_of_its_kind_and_the_command_that_lists_them(arguments, near, lists):
    result = invoke(*arguments)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert f"; did you mean {near}? " in result.err
    assert f"`{lists}`" in result.err


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["machines", "show", "foo"], "are known; `linkwright list machines` shows all"),
        (["describe", "xyzzy"], "are known; `linkwright list` shows all"),
        (["draw", "foo", "--report"], "known: none (`linkwright list runs`)"),
    ],
)
def test_a_name_that_is_near_none_gets_no_suggestion(arguments, cure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.status == 2
    assert result.err.endswith(f"{cure}\n")
    assert "did you mean" not in result.err


def test_names_that_no_command_lists_are_shown_however_many():
    known = [f"name-{number}" for number in range(30)]
    assert str(unknown("thing", "xyzzy", known)).count("`name-") == 30
    assert str(unknown("thing", "xyzzy", known, lists="l")) == "unknown thing `xyzzy`; 30 are known; `l` shows all"


@pytest.mark.parametrize("verb", [["verify"], ["simulate", "--on", "loggp", "--sizes", "4K"], ["describe"]])
def test_every_verb_names_an_algorithm_in_the_same_ways(verb):
    name, *more = verb
    slashed = invoke(name, "allreduce/ring", *more)
    assert slashed.status == 0
    assert {"allreduce", "ring"} <= set(re.findall(r"\w+", slashed.out))
    for words in (["allreduce", "-a", "ring"], ["allreduce/ring", "-a", "ring"], ["allreduce", "-a", "allreduce/ring"]):
        assert invoke(name, *words, *more) == slashed


@pytest.mark.parametrize("verb", [["verify"], ["simulate", "--on", "loggp"], ["describe"], ["run"]])
def test_two_algorithms_or_none_are_refused(verb):
    name, *more = verb
    assert "a different one; give only one of them" in invoke(name, "allreduce/ring", "-a", "tree", *more).err
    empty = invoke(name, "allreduce/", "-a", "all", *more)
    assert "names no algorithm; write `allreduce`, or `allreduce/ring`" in empty.err
    assert empty.status == 2


def test_a_path_is_no_collective():
    assert "nowhere/ring" in invoke("verify", "nowhere/ring").err


def test_predict_takes_an_algorithm_by_its_full_name():
    words = ["predict", "cifarnet", "--on", "gx8-p100", "--gpus", "2", "--batch", "100"]
    assert invoke(*words, "-a", "allreduce/ring") == invoke(*words, "-a", "ring")
    assert "unknown algorithm of allreduce `broadcast/tree`" in invoke(*words, "-a", "broadcast/tree").err


def test_a_kind_before_a_name_chooses_among_those_that_share_it():
    assert invoke("describe", "collective/reduce").out.startswith("reduce (collective)\n")


def test_runs_are_listed_from_the_newest(tmp_path):
    for number, (state, request) in enumerate([("done", {"on": "threads"}), ("running", {"on": "loggp,threads"})]):
        folder = tmp_path / f"2026010{number}-run"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"state": state, "request": request}))
    (tmp_path / "20260109-run").mkdir()
    (tmp_path / "20260109-run" / "run.json").write_text("{")
    listed = invoke("list", "runs", "--runs", str(tmp_path))
    assert listed.out.splitlines() == [
        "20260109-run  run.json cannot be read",
        "20260101-run  on loggp,threads; unfinished",
        "20260100-run  on threads",
    ]
    assert (
        f"(`linkwright list runs --runs {tmp_path}`)\n" in invoke("draw", "x", "--report", "--runs", str(tmp_path)).err
    )
    assert "--runs is for `linkwright list runs`" in invoke("list", "machines", "--runs", "x").err


def test_the_plainest_of_the_names_that_may_be_meant_is_proposed_first():
    assert "did you mean `hgx-h100` or" in invoke("simulate", "allreduce", "--on", "H100").err


@pytest.mark.parametrize("words", [("compare", "latest"), ("export", "--as", "csv"), ("fit",), ("draw", "--report")])
def test_a_file_is_no_run_and_the_cure_makes_one_of_a_log(words, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("text")
    said = invoke(words[0], str(log), *words[1:]).err
    assert f"a.log: is a file, not a run; `linkwright import {log}` makes one" in said


@pytest.mark.parametrize("nodes", [(), ("--nodes", "2")])
def test_more_ranks_than_a_node_has_are_those_of_several(nodes):
    """Three nodes have room for 20 ranks, and 4 nodes for as many on each."""
    asked = ("simulate", "allreduce", "--on", "hgx-h100", "--sizes", "1M", "--ranks", "20")
    assert "ask for at most that many, or for --nodes 4\n" in invoke(*asked, *nodes).err
    assert invoke(*asked, "--nodes", "4").status == 0
    alone = ("simulate", "allreduce", "--on", "dgx1-p100", "--sizes", "1M", "--ranks", "20")
    assert "8 ranks; ask for at most that many\n" in invoke(*alone).err


@pytest.mark.parametrize("verb", [("predict",), ("predict", "llm")])
def test_a_log_is_no_program(verb):
    said = invoke(*verb, "examples/logs/h100-slow.log", "--on", "hgx-h100").err
    assert "is a log, not a program; `linkwright explain examples/logs/h100-slow.log` judges it" in said


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("simulate allgather --on loggp --sizes 1K --op max", "--op: allgather combines nothing; omit it"),
        ("simulate allreduce --on loggp --sizes 1K --root 3", "--root: allreduce has no root; omit it"),
        ("run alltoall --on threads --sizes 1K --root 0", "--root: alltoall has no root; omit it"),
        ("verify allgather/ring --root 1", "--root: allgather has no root; omit it"),
        ("export allreduce/ring -p 8 --as lw --root 1 --out x.lw", "--root: allreduce has no root; omit it"),
        ("synthesize broadcast --on loggp --sizes 1K --op max --out x", "--op: broadcast combines nothing; omit it"),
        ("synthesize allreduce --on loggp --sizes 1K -d fp8", "--dtype fp8: only tokens of a dispatch travel packed"),
        ("synthesize own.lw --on loggp", "unknown collective `own.lw`"),
        ("simulate allreduce --on loggp --sizes 1K -b 1K", "--sizes lists all sizes, and --min-bytes"),
    ],
)
def test_what_a_collective_has_not_and_sizes_twice_are_refused(line, says):
    assert says in invoke(*line.split()).err


def _commands(command, path):
    for name in getattr(command, "commands", ()):
        yield from _commands(command.commands[name], (*path, name))
    if not hasattr(command, "commands"):
        yield command, path


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_refuses_an_option_that_would_be_ignored(verb):
    for command, path in _commands(linkwright.get_command(None, verb), (verb,)):
        assert isinstance(command, Command), path


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("simulate allreduce --on hgx-h100 --sizes 1M --on mi300x", "--on"),
        ("simulate allreduce -a ring --algorithm nvls --on hgx-h100 --sizes 1M", "--algorithm"),
        ("predict llm llama3-8b --on b200 --tp 1 --tp=2", "--tp"),
        ("machines show hgx-h100 --nodes 2 --nodes 4", "--nodes"),
        ("plan order --on hgx-h100 --on mi300x", "--on"),
    ],
)
def test_an_option_with_one_value_is_given_once(line, option):
    refusal = invoke(*line.split())
    assert refusal.status == 2
    assert f"{option} is given 2 times; give it once" in refusal.err


def test_a_flag_and_an_option_of_several_values_may_be_given_again():
    line = ("machines", "show", "hgx-h100", "--without", "NIC 3", "--without", "NIC 4", "--json", "--json")
    assert invoke(*line).status == 0


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_begins_with_its_summary_and_goes_on(verb):
    first, rest = invoke(verb, "--help").out.split("\n\n", 2)[1:]
    assert " ".join(first.split()) == VERBS[verb]
    assert VERBS[verb] not in " ".join(rest.split())


def test_a_former_verb_does_what_it_did_and_names_the_one_of_today(tmp_path):
    where = ("--on", "loggp", "-p", "4", "--runs", str(tmp_path))
    former = [
        (
            "probe matmul --on ipu-c2-chip -x n=512 -x dtype=f32 -x threads=all --runs",
            "run probe/matmul --on ipu-c2-chip -x n=512 -x dtype=f32 -x threads=all --runs",
            "`probe`",
            "run NAME",
        ),
        ("report latest --runs", "draw latest --report --runs", "`report`", "draw RUN --report"),
    ]
    for words, today, old, new in former:
        before, after = (invoke(*line.split(), str(tmp_path)) for line in (words, today))
        assert (before.status, before.out.splitlines()[:-1]) == (0, after.out.splitlines()[:-1])
        assert (before.err, after.err) == (f"linkwright: {old} is now `linkwright {new}`\n", "")
    swept = invoke("sweep", "scaling", *where)
    assert (swept.status, swept.err.count("\n")) == (0, 1)
    assert "is now `linkwright dissect SUITE --level full" in swept.err
    request = json.loads((sorted(tmp_path.glob("*scaling*"))[0] / "run.json").read_text())["request"]
    assert (request["level"], request["budget_s"]) == ("full", 90.0)


def test_former_verbs_are_neither_listed_nor_completed():
    assert not {"probe", "sweep", "report"} & {
        line.split()[0] for line in invoke("--help").out.splitlines() if line.strip()
    }
    assert linkwright.list_commands(None) == list(VERBS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run memory_latency --sizes 8", "memory_latency is a probe, which takes --axis instead; leave out '--sizes'"),
        ("run memory_latency -p 2,4", "takes one number of ranks"),
        ("run allreduce -x working_set=4K", "--axis: only probes have it"),
        ("run allreduce --every-pair", "--every-pair: only probes have it"),
        ("draw latest --report --size 8", "--report needs a run; leave out '--size'"),
        ("draw latest other --report", "--report takes one run; 2 are given"),
        ("draw loggp", "Missing option '--out'; or give --report to draw a run"),
    ],
)
def test_an_option_of_another_kind_of_question_is_refused(words, message):
    result = invoke(*words.split())
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert message in result.err


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("summary =", "sumary =", "summary"),
        ("latency   =", "latncy =", "missing key `latency`; did you mean it by `latncy`?"),
    ],
)
def test_a_misspelt_key_of_a_machine_file_is_named_before_anything_runs(tmp_path, good, bad, message):
    path = tmp_path / "mine.toml"
    path.write_text(registry.machine_path("loggp").read_text().replace(good, bad))
    result = invoke("machines", "show", str(path))
    assert result.status == 2
    assert "mine.toml" in result.err
    assert message in result.err


@pytest.mark.parametrize("arguments", [["machines", "show"], ["dissect", "--suite"], ["verify"]])
def test_a_binary_file_is_refused_in_one_line(tmp_path, arguments):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(bytes(range(256)))
    result = invoke(*arguments, str(binary))
    assert result.status == 2
    assert "binary.toml: is not text in UTF-8" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(("stdout", "message"), [("/dev/full", "No space left"), (None, "standard output is closed")])
def test_output_that_cannot_be_written_is_an_error(stdout, message):
    command = f"{sys.executable} -m linkwright list algorithms " + (f"> {stdout}" if stdout else ">&-")
    result = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_verb_at_all_is_wrong_usage():
    result = invoke()
    assert result.status == 2
    assert result.err.startswith("Usage: linkwright")


def test_a_reader_that_goes_away_costs_no_result(tmp_path):
    file = tmp_path / "kept.json"
    command = [sys.executable, "-m", "linkwright", "simulate", "allreduce", "--on", "loggp", "--output", str(file)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == ""
    assert json.loads(file.read_text())


def test_a_query_may_ask_for_the_time(tmp_path):
    run = tmp_path / "a-run"
    run.mkdir()
    for table in ("results", "samples"):
        assert invoke("simulate", "barrier", "--on", "loggp", "--output", str(run / f"{table}.parquet")).status == 0
    query = "select now() as moment, [now()] as moments, count(*) as n from results"
    (row,) = json.loads(invoke("query", query, "--json", "--runs", str(tmp_path)).out)
    assert row["n"] > 0
    assert row["moment"].startswith("20")
    assert "20" in invoke("query", query, "--runs", str(tmp_path)).out.splitlines()[1]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})("index 3"),
            "internal error: index 3",
        ),
        (MemoryError(), "out of memory"),
    ],
)
def test_what_must_not_happen_is_one_line_too(error, message, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(linkwright, "main", fail)
    status, out, err = invoke("list", "machines")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"linkwright: {message}")


# Verbs whose answer is a file, or lines for a shell.
WITHOUT_JSON = {"draw", "play", "export", "tune", "completion", "cluster", "machines import", "machines discover"}


def verbs(command, name=""):
    for key, its in getattr(command, "commands", {}).items():
        yield from verbs(its, f"{name} {key}".strip())
    if not getattr(command, "commands", None) and name:
        yield name, command


def test_all_verbs_that_answer_print_json():
    context = click.Context(linkwright)
    every = {key: linkwright.get_command(context, key) for key in linkwright.list_commands(context)}
    found = {
        name for key, its in every.items() for name, command in verbs(its, key)
        if not any("--json" in option.opts for option in command.params)
    }  # fmt: skip
    assert {name for name in found if name not in WITHOUT_JSON and name.split()[0] not in WITHOUT_JSON} == set()


def test_json_is_all_that_is_printed(tmp_path):
    root = ("--runs", str(tmp_path))
    log = str(Path(__file__).parent.parent.parent / "examples/logs/h100-slow.log")
    ring = ("allreduce", "-a", "ring", "--json")
    for words, key in (
        (("simulate", *ring, "--on", "torus-2d", "--grid", "2x2", "--sizes", "1K,4K"), "rows"),
        (("run", *ring, "-p", "2", "--sizes", "1K", "--on", "hgx-h100", *root), "rows"),
        (("expect", "allreduce", "--on", "hgx-h100", "--sizes", "64M", "--json"), "library"),
        (("import", log, "--json", *root), "verdict"),
    ):
        done = invoke(*words)
        assert done.status == 0, done.err
        assert json.loads(done.out)[key]


def test_a_file_of_the_user_is_described_like_a_shipped_one(tmp_path):
    (tmp_path / "mine.toml").write_text('[machine]\nname = "mine"\nsummary = "ours"\n', encoding="utf-8")
    assert invoke("describe", str(tmp_path / "mine.toml")).out.splitlines()[:2] == [
        f"{tmp_path / 'mine.toml'} (machine)", "    ours",
    ]  # fmt: skip
    (tmp_path / "mine.toml").write_text("[fabric]\n", encoding="utf-8")
    assert "has none of the tables [machine], [network]," in invoke("describe", str(tmp_path / "mine.toml")).err
    (tmp_path / "mine.toml").write_text("[fabric\n", encoding="utf-8")
    assert "give a TOML file" in invoke("describe", str(tmp_path / "mine.toml")).err
