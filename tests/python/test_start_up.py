"""What a command loads: a library only where something uses it, so that short commands answer at once."""

import cProfile
import subprocess
import sys

import pytest

from linkwright_cases import invoke

# Runs a command and prints the modules that it has loaded.
LOADED = """
import contextlib, io, sys
from linkwright.cli.main import status_of
with contextlib.redirect_stdout(io.StringIO()):
    status = status_of(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""
SIMULATE = "simulate allreduce --algorithm ring --ranks 8 --on loggp --sizes 4K"
RUN = "run allreduce --algorithm ring --ranks 2 --on loggp --sizes 4K --runs RUNS"
# Each takes longer to load than a small simulation.
LIBRARIES = {"scipy", "pandas", "duckdb", "rich", "distributed", "dask", "cupy", "onnxruntime", "mpi4py"}
WRITING = {"pyarrow", "jinja2"}
# What others of the package need, and a plain simulation does not: a run folder, backends, reports, formats.
OTHERS = {
    "linkwright.store.run",
    "linkwright.session.suite.session",
    "linkwright.session.suite.backends",
    "linkwright.executors.process",
    "linkwright.formats.interop",
    "linkwright.show.report",
    "linkwright.advise.predict",
    "linkwright_evidence",
}
STANDARD = {"socket", "ssl", "subprocess", "multiprocessing", "tempfile", "importlib.metadata", "numpy.ma", "difflib"}


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        ("--help", {"numpy", "json", "linkwright._native", "linkwright.cli.simulate"} | LIBRARIES | WRITING | STANDARD),
        ("simulate --help", {"numpy", "linkwright._native"} | LIBRARIES | WRITING | OTHERS | STANDARD),
        (SIMULATE, LIBRARIES | WRITING | OTHERS | STANDARD),
        ("verify allreduce/ring", LIBRARIES | WRITING | OTHERS | STANDARD),
        ("list machines", {"numpy"} | LIBRARIES | WRITING | OTHERS),
        ("list algorithms", {"numpy"} | LIBRARIES | WRITING | OTHERS | {"ssl", "subprocess"}),  # it looks for packages
        ("describe vollo", LIBRARIES),
        ("machines show loggp", LIBRARIES | WRITING),
        ("draw --help", {"numpy", "linkwright._native"} | LIBRARIES | WRITING | OTHERS | STANDARD),
        ("draw cell-be --out RUNS/x.svg", {"linkwright.show.report", "resvg_py"} | LIBRARIES | WRITING),
        (RUN, LIBRARIES - {"pandas"}),  # Arrow loads it
    ],
)
def test_a_command_loads_what_it_uses(command, unwanted, tmp_path):
    assert not loaded_by(command, 0, tmp_path) & unwanted


def test_a_refused_run_loads_no_report(tmp_path):
    assert not loaded_by("run allreduce -a ring --ranks 2 --on reference --runs RUNS", 2, tmp_path) & LIBRARIES


def loaded_by(command, status, runs):
    words = [word.replace("RUNS", str(runs)) for word in command.split()]
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr[:400]
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "click" in loaded
    return loaded


def calls_of(ranks):
    """How many functions Python calls to simulate a ring of so many ranks, once everything is loaded."""
    words = f"simulate allreduce/ring --ranks {ranks} --on loggp --sizes 64K".split()
    invoke(*words)
    profile = cProfile.Profile()
    result = profile.runcall(invoke, *words)
    assert result.status == 0
    return sum(entry.callcount for entry in profile.getstats())


def test_a_simulation_of_many_ranks_leaves_the_work_to_the_native_half():
    assert calls_of(1024) < calls_of(32) + 3 * 1024
