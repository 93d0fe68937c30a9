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
from types import MappingProxyType

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import USUAL, Answer, How, Limit, limits_of
from linkwright.ask.question import Collective, Pattern, Probe, Question, Scheduled
from linkwright.base.errors import BackendError, LinkwrightError, TooLargeError, UnsuitedError, WaivedError
from linkwright.executors import ModelledTarget, probes
from linkwright.libraries import library
from linkwright.store.record import Note, remarks

from . import rows
from .context import Context, Row

Finished = tuple[Question, list[Row]]
# Errors that waive an experiment and are not failures.
_WAIVED = (WaivedError, UnsuitedError)
# The caveat on launches that cannot differ.
QUIET = Note("remark", "all launches are alike: the machine file has no [noise]")
# The caveat on values whose ranks were not simulated one by one.
FOLDED = Note("folded", "one rank stands for all")


@dataclasses.dataclass(frozen=True)
class Work:
    """Common to all experiments of one modelled machine."""

    target: ModelledTarget
    context: Context
    metrics: Mapping[str, Sequence[str]]  # by part of the suite
    seed: int
    launches: int = 0  # with the machine's noise, each with another seed; 0: one run of the machine as described

    def launched(self, question: Question, answers: Sequence[Answer | Exception]) -> list[rows.Row]:
        """The rows of the answers of all launches; the first error becomes a row that gives the reason."""
        if failed := next((answer for answer in answers if isinstance(answer, Exception)), None):
            return self.rows(question, failed)
        quiet = [] if self.target.machine.noisy else [QUIET]
        notes = [*quiet, *remarks(question.chosen, answers[0].remark)]
        return rows.of_launches(self.context, question, self.metrics[question.part], answers, notes)

    def rows(
        self, question: Question, answer: Answer | dict | Exception, line: rows.Line | None = None
    ) -> list[rows.Row]:
        """The rows of an answer; an error becomes a row that gives the reason."""
        told = isinstance(answer, TooLargeError) or not isinstance(question, Collective)
        if isinstance(answer, LinkwrightError) and not told and (large := schedules.too_large(question)):
            answer = TooLargeError(f"{answer}; {large}")
        if isinstance(answer, LinkwrightError):
            status = "waived" if isinstance(answer, _WAIVED) else "failed"
            return rows.without_value(self.context, question, status, str(answer), answer.code)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, dict):
            return rows.of_modelled_probe(self.context, question, probes.modelled(answer))
        folded = [FOLDED] if answer.folded else []
        spread = spread_of(self.target, question)
        published = spread and "eight published systems in ten: {:.2f} to {:.2f} times this".format(*spread)
        notes = [*folded, *remarks(question.chosen, published, None if line else answer.remark)]
        return rows.of_simulation(self.context, question, self.metrics[question.part], answer, notes, line)

    def continued(
        self, question: Question, own: Answer | Exception, others: list[Answer | Exception]
    ) -> list[rows.Row]:
        """The rows of an experiment whose time is continued from its own answer and others."""
        good = [answer for answer in (own, *others) if not isinstance(answer, Exception)]
        if len(good) <= len(others):
            return self.rows(question, next(one for one in (own, *others) if isinstance(one, Exception)))
        assert isinstance(question, Collective)
        assert question.own
        assert question.own.continued
        line = rows.Line(tuple(good[1:]), question.own.continued, self._limit(question))
        return self.rows(question, own, line)

    def _limit(self, question: Collective) -> Limit | None:
        """What no schedule of this collective beats here."""
        return next(iter(limits_of(self.target.machine, on_sample(self.target, question))), None)


def simulate(
    work: Work, questions: Sequence[Question], jobs: int = 0, stop_ps: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Finished]:
    """The rows of `questions` as they end, on `jobs` threads of this process, 0 for one on each processor.

    `stop_ps` has, by key, the time beyond which one is of no interest; it then ends as failed.
    """
    asked = []
    for question in questions:
        if reason := _unusable(question):
            yield question, work.rows(question, reason)
        elif work.launches and question.own and question.own.continued:
            straight = UnsuitedError(f"{question.algorithm}: --launches needs a schedule that is simulated as a whole")
            yield question, work.rows(question, straight)
        elif isinstance(question, Probe) and not probes.find(question.algorithm).modelled:
            yield question, work.rows(question, probes.without_model(question.algorithm))
        else:
            asked += [question, *_others(question)]
    if not asked:
        return
    if work.launches:
        yield from _launched(work, asked, jobs)
        return
    running = _native.Simulations(
        work.target.machine, [_asked(work, e, stop_ps=stop_ps.get(e.key)) for e in asked], jobs
    )
    waiting: dict[str, dict[int, Answer | Exception]] = {}  # some of the schedules that one is continued from
    try:
        for place, answer in running:
            question = asked[place]
            if question.own and question.own.continued:
                found = waiting.setdefault(question.key, {})
                found[place] = answer
                if len(found) <= len(question.own.continued.others):
                    continue
                own, *others = (found[at] for at in sorted(found))
                yield asked[min(found)], work.continued(asked[min(found)], own, others)
            else:
                yield question, work.rows(question, answer)
    finally:
        running.stop()


