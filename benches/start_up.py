"""How long short commands take, compared with what Python needs to import NumPy: medians of interleaved runs.

    .venv/bin/python benches/start_up.py

A simulation imports NumPy, so that is the floor; `--help` does not. The exit status is 1 if a command takes more than
its share allows. A busy machine slows both alike, and interleaving keeps the comparison fair.
"""

import statistics
import subprocess
import sys
import time

import quick

RUNS = 21
NUMPY = ("-c", "import numpy")
# Command -> the most that it may take, in imports of NumPy.
LIMITS = {
    "--help": 0.6,
    "list algorithms": 0.7,
    "simulate allreduce --algorithm ring --ranks 8 --on loggp": 1.5,
}


def seconds(arguments: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    commands = {"import numpy": NUMPY} | {words: ("-m", "linkwright", *words.split()) for words in LIMITS}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    short = quick.only()
    for _ in range(1 if short else RUNS):
        for name, arguments in commands.items():
            taken[name].append(seconds(arguments))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    numpy = medians.pop("import numpy")
    print(f"{'import numpy':58} {1e3 * numpy:6.1f} ms")
    for name, median in medians.items():
        print(f"{name:58} {1e3 * median:6.1f} ms  {median / numpy:.2f} x NumPy, at most {LIMITS[name]}")
    return not short and any(median > LIMITS[name] * numpy for name, median in medians.items())


if __name__ == "__main__":
    sys.exit(main())
