"""Files that users name: how they are read, and written whole or not at all.

Input is read through `opened`, which uncompresses gzip, and text through `decoded`, which drops a byte order mark and
knows UTF-16, as PowerShell writes it. A file name that is not UTF-8 works everywhere; texts show it as `shown_name`
does.

A reader sees the old file or the new one, never half of one: the content goes to a temporary file in the same folder,
is flushed to the disk, and takes the name in one step. If anything fails, the temporary file is removed, so a full disk
leaves the old file. A link stays a link, to the new file. A device or pipe (`/dev/stdout`) is written to in place.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from linkwright.base.errors import FileError, StoreError, UsageError

if TYPE_CHECKING:
    import gzip

STDIN = Path("-")
# Of a file that is read as a whole.
MOST_BYTES = 1 << 30
PIECE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

_CURES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EACCES: "no permission to write there; choose another place",
    errno.EPERM: "no permission to write there; choose another place",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOENT: "nothing can be created there; choose another place",
    errno.EEXIST: "a file exists where a folder is needed; choose another name",
    errno.ENOTDIR: "a file exists where a folder is needed; choose another name",
    errno.EISDIR: "a folder exists where a file is needed; choose another name",
}


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into a `StoreError` with its cure."""
    try:
        yield
    except OSError as error:
        cure = _CURES.get(error.errno or 0, os.strerror(error.errno) if error.errno else str(error))
        raise StoreError(f"{path}: cannot be written: {cure}") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file next to `path`, then put it in place."""
    with named(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            _write_through(path, write)
            return
        import tempfile  # commands that write no file start faster without

        path = path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            temporary.chmod(0o666 & ~_umask())
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder with these files, by their names in it; a folder with anything in it is refused."""
    import shutil
    import tempfile

    with named(path):
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path}: is a folder that is not empty; choose another name")
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.resolve().parent))
        try:
            for name, data in files.items():
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                (beside / name).write_bytes(data)
            beside.chmod(0o777 & ~_umask())
            beside.replace(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _write_through(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file elsewhere, then copy it into a device or pipe."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "content"
        write(temporary)
        with temporary.open("rb") as content, path.open("wb") as out:
            shutil.copyfileobj(content, out)


def check_place(path: Path, asked: str) -> None:
    """Refuse, before any work, what `write_whole` would refuse after it; `asked` is how the user named it."""
    if not path.parent.is_dir():
        wrong = "is a file; choose another place" if path.parent.exists() else "does not exist; create it first"
        raise UsageError(f"{asked}: folder {path.parent} {wrong}")
    if path.is_dir():
        raise UsageError(f"{asked}: is a folder; choose another name")
    if path.is_file() or not path.exists():
        import tempfile

        with named(path), tempfile.TemporaryFile(dir=path.resolve().parent):
            pass


def check_page(path: Path, option: str) -> None:
    """The same for a page that `option` asks for, whose name must end in `.html`."""
    if path.suffix != ".html":
        raise UsageError(f"{option} {path}: the page is HTML; choose a name that ends in .html")
    check_place(path, f"{option} {path}")


def write_text(path: Path, text: str) -> None:
    """`write_whole` for text; bytes of file names that are not UTF-8 become escapes."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8", errors="backslashreplace"))


def shown_name(path: Path | str) -> str:
    """The name of a file as texts and the native half take it: bytes that are not UTF-8 are escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


@functools.cache
def _kept(path: Path, stdin: TextIO | None) -> IO[bytes]:
    """A temporary file with what a stream holds, since a stream can be read only once."""
    import tempfile

    if path == STDIN and (stdin is None or stdin.isatty()):
        raise UsageError("-: standard input is a terminal, or closed; pipe a file into the command, or name one")
    kept = tempfile.NamedTemporaryFile()  # noqa: SIM115
    with contextlib.nullcontext(stdin.buffer) if stdin else path.open("rb") as stream:
        while piece := stream.read(PIECE_BYTES):
            if kept.tell() > MOST_BYTES:
                raise UsageError(f"{path}: more than {MOST_BYTES >> 30} GiB, and no end; give a file")
            kept.write(piece)
    kept.flush()
    return kept


def is_stream(path: Path) -> bool:
    """Whether it is `-` or a pipe."""
    return path == STDIN or path.is_fifo()


def is_readable(path: Path) -> bool:
    """Whether it is a file, or a stream such as `-` and `/dev/stdin`."""
    return path.is_file() or is_stream(path)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """Open a file to read its bytes, uncompressed if it is gzip. A broken archive raises an `OSError`."""
    if is_stream(path):
        path = Path(_kept(path, sys.stdin if path == STDIN else None).name)
    with path.open("rb") as file:
        if not file.peek(len(_GZIP)).startswith(_GZIP):
            yield file
            return
        import gzip  # commands that read no such file start faster without
        import zlib

        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(f"is a broken gzip file: {error}; copy it again") from error


def encoding(begin: bytes) -> str:
    """The encoding of a text that begins so: UTF-8, or UTF-16 if its byte order mark says so."""
    return "utf-16" if begin.startswith(_UTF_16) else "utf-8-sig"


def decoded(data: bytes) -> str:
    """The text in a file, with the line ends of Unix; raises `UnicodeDecodeError`."""
    return data.decode(encoding(data)).replace("\r\n", "\n").replace("\r", "\n")


def unpacked(path: Path, most: int) -> bytes:
    """The first bytes of a file, uncompressed: at most one more than `most`, so that a reader can refuse the rest."""
    held = bytearray()  # a read of `most` would take as much memory for the shortest file
    with opened(path) as file:
        while len(held) <= most and (piece := file.read(min(PIECE_BYTES, most + 1 - len(held)))):
            held += piece
    return bytes(held)


def content(path: Path) -> bytes:
    """What a file holds, uncompressed. Raises an `OSError` for more than any file of ours has: /dev/zero never ends."""
    held = unpacked(path, MOST_BYTES)
    if len(held) > MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return held


def kept(path: Path) -> bytes:
    """What a file of a run folder holds. Raises an `OSError` also for a device: linkwright keeps nothing in one."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.ENXIO, "it is a device, not a file")
    return content(path)


def read_text(path: Path, what: str) -> str:
    """The text of a file that the user named; `what` says in messages what it should be."""
    try:
        return decoded(content(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not text in UTF-8; give the path of {what}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}; give the path of {what}") from error


def read_json(path: Path, what: str) -> Any:
    """The value of a JSON file that the user named; `what` says in messages what it should be."""
    import json  # a command that reads none starts faster without

    try:
        return json.loads(read_text(path, what), parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}:{error.lineno}: is not valid JSON ({error.msg}); give {what}") from None
    except RecursionError:
        raise FileError(f"{path}: is not valid JSON (nested too deeply); give {what}") from None
    except ValueError as error:
        raise FileError(f"{path}: is not valid JSON ({str(error).partition(';')[0]}); give {what}") from None


def no_number(word: str) -> None:
    """Refuse a word such as NaN, which JSON does not have; for `parse_constant`."""
    raise ValueError(f"{word} is not a number")


def make_folder(path: Path) -> None:
    """Create `path` and its parents."""
    with named(path):
        path.mkdir(parents=True, exist_ok=True)


def _sync_folder(path: Path) -> None:
    """Make the new name itself survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
