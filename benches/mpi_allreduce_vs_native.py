"""Compares our allreduces over MPI with the library's own, in one job: best median against best median.

    python3 benches/mpi_allreduce_vs_native.py [--ranks 2] [--sizes 8,1K,64K,1M,16M] [--time-budget 90s]

Needs mpirun, mpi4py and linkwright in this Python's environment. All algorithms are measured in shuffled
rounds of one mpirun, by the same clock, on checked data. The better of the library's variants (in place, out of place)
counts. The job runs with a malloc that keeps its memory; otherwise the library's temporary buffers would turn the
largest sizes into a measurement of page faults. On two ranks most algorithms send the same messages; the default names
one of each kind, so that each is measured in more rounds. Where rounds fall into two groups (two cores
of a virtual machine may or may not share a cache), the faster group counts on both sides.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import quick

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}

ALGORITHMS = "ring,swing_bandwidth,swing_latency,recursive_doubling_latency,mpi-native,mpi-native-in-place"


def measure(options):
    """The rows of one run."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        root_user = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *root_user, "-np", str(options.ranks), sys.executable, "-m", "linkwright", "run"]
        command += ["allreduce", "--on", "mpi", "--sizes", options.sizes, "--time-budget", options.time_budget]
        command += ["--algorithm", options.algorithms, "--iters", "30"]  # many short rounds
        command += ["--runs", folder, "--output", str(rows)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | KEEP_MEMORY)
        return json.loads(rows.read_text())["rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8,1K,64K,1M,16M")
    parser.add_argument(
        "--algorithms", default=ALGORITHMS, help="`all`, or names as `linkwright run --algorithm` takes"
    )
    parser.add_argument("--time-budget", default="90s")
    options = quick.arguments(parser, ("mpirun", "mpi4py"), sizes="1K", time_budget="2s")
    found = {}  # size -> side -> algorithm -> metric -> value
    for row in measure(options):
        if row["value"] is not None:
            side = "library" if row["algorithm"].startswith("mpi-native") else "ours"
            algorithms = found.setdefault(row["size_bytes"], {}).setdefault(side, {})
            metrics = algorithms.setdefault(row["algorithm"], {})
            metrics[row["metric"]] = row["value"]
    rows = []
    for size, sides in sorted(found.items()):
        sides = {
            side: [m.get("mode1", m["time"]) for m in algorithms.values() if "time" in m]
            for side, algorithms in sides.items()
        }
        if not sides.get("ours") or not sides.get("library"):
            print(f"{size:>9}   one side was never left in peace; give more time")
            continue
        mine, theirs = min(sides["ours"]), min(sides["library"])
        rows.append((f"allreduce over MPI of {size} B", "MPI's own", mine, theirs, "ns"))
    quick.compare(rows, options.record)


if __name__ == "__main__":
    main()
