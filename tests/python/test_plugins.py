"""Executors of other packages: the example over TCP as it is installed, and packages that are broken."""

import doctest
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import types
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwright as lw
from linkwright import executor_api, executors
from linkwright.base.errors import PluginError, UsageError, WrongResultError
from linkwright.base.plugins import installed as entries_of
from linkwright.executors import plugins
from linkwright.formats.discovery import importing, networks
from linkwright_cases import invoke

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "linkwright-tcp"
BACKEND = Path(find_spec("flit_core").origin).parents[1] if find_spec("flit_core") else None


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder into which pip has installed the example, without a network."""
    target = tmp_path_factory.mktemp("installed")
    assert BACKEND, "flit_core builds the example; `make setup-dev` installs it"
    quiet = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, "--target", target, EXAMPLE], check=True)
    return target


def with_path(target):
    path = [str(target), str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def linkwright(target, *arguments):
    command = [sys.executable, "-m", "linkwright", *arguments]
    return subprocess.run(command, env=with_path(target), capture_output=True, text=True, check=False, timeout=120)


def script(target, text):
    """The JSON that a program prints that has the example installed."""
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, env=with_path(target), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# A launch of everything in `work`: how it ended, by experiment.
LAUNCH = """
import json
from linkwright import _native, executors
from linkwright.executor_api import Launch, Options, Record
from linkwright.libraries.questions import collective_question
tcp = executors.find("tcp")
work = {work}
launch = Launch(0, work, 100.0, Options(samples=2, warmup=0), shares=dict.fromkeys([e.key for e in work], {share_s}))
found = {{}}
for outcome in tcp.launch(tcp.resolve(4, None), launch):
    if isinstance(outcome, Record):
        found[outcome.experiment] = "ok", [note.code for note in outcome.notes], outcome.values_ns
    else:
        found[outcome.experiment] = outcome.status, outcome.code, outcome.reason
