"""Many copies of a node on a network, as one flat machine.

    [cluster] ports = "NIC 0..7"       node 0: GPU 0..7 -- ... -- NIC 0..7 --+
    --nodes 2 --fabric NAME            node 1: GPU 0..7 -- ... -- NIC 0..7 --+-- leaves -- spine

`GPU 5` of the node becomes `node 3 GPU 5`. Endpoints are numbered node by node, and switches, links, exceptions for
pairs and stages are repeated. Each network of the node (`simple`, `ll`, ...) gets the transports of its protocol over
the network between the nodes: `net_simple` by GPUDirect, and behind it `host_net_simple` through host memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from linkwright import toml
from linkwright.errors import FileError, UsageError

from . import edges, network, topologies

Table = dict[str, Any]

CLUSTER: toml.Keys = {
    "ports": toml.Key(toml.TEXT, "the switches of the node that are its network ports, in the order of rails", True),
    "rails": toml.Key(toml.whole(1), "ports i, i + rails, ... are on rail i; default: a rail for each port"),
    "network": toml.Key(toml.TEXT, "the network unless --fabric names another, with parameters as there", True),
    "direct": toml.Key(toml.Many(toml.NAME), "classes of links between GPU and port, with GPUDirect", True),
    "staged": toml.Key(toml.Many(toml.NAME), "classes of links between GPU and port by way of host memory", default=()),
    "forward": toml.Key(toml.Many(toml.NAME), "classes over which a GPU hands on to one on another rail", default=()),
}
_OF_NODE = re.compile(r"node \d+ ")


def of(node: Table, cluster: Table, count: int, asked: str | network.Network | None, place: toml.Place) -> Table:
    """The machine of `count` nodes on the network `asked`, by default its own."""
    stated = toml.read(cluster, CLUSTER, place.inside("cluster"))
    joined = asked if isinstance(asked, network.Network) else network.load(asked or stated["network"])
    ranks = rank_names(node, place)
    if count * len(ranks) > edges.MOST:
        raise UsageError(f"--nodes {count}: {count * len(ranks):,} ranks; at most {edges.MOST:,} are described")
    ports = joined.connected(edges.names(stated["ports"]))
    rails = min(stated["rails"] or len(ports), len(ports))
    if len(ports) % rails:
        raise place.wrong(f"cluster.rails: {len(ports)} ports do not divide into {rails} rails; correct one")
    machine = {**node, "endpoints": _endpoints(node, ranks, count, place), "level": _levels(node, count, place)}
    machine["fabric"] = _repeated(table(node, "fabric", place), ranks, count, place)
    at = [[name_in(k)(port) for port in ports] for k in range(count)]
    _join(machine["fabric"], joined, topologies.Ports(at, rails), stated, place)
    if joined.has("sharp", False) and "library" in node:  # its mode is named as in NCCL
        library = dict(node["library"])
        modes = dict(library.get("modes", {}))
        machine["library"] = {**library, "modes": {**modes, "collnet": modes.get("simple")}}
    head = table(node, "machine", place)
    summary = f"{count} x {head.get('summary')}; {joined.about['summary']}"
    machine["machine"] = {**head, "summary": summary, "sources": [*head.get("sources", []), *joined.about["sources"]]}
    return machine


def bare(name: str) -> str:
    """The name of a node of the graph without that of its computer: `GPU 5` of `node 3 GPU 5`."""
    return _OF_NODE.sub("", name, count=1)


def name_in(k: int) -> Callable[[str], str]:
    """What names become in node `k`."""
    return lambda name: f"node {k} {name}"


def table(document: Table, key: str, place: toml.Place) -> Table:
    """The table of that name; an error of the file if there is none."""
    found = document.get(key)
    if not isinstance(found, dict):
        raise place.wrong(f"missing table `[{key}]`; add it")
    return found


def rank_names(document: Table, place: toml.Place) -> list[str]:
    """The names of all ranks."""
    ends = table(document, "endpoints", place)
    if isinstance(names := ends.get("names"), list):
        return list(map(str, names))
    count, pattern = ends.get("count"), ends.get("name", "rank {i}")
    if type(count) is not int or not isinstance(pattern, str):
        raise place.wrong("endpoints: a node has `count` endpoints, or `names`; write one of them")
    return [pattern.replace("{i}", str(i)) for i in range(count)]


def _endpoints(node: Table, ranks: list[str], count: int, place: toml.Place) -> Table:
    ends = {key: value for key, value in table(node, "endpoints", place).items() if key not in ("count", "name")}
    ends["names"] = [f"node {k} {name}" for k in range(count) for name in ranks]
    if memories := ends.get("memory"):
        ends["memory"] = [{**one, "name": f"node {k} {one.get('name')}"} for k in range(count) for one in memories]
    return ends


def _levels(node: Table, count: int, place: toml.Place) -> list[Table]:
    inside = node.get("level", [])
    if any(level.get("name") == "node" for level in inside):
        raise place.wrong("level: `node` is the level of whole nodes in a cluster; give this one another name")
    return [{"name": "node", "count": count, "source": "nodes of the cluster"}, *inside]


def _repeated(fabric: Table, ranks: list[str], count: int, place: toml.Place) -> Table:
    """The fabric of a node, `count` times."""
    names = [name_in(k) for k in range(count)]
    (whole, *others) = edges.runs(ranks)
    found = dict(fabric)
    found["switches"] = [rename(one) for rename in names for one in fabric.get("switches", [])]
    found["links"] = {}
    for key, links in table(fabric, "links", place).items():
        own = [edge for rename in names for edge in _edges(links.get("edges", []), rename, whole, others, place)]
        found["links"][key] = {**links, "edges": own}
    found["transport"] = {key: _staged(one, names) for key, one in table(fabric, "transport", place).items()}
    found["network"] = {key: dict(one) for key, one in table(fabric, "network", place).items()}
    for key, rename_key in (("switch", _name), ("pair", _pair)):
        if key in fabric:
            tables = fabric[key].items()
            found[key] = {rename_key(name, one): _routed(value, one) for one in names for name, value in tables}
    return found


def _edges(
    all_edges: list[str], rename: Callable[[str], str], whole: str, others: list[str], place: toml.Place
) -> Iterator[str]:
    for edge in all_edges:
        if others and edges.ALL in edge.split():
            raise place.wrong(f"edge `{edge}`: in a cluster `*` needs endpoints of one run of names; write them out")
        yield edges.renamed(edge, lambda side: rename(whole if side == edges.ALL else side))


def _name(name: str, rename: Callable[[str], str]) -> str:
    return rename(name)


def _pair(name: str, rename: Callable[[str], str]) -> str:
    return " -> ".join(rename(end.strip()) for end in name.split("->"))


def _routed(one: Table, rename: Callable[[str], str]) -> Table:
    return {**one, "route": list(map(rename, one["route"]))} if "route" in one else one


def _staged(one: Table, names: list[Callable[[str], str]]) -> Table:
    if "stage_at" not in one:
        return one
    return {**one, "stage_at": [rename(stage) for rename in names for stage in one["stage_at"]]}


def _join(
    fabric: Table, joined: network.Network, ports: topologies.Ports, stated: toml.Table, place: toml.Place
) -> None:
    """Add the network to the fabric of all nodes."""
    wires = joined.topology.build(ports, joined.numbers)
    fabric["switches"] += wires.switches
    if joined.has("sharp", False):
        limits = {"multicast": True, "aggregate": True}
        fabric["switch"] = {**fabric.get("switch", {}), **dict.fromkeys(wires.switches, limits)}
    for kind, found in wires.edges.items():
        if kind in fabric["links"]:
            raise place.wrong(f"fabric.links.{kind}: is a class of the network's links; rename the node's")
        base = kind.partition(" ")[0]  # `trunk 20` is a trunk
        what = topologies.LINKS[base]
        fabric["links"][kind] = {
            "edges": found,
            "source": f"{joined.about['name']}: {what}",
            "bandwidth": joined.rate(wires.width[kind], what),
            **joined.about["links"].get(base, {}),
        }
    outside = list(wires.edges)
    forward = stated["forward"] if joined.has("forwarding") else ()
    direct = [*forward, *stated["direct"], *outside]
    added: dict[str, list[str]] = {}
    if joined.has("gpudirect"):
        relays = {"relays": "forward"} if forward else {}
        for protocol, one in joined.about["transport"].items():
            fabric["transport"][f"net_{protocol}"] = {"links": direct, **relays, **one}
            added.setdefault(protocol, []).append(f"net_{protocol}")
    if stated["staged"]:
        for protocol, one in joined.about["staged"].items():
            fabric["transport"][f"host_net_{protocol}"] = {"links": [*stated["staged"], *outside], **one}
            added.setdefault(protocol, []).append(f"host_net_{protocol}")
    if not added:
        raise FileError(f"{joined.about['name']}: no transport leads from node to node; add [network.transport.simple]")
    usual = added.get("simple") or next(iter(added.values()))
    staged = [way for way in usual if way.startswith("host_net_")]
    for name, one in fabric["network"].items():
        ways = added.get(name, usual)
        # A protocol without a way of its own through the host takes the usual one where no NIC reaches a GPU.
        others = [] if any(way.startswith("host_net_") for way in ways) else staged
        one["transports"] = [*one.get("transports", []), *ways, *others]
