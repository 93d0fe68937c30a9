"""What endpoints send each other: schedules, simulated on the machine.

One `[[superstep.message]]` is one of

    pattern = "neighbour"                  a traffic pattern, `size` bytes for each message
    collective = "allreduce"               by `algorithm`, or by the best of all
    list = [[0, 1, "4K"], [1, 2, "4K"]]    from, to, size: all at once

and starts when everything before it has finished everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwright import _native, schedules
from linkwright.errors import LinkwrightError, ScheduleError, ShapeError, UnsuitedError
from linkwright.experiment import DTYPES, Experiment
from linkwright.suite.expand import algorithms_of, collective_experiment
from linkwright.toml import FLAG, POSITIVE_SIZE, SIZE, TEXT, Choice, Key, Kind, Many, Place, whole

if TYPE_CHECKING:
    from linkwright.toml import Table

# With more endpoints than this, some algorithms have too many messages to simulate in a reasonable time.
BEST_OF_ALL_RANKS = 1024
MOST_CHUNKS = 1 << 20


class _Message(Kind):
    """`[from, to, size]`."""

    words = '[from, to, size], such as [0, 1, "4K"]'
    types = (list,)

    def read(self, key: str, value: object, place: Place) -> tuple[int, int, int]:
        """The two endpoints and the bytes."""
        if not isinstance(value, list) or len(value) != 3:
            raise self.refused(key, value, place)
        kinds = (whole(0), whole(0), POSITIVE_SIZE)
        return tuple(kind.read(f"{key}[{i}]", value[i], place) for i, kind in enumerate(kinds))

    def schema(self) -> dict[str, object]:
        """Two endpoints and a size."""
        ends = [whole(0).schema(), whole(0).schema(), SIZE.schema()]
        return {"type": "array", "items": ends, "minItems": 3, "maxItems": 3}


MESSAGE = {
    "pattern": Key(TEXT, "traffic pattern"),
    "collective": Key(Choice(lambda: [row["key"] for row in _native.collectives()]), "collective"),
    "list": Key(Many(_Message()), "messages that all start at once, each `[from, to, size]`"),
    "size": Key(SIZE, "bytes of each message of a pattern, or of the collective"),
    "messages": Key(whole(1), "messages per pair of a pattern", default=1),
    "both_ways": Key(FLAG, "whether the messages of a pattern also go the other way", default=False),
    "algorithm": Key(TEXT, "algorithm of the collective; default: the best of all", default="best"),
    "dtype": Key(Choice(DTYPES), "data type of the collective", default="f32"),
    "root": Key(whole(0), "root of a pattern or collective", default=0),
}
# Form -> the keys that belong to it.
KEYS_OF_FORM = {
    "pattern": {"pattern", "size", "messages", "both_ways", "root"},
    "collective": {"collective", "size", "algorithm", "dtype", "root"},
    "list": {"list"},
}


@dataclass(frozen=True)
class Exchange:
    """One message entry: equivalent schedules, of which the fastest counts."""

    choices: dict[str, _native.Schedule]  # what was chosen, in words -> its schedule
    buffer_bytes: int  # bytes that it needs at the busiest endpoint

    def simulate(
        self, machine: _native.Machine, path: str | None, placement: tuple[int, ...] | None = None
    ) -> tuple[str, float, dict[str, float]]:
        """(choice, time, time by cause) of the fastest, in ns; `placement` has the endpoint of each rank."""
        found, unsuited = [], None
        for name, schedule in self.choices.items():
            if len(self.choices) > 1 and schedule.memories > machine.memories:
                continue
            try:
                lowered = schedules.lowered(schedule, machine, path)
            except UnsuitedError as error:  # too large for its kernels; another one may do
                unsuited = error
                continue
            table = _native.simulate(lowered, machine, {"path": path, "placement": placement})
            found.append((table["makespan_ps"] / 1e3, name, table["critical"]))
        if not found and unsuited:
            raise unsuited
        time_ns, name, shares = min(found, key=lambda one: one[0])
        return name, time_ns, {cause: share * time_ns for cause, share in shares.items()}


def exchange(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    """Reads one message entry."""
    given = [form for form in KEYS_OF_FORM if form in table]
    if len(given) != 1:
        raise table.error(f"names {len(given)} of `pattern`, `collective`, `list`; name exactly one")
    for key in table:
        if key not in KEYS_OF_FORM[given[0]]:
            raise table.error(f"`{key}` means nothing to a {given[0]}; leave it out")
    if given[0] != "list" and "size" not in table:
        raise table.error("missing key `size`; add it")
    return {"pattern": _pattern, "collective": _collective, "list": _listed}[given[0]](table, endpoints, grid)


def _pattern(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    name = table["pattern"]
    experiment = Experiment(
        "app", None, name, endpoints, table["size"], dtype="u8", root=_root(table, endpoints), grid=grid,
        messages=table["messages"], both_ways=table["both_ways"],
    )  # fmt: skip
    try:
        schedule = schedules.of(experiment)
    except LinkwrightError as error:
        raise table.error(str(error)) from error
    return Exchange({name: schedule}, _arriving(schedule, endpoints))


def _collective(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    name = table["collective"]
    (traits,) = (row for row in _native.collectives() if row["key"] == name)
    root = _root(table, endpoints) if traits["rooted"] else 0
    try:
        return collective(name, table["algorithm"], endpoints, table["size"], table["dtype"], root, grid)
    except (ScheduleError, ShapeError) as error:
        raise table.error(str(error)) from error


def collective(
    name: str, wanted: str, endpoints: int, size: int, dtype: str, root: int, grid: tuple[int, int] | None
) -> Exchange:
    """A collective of `size` bytes by the algorithm `wanted`, or by `best` of all."""
    if wanted == "best" and endpoints > BEST_OF_ALL_RANKS:
        raise ShapeError(f"{endpoints} endpoints are too many to try every algorithm; name one by `algorithm`")
    choices, why = {}, ""
    for algorithm in algorithms_of(name, ("all",) if wanted == "best" else (wanted,)):
        experiment = collective_experiment(
            "app", name, algorithm, endpoints, size, dtype, "sum", root=root, grid=grid
        )  # fmt: skip
        try:
            choices[experiment.algorithm_key] = schedules.of(experiment)
        except (ScheduleError, ShapeError) as error:
            why = str(error)
    if not choices:
        raise ShapeError(why)
    return Exchange(choices, size)


def _listed(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    messages = table["list"]
    for source, target, _ in messages:
        for end in (source, target):
            if end >= endpoints:
                raise table.error(f"list: endpoint {end} does not exist; there are 0 to {endpoints - 1}")
        if source == target:
            raise table.error(
                f"list: a message of {source} goes to its own source; leave it out, or count it as `bytes`"
            )
    return listed(messages, endpoints, table)


def listed(messages: Sequence[tuple[int, int, int]], endpoints: int, table: Table) -> Exchange:
    """Messages that all start at once, each from, to and size."""
    schedule = _schedule_of(table, messages, endpoints)
    return Exchange({f"{len(messages)} messages": schedule}, _arriving(schedule, endpoints))


def _schedule_of(table: Table, messages: Sequence[tuple[int, int, int]], endpoints: int) -> _native.Schedule:
    """All messages in one step, each to its own place at the target, in chunks of a common divisor."""
    chunk = math.gcd(*(size for _, _, size in messages))
    largest = max(size for _, _, size in messages) // chunk
    arrived = [0] * endpoints
    lines = []
    for number, (source, target, size) in enumerate(messages):
        first, length = arrived[target], size // chunk
        arrived[target] += length
        lines.append(
            f"t{number} put {source}:input[0..{length}] -> {target}:output[{first}..{first + length}] replace "
            "src_after=- dst_after=-"
        )
    if max(arrived) + largest > MOST_CHUNKS:
        raise table.error(f"list: sizes have no larger common divisor than {chunk} B; round them to whole KiB")
    head = [
        "linkwright-schedule 1", f"ranks {endpoints}", f"elements {chunk}", "element_bytes 1", "spec pattern",
        f"buffer input {largest}", f"buffer output {max(arrived)}", "edges given", "step 1",
    ]  # fmt: skip
    return _native.Schedule.parse("\n".join([*head, *lines, "end"]) + "\n", table.where)


def _arriving(schedule: _native.Schedule, endpoints: int) -> int:
    """Bytes that arrive at the busiest endpoint."""
    operations = schedule.operations()
    arrived = np.bincount(operations["to"], weights=operations["bytes"], minlength=endpoints)
    return int(arrived.max(initial=0))


def _root(table: Table, endpoints: int) -> int:
    if table["root"] >= endpoints:
        raise table.error(f"root {table['root']} does not exist; there are endpoints 0 to {endpoints - 1}")
    return table["root"]
