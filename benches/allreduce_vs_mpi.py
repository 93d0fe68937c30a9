"""Compares an allreduce of floats on threads with MPI_Allreduce over shared memory, in alternating launches.

    python3 benches/allreduce_vs_mpi.py [--ranks 2] [--launches 6] [--sizes 8,1024,...]

Needs cargo, mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin). Both sides time samples of
back-to-back calls and report the slowest rank; this program prints the median over launches of their medians. The
better of MPI's variants (in place, out of place) counts. MPI runs with a malloc that keeps its memory; otherwise its
temporary buffers would turn the largest sizes into a measurement of page faults.
"""

import argparse
import collections
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


def rows(command):
    """Lines `size,name,median,min` of a command."""
    environment = os.environ | KEEP_MEMORY
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    for line in done.stdout.splitlines():
        size, name, median, fastest = line.split(",")
        yield int(size), name, (float(median), float(fastest))


def best(times):
    """From {name: [(median, fastest)]}: the name with the least median, that median, and the least value of all."""
    medians = {name: statistics.median(m for m, _ in values) for name, values in times.items()}
    name = min(medians, key=medians.get)
    return name, medians[name], min(f for values in times.values() for _, f in values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--sizes", default="8,1024,65536,1048576,16777216")
    options = parser.parse_args()
    sizes = options.sizes.split(",")

    build = ["cargo", "build", "-q", "--release", "-p", "linkwright-exec", "--example", "allreduce"]
    subprocess.run(build, check=True, cwd=ROOT)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    with tempfile.TemporaryDirectory() as folder:
        mpi = Path(folder) / "mpi_allreduce"
        subprocess.run(["mpicc", "-O3", "-o", mpi, "benches/mpi_allreduce.c"], check=True, cwd=ROOT)
        root_user = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        run_mpi = ["mpirun", *root_user, "--bind-to", "core", "-np", str(options.ranks), mpi, *sizes]
        run_own = [target / "release/examples/allreduce", str(options.ranks), *sizes]
        own, theirs = (collections.defaultdict(lambda: collections.defaultdict(list)) for _ in "12")
        for _ in range(options.launches):
            for times, command in (own, run_own), (theirs, run_mpi):
                for size, name, values in rows(command):
                    times[size][name].append(values)

    print("     size  threads: median     fastest  MPI: median     fastest   ratios       algorithm, variant")
    for size in map(int, sizes):
        (algorithm, mine, my_best), (variant, other, their_best) = best(own[size]), best(theirs[size])
        times = f"{mine:>16.0f} {my_best:>11.0f} {other:>12.0f} {their_best:>11.0f}"
        ratios = f"{mine / other:>7.2f} {my_best / their_best:.2f}"
        print(f"{size:>9} {times} {ratios}   {algorithm}, {variant}")


if __name__ == "__main__":
    main()
