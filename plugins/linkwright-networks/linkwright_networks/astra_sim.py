"""Read ASTRA-sim networks: the YAML of its analytical backend.

    topology: [ Ring, FullyConnected, Switch ]
    npus_count: [ 2, 8, 4 ]
    bandwidth: [ 200, 100, 50 ]   # GB/s
    latency: [ 50, 500, 2000 ]    # ns

Each dimension joins the NPUs that differ only in its coordinate, the first dimension varying fastest: a ring, a full
mesh, or a switch with a link to each. If all dimensions are rings, the network is a torus. Rates are for each link and
direction, and latencies for each link, so a message through a switch takes two. With several dimensions, other NPUs
forward messages. ASTRA-sim's `GB` is 2^30 bytes.

Source: ASTRA-sim, astra-network-analytical (its parser and building blocks).
"""

from __future__ import annotations

import itertools
import math
import re
from decimal import Decimal
from typing import Any

from linkwright.network_api import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    Axis,
    Edge,
    FileError,
    Links,
    Network,
    Number,
    Wiring,
    bounded,
    unknown,
)

from . import yaml_text

KINDS = ("Ring", "FullyConnected", "Switch")
KEYS = ("topology", "npus_count", "bandwidth", "latency")
MOST_DIMENSIONS = 6
_SOURCE = "ASTRA-sim network file"


def recognises(text: str) -> bool:
    """Whether a text is YAML for the analytical backend."""
    return all(re.search(rf"^{key}\s*:", text, re.MULTILINE) for key in ("topology", "npus_count"))


def read(text: str, file: str) -> Wiring:
    """Read the network of a file for the analytical backend."""
    table = yaml_text.load(text, file)
    if strange := [key for key in table if key not in KEYS]:
        raise unknown("key", str(strange[0])[:80], KEYS, where=file)
    if missing := [key for key in KEYS if key not in table]:
        raise FileError(f"{file}: missing key `{missing[0]}`; add it, with one value for each dimension")
    kinds = _each(table, "topology", file)
    if not 1 <= len(kinds) <= MOST_DIMENSIONS:
        raise FileError(f"{file}: topology: {len(kinds)} dimensions; 1 to {MOST_DIMENSIONS} are described")
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("topology", str(kind)[:80], KINDS, where=file)
    if uneven := [key for key in KEYS if len(_each(table, key, file)) != len(kinds)]:
        count = len(_each(table, uneven[0], file))
        raise FileError(f"{file}: {uneven[0]} has {count} values, and topology {len(kinds)}; give as many")
    sides = [_side(value, file) for value in _each(table, "npus_count", file)]
    rates = [_number(value, "bandwidth", "GiB/s", file) for value in _each(table, "bandwidth", file)]
    delays = [_number(value, "latency", "ns", file) for value in _each(table, "latency", file)]
    bounded(math.prod(sides), MOST_ENDPOINTS, file, "NPUs")
    if math.prod(sides) < 2:
        raise FileError(f"{file}: npus_count: a single NPU; a machine has at least two")
    used = [dim for dim in zip(kinds, sides, rates, delays, strict=True) if dim[1] > 1]
    wiring = _begun(file, used)
    _dimensions(wiring, used, file)
    return wiring


def _each(table: dict[str, Any], key: str, file: str) -> list[Any]:
    value = table[key]
    return value if isinstance(value, list) else [value]


def _side(value: object, file: str) -> int:
    if type(value) is not int or value < 1:
        raise FileError(f"{file}: npus_count is `{str(value)[:80]}`; write whole numbers, at least 1")
    return bounded(value, MOST_ENDPOINTS, file, "NPUs")


def _number(value: object, key: str, unit: str, file: str) -> Number:
    least = 0 if key == "latency" else 1e-6
    if type(value) not in (int, float) or not least <= value < 1e9 or not math.isfinite(value):  # type: ignore[operator]
        raise FileError(
            f"{file}: {key} is `{str(value)[:80]}`; write a number of {unit}, at least {least:g}, below 10^9"
        )
    return Number(Decimal(str(value)), unit, "documented", f"{_SOURCE}: {key}")


def _begun(file: str, used: list[tuple]) -> Wiring:
    sides = [side for _, side, _, _ in used]
    shape = " x ".join(f"{kind}({side})" for kind, side, _, _ in used)
    count = math.prod(sides)
    return Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{count} NPUs: {shape}",
        description="Shape, rates and latencies are from a network file of ASTRA-sim's analytical backend. It states "
        "no cost of software, so a message costs nothing besides them.",
        sources=[f"ASTRA-sim network file: {file}"],
        endpoints=[f"NPU {i}" for i in range(count)],
        endpoint_source=f"{_SOURCE}: npus_count",
        start=Number(Decimal(0), "ns", "derived", "the network file states no cost besides links: none, as there"),
        levels=[(f"dimension {len(sides) - i}", side) for i, side in enumerate(reversed(sides))],
        relays=len(used) > 1 or used[0][0] == "Ring",
    )


def _dimensions(wiring: Wiring, used: list[tuple], file: str) -> None:
    sides = [side for _, side, _, _ in used]
    if all(kind == "Ring" for kind, *_ in used) and len(used) > 1:
        wiring.torus = [Axis(side, rate, delay, True) for _, side, rate, delay in used]
        wiring.endpoints = ["NPU ({at})"]
        wiring.levels = [("NPU", math.prod(sides))]
        return
    for number, (kind, side, rate, delay) in enumerate(used):
        stride = math.prod(sides[:number])
        others = [range(0, stride), range(0, math.prod(sides), stride * side)]
        groups = [[low + high + i * stride for i in range(side)] for high, low in itertools.product(*reversed(others))]
        each = {"Ring": side, "Switch": side, "FullyConnected": side * (side - 1) // 2}[kind]
        bounded(each * len(groups), MOST_LINKS, file, "links")
        name = f"dimension {number + 1}"
        joined = [_joined(kind, group, f"{name} switch {i}") for i, group in enumerate(groups)]
        # Edges in the order of NPU numbers: within each group if it has consecutive NPUs, else from group to group.
        edges = list(itertools.chain(*(joined if stride == 1 else zip(*joined, strict=True))))
        wiring.links[name] = Links(rate, delay, f"{_SOURCE}: {kind}", edges)
        if kind == "Switch":
            wiring.switches += [f"{name} switch {i}" for i in range(len(groups))]


def _joined(kind: str, group: list[int], switch: str) -> list[Edge]:
    """Return the links among the NPUs of a group."""
    names = [f"NPU {i}" for i in group]
    if kind == "Switch":
        return [(switch, name) for name in names]
    if kind == "FullyConnected":
        return list(itertools.combinations(names, 2))
    return [*itertools.pairwise(names), *([(names[-1], names[0])] if len(names) > 2 else [])]


NETWORK = Network("astra-sim", "ASTRA-sim's analytical network (YAML)", recognises, read)
