"""What endpoints send each other, as schedules that are simulated on the machine.

One `[[superstep.message]]` is one of

    pattern = "neighbour"                  a traffic pattern, `size` bytes for each message
    collective = "allreduce"               by `algorithm`, or by the best of all
    list = [[0, 1, "4K"], [1, 2, "4K"]]    from, to, size: all at once

and starts when everything before it has finished everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linkwright import _native, schedules, units
from linkwright.errors import LinkwrightError, ScheduleError, ShapeError, UsageError, unknown
from linkwright.experiment import DTYPES, Experiment
from linkwright.suite.expand import algorithms_of, collective_experiment

if TYPE_CHECKING:
    from linkwright.predict.document import Table

# Beyond this many endpoints some algorithms have more messages than anybody waits for.
BEST_OF_ALL_RANKS = 1024
MOST_CHUNKS = 1 << 20
FORMS = ("pattern", "collective", "list")


@dataclass(frozen=True)
class Exchange:
    """One message entry: schedules that do the same, the fastest of which counts."""

    choices: dict[str, _native.Schedule]  # what was chosen, in words -> its schedule
    buffer_bytes: int  # room that it needs at the busiest endpoint

    def simulate(self, machine: _native.Machine, path: str | None) -> tuple[str, float, dict[str, float]]:
        """(choice, time, time by cause) of the fastest, in ns."""
        found = []
        for name, schedule in self.choices.items():
            if len(self.choices) > 1 and schedule.memories > machine.memories:
                continue
            lowered = schedules.lowered(schedule, machine, path)
            table = _native.simulate(lowered, machine, {"path": path})
            found.append((table["makespan_ps"] / 1e3, name, table["critical"]))
        time_ns, name, shares = min(found, key=lambda one: one[0])
        return name, time_ns, {cause: share * time_ns for cause, share in shares.items()}


def exchange(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    """Reads one message entry."""
    given = [form for form in FORMS if table.has(form)]
    if len(given) != 1:
        raise table.error(f"names {len(given)} of `pattern`, `collective`, `list`; name exactly one")
    made = {"pattern": _pattern, "collective": _collective, "list": _listed}[given[0]](table, endpoints, grid)
    table.end()
    return made


def _pattern(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    name, size, count = table.text("pattern"), table.size("size"), table.count("messages", 1)
    experiment = Experiment(
        "app", None, name, endpoints, size, dtype="u8", root=_root(table, endpoints), grid=grid,
        messages=count, both_ways=table.flag("both_ways"),
    )  # fmt: skip
    try:
        schedule = schedules.of(experiment)
    except LinkwrightError as error:
        raise table.error(str(error)) from error
    return Exchange({name: schedule}, _arriving(schedule, endpoints))


def _collective(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    name, size, dtype = table.text("collective"), table.size("size"), table.choice("dtype", tuple(DTYPES), "f32")
    traits = {row["key"]: row for row in _native.collectives()}
    if name not in traits:
        raise unknown("collective", name, traits, where=table.where)
    wanted = table.text("algorithm", "best")
    if wanted == "best" and endpoints > BEST_OF_ALL_RANKS:
        raise table.error(f"{endpoints} endpoints are too many to try every algorithm; name one by `algorithm`")
    root = _root(table, endpoints) if traits[name]["rooted"] else 0
    choices, why = {}, ""
    for algorithm in algorithms_of(name, ("all",) if wanted == "best" else (wanted,)):
        experiment = collective_experiment(
            "app", name, algorithm, endpoints, size, dtype, "sum", root=root, grid=grid
        )  # fmt: skip
        try:
            choices[f"{name}/{algorithm}"] = schedules.of(experiment)
        except (ScheduleError, ShapeError) as error:
            why = str(error)
    if not choices:
        raise table.error(why)
    return Exchange(choices, size)


def _listed(table: Table, endpoints: int, grid: tuple[int, int] | None) -> Exchange:
    messages = list(_messages(table, endpoints))
    if not messages:
        raise table.error("list is empty; give [from, to, size] entries, or leave the message out")
    schedule = _schedule_of(table, messages, endpoints)
    return Exchange({f"{len(messages)} messages": schedule}, _arriving(schedule, endpoints))


def _messages(table: Table, endpoints: int) -> Iterator[tuple[int, int, int]]:
    for entry in table.values("list"):
        if not (isinstance(entry, list) and len(entry) == 3 and all(type(end) is int for end in entry[:2])):
            raise table.error(f'list: {entry!r} is no message; write [from, to, size], such as [0, 1, "4K"]')
        source, target, size = entry
        for end in (source, target):
            if not 0 <= end < endpoints:
                raise table.error(f"list: endpoint {end} does not exist; there are 0 to {endpoints - 1}")
        if source == target:
            raise table.error(f"list: {entry!r} goes to its own source; leave it out, or count it as `bytes`")
        try:
            bytes_ = units.parse_size(size) if isinstance(size, str) else 0
        except UsageError as error:
            raise table.error(f"list: {error}") from error
        if bytes_ == 0:
            raise table.error(f'list: size {size!r} of {entry!r} is none; write a text such as "4K"')
        yield source, target, bytes_


def _schedule_of(table: Table, messages: list[tuple[int, int, int]], endpoints: int) -> _native.Schedule:
    """All messages in one step, each with a place of its own at its target, in chunks of a common divisor."""
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
    root = table.count("root", 0, least=0)
    if root >= endpoints:
        raise table.error(f"root {root} does not exist; there are endpoints 0 to {endpoints - 1}")
    return root
