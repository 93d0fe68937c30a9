"""What benchmarks and training runs print, read as people have it: with prefixes, chatter and colours around it.

    kinds.py      what a log holds: tables of rows, links, facts
    lines.py      lines without prefixes and colours; numbers
    facts.py      what a library reports about itself between the rows
    checks.py     whether the numbers of a row belong together
    matrices.py   matrices of rates between devices
    one module for each tool, and one line in `DOCUMENTS` or `TEXTS`

`read_log` recognises tools by what the file holds. A document is of one tool; texts of several may follow one another,
and each line goes to the tool whose line was recognised last. A line that belongs to no table is counted and passed
over; a line that looks like a row and is none is kept in `complaints`, with its number. Nothing of a file is executed.

A piece of a text in which no other tool begins goes through native code, which finds the lines that say something and
the plain rows of nccl-tests (`_scanner`); all other pieces are read line by line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright.base.errors import FileError

from . import (
    checks,
    deepep,
    device_profiler,
    facts,
    imb,
    inspector,
    mpi4py_bench,
    nccl_json,
    nccl_text,
    nvbandwidth,
    osu,
    p2p_tests,
    perftest,
    profiler,
    prometheus,
    transferbench,
)  # fmt: skip
from .facts import Facts, Gathered
from .kinds import Link, Log, LogRow, LogTable, Reader, Reading, TextReader
from .lines import MOST_COMPLAINTS, Source, legible, lines_of, plain
from .ranks import TimedOperation
from .reading import CONNECTION, FACT, HEAD, OTHER, ROW

if TYPE_CHECKING:
    from linkwright._native import LogScanner

__all__ = [
    "READERS", "Facts", "Link", "Log", "LogRow", "LogTable", "Source", "TimedOperation", "is_log", "read_log",
    "read_logs", "read_source",
]  # fmt: skip

DOCUMENTS: tuple[Reader, ...] = (
    nccl_json.READER, nvbandwidth.JSON, inspector.READER, profiler.READER, device_profiler.READER,
)  # fmt: skip
TEXTS: tuple[TextReader, ...] = (
    nvbandwidth.TEXT, osu.READER, imb.READER, mpi4py_bench.READER, perftest.READER, p2p_tests.CUDA, p2p_tests.ROCM,
    transferbench.READER, deepep.READER, prometheus.READER, nccl_text.READER,
)  # fmt: skip
READERS: tuple[Reader | TextReader, ...] = (*DOCUMENTS, *TEXTS)


def is_log(path: Path | str) -> bool:
    """Whether a file holds what a known tool prints."""
    source = Source(Path(path))
    return any(one.recognises(source) for one in DOCUMENTS) or any(
        rows or (marks & (OTHER | ROW) and _text_of(legible(text)))
        for first, piece in source.pieces()
        for _, marks, _, text, rows in _scanner().scan(piece, first)[0]
    )


@functools.cache
def _scanner() -> LogScanner:
    """Finds the lines in which nccl-tests and the library under it say something, or another tool begins."""
    from linkwright import _native

    others = [mark for one in TEXTS if one is not nccl_text.READER for mark in one.marks]
    marks = (
        (others, OTHER), (nccl_text.READER.marks, ROW), (nccl_text.MARKS, HEAD), (facts.MARKS, FACT),
        (facts.CONNECTIONS, CONNECTION),
    )  # fmt: skip
    kinds = [(mark, kind) for its, kind in marks for mark in its]
    return _native.LogScanner(kinds, checks.BYTES, nccl_text.OPERATORS)


_is_marked = re.compile("|".join(re.escape(mark) for one in TEXTS for mark in one.marks)).search


def _text_of(line: str) -> TextReader | None:
    return next((one for one in TEXTS if one.knows(line)), None) if _is_marked(line) else None


def read_log(path: Path | str) -> Log:
    """The log of a benchmark or a profiler.

    Args:
        path: the file; `-` is not read here.

    Returns:
        Its tables and links, and what it reports about the machine.

    Raises:
        FileError: the file cannot be read, is of no known tool, or holds no number.

    Example:
        >>> import linkwright.formats.logs
        >>> log = linkwright.formats.logs.read_log("all_reduce.log")  # doctest: +SKIP
        >>> log.tables[0].collective, len(log.tables[0].rows)  # doctest: +SKIP
        ('allreduce', 29)

    """
    return read_source(Source(Path(path)))


def read_logs(paths: Sequence[Path | str]) -> Log:
    """The log of one file, of several ranks with a file each, or of a collective and of tests of the machine's links.

    Args:
        paths: the files: all of one tool, or one with tables and others with measured links alone.

    Raises:
        FileError: as of `read_log`; or the files do not go together.

    Example:
        >>> import linkwright.formats.logs
        >>> log = linkwright.formats.logs.read_logs(["rank0.json", "rank1.json"])  # doctest: +SKIP
        >>> log.operations[0].times  # doctest: +SKIP
        {0: 71800.0, 1: 11700.0}

    """
    sources = [Source(Path(path)) for path in paths]
    if len(sources) == 1:
        return read_source(sources[0])
    readers = {next((one for one in DOCUMENTS if one.recognises(source)), None) for source in sources}
    reader = next(iter(readers))
    if len(readers) == 1 and reader and reader.read_all:
        return _told(sources[0], reader.read_all(sources))
    logs = [read_source(source) for source in sources]
    with_tables = [log for log in logs if log.tables]
    if len(with_tables) != 1:
        tools = " or ".join(one.tool for one in DOCUMENTS if one.read_all)
        raise FileError(
            f"{sources[0].path} and {len(sources) - 1} more: {len(with_tables)} of them have tables of collectives; "
            f"give one and tests of links (perftest, nvbandwidth, ...), or files of {tools}"
        )
    return replace(with_tables[0], links=tuple(link for log in logs for link in log.links))


def read_source(source: Source) -> Log:
    """The same of an open log, or of a text that stands for one."""
    document = next((one for one in DOCUMENTS if one.recognises(source)), None)
    found = document.read(source) if document else _texts(source)
    if found is None:
        tools = ", ".join(dict.fromkeys(one.tool for one in READERS))
        raise FileError(f"{source.path}: holds no table of a known tool; give the output of {tools}")
    return _told(source, found)


def _told(source: Source, found: Log) -> Log:
    """The log, if it holds a number."""
    if not found.tables and not found.links:
        said = found.complaints or found.left_out or ((source.count, "the file ends before a number"),)
        line, text = said[0]
        raise FileError(f"{source.path}:{line}: {text}; no row of {found.tool} could be read")
    return found


def _texts(source: Source) -> Log | None:
    """What the tools whose lines are in a text have printed; None if there is none."""
    gathered = Gathered()
    own = nccl_text.READER  # what stands before the first table may name its program
    current, usual = own, nccl_text.NcclReading(gathered)
    readings: dict[str, Reading] = {own.tool: usual}
    known: dict[str, None] = {}
    for first, piece in source.pieces():
        found, passed = _scanner().scan(piece, first)
        tools = {
            tool.tool if (tool := _text_of(legible(text))) else ""
            for _, marks, _, text, rows in found
            if marks & OTHER or (marks & ROW and own.tool not in known)
        }
        tools |= {own.tool for *_, rows in found if rows}
        if current is own and tools <= {own.tool, ""}:
            usual.take(first, piece, found, passed)
            known |= dict.fromkeys(tools & {own.tool})
            continue
        for at, raw in enumerate(lines_of(piece), first):
            if tool := _text_of(raw):
                current = tool
                known[current.tool] = None
                if current.tool not in readings:
                    readings[current.tool] = current.begin(gathered)
            readings[current.tool].line(at, *plain(raw))
    if not known:
        return None
    logs = [reading.log() for reading in readings.values()]
    complaints = [complaint for log in logs for complaint in log.complaints]
    if source.open_ended and any(table.rows[-1].line == source.count for log in logs for table in log.tables):
        complaints.append((source.count, "the last line is not terminated, so its last number may be cut"))
    return Log(
        ", ".join(known),
        tuple(sorted((table for log in logs for table in log.tables), key=lambda table: table.rows[0].line)),
        gathered.facts,
        tuple(link for log in logs for link in log.links),
        sum(log.skipped for log in logs),
        tuple(sorted(complaints)[:MOST_COMPLAINTS]),
        tuple(sorted(one for log in logs for one in log.left_out)[:MOST_COMPLAINTS]),
        waits=any(log.waits for log in logs),
    )