def _launched(work: Work, asked: Sequence[Question], jobs: int) -> Iterator[Finished]:
    """The rows of experiments that are launched several times, as their last launches end."""
    each = [_asked(work, question, launch) for question in asked for launch in range(work.launches)]
    running = _native.Simulations(work.target.machine, each, jobs)
    found: dict[int, dict[int, Answer | Exception]] = {}
    try:
        for place, answer in running:
            of, launch = divmod(place, work.launches)
            answers = found.setdefault(of, {})
            answers[launch] = answer
            if len(answers) == work.launches:
                del found[of]
                yield asked[of], work.launched(asked[of], [answers[number] for number in range(work.launches)])
    finally:
        running.stop()


def _others(question: Question) -> list[Question]:
    """The same with the other schedules that it is continued from, if it is."""
    own = question.own
    others = own.continued.others if own and own.continued else ()
    return [dataclasses.replace(question, own=dataclasses.replace(own, schedule=other)) for other in others]


def in_order(questions: Sequence[Question], found: Iterable[Finished]) -> Iterator[Finished]:
    """`found` in the order of `experiments`; if cut short, also those that ended after a gap, then the error."""
    waiting: dict[str, Finished] = {}
    remaining = iter(questions)
    missing = next(remaining, None)
    try:
        for question, its_rows in found:
            waiting[question.key] = question, its_rows
            while missing is not None and missing.key in waiting:
                yield waiting.pop(missing.key)
                missing = next(remaining, None)
    except (KeyboardInterrupt, BackendError):
        yield from (waiting.pop(e.key) for e in remaining if e.key in waiting)
        raise


def _unusable(question: Question) -> LinkwrightError | None:
    """Why a question cannot be simulated at all."""
    if question.own:
        return question.own.error
    return schedules.too_large(question) if isinstance(question, Pattern) else None


def known_rows(records: list[dict], target: ModelledTarget) -> dict[str, list[Row]]:
    """Rows of this target that the journal has from an earlier part of the run."""
    known: dict[str, list[Row]] = {}
    for row in (row for record in records for row in record.get("rows", ())):
        if (row["machine"], row["executor"]) == (target.machine_name, target.executor.key):
            known.setdefault(row["experiment"], []).append(row)
    return known


def on_sample(target: ModelledTarget, question: Scheduled) -> Scheduled:
    """The experiment on the endpoints that take part; its rows still name ranks."""
    chosen = question.placement
    seats = target.seats(question.ranks) if chosen is None else target.sample
    if seats is None:
        return question
    ranks = range(question.ranks) if chosen is None else chosen
    return dataclasses.replace(question, placement=tuple(seats[rank] for rank in ranks))


def spread_of(target: ModelledTarget, question: Question) -> tuple[float, float] | None:
    """Between which factors of its time eight published systems in ten are, if a library chose; else None."""
    seated = on_sample(target, question) if isinstance(question, Scheduled) and question.chosen else question
    return library.published(target.machine, seated)


def spreads_of(target: ModelledTarget, questions: Iterable[Question]) -> list[tuple[float, float, int]]:
    """The same of many questions, by rising sizes: the factors that hold up to a size, and that size."""
    of_sizes: dict[int, list[tuple[float, float]]] = {}
    for question in questions:
        if spread := spread_of(target, question):
            of_sizes.setdefault(question.size_bytes or 0, []).append(spread)
    ends = {(min(low for low, _ in its), max(high for _, high in its)): size for size, its in sorted(of_sizes.items())}
    return [(*spread, size) for spread, size in ends.items()]


def _asked(work: Work, question: Question, launch: int = 0, stop_ps: int | None = None) -> tuple[str, str, dict, How]:
    """An experiment as the native half takes it."""
    if isinstance(question, Probe):
        return "probe", question.algorithm, dict(question.axes), USUAL
    collective = isinstance(question, Collective)
    # One of thousands of pairs needs its time only.
    messages = not (collective or question.placement)
    how = schedules.how(on_sample(work.target, question), messages=messages, seed=work.seed + launch, stop_ps=stop_ps)
    how = how.but(noise=True) if work.launches else how
    if question.own:
        return "schedule", question.algorithm, {"schedule": question.own.given()}, how
    kind = schedules.engine_kind(question) if isinstance(question, Collective) else "pattern"
    return kind, question.algorithm_key, schedules.shape(question), how
