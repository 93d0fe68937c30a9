"""Read InfraGraph: infrastructure as a graph, in YAML (Keysight, versions 0.6 to 2).

    devices:   [ { name: server, components: [ { name: xpu, count: 2, choice: xpu }, ... ], links: [ ... ],
                   edges: [ { ep1: { component: "xpu[0:2]" }, ep2: { component: "nic[0]" }, scheme: many2many,
                              link: pcie } ] } ]
    instances: [ { name: host, device: server, count: 4 }, ... ]
    links:     [ { name: eth, physical: { bandwidth: { choice: gigabits_per_second, gigabits_per_second: 100 } } } ]
    edges:     [ { ep1: { instance: "host[0]", component: nic }, ep2: ..., scheme: one2one, link: eth } ]

Every instance of a device consists of its components, repeated by `count`, and the device's edges; a component whose
choice is `device` contains that device. Slices are Python's; without one, all are meant. `many2many` joins each with
each, `one2one` the first with the first and so on. Endpoints are the components of type `xpu`; every other linked
component is a switch. Equivalent components of one kind are merged (`planes`).

Bandwidths apply to each direction. A bandwidth in transfers per second assumes 16 lanes, and a missing one 50 GB/s;
both are marked as assumed.

Source: InfraGraph, its OpenAPI schema and service.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal

from linkwright.network_api import (
    MOST_ENDPOINTS,
    Bundles,
    FileError,
    Links,
    Network,
    Number,
    Wiring,
    bounded,
    merged,
    plain,
    usual,
)

from . import yaml_text
from .infragraph_reader import DEVICE, EDGE, INSTANCE, LINK, SOURCE, TOP, Reader, table_of, tables_of


def recognises(text: str) -> bool:
    """Whether a text is an InfraGraph file."""
    return all(re.search(rf"^\s*{key}\s*:", text, re.MULTILINE) for key in ("instances", "devices"))


def read(text: str, file: str) -> Wiring:
    """Read the system in the file."""
    top = yaml_text.load(text, file)
    top = top.get("infrastructure", top) if len(top) == 1 else top
    top = table_of(top, file, TOP)
    if "connections" in top:
        raise FileError(f"{file}: `connections` belong to a draft of InfraGraph; write `edges`, as since version 0.6")
    reader = Reader(file)
    listed = tables_of(top, "devices", file, DEVICE)
    for table in listed:
        reader.components(table)
    for table in listed:
        reader.device_edges(table)
    reader.instances(tables_of(top, "instances", file, INSTANCE))
    links = reader.kinds(tables_of(top, "links", file, LINK, needed=False))
    for table in tables_of(top, "edges", file, EDGE, needed=False):
        reader.edge(table, links)
    return _wired(reader, str(top.get("name") or file.rpartition(".")[0]), file)


def _wired(reader: Reader, name: str, file: str) -> Wiring:
    linked = {node for a, b, _ in reader.edges for node in (a, b)}
    endpoints = [node for node, kind in reader.nodes.items() if kind == "xpu" and node in linked]
    bounded(len(endpoints), MOST_ENDPOINTS, file, "components of the type xpu")
    if len(endpoints) < 2:
        raise FileError(
            f"{file}: {len(endpoints)} linked components of the type xpu; a machine has at least two endpoints"
        )
    switches = [node for node, kind in reader.nodes.items() if kind != "xpu" and node in linked]
    bundles: Bundles = defaultdict(Counter)
    for a, b, kind in reader.edges:
        bundles[(a, b) if (a, b) in bundles or (b, a) not in bundles else (b, a)][kind] += 1
    kinds = {node: re.sub(r"\d+", "", node) for node in switches}
    plane, wide = merged(endpoints, switches, bundles, kinds)
    planes = list(dict.fromkeys(plane.values()))
    per = Counter(node.rpartition(".")[0].rpartition(".")[0] for node in endpoints)
    even = len(per) > 1 and len(set(per.values())) == 1 and max(per.values()) > 1
    wiring = Wiring(
        name=name,
        summary=f"{len(endpoints)} accelerators and {len(switches)} other components of an infrastructure",
        description="Components and links are from InfraGraph. Components of one kind that do the same stand as one, "
        "as wide as all of them. What links do not state, and the start-up, is assumed.",
        sources=[f"InfraGraph: {file}"],
        endpoints=[plain(node) for node in endpoints],
        endpoint_source=f"{SOURCE}: components of the type xpu",
        start=usual("network", "start"),
        levels=[("device", len(per)), ("xpu", max(per.values()))] if even else [("xpu", len(endpoints))],
        switches=[plain(node) for node in planes],
        relays=_need_relays(endpoints, wide),
    )
    for (a, b), links in wide.items():
        _bundle(wiring, plain(a), plain(b), links)
    return wiring


def _need_relays(endpoints: list[str], wide: Bundles) -> bool:
    """Whether messages must pass accelerators: no connected set of switches reaches all of them."""
    known, near = set(endpoints), defaultdict(list)
    for a, b in wide:
        near[a].append(b)
        near[b].append(a)
    waiting = [node for node in near[endpoints[0]] if node not in known]
    seen = set(waiting)
    while waiting:
        fresh = [node for node in near[waiting.pop()] if node not in seen]
        seen.update(fresh)
        waiting += [node for node in fresh if node not in known]
    return not known <= {endpoints[0], *seen}


def _bundle(wiring: Wiring, a: str, b: str, links: Counter) -> None:
    """Merge all links between two nodes into one, with the latency of the slowest."""
    rates = [kind.bandwidth.times(count, f"{count} links together") for kind, count in links.items()]
    unit = rates[0].unit
    total = sum(rate.value * (1 if rate.unit == unit else 8 if unit == "Gb/s" else Decimal("0.125")) for rate in rates)
    delay = max(
        (kind.latency for kind in links), key=lambda one: one.value * {"ms": 10**6, "us": 1000, "ns": 1}[one.unit]
    )
    said = rates[0] if len(rates) == 1 else Number(Decimal(total), unit, "derived", "links of several kinds together")
    name = f"{said.value.normalize():f} {unit.replace('/', '_')} {delay.value.normalize():f} {delay.unit} {said.status}"
    wiring.links.setdefault(name, Links(said, delay, SOURCE)).edges.append((a, b))


NETWORK = Network("infragraph", "an InfraGraph infrastructure (YAML)", recognises, read)
