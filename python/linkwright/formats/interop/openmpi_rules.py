"""The fastest algorithms of a run as Open MPI's dynamic rules; `linkwright tune` serves other runtimes, too."""

from __future__ import annotations

from linkwright.base.errors import StoreError
from linkwright.formats import tuning
from linkwright.formats.tuning import openmpi
from linkwright.formats.tuning.runtime import About

from .formats import Content, Exporter


def _render(content: Content) -> str:
    """The rules of one machine of a run: the fastest of one machine says nothing of another."""
    rows = [row for row in content.rows if row["metric"] == "time" and row["value"]]
    tables = tuning.tables_of(openmpi.TEXT, rows)
    content.only_machine(rows, "times")
    if not tables:
        raise StoreError(
            f"{content.run}: holds no collective that Open MPI has algorithms for; run the suite `dissect`"
        )
    return openmpi.text(tables, About(content.run)).text


EXPORTER = Exporter(
    "openmpi-rules",
    "Open MPI dynamic rules (coll_tuned): the fastest algorithm by collective, ranks and size",
    "For each collective and number of ranks, the fastest of Open MPI's own algorithms here and the message size "
    "from which it is. A rule begins only where the algorithm before it is separably slower than another one: "
    "by 2 % at least, and with disjoint intervals where they were measured. Algorithms that Open MPI does not have "
    "are skipped.",
    "Open MPI 4.1, ompi/mca/coll/tuned",
    _render,
    needs="times of collectives that Open MPI has algorithms for, of one machine",
)
