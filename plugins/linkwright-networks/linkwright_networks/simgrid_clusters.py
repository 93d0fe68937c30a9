"""Turn a cluster of a SimGrid platform into a graph.

    FLAT       a link from each host to one switch; a backbone is the throughput of that switch
    FAT_TREE   2;4,4;1,2;1,2    levels; hosts or switches below; switches above; cables between: equivalent switches
                                are merged, as wide as all of them (`planes`); one message still takes one cable
    TORUS      3,2,2            sides; the first varies fastest, routes in the order of the axes
    DRAGONFLY  3,4;4,3;5,1;2    groups, chassis in each, routers in each, with the cables of each kind of link; hosts

In a dragonfly, the routers of a chassis form a full mesh, and so do the routers at the same place in the chassis of a
group. Groups i and j are joined from router j of the first chassis of i to router i of the first chassis of j.

Source: SimGrid, the reference of platforms, and its zones for clusters.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from decimal import Decimal

from linkwright.network_api import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    Axis,
    Element,
    FileError,
    Links,
    Number,
    Wiring,
    bounded,
    distinct,
    unknown,
)

from .simgrid_units import as_rate, as_time, radical, rate, time

SOURCE = "SimGrid platform"
ATTRIBUTES = {
    "id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology", "topo_parameters",
    "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "loopback_bw", "loopback_lat", "limiter_link",
}  # fmt: skip
MOST_LEVELS = 10
_WHOLE = re.compile(r"\s*(\d{1,6})\s*", re.ASCII)


@dataclass(frozen=True)
class Cluster:
    """The hosts and links of a cluster."""

    name: str
    where: str
    hosts: list[str]
    router: str
    rate: Decimal
    latency: Decimal
    policy: str
    backbone: tuple[Decimal, Decimal, str] | None
    topology: str
    parameters: str


def cluster(element: Element, file: str) -> Cluster:
    """Read a `<cluster>`, or a `<cabinet>`, which is one without a backbone."""
    attributes = element.attributes
    name = attributes.get("id", "?")
    where = f"{file}: line {element.line}: cluster {name[:80]}"
    if strange := sorted(set(attributes) - ATTRIBUTES):
        raise unknown("attribute", strange[0], ATTRIBUTES, where=where)
    if missing := [key for key in ("id", "prefix", "suffix", "radical", "bw", "lat") if key not in attributes]:
        raise FileError(f"{where}: missing attribute `{missing[0]}`; add it")
    if attributes.get("limiter_link"):
        raise FileError(f"{where}: limiter_link, a limit on all of a host's links, is not described; take it out")
    policy = attributes.get("sharing_policy", "SPLITDUPLEX").replace("FULLDUPLEX", "SPLITDUPLEX")
    if policy not in ("SPLITDUPLEX", "SHARED", "FATPIPE"):
        raise unknown("sharing_policy", policy[:40], ("SPLITDUPLEX", "SHARED", "FATPIPE"), where=where)
    backbone = None
    if attributes.get("bb_bw"):
        shared = attributes.get("bb_sharing_policy", "SHARED")
        if shared not in ("SHARED", "FATPIPE"):
            raise unknown("bb_sharing_policy", shared[:40], ("SHARED", "FATPIPE"), where=where)
        delay = time(attributes.get("bb_lat", "0"), f"{where}: bb_lat")
        backbone = (rate(attributes["bb_bw"], f"{where}: bb_bw"), delay, shared)
    prefix, suffix = attributes["prefix"], attributes["suffix"]
    hosts = [f"{prefix}{number}{suffix}" for number in radical(attributes["radical"], f"{where}: radical")]
    return Cluster(
        name=name,
        where=where,
        hosts=distinct(hosts, where, "hosts"),
        router=attributes.get("router_id") or f"{prefix}{name}_router{suffix}",
        rate=rate(attributes["bw"], f"{where}: bw"),
        latency=time(attributes["lat"], f"{where}: lat"),
        policy=policy,
        backbone=backbone,
        topology=attributes.get("topology", "FLAT"),
        parameters=attributes.get("topo_parameters", ""),
    )


def wired(element: Element, file: str) -> Wiring:
    """Build the machine of a platform that is one cluster."""
    read = cluster(element, file)
    if read.topology not in TOPOLOGIES:
        raise unknown("topology", read.topology[:40], TOPOLOGIES, where=read.where)
    if len(read.hosts) < 2:
        raise FileError(f"{read.where}: a single host; a machine has at least two, so widen `radical`")
    if read.policy != "SPLITDUPLEX":
        raise FileError(
            f"{read.where}: sharing_policy {read.policy} is not described for the links of a cluster alone; "
            "write SPLITDUPLEX"
        )
    if read.backbone and read.topology != "FLAT":
        raise FileError(f"{read.where}: a backbone (bb_bw) beside topology {read.topology}; take one of them out")
    wiring = begun(file, read.hosts, f"{read.topology.lower().replace('_', ' ')} cluster of {len(read.hosts)} hosts")
    TOPOLOGIES[read.topology](read, wiring)
    return wiring


def begun(file: str, hosts: list[str], what: str) -> Wiring:
    """Begin a machine with these hosts and no links."""
    return Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{what}, from a SimGrid platform",
        description="Links, rates and latencies are from the platform. A message takes the latencies of its route and "
        "its size over the least share of a link, as in SimGrid's model CM02; the factors of its other models are no "
        "part of a platform.",
        sources=[f"SimGrid platform: {file}"],
        endpoints=hosts,
        endpoint_source=f"{SOURCE}: its hosts",
        start=Number(Decimal(0), "ns", "derived", "the platform states no cost besides links: none, as in SimGrid"),
        levels=[("host", len(hosts))],
    )


def _flat(read: Cluster, wiring: Wiring) -> None:
    switch = read.router if read.router not in read.hosts else f"{read.router} switch"
    (switch,) = distinct([switch], read.where, "switches")
    latency = read.latency + (read.backbone[1] / 2 if read.backbone else 0)
    said = ": lat, and half of bb_lat" if read.backbone else ": lat"
    wiring.switches = [switch]
    wiring.links["private"] = Links(
        as_rate(read.rate, f"{SOURCE}: bw"),
        as_time(latency, f"{SOURCE}{said}"),
        SOURCE,
        [(switch, h) for h in read.hosts],
    )
    if read.backbone and read.backbone[2] == "SHARED":
        source = f"{SOURCE}: twice bb_bw, because what passes is received and sent"
        wiring.throughput[switch] = as_rate(2 * read.backbone[0], source, "derived")
    elif read.backbone:
        wiring.rate = as_rate(read.backbone[0], f"{SOURCE}: bb_bw of a FATPIPE, for each message")


def _lists(read: Cluster, counts: tuple[int | None, ...]) -> list[list[int]]:
    """Read `topo_parameters` as lists of whole numbers; `counts` are their lengths, None for any."""
    lists = []
    for part in read.parameters.split(";"):
        found = [_WHOLE.fullmatch(word) for word in part.split(",")]
        lists.append([int(match[1]) if match else 0 for match in found])
    fits = len(lists) == len(counts) and all(c in (None, len(one)) for c, one in zip(counts, lists, strict=True))
    if not fits or any(number < 1 for one in lists for number in one):
        example = {"FAT_TREE": "2;4,4;1,2;1,2", "TORUS": "3,2,2", "DRAGONFLY": "3,4;4,3;5,1;2"}[read.topology]
        raise FileError(
            f"{read.where}: topo_parameters `{read.parameters[:60]}` do not fit {read.topology}; "
            f"write such as `{example}`"
        )
    return lists


def _check_count(read: Cluster, count: int) -> None:
    bounded(count, MOST_ENDPOINTS, read.where, "hosts")
    if count != len(read.hosts):
        raise FileError(
            f"{read.where}: topo_parameters describe {count} hosts, and radical lists {len(read.hosts)}; "
            "make them equal"
        )


def _torus(read: Cluster, wiring: Wiring) -> None:
    (sides,) = _lists(read, (None,))
    _check_count(read, math.prod(sides))
    sides = [side for side in sides if side > 1]
    if len(sides) > 6:
        raise FileError(f"{read.where}: a torus of {len(sides)} dimensions; at most 6 are described")
    bandwidth, latency = as_rate(read.rate, f"{SOURCE}: bw"), as_time(read.latency, f"{SOURCE}: lat")
    if len(sides) == 1:
        hosts = read.hosts
        edges = [*itertools.pairwise(hosts), *([(hosts[-1], hosts[0])] if len(hosts) > 2 else [])]
        wiring.links["ring"] = Links(bandwidth, latency, SOURCE, edges)
        wiring.relays = True
        return
    wiring.torus = [Axis(side, bandwidth, latency, True) for side in sides]
    wiring.endpoints = ["host ({at})"]


def _fat_tree(read: Cluster, wiring: Wiring) -> None:
    first = _WHOLE.fullmatch(read.parameters.partition(";")[0])
    levels = int(first[1]) if first else 0
    _, below, above, cables = _lists(read, (1, *[levels if 1 <= levels <= MOST_LEVELS else 1] * 3))
    if levels != len(below):
        raise FileError(f"{read.where}: a fat tree of {levels} levels; 1 to {MOST_LEVELS} are described")
    _check_count(read, math.prod(below))
    latency = as_time(read.latency, f"{SOURCE}: lat")
    lower = read.hosts
    for height in range(levels):
        names = [f"level {height + 1} switch {i}" for i in range(len(lower) // below[height])]
        edges = [(names[i // below[height]], node) for i, node in enumerate(lower)]
        each = _links_up(above, cables, height)
        source = f"{SOURCE}: bw of {each} links that lead up together" if each > 1 else f"{SOURCE}: bw"
        rate = as_rate(read.rate * each, source, "derived" if each > 1 else "documented")
        wiring.links[f"level {height + 1}"] = Links(rate, latency, SOURCE, edges)
        wiring.switches += names
        lower = names
    if above[0] * cables[0] > 1:
        wiring.rate = as_rate(read.rate, f"{SOURCE}: bw, because one message takes one cable")


def _links_up(above: list[int], cables: list[int], height: int) -> int:
    """Count the links between the switches merged into one at `height` and those merged above them."""
    return math.prod(above[: height + 1]) * cables[height]


def _dragonfly(read: Cluster, wiring: Wiring) -> None:
    (groups, blue), (chassis, black), (routers, green), (hosts,) = _lists(read, (2, 2, 2, 1))
    _check_count(read, groups * chassis * routers * hosts)
    if groups > routers:
        raise FileError(
            f"{read.where}: {groups} groups, and {routers} routers in a chassis, of which one leads to each other "
            "group; give at least as many routers as groups"
        )
    per_group = chassis * (routers * (routers - 1) // 2) + routers * (chassis * (chassis - 1) // 2)
    bounded(groups * per_group + groups * groups // 2 + len(read.hosts), MOST_LINKS, read.where, "links")

    def router(group: int, rack: int, place: int) -> str:
        return f"router {group}.{rack}.{place}"

    every = [(g, c, r) for g in range(groups) for c in range(chassis) for r in range(routers)]
    wiring.switches = [router(*place) for place in every]
    latency = as_time(read.latency, f"{SOURCE}: lat")
    edges = {
        "local": [(router(*every[i // hosts]), host) for i, host in enumerate(read.hosts)],
        "green": [
            (router(g, c, a), router(g, c, b))
            for g in range(groups)
            for c in range(chassis)
            for a, b in itertools.combinations(range(routers), 2)
        ],
        "black": [
            (router(g, a, r), router(g, b, r))
            for g in range(groups)
            for a, b in itertools.combinations(range(chassis), 2)
            for r in range(routers)
        ],
        "blue": [(router(a, 0, b), router(b, 0, a)) for a, b in itertools.combinations(range(groups), 2)],
    }
    for name, cables in (("local", 1), ("green", green), ("black", black), ("blue", blue)):
        if edges[name]:
            bandwidth = as_rate(read.rate, f"{SOURCE}: bw").times(cables, f"{cables} cables")
            wiring.links[name] = Links(bandwidth, latency, SOURCE, edges[name])


TOPOLOGIES = {"FLAT": _flat, "FAT_TREE": _fat_tree, "TORUS": _torus, "DRAGONFLY": _dragonfly}
