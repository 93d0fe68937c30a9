"""`kind = "supersteps"`: rounds in which every endpoint works, then messages travel, in step.

    superstep   | work: max(flops / rate, bytes / rate) or a stated time | message 1 | message 2 | ...
                  the same at every endpoint                               simulated, one after the other

This is Valiant's bulk-synchronous model with one difference: an exchange is not h relations times a gap
but a schedule on the machine's own fabric, with its routes, ports and start-ups. Work and messages never
overlap, and no endpoint runs ahead of the others, so the forecast is an upper bound for programs that do.

Memory: what the program holds, what a superstep holds besides, and room for the messages of one entry (a
collective in place: its array; everything else: what arrives at the busiest endpoint) must fit at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright.predict import Forecast, Part, Room
from linkwright.predict.messages import Exchange, exchange
from linkwright.predict.rates import DTYPES, Rates, capacity_bytes

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.predict.document import Table


@dataclass(frozen=True)
class Step:
    """One superstep as it stands in the file."""

    name: str
    times: int
    work_ns: dict[str, float]  # cause -> time
    memory_bytes: int
    exchanges: list[Exchange]

    @property
    def buffer_bytes(self) -> int:
        """Room for the largest exchange."""
        return max((one.buffer_bytes for one in self.exchanges), default=0)


def forecast(document: Table, head: Table, machine: _native.Machine) -> Forecast:
    """The forecast of the program in `document`, whose table `[app]` is `head`."""
    name, path = head.text("name"), head.text("path") if head.has("path") else None
    head.text("summary", "-")
    memory, times = head.size("memory", "0"), head.count("times", 1)
    machine, endpoints, grid = _sized(head, machine)
    rates = Rates(machine, head)
    head.end()
    steps = [_step(table, rates, memory, endpoints, grid) for table in document.tables("superstep")]
    document.end()
    if not steps:
        raise head.error("the program has no superstep; add [[superstep]]")
    fullest = max(steps, key=lambda step: step.memory_bytes + step.buffer_bytes)
    needed = memory + fullest.memory_bytes + fullest.buffer_bytes
    room = Room(needed, capacity_bytes(machine), fullest.name)
    parts = [] if room.fits is False else [part for step in steps for part in _parts(step, times, machine, path)]
    return Forecast(name, "supersteps", machine.name, endpoints, room, parts)


def _sized(head: Table, machine: _native.Machine) -> tuple[_native.Machine, int, tuple[int, int] | None]:
    """The machine with its endpoints, how many of them take part, and their grid."""
    grid = None
    if head.has("grid"):
        sides = head.values("grid")
        if len(sides) != 2 or not all(type(side) is int and side > 0 for side in sides):
            raise head.error(f"grid is {sides!r}; write [columns, rows], such as [8, 8]")
        grid = (sides[0], sides[1])
    if machine.open_size == "grid":
        if grid is None:
            raise head.error(f"machine {machine.name} has any grid of endpoints; give `grid = [columns, rows]`")
        machine = machine.with_grid(*grid)
    elif machine.open_size:
        asked = grid[0] * grid[1] if grid else head.count("endpoints")
        machine = machine.with_endpoints(asked)
    everyone = grid[0] * grid[1] if grid else machine.ranks
    endpoints = head.count("endpoints", everyone)
    if grid and endpoints != everyone:
        raise head.error(
            f"endpoints is {endpoints} and the grid {grid[0]} x {grid[1]} has {everyone}; give one of them"
        )
    if endpoints > machine.ranks:
        raise head.error(f"endpoints is {endpoints}; {machine.name} has {machine.ranks}")
    return machine, endpoints, grid or (machine.rank_grid if endpoints == machine.ranks else None)


def _step(table: Table, rates: Rates, held: int, endpoints: int, grid: tuple[int, int] | None) -> Step:
    name, times = table.text("name"), table.count("times", 1)
    memory = table.size("memory", "0")
    step = Step(
        name,
        times,
        _work(table, rates, held + memory),
        memory,
        [exchange(entry, endpoints, grid) for entry in table.tables("message", [])],
    )
    table.end()
    return step


def _work(table: Table, rates: Rates, working_set: int) -> dict[str, float]:
    """What the endpoint itself does: the longer of arithmetic and memory counts, as on a roofline."""
    if table.has("time"):
        if table.has("flops") or table.has("bytes"):
            raise table.error("gives `time` and also `flops` or `bytes`; the time of the work is one or the other")
        return {"compute": table.time_ns("time")}
    precision = table.choice("precision", tuple(DTYPES), "single")
    compute = rates.flops_ns(table.amount("flops", 0.0), precision)
    moved = table.size("bytes", "0")
    memory = rates.bytes_ns(moved, working_set or moved)
    return {"compute": compute} if compute >= memory else {"memory": memory}


def _parts(step: Step, times: int, machine: _native.Machine, path: str | None) -> list[Part]:
    parts = []
    if sum(step.work_ns.values()) > 0:
        parts.append(Part(f"{step.name}: work", times * step.times, step.work_ns))
    for one in step.exchanges:
        choice, _, causes = one.simulate(machine, path)
        parts.append(Part(f"{step.name}: messages", times * step.times, causes, choice))
    return parts
