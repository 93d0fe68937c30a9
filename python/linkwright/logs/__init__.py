"""What benchmarks and training runs print, read as people have it: with prefixes, chatter and colours around it.

    kinds.py      what a log holds: tables of rows, matrices, facts
    lines.py      lines without prefixes and colours; numbers
    facts.py      what a library says of itself between the rows
    one module for each tool, and one line in `READERS`

`read_log` recognises the tool by what the file holds. A line that belongs to no table is counted and passed over; a
line that looks like a row and is none is kept in `complaints`, with its number. Nothing of a file is executed.
"""

from __future__ import annotations

from pathlib import Path

from linkwright.errors import FileError

from . import imb, inspector, mpi4py_bench, nccl_json, nccl_text, nvbandwidth, osu, profiler
from .kinds import Facts, Log, LogRow, LogTable, Matrix, Reader
from .lines import Source

__all__ = ["READERS", "Facts", "Log", "LogRow", "LogTable", "Matrix", "is_log", "read_log"]

# In the order in which they are tried: what another tool prints may stand in the log of a training run.
READERS: tuple[Reader, ...] = (
    nccl_json.READER, nvbandwidth.JSON, inspector.READER, profiler.READER, nvbandwidth.TEXT, osu.READER, imb.READER,
    mpi4py_bench.READER, nccl_text.READER,
)  # fmt: skip


def is_log(path: Path | str) -> bool:
    """Whether a file holds what a known tool prints."""
    return _reader(Source(Path(path))) is not None


def _reader(source: Source) -> Reader | None:
    return next((one for one in READERS if one.recognises(source)), None)


def read_log(path: Path | str) -> Log:
    """The log of a benchmark or a profiler.

    Args:
        path: the file; `-` is not read here.

    Returns:
        Its tables and matrices, and what it says of the machine.

    Raises:
        FileError: the file cannot be read, is of no known tool, or holds no number.

    Example:
        >>> import linkwright.logs
        >>> log = linkwright.logs.read_log("all_reduce.log")  # doctest: +SKIP
        >>> log.tables[0].collective, len(log.tables[0].rows)  # doctest: +SKIP
        ('allreduce', 29)

    """
    source = Source(Path(path))
    reader = _reader(source)
    if reader is None:
        tools = ", ".join(dict.fromkeys(one.tool for one in READERS))
        raise FileError(f"{path}: holds no table of a known tool; read are the outputs of {tools}")
    found = reader.read(source)
    if not found.tables and not found.matrices:
        line, text = found.complaints[0] if found.complaints else (source.count, "the file ends before a number")
        raise FileError(f"{path}:{line}: {text}; no row of {reader.tool} could be read")
    return found
