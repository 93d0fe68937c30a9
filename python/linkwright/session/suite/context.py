"""What all rows of a run on one target have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwright.ask.question import Probe, Question
from linkwright.base.stats import grade as grades
from linkwright.executors import Target, probes
from linkwright.store import schema

from . import axes

Row = dict[str, object]


@dataclass(frozen=True)
class Context:
    """Common to every row of a run on one target."""

    run: str
    suite: str
    machine: str
    executor: str
    endpoint_names: tuple[str, ...]
    watts: float | None = None  # nominal power, if the user gave it
    target: float = grades.TARGET  # precision of a `tight` value, a share
    # The experiment of the last row with what its rows have in common: they come one after the other.
    _last: list = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(
        cls, target: Target, run: str, suite: str, watts: float | None = None, precision: float = grades.TARGET
    ) -> Context:
        """The context of a target; `precision` is the one asked for."""
        return cls(run, suite, target.machine_name, target.executor.key, target.endpoint_names, watts, precision)

    def measured(self, question: Question, metric: str, **values: object) -> Row:
        """A row with an interval: its precision and grade follow, unless the value is modelled."""
        if values["n"] is not None and values["value"] is not None:
            found = grades.precision(values["value"], values["ci_low"], values["ci_high"])
            values |= {"precision": found, "grade": grades.grade(found, self.target)}
        return self.row(question, metric, **values)

    def row(self, question: Question, metric: str, **values: object) -> Row:
        """A row about `experiment`; the unit follows from the metric, unless a probe states it."""
        if not self._last or self._last[0] is not question:
            self._last[:] = question, self._common(question)
        unit = schema.METRICS[metric][0] if metric in schema.METRICS else None
        return schema.changed(self._last[1], **{"metric": metric, "unit": unit, "status": None, **values})

    def _common(self, question: Question) -> Row:
        placement = question.placement
        named = [self.endpoint_names[i] for i in placement] if placement else []
        return schema.row(
            run=self.run,
            suite=self.suite,
            machine=self.machine,
            executor=self.executor,
            placement="->".join(named) if named else "topology",
            axes=_axes_of(question),
            status="ok",
            **question.columns(),
        )


def _axes_of(question: Question) -> str | None:
    if not isinstance(question, Probe):
        return None
    return axes.label(probes.find(question.algorithm), dict(question.axes)) or None
