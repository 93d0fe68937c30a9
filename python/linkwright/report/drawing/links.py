"""What a described machine looks like: its endpoints with their places, and its links by name.

A fabric names its links when it simulates; the four forms that draw something are read here and nowhere else:
`GPU 0 -> PLX 0`, `ring 0 SPE1 to SPE3`, `NoC 0 (1,2) east`, `rank 0 out`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from linkwright import _native


@dataclass(frozen=True)
class Described:
    """A described machine, as far as it can be drawn."""

    fabric: str
    endpoints: tuple[str, ...]
    parts: dict[str, list[str]]  # part of the outermost level that has several -> its endpoints
    links: list[tuple[str, str]] = field(default_factory=list)
    ring: list[str] = field(default_factory=list)  # all stops in order
    grid: tuple[int, int] = (0, 0)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # endpoint -> (column, row)
    memories: dict[tuple[int, int], str] = field(default_factory=dict)
    directions: str = ""


def described(machine: _native.Machine, taking_part: list[str]) -> Described:
    """The machine; of its endpoints those in `taking_part`, or all if that is empty."""
    every = [end for end in machine.endpoints() if end["kind"] == "rank"]
    ends = [end for end in every if end["name"] in taking_part] or every
    names = tuple(end["name"] for end in ends)
    links = _link_names(machine)
    return Described(
        machine.fabric,
        names,
        _parts(machine, [end["name"] for end in every], set(names)),
        links=_between(links),
        ring=_ring(links),
        grid=machine.grid or (0, 0),
        places={end["name"]: (end["x"], end["y"]) for end in ends if end["x"] is not None and end["y"] is not None},
        memories={
            (end["x"], end["y"]): end["name"]
            for end in machine.endpoints()
            if end["kind"] == "memory" and end["x"] is not None and end["y"] is not None
        },
        directions=_directions(links),
    )


def _link_names(machine: _native.Machine) -> list[str]:
    """The links of the fabric, from the smallest simulation that has some."""
    if machine.ranks < 2:
        return []
    schedule = _native.Schedule.pattern("ping_pong", 2, 8)
    return list(_native.simulate(schedule, machine, {"links": True})["links"]["name"])


def _between(links: list[str]) -> list[tuple[str, str]]:
    named = [name for name in links if name.count(" -> ") == 1 and not name.endswith(" turn")]
    ends = [(first, second) for first, _, second in (name.partition(" -> ") for name in named)]
    return list(dict.fromkeys((min(pair), max(pair)) for pair in ends))


def _ring(links: list[str]) -> list[str]:
    found = [re.fullmatch(r"ring 0 (.+) to (.+)", name) for name in links]
    return [match[1] for match in found if match]


def _directions(links: list[str]) -> str:
    """`NoC 0: east, south; NoC 1: north, west`, where links go one way."""
    ways: dict[str, set[str]] = {}
    for name in links:
        if match := re.fullmatch(r"(.+) \(\d+,\d+\) (east|west|north|south)", name):
            ways.setdefault(match[1], set()).add(match[2])
    return "; ".join(f"{noc} moves {' and '.join(sorted(found))}" for noc, found in ways.items() if len(found) < 4)


def _parts(machine: _native.Machine, every: list[str], used: set[str]) -> dict[str, list[str]]:
    """The endpoints by the parts of the outermost level that has more than one."""
    levels = machine.levels()
    for depth, (name, count) in enumerate(levels[:-1]):
        if count > 1:
            outer = 1
            for _, above in levels[: depth + 1]:
                outer *= above
            size = max(1, len(every) // outer)
            found: dict[str, list[str]] = {}
            for number, endpoint in enumerate(every):
                if endpoint in used:
                    found.setdefault(f"{name} {number // size}", []).append(endpoint)
            return found
    return {machine.name: [name for name in every if name in used]}
