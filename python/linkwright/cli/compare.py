"""`linkwright compare A B`: what became faster or slower between two runs, or which of two machines is faster."""

from __future__ import annotations

import itertools
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwright.base import units
from linkwright.base.errors import UsageError
from linkwright.cli import options, values
from linkwright.cli.columns import Styled, aligned, terminal_columns
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright.advise.explain.imported import LogJudged
    from linkwright.machines import Variant
    from linkwright.session.compare.machines import Pair
    from linkwright.session.compare.runs import Key, RunComparison
    from linkwright.session.compare.verdict import Comparison

COLLECTIVES = "allreduce,reduce_scatter,allgather,alltoall,broadcast"
SIZES = "1K,8K,64K,512K,4M,32M,256M"
# Parameters of the verb: of both, and of machines.
_ALWAYS = ("first", "second", "as_json", "color")
_OF_MACHINES = ("nodes", "fabric", "without", "degrade", "collectives", "sizes", "ranks", "grid", "report", "seed")
COLOURS = {"FASTER": "green", "SLOWER": "red"}


@click.command(cls=options.Command, name="compare")
@click.argument("first")
@click.argument("second")
@options.as_json
@click.option("--all", "everything", is_flag=True, help="List every experiment, with the numbers behind its verdict.")
@click.option("--fail-slower", is_flag=True, help="Exit status 1 if anything is SLOWER, or if nothing can be judged.")
@options.variant
@click.option(
    "--collectives", default=COLLECTIVES, metavar="A,B",
    help=f"With machines: what to simulate; default: {COLLECTIVES.replace(',', ', ')}.",
)  # fmt: skip
@click.option("--sizes", default=SIZES, show_default=True, metavar="A,B,C", help="With machines: message sizes.")
@click.option(
    "--ranks", "-p", type=values.RANKS, metavar="N", help="With machines: ranks on each; default: all that each has."
)
@click.option("--grid", type=values.GRID, help="With machines: columns x rows of one that takes any grid.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
    help="With machines: write a page with ratios, crossovers, limits and every number.",
)  # fmt: skip
@options.seed
@options.colour
@options.runs
def command(
    first: str, second: str, as_json: bool, everything: bool, fail_slower: bool, root_folder: Path, **asked: Any
) -> int:
    """FIRST and SECOND are runs, named by id, path, `latest` or `latest~1`, or described machines.

    Of runs, the verdict follows from the 95 % interval of the ratio, second over first. FASTER and SLOWER: it lies
    beyond 1 by more than 3 %, or by more than the precision of the less precise value. SAME: it lies within 10 % of 1
    if both values are tight, within 20 % if one is fair. Everything else is UNKNOWN, with the reason. Changes are
    listed, worst first; experiments that cannot be judged are counted by reason. Values of imported logs that have
    no interval are judged with the tolerances of `expect`, and each such run is also compared with its healthy
    machine.

    On machines the same collectives are simulated, as their libraries would choose or by the fastest algorithm.
    Machines within 10 % are called equal.

    \b
    linkwright compare latest~1 latest
    linkwright compare hgx-h100 mi300x --nodes 4 --report page.html
    """
    from linkwright.machines import is_name

    both = f"{first} and {second} are"
    machines = [name for name in (first, second) if is_name(name) or name.endswith(".toml")]
    are_machines = {name in machines for name in (first, second)}
    if len(are_machines) > 1:
        other = second if first in machines else first
        raise UsageError(
            f"{machines[0]} is a machine, and `{other}` is not one; `linkwright list machines` lists names, and the "
            "path of a machine file ends in .toml"
        )
    if True in are_machines:
        options.refuse_others(f"{both} machines", {*_ALWAYS, *_OF_MACHINES})
        return _machines(first, second, as_json, **asked)
    options.refuse_others(f"{both} runs", {*_ALWAYS, "everything", "fail_slower", "root_folder"})
    return _runs(first, second, as_json, everything, fail_slower, root_folder)


