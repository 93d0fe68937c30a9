"""Running a suite on its targets, into a run folder.

    plan -> for each target: modelled experiments by a backend, measured ones by launches
         -> rows of an experiment as soon as they are final, in the order of the plan
         -> results.parquet and samples.parquet, whole, also after Ctrl-C

What is finished is in the journal at once, so `resume` continues with what is missing.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from linkwright import machines
from linkwright.ask.question import Question, of_json
from linkwright.base.errors import BackendError, StoreError, UsageError
from linkwright.base.files import read_text
from linkwright.base.stats.grade import TARGET
from linkwright.executors import Target, resolve
from linkwright.executors.measured import dropped_samples
from linkwright.executors.protocol import Options
from linkwright.machines import AS_DESCRIBED, Variant
from linkwright.store import documents, schema
from linkwright.store import run as runs
from linkwright.store.journal import Journal
from linkwright.store.record import ALL_DISTURBED, OUT_OF_TIME, Ended, from_json, launches

from . import rows
from .backends import Backend, Local
from .budget import Needs, Plan, plan
from .context import Context, Row
from .expand import expand_on
from .load import Suite, parse
from .measure import State, measure
from .model import Finished, Work, in_order, known_rows
from .sweeps import half_peaks
from .watcher import Watcher

# Target, as typed after --on -> its experiments.
Plans = dict[str, list[Question]]
# Modelled experiments take milliseconds, so their records go to the disk in batches.
JOURNAL_EVERY_S = 0.25


@dataclass(frozen=True)
class Request:
    """The request of a run; kept in `run.json`, so that the run can be resumed and repeated."""

    on: str
    budget_s: float
    ranks: int | None = None
    grid: tuple[int, ...] | None = None
    seed: int = 0
    samples: int | None = None
    warmup: int | None = None
    check: bool = True
    watts: float | None = None  # nominal power of the machine that is measured
    target: float = TARGET  # precision at which an experiment is measured no longer, a share
    level: str = "full"  # of the parts of the suite, those up to this one
    name: str | None = None  # of the machine that is measured, for titles and legends
    variant: Variant = AS_DESCRIBED  # of the described machines

    def to_json(self) -> dict[str, object]:
        """What `run.json` keeps of it."""
        return {**self.__dict__, "variant": self.variant.to_json()}


@dataclass(frozen=True)
class Outcome:
    """What a session leaves behind."""

    run: runs.Run
    rows: list[Row]
    interrupted: bool

    @property
    def failed(self) -> list[Row]:
        """The rows of failed experiments."""
        return [row for row in self.rows if row["status"] == "failed"]


def start(root: Path, suite: Suite, request: Request, watcher: Watcher, backend: Backend | None = None) -> Outcome:
    """Run `suite` in a new folder below `root`; `backend` runs what is modelled, by default all processors."""
    targets = resolve(request.on, request.ranks, request.grid, variant=request.variant)
    found = [expand_on(suite, target, request.level) for target in targets]  # of all, so that a refusal comes first
    if not any(found):
        raise UsageError(
            f"suite {suite.name}: has no experiment for {', '.join(target.name for target in targets)}; "
            "choose other algorithms, ranks or threads, or name other machines with --on"
        )
    if request.name:
        _check_name(request.name, targets)
    about: dict[str, object] = {target.executor.key: target.about for target in targets if target.about}
    if backend:
        about |= {"backend": backend.about()}
    inputs = {target.name: runs.Input.of(target.machine_name, _text(target)) for target in targets}
    plan = {"request": request.to_json(), "inputs": {name: vars(one) for name, one in inputs.items()}}
    planned = dict(zip((target.name for target in targets), found, strict=True))

    def keep(run: runs.Run) -> None:
        for target in targets:
            if target.modelled:
                run.keep_machine(target.machine_name, target.recipe.text)
        _keep_own(run, planned)

    run = runs.create(root, suite.name, suite.text, plan, about, keep)
    return _execute(run, suite, targets, planned, request, watcher, backend or Local())


def _keep_own(run: runs.Run, planned: Plans) -> None:
    """Keep the plan if schedules of the user's are in it: only where they were named may their source be executed."""
    if not any(question.own for its in planned.values() for question in its):
        return
    texts: dict[str, str] = {}

    def stored(question: Question) -> dict[str, object]:
        values = question.to_json()
        if question.own and question.own.digest:
            texts[question.own.digest] = values["own"].pop("text")
            values["own"] = {"schedule": question.own.digest, **values["own"]}
        return values

    run.keep_experiments({name: [stored(question) for question in its] for name, its in planned.items()}, texts)


