"""Logs of benchmarks and profilers as result rows.

`linkwright.formats.logs` reads what a tool printed; here its tables become rows of a run. What no log says (the
collective, the
ranks) must be given. A line that looks like a row and is none is refused with its number, because a cut line may yield
a number that looks right. Tables that are not about a collective or a pair are named and left out.

    out of place      the columns that are taken; in place only where there are no others
    zones             times of kernels on the cores of a chip, which are its ranks; no collective is known
    several times     of one experiment become their median, as where a test was repeated
    wrong elements    are refused: a wrong result has no time
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from linkwright.ask.question import DTYPES, MAX_RANKS
from linkwright.base.errors import UsageError
from linkwright.base.units import GIGA, MAX_BYTES, NS_PER_US, counted, format_size
from linkwright.formats import logs
from linkwright.formats.logs import Log, LogRow, LogTable

from .formats import Importer
from .importing import NAME_MOST, Defaults, Imported, Samples, is_name, known_collective, shown

# The data types of tools -> ours, and theirs that are none of ours; those are only shown.
TYPES = {
    "float": "f32", "float32": "f32", "mpi_float": "f32", "double": "f64", "float64": "f64", "mpi_double": "f64",
    "int": "i32", "int32": "i32", "mpi_int": "i32", "int64": "i64", "uint8": "u8", "mpi_char": "u8", "byte": "u8",
    "bfloat16": "bf16", "half": "f16", "float16": "f16", "int8": "i8", "char": "i8", "uint32": "u32", "uint64": "u64",
    "long": "i64", "fp8_e4m3": "f8e4m3", "f8e4m3": "f8e4m3", "float8_e4m3": "f8e4m3", "float8_e4m3fn": "f8e4m3",
    "fp8_e5m2": "f8e5m2", "f8e5m2": "f8e5m2", "float8_e5m2": "f8e5m2", "bool": "u8",
}  # fmt: skip
BYTES = DTYPES | {"f16": 2, "i8": 1, "u32": 4, "u64": 8, "f8e4m3": 1, "f8e5m2": 1}
# Tools that measure links, whose numbers are not of a collective or of messages of one size.
_OF_LINKS = (
    "nvbandwidth", "perftest", "p2pBandwidthLatencyTest", "rocm-bandwidth-test", "TransferBench", "DeepEP",
)  # fmt: skip
_ALGORITHMS = {
    "nccl-tests": "nccl", "NCCL Inspector": "nccl", "PyTorch profiler": "nccl", "NCCL Prometheus": "nccl",
}  # fmt: skip


@dataclass
class Taken:
    """What was taken of a log: its numbers, and what to tell of the rest."""

    rows: list[Imported]
    told: list[str] = field(default_factory=list)


def take(path: Path, defaults: Defaults, tool: str | None = None, text: str | None = None) -> Taken:
    """The numbers of a log.

    Args:
        path: the file, or its name where there is a text.
        defaults: what the user states because a log may not.
        tool: take the tables of this tool only; default: of all.
        text: what stands for the file.

    Raises:
        UsageError: a line is wrong, something is not stated, or there is no number.
        FileError: the file cannot be read, or is of no known tool.

    """
    log = logs.read_source(logs.Source(path, text))
    if log.complaints:
        line, what = log.complaints[0]
        raise UsageError(f"{path}:{line}: {what}; correct the line or delete it")
    its = [table for table in log.tables if tool in (None, table.tool)]
    if not its and tool is not None:
        raise UsageError(f"{path}: holds numbers of {log.tool}, and --as asks for {tool}")
    taken = Taken([], [f"{path}:{line}: left out: {what}" for line, what in log.left_out])
    for table in its:
        taken.rows += _rows(path, table, defaults, taken.told)
    if not taken.rows and log.links:
        raise UsageError(f"{path}: holds rates of links, but no time of a collective; `linkwright explain` judges them")
    if not taken.rows:
        raise UsageError("; ".join([f"{path}: holds no time of a collective or a pair", *taken.told[:1]]))
    taken.told += _ends(path, log, its)
    return taken


def _rows(path: Path, table: LogTable, defaults: Defaults, told: list[str]) -> Iterator[Imported]:
    begun = f"{path}:{table.rows[0].line}"
    stated = (defaults.collective, table.collective) if table.inferred else (table.collective, defaults.collective)
    collective = stated[0] or stated[1]
    pairs = table.quantity != "collective"
    if table.zone and defaults.collective:
        raise UsageError(f"{begun}: a zone is not a collective; omit --collective")
    if collective is None and not table.zone:
        raise UsageError(f"{begun}: the log does not name its collective; give it with --collective")
    if not pairs and not known_collective(collective):
        told.append(f"{begun}: left out: `{shown(collective)}` is not a collective of linkwright")
        return
    ranks = table.ranks or defaults.ranks
    if ranks is None:
        raise UsageError(f"{begun}: the log does not state the number of ranks; give it with --ranks")
    if ranks > MAX_RANKS:
        raise UsageError(f"{begun}: {ranks} ranks are more than {MAX_RANKS}; the log is damaged")
    if table.root is not None and table.root >= ranks:
        raise UsageError(f"{begun}: root {table.root} is none of {ranks} ranks; the log is damaged")
    common = _common(begun, table, None if pairs else collective, ranks, defaults.machine)
    for row in [row for row in table.rows if not row.in_place] or table.rows:
        if row.wrong:
            raise UsageError(
                f"{path}:{row.line}: {row.wrong} wrong elements: a wrong result has no time; repeat the run"
            )
        size = row.size * (ranks if table.per_rank else 1)
        if size > MAX_BYTES:
            raise UsageError(f"{path}:{row.line}: size {size} is beyond {MAX_BYTES}; the line is damaged")
        if size or collective == "barrier" or table.zone:
            known, samples = (size or None, (_in_ns(row),)) if table.zone else (size, ())
            yield replace(common, line=row.line, size_bytes=known, value=_value(row), samples=samples)


def _value(row: LogRow) -> float:
    """ns, or B/s where only a rate was printed."""
    return (row.algbw or 0) * GIGA if row.time is None else row.time * NS_PER_US


def _in_ns(row: LogRow) -> Samples:
    return [[(start * NS_PER_US, time * NS_PER_US) for start, time in entry] for entry in row.samples]


def _common(begun: str, table: LogTable, collective: str | None, ranks: int, machine: str) -> Imported:
    """What the rows of a table have in common."""
    reduces = collective in ("allreduce", "reduce", "reduce_scatter")
    dtype = (table.dtype or ("float" if reduces else "byte")).lower()
    if dtype not in TYPES:
        raise UsageError(f"{begun}: type `{shown(dtype)}` is not one of {', '.join(TYPES)}; delete the table")
    if table.quantity == "collective":
        metric, algorithm = "time", _ALGORITHMS.get(table.tool, key(table.tool))
    else:
        metric, algorithm = ("latency", "ping_pong") if table.quantity == "latency" else ("bandwidth", "pairs")
    executor = key(table.tool)
    if table.zone:
        metric, algorithm = "time", table.zone.name
    if table.origin:
        algorithm, executor, machine = table.origin.algorithm, table.origin.executor, table.origin.machine
    for name in (algorithm, executor, machine):
        if not is_name(name):
            raise UsageError(
                f"{begun}: `{shown(name)}` is not a usable name; give 1 to {NAME_MOST} printable characters"
            )
    operator = table.reduction if reduces else None
    return Imported(
        0, collective, algorithm, ranks, 0, TYPES[dtype], operator, table.root or 0, metric, 0.0, executor, machine,
        table.zone.transactions if table.zone else 1,
    )  # fmt: skip


def merged(rows: Iterable[Imported]) -> list[Imported]:
    """One row of each experiment."""
    found: dict[Imported, list[Imported]] = {}
    for row in rows:
        found.setdefault(replace(row, line=0, value=0.0, samples=()), []).append(row)
    return [same[0] if len(same) == 1 else _median(same) for same in found.values()]


def _median(same: list[Imported]) -> Imported:
    values = tuple(row.value for row in same)
    samples = tuple(each for row in same for each in row.samples)
    return replace(same[0], value=statistics.median(values), values=values, samples=samples)


def _ends(path: Path, log: Log, tables: Iterable[LogTable]) -> Iterator[str]:
    last = {table.ended: format_size(table.rows[-1].size) for table in tables if not (table.origin or table.zone)}
    if False in last:
        yield f"{path}: ends at {last[False]} without `# Out of bounds values`, so it may be cut; compare that"
    if None in last:
        yield f"{path}: ends at {last[None]}; the format marks no end, so compare that"
    if log.skipped:
        yield f"{path}: {counted(log.skipped, 'line')} skipped"


def key(tool: str) -> str:
    """The name of a tool as a format."""
    return tool.lower().replace(" ", "-")


def _importers() -> Iterator[Importer]:
    readers = [reader for reader in logs.READERS if reader.tool not in _OF_LINKS]
    for tool in sorted({reader.tool for reader in readers}, key=str.lower):
        its = [reader for reader in readers if reader.tool == tool]
        yield Importer(
            key(tool),
            "; ".join(reader.summary for reader in its),
            "Means or medians as the tool prints them, so rows have no interval. Of out-of-place and in-place columns, "
            "the first are read. If a log does not state the number of ranks, give it.",
            "; ".join(dict.fromkeys(reader.source for reader in its)),
            tool,
        )


IMPORTERS = tuple(_importers())
