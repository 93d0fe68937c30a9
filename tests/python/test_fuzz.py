"""Mutants of suites, programs, result files, run folders and command lines: each gives a value or one message.

An outcome is right if it has status 0, 1 or 2, and with a status other than 0 one message, no traceback, no folder that
is half made, and an answer within seconds. Seeds are counted from `LINKWRIGHT_FUZZ_SEED`, and each target runs for
`LINKWRIGHT_FUZZ_SECONDS` of processor time (`make fuzz`) or for a few hundred mutants. What was found once lies in
`tests/corpus/`.
"""

import contextlib
import itertools
import os
import random
import shutil
import time
import tomllib
from pathlib import Path

import pytest

import mutants
from linkwright import executors
from linkwright.advise.predict import keys_of
from linkwright.base import registry
from linkwright.base.errors import LinkwrightError
from linkwright.formats.interop.importing import Defaults
from linkwright.formats.interop.logs import take
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand_on
from linkwright_cases import invoke
from log_cases import KINDS

CORPUS = Path(__file__).parent.parent / "corpus"
FIRST = int(os.environ.get("LINKWRIGHT_FUZZ_SEED", "0"))
SECONDS = float(os.environ.get("LINKWRIGHT_FUZZ_SECONDS", "0"))
# Seconds of work, whatever else the machine does meanwhile; a hang takes for ever. Waiting is allowed for longer.
SLOW_S, STUCK_S = 20.0, 400.0

SMALL_SUITE = """
[suite]
format = 1
name = "x"
summary = "s"
machines = ["loggp"]
[[part]]
name = "a"
summary = "b"
collectives = ["allreduce", "reduce"]
algorithms = ["ring"]
sizes = ["8", "64"]
ranks = [2, 4]
root = 1
skew = "late:1:2us"
arithmetic = false
metrics = ["time", "bus_bw"]
dtype = "f64"
modelled = { sizes = ["16"], issue = "blocking" }
[[part]]
name = "c"
summary = "b"
pattern = "ping_pong"
placement = "every_pair"
sizes = { min = "8", max = "64", factor = 2 }
messages = 2
both_ways = true
metrics = "latency"
rising_to = "1M"
[[part]]
name = "d"
summary = "b"
probe = "memory_latency"
axes = { working_set = { min = "4K", max = "2 * last_cache", factor = 2 } }
"""
RUN_SUITE = """
[suite]
format = 1
name = "x"
summary = "s"
[[part]]
name = "a"
summary = "b"
collectives = "allreduce"
algorithms = ["ring", "recursive_doubling_latency"]
sizes = ["8", "64"]
[[part]]
name = "latency"
summary = "b"
pattern = "ping_pong"
sizes = ["8", "16"]
ranks = [2]
dtype = "u8"
metrics = "latency"
"""
SMALL_PROGRAM = """
[app]
format = 1
kind = "supersteps"
name = "x"
grid = [4, 4]
flops_per_s = 1e9
bytes_per_s = 1e9
[[superstep]]
name = "a"
times = 3
flops = 1e6
bytes = "4K"
memory = "1K"
[[superstep.message]]
pattern = "neighbour"
size = "8"
messages = 2
both_ways = true
[[superstep.message]]
collective = "allreduce"
size = "64"
algorithm = "ring"
[[superstep.message]]
list = [[0, 1, "4K"], [1, 2, "8"]]
"""
OSU = "# OSU MPI Alltoall Latency Test v7.3\n# Size       Avg Latency(us)\n4    1.46\n8    1.50\n16   1.61\n"
NCCL = """\
# Collective test starting: all_reduce_perf
#   Rank  0 Group  0
#   Rank  1 Group  0
#       size         count      type   redop    root     time   algbw   busbw #wrong
        1024           256     float     sum      -1    12.34    0.08    0.08      0
        2048           512     float     sum      -1    13.34    0.15    0.15      0
# reduce/chain, 4 ranks, threads on a machine
#       size         count      type   redop    root     time   algbw   busbw #wrong
        1024           256     float     sum       0    12.34    0.08    0.08      0
# Out of bounds values : 0 OK
"""
COMMANDS = [
    "simulate allreduce -a ring --on loggp -p 4 --sizes 8,64 --skew uniform:2us --issue blocking --seed 1",
    "simulate alltoall -a all --on torus-2d --grid 4x4 -b 8 -e 64 -f 2 --dtype f64",
    "simulate pattern/pairs --on loggp -p 4 --sizes 64 --messages 2 --both-ways",
    "simulate broadcast --on loggp -p 1..4 --sizes 8 --root 1",
    "verify allreduce/ring -p 4 --grid 2x2 --size 64",
    "describe allreduce --limit --on loggp -p 4 --sizes 8",
    "describe ring",
    "list machines --json",
    "machines show loggp",
    "export allreduce/ring -p 4 --size 64 --as msccl-xml",
    "predict resnet --batch 16 --gpus 1,2 --on dgx1-p100 --samples 1000 --efficiency 30%",
    "dissect scaling --on loggp -p 2 -j 1 --watts 5 --target 5% --level quick --time-budget 1s --name x",
    "plan io --on vollo-ia420f",
    "compare latest latest~1 --json",
    "query 'select 1'",
    "fit latest --name x",
]


