"""The backend `local`: all processors of this process, as threads of the native half.

A pool of rayon threads takes experiments one by one, the few large ones first, while this process turns answers into
rows. Only answers are copied, so a sweep of 4,000 small experiments costs no more than a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwright.ask.question import Question
from linkwright.session.suite.model import Finished, Work, simulate

ENTRY = {
    "key": "local",
    "summary": "threads of this process, by default one for each processor",
    "description": __doc__.partition("\n\n")[2].strip(),
    "needs": "nothing",
}


@dataclass(frozen=True)
class Local:
    """`jobs` threads; 0 for one on each processor that this process may use."""

    jobs: int = 0
    command = "dissect"
    note = ""

    def run(self, work: Work, questions: Sequence[Question]) -> Iterator[Finished]:
        """The rows of each experiment, as they end."""
        return simulate(work, questions, self.jobs)

    def about(self) -> dict[str, object]:
        """The entry for it in the environment of a run."""
        return {"key": "local", "jobs": self.jobs or None}

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        """Threads end with the experiments that they run."""