print(json.dumps(found))
"""
RING = "[collective_question('t', 'allreduce', 'ring', 4, {size}, 'f32', 'sum')]"
ONE = RING.format(size=4096)


def launched(target, work, share_s=30.0):
    return script(target, LAUNCH.format(work=work, share_s=share_s))


def test_the_example_is_listed_with_its_package(installed):
    done = linkwright(installed, "list", "executors")
    assert "linkwright-tcp 0.1.0: ranks are processes" in done.stdout, done.stderr
    (entry,) = json.loads(linkwright(installed, "describe", "tcp", "--json").stdout)
    assert (entry["kind"], entry["key"], entry["package"]) == ("executors", "tcp", "linkwright-tcp 0.1.0")


def test_run_and_report(installed, tmp_path):
    arguments = ["--on", "tcp", "-p", "4", "--sizes", "1K", "--iters", "5", "--runs", str(tmp_path)]
    done = linkwright(installed, "run", "allreduce/ring", *arguments, "--time-budget", "8s")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = lw.results(folder=tmp_path)
    (row,) = rows[rows["metric"] == "time"].to_dict("records")
    assert (row["executor"], row["ranks"], row["status"]) == ("tcp", 4, "ok")
    assert row["value"] > 1000, "a system call takes a microsecond"
    assert "unchecked" not in row["flags"]


SUITE = """
[suite]
format = 1
name = "few"
summary = "pairs, an allreduce and a probe"
[[part]]
name = "latency"
summary = "both ways"
pattern = "ping_pong"
placement = "every_pair"
ranks = [2]
sizes = ["8"]
dtype = "u8"
metrics = ["latency"]
[[part]]
name = "collectives"
summary = "one size"
collectives = ["allreduce"]
ranks = [2]
algorithms = ["ring"]
sizes = ["1K"]
metrics = ["time"]
[[part]]
name = "probes"
summary = "what is waived"
probe = "fma_peak"
axes = { dtype = "f32" }
"""


def test_dissect_asks_what_it_can_answer(installed, tmp_path):
    suite = tmp_path / "few.toml"
    suite.write_text(SUITE, encoding="utf-8")
    arguments = ["--suite", str(suite), "--on", "tcp", "-p", "2", "--time-budget", "12s", "--runs", str(tmp_path)]
    done = linkwright(installed, "dissect", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = lw.results(folder=tmp_path)
    assert set(rows["executor"]) == {"tcp"}
    found = rows.groupby("part")["status"].agg(set).to_dict()
    assert found == {"latency": {"ok"}, "collectives": {"ok"}, "probes": {"waived"}}
    placed = rows[rows["part"] == "latency"]
    assert set(placed["endpoints"]) == {"0->1", "1->0"}


def test_every_algorithm_of_four_ranks_leaves_the_right_data(installed):
    work = """[
        collective_question('t', *row['key'].split('/'), 4, 656, 'f32', 'sum') for row in _native.algorithms()
        if row['collective'] != 'barrier'
    ]"""
    found = launched(installed, work)
    assert len(found) > 35
    wrong = {key: outcome for key, outcome in found.items() if outcome[0] not in ("ok", "waived")}
    assert wrong == {}
    assert not any("unchecked" in outcome[1] for outcome in found.values() if outcome[0] == "ok")
    assert sum(outcome[0] == "waived" for outcome in found.values()) < 15  # those that need nodes or rows


@pytest.mark.parametrize(("dtype", "op"), [("bf16", "prod"), ("i64", "max"), ("u8", "sum")])
def test_other_types_and_operators(installed, dtype, op):
    work = f"[collective_question('t', 'allreduce', 'ring', 3, 1024, '{dtype}', '{op}')]"
    ((status, _, _),) = launched(installed, work).values()
    assert status == "ok"


def test_long_messages_both_ways_do_not_block_each_other(installed):
    work = "[collective_question('t', 'alltoall', 'linear', 4, 16 << 20, 'f32', None)]"
    work = work.replace("linear", next(a["name"] for a in lw._native.algorithms() if a["collective"] == "alltoall"))
    ((status, _, said),) = launched(installed, work).values()
    assert status == "ok", said


def test_a_schedule_of_ones_own_with_gets_memories_and_multicasts(installed):
    found = script(
        installed,
        """
        import json
        import linkwright as lw
        from linkwright import executors
        builder = lw.Builder("pattern", ranks=3, size=48)
        builder.buffer("output", 3)
        store = builder.memory()
        builder.buffer("bank", 3, only_at=store)
        builder.step()
        builder.put(0, store, "output", 0, into="bank", at=0)
        builder.step()
        builder.put(store, 2, "bank", 0, into="output", at=1, get=True)
        builder.step()
        builder.multicast(2, [0, 1], "output", 1, into="output", at=2)
        row = lw.run(builder.finish(), on="tcp", launches=1, samples=3, budget_s=5).row("time")
        print(json.dumps([row["status"], row["flags"], row["value"]]))
        """,
    )
    assert found[0] == "ok"
    assert "unchecked" not in (found[1] or "")


def test_a_probe_is_waived(installed):
    work = "[__import__('linkwright').ask.question.Probe('t', 'cycle', 1, None, axes=())]"
    ((status, code, said),) = launched(installed, work).values()
    assert (status, code) == ("waived", "experiment.waived")
    assert "--on threads" in said


def damaged(installed, tmp_path, old, new):
    """A copy of the installed package with another line in rank.py."""
    target = tmp_path / "damaged"
    subprocess.run(["cp", "-r", installed, target], check=True)
    path = target / "linkwright_tcp" / "rank.py"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    return target


def test_wrong_data_give_no_number(installed, tmp_path):
    target = damaged(installed, tmp_path, "into[:] = piece", "into[:] = 0")
    ((status, code, said),) = launched(target, ONE).values()
    assert (status, code) == ("failed", "exec.wrong-result")
    assert "output[" in said


def test_a_rank_that_hangs_is_ended_soon_after_its_time(installed, tmp_path):
    target = damaged(installed, tmp_path, "self._issue(operation)", "time.sleep(1000)")
    began = time.monotonic()
    ((status, _, said),) = launched(target, ONE, share_s=0.5).values()
    assert status == "out-of-time"
    assert "ranks 0, 1, 2, 3" in said
    assert time.monotonic() - began < 30
    assert ranks_of(target) == []


def test_a_rank_that_is_killed_fails_its_experiment_only(installed, tmp_path):
    killed = "if self._me == 2 and operation.pieces[0].bytes == 256: os.kill(os.getpid(), 9)"
    after = "self._issue(operation)"
    target = damaged(installed, tmp_path, after, f"{after}\n                {killed}")
    work = " + ".join(RING.format(size=size) for size in (4096, 1024, 8192))
    first, second, third = launched(target, work).values()
    assert (first[0], third[0]) == ("ok", "ok")
    assert (second[0], second[2].partition(";")[0]) == ("failed", "tcp: the process of rank 2 ended with SIGKILL")
    assert ranks_of(target) == []


def running(target):
    """The processes of ranks that run the package in `target`."""
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    ranks = [path for path in processes if "linkwright_tcp.rank" in read(path / "cmdline")]
    return [int(path.name) for path in ranks if str(target) in read(path / "environ")]


def ranks_of(target):
    """The same, two seconds after they should have ended."""
    for _ in range(40):
        if not (found := running(target)):
            break
        time.sleep(0.05)
    return found


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def awaited(target, process):
    """Wait until the ranks of a command run."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        if len(running(target)) == 4:
            time.sleep(0.5)
            return
        time.sleep(0.05)
    raise AssertionError(process.communicate())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(installed, tmp_path, how):
    arguments = ["run", "allreduce/ring", "--on", "tcp", "-p", "4", "--sizes", "4K", "--time-budget", "60s"]
    command = [sys.executable, "-m", "linkwright", *arguments, "--runs", str(tmp_path)]
    process = subprocess.Popen(
        command,
        env=with_path(installed),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    awaited(installed, process)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.kill()
    _, err = process.communicate(timeout=30)
    assert process.returncode == (130 if how == signal.SIGINT else -9), err
    assert ranks_of(installed) == []


def test_a_stranger_cannot_join(installed, monkeypatch):
    monkeypatch.syspath_prepend(installed)
    from linkwright_tcp.rank import joined

    token = b"t" * 32
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def say(words):
            with socket.create_connection(listener.getsockname()) as link:
                link.sendall(words)
                link.recv(1)

        for words in (b"x" * 33, token + bytes([1])):
            threading.Thread(target=say, args=[words], daemon=True).start()
            time.sleep(0.1)
        assert list(joined(listener, 0, [0, 0], token)) == [1]


# The interface for authors.


def described():
    """Every function and class for authors, and the public methods of the classes that are for them alone."""
    for name in executor_api.__all__:
        found = getattr(executor_api, name)
        if callable(found) and not isinstance(found, types.UnionType):
            yield name, found
    yield from ((f"Program.{name}", found) for name, found in vars(executor_api.Program).items() if name[0] != "_")


DESCRIBED = dict(described())


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_name_for_authors_is_described_and_its_example_runs(name):
    text = inspect.getdoc(DESCRIBED[name])
    assert text
    said = []
    doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, name, None, 0), out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", ["Program", "Operation", "Target", "Extent", "Launch", "Options", "Sampling"])
