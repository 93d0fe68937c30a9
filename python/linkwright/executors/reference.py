"""The judge of all other executors: data only, one operation after the other by id."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright import _native
from linkwright.ask import schedules
from linkwright.base.errors import LinkwrightError
from linkwright.store.record import UNTIMED, Ended, Outcome

from .protocol import Executor, Extent, Launch, Target


class Reference(Executor):
    """Exact and without time; other executors must leave the same memory, bit for bit."""

    key = "reference"
    summary = "data only: one operation after the other by id, exact, no time"
    description = (
        "Runs every operation on real buffers in the order of ids, on one thread. All other executors are "
        "checked against it. It needs no hardware."
    )
    is_host = True
    untimed = "it only checks data; use `threads` or a described machine"

    def of(self, ranks: int) -> Target:
        """The target of `lw.run(..., on="reference")`, which asks for no times."""
        return Target(self.key, self, "reference", Extent("measured", ranks), ())

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """Run each schedule once and compare what its postcondition names."""
        for question in launch.work:
            options = {"dtype": question.dtype, "op": question.op or "sum", "seed": launch.options.seed}
            try:
                checked = _native.schedule_memory(schedules.of(question), options)["checked_elements"]
            except LinkwrightError as error:
                yield Ended.by(error, "failed", question.key, launch.number)
                continue
            reason = f"{checked} elements compared, all correct; reference does not measure time"
            yield Ended(question.key, launch.number, "waived", reason, UNTIMED)
