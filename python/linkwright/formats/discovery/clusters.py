"""Nodes of a machine file on a network that a description lists: `--node hgx-h100`.

    topology.conf   node[1-4] below leaf1, ...      each becomes the node, and all its ports are on that leaf
    ibnetdiscover   "node7 mlx5_3" on leaf 3        adapter i of a computer is port i of the node, on its own leaf;
                                                    computers with another number of adapters than most are left out

Switches and links are those of the description. Software, shares and latencies are those of a network file: the one
that the node names, or another. So is the rate of a port where the description states none; trunks are as wide as
there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal

from linkwright.base.errors import FileError, UsageError
from linkwright.base.units import counted
from linkwright.formats.discovery.wiring import Number, Wiring, bounded
from linkwright.formats.discovery.wiring_text import stated
from linkwright.machines import Shelf, described, load

MOST_RANKS = 20_000
_GBPS = {"Gb/s": Decimal(1), "GB/s": Decimal(8)}


def machine_text(wiring: Wiring, node: str, fabric: str | None, name: str, file: str) -> str:
    """The machine of as many nodes as the description lists, on its network."""
    machine = load(node)
    if machine.cluster is None:
        raise UsageError(f"--node {node}: has no [cluster], so it is not the node of one; name another machine")
    ports, _ = machine.cluster
    computers = _computers(wiring, file)
    alike = _alike(computers, ports, file)
    bounded(len(alike) * machine.ranks, MOST_RANKS, file, "ranks")
    used = len(ports) if len(alike) == len(wiring.endpoints) else len(alike[0])
    path, _ = described(node)
    summary = f"{len(alike)} x {path.stem} on the network that {file} lists"
    others = len(computers) - len(alike)
    left = [counted(others, "other computer") if others else "", wiring.without]
    if any(left):
        summary += f", without {' and '.join(filter(None, left))}"
    about = name, summary, wiring.sources
    return machine.joined(about, len(alike), fabric, _listed(wiring, alike, ports[:used], file), Shelf(path)).text


def _computers(wiring: Wiring, file: str) -> dict[str, list[str]]:
    """The endpoints of each computer, in the order of its ports."""
    if wiring.torus or wiring.relays or wiring.routes:
        raise UsageError(
            f"--node: {file} lists no tree of switches; only ibnetdiscover and topology.conf support --node"
        )
    computers: dict[str, list[str]] = defaultdict(list)
    whole = wiring.levels[0][0] == "node" and len(wiring.levels) == 1
    for endpoint in wiring.endpoints:
        computers[endpoint if whole else endpoint.split()[0]].append(endpoint)
    return dict(computers)


def _alike(computers: dict[str, list[str]], ports: list[str], file: str) -> list[list[str]]:
    """The computers with the most usual number of adapters; others, such as those that manage the network, are left."""
    usual, _ = max(Counter(map(len, computers.values())).items(), key=lambda item: (item[1], item[0]))
    if usual > len(ports):
        raise FileError(
            f"{file}: most computers have {usual} adapters, and the node has {len(ports)} ports; name another --node"
        )
    alike = [found for found in computers.values() if len(found) == usual]
    if len(alike) < 2:
        raise FileError(
            f"{file}: describes {len(alike)} computer; a cluster has at least two, so import without --node"
        )
    return alike


def _gbps(number: Number) -> Decimal:
    return number.value * _GBPS[number.unit]


_Rate = tuple[str, str, str, str]  # value, unit, status, source
_Link = tuple[str, float, list[str], str]  # class, width in ports, ends, the other end


def _listed(
    wiring: Wiring, computers: list[list[str]], ports: list[str], file: str
) -> tuple[str, _Rate | None, int, list[str], list[_Link]]:
    """The network of the description, whose computers are nodes with these ports."""
    endpoints = {endpoint: (i, k) for i, found in enumerate(computers) for k, endpoint in enumerate(found)}
    known = set(wiring.endpoints)
    rates = [links.bandwidth for links in wiring.links.values() if any(b in endpoints for _, b in links.edges)]
    port = max(rates, key=_gbps)
    # A description without rates counts in ports, whatever their rate.
    rate = None if port.status == "assumed" else _rate(port)
    fixed = [links.bandwidth for links in wiring.links.values() if links.bandwidth.status == "documented"]
    if rate is None and wiring.rateless and fixed:
        cure = "state theirs, too: --rate port=400Gb/s"
        raise UsageError(f"{file}: with --node, links are counted in ports, whose rate is not stated; {cure}")
    alone = len(computers[0]) == 1
    listed: list[_Link] = []
    for links in wiring.links.values():
        width = _gbps(links.bandwidth) / _gbps(port)
        for a, b in links.edges:
            if b in endpoints:
                i, k = endpoints[b]
                kind = "port" if width == 1 else f"port {width.normalize():f}"
                ends = [f"node {i} {one}" for one in (ports if alone else [ports[k]])]
                listed.append((kind, float(width), ends, a))
            elif b not in known:  # an endpoint is left out
                # Where an endpoint is a whole computer, all of its ports stand behind it; a stated rate is of all.
                wide = width * (len(ports) if alone and (links.ports or not wiring.rateless) else 1)
                listed.append((f"trunk {wide.normalize():f}", float(wide), [b], a))
    return file, rate, len(ports), list(wiring.switches), listed


def _rate(port: Number) -> _Rate:
    value = stated(port)
    return repr(value["value"]), value["unit"], value["status"], value["source"]