def _kept_own(run: runs.Run) -> Plans | None:
    """The plan that `_keep_own` kept."""
    plan = run.experiments()
    if plan is None:
        return None

    def read(values: dict) -> Question:
        own = values["own"] or {}
        if "schedule" in own:
            own["text"] = run.schedule(own["schedule"])
        return of_json(values)

    return {name: [read(values) for values in its] for name, its in plan.items()}


def _text(target: Target) -> str | None:
    """The machine file of a target; None of one that is measured."""
    return target.recipe.text if target.modelled else None


def _as_begun(run: runs.Run, request: Request, watcher: Watcher) -> list[Target]:
    """The targets of a run as they were when it began: its copies of machine files, and what it measured there."""
    inputs = run.inputs()
    kept = {name: (run.machine(one), f"{one.machine}.toml") for name, one in inputs.items() if one.digest}
    targets = resolve(request.on, request.ranks, request.grid, kept=kept, variant=request.variant)
    for target in targets:
        begun = inputs.get(target.name)
        if begun is None or begun.machine != target.machine_name:
            where = begun.machine if begun else "another machine"
            raise UsageError(
                f"{run.folder}: was begun on {where}, and {target.name} is {target.machine_name} here; resume "
                "it there, or start a new run"
            )
        if target.modelled and not begun.is_of(machines.current(target.name, request.variant)):
            watcher.told(
                f"--on {target.name}: the machine file was changed or removed since this run began; the run "
                f"continues with its copy, {run.folder}/machines/{begun.machine}.toml"
            )
    return targets


def _check_name(name: str, targets: list[Target]) -> None:
    """A name is for what is measured, and no described machine of the run may have it."""
    models = [target.machine_name for target in targets if target.modelled]
    if len(models) == len(targets):
        raise UsageError(f"--name {name}: names the machine that is measured, and {', '.join(models)} is a model")
    if name in models:
        raise UsageError(f"--name {name}: a described machine of this run has that name; choose another one")


def resume(run: runs.Run, watcher: Watcher, backend: Backend | None = None) -> Outcome:
    """Continue a run that was interrupted, on the same backend or on another."""
    plan = run.plan
    if plan["state"] == "done":
        raise UsageError(f"{run.folder}: this run is complete; `linkwright draw {run.id} --report` shows it")
    if plan.get("format") != schema.FORMAT:
        raise UsageError(f"{run.folder}: another version of linkwright began this run; start a new run")
    asked = run.request
    grid = tuple(asked["grid"] or ()) or None
    variant = Variant.of(**asked["variant"])
    request = Request(**{name: asked[name] for name in documents.REQUEST} | {"grid": grid, "variant": variant})
    text = read_text(run.folder / "suite.toml", "the run's own copy of its suite")
    suite = parse(text, f"{run.id}/suite.toml")
    targets = _as_begun(run, request, watcher)
    planned = _kept_own(run) or {t.name: expand_on(suite, t, request.level) for t in targets}
    return _execute(run, suite, targets, planned, request, watcher, backend or Local())


def _execute(
    run: runs.Run,
    suite: Suite,
    targets: list[Target],
    planned: Plans,
    request: Request,
    watcher: Watcher,
    backend: Backend,
) -> Outcome:
    found: list[Row] = []
    interrupted, broken = False, None
    with run.open_journal() as journal:
        records = run.records()
        try:
            for target in targets:
                questions = planned[target.name]
                watcher.target(target, questions)
                metrics = {part.name: part.on(target.extent.kind).metrics for part in suite.parts}
                context = Context.of(target, run.id, suite.name, request.watts, request.target)
                if target.modelled:
                    work = Work(target, context, metrics, request.seed)
                    executed = _model(work, questions, records, journal, watcher, backend)
                else:
                    executed = _measure(target, context, questions, metrics, run, request, records, journal, watcher)
                with closing(executed):  # while the journal is open, whatever interrupts
                    for question, its_rows in executed:
                        found += its_rows
                        watcher.rows(question, its_rows)
        except KeyboardInterrupt:
            interrupted = True
        except BackendError as error:
            broken = error
        except StoreError as error:
            raise StoreError(f"{error}; all finished work is kept, and {goes_on(run, backend)}") from error
        with suppress(KeyboardInterrupt):  # a second Ctrl-C must not lose what the first one kept
            _save(run, found, targets, done=not interrupted and not broken)
    if broken:
        raise BackendError(f"{broken}; all finished work is kept, and {goes_on(run, backend)}") from broken
    if not interrupted:
        run.mark("done")
    return Outcome(run, found, interrupted)


