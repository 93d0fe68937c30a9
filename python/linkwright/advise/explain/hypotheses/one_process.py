"""One process starts the work of all GPUs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import FREE, Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    alone = facts.per_process == 1
    if alone or system.one_process or not system.described.library() or system.gpus_per_node < 2:
        return
    once, each = (system.numbers.get(key, 0.0) for key in ("library.launch", "facts.launch_each"))
    waits = 1 + system.gpus_per_node * each / once if once else 1.0
    # Launches of the next call go on while one runs, unless a program waits for the end of each.
    for one in (system.having(one_process=True), system.scaled({"library.launch": waits})):
        yield Case(
            "one process drives all GPUs of a node", one, "one process",
            "each small size waits for a launch on every GPU in turn",
            "ps: one process for several GPUs (-g 8 instead of -g 1)",
            "start a process for each GPU, such as mpirun -np 8 ... -g 1",
            f"nThread 1 nGpus {facts.per_process}" if facts.per_process else "", strength=FREE,
        )  # fmt: skip


HYPOTHESIS = Hypothesis("one_process", "one process launches the work of all GPUs in turn", _cases)
