"""What a run starts from: its own copies of its inputs, machines that can be told apart, and no code of strangers."""

import codecs
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from linkwright import executors
from linkwright.base import files, registry
from linkwright.base.errors import FileError, StoreError, UsageError
from linkwright.formats.logs import lines
from linkwright.machines import load
from linkwright.session.suite import load as suites
from linkwright.session.suite.backends import Dask, Local
from linkwright.session.suite.session import Request, Watcher, resume, start
from linkwright_cases import BRIEF, invoke
from log_cases import nccl, osu

HERE = Path(__file__).parent.parent

SUITE = """
[suite]
format = 1
name = "small"
summary = "two sizes"
[[part]]
name = "a"
summary = "one algorithm"
collectives = "allreduce"
algorithms = "ring"
sizes = ["8", "64", "4K", "64K"]
"""
LOGGP = registry.machine_path("loggp").read_text(encoding="utf-8")


class Stops(Watcher):
    """Interrupts after the first experiment, and remembers what it is told."""

    def __init__(self, after=1):
        self.after, self.said = after, []

    def told(self, text):
        self.said.append(text)

    def rows(self, experiment, found):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


def begun(folder, on):
    outcome = start(folder, suites.parse(SUITE, "small.toml"), Request(on, 1.0, ranks=4), Stops(), Local(jobs=1))
    assert outcome.interrupted
    return outcome.run


def values(outcome):
    return [row["value"] for row in outcome.rows if row["metric"] == "time"]


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(LOGGP)
    return path


def slower(path):
    """Doubles the latency of the machine."""
    text = re.sub(r"(\{ value = )[\d.]+", r"\g<1>12345", path.read_text(), count=1)
    assert text != path.read_text()
    path.write_text(text)


def test_a_resumed_run_uses_the_machine_that_it_began_with_and_says_if_the_file_differs(tmp_path, machine):
    suite = suites.parse(SUITE, "small.toml")
    whole = start(tmp_path / "whole", suite, Request(str(machine), 1.0, ranks=4), Watcher(), Local(jobs=1))
    run = begun(tmp_path / "runs", str(machine))
    slower(machine)
    watcher = Stops(after=-1)
    resumed = resume(run, watcher)
    assert values(resumed) == values(whole)
    assert [text for text in watcher.said if "mine.toml" in text and "continues with its copy" in text]


def test_a_resumed_run_needs_no_machine_file_and_says_nothing_if_it_is_the_same(tmp_path, machine):
    run = begun(tmp_path / "runs", str(machine))
    watcher = Stops(after=-1)
    assert not resume(run, watcher).interrupted
    assert watcher.said == []
    run = begun(tmp_path / "runs", str(machine))
    machine.unlink()
    assert not resume(run, watcher).interrupted
    assert len(watcher.said) == 1


def test_an_edited_copy_is_refused(tmp_path, machine):
    run = begun(tmp_path / "runs", str(machine))
    slower(run.folder / "machines" / "loggp.toml")
    with pytest.raises(StoreError, match=r"loggp\.toml: was changed since the run began"):
        resume(run, Watcher())


def test_another_processor_does_not_continue_a_run(tmp_path):
    run = begun(tmp_path, "loggp")
    plan = json.loads((run.folder / "run.json").read_text())
    plan["request"]["on"], plan["inputs"] = "threads", {"threads": {"machine": "another processor", "digest": None}}
    plan["request"]["ranks"] = 1
    (run.folder / "run.json").write_text(json.dumps(plan))
    with pytest.raises(UsageError, match=r"was begun on another processor, and threads is .* here; resume it"):
        resume(run, Watcher())


def test_two_files_that_name_one_machine_are_refused(tmp_path, machine):
    with pytest.raises(UsageError, match=r"loggp and .*mine\.toml both describe a machine called `loggp`"):
        executors.resolve(f"loggp,{machine}")


