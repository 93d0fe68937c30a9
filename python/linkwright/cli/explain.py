"""`linkwright explain SOMETHING`: why it takes its time, and what would be faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from linkwright.ask.question import collectives
from linkwright.base.errors import FileError, LinkwrightError, UsageError
from linkwright.base.units import counted
from linkwright.cli import options, values
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright.formats.logs import Log
    from linkwright.machines import Variant
    from linkwright.show.report import Report
    from linkwright.store import run as runs


class Answered(NamedTuple):
    """An answer that is to be printed: lines, what makes its page if it has one, and of a log its document."""

    lines: Iterable[str]
    page: Callable[[], Report] | None = None
    values: Mapping[str, Any] = MappingProxyType({})


@click.command(cls=options.Command, name="explain")
@click.argument("somethings", nargs=-1, required=True, metavar="LOG|DUMP...|RUN[:EXPERIMENT]|SCHEDULE")
@options.on(
    "machine", help="The described machine, or a machine file; default for a log: chosen by the devices that it names."
)
@click.option("--ranks", "-p", type=values.RANKS, help="Ranks of a schedule, or of a log that does not state them.")
@click.option("--grid", type=values.GRID, help="Ranks of a schedule as columns x rows, on a machine of any size.")
@click.option("--size", type=values.SIZE, help="Message size of a schedule; default: 1M, or that of a file.")
@click.option("--table", type=click.IntRange(1), help="Only this table of a log, counted from 1.")
@click.option(
    "--search", "search_s", type=values.DURATION, metavar="TIME",
    help="Search this long for a faster schedule, and say how to enable it.",
)  # fmt: skip
@options.page("--report", help="Also write the answer as a page.")
@click.option(
    "--gate", is_flag=True,
    help="Exit with status 1, and say why on stderr, if a log is slow, even at a few sizes, states a fault, or hangs.",
)  # fmt: skip
@options.as_json
@options.seated
@options.runs
def command(
    somethings: tuple[str, ...],
    machine: str | None,
    ranks: int | None,
    grid: tuple[int, ...] | None,
    size: int | None,
    table: int | None,
    search_s: float | None,
    report: Path | None,
    gate: bool,
    as_json: bool,
    variant: Variant,
    root_folder: Path,
) -> int:
    """A LOG is the output of a benchmark or a profiler, in any form. It is compared with the model of a healthy
    machine. Then faults are simulated: what the log states comes first, then those that are most
    likely, each with what to check. Wrong results give exit status 1. DUMPs are of a job that hangs: the output of NCCL
    RAS, dumps of PyTorch's flight recorder (one for each rank, or their folder), logs with time-outs of its watchdog.
    The answer is which rank is behind, in which call, and who waits for whom. Several LOGs are of the ranks of one job,
    from NCCL's Inspector or PyTorch's profiler: the answer separates waiting from transfer. Or one is of a collective,
    and the others are tests of links (perftest, nvbandwidth), which exclude causes. A RUN is one of
    linkwright's: its collectives are compared with their limits; if it was imported, its logs are explained. A
    SCHEDULE is that of an algorithm, such as allreduce/ring, or of a file or function; it needs --on.

    \b
    linkwright explain all_reduce.log
    linkwright explain all_reduce.log --json --gate
    linkwright explain all_reduce.log --on hgx-h100 --nodes 2 --fabric ndr-fat-tree
    linkwright explain all_reduce.log ib_write_bw.txt nvbandwidth.json
    linkwright explain nccl_trace_rank_*
    linkwright explain allreduce/ring --on dgx1-p100 --size 64M
    """
    if report:
        from linkwright.base.files import check_page

        check_page(report, "--report")
    from linkwright.cli.progress import Progress
    from linkwright.formats.hangs import dumps_among
    from linkwright.formats.logs import is_log

    something = _checked(somethings[0])
    if Path(something).is_file() and not Path(something).stat().st_size:
        from linkwright.base.errors import FileError

        raise FileError(f"{something}: is empty; give a log or a schedule")
    for name in somethings if len(somethings) > 1 else ():
        if name != "-" and not Path(name).exists():
            from linkwright.base.errors import FileError

            raise FileError(f"{name}: there is no such file; give several only if all are logs or dumps of ranks")
    described: dict[str, object]
    described = {"--on": machine, "--ranks": ranks, "--grid": grid, "--size": size, "--table": table,
                 "--nodes": variant.nodes, "--ranks-per-node": variant.ranks_per_node, "--place": variant.place,
                 "--search": search_s, "--without": variant.without, "--degrade": variant.degrade}  # fmt: skip
    progress = Progress(1, "explaining")
    dumps, others = dumps_among(somethings)
    if dumps and not (table and len(somethings) == 1 and is_log(something)):
        _refuse(something, "a dump of a job that hangs", described | {"--report": report})
        answered = _hang(dumps, others)
    elif logs := _logs(somethings, others):
        _refuse(something, "a log", {"--grid": grid, "--size": size, "--place": variant.place})
        answered = _log(logs, machine, variant, ranks, table, search_s or 0)
    elif _is_schedule(root_folder, something):
        _refuse(something, "a schedule", {"--table": table, "--gate": gate})
        answered = _schedule(something, machine, variant, ranks, grid, size, search_s or 0)
    elif kept := _kept(root_folder, something):
        _refuse(something, "an imported run", {"--grid": grid, "--size": size, "--place": variant.place})
        answered = _imported(kept, machine, variant, ranks, table, search_s or 0)
    else:
        from linkwright.store import run as runs

        _present(something)
        made = runs.find(root_folder, something.partition(":")[0])
        _refuse(something, "a run", described | {"--gate": gate, "--json": as_json})
        answered = _run(made, something.partition(":")[2])
    progress.close()
    if as_json and not answered.values:
        from linkwright.base.errors import UsageError

        raise UsageError(f"--json: {something} holds no collective to judge; omit it")
    if as_json:
        print_json(answered.values)
    for line in () if as_json else answered.lines:
        click.echo(line)
    if report and answered.page is None:
        from linkwright.base.errors import UsageError

        raise UsageError("--report: a page needs one log, and a machine to compare with; name it with --on")
    if report and answered.page:
        from linkwright.show.report import render

        click.echo(f"\nwrote {render(answered.page(), report)}", err=as_json)
    failed = gate and not answered.values.get("passes", True)
    for text in answered.values.get("failures", ()) if failed else ():
        click.echo(f"linkwright: --gate: {text}", err=True)
    return 1 if failed or answered.values.get("wrong_results") else 0


def _checked(something: str) -> str:
    """What is asked about, unless it is at an address."""
    if "://" in something:
        raise UsageError(f"{something}: is an address, and nothing is fetched; `curl -sL URL | linkwright explain -`")
    return something


def _refuse(something: str, kind: str, given: dict[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} does not apply to {kind}, and `{something}` is one; omit it")


def _hang(dumps: Sequence[Path], others: Sequence[Path]) -> Answered:
    from linkwright.advise.explain import hang
    from linkwright.formats.hangs import read_dumps
    from linkwright.formats.logs import is_log
    from linkwright.show.explanations.hang import of_hang

    found = hang.explain((dump for path in dumps for dump in read_dumps(path)), others)
    also = [
        f"\n{path.name} holds measured numbers, too: `linkwright explain {path} --table 1` explains them."
        for path in dumps[:1]
        if is_log(path)
    ]
    return Answered([*of_hang(found), *also], values=found.document())


def _logs(names: Sequence[str], files: Sequence[Path]) -> list[str]:
    """The log, or those of several ranks, which stand alone or in a folder."""
    from linkwright.formats.logs import is_log

    if len(names) == 1 and not Path(names[0]).is_dir():
        return [names[0]] if _is_log(names[0]) else []
    found = [str(file) for file in files if is_log(file)]
    if len(names) > 1 and (other := next((name for name in names if Path(name).is_file() and name not in found), None)):
        raise UsageError(f"{other}: is neither a log nor a dump of a rank; only those are explained together")
    if len(names) > 1 and not found:
        raise UsageError(f"{names[0]} and {len(names) - 1} more: only logs or dumps of ranks go together; give one")
    return found


def _is_log(name: str) -> bool:
    """Whether it is a file with the numbers of a known tool, or one that is not named as schedules are."""
    from linkwright.ask import sources
    from linkwright.base.files import is_readable, is_stream
    from linkwright.formats.logs import is_log

    path = Path(name)
    return is_readable(path) and (not (sources.is_named_so(name) or is_stream(path)) or is_log(name))


def _is_schedule(root: Path, name: str) -> bool:
    """Whether it is named as schedules are; a collective alone is a slip."""
    from linkwright.ask import sources
    from linkwright.show.picture import subjects

    if subjects.is_run(root, name.partition(":")[0]):
        return False
    return sources.is_source(name) or name.partition("/")[0] in collectives()


def _log(
    names: Sequence[str], machine: str | None, variant: Variant, ranks: int | None, only: int | None, search_s: float
) -> Answered:
    from linkwright.advise.explain import document, waiting
    from linkwright.advise.explain import log as logs
    from linkwright.formats import hangs
    from linkwright.formats import logs as formats
    from linkwright.show.explanations import shown
    from linkwright.show.explanations.waiting import of_arrivals

    if len(names) == 1 and not formats.is_log(names[0]):
        tools = ", ".join(dict.fromkeys(one.tool for one in (*formats.READERS, *hangs.READERS)))
        raise FileError(f"{names[0]}: is neither a log nor a dump of a known tool; give the output of {tools}")
    log = formats.read_logs(names)
    name = names[0] if len(names) == 1 else f"{len(names)} files"
    arrivals = waiting.arrivals(log.operations)
    first = list(of_arrivals(arrivals, waits=log.waits))
    unused: dict[str, object]
    unused = {"--ranks": ranks, "--table": only, "--search": search_s}
    if arrivals and machine is None and not log.facts.devices:
        _refuse(name, "a log without a machine (--on)", unused)
        lines = [*first, "", "Name the machine with --on to compare the transfer with a healthy one."]
        return Answered(lines, values=document.values([], name, log))
    tables = logs.tables(log)
    if not tables and log.links:
        _refuse(name, "a log of links alone", unused)
        return _links(name, log, machine, variant)
    if not tables and any(table.collective is None and table.quantity == "collective" for table in log.tables):
        raise UsageError(
            f"{name}: no line names the collective, and its rates do not tell which it is; add the line that does, "
            "such as `# Collective test starting: all_reduce_perf`"
        )
    if not tables:
        raise UsageError(f"{name}: holds {log.tool} numbers, but no times of a collective; give the log of one")
    if only and only > len(tables):
        raise UsageError(f"--table {only}: {name} has {counted(len(tables), 'table')} that can be explained")
    chosen = [tables[only - 1]] if only else tables
    answers = logs.answers(log, chosen, machine, variant, ranks, search_s)

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        return pages.log(Path(name).name, log, answers, moving.of_logs(answers))

    from linkwright.advise.explain import links
    from linkwright.show.explanations import links as of_links

    beside = links.judged(log, machine, variant) if log.links else []
    lines = [*first, *([""] if first else []), *shown.of_logs(answers, name, log), *of_links.beside(beside)]
    return Answered(lines, page, document.values(answers, name, log, beside))


def _links(name: str, log: Log, machine: str | None, variant: Variant) -> Answered:
    """Explain a log that holds measured links alone."""
    from linkwright.advise.explain import document, links
    from linkwright.show.explanations import links as shown

    if machine is None:
        _refuse(name, "a log of links without --on", {"--nodes": variant.nodes, "--fabric": variant.fabric})
    found = links.judged(log, machine, variant)
    values = document.values([], name, log, found)
    return Answered(shown.text(found, name, log), lambda: shown.page(found, Path(name).name, log), values)


def _schedule(
    name: str, machine: str | None, variant: Variant, ranks: int | None, grid: tuple[int, ...] | None,
    size: int | None, search_s: float,
) -> Answered:  # fmt: skip
    from linkwright import machines
    from linkwright.advise.explain import document, schedule
    from linkwright.ask import sources
    from linkwright.base.files import is_stream
    from linkwright.show.explanations import shown
    from linkwright.show.picture import subjects

    if sources.is_source(name) and name != sources.STDIN:
        _present(name)
    if machine is None and is_stream(Path(name)):
        raise UsageError(f"{name}: is neither a log nor a dump of a known tool; of a schedule, name its machine (--on)")
    if machine is None:
        raise UsageError(f"{name} is a schedule; name the machine that runs it with --on")
    asked = subjects.Asked(ranks, grid, size)
    described = subjects.sized(machines.load(machine, variant), asked)
    found = schedule.explain(name, subjects.question(described, name, asked, variant), described)
    if search_s:
        found = schedule.searched(found, machine, variant, search_s)

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        return pages.schedule(found, moving.of_schedule(found))

    return Answered(shown.of_schedule(found), page, document.of_schedule(found))


def _kept(root: Path, name: str) -> runs.Run | None:
    """The imported run of this name, if its logs can be explained."""
    from linkwright.advise.explain import log as logs
    from linkwright.formats import logs as formats
    from linkwright.store import run as runs

    if Path(name).suffix and not Path(name).exists():
        return None
    try:
        made = None if ":" in name else runs.find(root, name)
    except LinkwrightError:
        return None  # `_run` says why
    return made if made and any(logs.tables(formats.read_log(path)) for path in made.logs) else None


def _imported(
    made: runs.Run, machine: str | None, variant: Variant, ranks: int | None, only: int | None, search_s: float
) -> Answered:
    """Explain each log of a run as if it were given alone."""
    from linkwright.advise.explain import document, imported

    made.results()  # a damaged run is refused, although its logs are whole
    on, its, their_ranks = imported.asked(made.plan.get("request", {}))
    found = [
        _log([str(path)], machine or on, variant if variant != type(variant)() else its, ranks or their_ranks, only,
             search_s)
        for path in made.logs
    ]  # fmt: skip
    lines = [line for one in found for line in (*one.lines, "")][:-1]
    return Answered(lines, found[0].page if len(found) == 1 else None, document.joined([one.values for one in found]))


def _present(name: str) -> None:
    is_path = ":" not in name and (Path(name).suffix or name.startswith((".", "/")))
    if is_path and not Path(name).exists():
        from linkwright.base.errors import FileError

        raise FileError(f"{name}: there is no such file; give a log, a run, or a schedule with --on")


def _run(made: runs.Run, experiment: str) -> Answered:
    from linkwright.advise.explain import run

    rows = made.results().records()

    def page() -> Report:
        from linkwright.show import explanations as pages
        from linkwright.show.explanations import moving

        if experiment:
            return pages.row(made.id, run.row(rows, experiment), moving.of_run(made, experiment))
        return pages.run(made.id, run.fastest(rows), moving.of_run(made))

    return Answered(run.of_row(run.row(rows, experiment)) if experiment else run.of_run(rows), page)
