"""`kind = "supersteps"`: rounds in which every endpoint works, then messages travel, in step.

    superstep   | work: max(flops / rate, bytes / rate) or a stated time | message 1 | message 2 | ...
                  the same at every endpoint                               simulated, one after the other

This is Valiant's bulk-synchronous model, except that an exchange is a schedule on the machine's own fabric, with its
routes, ports and start-ups, instead of h relations times a gap. Work and messages never overlap and no endpoint runs
ahead of the others, so the forecast is an upper bound for programs in which they do.

Memory must hold at once: what the program holds, what a superstep adds, and the messages of one entry (for an
in-place collective its array, otherwise what arrives at the busiest endpoint).
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright import _native
from linkwright.advise.predict import Forecast, Part, Room, head_keys
from linkwright.advise.predict.messages import MESSAGE, Exchange, Where, exchange
from linkwright.advise.predict.rates import DTYPES, Rates, capacity_bytes
from linkwright.ask.question import MAX_RANKS
from linkwright.base.toml import AMOUNT, SIZE, TEXT, TIME, Choice, Key, Many, OneTable, Table, Tables, whole
from linkwright.machines.variant import grid_of

# More rounds are no program that ends.
MOST_TIMES = 10**12
_COUNT = whole(1, MAX_RANKS)
HEAD = head_keys(
    "supersteps",
    endpoints=Key(_COUNT, "endpoints that take part; default: all"),
    grid=Key(
        Many(whole(1, MAX_RANKS), 2, 2, words="[columns, rows], such as [8, 8]"),
        "endpoints as a grid of columns and rows",
    ),
    times=Key(whole(1, MOST_TIMES), "number of times that the whole list runs", default=1),
    memory=Key(SIZE, "bytes that the program holds at each endpoint", default=0),
    path=Key(TEXT, "path of the machine file"),
    flops_per_s=Key(AMOUNT, "arithmetic of one endpoint; default: what the machine's probes answer"),
    bytes_per_s=Key(AMOUNT, "memory rate of one endpoint; default: what the machine's probes answer"),
)
STEP = {
    "name": Key(TEXT, "name of the superstep", required=True),
    "times": Key(whole(1, MOST_TIMES), "number of times that it runs", default=1),
    "memory": Key(SIZE, "bytes that it holds in addition to those of [app]", default=0),
    "time": Key(TIME, "time of the work; or state `flops` and `bytes`"),
    "flops": Key(AMOUNT, "arithmetic operations of one endpoint", default=0.0),
    "precision": Key(Choice(DTYPES), "precision of the arithmetic", default="single"),
    "bytes": Key(SIZE, "bytes that one endpoint reads", default=0),
    "message": Key(Tables(MESSAGE), "messages, one entry after the other", default=()),
}
PROGRAM = {
    "app": Key(OneTable(HEAD), "the program", required=True),
    "superstep": Key(Tables(STEP), "rounds of work and messages", required=True),
}


@dataclass(frozen=True)
class Step:
    """One superstep of the file."""

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
    memory, times = head["memory"], head["times"]
    machine, endpoints, grid = _sized(head, machine)
    rates = Rates(machine, head)
    place = Where(machine, endpoints, grid, head["path"])
    steps = [_step(table, rates, memory, place) for table in document["superstep"]]
    fullest = max(steps, key=lambda step: step.memory_bytes + step.buffer_bytes)
    needed = memory + fullest.memory_bytes + fullest.buffer_bytes
    room = Room(needed, capacity_bytes(machine), fullest.name)
    parts = [] if room.fits is False else [part for step in steps for part in _parts(step, times, machine)]
    return Forecast(head["name"], "supersteps", machine.name, endpoints, room, parts)


def _sized(head: Table, machine: _native.Machine) -> tuple[_native.Machine, int, tuple[int, int] | None]:
    """The machine with its endpoints, how many of them take part, and their grid."""
    grid = head["grid"]
    if machine.open_size == "grid":
        if grid is None:
            raise head.error(f"machine {machine.name} takes any grid of endpoints; give `grid = [columns, rows]`")
        machine = machine.with_grid(*grid)
    elif machine.open_size:
        stated = grid[0] * grid[1] if grid else head["endpoints"]
        if stated is None:
            raise head.error(f"machine {machine.name} takes any number of endpoints; add `endpoints`")
        machine = machine.with_endpoints(stated)
    everyone = grid[0] * grid[1] if grid else machine.ranks
    endpoints = head["endpoints"] or everyone
    if grid and endpoints != everyone:
        raise head.error(
            f"endpoints is {endpoints} and the grid {grid[0]} x {grid[1]} has {everyone}; give one of them"
        )
    if endpoints > machine.ranks:
        raise head.error(f"endpoints is {endpoints}; {machine.name} has {machine.ranks}")
    return machine, endpoints, grid or grid_of(machine, endpoints)


def _step(table: Table, rates: Rates, held: int, place: Where) -> Step:
    return Step(
        table["name"],
        table["times"],
        _work(table, rates, held + table["memory"]),
        table["memory"],
        [exchange(entry, place) for entry in table["message"]],
    )


def _work(table: Table, rates: Rates, working_set: int) -> dict[str, float]:
    """Work of one endpoint: the longer of arithmetic and memory, as on a roofline."""
    if "time" in table:
        if "flops" in table or "bytes" in table:
            raise table.error("gives `time` and also `flops` or `bytes`; state one or the other")
        return {"compute": table["time"]}
    compute = rates.flops_ns(table["flops"], table["precision"])
    moved = table["bytes"]
    memory = rates.bytes_ns(moved, working_set or moved)
    return {"compute": compute} if compute >= memory else {"memory": memory}


def _parts(step: Step, times: int, machine: _native.Machine) -> list[Part]:
    parts = []
    if sum(step.work_ns.values()) > 0:
        parts.append(Part(f"{step.name}: work", times * step.times, step.work_ns))
    for one in step.exchanges:
        choice, _, causes = one.simulate(machine)
        parts.append(Part(f"{step.name}: messages", times * step.times, causes, choice, messages=True))
    return parts
