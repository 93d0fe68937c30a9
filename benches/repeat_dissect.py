"""Does a machine give the same answer twice, and is a slowdown found? Runs a suite several times and compares.

    python3 benches/repeat_dissect.py [--repeat 5] [--level quick] [--time-budget 90s] [--on threads] [--keep FOLDER]
    python3 benches/repeat_dissect.py --compare RUN RUN ...         earlier runs

Run with the interpreter of .venv on an idle machine. Values graded tight or fair in both runs of a pair count. The
output is the grades of each run, the share of SAME verdicts by part of the suite, the others, worst first, and how
often a slowdown of 10 % that is planted into the most precise probe is found. The aims: SAME for 90 %, FASTER or
SLOWER for less than 2 %, the slowdown in every pair.
"""

import argparse
import collections
import shutil
import statistics
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
import quick

from linkwright.session.compare.runs import compare_runs
from linkwright.store import run as runs
from linkwright.store import schema, tables

TRUSTED = ("tight", "fair")
SLOWDOWN = 1.10


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


def times(run):
    """The row of the time of each experiment."""
    return {row["experiment"]: row for row in run.results().records() if row["metric"] == "time"}


def trusted(run):
    """Experiments whose time is graded tight or fair."""
    return {key for key, row in times(run).items() if row["grade"] in TRUSTED}


def verdicts(first, second):
    """(experiment, comparison) of the experiments that both runs trust."""
    both = trusted(first) & trusted(second)
    return [(key[0], found) for key, found in compare_runs(first, second).pairs if key[0] in both]


def counted(found):
    """`57 of 60 SAME 95.0%, 1 FASTER`."""
    words = collections.Counter(str(comparison.verdict) for _, comparison in found)
    shares = ", ".join(f"{count} {verdict} {count / len(found):.1%}" for verdict, count in words.most_common())
    return f"{len(found):5} judged: {shares}" if found else "none is trusted in two runs"


def slowed(run, experiment, folder):
    """A copy of a run in which one experiment takes a tenth longer, in results and samples."""
    copy = Path(folder) / f"{run.id}-slowed"
    shutil.copytree(run.folder, copy)
    results, samples = run.results(), run.samples()
    results = results.assign(value=results["value"] * _factor(results, experiment))
    samples = samples.assign(value_ns=samples["value_ns"] * _factor(samples, experiment))
    made = runs.find(Path(folder), copy.name)
    made.write_results(results.records(), tables.by_column(samples.records(), schema.SAMPLES))
    return made


def _factor(rows, experiment):
    return np.where(rows["experiment"] == experiment, SLOWDOWN, 1.0)


def found_slowdowns(made, folder):
    """In how many pairs the most precise probe was found SLOWER after it was slowed down."""
    tight = [{key: row["precision"] for key, row in times(run).items() if row["grade"] == "tight"} for run in made]
    worst = {key: max(its[key] for its in tight) for key in set.intersection(*map(set, tight)) if "/probe/" in key}
    if not worst:
        return "no pair: no probe is tight in every run"
    probe = min(sorted(worst), key=worst.__getitem__)
    pairs = list(zip(made, [*made[1:], made[0]], strict=True))
    seen = [
        any(key[0] == probe and str(c.verdict) == "SLOWER" for key, c in compare_runs(first, slow).pairs)
        for first, slow in ((first, slowed(second, probe, folder)) for first, second in pairs)
    ]
    return f"{sum(seen)} of {len(seen)} pairs ({probe}, ±{worst[probe]:.1%} at worst)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--level", default="quick")
    parser.add_argument("--suite", default="dissect")
    parser.add_argument("--on", default="threads")
    parser.add_argument("--time-budget")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the runs in this folder")
    parser.add_argument("--compare", nargs="+", type=Path, metavar="RUN", help="folders of earlier runs")
    options = quick.arguments(parser, repeat=2, suite="scaling", time_budget="1s")
    with tempfile.TemporaryDirectory() as folder:
        if options.compare:
            made = [runs.find(path.parent, path.name) for path in options.compare]
        else:
            kept = options.keep or Path(folder) / "runs"
            kept.mkdir(parents=True, exist_ok=True)
            made = [dissect(options, kept) for _ in range(options.repeat)]
        report(made)
        print(f"planted slowdown of {SLOWDOWN - 1:.0%} found in {found_slowdowns(made, folder)}")


def report(made):
    for run in made:
        words = collections.Counter(row["grade"] or row["status"] for row in times(run).values())
        print(f"{run.id}: " + ", ".join(f"{count} {word}" for word, count in words.most_common()))
    found = [pair for first, second in combinations(made, 2) for pair in verdicts(first, second)]
    parts = collections.defaultdict(list)
    for experiment, comparison in found:
        parts[experiment.split("/")[0]].append((experiment, comparison))
    for part, its in sorted(parts.items()):
        print(f"{part:28} {counted(its)}")
    print(f"{'all':28} {counted(found)}")
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
