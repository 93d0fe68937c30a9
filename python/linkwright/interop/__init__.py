"""Other people's formats: what a run is written as for their tools, and what is read of their results.

One file and one line in `EXPORTERS` or `IMPORTERS` for each format. An exporter makes a text of a
finished run and measures nothing; what a format cannot hold is left out, and its description says what.
An importer makes result rows of a text, or names the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from linkwright.errors import unknown
from linkwright.store.run import Run

from . import hwloc, nccl_tests, openmpi_rules, osu, tables
from .importing import Imported, Said


@dataclass(frozen=True)
class Exporter:
    """One format."""

    key: str
    summary: str
    description: str
    source: str
    render: Callable[[Run, str | None], str]  # run, machine or None for whatever the format can hold


EXPORTERS = (
    Exporter("csv", "every result row, comma separated", tables.DESCRIPTION, "RFC 4180", tables.as_csv),
    Exporter("json", "every result row as one JSON document", tables.DESCRIPTION, "RFC 8259", tables.as_json),
    Exporter("hwloc", hwloc.SUMMARY, hwloc.DESCRIPTION, hwloc.SOURCE, hwloc.render),
    Exporter("nccl-tests", nccl_tests.SUMMARY, nccl_tests.DESCRIPTION, nccl_tests.SOURCE, nccl_tests.render),
    Exporter(
        "openmpi-rules", openmpi_rules.SUMMARY, openmpi_rules.DESCRIPTION, openmpi_rules.SOURCE, openmpi_rules.render
    ),
)


@dataclass(frozen=True)
class Importer:
    """One format that is read."""

    key: str
    summary: str
    description: str
    source: str
    parse: Callable[[Path, str, Said], list[Imported]]


IMPORTERS = (
    Importer("nccl-tests", nccl_tests.SUMMARY, nccl_tests.READS, nccl_tests.SOURCE, nccl_tests.parse),
    Importer("osu", osu.SUMMARY, osu.DESCRIPTION, osu.SOURCE, osu.parse),
)


def exporter(key: str) -> Exporter:
    """The exporter called `key`."""
    return _find("export format", key, EXPORTERS)


def importer(key: str) -> Importer:
    """The importer called `key`."""
    return _find("import format", key, IMPORTERS)


def _find(what, key, known):
    for entry in known:
        if entry.key == key:
            return entry
    raise unknown(what, key, [entry.key for entry in known])


def entries(known: tuple[Exporter, ...] | tuple[Importer, ...]) -> list[dict[str, object]]:
    """Registry entries, as `list` and `describe` print them."""
    return [{name: getattr(e, name) for name in ("key", "summary", "description", "source")} for e in known]
