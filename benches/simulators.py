"""Compares the simulation speed of linkwright and SimGrid, on one core, in one run; fills docs/performance.md.

    python3 benches/simulators.py [--launches 6] [--only 'w1-*' ...] [--limit 120] [--write docs/performance.md]

Run with the interpreter of .venv. Needs cargo. SimGrid takes part if it is installed (Debian: libsimgrid-dev). A run of
it that exceeds `--limit` seconds of processor time is stopped and reported. Launches alternate between the simulators;
a workload that takes SimGrid more than 10 s is launched once. Times are processor times, as medians over launches: for
linkwright of all stages (machine, build, lower, verify, engine, limits), for SimGrid of the whole process. `--write`
also draws the chart of time per message (images/time_per_message.svg). The run takes about 20 minutes with SimGrid,
most of them for SimGrid, or about 10 with `--launches 3 --limit 60`.
"""

import argparse
import fnmatch
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import growth_chart
import quick
import simgrid_peer
from instructions import build
from simgrid_peer import Found, Work

SLOW_S = 10.0
STAGES = ("machine_s", "build_s", "lower_s", "verify_s", "engine_s", "limits_s")
# Workloads of the runner -> their SimGrid counterparts, or the reason why there is none.
PACKETS = "SimGrid has flows, no packets"
WORKLOADS: dict[str, Work | str] = {
    **{f"w1-{p}": Work("loggp", "ring", p) for p in (64, 256, 1024)},
    **{f"w1c-crossbar-{p}": Work("crossbar", "ring", p) for p in (64, 256, 1024)},
    "w1c-fifo-1024": Work("fifo-torus", "ring", 1024),
    "w1c-noc-1024": PACKETS,
    **{f"w2-{p}": Work("loggp", "doubling", p) for p in (64, 256, 1024, 4096, 16384)},
    **dict.fromkeys(("w3-uniform-0.1", "w3-uniform-0.3", "w3-neighbour-0.3"), PACKETS),
    **{f"w4-{order}-{p}": Work("loggp", order, p) for p in (256, 1024) for order in ("posted", "stepwise")},
    **{f"w4c-{order}-{p}": Work("crossbar", order, p) for p in (256, 1024) for order in ("posted", "stepwise")},
    **{f"w4f-{order}-{p}": Work("fifo-torus", order, p) for p in (256, 1024) for order in ("posted", "stepwise")},
    **dict.fromkeys(("w4c-noc-posted-256", "w4c-noc-stepwise-256"), PACKETS),
    **dict.fromkeys(("w5-alltoall-608", "w5-broadcast-19456", "w5-gather-19456", "w5-scatter-19456"), "a BSP exchange"),
}
GROWTH = {"ring (W1)": ["w1-64", "w1-256", "w1-1024"], "recursive doubling (W2)": [
    "w2-64", "w2-256", "w2-1024", "w2-4096", "w2-16384"]}  # fmt: skip
