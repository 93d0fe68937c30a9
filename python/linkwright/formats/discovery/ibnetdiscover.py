"""The output of `ibnetdiscover`: every switch and adapter of an InfiniBand subnet, with its links.

    Switch  65 "S-2c5eab0300b87b40"  # "leaf 4" enhanced port 0 lid 73 lmc 0
    [1]     "H-e09d7303007a4bd8"[1](e09d7303007a4bd8)  # "node-1 mlx5_5" lid 647 4xNDR

    Ca      1 "H-e09d7303007a4bd8"   # "node-1 mlx5_5"
    [1](e09d7303007a4bd8)  "S-2c5eab0300b87b40"[1]  # lid 647 lmc 0 "leaf 4" lid 73 4xNDR

A link stands under both of its ends, and both must agree. The endpoints are the adapters. Rates are from the file
(4xNDR); latencies and the start-up are assumed. Spines that do the same stand as one (`planes`). Adapters that
aggregate inside a switch (SHARP) carry no data of their own and are left out, as are adapters without a link.

Source: ibnetdiscover(8) of rdma-core, whose program prints these lines.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from linkwright.base.errors import FileError
from linkwright.formats.discovery import network_rates
from linkwright.formats.discovery.planes import Bundles, merged
from linkwright.formats.discovery.wiring import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    MOST_SWITCHES,
    Links,
    Wiring,
    bounded,
    plain,
)

_NODE = re.compile(r"(Switch|Ca|Rt)\s+(\d{1,6})\s+\"([SHR]-[0-9a-fA-F]+)\"\s*(?:#\s*\"([^\"]*)\")?.*", re.ASCII)
_PORT = re.compile(
    r"\[(\d{1,6})\](?:\[[^\]]*\])?(?:\([0-9a-fA-F]+\))?\s+\"([SHR]-[0-9a-fA-F]+)\"\[(\d{1,6})\].*", re.ASCII
)
_SPEED = re.compile(r"\b(\d{1,2})x([A-Z]+\d*)\b", re.ASCII)
_IGNORED = re.compile(
    r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=.*|Chassis .*|Non-Chassis Nodes|Hostname: .*|ibwarn: .*",
    re.ASCII,
)
_BEGIN = re.compile(r"^(# Topology file: generated on|switchguid=0x|caguid=0x)", re.MULTILINE)
AGGREGATION = "Aggregation Node"

End = tuple[str, int]


@dataclass
class Node:
    """A switch, adapter or router with the links of its ports."""

    kind: str
    guid: str
    name: str
    where: str
    ports: dict[int, tuple[End, tuple[int, str], str]] = field(default_factory=dict)


def recognises(text: str) -> bool:
    """Whether a text is such an output."""
    return _BEGIN.search(text) is not None


def read(text: str, file: str) -> Wiring:
    """The network of the output."""
    nodes = _nodes(text, file)
    cables = _cables(nodes, file)
    return _wired(nodes, cables, file)


def _nodes(text: str, file: str) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    node: Node | None = None
    for number, line in enumerate(text.split("\n"), 1):
        where, line = f"{file}: line {number}", line.strip()
        if match := _NODE.fullmatch(line):
            node = Node(match[1], match[3], match[4] or match[3], where)
            if node.guid in nodes:
                raise FileError(f"{where}: {node.guid} is described twice; give the output of one run")
            nodes[node.guid] = node
            bounded(len(nodes), MOST_ENDPOINTS + MOST_SWITCHES, file, "switches and adapters")
        elif match := _PORT.fullmatch(line):
            _port(node, match, line, where)
        elif line and not line.startswith("#") and not _IGNORED.fullmatch(line):
            raise FileError(f"{where}: `{line[:80]}` is not a line of ibnetdiscover; give its unedited output")
    if not nodes:
        raise FileError(f"{file}: describes neither a switch nor an adapter; give the whole output of ibnetdiscover")
    return nodes


def _port(node: Node | None, match: re.Match, line: str, where: str) -> None:
    if node is None:
        raise FileError(f"{where}: a port before any switch or adapter; give the whole output of ibnetdiscover")
    port, speeds = int(match[1]), _SPEED.findall(line)
    if port in node.ports:
        raise FileError(f"{where}: port {port} of {node.name} is listed twice; give the output of one run")
    if not speeds:  # of several words that look like speeds, a node's name holds all but the last
        raise FileError(f"{where}: the link has no speed such as 4xNDR; run ibnetdiscover without other options")
    node.ports[port] = (match[2], int(match[3])), (int(speeds[-1][0]), speeds[-1][1]), where


def _cables(nodes: dict[str, Node], file: str) -> dict[tuple[End, End], tuple[int, str]]:
    """Each link once, by its two ends."""
    cables: dict[tuple[End, End], tuple[int, str]] = {}
    for node in nodes.values():
        for port, (far, speed, where) in node.ports.items():
            other = nodes.get(far[0])
            if other is None:
                raise FileError(f"{where}: the link leads to {far[0]}, which the file does not describe; cut file?")
            back = other.ports.get(far[1])
            if other.ports and (back is None or back[0] != (node.guid, port)):
                raise FileError(
                    f"{where}: port {port} of {node.name} leads to port {far[1]} of {other.name}, which does not lead "
                    "back; give the output of one run, uncut"
                )
            if back and back[1] != speed:
                raise FileError(
                    f"{where}: the link from {node.name} to {other.name} is {speed[0]}x{speed[1]} at one end and "
                    f"{back[1][0]}x{back[1][1]} at the other; correct one"
                )
            ends = sorted(((node.guid, port), far))
            cables[ends[0], ends[1]] = speed
    bounded(len(cables), MOST_LINKS, file, "links")
    return cables


def _names(nodes: dict[str, Node]) -> dict[str, str]:
    """A name for each node that no other has: its description, with its guid where that is not enough."""
    shown = {guid: plain(node.name) for guid, node in nodes.items()}
    often = Counter(shown.values())
    return {guid: name if often[name] == 1 else plain(f"{name} {guid}") for guid, name in shown.items()}


def _wired(nodes: dict[str, Node], cables: dict[tuple[End, End], tuple[int, str]], file: str) -> Wiring:
    names = _names(nodes)
    linked = {guid for ends in cables for guid, _ in ends}
    endpoints = [guid for guid, node in nodes.items() if _is_endpoint(node) and guid in linked]
    endpoints.sort(key=lambda guid: _natural(names[guid]))
    switches = [guid for guid, node in nodes.items() if node.kind == "Switch"]
    if routers := [node.name for node in nodes.values() if node.kind == "Rt"]:
        raise FileError(f"{file}: {routers[0]} is a router to another subnet, which cannot be described; remove it")
    if len(endpoints) < 2:
        raise FileError(
            f"{file}: {len(endpoints)} adapters with a link; a machine has at least two, so give the whole output"
        )
    bundles: Bundles = defaultdict(Counter)
    kept = {*endpoints, *switches}
    for ((a, _), (b, _)), speed in cables.items():
        if a in kept and b in kept and a != b:
            bundles[a, b][speed] += 1
    plane, wide = merged(endpoints, switches, bundles)
    planes = [switch for switch in dict.fromkeys(plane.values()) if any(switch in ends for ends in wide)]
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{len(endpoints)} adapters and {len(switches)} switches of an InfiniBand subnet",
        description=f"Links and rates are from ibnetdiscover. Its {len(switches)} switches are {len(planes)} here: "
        "those that connect the same nodes are merged into one of their total width. Latencies and start-up are "
        "assumed.",
        sources=[f"ibnetdiscover: {file}"],
        endpoints=[names[guid] for guid in endpoints],
        endpoint_source="ibnetdiscover: adapters with a link",
        start=network_rates.number("network", "start"),
        levels=_levels([names[guid] for guid in endpoints]),
        switches=[names[guid] for guid in planes],
    )
    _link(wiring, wide, set(endpoints), names, file)
    return wiring


def _natural(name: str) -> list[tuple[int, str]]:
    """What sorts `node 10` behind `node 9`."""
    return [
        (int(word), "") if word.isdecimal() else (-1, word) for word in re.split(r"(\d{1,18})", name, flags=re.ASCII)
    ]


def _levels(names: list[str]) -> list[tuple[str, int]]:
    """Nodes and their adapters, if names are `NODE ADAPTER` and every node has as many; else one level."""
    hosts = Counter(name.split()[0] for name in names)
    each = set(hosts.values())
    in_order = [name.split()[0] for name in names] == [host for host, count in hosts.items() for _ in range(count)]
    if len(each) == 1 and len(hosts) > 1 and max(each) > 1 and in_order:
        return [("node", len(hosts)), ("adapter", max(each))]
    return [("adapter", len(names))]


def _is_endpoint(node: Node) -> bool:
    return node.kind == "Ca" and AGGREGATION not in node.name


def _link(wiring: Wiring, wide: Bundles, endpoints: set[str], names: dict[str, str], file: str) -> None:
    """One class of links for each width of a bundle."""
    for (a, b), speeds in wide.items():
        is_port = a in endpoints or b in endpoints
        name = ("port " if is_port else "trunk ") + " + ".join(
            f"{count} of {width}x{speed}" if count > 1 else f"{width}x{speed}"
            for (width, speed), count in speeds.items()
        )
        if name not in wiring.links:
            latency = network_rates.number("network", "port_latency" if is_port else "trunk_latency")
            wiring.links[name] = Links(_together(speeds, file), latency, "ibnetdiscover")
        upper, lower = (b, a) if a in endpoints else (a, b)
        wiring.links[name].edges.append((names[upper], names[lower]))


def _together(speeds: Counter, file: str):
    """The rate of all links of a bundle."""
    rates = [
        network_rates.infiniband(width, speed, file).times(count, f"{count} links")
        for (width, speed), count in speeds.items()
    ]
    first = rates[0]
    for other in rates[1:]:
        first = type(first)(first.value + other.value, first.unit, "derived", f"{first.source} and {other.source}")
    return first
