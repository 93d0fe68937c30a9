"""Dumps and messages of a job that hangs.

    kinds.py            what a dump states: groups, calls, progress, conditions
    unpickled.py        pickles of plain containers; nothing else of a pickle is carried out
    one module for each format, and one line in `READERS`

A reader states facts and concludes nothing: `advise.explain.hang` does. Dumps of several ranks are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from linkwright.base import files
from linkwright.base.errors import FileError
from linkwright.formats.logs import Source

from . import flight_recorder, ras_json, ras_text, watchdog
from .kinds import CommGroup, Dump, DumpReader, Member, RankCall, RankProgress, RankStatus
from .watchdog import NAMELESS

__all__ = [
    "NAMELESS", "READERS", "CommGroup", "Dump", "DumpReader", "Member", "RankCall", "RankProgress", "RankStatus",
    "dumps_among", "is_dump", "read_dump", "read_dumps",
]  # fmt: skip

READERS: tuple[DumpReader, ...] = (flight_recorder.READER, ras_json.READER, ras_text.READER, watchdog.READER)


def is_dump(path: Path | str) -> bool:
    """Whether a file is a dump or message of a job that hangs."""
    source = Source(Path(path))
    known = [one.knows for one in READERS if one.knows]
    is_document = any(one.recognises(source) for one in READERS if not one.knows)
    return is_document or source.has(lambda line: any(knows(line) for knows in known))  # in one pass


def dumps_among(names: Iterable[str]) -> tuple[list[Path], list[Path]]:
    """The dumps among files and in folders, each in the order of their names, and the files that are none."""
    found: list[Path] = []
    for path in map(Path, names):
        try:
            is_folder = path.is_dir() and not (path / "run.json").exists()  # a run is none of dumps
            found += sorted(path.iterdir()) if is_folder else [path]
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    found = [file for file in dict.fromkeys(found) if files.is_readable(file)]
    dumps = [file for file in found if is_dump(file)]
    return dumps, [file for file in found if file not in set(dumps)]


def read_dump(path: Path | str) -> Dump:
    """What a dump states.

    Args:
        path: the file.

    Returns:
        Its groups, calls and the state of ranks.

    Raises:
        FileError: the file cannot be read, or no reader knows it.

    Example:
        >>> import linkwright.formats.hangs
        >>> dump = linkwright.formats.hangs.read_dump("nccl_trace_rank_0")  # doctest: +SKIP
        >>> dump.rank, dump.calls[-1].operation, dump.calls[-1].state  # doctest: +SKIP
        (0, 'allreduce', 'started')

    """
    return read_source(Source(Path(path)))


def read_dumps(path: Path | str) -> list[Dump]:
    """What all dumps and messages in a file state: a log may hold the text of RAS and messages of the watchdog.

    Raises:
        FileError: the file cannot be read, or no reader knows it.

    """
    source = Source(Path(path))
    found = [one for one in READERS if one.knows and one.recognises(source)]
    return [one.read(source) for one in found] if len(found) > 1 else [read_source(source)]


def read_source(source: Source) -> Dump:
    """The same of an open file, or of a text that stands for one."""
    found = next((one for one in READERS if one.recognises(source)), None)
    if found is None:
        tools = ", ".join(dict.fromkeys(one.tool for one in READERS))
        raise FileError(f"{source.path}: is not a dump of a job that hangs; give the output of {tools}")
    return found.read(source)
