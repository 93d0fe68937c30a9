"""Backends: where modelled experiments run. One file each, and a line in `BACKENDS`.

A backend is entered once for all machines of a run; its `run` gives the rows of each experiment as it ends, in
whatever order. What it may not do is change them: a test compares the results of every backend byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from linkwright.experiment import Experiment
from linkwright.suite.model import Found, Work

from . import dask, local
from .dask import Dask
from .local import Local

BACKENDS = {module.ENTRY["key"]: module for module in (local, dask)}

__all__ = ["BACKENDS", "Backend", "Dask", "Local", "entries"]


class Backend(Protocol):
    """Where modelled experiments run."""

    command: str  # the verb, with options, that resumes a run on it
    note: str  # what progress says besides the count

    def run(self, work: Work, experiments: Sequence[Experiment]) -> Iterator[Found]:
        """The rows of each experiment, as they end."""

    def about(self) -> dict[str, object]:
        """What the environment of a run says of it."""


def entries() -> list[dict[str, object]]:
    """All backends, for `list` and `describe`."""
    return [module.ENTRY for module in BACKENDS.values()]
