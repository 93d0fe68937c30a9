"""Compares memory latency, triad and core-to-core latency with their peers, in alternating launches.

    python3 benches/memory_vs_peers.py [--launches 6]

Run with the interpreter of .venv. Needs cc; `likwid-bench` (Debian: likwid), `core-to-core-latency` (cargo install
core-to-core-latency), `lat_mem_rd` (lmbench) and `stream_c.exe` or `stream` (STREAM) take part where they are
installed. All run on the first processors. Both sides take the best of each launch, because
that is what the peers print. The output is medians over launches, and the ratio of ours to theirs.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import quick

HERE = Path(__file__).resolve().parent
PROBE = """
import json, sys
from linkwright import _native
key, axes, options = json.loads(sys.argv[1])
found = _native.run_probe(key, axes, options)
print(json.dumps(min(found["values_ns"])))
"""
LATENCY = {"L1": 16 << 10, "L2": 128 << 10, "DRAM": 256 << 20}
TRIAD = {"L1": 8 << 10, "L2": 128 << 10, "DRAM": 64 << 20}


def ours(key, axes, cpus):
    """The best sample of one launch, in ns."""
    options = {"cpus": cpus, "budget_s": 3.0}
    words = [sys.executable, "-c", PROBE, json.dumps([key, axes, options])]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def reference(binary, what, size):
    words = ["taskset", "-c", "0", binary, what, str(size)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def likwid(size):
    """Triad in GB/s; its working set is all three arrays."""
    flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    kernel = "stream_avx_fma" if " fma " in flags else "stream"
    words = ["likwid-bench", "-t", kernel, "-w", f"N:{3 * size // 1000}kB:1"]
    found = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"MByte/s:\s+([\d.]+)", found)[1]) / 1e3


def lmbench(size):
    """Nanoseconds of a load in random order: its line `MiB ns` on stderr of the largest working set."""
    words = ["taskset", "-c", "0", "lat_mem_rd", "-t", "-P", "1", f"{max(size >> 20, 1)}", "64"]
    found = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    lines = [line.split() for line in found.splitlines() if re.fullmatch(r"[\d.]+ [\d.]+", line.strip())]
    return next(float(ns) for mib, ns in reversed(lines) if float(mib) * 2**20 <= size)


def stream(program):
    """Triad of all its threads in GB/s, best of its repetitions; its arrays have a compiled-in size."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    words = ["taskset", "-c", "0", program]
    found = subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout
    return float(re.search(r"Triad:\s+([\d.]+)", found)[1]) / 1e3


def core_to_core():
    """Nearest pair in ns, one way."""
    found = subprocess.run(["core-to-core-latency", "300", "--csv"], check=True, capture_output=True, text=True).stdout
    cells = [float(cell) for line in found.splitlines() for cell in line.split(",") if cell.strip()]
    return min(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=6)
    asked = quick.arguments(parser, ("cc", "taskset"), launches=1)
    launches, levels = asked.launches, ["L1"] if asked.quick else list(LATENCY)
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "reference"
        subprocess.run(["cc", "-O3", "-march=native", "-o", binary, HERE / "reference_memory.c"], check=True)
        found = []
        for level, size in ((level, LATENCY[level]) for level in levels):
            axes = {"working_set": str(size)}
            peers = {"reference loop": lambda size=size: reference(binary, "chase", size)}
            if shutil.which("lat_mem_rd"):
                peers["lmbench"] = lambda size=size: lmbench(size)
            chase = lambda axes=axes: ours("memory_latency", axes, [0])  # noqa: E731
            found += compared((f"latency {level}", "ns"), launches, chase, peers)
        for level, size in ((level, TRIAD[level]) for level in levels):
            axes = {"block": str(size), "kernel": "triad"}
            peers = {"reference loop": lambda size=size: reference(binary, "triad", size)}
            if shutil.which("likwid-bench"):
                peers["likwid-bench"] = lambda size=size: likwid(size)
            program = shutil.which("stream_c.exe") or shutil.which("stream")
            if program and level == "DRAM":
                peers["STREAM"] = lambda program=program: stream(program)
            rate = lambda axes=axes, size=size: 3 * size / ours("memory_bandwidth", axes, [0])  # noqa: E731
            found += compared((f"triad {level}", "GB/s"), launches, rate, peers)
        if shutil.which("core-to-core-latency"):
            line = lambda: ours("cache_line", {"how": "compare_and_swap"}, [0, 1])  # noqa: E731
            found += compared(("core to core", "ns"), launches, line, {"core-to-core-latency": core_to_core})
    quick.compare(found, asked.record)


def compared(what, launches, own, peers):
    """A row for each peer; launches alternate."""
    found = {name: [] for name in ("ours", *peers)}
    for _ in range(launches):
        found["ours"].append(own())
        for name, peer in peers.items():
            found[name].append(peer())
    mine = statistics.median(found["ours"])
    return [(what[0], name, mine, statistics.median(found[name]), what[1]) for name in peers]


if __name__ == "__main__":
    main()
