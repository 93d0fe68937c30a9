"""What `simulate` does once it knows its suite: models, prints, writes files."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from linkwright import _native, interop, schedules
from linkwright.cli.table import LiveTable
from linkwright.errors import UsageError
from linkwright.executors import Target, resolve
from linkwright.experiment import Experiment
from linkwright.store.files import check_place, write_text, write_whole
from linkwright.suite.expand import expand
from linkwright.suite.load import Suite
from linkwright.suite.model import Work, in_order, on_sample
from linkwright.suite.model import simulate as simulated
from linkwright.suite.rows import Context, Row


def run(
    suite: Suite,
    on: str,
    ranks: int | None,
    grid: tuple[int, int] | None,
    seed: int,
    trace_file: Path | None,
    links_file: Path | None,
    outputs: tuple[Path, ...],
    walk: str | None = None,
) -> int:
    """Simulate the suite on every machine named in `on`; the exit status.

    With `walk` (`fold` or `stream`) there is no schedule; what only a schedule has is then refused.
    """
    for flag, file in (("--trace", trace_file), ("--links", links_file)):
        if walk and file:
            raise UsageError(f"{flag}: --{walk} forgets operations and links on the way; leave one of the two out")
    for path in outputs:
        interop.check_output(path)
    targets = resolve(on, ranks, grid, walk)
    for file in (trace_file, links_file):
        if file:
            check_place(file, str(file))
    for target in targets:
        if not target.modelled:
            raise UsageError(f"--on {target.name}: this executor measures; `linkwright run` uses it")
    planned = [(target, expand(suite, target.extent)) for target in targets]
    _check_options(planned, seed)
    for flag, file in (("--trace", trace_file), ("--links", links_file)):
        if file:
            _only(flag, planned)
    table = LiveTable(kept=bool(outputs or trace_file or links_file))
    rows: list[Row] = []
    for target, experiments in planned:
        table.target(target, experiments)
        metrics = {part.name: part.on(target.extent.kind).metrics for part in suite.parts}
        work = Work(target, Context.of(target, "", suite.name), metrics, seed)
        for done, (experiment, found) in enumerate(in_order(experiments, simulated(work, experiments)), 1):
            table.progress(0, done, f"{target.name}: {done} of {len(experiments)}")
            table.rows(experiment, found)
            rows += found
    table.finish()
    if trace_file:
        _write_trace(trace_file, planned, seed)
    if links_file:
        _write_links(links_file, planned, seed)
    for path in outputs:
        interop.write_output(rows, path, machines=[target.machine for target in targets])
    if walk and all(row["status"] == "waived" for row in rows):
        return 2  # nothing of what was asked for can be done so; the table says why
    return 1 if any(row["status"] == "failed" for row in rows) else 0


Planned = list[tuple[Target, list[Experiment]]]


def _check_options(planned: Planned, seed: int) -> None:
    """A path that a machine lacks, or an option that nobody understands, is said once and before anything runs."""
    for target, experiments in planned:
        first = {(e.ranks, e.path, e.issue, e.skew): e for e in experiments}
        for experiment in first.values():
            asked = schedules.options(on_sample(target, experiment))
            _native.check_options(target.machine, experiment.ranks, asked, seed)


def _write_trace(file: Path, planned: Planned, seed: int) -> None:
    target, experiment = _only("--trace", planned)
    schedule = schedules.lowered(schedules.of(experiment), target.machine, experiment.path)

    def write(temporary: Path) -> None:
        schedules.simulate(schedule, target.machine, experiment, seed=seed, trace=str(temporary))

    write_whole(file, write)


def _write_links(file: Path, planned: Planned, seed: int) -> None:
    target, experiment = _only("--links", planned)
    schedule = schedules.lowered(schedules.of(experiment), target.machine, experiment.path)
    text = io.StringIO()
    rows = schedules.link_rows(schedule, target.machine, experiment, seed)
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["link"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(file, text.getvalue())


def _only(flag: str, planned: Planned) -> tuple[Target, Experiment]:
    """The only experiment there is; a trace or a table of links belongs to one."""
    every = [(target, experiment) for target, experiments in planned for experiment in experiments]
    if len(every) != 1:
        raise UsageError(f"{flag}: {len(every)} experiments were asked for; name one machine, algorithm and size")
    return every[0]
