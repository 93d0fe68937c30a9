"""Modelled experiments: requests to the native half, and rows from its answers.

    Work (target, metrics, seed)      what all experiments of one machine have in common
      + experiments -> backend -> (experiment, rows), as they end
                                  -> in_order: in the order of the plan

The backend decides only where and when they run: every number is exact, so the rows are the same bytes on one thread,
on many, and on other machines. `backends/` has one file for each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import USUAL, Answer, How, Limit, limits
from linkwright.ask.experiment import Experiment
from linkwright.base.errors import BackendError, LinkwrightError, UnsuitedError, WaivedError
from linkwright.executors import ModelledTarget, probes
from linkwright.store.record import Note, remarks

from . import rows
from .context import Context, Row

Finished = tuple[Experiment, list[Row]]
# Errors that waive an experiment and are not failures.
_WAIVED = (WaivedError, UnsuitedError)
# The caveat on values whose ranks were not simulated one by one.
FOLDED = Note("folded", "one rank stands for all")


@dataclasses.dataclass(frozen=True)
class Work:
    """Common to all experiments of one modelled machine."""

    target: ModelledTarget
    context: Context
    metrics: Mapping[str, Sequence[str]]  # by part of the suite
    seed: int

    def rows(
        self, experiment: Experiment, answer: Answer | dict | Exception, line: rows.Line | None = None
    ) -> list[rows.Row]:
        """The rows of an answer; an error becomes a row that gives the reason."""
        if isinstance(answer, LinkwrightError):
            status = "waived" if isinstance(answer, _WAIVED) else "failed"
            return rows.without_value(self.context, experiment, status, str(answer), answer.code)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, dict):
            return rows.of_modelled_probe(self.context, experiment, probes.modelled(answer))
        words = experiment.own.words if experiment.own else None
        folded = [FOLDED] if self.target.walk == "fold" else []
        notes = [*folded, *remarks(words, None if line else answer.remark)]
        return rows.of_simulation(self.context, experiment, self.metrics[experiment.part], answer, notes, line)

    def continued(
        self, experiment: Experiment, shorter: Answer | Exception, longer: Answer | Exception
    ) -> list[rows.Row]:
        """The rows of an experiment whose time is on a straight line through two others."""
        if isinstance(shorter, Exception) or isinstance(longer, Exception):
            return self.rows(experiment, shorter if isinstance(shorter, Exception) else longer)
        assert experiment.own
        assert experiment.own.continued
        line = rows.Line(shorter, experiment.own.continued.times, self._limit(experiment))
        return self.rows(experiment, longer, line)

    def _limit(self, experiment: Experiment) -> Limit | None:
        """What no schedule of this collective beats here."""
        assert experiment.collective
        assert experiment.size_bytes
        how = How(path=experiment.path, grid=experiment.grid, placement=experiment.placement or None)
        found = limits(
            self.target.machine, experiment.collective, experiment.ranks, experiment.size_bytes,
            dtype=experiment.dtype or "f32", root=experiment.root, how=how,
        )  # fmt: skip
        return next(iter(found), None)


def simulate(work: Work, experiments: Sequence[Experiment], jobs: int = 0) -> Iterator[Finished]:
    """The rows of `experiments` as they end, on `jobs` threads of this process, 0 for one on each processor."""
    asked = []
    for experiment in experiments:
        if experiment.own and (reason := _unusable(work.target, experiment)):
            yield experiment, work.rows(experiment, reason)
        elif experiment.probe and not probes.find(experiment.probe).modelled:
            yield experiment, work.rows(experiment, probes.without_model(experiment.probe))
        else:
            asked += [experiment, *_shorter(experiment)]
    if not asked:
        return
    running = _native.Simulations(work.target.machine, [_asked(work, e) for e in asked], jobs)
    waiting: dict[str, tuple[int, Answer | Exception]] = {}  # one of the two schedules of a straight line
    try:
        for place, answer in running:
            experiment = asked[place]
            if experiment.own and experiment.own.continued:
                first = waiting.setdefault(experiment.key, (place, answer))
                if first[0] == place:
                    continue
                shorter, longer = (found for _, found in sorted([first, (place, answer)], key=lambda f: -f[0]))
                yield asked[min(first[0], place)], work.continued(asked[min(first[0], place)], shorter, longer)
            else:
                yield experiment, work.rows(experiment, answer)
    finally:
        running.stop()


def _shorter(experiment: Experiment) -> list[Experiment]:
    """The same with the shorter schedule of a straight line, if it is on one."""
    own = experiment.own
    if not own or not own.continued:
        return []
    return [dataclasses.replace(experiment, own=dataclasses.replace(own, schedule=own.continued.shorter))]


def in_order(experiments: Sequence[Experiment], found: Iterable[Finished]) -> Iterator[Finished]:
    """`found` in the order of `experiments`; if cut short, also those that ended after a gap, then the error."""
    waiting: dict[str, Finished] = {}
    remaining = iter(experiments)
    missing = next(remaining, None)
    try:
        for experiment, its_rows in found:
            waiting[experiment.key] = experiment, its_rows
            while missing is not None and missing.key in waiting:
                yield waiting.pop(missing.key)
                missing = next(remaining, None)
    except (KeyboardInterrupt, BackendError):
        yield from (waiting.pop(e.key) for e in remaining if e.key in waiting)
        raise


def _unusable(target: ModelledTarget, experiment: Experiment) -> LinkwrightError | None:
    """Why a schedule of the user's cannot be simulated as the target wants it."""
    assert experiment.own is not None
    if experiment.own.error or not target.walk:
        return experiment.own.error
    return UnsuitedError(f"{experiment.algorithm}: --{target.walk} needs the program of a registered algorithm")


def known_rows(records: list[dict], target: ModelledTarget) -> dict[str, list[Row]]:
    """Rows of this target that the journal has from an earlier part of the run."""
    known: dict[str, list[Row]] = {}
    for row in (row for record in records for row in record.get("rows", ())):
        if (row["machine"], row["executor"]) == (target.machine_name, target.executor.key):
            known.setdefault(row["experiment"], []).append(row)
    return known


def on_sample(target: ModelledTarget, experiment: Experiment) -> Experiment:
    """The experiment on the endpoints that represent the machine; its rows still name ranks."""
    if target.sample is None:
        return experiment
    ranks = experiment.placement or range(experiment.ranks)
    return dataclasses.replace(experiment, placement=tuple(target.sample[rank] for rank in ranks))


def _asked(work: Work, experiment: Experiment) -> tuple[str, str, dict, How]:
    """An experiment as the native half takes it."""
    if experiment.probe:
        return "probe", experiment.probe, dict(experiment.axes or ()), USUAL
    # One of thousands of pairs needs its time only.
    messages = not (experiment.collective or experiment.placement)
    how = schedules.how(on_sample(work.target, experiment), messages=messages, seed=work.seed)
    if experiment.own:
        return "schedule", experiment.algorithm, {"schedule": experiment.own.given()}, how
    kind = (work.target.walk or "collective") if experiment.collective else "pattern"
    return kind, experiment.algorithm_key, schedules.shape(experiment), how
