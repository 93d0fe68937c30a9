"""The work of `simulate` once its suite is known: model, print, write files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import click

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import ask
from linkwright.ask.question import Scheduled
from linkwright.base.errors import LinkwrightError, TooLargeError, UsageError
from linkwright.base.files import check_page, check_place, write_text, write_whole
from linkwright.cli.options import View
from linkwright.cli.output import print_json
from linkwright.cli.table import LiveTable
from linkwright.executors import Target, resolve
from linkwright.machines import Variant
from linkwright.session.suite.context import Context, Row
from linkwright.session.suite.expand import expand
from linkwright.session.suite.load import Suite
from linkwright.session.suite.model import Finished, Work, in_order, on_sample
from linkwright.session.suite.model import simulate as simulated
from linkwright.session.timeline import BINS
from linkwright.store import schema


@dataclass(frozen=True)
class Request:
    """A request to `simulate`."""

    suite: Suite
    on: str
    ranks: int | None
    grid: tuple[int, ...] | None
    seed: int
    launches: int | None
    variant: Variant
    trace: Path | None
    links: Path | None
    report: Path | None
    outputs: tuple[Path, ...]
    how: Mapping[str, object]  # fields of every experiment

    @classmethod
    def of(cls, suite: Suite, asked: Mapping[str, object]) -> Request:
        """From the options of the command line; those that are not fields of a request are fields of an experiment."""
        own = {field.name for field in fields(cls)} & asked.keys()
        how = {name: value for name, value in asked.items() if name not in own}
        return cls(suite, **{name: asked[name] for name in own}, how=how)

    @property
    def files(self) -> dict[str, Path]:
        """Files of one experiment, by their option."""
        files = {
            "--trace": self.trace,
            "--links": self.links,
            "--report": self.report,
        }
        return {option: file for option, file in files.items() if file}

    def questions(self, target: Target) -> list[Scheduled]:
        """The experiments on a machine."""
        # A plan of the machine's library brings both, so whether they are asked for decides what is expanded.
        chosen = {name: self.how[name] for name in ("path", "issue")}
        others = {name: value for name, value in self.how.items() if name not in chosen}
        suite = replace(self.suite, parts=tuple(replace(part, **chosen) for part in self.suite.parts))
        return [replace(question, **others) for question in expand(suite, target.extent)]


# How the file of a trace may be called.
TRACES = (".pftrace", ".perfetto-trace")

# The most endpoints that all take part without being asked for: a ring of so many takes a minute.
MOST_SIMULATED = 4096

Planned = list[tuple[Target, list[Scheduled]]]


def run(request: Request) -> int:
    """Simulate the suite on every machine that the request names; the exit status."""
    planned = _plan(request)
    table = LiveTable(kept=bool(request.outputs or request.files))
    rows: list[Row] = []
    failed: list[LinkwrightError] = []
    try:
        _simulate_all(request, planned, table, rows, failed)
    finally:
        table.finish()  # also after Ctrl-C: what is known is printed
    if failed:
        raise failed[0]
    for path in request.outputs:
        from linkwright.formats import interop  # its formats are loaded if one is asked for

        interop.write_output(rows, path, machines=[target.machine for target, _ in planned])
    if View.current().json:
        print_json({"format": schema.FORMAT, "rows": rows})
    if all(row["value"] is None for row in rows):
        click.echo("linkwright: no experiment gave a value; the lines above say why", err=True)
        return 1
    return 1 if any(row["status"] == "failed" for row in rows) else 0


def _simulate_all(
    request: Request, planned: Planned, table: LiveTable, rows: list[Row], failed: list[LinkwrightError]
) -> None:
    """Simulate everything; `rows` and `failed` grow meanwhile."""
    for target, questions in planned:
        table.target(target, questions, request.launches or 0)
        table.sizes(questions)
        metrics = {part.name: part.on(target.extent.kind).metrics for part in request.suite.parts}
        work = Work(target, Context.of(target, "", request.suite.name), metrics, request.seed, request.launches or 0)
        ended = _recorded(work, questions[0], request, failed) if request.files else simulated(work, questions)
        for done, (question, found) in enumerate(in_order(questions, ended), 1):
            table.progress(0, done, f"{target.name}: {done} of {len(questions)}  {question.key}")
            table.rows(question, found)
            rows += found


def _plan(request: Request) -> Planned:
    """The experiments on each machine; refuses impossible ones before anything runs."""
    for option in request.files if request.launches else ():
        raise UsageError(f"{option}: shows one run, and --launches makes several; leave one of the two out")
    if request.report:
        check_page(request.report, "--report")
    for path in request.outputs:
        from linkwright.formats import interop  # its formats are loaded if one is asked for

        interop.check_output(path)
    if request.trace and request.trace.suffix not in TRACES:
        raise UsageError(
            f"--trace {request.trace}: a trace is a Perfetto file and ends in {' or '.join(TRACES)}; "
            f"write {request.trace.with_suffix(TRACES[0])}, which ui.perfetto.dev opens"
        )
    targets = resolve(request.on, request.ranks, request.grid, MOST_SIMULATED, variant=request.variant)
    for file in request.files.values():
        check_place(file, str(file))
    for target in targets:
        if not target.modelled:
            raise UsageError(
                f"--on {target.name}: `simulate` needs a model, and this executor measures; use `linkwright run`, "
                "or name a described machine (`linkwright list machines`)"
            )
        whole = request.variant.nodes and request.ranks is None and not request.variant.chooses
        if whole and target.machine.ranks > MOST_SIMULATED:
            raise UsageError(
                f"--on {target.name}: has {target.machine.ranks:,} endpoints; say how many take part, with --ranks or "
                "--ranks-per-node"
            )
    planned = [(target, request.questions(target)) for target in targets]
    for target, questions in planned:
        for question in {question.ranks: question for question in reversed(questions)}.values():
            how = schedules.how(on_sample(target, question), seed=request.seed)
            _native.check_how(target.machine, question.ranks, how)
    count = sum(len(questions) for _, questions in planned)
    for option in request.files if count != 1 else ():
        raise UsageError(f"{option}: {count} experiments were asked for; name one machine, algorithm and size")
    return planned


def _recorded(work: Work, question: Scheduled, request: Request, failed: list[LinkwrightError]) -> Iterator[Finished]:
    """The only experiment there is, with its files written; an error goes to `failed`."""
    try:
        rows = _record(work, question, request)
    except LinkwrightError as error:
        failed.append(error)
        rows = work.rows(question, error)
    yield question, rows


def _record(work: Work, question: Scheduled, request: Request) -> list[Row]:
    """The rows of one simulation, which fills the files."""
    if large := schedules.too_large(question):
        raise TooLargeError(f"{large}, or omit {' and '.join(request.files)}: files need every rank")
    placed = on_sample(work.target, question)
    how = schedules.how(
        placed, seed=work.seed, links=True, operations=bool(request.report), bins=BINS if request.report else 0,
        trace=bool(request.trace),
    )  # fmt: skip
    answer = ask(work.target.machine, schedules.of(question), how)
    if request.trace:
        write_whole(request.trace, lambda file: answer.trace(str(file)))
    rows = work.rows(question, answer)
    if request.links:
        from linkwright.session.insight import link_rows  # as above

        _write_links(request.links, link_rows(answer))
    if request.report:
        from linkwright.show.report import html  # as above
        from linkwright.show.report import simulation as page

        write_text(request.report, html.page(page.simulation(work.target.machine, answer, question, rows)))
    return rows


def _write_links(file: Path, rows: list[dict[str, object]]) -> None:
    import csv

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["link"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(file, text.getvalue())