def _runs(first: str, second: str, as_json: bool, everything: bool, fail_slower: bool, root_folder: Path) -> int:
    from linkwright.advise.explain import imported
    from linkwright.session.compare.runs import compare_runs
    from linkwright.session.compare.verdict import Verdict
    from linkwright.store import run as runs

    sides = runs.find(root_folder, first), runs.find(root_folder, second)
    if sides[0].id == sides[1].id:
        raise UsageError(f"{first} and {second} are the same run, {sides[0].id}; name two (`linkwright list runs`)")
    judged = [imported.judged(side) for side in sides]
    of_systems = partial(imported.tolerance_of, [*judged[0], *judged[1]]) if all(judged) else None
    found = compare_runs(*sides, of_systems)
    if not found.pairs:
        names = " and ".join(side.id for side in sides)
        raise UsageError(f"{names} have no experiment in common that has a value; compare two runs of one suite")
    counts = found.counts()
    if as_json:
        _print_json(found, {side.id: imported.worst(its) for side, its in zip(sides, judged, strict=True) if its})
    else:
        _print(found, everything)
        for side, its in zip(sides, judged, strict=True):
            for sentence in imported.worst(its).sentences if its else ():
                click.echo(textwrap.fill(f"{side.id}: {sentence}", terminal_columns(), break_on_hyphens=False))
    decided = len(found.pairs) - counts[Verdict.UNKNOWN]
    if fail_slower and not decided:
        click.echo("linkwright: --fail-slower: no experiment could be judged, so status 1", err=True)
    return 1 if fail_slower and (counts[Verdict.SLOWER] or not decided) else 0


def _machines(
    first: str, second: str, as_json: bool, *, variant: Variant, collectives: str, sizes: str, ranks: int | None,
    grid: tuple[int, ...] | None, report: Path | None, seed: int,
) -> int:  # fmt: skip
    """Simulate, print and write the page."""
    from linkwright.base.files import check_page, write_text
    from linkwright.cli.progress import Progress
    from linkwright.executors import ModelledTarget, resolve
    from linkwright.machines import load as read
    from linkwright.session.compare import machines
    from linkwright.session.suite.expand import expand
    from linkwright.session.suite.load import one_part

    if report:
        check_page(report, "--report")
    if grid and all(read(name, variant).open_size is None for name in (first, second)):
        raise UsageError(f"--grid: {first} and {second} have the size that their files state; omit it")
    targets = [
        one for one in resolve(f"{first},{second}", ranks, grid, variant=variant) if isinstance(one, ModelledTarget)
    ]
    suite = one_part(
        "compare", f"{first} against {second}", collectives=tuple(collectives.split(",")), algorithms=("default",),
        sizes=options.chosen_sizes("allreduce", "f32", 0, 0, 0, sizes), ranks=(ranks,) if ranks else None,
    )  # fmt: skip
    progress = Progress(sum(len(expand(suite, target.extent)) for target in targets), "simulating")
    done = itertools.count(1)
    try:
        pairs, left = machines.compare_machines(targets, suite, seed, lambda key: progress.show(next(done), key))
    finally:
        progress.close()
    names = [target.machine_name for target in targets]
    told = [*machines.sentences(pairs, names), *left, *machines.notes(pairs, names), *machines.doubts(targets)]
    if as_json:
        print_json({"machines": names, "said": told, "pairs": [_of_pair(pair) for pair in pairs]})
    else:
        rows = [
            [pair.collective, units.format_size(pair.size_bytes), *(units.format_time(row["value"]) for row in (
                pair.first, pair.second)), f"{pair.ratio:.2f}", "-" if pair.faster is None else names[pair.faster]]
            for pair in pairs
        ]  # fmt: skip
        head = ["collective", "size", *names, "ratio", "faster"]
        for line in aligned([head], rows, (0, 5), terminal_columns(), kept=(0,)):
            click.echo(line)
        for sentence in ("", *told):
            click.echo(textwrap.fill(sentence, terminal_columns(), subsequent_indent="    ", break_on_hyphens=False))
    if report:
        from linkwright.show.report import html
        from linkwright.show.report import machines as page

        write_text(report, html.page(page.against(pairs, names, told)))
    return 0


