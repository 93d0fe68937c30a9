"""Verify algorithms and sources, one finding each; the native half does the proof."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwright import _native
from linkwright.ask import schedules, sources
from linkwright.base.errors import LinkwrightError, UsageError, WaivedError
from linkwright.machines import AS_DESCRIBED, Variant

# A proof is about chunks; elements only decide how long they are.
ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Request:
    """An algorithm or a source, and a shape."""

    key: str  # `collective/name`, or of a source that says its collective itself its name alone
    ranks: int | None  # None: those of a schedule in a file
    size_bytes: int | None
    root: int = 0
    grid: tuple[int, ...] | None = None
    machine: str | None = None
    variant: Variant = AS_DESCRIBED  # of the machine

    @property
    def label(self) -> str:
        """What tables call it."""
        collective, slash, name = self.key.partition("/")
        if collective not in registered():
            return sources.find(self.key).label
        return f"{collective}{slash}{sources.find(name).label}" if sources.is_source(name) else self.key


@dataclass(frozen=True)
class Finding:
    """The outcome of one proof."""

    key: str
    ranks: int | None
    status: str  # `ok`, `waived` or `failed`
    text: str
    proved: Mapping[str, object] | None = None


def check(request: Request) -> Finding:
    """Build and verify; a wrong schedule is a finding, an algorithm that cannot serve the shape is waived."""
    ranks = request.ranks
    try:
        schedule = _made(request)
        ranks = schedule.ranks
        if request.machine:
            schedule = _native.lower(schedule, _sized(request))
        proved = schedule.verify()
    except WaivedError as error:
        return Finding(request.label, ranks, "waived", str(error))
    except LinkwrightError as error:
        if error.exit_status == 2:
            raise
        return Finding(request.label, ranks, "failed", str(error))
    return Finding(request.label, ranks, "ok", describe(proved), proved)


def _made(request: Request) -> _native.Schedule:
    """The schedule of a request, by a registered algorithm or by a source."""
    from linkwright.libraries.questions import collective_question, own_question

    collective, _, name = request.key.partition("/")
    ranks, size = request.ranks, request.size_bytes
    how = ("f32", "sum")
    about: dict[str, Any] = {"root": request.root, "grid": request.grid}
    if collective not in registered():
        return schedules.of(own_question("verify", request.key, ranks, size, *how, **about))
    # The command line fills in what its user leaves open.
    assert ranks is not None
    assert size is not None
    if name not in registered()[collective]:
        return schedules.of(collective_question("verify", collective, name, ranks, size, *how, **about))
    return _native.Schedule.build(request.key, ranks, size // ELEMENT_BYTES, element_bytes=ELEMENT_BYTES, **about)


@functools.cache
def registered() -> dict[str, list[str]]:
    """The registered algorithms by collective."""
    found: dict[str, list[str]] = {}
    for row in _native.algorithms():
        found.setdefault(str(row["collective"]), []).append(str(row["name"]))
    return found


def describe(proved: Mapping[str, object]) -> str:
    """A proof in one line."""
    how = "exact contributions" if proved["exact"] else "contributions by fingerprints"
    counts = ", ".join(f"{proved[name]} {name.replace('_', ' ')}" for name in ("operations", "messages", "notices"))
    return f"{counts}; {proved['hazards']} hazards ordered; {how}"


def _sized(request: Request) -> _native.Machine:
    from linkwright.executors import resolve
    from linkwright.executors.sim import ModelledTarget

    (target,) = resolve(str(request.machine), request.ranks, request.grid, variant=request.variant)
    if not isinstance(target, ModelledTarget):
        raise UsageError(f"--on {request.machine}: an executor measures; name a described machine to verify for it")
    return target.machine
