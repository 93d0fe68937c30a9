"""Schedules as a folder that runs on Tenstorrent's runtime without linkwright (`executors/metalium/folder.py`)."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright import _native
from linkwright.ask.question import Own, Scheduled, changed, of_row
from linkwright.base.errors import StoreError

from .formats import Content, Exporter


def _render(content: Content) -> Mapping[str, bytes]:
    """A case for each schedule of the rows, placed on the first cores."""
    from linkwright.executors.metalium import folder  # other formats start faster without NumPy

    found: dict[str, Scheduled] = {}
    for row in content.rows:
        if row.get("axes") or not row["dtype"]:
            continue  # a probe
        own = Own(_native.Schedule.parse(content.schedule(str(row["schedule"])))) if row["schedule"] else None
        question = changed(of_row(row, own), part="export", placement=None, issue=None, path=None, skew=None)
        assert isinstance(question, Scheduled), question
        found.setdefault(question.key, question)
    if not found:
        raise StoreError(f"{content.run}: holds no schedule; run a collective or a pattern, or name one")
    return folder.files(list(found.values()), content.run)


EXPORTER = Exporter(
    "tt-metalium",
    "a folder that runs schedules on Tenstorrent's runtime: kernel, host program, instruction streams",
    "For each schedule of a run, or for the one that is named: the instruction streams of all cores, the data, and "
    "every byte that the result must hold. The folder runs without linkwright where ttnn is installed, on a board or a "
    "simulator. Ranks lie on the first cores, whatever the placement was. Probes are left out, and so are schedules "
    "that a chip cannot run, such as those that need more memory than a core has.",
    "Tenstorrent tt-metal, ttnn 0.81: generic_op and the data-movement API",
    _render,
    needs="collectives or patterns",
    schedules=True,
)
