"""A described machine on one page: what a message costs between its endpoints, level by level.

The numbers are those of the model, not of the file. Single messages are simulated through the machine's fabric and
path, on an idle machine, between rank 0 and an endpoint that shares with it all outer levels but not this one.

    latency        half a round trip of the smallest message, nearest and farthest such endpoint
    rate           of large messages: bytes added over time added from the second largest to the largest
    n_1/2          the size at which a message reaches half of that rate
    per message    what one more small message costs in a stream of them

These four sum up a machine (Hockney's r_inf and n_1/2, LogP's L and g) without load; `linkwright dissect` covers
load. What an endpoint does alone comes from the models of the probes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.advise.predict.rates import capacity_bytes, product_flops_per_s, read_bytes_per_s
from linkwright.ask.answer import How, ask
from linkwright.base.errors import WaivedError
from linkwright.base.units import PS_PER_NS

SMALL_BYTES = 8
MOST_BYTES = 1 << 24
STREAM = (16, 64)
# Endpoints of one level that are tried for the nearest and the farthest.
CANDIDATES = 64
RATE_SETTLES = 0.01
# A message has a buffer at either end, so it may fill at most a quarter of a memory.
SHARE_OF_MEMORY = 4
# What an endpoint reads to show the rate of its memory.
READ_BLOCK = 1 << 16


@dataclass(frozen=True)
class Level:
    """Costs of a message that crosses this level and no outer one; times in ns, rate in bytes per ns."""

    name: str
    units: int
    nearest: tuple[str, str]
    farthest: tuple[str, str]
    latency_ns: float
    farthest_latency_ns: float
    rate: float
    half_size_bytes: int
    per_message_ns: float


def smallest(machine: _native.Machine) -> _native.Machine:
    """The machine, or one of open size with just enough endpoints to show the cost of a message."""
    if machine.open_size == "grid":
        return machine.with_grid(4, 4)
    return machine.with_endpoints(2) if machine.open_size else machine


def levels(machine: _native.Machine) -> list[Level]:
    """The rules of every level that has more than one unit, innermost first."""
    counts = machine.levels()
    if machine.open_size:
        machine = smallest(machine)
        counts = [(counts[-1][0], machine.ranks)]
    names = [endpoint["name"] for endpoint in machine.endpoints()]
    found, stride = [], 1
    for name, count in reversed(counts):
        if count > 1:
            found.append(_level(machine, name, names, [i * stride for i in _spread(count)], count))
        stride *= count
    return found


def _spread(count: int) -> list[int]:
    """Units 1 and on, at most `CANDIDATES` of them, the first and the last included."""
    if count - 1 <= CANDIDATES:
        return list(range(1, count))
    return sorted({1 + i * (count - 2) // (CANDIDATES - 1) for i in range(CANDIDATES)})


def _level(machine: _native.Machine, name: str, names: Sequence[str], others: list[int], units: int) -> Level:
    latencies = {other: _time_ns(machine, "ping_pong", other, SMALL_BYTES, 1) / 2 for other in others}
    near, far = min(others, key=latencies.get), max(others, key=latencies.get)
    rate = _rate(machine, near)
    few, many = (_stream_ns(machine, near, SMALL_BYTES, count) for count in STREAM)
    return Level(
        name,
        units,
        (names[0], names[near]),
        (names[0], names[far]),
        latencies[near],
        latencies[far],
        rate,
        _half_size(machine, near, rate),
        (many - few) / (STREAM[1] - STREAM[0]),
    )


def _stream_ns(machine: _native.Machine, other: int, size: int, count: int) -> float:
    return _time_ns(machine, "pairs", other, size, count)


def _time_ns(machine: _native.Machine, pattern: str, other: int, size: int, count: int) -> float:
    schedule = _native.Schedule.pattern(pattern, 2, size, count=count)
    return ask(machine, schedule, How(placement=(0, other))).time.ns


def _rate(machine: _native.Machine, other: int) -> float:
    """Bytes per ns that a longer message adds, once doubling it again no longer changes the rate."""
    capacity = capacity_bytes(machine)
    most = MOST_BYTES if capacity is None else min(MOST_BYTES, capacity // SHARE_OF_MEMORY)
    size, last = 1024, 0.0
    before = _stream_ns(machine, other, size, 1)
    while 2 * size <= most:
        after = _stream_ns(machine, other, 2 * size, 1)
        rate = size / (after - before)
        if size > 1 << 16 and abs(rate - last) <= RATE_SETTLES * rate:
            return rate
        size, before, last = 2 * size, after, rate
    return last


def _half_size(machine: _native.Machine, other: int, rate: float) -> int:
    """The smallest size whose message has half the rate, by bisection."""
    low, high = 0, SMALL_BYTES
    while high / _stream_ns(machine, other, high, 1) < rate / 2:
        low, high = high, 2 * high
        if high > MOST_BYTES:
            return high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if middle / _stream_ns(machine, other, middle, 1) < rate / 2:
            low = middle
        else:
            high = middle
    return high


def alone(machine: _native.Machine) -> dict[str, float]:
    """The rates of an endpoint, or of its chip, without messages, as far as the file states them."""
    machine = smallest(machine)
    questions = {
        "load_ns": lambda: _native.model_probe(machine, "memory_latency", {})["time_ps"] / PS_PER_NS,
        "read_bytes_per_s": lambda: read_bytes_per_s(machine, READ_BLOCK),
        "half_flops_per_s": lambda: product_flops_per_s(machine, "half")[0],
        "single_flops_per_s": lambda: product_flops_per_s(machine, "single")[0],
    }
    found = {}
    for key, question in questions.items():
        try:
            found[key] = question()
        except WaivedError:
            continue
    return found
