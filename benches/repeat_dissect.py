"""Does a machine give the same answer twice? Runs a suite several times and compares every two runs.

    python3 benches/repeat_dissect.py [--repeat 5] [--level quick] [--time-budget 60s] [--on threads]
    python3 benches/repeat_dissect.py --compare RUN RUN ...         earlier runs

Run with the interpreter of .venv on an idle machine. Only experiments that converged in both runs of a pair count;
groups of launches are compared with groups. The output is the number of SAME verdicts by part of the suite, and the
other experiments, worst first. The aim is 95 % SAME.
"""

import argparse
import collections
import statistics
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

from linkwright.compare.runs import compare_runs
from linkwright.store import run as runs


def dissect(options, folder):
    """One run; the folder with its files."""
    words = ["dissect", "--level", options.level, "--on", options.on, "--suite", options.suite, "--runs", folder]
    words += ["--time-budget", options.time_budget] if options.time_budget else []
    command = [sys.executable, "-m", "linkwright", *words]
    before = set(Path(folder).iterdir())
    done = subprocess.run(command, capture_output=True, text=True)
    # Failed experiments lead to status 1; the others still count.
    made = set(Path(folder).iterdir()) - before
    if done.returncode > 1 or not made:
        sys.exit(done.stderr)
    return runs.find(Path(folder), made.pop().name)


def converged(run):
    """Experiments whose time has an interval as narrow as requested."""
    rows = run.results().to_pylist()
    return {row["experiment"] for row in rows if row["metric"] == "time" and row["status"] == "ok"}


def verdicts(first, second):
    """(experiment, comparison) of the experiments that converged in both."""
    both = converged(first) & converged(second)
    return [(key[0], found) for key, found in compare_runs(first, second).pairs if key[0] in both]


def share(found):
    same = sum(str(comparison.verdict) == "SAME" for _, comparison in found)
    return f"{same:6} of {len(found):6} {same / len(found):7.1%}" if found else "     none converged in two runs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--level", default="quick")
    parser.add_argument("--suite", default="dissect")
    parser.add_argument("--on", default="threads")
    parser.add_argument("--time-budget")
    parser.add_argument("--compare", nargs="+", type=Path, metavar="RUN", help="folders of earlier runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.compare:
            made = [runs.find(path.parent, path.name) for path in options.compare]
        else:
            made = [dissect(options, folder) for _ in range(options.repeat)]
        report(made)


def report(made):
    for run in made:
        times = [row for row in run.results().to_pylist() if row["metric"] == "time"]
        counts = collections.Counter(row["status"] for row in times)
        print(f"{run.id}: " + ", ".join(f"{count} {status}" for status, count in counts.most_common()))
    found = [pair for first, second in combinations(made, 2) for pair in verdicts(first, second)]
    parts = collections.defaultdict(list)
    for experiment, comparison in found:
        parts[experiment.split("/")[0]].append((experiment, comparison))
    for part, its in sorted(parts.items()):
        print(f"{part:28} {share(its)}")
    print(f"{'all':28} {share(found)}")
    others = collections.defaultdict(list)
    for experiment, comparison in found:
        if str(comparison.verdict) != "SAME":
            others[experiment].append(comparison)
    for experiment, its in sorted(others.items(), key=lambda item: -len(item[1]))[:30]:
        ratio = statistics.median(max(c.ratio, 1 / c.ratio) for c in its)
        words = collections.Counter(str(c.verdict) for c in its).most_common()
        counts = ", ".join(f"{count} {verdict}" for verdict, count in words)
        print(f"  {experiment}: {counts}; typically {ratio:.3f} apart; {its[0].reason}")


if __name__ == "__main__":
    main()
