"""Measures the most memory that a command and its children hold at once, optionally under a memory limit.

    python3 benches/peak_memory.py [--limit 2G] [COMMAND ...]      by default `linkwright dissect --level quick`

Samples the resident memory of the command and all its children 50 times per second (/proc/PID/smaps_rollup, which
divides shared pages among their processes) and prints the peak. `--limit` runs the command in a control group of that
size, which needs root and a kernel with memory groups; without the option nothing is limited.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import quick

GROUPS = Path("/sys/fs/cgroup")


def tree(root):
    """The process and everything below it."""
    found = [root]
    for pid in found:
        for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += [int(child) for child in tasks.read_text().split()]
            except OSError:
                continue  # it has ended
    return found


def resident(pid):
    """Bytes of a process, shared pages divided among those that share them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def group_of(limit):
    """A new control group with this much memory, and the file that processes are written to."""
    v1 = GROUPS / "memory"
    folder = (v1 if v1.is_dir() else GROUPS) / f"linkwright-bench-{os.getpid()}"
    folder.mkdir()
    (folder / ("memory.limit_in_bytes" if v1.is_dir() else "memory.max")).write_text(str(limit))
    return folder


def bytes_of(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=bytes_of, help="such as 2G")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = quick.arguments(parser, command=[sys.executable, "-c", "pass"])
    command = options.command or [sys.executable, "-m", "linkwright", "dissect", "--level", "quick"]
    group = group_of(options.limit) if options.limit else None

    def enter():
        if group:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    process = subprocess.Popen(command, preexec_fn=enter)
    peak, when, start = 0, 0.0, time.monotonic()
    while process.poll() is None:
        now = sum(resident(pid) for pid in tree(process.pid))
        if now > peak:
            peak, when = now, time.monotonic() - start
        time.sleep(0.02)
    if group:
        group.rmdir()
    print(f"peak {peak / 2**20:.0f} MiB after {when:.0f} s; status {process.returncode}")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
