"""Rules that `tune` or `export --as openmpi-rules` wrote: Open MPI takes the algorithms that they name."""

import shutil
import subprocess

import pytest
from jobs import FOLDER, is_open_mpi, mpirun

from linkwright.base.errors import StoreError, UsageError
from linkwright.formats import interop
from linkwright.store import run as runs
from linkwright.store import schema
from linkwright_cases import invoke

# Time of each algorithm by size: ring wins from 4 KiB to 64 KiB, elsewhere the others.
TIMES = {
    1024: {"recursive_doubling_latency": 1.0, "ring": 2.0, "swing_latency": 0.5},
    4096: {"recursive_doubling_latency": 4.0, "ring": 3.0, "recursive_doubling_bandwidth": 3.5},
    65536: {"ring": 20.0, "recursive_doubling_bandwidth": 15.0},
}
PROGRAM = """
from mpi4py import MPI
import numpy as np
for count in (256, 2048, 16384, 32768):
    sent = np.ones(count, dtype=np.float32)
    received = np.empty_like(sent)
    MPI.COMM_WORLD.Allreduce(sent, received)
    assert (received == MPI.COMM_WORLD.size).all()
"""


@pytest.fixture
def run(tmp_path):
    return run_of(tmp_path, ["box"])


def run_of(tmp_path, machines):
    made = runs.create(tmp_path / "runs", "dissect", "", {})
    rows = [
        schema.row(
            run=made.id, experiment=f"c/allreduce/{name}/{size}", machine=machine, executor="mpi",
            collective="allreduce", algorithm=name, ranks=2, size_bytes=size, dtype="f32", metric="time",
            value=1e3 * us, unit="ns", status="ok", ci_low=0.99e3 * us, ci_high=1.01e3 * us,
        )
        for machine in machines
        for size, times in TIMES.items()
        for name, us in times.items()
    ]  # fmt: skip
    made.write_results(rows, runs.samples_table(made, []))
    return made


def test_rules_name_the_fastest_algorithm_that_open_mpi_has(run):
    # swing is the fastest at 1 KiB, but not one of Open MPI's.
    assert interop.exporter("openmpi-rules").render(interop.content(run)).splitlines() == [
        f"1 # collectives; fastest of run {run.id}",
        "2 # allreduce",
        "3 # communicator sizes",
        "1 # processes",
        "1 # message sizes",
        "0 0 0 0 # from 0 B: as without rules, nothing was timed",
        "2 # processes",
        "5 # message sizes",
        "0 0 0 0 # from 0 B: as without rules, nothing was timed",
        "1024 3 0 0 # from 1024 B: recursive_doubling_latency, separably faster than 1 of 1 others",
        "4096 4 0 0 # from 4096 B: ring, 33% faster than recursive_doubling_latency",
        "65536 6 0 0 # from 65536 B: recursive_doubling_bandwidth, 33% faster than ring",
        "65537 0 0 0 # from 65537 B: as without rules, nothing was timed",
        "3 # processes",
        "1 # message sizes",
        "0 0 0 0 # from 0 B: as without rules, nothing was timed",
    ]


def test_rules_are_of_one_machine(tmp_path):
    two = run_of(tmp_path, ["box", "crate"])
    exporter = interop.exporter("openmpi-rules")
    with pytest.raises(UsageError, match="holds times of box and crate; choose one with --machine"):
        exporter.render(interop.content(two))
    assert "# from 4096 B: ring" in exporter.render(interop.content(two, "crate"))


def test_a_run_without_collectives_has_no_rules(tmp_path):
    made = runs.create(tmp_path / "runs", "dissect", "", {})
    made.write_results([], runs.samples_table(made, []))
    with pytest.raises(StoreError, match="holds no collective that Open MPI has algorithms for"):
        interop.exporter("openmpi-rules").render(interop.content(made))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_mpirun_takes_the_algorithm_that_the_rules_name(run, tmp_path):
    if not is_open_mpi():
        pytest.skip("the rules are Open MPI's, and mpirun is another library's or missing")
    rules, watcher, taken = tmp_path / "rules", tmp_path / "taken.so", tmp_path / "taken.txt"
    written = invoke("tune", "--run", run.id, "--for", "openmpi", "--out", str(rules), "--runs", str(tmp_path / "runs"))
    assert written.status == 0, written.err
    assert rules.read_text() == interop.exporter("openmpi-rules").render(interop.content(run))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", watcher, FOLDER / "taken.c", "-ldl"], check=True)
    (tmp_path / "program.py").write_text(PROGRAM)
    more = (
        "-x", f"LD_PRELOAD={watcher}", "-x", f"TAKEN={taken}", "--mca", "coll_tuned_use_dynamic_rules", "1",
        "--mca", "coll_tuned_dynamic_rules_filename", str(rules),
    )  # fmt: skip
    done = mpirun(2, str(tmp_path / "program.py"), more=more)
    assert done.returncode == 0, done.stderr
    calls = dict(reversed(line.split()) for line in taken.read_text().splitlines())
    # 128 KiB are beyond the largest size of the run, so Open MPI decides; for two ranks it takes the ring there.
    assert calls.pop("32768") != "redscat_allgather"
    assert calls == {"256": "recursivedoubling", "2048": "ring", "16384": "redscat_allgather"}