def goes_on(run: runs.Run, backend: Backend | None) -> str:
    """What to type to go on with an interrupted run."""
    return f"`linkwright {(backend or Local()).command} --resume {run.id} --runs {run.folder.parent}` goes on"


def _save(run: runs.Run, found: list[Row], targets: list[Target], *, done: bool) -> None:
    records = launches(run.records())
    for target in targets:
        records = target.executor.merge(target, run.folder, records)
    run.write_results([*found, *half_peaks(found)], runs.samples_table(run, records))
    if done:
        for target in targets:
            target.executor.discard(target, run.folder)


def _measure(target, context, questions, metrics, run, request, records, journal, watcher) -> Iterator[Finished]:
    """Launches, then the rows of every experiment in the order of the plan."""
    state, executor = State(), target.executor
    for record in records:
        state.take(from_json(record))
    options = Options(request.samples, request.warmup, request.check, request.seed)
    executor.begin(target, run.id, run.folder.parent)
    interrupted = False
    certain = [e for e in questions if e.key not in state.launches and not e.rising]
    planned = plan(certain, request.budget_s, Needs())
    watcher.planned(planned, request.budget_s)
    try:
        launch = functools.partial(executor.launch, target)
        told = watcher.progress
        measure(questions, request.budget_s, request.target, options, state, journal, told, launch, run.folder)
    except KeyboardInterrupt:
        interrupted = True
    found = [(question, state.measured(question.key)) for question in questions]
    best = executor.best_seen(target, found, run.folder)
    for question, measured in found:
        if ended := state.ended.get(question.key):
            yield question, rows.without_value(context, question, ended.status, ended.reason, ended.code)
        elif measured:
            watcher.dropped(measured.dropped)
            at_best = best(question, measured)
            yield question, rows.of_samples(context, question, metrics[question.part], measured, at_best)
        elif not interrupted and (not question.rising or state.rises(*question.rising)):
            dropped = dropped_samples(state.records(question.key))
            yield question, _without_samples(context, question, dropped, state.short.get(question.key), planned)
    if interrupted:
        raise KeyboardInterrupt


def _without_samples(
    context: Context, question: Question, dropped: Mapping[str, int], short: Ended | None, planned: Plan
) -> list[Row]:
    """The row of an experiment that no launch kept a sample of."""
    counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    if counts:
        reason = f"every sample was disturbed ({counts}); stop other programs on this machine"
        return rows.without_value(context, question, "disturbed", reason, ALL_DISTURBED)
    if short:
        return rows.without_value(context, question, short.status, short.reason, short.code)
    reason = "not started: the time budget is too short for the launches of an interval"
    if planned.left_out:
        reason += f"; --time-budget {planned.enough_s:.0f}s is enough for all"
    return rows.without_value(context, question, "out-of-time", reason, OUT_OF_TIME)


def _model(
    work: Work, questions: list[Question], records: list[dict], journal: Journal, watcher: Watcher, backend: Backend
) -> Iterator[Finished]:
    """What is known already, and what `backend` finds of the rest, in the order of the plan."""
    known = known_rows(records, work.target)

    def found() -> Iterator[Finished]:
        yield from ((e, known[e.key]) for e in questions if e.key in known)
        missing = [e for e in questions if e.key not in known]
        with _Bunch(journal) as bunch:
            for done, (question, its_rows) in enumerate(backend.run(work, missing), len(questions) - len(missing) + 1):
                bunch.add(its_rows)
                watcher.progress(
                    0, done, f"{work.target.name}: {done} of {len(questions)}{backend.note}  {question.key}"
                )
                yield question, its_rows

    return in_order(questions, found())


class _Bunch:
    """Collects rows and writes them to the journal a few times per second."""

    def __init__(self, journal: Journal):
        self._journal = journal
        self._rows: list[Row] = []
        self._written = time.monotonic()

    def add(self, found: list[Row]) -> None:
        self._rows += found
        if time.monotonic() - self._written > JOURNAL_EVERY_S:
            self._flush()

    def _flush(self) -> None:
        # Taken out first, so that Ctrl-C cannot make leaving write them again.
        written, self._rows, self._written = self._rows, [], time.monotonic()
        if written:
            self._journal.append({"rows": written})

    def __enter__(self) -> _Bunch:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
