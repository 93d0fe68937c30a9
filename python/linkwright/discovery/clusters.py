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
from dataclasses import dataclass, replace
from decimal import Decimal

from linkwright import registry, toml
from linkwright.discovery.wiring import Number, Wiring, bounded
from linkwright.discovery.wiring_text import stated
from linkwright.errors import FileError, UsageError
from linkwright.machines import cluster, compose, edges, network, topologies, writer
from linkwright.units import counted

MOST_RANKS = 20_000
_GBPS = {"Gb/s": Decimal(1), "GB/s": Decimal(8)}


@dataclass(frozen=True)
class _Listed(network.Network):
    """A network file with the switches and links of a description in place of its topology."""

    shape: topologies.Topology | None = None

    @property
    def topology(self) -> topologies.Topology:
        """That of the description."""
        assert self.shape is not None
        return self.shape


def machine_text(wiring: Wiring, node: str, fabric: str | None, name: str, file: str) -> str:
    """The machine of as many nodes as the description lists, on its network."""
    path = registry.machine_path(node)
    document = compose.document(path)
    place = toml.Place(path.name, error=FileError)
    about = document.pop("cluster", None)
    if not isinstance(about, dict):
        raise UsageError(f"--node {node}: has no [cluster], so it is no node of one; name another machine")
    computers = _computers(wiring, file)
    asked = toml.read(about, cluster.CLUSTER, place.inside("cluster"))
    base = network.load(fabric or asked["network"])
    ports = edges.names(asked["ports"])
    alike = _alike(computers, ports, file)
    bounded(len(alike) * len(cluster.rank_names(document, place)), MOST_RANKS, file, "ranks")
    used = len(ports) if len(alike) == len(wiring.endpoints) else len(alike[0])
    joined = _joined(wiring, alike, base, used, file)
    made = cluster.of(document, about, len(alike), joined, place)
    summary = f"{len(alike)} x {path.stem} on the network that {file} lists"
    if others := len(computers) - len(alike):
        summary += f", without {counted(others, 'other computer')}"
    made["machine"] = {**made["machine"], "name": name, "summary": summary}
    made["machine"]["sources"] = [*made["machine"]["sources"], *wiring.sources]
    return writer.text(made)


def _computers(wiring: Wiring, file: str) -> dict[str, list[str]]:
    """The endpoints of each computer, in the order of its ports."""
    if wiring.torus or wiring.relays or wiring.routes:
        raise UsageError(f"--node: {file} lists no tree of switches; only ibnetdiscover and topology.conf take nodes")
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


def _joined(wiring: Wiring, computers: list[list[str]], base: network.Network, used: int, file: str) -> _Listed:
    """The network of the description, with software and latencies of `base`."""
    endpoints = {endpoint: (i, k) for i, found in enumerate(computers) for k, endpoint in enumerate(found)}
    known = set(wiring.endpoints)
    rates = [links.bandwidth for links in wiring.links.values() if any(b in endpoints for _, b in links.edges)]
    port = max(rates, key=_gbps)
    # A description without rates counts in ports, whatever their rate.
    rate = base.parameters["rate"] if port.status == "assumed" else stated(port)
    alone = len(computers[0]) == 1

    def build(ports: topologies.Ports, _: topologies.Numbers) -> topologies.Wires:
        wires = topologies.Wires(list(wiring.switches), {}, {})
        for links in wiring.links.values():
            width = _gbps(links.bandwidth) / _gbps(port)
            for a, b in links.edges:
                if b in endpoints:
                    i, k = endpoints[b]
                    kind, wide = "port" if width == 1 else f"port {width.normalize():f}", width
                    wires.join(kind, ports.of[i] if alone else [ports.of[i][k]], a)
                elif b in known:  # an endpoint that is left out
                    continue
                else:
                    # Where an endpoint is a whole computer, all of its ports stand behind it.
                    wide = width * (ports.count if alone else 1)
                    kind = f"trunk {wide.normalize():f}"
                    wires.join(kind, [b], a)
                wires.width[kind] = float(wide)
        return wires

    shape = topologies.Topology(f"as {file} lists it", (), build)
    about = {**base.about, "name": file, "summary": f"network of {file}, software of {base.about['name']}"}
    parameters = {**base.parameters, "rate": rate, "ports": {**_PORTS, "value": used}}
    return _Listed(**{**vars(replace(base, about=about, parameters=parameters)), "shape": shape})


_PORTS = {"unit": "count", "status": "documented", "source": "adapters of each computer in the description"}
