"""What may watch a session: the live table, a test. It stands apart so that a table loads no store and no backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwright.ask.question import Question
    from linkwright.executors import Target

    from .budget import Plan
    from .context import Row


class Watcher:
    """Observes a session; a live table overrides this."""

    def told(self, text: str) -> None:
        """Something about the run that its user must know, once."""

    def dropped(self, counts: Mapping[str, int]) -> None:
        """Samples of the next experiment were set aside, counted by reason."""

    def target(self, target: Target, questions: list[Question]) -> None:
        """The experiments of a target begin."""

    def planned(self, plan: Plan, budget_s: float) -> None:
        """What of a target will be measured within the budget; called before it is."""

    def progress(self, launch: int, done: int, text: str) -> None:
        """One more experiment of a launch, or one more modelled one, is done."""

    def rows(self, question: Question, found: list[Row]) -> None:
        """The rows of an experiment are final; called in the order of the plan."""