@pytest.mark.parametrize(
    "name", ["../../victim", "/tmp/x", "a/b", "..", ".hidden", "a b", "\x1b[31mred", "", "x" * 101]
)
def test_a_machine_whose_name_is_a_path_is_refused(tmp_path, machine, name):
    machine.write_text(LOGGP.replace('name = "loggp"', f"name = {json.dumps(name)}", 1))
    with pytest.raises(FileError, match=r"mine\.toml:\d+: machine\.?.*name") as refused:
        load(str(machine))
    assert "\x1b" not in str(refused.value)
    victim = tmp_path / "victim.toml"
    victim.write_text("precious")
    result = invoke(
        "dissect", "--level", "full", "scaling", "--on", str(machine), "-p", "2", "--runs", str(tmp_path / "runs")
    )
    assert (result.status, victim.read_text()) == (2, "precious")
    assert not (tmp_path / "runs").exists()


HOSTILE = (
    "numpy",
    "multiprocessing",
    "socket",
    "struct",
    "linkwright",
    "distributed",
    "tornado",
    "json",
    "pickle",
)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A current folder in which modules lie that leave a mark if they are executed."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r})\nraise SystemExit\n"
        )
    monkeypatch.chdir(folder)
    return tmp_path / "executed"


@pytest.mark.parametrize(
    "command",
    [
        ("run", "allreduce", "-a", "ring", "--sizes", "8", "--ranks", "2", "--on", "threads", *BRIEF),
        ("run", "cache_line", *BRIEF),
    ],
)
def test_workers_import_nothing_from_the_current_folder(hostile, command):
    status = invoke(*command, "--runs", "runs").status
    assert not hostile.exists(), hostile.read_text()
    assert status in (0, 1)  # a host without a second processor measures nothing


def test_dask_workers_import_nothing_from_the_current_folder(hostile, tmp_path):
    pytest.importorskip("distributed")
    with Dask(jobs=1) as backend:
        outcome = start(tmp_path, suites.parse(SUITE, "small.toml"), Request("loggp", 1.0, ranks=4), Watcher(), backend)
    assert not hostile.exists(), hostile.read_text()
    assert values(outcome)


def test_every_process_that_the_package_starts_is_isolated():
    """Each start of Python names `-P`; a new one has to be looked at."""
    package = Path(executors.__file__).parent.parent
    for path in package.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "sys.executable" in line and "pip install" not in line and not line.lstrip().startswith("#"):
                assert 'sys.executable, "-P"' in line, f"{path}: {line}"
    assert sys.executable


def test_the_random_numbers_of_the_proofs_are_recorded_and_repeated(tmp_path, monkeypatch):
    run = begun(tmp_path, "loggp")
    key = run.environment["proof_key"]
    assert re.fullmatch("[0-9a-f]{32}", key)
    asked = [sys.executable, "-c", "from linkwright._native import proof_key; print(proof_key())"]
    drawn = {subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)}
    assert len(drawn | {key}) == 3
    monkeypatch.setenv("LINKWRIGHT_PROOF_KEY", key)
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == key


@pytest.mark.parametrize("key", ["", "xyz", "-1", "1" * 33])
def test_a_wrong_key_of_the_proofs_is_refused(monkeypatch, key):
    monkeypatch.setenv("LINKWRIGHT_PROOF_KEY", key)
    result = invoke("list", "fabrics")
    assert result.status == 2
    assert "LINKWRIGHT_PROOF_KEY" in result.err


@pytest.mark.parametrize(
    "words", ["import --as osu -p 2 /dev/zero", "predict /dev/zero --on loggp", "dissect /dev/zero"]
)
def test_a_file_that_never_ends_is_refused(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    result = invoke(*words.split())
    assert result.status == 2
    assert "/dev/zero" in result.err
    assert list(tmp_path.iterdir()) == []


# ---- files as other systems write them, and names that are not UTF-8

ENCODED = {
    "bom": lambda text: codecs.BOM_UTF8 + text.encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "bom and crlf": lambda text: codecs.BOM_UTF8 + text.replace("\n", "\r\n").encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode(), mtime=0),
    "gzip and bom": lambda text: gzip.compress(codecs.BOM_UTF8 + text.encode(), mtime=0),
}
# What reads a file -> the file, and the command.
READ = {
    "log": (nccl(), "explain FILE --on hgx-h100"),
    "osu": (osu(), "import FILE --ranks 4 --runs runs"),
    "machine": (LOGGP, "simulate allreduce -a ring --on ./FILE.toml -p 4 --sizes 8"),
    "suite": (SUITE, "dissect ./FILE.toml --level full --on loggp -p 4 --runs runs"),
    "lw": (None, "verify ./FILE.lw"),
    "goal": (None, "verify ./FILE.goal"),
    "slurm": ("networks/tree.topology.conf", "machines import FILE --node hgx-h100 --name made"),
    "ibnetdiscover": ("networks/fat_tree.ibnetdiscover", "machines import FILE --node hgx-h100 --name made"),
    "nvidia-smi": ("hosts/quad.nvidia.txt", "machines import FILE --gpu A100-SXM4-80GB --name made"),
    "rocm-smi": ("hosts/line.rocm.txt", "machines import FILE --gpu MI250X --name made"),
    "nccl": ("hosts/two_h100.nccl.xml", "machines import FILE --name made"),
    "hwloc": ("hosts/two_l40s.hwloc.xml", "machines import FILE --name made"),
}