def _of_pair(pair: Pair) -> dict[str, object]:
    sides = {
        f"{side}_{key}": row[key] for side, row in (("first", pair.first), ("second", pair.second))
        for key in ("algorithm", "ranks", "value", "limit", "launch_ns")
    }  # fmt: skip
    return {"collective": pair.collective, "size_bytes": pair.size_bytes, "ratio": pair.ratio, **sides}


def _print_json(found: RunComparison, judged: dict[str, LogJudged]) -> None:
    rows = [
        {
            "experiment": experiment, "machine": machine, "executor": executor, "verdict": str(c.verdict),
            "first_ns": c.first_ns, "second_ns": c.second_ns, "ratio": c.ratio, "low": c.low, "high": c.high,
            "why": c.why and str(c.why), "reason": c.reason,
        }
        for (experiment, machine, executor), c in found.pairs
    ]  # fmt: skip
    counts = {str(verdict): count for verdict, count in sorted(found.counts().items())}
    print_json(
        {
            "counts": counts,
            "pairs": rows,
            "only_first": found.only_first,
            "only_second": found.only_second,
            "edited": found.edited,
            "imported": [{"run": run, "state": its.state, "verdict": its.sentences} for run, its in judged.items()],
        }
    )


def _print(found: RunComparison, everything: bool) -> None:
    """Counts first, then what changed in full, then what cannot be judged, by reason."""
    from linkwright.session.compare.verdict import MEANINGS, Verdict

    counts = found.counts()
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    click.echo(f"{len(found.pairs)} compared: {words}")
    listed = found.pairs if everything else [pair for pair in found.pairs if pair[1].verdict in COLOURS]
    if listed:
        click.echo("")
        _print_pairs(sorted(listed, key=_worst_first), everything)
    unjudged = found.unjudged()
    if unjudged:
        click.echo("\nUNKNOWN, by reason" + ("" if everything else "; --all lists them") + ":")
        for why, pairs in unjudged.items():
            text = f"{len(pairs)} {why}: {MEANINGS[why]}; such as {pairs[0][0][0]}"
            click.echo(textwrap.fill(text, terminal_columns(), subsequent_indent="    ", break_on_hyphens=False))
    if edited := list(dict.fromkeys(found.edited)):
        text = f"{units.counted(len(edited), 'experiment')} whose schedule was edited between the runs, such as"
        click.echo(textwrap.fill(f"{text} {edited[0][0]}", terminal_columns(), break_on_hyphens=False))
    for side, keys in (("first", found.only_first), ("second", found.only_second)):
        if keys:
            click.echo(f"{units.counted(len(keys))} only in the {side} run, such as {keys[0][0]} on {keys[0][1]}")


def _worst_first(pair: tuple[Key, Comparison]) -> tuple[bool, float]:
    """What is slower by the largest factor first, what cannot be compared last."""
    ratio = pair[1].ratio
    return ratio != ratio, -ratio


def _print_pairs(pairs: list[tuple[Key, Comparison]], everything: bool) -> None:
    """One line for each; with `everything` the numbers behind the verdict, too."""
    several = len({key[1:] for key, _ in pairs}) > 1
    header = ["verdict", "ratio", "low", "high", "first", "second", *(["machine"] if several else []), "experiment"]
    rows = []
    for (experiment, machine, executor), c in pairs:
        rows.append(
            [
                Styled(c.verdict, COLOURS.get(c.verdict), bold=c.verdict in COLOURS),
                *(_ratio(value) for value in (c.ratio, c.low, c.high)),
                *(units.format_time(value) if value == value else "-" for value in (c.first_ns, c.second_ns)),
                *([machine or executor] if several else []),
                experiment,
            ]
        )
    left = (0, *range(6, len(header)))
    for line in aligned([header], rows, left, terminal_columns(), kept=(0,)):
        click.echo(line)


def _ratio(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.3f}"
