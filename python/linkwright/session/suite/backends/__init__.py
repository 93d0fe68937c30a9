"""Backends: where modelled experiments run. One file each, and a line in `BACKENDS`.

A backend is entered once for all machines of a run; its `run` yields the rows of each experiment as it ends, in any
order. It must not change them: a test compares the results of every backend byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from linkwright.ask.question import Question
from linkwright.session.suite.model import Finished, Work

from . import dask, local
from .dask import Dask
from .local import Local

BACKENDS = {module.ENTRY["key"]: module for module in (local, dask)}

__all__ = ["BACKENDS", "Backend", "Dask", "Local", "entries"]


class Backend(Protocol):
    """Where modelled experiments run."""

    command: str  # the verb, with options, that resumes a run on it
    note: str  # an addition to the line of progress

    def run(self, work: Work, questions: Sequence[Question]) -> Iterator[Finished]:
        """The rows of each experiment, as they end."""

    def about(self) -> dict[str, object]:
        """Its entry in the environment of a run."""


def entries() -> list[dict[str, object]]:
    """All backends, for `list` and `describe`."""
    return [module.ENTRY for module in BACKENDS.values()]
