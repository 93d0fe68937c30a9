"""Runs synthesised schedules on this host: are they right on 2 to 64 ranks, and how fast on two?

    python3 benches/synthesis_on_host.py right [--ranks 2,3,4,8,16,32,64] [--mpi 2,4,8]
    python3 benches/synthesis_on_host.py fast --on here.toml [--sizes 64,4K,256K,4M] [--time-budget 20s]

Run with the interpreter of .venv. `right`: each method of search alone finds a schedule on an ideal switch, which then
runs on threads and, up to --mpi ranks, on processes of mpirun; every element is checked. `fast`: the machine file is
one that `linkwright fit` made of this host. What the search finds for two ranks is timed against known algorithms, in
alternating launches; `behind` counts cells in which its interval lies above that of the fastest of them.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import quick

LINKWRIGHT = (sys.executable, "-m", "linkwright")
SEARCHES = {
    "composition": ("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall"),
    "matching": ("allreduce", "allgather", "reduce_scatter", "broadcast"),
    "packing": ("allreduce", "allgather", "reduce_scatter", "broadcast"),
    "flows": ("alltoall",),
}
FOUND = ",".join(SEARCHES)
COLLECTIVES = SEARCHES["composition"]
TRIES = 3
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def told(*command: str) -> subprocess.CompletedProcess:
    """The outcome of a command, whatever its status."""
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | AS_ROOT)


def found(folder: Path, collective: str, machine: str, ranks: int, size: str, methods: str) -> Path | None:
    """The file of the schedule that a short search finds; None if it finds nothing."""
    asked = ("--on", machine, "--ranks", str(ranks), "--sizes", size, "--method", methods, "--budget", "1s")
    done = told(*LINKWRIGHT, "synthesize", collective, *asked, "--out", str(folder))
    return next(folder.glob("*.lw"), None) if done.returncode == 0 else None


def check(file: Path, folder: Path, ranks: int, processes: bool) -> str:
    """`right`, or the status of its row.

    A launch that others disturb gives no number, so there are several tries; three iterations need a moment, and the
    budget is for a host where others take the processors.
    """
    out = folder / "checked.json"
    how = ("--iters", "3", "--time-budget", "20s", "--runs", str(folder / "runs"), "--output", str(out))
    before = ("mpirun", "-n", str(ranks), "--oversubscribe") if processes else ()
    for _ in range(TRIES):
        done = told(*before, *LINKWRIGHT, "run", str(file), "--on", "mpi" if processes else "threads", *how)
        if done.returncode == 0:
            return "right"
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    return next((row["status"] for row in rows if row["metric"] == "time"), f"failed: {done.stderr[-300:]}")


def right(asked: argparse.Namespace) -> int:
    """Print a line for each method and collective; whether any was wrong."""
    wrong = 0
    for ranks in asked.ranks:
        for method, collectives in SEARCHES.items():
            for collective in collectives[:1] if asked.quick else collectives:
                with tempfile.TemporaryDirectory() as scratch:
                    folder = Path(scratch)
                    file = found(folder, collective, "crossbar", ranks, "64K", method)
                    kinds = [False, *([True] if ranks in asked.mpi else [])]
                    answers = [check(file, folder, ranks, kind) for kind in kinds] if file else ["not found"]
                wrong += any(answer != "right" for answer in answers)
                print(f"{ranks:3} {method:12} {collective:15} {', '.join(answers)}", flush=True)
    print(f"{wrong} not right")
    return int(wrong > 0)


def times(file: Path) -> dict[str, tuple[float, float, float]]:
    """By algorithm: the time and its interval, in ns."""
    rows = [row for row in json.loads(file.read_text())["rows"] if row["metric"] == "time" and row["status"] == "ok"]
    return {row["algorithm"]: (row["value"], row["ci_low"] or 0, row["ci_high"] or math.inf) for row in rows}


def fast(asked: argparse.Namespace) -> int:
    """Print a line for each cell: the fastest known algorithm, what was found, and the ratio."""
    ratios, behind = [], 0
    for collective in COLLECTIVES:
        for size in asked.sizes.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                file = found(folder, collective, asked.on, 2, size, FOUND)
                if not file:
                    print(f"{collective:15} {size:>6} not found", flush=True)
                    continue
                out = folder / "rows.json"
                how = ("-p", "2", "--on", "threads", "--time-budget", asked.time_budget, "--runs", str(folder / "runs"))
                both = ("-a", f"{asked.against},{file}", "--sizes", size, "--output", str(out))
                told(*LINKWRIGHT, "run", collective, *both, *how)
                measured = times(out)
            ours = measured.pop(file.name, None)
            if not ours or not measured:
                print(f"{collective:15} {size:>6} not measured", flush=True)
                continue
            name, best = min(measured.items(), key=lambda item: item[1])
            ratios.append(best[0] / ours[0])
            behind += ours[1] > best[2]
            print(f"{collective:15} {size:>6} {name:20} {best[0]:12.0f} {ours[0]:12.0f} {ratios[-1]:6.2f}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} cells, {mean:.2f} x in the geometric mean, behind in {behind}")
    return int(behind > 0)


def ranks(text: str) -> list[int]:
    """Numbers with commas between them."""
    return [int(one) for one in text.split(",") if one]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["right", "fast"], default="right")
    parser.add_argument("--ranks", type=ranks, default=[2, 3, 4, 8, 16, 32, 64])
    parser.add_argument("--mpi", type=ranks, default=[2, 4, 8])
    parser.add_argument("--on", default="here.toml", help="machine file of `linkwright fit`")
    parser.add_argument("--sizes", default="64,4K,256K,4M")
    parser.add_argument("--against", default="all", help="known algorithms")
    parser.add_argument("--time-budget", default="20s")
    asked = quick.arguments(parser, ranks=[2], mpi=[])
    sys.exit(right(asked) if asked.what == "right" else fast(asked))


if __name__ == "__main__":
    main()