def seeds(count):
    """As many seeds as were asked for, or as the processor time allows."""
    began = _worked()
    for seed in itertools.count(FIRST):
        spent = _worked() - began
        if spent > SECONDS if SECONDS else seed >= FIRST + count:
            print(
                f"{seed - FIRST} mutants from seed {FIRST} in {spent:.0f} s of processor time"
            )  # `make fuzz` shows it
            return
        yield seed, random.Random(seed)


@contextlib.contextmanager
def judged(target, seed, mutant):
    """Fails with the seed and the mutant if anything but an error of ours comes out, or if it takes long.

    What it yields holds the number of answers, for a mutant that gives more than one: each may take long.
    """
    began, worked = time.monotonic(), _worked()
    answers = [1]
    try:
        yield answers
    except LinkwrightError:
        pass
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | pytest.fail.Exception):
            raise
        pytest.fail(f"{target}, seed {seed}: {type(error).__name__}: {error}\n{mutant}")
    took, worked = time.monotonic() - began, _worked() - worked
    if worked > SLOW_S * answers[0] or took > STUCK_S * answers[0]:
        pytest.fail(f"{target}, seed {seed}: worked {worked:.0f} s, took {took:.0f} s\n{mutant}")


def _worked():
    """Seconds of processors that this process and its children used."""
    spent = os.times()
    return spent.user + spent.children_user


def one_message(result):
    """What a command left: status 0 to 2, and a message if it refused."""
    assert result.status in (0, 1, 2), result
    assert "Traceback" not in result.err
    if result.status == 2:
        assert result.err.startswith("linkwright: "), result.err
        assert "\x1b" not in result.err


def read_suite(text):
    for target in executors.resolve("loggp", 4) + executors.resolve("threads", 1):
        suite = load.parse(text, "x.toml")
        with contextlib.suppress(LinkwrightError):
            expand_on(suite, target, "full")
        assert load.parse(suite.text, "y.toml") == suite


def predicted(folder, text):
    (folder / "x.toml").write_text(text, encoding="utf-8")
    on = "dgx1-p100" if "training" in text else "loggp"
    one_message(invoke("predict", str(folder / "x.toml"), "--on", on))


def documents(kind):
    return [tomllib.loads(registry._data_path(kind, key).read_text(encoding="utf-8")) for key in registry.keys(kind)]


def test_suites(tmp_path):
    good = [tomllib.loads(SMALL_SUITE)] * 12 + documents("suites")
    for seed, rng in seeds(250):
        text = mutants.toml(mutants.tree(rng, rng.choice(good)))
        if rng.random() < 0.2:
            text = mutants.text(rng, SMALL_SUITE)
        with judged("suite", seed, text):
            read_suite(text)


