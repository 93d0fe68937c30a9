"""Times of a runtime's algorithms on a described machine, as result rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from linkwright.ask.question import Collective
from linkwright.base.errors import UsageError, check_known
from linkwright.executors import ModelledTarget
from linkwright.libraries import library
from linkwright.session.suite.context import Context
from linkwright.session.suite.expand import expand
from linkwright.session.suite.load import Part, Suite, one_part
from linkwright.session.suite.model import Finished, Work, in_order, simulate

from .runtime import Runtime


@dataclass
class Prediction:
    """What is to be simulated for a runtime on one machine."""

    runtime: Runtime
    target: ModelledTarget
    questions: list[Collective]
    seed: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __iter__(self) -> Iterator[Finished]:
        """Simulate everything, in order; `rows` grows meanwhile."""
        work = Work(
            self.target, Context.of(self.target, "", "tune"), dict.fromkeys(self.runtime.algorithms, ()), self.seed
        )
        for question, rows in in_order(self.questions, simulate(work, self.questions)):
            self.rows += rows
            yield question, rows

    def channels(self, *asked: object) -> int | None:
        """Channels of a library's plan, by collective, algorithm, ranks and size in bytes."""
        for e in self.questions:
            if asked == (e.collective, e.algorithm, e.ranks, e.size_bytes):
                plan = library.plan(self.target.machine, replace(e, own=None, path=None, issue=None))
                return plan.planned.choice.channels if plan.planned.choice else None
        return None


def prediction(
    runtime: Runtime, target: ModelledTarget, collectives: tuple[str, ...], ranks: tuple[int, ...] | None,
    sizes: tuple[int, ...], seed: int,
) -> Prediction:  # fmt: skip
    """All that the runtime could choose among on a machine; raises a `UsageError` where there is nothing."""
    for name in collectives:
        check_known(f"collective of {runtime.key}", name, runtime.algorithms)
    parts = [_part(runtime, target, name, ranks, sizes) for name in collectives or runtime.algorithms]
    suite = Suite("tune", f"what {runtime.key} could choose", tuple(filter(None, parts)))
    found = expand(suite, target.extent)
    known = [e for e in found if isinstance(e, Collective) and runtime.word(e.collective, e.algorithm, e.ranks)]
    if not known:
        why = f"`{target.machine.name}` has no library {runtime.library}" if runtime.library else "nothing fits it"
        raise UsageError(f"--for {runtime.key}: {why}, so there is no choice to make; name another runtime")
    return Prediction(runtime, target, known, seed)


def _part(
    runtime: Runtime, target: ModelledTarget, collective: str, ranks: tuple[int, ...] | None, sizes: tuple[int, ...]
) -> Part | None:
    """The experiments of one collective; none where a library does not serve it."""
    names = tuple(runtime.algorithms[collective])
    if runtime.library:
        plan = library.default(target.machine, collective)
        if not plan or not plan.startswith(f"{runtime.library}-"):
            return None
        names = (f"{plan}/{library.ALTERNATIVES}",)
    asked = (0,) if collective == "barrier" else sizes
    return one_part(
        "tune", collective, collective, collectives=(collective,), algorithms=names, sizes=asked, ranks=ranks
    ).parts[0]