def test_every_field_for_authors_has_its_meaning(name):
    kind = DESCRIBED[name]
    said = re.findall(r"^ {4}(\w+):", inspect.getdoc(kind), re.MULTILINE)
    fields = getattr(kind, "__dataclass_fields__", None) or {
        key for key in vars(kind(lw.schedule("barrier", "dissemination", ranks=2, size=0))) if key[0] != "_"
    }
    assert set(fields) <= set(said)


def test_a_program_refuses_what_it_does_not_have():
    program = executor_api.Program(lw.schedule("broadcast", "ring", ranks=2, size="4K"))
    for wrong in (-1, 2):
        with pytest.raises(UsageError, match="this schedule has 0 to 1"):
            program.initial(wrong)
    memory = program.initial(1)
    with pytest.raises(UsageError, match="has 4096 bytes; got an array of shape"):
        program.check(1, memory[1:])
    with pytest.raises(WrongResultError, match="rank 1: output"):
        program.check(1, memory)
    for into, data in ((memory[:8], memory[8:12]), (memory[:6], memory[8:14]), (memory[2:10], memory[12:20])):
        with pytest.raises(ValueError, match="bytes"):
            program.combine(into, data)
    program.combine(memory[:8], bytes_at_odd_address(8))  # data may lie anywhere


