"""One process starts the work of all GPUs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis


def _cases(system: System) -> Iterator[Case]:
    if not system.one_process and system.described.library() and system.gpus_per_node > 1:
        yield Case(
            "one process drives all GPUs of a node", system.having(one_process=True), "one process",
            "each small size waits for a launch on every GPU in turn", "the log says nGpus 8: -g 8 instead of -g 1",
            "start a process for each GPU, such as mpirun -np 8 ... -g 1",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("one_process", "one process launches the work of all GPUs in turn", _cases)