def text_of(key):
    given = READ[key][0]
    if given is None:
        return invoke("export", "allreduce/ring", "-p", "4", "--as", key).out
    return (HERE / given).read_text(encoding="utf-8") if given.startswith(("networks/", "hosts/")) else given


def said(key, name):
    """The answer to a file, but for its name, and that it may be a copy."""
    result = invoke(*READ[key][1].replace("FILE", name).split())
    (Path("made.toml")).unlink(missing_ok=True)
    return result.status, re.sub(r"runs/\S+|\d+ lines? skipped", "", result.out.replace(name, "FILE")), result.err


@pytest.mark.parametrize("key", READ)
def test_all_readers_take_byte_order_marks_line_ends_and_gzip(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    suffix = re.search(r"FILE(\.\w+)?", READ[key][1])[1] or ""
    (tmp_path / f"alpha{suffix}").write_text(text_of(key))
    status, out, err = said(key, "alpha")
    assert status == 0, err
    for how, encoded in ENCODED.items():
        (tmp_path / f"fresh{suffix}").write_bytes(encoded(text_of(key)))
        assert said(key, "fresh")[:2] == (0, out), (how, said(key, "fresh"))


@pytest.mark.parametrize("key", READ)
def test_all_readers_take_names_that_are_not_utf_8(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    suffix = re.search(r"FILE(\.\w+)?", READ[key][1])[1] or ""
    name = os.fsdecode(b"na\xffme")
    (tmp_path / f"{name}{suffix}").write_text(text_of(key))
    status, _, err = said(key, name)
    assert status == 0, err


@pytest.mark.parametrize(
    "words",
    ["draw allreduce/ring --on loggp -p 4 --out NAME.svg", "export allreduce/ring -p 4 --as lw --out NAME.lw",
     "explain l.log --on hgx-h100 --report NAME.html", "import l.log --runs NAME",
     "simulate allreduce -a ring --on loggp -p 4 --sizes 8 --output NAME.csv"],
)  # fmt: skip
def test_all_writers_take_names_that_are_not_utf_8(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.log").write_text(nccl())
    result = invoke(*(word.replace("NAME", os.fsdecode(b"na\xffme")) for word in words.split()))
    assert result.status == 0, result.err
    assert any(os.fsdecode(b"na\xffme") in path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("data", [gzip.compress(b"x" * 5000, mtime=0)[:30], b"\x1f\x8b", b"\x1f\x8b" + b"\xff" * 50])
@pytest.mark.parametrize("words", ["import FILE --runs runs", "verify ./FILE.lw", "machines import FILE"])
def test_a_broken_archive_is_refused(tmp_path, monkeypatch, data, words):
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "FILE.lw"):
        (tmp_path / name).write_bytes(data)
    result = invoke(*words.split())
    assert result.status == 2
    assert "gzip" in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_archive_that_unpacks_to_no_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MOST_TEXT", 1 << 20)
    (tmp_path / "bomb.log").write_bytes(gzip.compress(b"x" * (8 << 20), mtime=0))
    assert "more than" in invoke("explain", str(tmp_path / "bomb.log")).err


def test_a_failed_import_leaves_no_folder(tmp_path, monkeypatch):
    from linkwright.show import report

    def fails(*_):
        raise UsageError("no page")

    monkeypatch.setattr(report, "render", fails)
    (tmp_path / "l.log").write_text(nccl())
    assert invoke("import", str(tmp_path / "l.log"), "--runs", str(tmp_path / "new" / "runs")).status == 2
    assert list((tmp_path / "new").iterdir()) == []
