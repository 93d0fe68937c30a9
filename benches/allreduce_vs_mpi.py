"""Compares an allreduce of floats on threads with MPI_Allreduce over shared memory, in alternating launches.

    python3 benches/allreduce_vs_mpi.py [--ranks 2] [--launches 6] [--sizes 8,1024,...]

Run with the interpreter of .venv. Needs mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin). Both sides time samples
of back-to-back calls and report the slowest rank; this program prints the median over launches of their medians. The
better of MPI's variants (in place, out of place) counts. MPI runs with a malloc that keeps its memory; otherwise its
temporary buffers would turn the largest sizes into a measurement of page faults.
"""

import argparse
import collections
import json
import os
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
from linkwright.base.errors import LinkwrightError
ranks, sizes, budget = json.loads(sys.argv[1])
for size in sizes:
    for row in [row for row in _native.algorithms() if row["collective"] == "allreduce"]:
        try:
            schedule = _native.Schedule.build("allreduce/" + row["name"], ranks, size // 4, element_bytes=4)
            schedule.verify()
            found = _native.run_threads(schedule, {"samples": 101, "budget_s": budget})
        except LinkwrightError:  # not for so many ranks, or for switches that combine
            continue
        times = np.concatenate([found["slowest_ns"], found["disturbed_ns"]])  # as for MPI, no sample is dropped
        print(f"{size},{row['name']},{np.median(times)},{times.min()}")
"""

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


def rows(command):
    """Size, name and median of lines `size,name,median,min` of a command."""
    environment = os.environ | KEEP_MEMORY
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    for line in done.stdout.splitlines():
        size, name, median, _ = line.split(",")
        yield int(size), name, float(median)


def best(times):
    """The least median, over launches, of {name: medians}."""
    return min(map(statistics.median, times.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--sizes", default="8,1024,65536,1048576,16777216")
    options = quick.arguments(parser, ("mpicc", "mpirun"), launches=1, sizes="1024")
    sizes = options.sizes.split(",")

    with tempfile.TemporaryDirectory() as folder:
        mpi = Path(folder) / "mpi_allreduce"
        subprocess.run(["mpicc", "-O3", "-o", mpi, "benches/mpi_allreduce.c"], check=True, cwd=ROOT)
        root_user = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        run_mpi = ["mpirun", *root_user, "--bind-to", "core", "-np", str(options.ranks), mpi, *sizes]
        budget = 0.02 if options.quick else 0.5
        run_own = [sys.executable, "-c", OURS, json.dumps([options.ranks, [*map(int, sizes)], budget])]
        own, theirs = (collections.defaultdict(lambda: collections.defaultdict(list)) for _ in "12")
        for _ in range(options.launches):
            for times, command in (own, run_own), (theirs, run_mpi):
                for size, name, median in rows(command):
                    times[size][name].append(median)

    found = [(f"allreduce of {size} B", "MPI", best(own[size]), best(theirs[size]), "ns") for size in map(int, sizes)]
    quick.compare(found, options.record)


if __name__ == "__main__":
    main()
