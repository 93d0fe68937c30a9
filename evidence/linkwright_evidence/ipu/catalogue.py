"""All tables of the study, from the modules that predict them."""

from __future__ import annotations

from linkwright.base.errors import UnknownNameError
from linkwright_evidence.ipu import collectives, convolution, host, matmul, memory, p2p, reduce
from linkwright_evidence.ipu.tables import Table

PARTS = (p2p, collectives, reduce, host, memory, matmul, convolution)


def tables() -> list[Table]:
    """Every table of the study."""
    return [table for part in PARTS for table in part.TABLES]


def chosen(keys: tuple[str, ...]) -> list[Table]:
    """The tables with these numbers, or all of them if none is named."""
    known = {table.key: table for table in tables()}
    missing = next((key for key in keys if key not in known), None)
    if missing is not None:
        raise UnknownNameError(f"unknown table `{missing}`; known: {', '.join(known)}")
    return [known[key] for key in keys] if keys else list(known.values())


def interconnect(known: list[Table]) -> list[Table]:
    """The tables of chapters 3 and 4, which share the fitted numbers of the interconnect."""
    return [table for table in known if table.key.split(".")[0] in ("3", "4")]
