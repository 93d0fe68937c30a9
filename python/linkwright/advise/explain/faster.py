"""A schedule that a search finds to be faster, what binds it, and how to switch it on.

The search looks at the known algorithms first, and goes on with new ones until its time is over. Its winner is proved.
What a library takes to start a collective is added, so its time is comparable with that of the library's own plans.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwright import _native
from linkwright.advise import synthesis
from linkwright.ask.answer import How
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import PS_PER_US, format_size
from linkwright.executors import resolve_one
from linkwright.machines import Variant

# Formats of runtimes that execute whole schedules -> how such a runtime is told to take the file.
_RUNTIMES = {
    "msccl-xml": "with the MSCCL runtime instead of NCCL: MSCCL_XML_FILES={file} NCCL_ALGO=MSCCL,RING,TREE",
    "mscclpp-json": "with MSCCL++: mscclpp.ExecutionPlan({file!r}), run by its Executor",
}

_OWN = "with `linkwright run`: no plan format of another runtime can express it"


@dataclass(frozen=True)
class Faster:
    """What a search found.

    Attributes:
        recipe: how it is put together.
        new: whether no known algorithm is it.
        time_us: with the start of the library.
        spent: cause -> share of its critical path.
        busiest: (link, share of the time that it is busy); None where links are not told apart.
        schedule: itself.
        how: it runs.
        write: the command that writes it as a file.
        switch_on: what makes a runtime take the file.
    """

    recipe: str
    new: bool
    time_us: float
    spent: Mapping[str, float]
    busiest: tuple[str, float] | None
    schedule: _native.Schedule
    how: How
    write: str
    switch_on: str


def search(
    on: str, variant: Variant, collective: str, ranks: int, size: int, budget_s: float, launch_ps: int
) -> Faster:
    """The fastest schedule that is found in this time.

    Args:
        on: a described machine or a machine file.
        variant: of it.
        collective: its key.
        ranks: that take part.
        size: of the message in bytes.
        budget_s: how long to search.
        launch_ps: what it takes to start a collective.

    Raises:
        LinkwrightError: no method serves the collective, or the ranks are not the first endpoints.
    """
    target = synthesis.described(resolve_one(on, ranks, None, variant=variant))
    task = synthesis.task(
        target, collective, size, dtype="f32", op="sum", root=0, grid=None, path=None, seed=1, budget_s=budget_s,
        methods=(),
    )  # fmt: skip
    best = task.search().best
    binds: Any = task.binds(best)
    link = binds["busiest_link"]
    form = _form(best["schedule"])
    asked = [
        "synthesize", collective, "--on", on, *variant.words, "--ranks", f"{ranks}", "--sizes", format_size(size),
        "--budget",
    ]  # fmt: skip
    write = ["linkwright", *asked, f"{budget_s:g}s", "--seed", "1", "--out", "found", *(["--as", form] if form else [])]
    file = f"found/{collective}-{target.machine_name}-{ranks}-{format_size(size)}.{form}"
    how = How(path=best["path"], issue=best["issue"], launch_ps=launch_ps)
    return Faster(
        best["recipe"], best["method"] != synthesis.KNOWN, (best["time_ps"] + launch_ps) / PS_PER_US,
        binds["critical_path"], (link["link"], link["busy_share"]) if link else None, best["schedule"],
        how, shlex.join(write), _RUNTIMES[form].format(file=file) if form else _OWN,
    )  # fmt: skip


def _form(schedule: _native.Schedule) -> str | None:
    """The first format whose runtime can carry it out."""
    for form in _RUNTIMES:
        try:
            schedule.export(form)
        except LinkwrightError:
            continue
        return form
    return None
