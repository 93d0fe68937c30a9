"""Our allreduces over MPI against the library's own, in one job: best median against best median.

    python3 benches/mpi_allreduce_vs_native.py [--ranks 2] [--sizes 8,1K,64K,1M,16M] [--time-budget 90s]

Needs mpirun, mpi4py and linkwright in this Python's environment. All algorithms are measured in shuffled
rounds of one mpirun, by the same clock, on data that are checked; of the library the better of in place and
out of place counts. It runs with a malloc that keeps its memory: otherwise the library's temporary buffers
make the largest sizes a measurement of page faults.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


def measure(options):
    """The rows of one run."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        root_user = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *root_user, "-np", str(options.ranks), sys.executable, "-m", "linkwright", "run"]
        command += ["allreduce", "--on", "mpi", "--sizes", options.sizes, "--time-budget", options.time_budget]
        command += ["--runs", folder, "--output", str(rows)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | KEEP_MEMORY)
        return json.loads(rows.read_text())["rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8,1K,64K,1M,16M")
    parser.add_argument("--time-budget", default="90s")
    options = parser.parse_args()
    times = {}
    for row in measure(options):
        if row["metric"] == "time" and row["value"] is not None:
            side = "library" if row["algorithm"].startswith("mpi-native") else "ours"
            times.setdefault(row["size_bytes"], {}).setdefault(side, []).append(
                (row["value"], row["algorithm"], row["n"])
            )
    print(f"{'size':>9} {'ours (us)':>12} {'library (us)':>13} {'ratio':>6}   algorithms, rounds behind each median")
    for size, sides in sorted(times.items()):
        if len(sides) < 2:
            print(f"{size:>9} {'-':>12} {'-':>13} {'-':>6}   only {', '.join(sides)} was left in peace; give more time")
            continue
        (mine, algorithm, n), (theirs, variant, m) = min(sides["ours"]), min(sides["library"])
        print(
            f"{size:>9} {mine / 1e3:>12.2f} {theirs / 1e3:>13.2f} {mine / theirs:>6.2f}   "
            f"{algorithm} {n}, {variant} {m}"
        )


if __name__ == "__main__":
    main()
