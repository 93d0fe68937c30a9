"""The journal of a run: one JSON line for each finished piece of work, on the disk at once.

While a run goes on, its folder holds `journal.jsonl`. A record is either

    {"samples": {"experiment": ..., "launch": ..., "values_ns": [...], ...}}    one launch measured
    {"rows": [{...}, ...]}                                                        modelled
    {"ended": {"experiment": ..., "launch": ..., "status": "waived", ...}}        waived or failed

An interrupted run (Ctrl-C, a power cut, a full disk) therefore loses at most the experiment it was in.
A last line without its newline was cut while it was written and is dropped.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from linkwright.base.errors import StoreError
from linkwright.base.files import kept, named

from . import documents


class Journal:
    """Appends records; holds a lock, so that two processes cannot continue the same run."""

    def __init__(self, path: Path):
        self._path = path
        with named(path):
            # Unbuffered, because closing the file must not retry what a full disk refused.
            self._file = path.open("ab", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(f"{path}: another process is writing this run; wait for it to end") from error
        with named(path):
            # Up to and including the last newline.
            self._length = kept(path).rfind(b"\n") + 1
            self._file.truncate(self._length)

    def append(self, record: dict[str, object]) -> None:
        """Write one record and wait until it is on the disk; what interrupts that leaves nothing of it."""
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            with named(self._path):
                rest = memoryview(line)
                while rest:
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
        except BaseException:  # Ctrl-C as well
            with contextlib.suppress(OSError):
                self._file.truncate(self._length)
            raise
        self._length += len(line)

    def close(self) -> None:
        """Release the file and its lock."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(path: Path) -> Iterator[dict]:
    """All whole records of a journal, in order; none if it does not exist."""
    if not path.exists():
        return
    try:
        held = kept(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}; remove it, or make the run again") from error
    whole = held[: held.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        place, cure = Path(f"{path}:{number}"), "the file was changed by hand: remove that line to go on"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{place}: is not JSON; {cure}") from error
        documents.check(record, documents.RECORD, place, cure)
        yield record
