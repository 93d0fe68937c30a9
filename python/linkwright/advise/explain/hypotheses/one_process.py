"""One process starts the work of all GPUs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    alone = facts.per_process == 1
    if not alone and not system.one_process and system.described.library() and system.gpus_per_node > 1:
        yield Case(
            "one process drives all GPUs of a node", system.having(one_process=True), "one process",
            "each small size waits for a launch on every GPU in turn",
            "ps: one process for several GPUs (-g 8 instead of -g 1)",
            "start a process for each GPU, such as mpirun -np 8 ... -g 1",
            f"nThread 1 nGpus {facts.per_process}" if facts.per_process else "",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("one_process", "one process launches the work of all GPUs in turn", _cases)
