"""Verify algorithms and sources, one finding each; the native half does the proof."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwright import _native
from linkwright.ask import schedules, sources
from linkwright.ask.exchange import UnevenExchange
from linkwright.base.errors import LinkwrightError, UsageError, WaivedError
from linkwright.machines import AS_DESCRIBED, Variant

# A proof is about chunks; elements only decide how long they are.
ELEMENT_BYTES = 4
USUAL_SIZE = 64 << 10


@dataclass(frozen=True)
class Finding:
    """The outcome of one proof."""

    key: str
    ranks: int | None
    status: str  # `ok`, `waived` or `failed`
    text: str
    proved: Mapping[str, object] | None = None


def check(
    key: str, ranks: int, size_bytes: int | None, *, root: int = 0, grid: tuple[int, ...] | None = None,
    machine: str | None = None, variant: Variant = AS_DESCRIBED, exchange: UnevenExchange | None = None,
) -> Finding:  # fmt: skip
    """Build and verify; a wrong schedule is a finding, an algorithm that cannot serve the shape is waived.

    Args:
        key: `collective/name`, or a source that says its collective itself.
        ranks: that take part.
        size_bytes: of the message; None: that of a file, or the usual one.
        root: of a rooted collective.
        grid: sides of the ranks.
        exchange: of an uneven collective.
        machine: for whose default path the schedule is lowered first, as the `variant` has it.
    """
    try:
        about = exchange.shape if exchange else {}
        schedule = _made(key, ranks, size_bytes, root=root, grid=grid, **about)
        ranks = schedule.ranks
        if machine:
            schedule = _native.lower(schedule, _sized(machine, ranks, grid, variant))
        proved = schedule.verify()
    except WaivedError as error:
        return Finding(_label(key), ranks, "waived", str(error))
    except LinkwrightError as error:
        if error.exit_status == 2:
            raise
        return Finding(_label(key), ranks, "failed", str(error))
    return Finding(_label(key), ranks, "ok", describe(proved), proved)


def _made(key: str, ranks: int, size_bytes: int | None, **about: Any) -> _native.Schedule:
    """The schedule of a registered algorithm or of a source."""
    from linkwright.libraries import questions

    collective, _, name = key.partition("/")
    if name not in registered().get(collective, ()):
        return schedules.of(questions.named("verify", key, ranks, size_bytes, (ranks, USUAL_SIZE), **about))
    elements = (USUAL_SIZE if size_bytes is None else size_bytes) // ELEMENT_BYTES
    return _native.Schedule.build(key, ranks, elements, element_bytes=ELEMENT_BYTES, **about)


def _label(key: str) -> str:
    """What tables call it."""
    collective, slash, name = key.partition("/")
    if collective not in registered():
        return sources.find(key).label
    return f"{collective}{slash}{sources.find(name).label}" if sources.is_source(name) else key


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


def _sized(machine: str, ranks: int, grid: tuple[int, ...] | None, variant: Variant) -> _native.Machine:
    from linkwright.executors import resolve
    from linkwright.executors.sim import ModelledTarget

    (target,) = resolve(machine, ranks, grid, variant=variant)
    if not isinstance(target, ModelledTarget):
        raise UsageError(f"--on {machine}: this executor measures; name a described machine to verify for")
    return target.machine
