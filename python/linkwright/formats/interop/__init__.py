"""Formats that results are written in and read from, those of other tools among them.

Each format that is written is one file and one line in `EXPORTERS`. `--out FILE` chooses an exporter by the
suffix of FILE, `linkwright export --as FORMAT` by its key. An exporter measures nothing; its description says what the
format cannot hold. What is imported are the logs that `linkwright.formats.logs` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright._native import Machine
from linkwright.ask.question import Scheduled
from linkwright.base.errors import UsageError, unknown
from linkwright.base.files import check_place

from . import hwloc, logs, nccl_tests, openmpi_rules, tables, tt_metalium
from .formats import Content, Exporter, Importer, Rows

if TYPE_CHECKING:
    from linkwright.store.run import Run

EXPORTERS = (*tables.EXPORTERS, hwloc.EXPORTER, nccl_tests.EXPORTER, openmpi_rules.EXPORTER, tt_metalium.EXPORTER)
IMPORTERS = logs.IMPORTERS


def exporter(key: str) -> Exporter:
    """The exporter called `key`."""
    found = next((entry for entry in EXPORTERS if entry.key == key), None)
    if found is None:
        from linkwright.base import registry

        # Plans are formats of `export --as`, too, which takes them before it asks here.
        known = [*(entry.key for entry in EXPORTERS), *registry.keys("plans")]
        raise unknown("export format", key, known, lists=("linkwright list exporters", "linkwright list plans"))
    return found


def importer(key: str) -> Importer:
    """The importer called `key`."""
    for entry in IMPORTERS:
        if entry.key == key:
            return entry
    raise unknown("import format", key, [entry.key for entry in IMPORTERS], lists="linkwright list importers")


def content(run: Run, machine: str | None = None) -> Content:
    """A finished run as exporters take it, or only one of its machines."""
    rows = run.results().records()
    known = list(dict.fromkeys(row["machine"] for row in rows))
    if machine is not None and machine not in known:
        raise unknown("machine in this run", machine, known)
    chosen = [row for row in rows if machine in (None, row["machine"])]
    return Content(chosen, f"run {run.id}", environment=run.environment, schedule=run.schedule)


def asked(question: Scheduled) -> Content:
    """One schedule as exporters of schedules take it."""
    text = question.own.text if question.own else None
    row = {**question.columns(), "flags": None, "axes": None}
    return Content([row], question.algorithm_key, schedule=lambda digest: text or digest)


def check_output(path: Path) -> Exporter:
    """The exporter for `--out PATH`; refuses an unknown suffix or an impossible place before any work is done."""
    by_suffix = {entry.suffix: entry for entry in EXPORTERS if entry.suffix}
    if path.suffix not in by_suffix:
        raise UsageError(f"--out {path}: unknown suffix `{path.suffix}`; known: {', '.join(by_suffix)}")
    check_place(path, f"--out {path}")
    return by_suffix[path.suffix]


def write_output(rows: Rows, path: Path, machines: Sequence[Machine] = ()) -> None:
    """Write `rows` to `path`, with the constants of modelled machines if the format has room for them."""
    constants = {machine.name: machine.numbers() for machine in machines}
    check_output(path).write(Content(rows, constants=constants), path)


def exporters() -> list[dict[str, object]]:
    """The export formats, as `list` and `describe` print them."""
    return [entry.described() for entry in EXPORTERS]


def importers() -> list[dict[str, object]]:
    """The import formats, as `list` and `describe` print them."""
    return [entry.described() for entry in IMPORTERS]
