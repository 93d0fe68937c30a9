"""From the names of files to traces: which rank each is of, which form it has, and how much of it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from linkwright.advise.predict.trace import document, wire
from linkwright.advise.predict.trace.nodes import MOST_NODES, MOST_RANKS, Node, Room, Trace, checked
from linkwright.base.errors import FileError, UsageError
from linkwright.base.files import unpacked
from linkwright.base.units import format_size

MOST_BYTES = 1 << 28
MOST_BYTES_OF_JSON = 1 << 26  # its objects need about ten times as much memory

# `name.R.et`, as Chakra names them; otherwise the number at the end of the name.
_RANK = (re.compile(r".*\.(\d{1,6})$", re.ASCII), re.compile(r".*?(\d{1,6})$", re.ASCII))
_JSON = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*[\"}]")
_GROUPS = "process_group"
# What stands in place of large files in a checkout -> how to get them.
_POINTERS = {b"version https://git-lfs": "git lfs pull", b"/annex/objects/": "git annex get"}


def found(names: Iterable[str], folder: Path, where: str) -> list[Path]:
    """The files of `names`, in which `*` and `?` stand for any; relative ones are in `folder`."""
    paths: list[Path] = []
    for name in names:
        if not any(sign in name for sign in "*?[") or (folder / name).is_file():
            paths.append(folder / name)
            continue
        path = Path(name)
        base = Path(path.anchor) if path.anchor else folder
        try:
            matching = sorted(base.glob(str(path.relative_to(path.anchor))))
        except (ValueError, NotImplementedError) as error:
            raise FileError(
                f"{where}: files: `{name}` is not a pattern: {error}; write one such as `step.*.et`"
            ) from error
        if not matching:
            raise FileError(f"{where}: files: no file matches `{name}` in {base}; correct the pattern")
        paths += matching
    return list(dict.fromkeys(paths))


def read(paths: Sequence[Path], ranks: int | None, where: str) -> list[Trace]:
    """The trace of each rank; the single file of a program with several `ranks` is that of each of them."""
    by_rank = _by_rank(paths, where)
    if ranks is not None and len(paths) != ranks and len(paths) != 1:
        raise FileError(f"{where}: ranks is {ranks}, and there are {len(paths)} files; give one for each rank, or one")
    room = Room()
    traces = [parse(_content(path), str(path), room) for path in by_rank]
    if ranks is None or len(traces) == ranks:
        return traces
    if ranks > MOST_RANKS or ranks * len(traces[0].nodes) > MOST_NODES:
        raise FileError(
            f"{where}: ranks is {ranks:,}; at most {MOST_RANKS:,} ranks and {MOST_NODES:,} nodes can be replayed"
        )
    return traces * ranks


def _by_rank(paths: Sequence[Path], where: str) -> list[Path]:
    """The files in the order of their ranks, which must be 0 to the last."""
    if len(paths) == 1:
        return list(paths)
    if len(paths) > MOST_RANKS:
        raise FileError(f"{where}: there are {len(paths):,} files; at most {MOST_RANKS:,} ranks can be replayed")
    ranks: dict[int, Path] = {}
    for path in paths:
        rank = _rank(path)
        if rank is None:
            raise FileError(f"{path}: its name has no rank; name the files of a step `name.0.et`, `name.1.et`, ...")
        if rank in ranks:
            raise FileError(f"{path}: rank {rank} has two files, this and {ranks[rank]}; give one for each rank")
        ranks[rank] = path
    for rank in range(len(ranks)):
        if rank not in ranks:
            raise FileError(f"{where}: the file of rank {rank} is missing, of ranks 0 to {max(ranks)}; add it")
    return [ranks[rank] for rank in range(len(ranks))]


def _rank(path: Path) -> int | None:
    stem = Path(path.name.removesuffix(".gz")).stem
    for pattern in _RANK:
        if match := pattern.fullmatch(stem):
            return int(match[1])
    return None


def parse(data: bytes, name: str, room: Room | None = None) -> Trace:
    """The trace in the content of a file; `name` is for messages."""
    trace, room = Trace(name), room or Room()
    is_json = _JSON.match(data) is not None
    if is_json and len(data) > MOST_BYTES_OF_JSON:
        raise trace.wrong(None, f"JSON above {format_size(MOST_BYTES_OF_JSON)} is not accepted; give the `.et` file")
    text = ""
    try:
        text = data.decode() if is_json else ""
        for node, inputs in document.nodes(text) if is_json else wire.nodes(data):
            room.take(trace, node)
            trace.nodes.append(checked(trace, node))
            if inputs and _GROUPS in node.name:
                trace.groups_text = inputs
    except wire.BrokenError as broken:
        place = f"line {text.count(chr(10), 0, broken.at) + 1}" if is_json else f"byte {broken.at}"
        raise trace.wrong(None, f"{place}: {broken}; {_cure(trace.nodes)}") from broken
    except UnicodeDecodeError as error:
        raise trace.wrong(None, f"byte {error.start}: JSON that is not UTF-8; {_cure(trace.nodes)}") from error
    if not trace.nodes:
        raise trace.wrong(None, "it contains no node; give the trace of a step")
    return trace


def _cure(before: Sequence[Node]) -> str:
    last = f"; the last node read is {before[-1].id}" if before else ""
    return f"copy the file again, or write it as a Chakra trace (`.et`, or the JSON of chakra_jsonizer){last}"


def _content(path: Path) -> bytes:
    """The bytes of a file, uncompressed, as far as they are read."""
    try:
        data = unpacked(path, MOST_BYTES)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}; give the path of a Chakra trace") from error
    if len(data) > MOST_BYTES:
        raise FileError(f"{path}: has more than {format_size(MOST_BYTES)}; trace one step")
    for beginning, cure in _POINTERS.items():
        if data.startswith(beginning):
            raise FileError(f"{path}: is a pointer to the trace, not the trace itself; fetch it with `{cure}`")
    return data
