"""Compares a ping-pong of two threads with Open MPI over shared memory, in alternating launches.

    python3 benches/ping_pong_vs_mpi.py [--launches 6] [--sizes 8,1024,...]

Run with the interpreter of .venv. Needs mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin). Peers: a loop of
MPI_Send and MPI_Recv as in OSU's latency test (mpi_ping_pong.c); mpi4py.bench, which adds the cost of Python; and
osu_latency, if it is installed. All print half a round trip. The comparison uses the median over launches of their
medians and the fastest sample; for OSU and mpi4py, which print one mean per launch, it uses the best launches.
"""

import argparse
import collections
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import quick

ROOT = Path(__file__).resolve().parent.parent
OURS = """
import json, sys
import numpy as np
from linkwright import _native
for size in json.loads(sys.argv[1]):
    schedule = _native.Schedule.pattern("ping_pong", 2, size, element_bytes=1)
    schedule.verify()
    found = _native.run_threads(schedule, {"dtype": "u8", "samples": 101, "budget_s": 0.5, "check": False})
    halves = np.concatenate([found["slowest_ns"], found["disturbed_ns"]]) / 2  # as for MPI, no sample is dropped
    print(f"{size},threads,{np.median(halves)},{halves.min()}")
"""


def rows(command):
    """Lines `size,name,median,min` of a command."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    for line in done.stdout.splitlines():
        size, _, median, fastest = line.split(",")
        yield int(size), (float(median), float(fastest))


def table(command):
    """Lines `size microseconds` of OSU, `size MB/s | seconds ...` of mpi4py."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].isdigit():
            seconds = float(words[3]) if words[2:3] == ["|"] else float(words[1]) * 1e-6
            yield int(words[0]), (seconds * 1e9,) * 2


def peers(mpirun, binary, sizes):
    """Name -> command and how its output is read."""
    found = {"Open MPI": (rows, [*mpirun, binary, *map(str, sizes)])}
    span = f"{min(sizes)}:{max(sizes)}"
    if shutil.which("osu_latency"):
        found["osu_latency"] = (table, [*mpirun, "osu_latency", "-m", span])
    if importlib.util.find_spec("mpi4py"):
        words = ["-m", "mpi4py.bench", "pingpong", "--array", "numpy", "-m", str(min(sizes)), "-n", str(max(sizes))]
        found["mpi4py.bench"] = (table, [*mpirun, sys.executable, *words])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--sizes", default="8,1024,32768,65536,1048576")
    options = quick.arguments(parser, ("mpicc", "mpirun"), launches=1, sizes="8")
    sizes = [int(size) for size in options.sizes.split(",")]
    root_user = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    mpirun = ["mpirun", *root_user, "--bind-to", "core", "-np", "2"]
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "mpi_ping_pong"
        subprocess.run(["mpicc", "-O3", "-o", binary, "benches/mpi_ping_pong.c"], check=True, cwd=ROOT)
        ours = {"threads": (rows, [sys.executable, "-c", OURS, json.dumps(sizes)])}
        sides = ours | peers(mpirun, binary, sizes)
        times = collections.defaultdict(list)
        for _ in range(options.launches):
            for name, (read, command) in sides.items():
                for size, values in read(command):
                    times[size, name].append(values)
    quick.compare(list(report(sizes, [name for name in sides if name != "threads"], times)), options.record)


def report(sizes, names, times):
    """A row for each size and peer: medians of Open MPI, the best launch of others, which print one mean."""
    middle = {"Open MPI": lambda values: statistics.median(median for median, _ in values)}
    for size, name in ((size, name) for size in sizes for name in names if times.get((size, name))):
        of = middle.get(name, lambda values: min(values)[0])
        yield f"ping-pong of {size} B", name, of(times[size, "threads"]), of(times[size, name]), "ns"


if __name__ == "__main__":
    main()
