"""Which numbers of a machine a time depends on: each is made twice as good, and the time simulated again.

A rate is doubled, and a time is halved. Shares and counts stay: a share of a rate is at most 1, and doubling the rate
says the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linkwright import _native
from linkwright.base.errors import LinkwrightError

_TIMES = ("ps", "ns", "us", "ms", "s")
LEAST = 0.01  # of the time, to be shown


@dataclass(frozen=True)
class Effect:
    """What a number is worth.

    Attributes:
        key: its key in the machine file.
        value: as it stands there, with its unit.
        status: `documented`, `fitted`, ...
        time_us: the time if it were twice as good.
        gain: the share of the time that this saves.
    """

    key: str
    value: str
    status: str
    time_us: float
    gain: float


def effects(machine: _native.Machine, time: Callable[[_native.Machine], float]) -> list[Effect]:
    """The numbers that a time depends on, the most important first.

    Args:
        machine: as it is described.
        time: the simulated time on a machine, in us.
    """
    before = time(machine)
    better = [(row, value) for row in machine.numbers() if (value := _better(row)) is not None]
    # Latencies hardly weigh on large sizes, nor do most paths, and together they tell whether any of them does.
    latencies = [(row, value) for row, value in better if row["unit"] in _TIMES]
    paths = [one for one in better if one not in latencies and one[0]["key"].startswith("fabric.transport.")]
    for group in (latencies, paths):
        with contextlib.suppress(LinkwrightError):
            faster = machine
            for row, value in group:
                faster = faster.with_value(row["key"], value)
            if 1 - time(faster) / before < LEAST:
                better = [one for one in better if one not in group]
    found = []
    for row, value in better:
        with contextlib.suppress(LinkwrightError):  # the file allows no such value
            after = time(machine.with_value(row["key"], value))
            if (gain := 1 - after / before) >= LEAST:
                found.append(Effect(row["key"], f"{row['value']} {row['unit']}", row["status"], after, gain))
    return sorted(found, key=lambda one: (-one.gain, one.key))


def _better(row: Mapping[str, object]) -> str | None:
    """The value, twice as good, as a machine file writes it; None of what has no better direction."""
    key, unit = str(row["key"]), str(row["unit"])
    try:
        value = float(str(row["value"]))
    except ValueError:
        return None
    if key.startswith("facts.") or not value:
        return None
    if "/s" in unit:
        return f"{2 * value:.9g}"
    return f"{value / 2:.9g}" if unit in _TIMES else None
