"""Counts the instructions of every stage of small workloads by callgrind, and compares them with instructions.toml.

    python3 benches/instructions.py [--update | --warn]

Needs cargo and valgrind. Counts do not depend on other load, and hardly on the machine: hash seeds and the C library's
choice of copy routines move them by about a percent, another release of rustc by a few. If a stage takes 25 % more
instructions than the table says, it has become slower, and the exit status is 1; continuous integration, whose compiler
may be another, warns instead. If it takes 25 % less, or if a change intends the cost (the commit says why), rewrite the
table with `--update`. Other architectures need other tables; there is one for x86-64. Stages below a million
instructions are only listed.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import quick

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".toml")
WORKLOADS = ["w1-64", "w2-1024", "w4-posted-256", "w4-stepwise-256", "w1c-crossbar-64", "w4f-stepwise-256",
             "w3-short", "noc-64", "exchange-64", "flow-8", "slotted-ring-8", "host-link-3"]  # fmt: skip
# Functions of stages.rs, which are never inlined, in the order in which a workload calls them.
STAGES = {"machine": "machine", "build": "build", "lower": "lower", "prove": "verify", "engine": "engine",
          "limits": "limits", "inject": "engine"}  # fmt: skip
FIRST = ("machine", "inject")
TOLERANCE = 0.25
LEAST = 1_000_000
WARNING = "warning, fails in `make bench`: "  # continuous integration repeats such lines at its end

Counts = dict[str, dict[str, int]]  # workload -> stage -> instructions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--warn", action="store_true", help="warn of what takes more, and end well")
    asked = quick.arguments(parser, ("valgrind", quick.BUILT / "workloads"))
    known = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    if not asked.update and (reason := waived(known["architecture"])):
        print(f"instructions are not counted: {reason}")
        return
    if asked.quick:
        print(count(quick.BUILT / "workloads", WORKLOADS[:1]))
        return
    counts = count(build())
    if asked.update:
        TABLE.write_text(written(counts, rustc()), encoding="utf-8")
        return
    for workload, stages in counts.items():
        for stage, found in stages.items():
            before = known["counts"].get(workload, {}).get(stage)
            change = f"{found / before - 1:+8.1%}" if before else "     new"
            print(f"{workload:18} {stage:8} {found:>13,} {change}")
    slower, faster = compare(counts, known["counts"])
    for line in [*slower, *faster]:
        print(f"{WARNING}{line}" if asked.warn else line)
    if slower:
        print(f"the table is by rustc {known['rustc']}, this is {rustc()}; if it must cost that: --update")
    sys.exit(1 if slower and not asked.warn else 0)


def waived(architecture: str) -> str | None:
    """Why nothing can be counted here, if so."""
    for tool in ("valgrind", "cargo"):
        if not shutil.which(tool):
            return f"`{tool}` is not installed"
    here = platform.machine()
    return None if here == architecture else f"the table is of {architecture}, this is {here}"


def build(package: str = "linkwright-sim", example: str = "workloads") -> Path:
    """An example of a crate, by default the workload runner, in the release profile of the repository."""
    words = ["cargo", "build", "--release", "--locked", "-p", package, "--example", example]
    done = subprocess.run([*words, "--message-format", "json"], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return Path(next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == example))


def count(runner: Path, workloads: list[str] = WORKLOADS) -> Counts:
    """One run of all workloads in one process; callgrind writes a file when a stage ends."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "counts"
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={files}"]
        for stage in STAGES:
            words += [f"--zero-before=workloads::stages::{stage}", f"--dump-after=workloads::stages::{stage}"]
        done = subprocess.run([*words, runner, "--once", *workloads], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"callgrind failed: {done.stderr[-2000:]}")
        dumps = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        return sorted_out([dump.read_text(encoding="utf-8") for dump in dumps], workloads)


def sorted_out(dumps: list[str], workloads: list[str]) -> Counts:
    """The workload and stage of each file: files come in order, and a workload begins with its machine."""
    counts, rest = {}, iter(workloads)
    for text in dumps:
        stopped = re.search(r"^desc: Trigger: --dump-after=workloads::stages::(\w+)", text, re.MULTILINE)
        if not stopped:
            continue
        if stopped[1] in FIRST:
            stages = counts.setdefault(next(rest), {})
        stages[STAGES[stopped[1]]] = int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1])
    if len(counts) < len(workloads):
        raise RuntimeError(f"callgrind saw {len(counts)} of {len(workloads)} workloads; were the stages inlined?")
    return counts


def compare(counts: Counts, known: Counts) -> tuple[list[str], list[str]]:
    """The stages that became slower by more than the tolerance, and those that became faster by as much."""
    slower, faster = [], []
    for workload, stages in counts.items():
        for stage, found in stages.items():
            before = known.get(workload, {}).get(stage)
            if before is None:
                slower.append(f"{workload}: {stage} is not in {TABLE.name}; write it with --update")
            elif max(before, found) < LEAST:
                continue
            elif found > before * (1 + TOLERANCE):
                slower.append(f"{workload}: {stage} takes {found:,} instructions, {found / before:.2f} x {before:,}")
            elif found < before * (1 - TOLERANCE):
                faster.append(f"{workload}: {stage} takes {found / before:.2f} x {before:,} instructions; --update")
    return slower, faster


def written(counts: Counts, version: str) -> str:
    """The table as text."""
    lines = [
        "# Instructions of every stage of small workloads. Written by `python3 benches/instructions.py --update`.",
        f'rustc = "{version}"',
        f'architecture = "{platform.machine()}"',
    ]
    for workload, stages in counts.items():
        lines += ["", f'[counts."{workload}"]', *(f"{stage} = {found:_}" for stage, found in stages.items())]
    return "\n".join(lines) + "\n"


def rustc() -> str:
    """The compiler's release."""
    return subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]


if __name__ == "__main__":
    main()
