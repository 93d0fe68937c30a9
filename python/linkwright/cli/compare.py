"""`linkwright compare A B`: which experiments became faster or slower, and which are undecided."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright import units
from linkwright.cli import options
from linkwright.cli.output import print_json, print_table


@click.command(name="compare")
@click.argument("first")
@click.argument("second")
@options.as_json
@click.option("--all", "everything", is_flag=True, help="List experiments that are SAME too.")
@click.option("--fail-slower", is_flag=True, help="Exit status 1 if anything is SLOWER.")
@options.runs
def command(first: str, second: str, as_json: bool, everything: bool, fail_slower: bool, root_folder: Path) -> int:
    """Compare run SECOND with run FIRST, experiment by experiment.

    FASTER and SLOWER need disjoint intervals, a rank test below 5 % and a large effect. SAME needs an interval of the
    ratio within 5 %. All else is UNKNOWN, with the reason. Name a run by its id, its path, `latest` or `latest~1`.
    """
    from linkwright.compare.runs import compare_runs
    from linkwright.compare.verdict import Verdict
    from linkwright.store import run as runs

    found = compare_runs(runs.find(root_folder, first), runs.find(root_folder, second))
    rows = [
        {
            "experiment": experiment, "machine": machine, "executor": executor, "verdict": str(c.verdict),
            "first_ns": c.first_ns, "second_ns": c.second_ns, "ratio": c.ratio, "reason": c.reason,
        }
        for (experiment, machine, executor), c in found.pairs
    ]  # fmt: skip
    counts = {str(verdict): count for verdict, count in sorted(found.counts().items())}
    if as_json:
        only = {"only_first": found.only_first, "only_second": found.only_second}
        print_json({"counts": counts, "pairs": rows, **only})
    else:
        shown = [row for row in rows if everything or row["verdict"] != "SAME"]
        table = [
            [r["verdict"], units.format_time(r["first_ns"]), units.format_time(r["second_ns"]), f"{r['ratio']:.3f}",
             r["machine"], r["experiment"], r["reason"]]
            for r in shown
        ]  # fmt: skip
        print_table(["verdict", "first", "second", "ratio", "machine", "experiment", "why"], table, left=(0, 4, 5, 6))
        click.echo(f"\n{len(rows)} compared: " + (", ".join(f"{n} {v}" for v, n in counts.items()) or "none"))
        for side, keys in (("first", found.only_first), ("second", found.only_second)):
            if keys:
                click.echo(f"{len(keys)} experiments only in the {side} run, such as {keys[0][0]} on {keys[0][1]}")
    return 1 if fail_slower and counts.get(str(Verdict.SLOWER)) else 0