# Programs that print a rate: package, example and its arguments.
RATES = [
    ("linkwright-schedule", "text_speed"),
    ("linkwright-sim", "symmetric_rate", "1048576"),
    ("linkwright-sim", "symmetric_rate", "1024"),
]
# A complete pass through the Python interface, including the release; prints the median processor time.
SURFACE = """
import statistics, sys, time
import linkwright

def work(ranks):
    schedule = linkwright.schedule("allreduce", "ring", ranks=ranks, size=ranks * 1024)
    return linkwright.simulate(schedule, "loggp").time_us

times, begin = [], time.process_time()
while len(times) < 3 or time.process_time() - begin < 2:
    start = time.process_time()
    work(int(sys.argv[1]))
    times.append(time.process_time() - start)
print(statistics.median(times))
"""
LATENCY = """
import sys
from linkwright import _native
found = _native.run_probe("memory_latency", {"working_set": sys.argv[1]}, {"cpus": [int(sys.argv[2])], "budget_s": 1.0})
print(min(found["values_ns"]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--only", action="append", metavar="PATTERN", help="workloads such as 'w1-*'; repeatable")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="of one run of SimGrid")
    parser.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--runner", type=Path, help="use this workload runner instead of building one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every launch, raw")
    parser.add_argument("--write", type=Path, metavar="DOCUMENT", help="fill its tables and draw its chart")
    asked = quick.arguments(parser, [quick.BUILT / "workloads"], launches=1, only=["w2-64"], limit=1.0)
    names = [n for n in WORKLOADS if not asked.only or any(fnmatch.fnmatch(n, wanted) for wanted in asked.only)]
    if not names:
        parser.error(f"--only: none of {', '.join(WORKLOADS)}")
    if asked.launches < 1:
        parser.error("--launches: at least 1")
    if asked.cpu not in os.sched_getaffinity(0):
        parser.error(f"--cpu {asked.cpu}: this process may use {sorted(os.sched_getaffinity(0))}")
    for option, file in (("--runner", asked.runner), ("--write", asked.write)):
        if file and not file.is_file():
            parser.error(f"{option} {file}: no such file")
    runner = asked.runner or (quick.BUILT / "workloads" if asked.quick else build())
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, {asked.cpu})
    with tempfile.TemporaryDirectory() as folder:
        reason = simgrid_peer.lacking()
        peer = None if reason else simgrid_peer.SimGrid(Path(folder))
        runs = measure(runner, peer, names, asked)
    tables = {
        "machine": machine(peer, reason, asked.launches, load),
        "simulators": table(runs, reason),
        "stages": stages(runs),
    }
    if "w1-1024" in names:
        tables["surface"] = surface(runs, asked.launches)
        tables["rates"] = rates()
    if peer:
        quick.compare(beside_all(runs), asked.record)
    print("\n\n".join(tables.values()))
    if asked.json:
        asked.json.write_text(json.dumps(runs, default=vars, indent=1), encoding="utf-8")
    if asked.write:
        whole = all(name in runs for names in GROWTH.values() for name in names)
        write(asked.write, tables, growth(runs, asked.cpu) if whole else None)


def measure(runner, peer, names, asked) -> dict[str, dict[str, list]]:
    """workload -> `ours` (objects of the runner), `records`, `s4u` and `smpi`, one entry for each launch."""
    runs = {name: defaultdict(list) for name in names}
    for launch in range(asked.launches):
        for name, found in runs.items():
            print(f"launch {launch + 1} of {asked.launches}: {name}", file=sys.stderr)
            found["ours"].append(ours(runner, name))
            if launch == 0 and not name.startswith("w3"):
                found["records"].append(ours(runner, name, "--records"))
            work = WORKLOADS[name]
            if peer is None or isinstance(work, str):
                continue
            for how, simulate in (("s4u", peer.s4u), ("smpi", peer.smpi)):
                if not found[how] or (not found[how][0].reason and found[how][0].seconds < SLOW_S):
                    found[how].append(simulate(work, asked.limit))
    return runs


def ours(runner: Path, *words: str) -> dict:
    """One launch of one workload."""
    done = subprocess.run([runner, "--json", *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)[0]


def middle(launches: list[dict], *keys: str) -> float:
    """The median over launches of a sum of figures."""
    return statistics.median(sum(launch[key] for key in keys) for launch in launches)


def table(runs, reason) -> str:
    """One row for each workload, with linkwright and SimGrid."""
    head = ["workload", "messages", "linkwright s", "engine M/s", "total M/s", "peak MB", "S4U s", "S4U MB", "S4U/lw"]
    lines = [[*head, "SMPI s", "SMPI MB", "SMPI/lw"]]
    for name, found in runs.items():
        launches = found["ours"]
        messages = launches[0]["transfers"] + launches[0]["notices"]
        total, engine = middle(launches, *STAGES), middle(launches, "engine_s")
        peak = middle(launches, "peak_bytes")
        cells = [name, f"{messages:,}", seconds(total), *(f"{messages / t / 1e6:.1f}" for t in (engine, total))]
        cells.append(f"{peak / 1e6:.0f}")
        work = WORKLOADS[name]
        lacks = work if isinstance(work, str) else reason
        if lacks:
            lines.append([*cells, lacks, *[""] * 5])
            continue
        for how in ("s4u", "smpi"):
            cells += beside(found[how], total)
        lines.append(cells)
    return markdown(lines)


def beside(launches: list[Found], total: float) -> list[str]:
    """Seconds, megabytes and the ratio to ours, for one way to use SimGrid."""
    if launches[0].reason:
        return [launches[0].reason, "", ""]
    took = statistics.median(launch.seconds for launch in launches)
    peak = statistics.median(launch.peak_bytes for launch in launches)
    return [seconds(took), f"{peak / 1e6:.0f}", f"{took / total:.0f}"]


def beside_all(runs) -> Iterator[tuple[str, str, float, float, str]]:
    """A row for each workload and way to use SimGrid that ended: seconds of all stages, and of its process."""
    for name, found in runs.items():
        for how in ("s4u", "smpi"):
            if found[how] and not found[how][0].reason:
                theirs = statistics.median(launch.seconds for launch in found[how])
                yield name, f"SimGrid {how}", middle(found["ours"], *STAGES), theirs, "s"


def stages(runs) -> str:
    """The time and memory of each workload by stage."""
    head = ["workload", "machine", "build", "lower", "verify", "engine", "limits"]
    lines = [[*head, "bytes", "with times of operations"]]
    for name, found in runs.items():
        launches = found["ours"]
        messages = launches[0]["transfers"] + launches[0]["notices"]
        cells = [f"{middle(launches, stage) / messages * 1e9:.0f}" for stage in STAGES]
        memory = [middle(found[how], "bytes_per_message") if found[how] else None for how in ("ours", "records")]
        lines.append([name, *cells, *["" if value is None else f"{value:.0f}" for value in memory]])
    return markdown(lines)


def surface(runs, launches: int) -> str:
    """The cost that the Python interface adds to the native stages and to their release, for one ring."""
    lines = [["ring allreduce, loggp", "native s", "from Python s", "adds"]]
    for ranks in (256, 1024):
        if f"w1-{ranks}" not in runs:
            continue
        native = middle(runs[f"w1-{ranks}"]["ours"], "whole_s")
        words = [sys.executable, "-c", SURFACE, str(ranks)]
        found = [subprocess.run(words, check=True, capture_output=True, text=True).stdout for _ in range(launches)]
        python = statistics.median(map(float, found))
        lines.append([f"{ranks:,} ranks", seconds(native), seconds(python), f"{100 * (python / native - 1):+.1f} %"])
    return markdown(lines)


def rates() -> str:
    """The output of the programs that measure the text form and the walk without a schedule, once each."""
    printed = [subprocess.run([build(*which[:2]), *which[2:]], check=True, stdout=subprocess.PIPE, text=True).stdout
               for which in RATES]  # fmt: skip
    return "".join(["```text\n", *printed, "```"])


def growth(runs, cpu: int) -> str:
    """The chart of time per message."""
    curves, working_sets = [], {}
    for title, names in GROWTH.items():
        for what, keys in (("all stages", STAGES), ("engine", ("engine_s",))):
            points = []
            for name in names:
                launches = runs[name]["ours"]
                messages = launches[0]["transfers"] + launches[0]["notices"]
                ranks = int(name.rpartition("-")[2])
                points.append((ranks, middle(launches, *keys) / messages * 1e9))
                if title.startswith("recursive"):
                    working_sets[ranks] = int(middle(launches, "peak_bytes") - middle(launches, "base_bytes"))
            curves.append(growth_chart.Curve(f"{title.partition(' (')[0]}, {what}", points))
    limit = [(ranks, latency(size, cpu)) for ranks, size in working_sets.items()]
    return growth_chart.chart([*curves, growth_chart.Curve("limit: one load of memory", limit, limit=True)])


def latency(working_set: int, cpu: int) -> float:
    """Nanoseconds of a dependent load from this many bytes, by linkwright's own probe."""
    words = [sys.executable, "-c", LATENCY, str(working_set), str(cpu)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def machine(peer, reason, launches, load) -> str:
    """The machine and the versions of the run."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    other = f"SimGrid {peer.version}" if peer else f"without SimGrid: {reason}"
    quiet = "" if load < 0.5 else f" The machine was busy (load {load:.1f} at the start): ratios hold, rates are low."
    return (
        f"{model[1] if model else platform.processor()}, {os.cpu_count()} processors, {memory:.0f} GiB, Linux "
        f"{platform.release()}; rustc {rustc}, {other}. One core, medians over {launches} launches.{quiet}"
    )


def seconds(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def markdown(lines: list[list[str]]) -> str:
    """A table; the first column is text, the others numbers."""
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [lines[0], rule, *lines[1:]])


def write(document: Path, tables: dict[str, str], drawing: str | None):
    """Writes each table between its marks in `document`, and the chart next to it."""
    text = document.read_text(encoding="utf-8")
    for name, content in tables.items():
        mark = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = mark.subn(lambda m, content=content: f"{m[1]}{content}\n{m[2]}", text)
        if not found:
            sys.exit(f"{document}: no `<!-- measured: {name} -->`; put it where the table belongs")
    document.write_text(text, encoding="utf-8")
    if drawing:
        (document.parent / "images" / "time_per_message.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
