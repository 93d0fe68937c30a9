"""Proving algorithms and files right, one finding each; the proof itself is in the native half."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linkwright import _native
from linkwright.errors import LinkwrightError, WaivedError

# Elements have no meaning for a proof, only chunks do; the size decides how long they are.
ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Request:
    """An algorithm and a shape."""

    key: str  # `collective/name`
    ranks: int
    size_bytes: int
    root: int = 0
    grid: tuple[int, int] | None = None
    machine: str | None = None


@dataclass(frozen=True)
class Finding:
    """What came of one proof."""

    key: str
    ranks: int | None
    status: str  # `ok`, `waived` or `failed`
    text: str
    proved: dict[str, object] | None = None


def check(request: Request) -> Finding:
    """Build and verify; a wrong schedule is a finding, an algorithm that does not suit is waived."""
    try:
        schedule = _native.Schedule.build(
            request.key,
            request.ranks,
            request.size_bytes // ELEMENT_BYTES,
            element_bytes=ELEMENT_BYTES,
            root=request.root,
            grid=request.grid,
        )
        if request.machine:
            schedule = _native.lower(schedule, _sized(request))
        proved = schedule.verify()
    except WaivedError as error:
        return Finding(request.key, request.ranks, "waived", str(error))
    except LinkwrightError as error:
        if error.exit_status == 2:
            raise
        return Finding(request.key, request.ranks, "failed", str(error))
    return Finding(request.key, request.ranks, "ok", describe(proved), proved)


def check_file(path: Path) -> Finding:
    """Verify the schedule in the text file at `path`."""
    from linkwright.schedules import read

    schedule = read(path)
    try:
        proved = schedule.verify()
    except LinkwrightError as error:
        return Finding(path.name, schedule.ranks, "failed", str(error))
    return Finding(path.name, schedule.ranks, "ok", describe(proved), proved)


def describe(proved: dict) -> str:
    """A proof in one line."""
    how = "exact contributions" if proved["exact"] else "contributions by fingerprints"
    counts = ", ".join(f"{proved[name]} {name.replace('_', ' ')}" for name in ("operations", "messages", "notices"))
    return f"{counts}; {proved['hazards']} hazards ordered; {how}"


def _sized(request: Request) -> _native.Machine:
    from linkwright.executors import resolve

    (target,) = resolve(str(request.machine), request.ranks, request.grid)
    return target.machine
