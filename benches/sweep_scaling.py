"""Measures how near to linear a sweep scales: wall and CPU time of `linkwright dissect` on one job and on several.

    python3 benches/sweep_scaling.py [--jobs 1,2] [--launches 3] [--share 1.0]

Run with the interpreter of .venv, on an idle machine. There are two sweeps of all-to-alls on a crossbar, each longer
than ten seconds on one job: `balanced` has 960 equal experiments; `unbalanced` has experiments whose costs differ by a
factor of a thousand, the largest last. Times are medians of alternating launches, including the start of the
interpreter. `gain` is wall time on one job over that on several, and `of ideal` the gain per job. If rows depend on the
number of jobs, the bench fails. `--share 0.1` runs a tenth of the experiments, as a quick check.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import quick

HEAD = """
[suite]
format = 1
name = "{name}"
summary = "for benches/sweep_scaling.py"
description = "For benches/sweep_scaling.py."
machines = ["crossbar"]
"""
PART = """
[[part]]
name = "{name}"
summary = "{count} sizes"
collectives = ["alltoall"]
algorithms = ["pairwise"]
ranks = {ranks}
sizes = {sizes}
skew = "uniform:1us"
"""
# Sweep -> its parts: name, ranks, sizes.
SWEEPS = {
    "balanced": [("alike", [256], 960)],
    "unbalanced": [("growing", [64, 128, 256, 512, 1024], 40), ("last", [2048], 1)],
}
RANKS = 2048


def suite(name, share):
    text = HEAD.format(name=name)
    for part, ranks, count in SWEEPS[name]:
        count = max(1, round(count * share))
        sizes = [f"{64 * (number + 1)}K" for number in range(count)]
        text += PART.format(name=part, count=count, ranks=ranks, sizes=json.dumps(sizes))
    return text


def sweep(file, jobs, folder):
    """Wall and CPU seconds of one launch, and its rows without the run that they name."""
    output = folder / "rows.json"
    words = [
        "dissect",
        file,
        "--level",
        "full",
        "--jobs",
        jobs,
        "--ranks",
        RANKS,
        "--runs",
        folder / "runs",
        "--output",
        output,
    ]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "linkwright", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    problem = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    if status:
        sys.exit(f"sweep_scaling: {problem}")
    rows = json.loads(output.read_text(encoding="utf-8"))
    return wall, usage.ru_utime + usage.ru_stime, strip(rows)


def strip(rows):
    rows = rows["rows"] if isinstance(rows, dict) else rows
    return [{key: value for key, value in row.items() if key != "run"} for row in rows]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", default=f"1,{len(os.sched_getaffinity(0))}", help="numbers of jobs; 1 is the base")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the experiments")
    options = quick.arguments(parser, launches=1, share=0.01)
    if options.launches < 1 or not all(word.isdecimal() and int(word) for word in options.jobs.split(",")):
        parser.error("--jobs: numbers such as 1,2; --launches: at least 1")
    jobs = list(dict.fromkeys([1, *map(int, options.jobs.split(","))]))
    print(f"{'sweep':12} {'jobs':>4} {'wall s':>8} {'CPU s':>8} {'gain':>6} {'of ideal':>8}")
    for name in ["balanced"] if options.quick else SWEEPS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.toml"
            file.write_text(suite(name, options.share), encoding="utf-8")
            launches = [[sweep(file, count, Path(folder)) for count in jobs] for _ in range(options.launches)]
        first = launches[0][0][2]
        if any(rows != first for launch in launches for _, _, rows in launch):
            sys.exit(f"sweep_scaling: {name}: the rows depend on the number of jobs")
        one = statistics.median(launch[0][0] for launch in launches)
        for place, count in enumerate(jobs):
            wall = statistics.median(launch[place][0] for launch in launches)
            cpu = statistics.median(launch[place][1] for launch in launches)
            print(f"{name:12} {count:4} {wall:8.2f} {cpu:8.2f} {one / wall:6.2f} {one / wall / count:8.0%}")


if __name__ == "__main__":
    main()
