"""What endpoints send each other: schedules, simulated on the machine.

One `[[superstep.message]]` is one of

    pattern = "neighbour"                  a traffic pattern, `size` bytes for each message
    collective = "allreduce"               by `algorithm`, by the plan of the machine's library, or by the best of all
    list = [[0, 1, "4K"], [1, 2, "4K"]]    from, to, size: all at once

and starts when everything before it has finished everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.ask.exchange import refuse_unstated
from linkwright.ask.question import ALL, DTYPES, MAX_RANKS, MOST_MESSAGES, Pattern, collectives
from linkwright.base.errors import LinkwrightError, ScheduleError, ShapeError, UnsuitedError
from linkwright.base.toml import FLAG, POSITIVE_SIZE, SIZE, TEXT, Choice, Key, Kind, Many, Place, Table, whole
from linkwright.libraries import library
from linkwright.libraries.questions import collective_question, planned
from linkwright.session.suite.expand import algorithms_of

# With more endpoints than this, some algorithms have too many messages to simulate in a reasonable time.
BEST_OF_ALL_RANKS = 1024
BEST = "best"
_END = whole(0, MAX_RANKS - 1)


class _Message(Kind):
    """`[from, to, size]`."""

    words = '[from, to, size], such as [0, 1, "4K"]'
    types = (list,)

    def read(self, key: str, value: object, place: Place) -> tuple[int, int, int]:
        """The two endpoints and the bytes."""
        if not isinstance(value, list) or len(value) != 3:
            raise self.refused(key, value, place)
        kinds = (_END, _END, POSITIVE_SIZE)
        return tuple(kind.read(f"{key}[{i}]", value[i], place) for i, kind in enumerate(kinds))

    def schema(self) -> dict[str, object]:
        """Two endpoints and a size."""
        ends = [_END.schema(), _END.schema(), SIZE.schema()]
        return {"type": "array", "items": ends, "minItems": 3, "maxItems": 3}


MESSAGE = {
    "pattern": Key(
        Choice(lambda: [row["key"].removeprefix("pattern/") for row in _native.patterns()]), "traffic pattern"
    ),
    "collective": Key(Choice(collectives), "collective"),
    "list": Key(Many(_Message()), "messages that all start at once, each `[from, to, size]`"),
    "size": Key(SIZE, "bytes of each message of a pattern, or of the collective"),
    "messages": Key(whole(1, MOST_MESSAGES), "messages per pair of a pattern", default=1),
    "both_ways": Key(FLAG, "whether the messages of a pattern also go the other way", default=False),
    "algorithm": Key(
        TEXT, "algorithm of the collective, or `best`; default: the plan of the machine's library, or the best of all"
    ),
    "dtype": Key(Choice(DTYPES), "data type of the collective", default="f32"),
    "root": Key(_END, "root of a pattern or collective", default=0),
}
# Form -> the keys that belong to it.
KEYS_OF_FORM = {
    "pattern": {"pattern", "size", "messages", "both_ways", "root"},
    "collective": {"collective", "size", "algorithm", "dtype", "root"},
    "list": {"list"},
}


@dataclass(frozen=True)
class Where:
    """Where messages travel: so many endpoints of a machine, on a path if one is asked for."""

    machine: _native.Machine
    endpoints: int
    grid: tuple[int, ...] | None = None
    path: str | None = None
    placement: tuple[int, ...] | None = None  # endpoint of each rank; None: the first ones


@dataclass(frozen=True)
class Exchange:
    """One message entry: equivalent schedules, of which the fastest counts."""

    choices: dict[str, tuple[_native.Schedule, How]]  # by what was chosen, in words
    buffer_bytes: int  # bytes that it needs at the busiest endpoint

    def simulate(
        self, machine: _native.Machine, placement: tuple[int, ...] | None = None
    ) -> tuple[str, float, dict[str, float]]:
        """(choice, time, time by cause) of the fastest, in ns; `placement` has the endpoint of each rank."""
        found, unsuited = [], None
        for name, (schedule, how) in self.choices.items():
            if len(self.choices) > 1 and schedule.memories > machine.memories:
                continue
            try:
                answer = ask(machine, schedule, how.but(placement=placement))
            except UnsuitedError as error:  # too large for its kernels or for a rank's memory; another one may do
                unsuited = error
                continue
            found.append((answer.time.ns, name, answer.critical))
        if not found and unsuited:
            raise unsuited
        time_ns, name, shares = min(found, key=lambda one: one[0])
        return name, time_ns, {cause: share * time_ns for cause, share in shares.items()}


def exchange(table: Table, place: Where) -> Exchange:
    """Reads one message entry."""
    given = [form for form in KEYS_OF_FORM if form in table]
    if len(given) != 1:
        raise table.error(f"names {len(given)} of `pattern`, `collective`, `list`; name exactly one")
    for key in table:
        if key not in KEYS_OF_FORM[given[0]]:
            raise table.error(f"`{key}` does not apply to a {given[0]}; omit it")
    if given[0] != "list" and "size" not in table:
        raise table.error("missing key `size`; add it")
    return {"pattern": _pattern, "collective": _collective, "list": _listed}[given[0]](table, place)


def _pattern(table: Table, place: Where) -> Exchange:
    name, endpoints = table["pattern"], place.endpoints
    question = Pattern(
        "app", name, endpoints, table["size"], dtype="u8", root=_root(table, endpoints), grid=place.grid,
        messages=table["messages"], both_ways=table["both_ways"],
    )  # fmt: skip
    try:
        schedule = schedules.of(question)
    except LinkwrightError as error:
        raise table.error(str(error)) from error
    return Exchange({name: (schedule, How(path=place.path))}, _arriving(schedule, endpoints))


def _collective(table: Table, place: Where) -> Exchange:
    name = table["collective"]
    if "root" in table and not collectives()[name]["rooted"]:
        raise table.error(f"`root`: {name} has no root; omit it")
    root = _root(table, place.endpoints)
    try:
        return collective(name, table["algorithm"], table["size"], table["dtype"], root, place)
    except (ScheduleError, ShapeError) as error:
        raise table.error(str(error)) from error


def collective(name: str, wanted: str | None, size: int, dtype: str, root: int, place: Where) -> Exchange:
    """A collective of `size` bytes by `wanted`; by default the plan of the library of the machine, or else the best."""
    refuse_unstated(name, None)
    own = [] if place.path else library.algorithms(place.machine, name)
    wanted = wanted or next(iter(own), BEST)
    if wanted == BEST and place.endpoints > BEST_OF_ALL_RANKS:
        raise ShapeError(f"{place.endpoints} endpoints are too many to try every algorithm; name one by `algorithm`")
    choices, why = {}, ""
    for algorithm in algorithms_of(name, (ALL,) if wanted == BEST else (wanted,), own):
        asked = collective_question(
            "app", name, algorithm, place.endpoints, size, dtype, "sum", root=root, grid=place.grid, path=place.path,
            placement=place.placement,
        )  # fmt: skip
        try:
            made = planned(place.machine, None, asked)
            choices[asked.algorithm_key] = schedules.of(made), schedules.how(made)
        except (ScheduleError, ShapeError) as error:
            why = str(error)
    if not choices:
        raise ShapeError(why)
    return Exchange(choices, size)


def _listed(table: Table, place: Where) -> Exchange:
    messages, endpoints = table["list"], place.endpoints
    for source, target, _ in messages:
        for end in (source, target):
            if end >= endpoints:
                raise table.error(f"list: endpoint {end} does not exist; there are 0 to {endpoints - 1}")
        if source == target:
            raise table.error(f"list: a message of {source} goes to its own source; omit it, or count it as `bytes`")
    return listed(messages, place, table)


def listed(messages: Sequence[tuple[int, int, int]], place: Where, table: Table) -> Exchange:
    """Messages that all start at once, each from, to and size."""
    endpoints = place.endpoints
    try:
        schedule = schedules.at_once(endpoints, messages)
    except ShapeError as error:
        raise table.error(f"list: {error}") from None
    choices = {f"{len(messages)} messages": (schedule, How(path=place.path))}
    return Exchange(choices, _arriving(schedule, endpoints))


def _arriving(schedule: _native.Schedule, endpoints: int) -> int:
    """Bytes that arrive at the busiest endpoint."""
    operations = schedule.operations()
    arrived = np.bincount(operations["to"], weights=operations["bytes"], minlength=endpoints)
    return int(arrived.max(initial=0))


def _root(table: Table, endpoints: int) -> int:
    if table["root"] >= endpoints:
        raise table.error(f"root {table['root']} does not exist; there are endpoints 0 to {endpoints - 1}")
    return table["root"]
