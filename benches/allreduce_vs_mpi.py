"""Allreduce of floats on threads against MPI_Allreduce over shared memory, alternating launches.

    python3 benches/allreduce_vs_mpi.py [--ranks 2] [--launches 6] [--sizes 8,1024,...]

Needs cargo, mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin). Both sides time samples of
back-to-back calls and report the slowest rank; here the median over launches of their medians
is printed. MPI's better variant (in place, out of place) counts.
"""

import argparse
import collections
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def rows(command, **options):
    """Lines `size,name,median,min` of a command."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, **options)
    for line in done.stdout.splitlines():
        size, name, median, _ = line.split(",")
        yield int(size), name, float(median)


def best(times):
    """The fastest name of {name: [medians]} and its median over launches."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    name = min(medians, key=medians.get)
    return name, medians[name]


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
                for size, name, median in rows(command):
                    times[size][name].append(median)

    print(f"{'size':>9} {'threads ns':>12} {'algorithm':<28} {'MPI ns':>12} {'variant':<13} ratio")
    for size in map(int, sizes):
        (algorithm, mine), (variant, other) = best(own[size]), best(theirs[size])
        print(f"{size:>9} {mine:>12.0f} {algorithm:<28} {other:>12.0f} {variant:<13} {mine / other:.2f}")


if __name__ == "__main__":
    main()