def bytes_at_odd_address(length):
    return np.zeros(length + 1, np.uint8)[1:]


# Packages that are broken.


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package with an entry point: `package(name, key, code)`."""

    def install(name, key, code, value="{module}:Own", group="linkwright.executors"):
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        folder = tmp_path / f"{module}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf-8")
        value = value.format(module=module)
        (folder / "entry_points.txt").write_text(f"[{group}]\n{key} = {value}\n", encoding="utf-8")
        forget()

    def forget():
        entries_of.cache_clear()
        plugins.load.cache_clear()
        networks._packaged.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    monkeypatch.undo()
    forget()


WELL = """
from linkwright.executor_api import Executor, Extent, Target
class Own(Executor):
    key = "own"
    summary = "for a test"
    description = "For a test."
    is_host = True
    def resolve(self, ranks, grid):
        return Target(self.key, self, "Box", Extent("measured", ranks or 2, grid), ("left", "right"))
    def launch(self, target, launch, *, isolated=True):
        yield from ()
"""

BROKEN = {
    "an import that fails": ("import not_there", "does not load: ModuleNotFoundError: No module named 'not_there'"),
    "a syntax error": ("def (", "does not load: SyntaxError"),
    "an exit": ("import sys; sys.exit(3)", "does not load: SystemExit: 3"),
    "another name": ("Other = 1", "does not load: AttributeError"),
    "a constructor that fails": (
        "class Own:\n    def __init__(self): raise OSError('no device')",
        "OSError: no device",
    ),
    "no executor": ("class Own: pass", "is an instance of Own, not of a subclass of"),
    "no key": (WELL.replace('key = "own"', "key = None"), "has no text in `key`"),
    "no description": (WELL.replace("    description", "    other"), "has no text in `description`"),
    "another key": (WELL.replace('"own"', '"mine"'), "has the key `mine`, but the entry point is called `own`"),
    "no launch": (WELL.replace("def launch", "def start"), "does not define `launch`"),
    "a model": (WELL.replace("is_host", "modelled"), "declares its times modelled"),
    "a condition": (
        WELL.replace("is_host = True", "obeys = {'weather'}"),
        "declares the conditions weather, which linkwright does not",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_package_says_what_is_wrong(package, what):
    code, problem = BROKEN[what]
    name = what.replace(" ", "-")
    package(name, "own", code)
    result = invoke("run", "allreduce/ring", "--on", "own", "--sizes", "4K")
    assert result.status == 2
    assert f"executor `own` of {name} 1.2: " in result.err
    assert problem in result.err
    assert "Traceback" not in result.err
    listed = {entry["key"]: entry for entry in json.loads(invoke("list", "executors", "--json").out)}
    assert problem in listed["own"]["summary"]
    assert list(listed)[:3] == ["reference", "sim", "threads"]


def test_a_broken_package_disturbs_nothing_else(package, tmp_path):
    package("broken-loud", "own", "raise AssertionError('imported')")
    for command in (
        "simulate allreduce/ring --on loggp -p 2 --sizes 1K",
        "list machines",
        "describe ring",
        "list suites",
    ):
        result = invoke(*command.split())
        assert (result.status, result.err) == (0, ""), command
    assert "broken_loud" not in sys.modules
    assert "AssertionError: imported" in invoke("list", "executors", "--json").out


def test_an_unknown_name_suggests_executors_of_packages(package):
    package("broken-near", "owner", WELL)
    assert "did you mean `owner`" in invoke("run", "allreduce/ring", "--on", "owne", "--sizes", "4K").err


@pytest.mark.parametrize("key", ["threads", "loggp"])
def test_a_name_of_linkwright_stays_what_it_is(package, key):
    package("an-impostor", key, WELL.replace('"own"', f'"{key}"'))
    assert executors.find(key) is executors.EXECUTORS.get(key)
    *_, last = json.loads(invoke("list", "executors", "--json").out)
    assert last["summary"] == f"cannot be used: the name `{key}` is taken by linkwright"
    assert last["package"] == "an-impostor 1.2"


def test_two_packages_cannot_have_one_key(package):
    package("one-own", "own", WELL)
    package("two-own", "own", WELL)
    with pytest.raises(PluginError, match=r"one-own 1.2 and two-own 1.2 both provide it; uninstall one of them"):
        executors.find("own")


def test_a_condition_that_a_package_does_not_obey_is_refused(package):
    package("fine-own", "own", WELL)
    schedule = lw.schedule("allreduce", "ring", ranks=2, size="4K")
    with pytest.raises(lw.LinkwrightError, match="--on own cannot apply it"):
        lw.run(schedule, on="own", skew="late:0:2us")


# Readers of networks of packages.

READER = """
from linkwright.network_api import Network
def recognises(text): return text.startswith("own")
def read(text, file): raise KeyError("not there")
Own = Network("own", "for a test", recognises, read)
"""
BROKEN_READERS = {
    "an import that fails": ("import not_there", "does not load: ModuleNotFoundError"),
    "no network": ("Own = 1", "is not a linkwright.network_api.Network with the key `own`"),
    "another key": (READER.replace('"own", "for', '"mine", "for'), "Network with the key `own`"),
    "a recogniser that fails": (READER.replace("text.startswith", "text.begins"), "`recognises` fails: AttributeError"),
    "a reader that fails": (READER, "`read` fails: KeyError: 'not there'"),
}


@pytest.mark.parametrize("what", BROKEN_READERS)
def test_a_broken_reader_is_named_and_breaks_no_other(package, tmp_path, monkeypatch, what):
    code, problem = BROKEN_READERS[what]
    name = what.replace(" ", "-")
    package(name, "own", code, group=networks.GROUP)
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text("own", encoding="utf-8")
    for asked in ((), ("--as", "own")):
        if asked and "recogniser" in what:
            continue  # it is not asked
        refused = invoke("machines", "import", "own.txt", *asked)
        assert (refused.status, "Traceback" in refused.err) == (2, False)
        assert f"network format `own` of {name} 1.2: " in refused.err
        assert problem in refused.err
    tree = ROOT / "tests" / "networks" / "tree.topology.conf"
    assert invoke("machines", "import", str(tree), "--output", "tree.toml").status == 0
    listed = {entry["key"]: entry for entry in json.loads(invoke("list", "machine-importers", "--json").out)}
    assert ("cannot be used" in listed["own"]["summary"]) is ("fails" not in problem.partition(": ")[0])
    assert "cannot be used" not in listed["slurm"]["summary"]


def test_without_the_package_of_networks_a_message_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(importing.networks, "keys", lambda: [network.key for network in networks.NETWORKS])
    monkeypatch.chdir(tmp_path)
    Path("x.xml").write_text('<platform version="4.1"/>', encoding="utf-8")
    how = "`make setup`"
    refused = invoke("machines", "import", "x.xml").err
    assert f"or, for {', '.join(networks.PACKAGED)}, install linkwright-networks: {how}" in refused
    assert invoke("machines", "import", "x.xml", "--as", "simgrid").err.strip().endswith(f"is not installed; {how}")