def test_programs(tmp_path):
    assert keys_of("supersteps")
    good = [tomllib.loads(SMALL_PROGRAM)] * 4 + documents("workloads")
    for seed, rng in seeds(60):
        text = mutants.toml(mutants.tree(rng, rng.choice(good)))
        if rng.random() < 0.2:
            text = mutants.text(rng, SMALL_PROGRAM)
        with judged("program", seed, text):
            predicted(tmp_path, text)


def test_imports():
    for seed, rng in seeds(400):
        text = mutants.text(rng, rng.choice([OSU, NCCL, *KINDS.values()]))
        with judged("import", seed, text):
            for row in take(Path("log.txt"), Defaults("allreduce", 4), text=text).rows:
                assert 0 <= row.size_bytes <= 1 << 50
                assert row.machine.isprintable()


@pytest.fixture(scope="module")
def good_runs(tmp_path_factory):
    """A folder of three runs: two of a suite, one of them with a fit's file, and an imported one."""
    root = tmp_path_factory.mktemp("good")
    suite = root / "x.toml"
    suite.write_text(RUN_SUITE, encoding="utf-8")
    log = root / "log.txt"
    log.write_text(NCCL, encoding="utf-8")
    runs = str(root / "runs")
    for _ in range(2):
        result = invoke("dissect", "--level", "full", str(suite), "--on", "loggp", "-p", "4", "--runs", runs)
        assert result.status == 0, result.err
    assert invoke("import", "--as", "nccl-tests", str(log), "--runs", runs).status == 0
    return root / "runs"


def test_run_folders(tmp_path, good_runs):
    for seed, rng in seeds(40):
        root = tmp_path / "runs"
        shutil.copytree(good_runs, root)
        run = rng.choice(sorted(root.iterdir()))
        path = rng.choice(sorted(p for p in run.rglob("*") if p.is_file() and "report" not in p.parts))
        path.write_bytes(_damaged(rng, path))
        where = ("--runs", str(root))
        asked = rng.choice(
            (
                ("draw", "--report", run.name, *where),
                ("export", run.name, "--as", "csv", "--out", str(tmp_path / "x.csv"), *where),
                ("compare", *[p.name for p in sorted(root.iterdir())[:2]], *where),
                ("fit", run.name, *where),
                ("dissect", "--resume", run.name, *where),
            )
        )
        with judged("run folder", seed, f"{path}\n{asked}"):
            one_message(invoke(*asked))
            listed = invoke("list", "runs", *where)
            assert (listed.status, listed.out.count("\n") >= 2) == (0, True), listed
            found = invoke("query", "select count(*) from results", *where)
            assert found.status == 0, found.err
            if path.name == "results.parquet" and path.stat().st_size < 100:
                assert run.name in found.err
        shutil.rmtree(root)


def _damaged(rng, path):
    if path.suffix == ".json" and rng.random() < 0.7:
        import json

        return json.dumps(mutants.tree(rng, json.loads(path.read_text(encoding="utf-8")))).encode()
    return mutants.damaged(rng, path.read_bytes())


def test_command_lines(tmp_path, monkeypatch, good_runs):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good_runs, "runs")
    before = sorted(path.name for path in Path("runs").iterdir())
    for seed, rng in seeds(60):
        asked = mutants.words(rng, rng.choice(COMMANDS).split())
        with judged("command", seed, asked) as answers:
            result = invoke(*asked)
            one_message(result)
            answers[0] += len(result.out.splitlines())  # a sweep over sizes has a line for each
            if result.status == 2:
                made = [path for path in Path("runs").iterdir() if path.name not in before]
                assert all((path / "run.json").exists() for path in made), made


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    with judged(path.parent.name, path.name, text):
        if path.parent.name == "suite":
            read_suite(text)
        elif path.parent.name == "program":
            predicted(tmp_path, text)
        else:
            one_message(invoke(*text.splitlines()))
