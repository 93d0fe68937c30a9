"""The timeline of a network on chip that the NPE view of Tenstorrent's ttnn-visualizer opens.

    tt-metal --noc trace: what each core called--> tt-npe --timeline: what the network did--> ttnn-visualizer

A simulation takes the place of tt-npe, so what is written is the timeline (its format version 1). Each message is a
transfer with the links of its route, from the cycle in which its lane takes it up to that in which it is delivered.
Local operations are not shown, and neither are the signals that a path sends behind its writes.

`link_demand` spreads the bytes of a transfer evenly over its time. Several transfers may ask for more than 100 % of a
link, as in tt-npe; a utilisation counts at most 100 %.

Source: tt_npe/scripts/timeline_schema_v1.json of github.com/tenstorrent/tt-npe; src/model/NPEModel.ts of
github.com/tenstorrent/ttnn-visualizer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwright.errors import UsageError
from linkwright.units import PS_PER_NS

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkwright import _native

VERSION = "1.0.0"
# Chips that the visualizer draws, by their columns and rows.
CHIPS = {(10, 12): "wormhole_b0", (17, 12): "blackhole"}
# What a core calls for each kind of message.
CALLS = {"put": "WRITE", "get": "READ", "multicast": "WRITE_MULTICAST", "notice": "SEMAPHORE_INC"}
# The shortest time step in cycles, and how many a file has at most.
LEAST_CYCLES, MOST_STEPS = 128, 1024
CHIP = 0
Place = tuple[int, int]  # column, row
Link = tuple[int, int, str]  # row, column, type


@dataclass(frozen=True)
class Network:
    """One of the two networks: all messages move the same way along each axis."""

    name: str  # in the file
    steps: tuple[tuple[int, int, str], tuple[int, int, str]]  # (axis, by, type of link), in the order of a route
    order: str  # in a machine file

    def route(self, source: Place, target: Place, grid: tuple[int, int]) -> list[Link]:
        """The links from one place to another; both axes wrap."""
        links = [(source[1], source[0], f"{self.name}_IN")]
        here = list(source)
        for axis, by, kind in self.steps:
            while here[axis] != target[axis]:
                links.append((here[1], here[0], f"{self.name}_{kind}"))
                here[axis] = (here[axis] + by) % grid[axis]
        return [*links, (target[1], target[0], f"{self.name}_OUT")]


NETWORKS = (
    Network("NOC0", ((0, 1, "EAST"), (1, 1, "SOUTH")), "east and south"),
    Network("NOC1", ((1, -1, "NORTH"), (0, -1, "WEST")), "north and west"),
)


@dataclass(frozen=True)
class Transfer:
    """One message on its way."""

    call: str
    bytes: int
    source: Place
    targets: tuple[Place, ...]
    network: Network
    links: list[Link]
    start: int  # cycle
    end: int  # cycle


def check(machine: _native.Machine) -> None:
    """Refuse a machine that the visualizer cannot draw."""
    cure = "use a Tenstorrent chip such as wormhole-n150, or --trace, which suits every machine"
    if machine.fabric != "torus_noc":
        raise UsageError(f"--noc-trace: the fabric of {machine.name} is {machine.fabric}, not torus_noc; {cure}")
    if machine.grid not in CHIPS or len(machine.networks) != len(NETWORKS):
        known = ", ".join(f"{x} x {y} ({name})" for (x, y), name in CHIPS.items())
        raise UsageError(
            f"--noc-trace: {machine.name} is none of the chips that ttnn-visualizer draws: {known} places with two "
            f"one-way networks; {cure}"
        )


def timeline(machine: _native.Machine, placement: Sequence[int], answer: _native.Answer) -> dict[str, Any]:
    """The timeline of a simulation that was asked for `operations` and `links`."""
    _check_ways(machine, answer)
    transfers = list(_transfers(machine, placement, answer))
    if not transfers:
        raise UsageError("--noc-trace: the schedule has no messages, and ttnn-visualizer opens no empty timeline")
    cycles, step = max(transfer.end for transfer in transfers), LEAST_CYCLES
    while cycles > step * MOST_STEPS:
        step *= 2
    links = _mesh_links(machine)
    steps = _steps(transfers, links, step, math.ceil(cycles / step), _number(machine, "fabric.link_bandwidth"))
    return {
        "common_info": {
            "version": VERSION,
            "mesh_device": machine.name,
            "arch": CHIPS[_grid(machine)],
            "cycles_per_timestep": step,
            "congestion_model_name": "linkwright",
            "num_rows": _grid(machine)[1],
            "num_cols": _grid(machine)[0],
            **_summary(steps),
        },
        "chips": {str(CHIP): [0, 0, 0, 0]},
        "noc_transfers": [_entry(number, transfer) for number, transfer in enumerate(transfers)],
        "zones": [],
        "timestep_data": steps,
    }


def _check_ways(machine: _native.Machine, answer: _native.Answer) -> None:
    """Refuse networks that move another way than those of the chips."""
    kinds: dict[str, set[str]] = {name: set() for name in machine.networks}
    for name in answer.links.name:
        words = name.rsplit(" ", 2)
        kinds.setdefault(words[0], set()).add(words[2].upper())
    for name, network in zip(machine.networks, NETWORKS, strict=True):
        if kinds[name] - {"INJECT", "EJECT"} != {kind for _, _, kind in network.steps}:
            raise UsageError(
                f"--noc-trace: {machine.name}: `{name}` does not move {network.order}, as {network.name} of the chip "
                "does; use wormhole-n150, or --trace"
            )


def _transfers(machine: _native.Machine, placement: Sequence[int], answer: _native.Answer) -> Iterator[Transfer]:
    schedule, operations = answer.schedule, answer.operations
    places, networks = _places(schedule, machine, placement), operations.network
    grid, cycle_ps = _grid(machine), PS_PER_NS / _number(machine, "machine.clock")
    table, sets = schedule.operations(), schedule.sets
    starts, ends = operations.issued_ps / cycle_ps, operations.delivered_ps / cycle_ps
    for number, kind in enumerate(table["kind"]):
        if kind not in CALLS:
            continue
        source, to = places[table["from"][number]], int(table["to"][number])
        targets = tuple(places[rank] for rank in (sets[to] if kind == "multicast" else [to]))
        network = NETWORKS[networks[number]]
        routes = [network.route(source, target, grid) for target in targets]
        links = list(dict.fromkeys(link for route in routes for link in route))  # a multicast takes each once
        start = int(starts[number])
        yield Transfer(
            CALLS[kind], int(table["bytes"][number]), source, targets, network, links,
            start, max(start + 1, math.ceil(ends[number])),
        )  # fmt: skip


def _places(schedule: _native.Schedule, machine: _native.Machine, placement: Sequence[int]) -> list[Place]:
    """Where each rank is, and behind them each memory of the schedule."""
    endpoints = machine.endpoints()
    memories = range(machine.ranks, machine.ranks + schedule.memories)
    return [(_known(endpoints[i]["x"]), _known(endpoints[i]["y"])) for i in [*placement, *memories]]


def _entry(number: int, transfer: Transfer) -> dict[str, Any]:
    """A transfer as the file has it: on one chip its route has one segment."""
    ends = {
        "src": _coordinates(transfer.source),
        "dst": [_coordinates(target) for target in transfer.targets],
        "start_cycle": transfer.start,
        "end_cycle": transfer.end,
    }
    segment = {
        "device_id": CHIP,
        **ends,
        "noc_type": transfer.network.name,
        "injection_rate": transfer.bytes / (transfer.end - transfer.start),
        "links": [[CHIP, *link] for link in transfer.links],
    }
    return {
        "id": number, **ends, "total_bytes": transfer.bytes, "noc_event_type": transfer.call,
        "fabric_event_type": False, "zones": "", "route": [segment],
    }  # fmt: skip


def _coordinates(place: Place) -> list[int]:
    return [CHIP, place[1], place[0]]


def _mesh_links(machine: _native.Machine) -> list[Link]:
    """Every link between two places, network by network."""
    columns, rows = _grid(machine)
    return [
        (y, x, f"{network.name}_{kind}")
        for network in NETWORKS for _, _, kind in network.steps for y in range(rows) for x in range(columns)
    ]  # fmt: skip


def _steps(
    transfers: Sequence[Transfer], links: Sequence[Link], step: int, count: int, bytes_per_cycle: float
) -> list[dict[str, Any]]:
    """What each time step of `step` cycles shows."""
    frames = [Frame(number * step, step, links) for number in range(count)]
    for number, transfer in enumerate(transfers):
        per_cycle = 100 * transfer.bytes / (transfer.end - transfer.start) / (step * bytes_per_cycle)
        for frame in frames[transfer.start // step : math.ceil(transfer.end / step)]:
            shared = min(transfer.end, frame.start + step) - max(transfer.start, frame.start)
            frame.add(number, transfer, per_cycle * shared)
    return [frame.entry() for frame in frames]


class Frame:
    """What happens during one time step, in percent of what each link can carry."""

    def __init__(self, start: int, length: int, links: Sequence[Link]) -> None:
        self.start = start
        self._length = length
        self._links = links
        self._active: list[int] = []
        self._demand: dict[Link, float] = {}
        self._multicast: dict[Link, float] = {}

    def add(self, number: int, transfer: Transfer, percent: float) -> None:
        """A transfer that is under way asks for so much of each of its links."""
        self._active.append(number)
        for link in transfer.links:
            self._demand[link] = self._demand.get(link, 0.0) + percent
            if transfer.call == CALLS["multicast"]:
                self._multicast[link] = self._multicast.get(link, 0.0) + percent

    def entry(self) -> dict[str, Any]:
        """The time step as the file has it."""
        percent = np.array([self._demand.get(link, 0.0) for link in self._links])
        multicast = np.array([self._multicast.get(link, 0.0) for link in self._links])
        halves = np.split(percent, len(NETWORKS))
        shown = [[CHIP, *link, round(value, 3)] for link, value in self._demand.items() if value > 0]
        return {
            "start_cycle": self.start,
            "end_cycle": self.start + self._length,
            "active_transfers": self._active,
            "link_demand": shown,
            **_averages(percent),
            "mcast_write_link_util": _averages(multicast)["avg_link_util"],
            "noc": {
                network.name: {**_averages(half), "max_link_demand": round(float(half.max()), 3)}
                for network, half in zip(NETWORKS, halves, strict=True)
            },
        }


def _averages(percent: npt.NDArray[np.float64]) -> dict[str, float]:
    return {
        "avg_link_demand": round(float(percent.mean()), 3),
        "avg_link_util": round(float(percent.clip(max=100).mean()), 3),
    }


def _summary(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Averages and maxima over all time steps."""

    def over(found: Sequence[dict[str, float]]) -> dict[str, float]:
        mean = {
            key: round(sum(one[key] for one in found) / len(found), 3) for key in ("avg_link_demand", "avg_link_util")
        }
        return {**mean, "max_link_demand": max(one["max_link_demand"] for one in found)}

    networks = {network.name: over([step["noc"][network.name] for step in steps]) for network in NETWORKS}
    return {
        "link_demand": _mean([one["avg_link_demand"] for one in networks.values()]),
        "link_util": _mean([one["avg_link_util"] for one in networks.values()]),
        "max_link_demand": max(one["max_link_demand"] for one in networks.values()),
        "mcast_write_link_util": _mean([step["mcast_write_link_util"] for step in steps]),
        "noc": networks,
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3)


def _number(machine: _native.Machine, key: str) -> float:
    """A number of the machine file: the clock in GHz, the width of a link in B/cycle."""
    units = {"machine.clock": "GHz", "fabric.link_bandwidth": "B/cycle"}
    for row in machine.numbers():
        if row["key"] == key and row["unit"] == units[key]:
            return float(row["value"])
    raise UsageError(f"--noc-trace: {machine.name} has no `{key}` in {units[key]}; give it in that unit")


def _grid(machine: _native.Machine) -> tuple[int, int]:
    assert machine.grid is not None
    return machine.grid


def _known(coordinate: int | None) -> int:
    assert coordinate is not None, "every endpoint of a torus has a place"
    return coordinate
