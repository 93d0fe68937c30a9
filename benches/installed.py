"""What an installed linkwright takes: disk space, and instructions until it answers. Compared with installed.toml.

    .ci/wheel                              # an empty environment with the wheel of dist/; runs this in it
    ENV/bin/python benches/installed.py --wheel dist/linkwright-...-x86_64.whl [--update | --warn]

Instructions are counted by valgrind, so that they do not depend on other load; without it only sizes are compared. What
has grown by more than a tenth ends in exit status 1: mend it, or say in the commit what it is good for, and `--update`.
With `--warn`, as in continuous integration, whose versions of Python and NumPy may be others, only sizes do so.
"""

import argparse
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import quick

TABLE = Path(__file__).with_suffix(".toml")
TOLERANCE = 0.10
# The whole of what `pip install linkwright` unpacks, in MiB.
MOST_UNPACKED = 120
PACKAGES = ("linkwright", "numpy", "jinja2", "markupsafe", "click", "threadpoolctl")
COMMANDS = {
    "import": ("-c", "import linkwright"),
    "help": ("-m", "linkwright", "--help"),
    "simulate": ("-m", "linkwright", "simulate", "allreduce", "--on", "dgx1-p100", "--sizes", "1M"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, default=TABLE, help="the file that was installed")
    parser.add_argument("--update", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--warn", action="store_true", help="warn of more instructions, and end well")
    asked = quick.arguments(parser)
    if asked.quick:
        print(f"{unpacked_kib('numpy') >> 10} MiB of NumPy")
        return 0
    found = {"wheel_kib": asked.wheel.stat().st_size >> 10, "linkwright_kib": unpacked_kib("linkwright")} | counted()
    whole = sum(map(unpacked_kib, PACKAGES)) / 1024
    for package in PACKAGES:
        print(f"{package:24} {unpacked_kib(package) / 1024:8.1f} MiB")
    print(f"{'unpacked':24} {whole:8.1f} MiB, at most {MOST_UNPACKED}")
    if asked.update:
        TABLE.write_text("".join(f"{name} = {value}\n" for name, value in found.items()), encoding="utf-8")
        return 0
    grown = compare(found, tomllib.loads(TABLE.read_text(encoding="utf-8")))
    failed = whole > MOST_UNPACKED
    for name, line in grown.items():
        warned = asked.warn and name.endswith("_minstructions")
        print(f"warning, fails in `make bench`: {line}" if warned else line)
        failed |= not warned
    return 1 if failed else 0


def compare(found: dict[str, int], known: dict[str, int]) -> dict[str, str]:
    """Prints every figure beside the known one, and gives a line for each that has grown."""
    lines = {}
    for name, value in found.items():
        change = value / known[name] - 1
        print(f"{name:24} {value:8,} {change:+8.1%}")
        if change > TOLERANCE:
            lines[name] = f"{name} has grown from {known[name]:,} to {value:,}: mend it, or say why and --update"
    return lines


def unpacked_kib(package: str) -> int:
    """The files of an installed package, without those that Python compiled."""
    files = importlib.metadata.files(package) or []
    return sum(size_of(file) for file in files if "__pycache__" not in file.parts) >> 10


def size_of(file: importlib.metadata.PackagePath) -> int:
    path = Path(str(file.locate()))
    return path.stat().st_size if path.is_file() else 0


def counted() -> dict[str, int]:
    """Millions of instructions beyond those of an empty program."""
    if not shutil.which("valgrind") or platform.machine() != "x86_64":
        print("instructions are not counted: there is no valgrind, or no table for this processor")
        return {}
    empty = instructions(("-c", "pass"))
    return {f"{name}_minstructions": instructions(words) - empty for name, words in COMMANDS.items()}


def instructions(words: tuple[str, ...]) -> int:
    """Millions, of a second run: the first one may compile modules."""
    fixed = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=fixed)
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*tool, sys.executable, *words], check=True, capture_output=True, text=True, env=fixed)
    refs = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert refs, done.stderr
    return int(refs[1].replace(",", "")) // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
