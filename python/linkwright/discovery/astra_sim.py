"""ASTRA-sim's networks: the YAML of its analytical backend, and the text of its ns-3 backend.

    topology: [ Ring, FullyConnected, Switch ]     9 1 8                    nodes, switches, links
    npus_count: [ 2, 8, 4 ]                        8                        which of them are switches
    bandwidth: [ 200, 100, 50 ]   # GB/s           8 0 400Gbps 0.0005ms 0   a link: ends, rate, delay, error rate
    latency: [ 50, 500, 2000 ]    # ns             8 1 400Gbps 0.0005ms 0

Of the analytical file, each dimension joins the NPUs that differ in its coordinate alone, the first dimension fastest:
a ring, a mesh of all with all, or a switch with a link to each. Rings alone are a torus. Rates are per link and
direction, latencies per link, so a message through a switch takes two. Messages pass other NPUs where dimensions are
several. ASTRA-sim's `GB` are 2^30 bytes.

Sources: ASTRA-sim, astra-network-analytical (network parser and building blocks) and astra-network-ns3.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

from linkwright.discovery import yaml_text
from linkwright.discovery.planes import Bundles, merged
from linkwright.discovery.wiring import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    MOST_SWITCHES,
    Axis,
    Edge,
    Links,
    Number,
    Wiring,
    bounded,
)
from linkwright.errors import FileError, unknown

KINDS = ("Ring", "FullyConnected", "Switch")
KEYS = ("topology", "npus_count", "bandwidth", "latency")
MOST_DIMENSIONS = 6
_SOURCE = "ASTRA-sim network file"


def recognises(text: str) -> bool:
    """Whether a text is the YAML of the analytical backend."""
    return all(re.search(rf"^{key}\s*:", text, re.MULTILINE) for key in ("topology", "npus_count"))


def read(text: str, file: str) -> Wiring:
    """The network of a file of the analytical backend."""
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
        raise FileError(
            f"{file}: {uneven[0]} has {len(_each(table, uneven[0], file))} values for {len(kinds)} dimensions; give one each"
        )
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
        description="Shape, rates and latencies are from a network file of ASTRA-sim's analytical backend. It states no "
        "cost of software, so a message costs nothing besides them.",
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
        edges = [edge for i, group in enumerate(groups) for edge in _joined(kind, group, f"{name} switch {i}")]
        wiring.links[name] = Links(rate, delay, f"{_SOURCE}: {kind}", edges)
        if kind == "Switch":
            wiring.switches += [f"{name} switch {i}" for i in range(len(groups))]


def _joined(kind: str, group: list[int], switch: str) -> list[Edge]:
    """The links among the NPUs of a group."""
    names = [f"NPU {i}" for i in group]
    if kind == "Switch":
        return [(switch, name) for name in names]
    if kind == "FullyConnected":
        return list(itertools.combinations(names, 2))
    return [*itertools.pairwise(names), *([(names[-1], names[0])] if len(names) > 2 else [])]


_LINK = re.compile(
    r"(\d{1,7})\s+(\d{1,7})\s+(\d{1,9}(?:\.\d{1,9})?)([GMkK]?bps)\s+(\d{1,9}(?:\.\d{1,9})?)(ms|us|ns|s)\s+(\S+)",
    re.ASCII,
)
_HEAD = re.compile(r"\s*(\d{1,7})[ \t]+(\d{1,7})[ \t]+(\d{1,7})[ \t]*(?:\n|$)", re.ASCII)
_BPS = {"bps": "0.000000001", "kbps": "0.000001", "Kbps": "0.000001", "Mbps": "0.001", "Gbps": "1"}


def recognises_ns3(text: str) -> bool:
    """Whether a text is a topology of the ns-3 backend."""
    return _HEAD.match(text) is not None and any(_LINK.fullmatch(line.strip()) for line in text.splitlines()[1:50])


def read_ns3(text: str, file: str) -> Wiring:
    """The network of a topology of the ns-3 backend."""
    head = _HEAD.match(text)
    if not head:
        raise FileError(f"{file}: line 1 is not the number of nodes, switches and links")
    nodes, switch_count, link_count = map(int, head.groups())
    bounded(nodes, MOST_ENDPOINTS + MOST_SWITCHES, file, "nodes")
    lines = [(i, line.strip()) for i, line in enumerate(text.split("\n"), 1) if line.strip()][1:]
    ids = lines.pop(0)[1].split() if switch_count and lines else []
    switches = {int(word) for word in ids if re.fullmatch(r"\d{1,7}", word, re.ASCII) and int(word) < nodes}
    if len(switches) != switch_count or len(ids) != switch_count:
        raise FileError(f"{file}: line 2 names {len(switches)} switches among {nodes} nodes, not {switch_count}")
    if len(lines) != link_count:
        raise FileError(f"{file}: {len(lines)} lines of links, and the first line says {link_count}; cut file?")
    if nodes - switch_count < 2:
        raise FileError(f"{file}: {nodes - switch_count} nodes that are no switches; a machine has at least two")
    bundles: Bundles = defaultdict(Counter)
    for number, line in lines:
        _ns3_link(line, f"{file}: line {number}", nodes, switches, bundles)
    return _ns3_wired(nodes, switches, bundles, file)


def _ns3_link(line: str, where: str, nodes: int, switches: set[int], bundles: Bundles) -> None:
    match = _LINK.fullmatch(line)
    if not match:
        raise FileError(f"{where}: `{line[:80]}` is no link; write `0 8 400Gbps 0.0005ms 0`")
    a, b = int(match[1]), int(match[2])
    if a >= nodes or b >= nodes or a == b:
        raise FileError(f"{where}: a link from {a} to {b}; write two of the nodes 0..{nodes - 1}")
    rate = Decimal(match[3]) * Decimal(_BPS[match[4]])
    if not 0 < rate < 10**9:
        raise FileError(f"{where}: a rate of {match[3]}{match[4]}; write one above 0, below 10^9Gbps")
    names = [f"switch {i}" if i in switches else f"node {i}" for i in (a, b)]
    pair = (names[0], names[1])
    kinds = bundles[pair if pair in bundles or pair[::-1] not in bundles else pair[::-1]]
    kinds[rate, Decimal(match[5]), match[6]] += 1


def _ns3_wired(nodes: int, switches: set[int], bundles: Bundles, file: str) -> Wiring:
    endpoints = [f"node {i}" for i in range(nodes) if i not in switches]
    names = [f"switch {i}" for i in sorted(switches)]
    plane, wide = merged(endpoints, names, bundles)
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{len(endpoints)} nodes and {len(names)} switches of an ns-3 topology",
        description="Links, rates and delays are from a topology of ASTRA-sim's ns-3 backend. Switches that join the "
        "same switches stand as one. It states no cost of software; protocols and queues of ns-3 are not modelled.",
        sources=[f"ASTRA-sim ns-3 topology: {file}"],
        endpoints=endpoints,
        endpoint_source="ns-3 topology: nodes that are no switches",
        start=Number(Decimal(0), "ns", "derived", "the topology states no cost besides links: none"),
        levels=[("node", len(endpoints))],
        switches=list(dict.fromkeys(plane[name] for name in names)),
        relays=True,
    )
    for (a, b), kinds in wide.items():
        _bundle(wiring, a, b, kinds)
    return wiring


def _bundle(wiring: Wiring, a: str, b: str, kinds: Counter) -> None:
    """All links between two nodes as one, as wide as they are together, with the delay of the slowest."""
    total = sum(rate * count for (rate, _, _), count in kinds.items())
    delay, unit = max(
        ((delay, unit) for _, delay, unit in kinds),
        key=lambda one: one[0] * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[one[1]],
    )
    name = f"{format(total.normalize(), 'f')} Gb_s {format(delay.normalize(), 'f')} {unit}"
    if name not in wiring.links:
        count = sum(kinds.values())
        source = "ns-3 topology" if count == 1 else f"ns-3 topology: {count} links together"
        rate = Number(total, "Gb/s", "documented" if count == 1 else "derived", source)
        wiring.links[name] = Links(rate, Number(delay, unit, "documented", "ns-3 topology"), "ns-3 topology")
    wiring.links[name].edges.append((a, b))
