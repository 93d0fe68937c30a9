"""The machine file of a `Node`: its links from the description, its protocols from the part of its GPUs.

Classes of links are those of the shipped machines: `nvlink` or `xgmi` between GPUs, `pcie` up to the processors, `nic`
and `host` from NICs, `socket` between processors. Where links of a class differ in rate, those that are rarer form a
class of their own, `pcie_15.75` or `nvlink_2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from linkwright._native import runs_of_names
from linkwright.base import registry, toml
from linkwright.base.errors import FileError
from linkwright.formats.discovery.node import SWITCH, CpuHost, Lanes, Node
from linkwright.machines import gpus, writer

Table = dict[str, Any]

# Part -> GB/s of its x16 lanes, slowest first.
GENERATIONS = {"pcie-gen3": 15.75, "pcie-gen4": 31.5, "pcie-gen5": 63.0, "pcie-gen6": 121.0}
# By vendor of the processors, as files have it: GB/s between two of them.
SOCKETS = {"AuthenticAMD": 16.0, "GenuineIntel": 22.0, "ARM": 6.0, "IBM": 32.0}
# The same, as `[library.hardware]` has it.
HOSTS = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "ARM": "arm", "IBM": "power"}
# Transports of `gpu-node` over PCIe, which take all its classes.
OVER_PCIE = ("pcie_simple", "pcie_ll", "pcie_ll128", "pcie_copy", "host_simple", "host_ll")
PROTOCOLS = ("simple", "ll", "ll128", "copy")
# Interfaces of the kernel, where libraries state them as ports: they found no adapter with RDMA.
_ETHERNET = re.compile(r"roce|bnxt_re|irdma")  # adapters with RDMA over Ethernet, by the names of their drivers
_SOCKET = re.compile(r"(eth|en[opsx]|bond|ib)\d")
NO_EDGES = "no such link in the description"


def text(node: Node, name: str) -> str:
    """The machine file of a node."""
    parts = list(_parts(node))
    tables = [_part(part) for part in parts]
    own = gpus.own_rates(node.device)
    paths = {**own.get("path", {}), **_channels(node, tables)}
    one_host = {"hosts": 1} if len(set(node.hosts)) < 2 else {}  # several may have different numbers of GPUs
    document = {
        "parts": parts,
        "machine": _about(node, name),
        "level": [{"name": "GPU", "count": node.gpus, "source": node.source}],
        "endpoints": {"count": node.gpus, **one_host, "name": "GPU {i}", "source": node.source},
        **_cluster(node),
        "fabric": _fabric(node, tables),
        **own,
        **({"path": paths} if paths else {}),
        "library": {"hardware": {"gpu": node.device.library_generation, "host": HOSTS.get(node.vendor, "other")}},
    }
    return writer.text(document)


def _channels(node: Node, parts: list[Table]) -> Table:
    """Paths with the channels that the library's own search found, where the parts count them."""
    if node.channels is None:
        return {}
    count, source = node.channels
    counted = [name for part in parts for name, path in part.get("path", {}).items() if "channels" in path]
    return {name: {"channels": writer.number(count, "count", "measured", source)} for name in counted}


def _about(node: Node, name: str) -> Table:
    device = node.device
    nics = f", {len(node.nics)} network port{'s' * (len(node.nics) > 1)}" if node.nics else ""
    return {
        "name": name,
        "summary": f"{node.gpus} x {device.name}{nics}{'' if device.peers else gpus.NO_PEERS}; from {node.source}",
        "description": (
            f"Links are those of {node.source}. Rates are those of data sheets, protocols those of the part "
            f"`{device.part}`; what neither states is assumed."
        ),
        "format": 1,
        "sources": [node.source, device.source],
    }


def _parts(node: Node) -> Iterator[str]:
    yield "gpu-node"
    if node.device.links == "nvlink":
        yield "ll128"
    fastest = max((lanes.gbps for _, _, lanes in node.parts("GPU") if lanes), default=GENERATIONS[node.device.pcie])
    pcie = next((part for part, gbps in GENERATIONS.items() if fastest <= gbps * 1.01), "pcie-gen6")
    yield from (pcie, node.device.part) if node.device.part == "pcie-gpu" else (node.device.part, pcie)
    yield gpus.LIBRARIES[node.device.links]
    if node.device.combines and any(SWITCH in pair for pair in node.peers):
        yield "nvls"
    if not node.device.peers:
        yield gpus.STAGED_PART


def _part(name: str) -> Table:
    path = registry.part_path(name)
    return toml.load(path.read_text(encoding="utf-8"), toml.Place(path.name, error=FileError))


def _fabric(node: Node, parts: list[Table]) -> Table:
    known = {name for part in parts for name in part.get("fabric", {}).get("links", {})}
    links = {**_peers(node, parts), **_tree(node), **sockets(node)}
    for name in sorted(known - set(links)):
        links[name] = {"edges": [], "source": NO_EDGES}
    switches = [SWITCH] if any(SWITCH in pair for pair in node.peers) else []
    switches += [*node.switches, *(f"NIC {i}" for i in range(len(node.nics))), *(f"CPU {i}" for i in range(node.cpus))]
    fabric: Table = {"kind": "flow", "switches": runs_of_names(switches), "links": links}
    pcie = [name for name in links if name.startswith("pcie")]
    peers = [name for name in links if name.startswith(node.device.links)]
    transports: Table = {}
    if len(pcie) > 1:
        transports |= {name: {"links": [*pcie, "socket"]} for name in _stated(parts, OVER_PCIE)}
    if len(peers) > 1:
        own = [f"{node.device.links}_{protocol}" for protocol in PROTOCOLS]
        transports |= {name: {"links": peers} for name in _stated(parts, own)}
    return fabric | ({"transport": transports} if transports else {}) | gpus.staged(node.device)


def _stated(parts: list[Table], names: Iterable[str]) -> list[str]:
    stated = {name for part in parts for name in part.get("fabric", {}).get("transport", {})}
    return [name for name in names if name in stated]


def _peers(node: Node, parts: list[Table]) -> dict[str, Table]:
    """Classes of links between GPUs, one for each number of links."""
    device, counts = node.device, node.counts()
    if not counts:
        return {}
    named = [links for part in parts if device.links in (links := part.get("fabric", {}).get("links", {}))]
    share = named[0][device.links].get("share") if named else None
    if device.share is not None:
        share = writer.number(device.share, "ratio", "documented", device.source)
    usual = 1 if f"{device.links}_2" in (named[0] if named else {}) else counts.most_common(1)[0][0]
    found: dict[str, Table] = {}
    for count in sorted(counts):
        pairs = [pair for pair, links in node.peers.items() if links == count]
        source = f"{count} x {device.link_gb_per_s:g} GB/s: {device.source}"
        rate = writer.derived(count * device.link_gb_per_s, source)
        name = device.links if count == usual else f"{device.links}_{count}"
        found[name] = {"edges": _edges(pairs), "source": node.source, "bandwidth": rate}
        if share:
            found[name]["share"] = share
    return found


def _tree(node: Node) -> dict[str, Table]:
    """PCIe links by their ends and rates."""
    up = [*node.parts("GPU"), *node.parts("PCIe")]
    nics = list(node.parts("NIC"))
    roots = [(child, _root(node, child), lanes) for child, _, lanes in nics]
    found = classes("pcie", up, node) | classes("nic", nics, node)
    return found | classes("host", [(child, root, lanes) for child, root, lanes in roots if root], node, alone=True)


def _root(node: Node, name: str) -> str | None:
    """The processor that something hangs on."""
    seen = 0
    while name in node.tree and seen <= len(node.tree):
        name, seen = node.tree[name][0], seen + 1
    return name if name.startswith("CPU") else None


def classes(
    base: str, links: list[tuple[str, str, Lanes | None]], node: Node | CpuHost, alone: bool = False
) -> dict[str, Table]:
    """Return classes of these links by rate; the most frequent rate has the plain name. `alone`: one class for all."""
    rates = Counter(round(lanes.gbps, 3) if lanes else None for _, _, lanes in links)
    if not rates:
        return {}
    usual = rates.most_common(1)[0][0]
    found: dict[str, Table] = {}
    for rate in [usual] if alone else sorted(rates, key=lambda rate: (rate != usual, rate or 0)):
        its = [link for link in links if alone or (round(link[2].gbps, 3) if link[2] else None) == rate]
        name = base if rate == usual else f"{base}_{rate:g}" if rate else f"{base}_unstated"
        found[name] = {"edges": _edges([(parent, child) for child, parent, _ in its]), "source": node.source}
        lanes = its[0][2]
        if rate is not None and lanes:
            found[name]["bandwidth"] = writer.derived(rate, lanes.source)
        elif rate != usual:
            found[name]["bandwidth"] = UNSTATED
    return found


def sockets(node: Node | CpuHost) -> dict[str, Table]:
    """Return the links between the processors of each host."""
    hosts = node.hosts or [""] * node.cpus
    pairs = [(f"CPU {a}", f"CPU {b}") for b in range(node.cpus) for a in range(b) if hosts[a] == hosts[b]]
    rate = SOCKETS.get(node.vendor)
    source = (
        f"NCCL 2.27: between processors of {node.vendor}" if rate else "the file does not name the processors; as AMD's"
    )
    bandwidth = writer.number(rate or SOCKETS["AuthenticAMD"], "GB/s", "documented" if rate else "assumed", source)
    return {"socket": {"edges": _edges(pairs), "source": node.source, "bandwidth": bandwidth}}


def _cluster(node: Node) -> Table:
    if not node.nics:
        return {}
    tree = _tree(node)
    pcie = [name for name in tree if name.startswith("pcie")]
    forward = sorted(_peers(node, []))
    homes = {_root(node, child) for child, *_ in node.parts("NIC")}
    far = any(_root(node, child) not in homes for child, *_ in node.parts("GPU"))
    direct = [name for name in tree if name.startswith("nic")] + pcie + (["socket"] if far else [])
    staged = [*pcie, *(["host"] if "host" in tree else []), "socket"]
    ports = runs_of_names([f"NIC {i}" for i in range(len(node.nics))])
    return {
        "cluster": {
            "ports": ports[0],
            "network": _network(node),
            "direct": direct,
            "staged": staged,
            **({"forward": forward} if forward else {}),
        }
    }


def _network(node: Node) -> str:
    """The network that the ports suggest, by their names and rates; assumed, unless --fabric says otherwise."""
    first = node.nics[0]
    staged = "" if any(nic.direct for nic in node.nics) else ",gpudirect=0"
    efa = "efa-p4" if node.device.part == "ampere" else "efa-p5"
    for prefix, network in (("hsn", "slingshot-11"), ("cxi", "slingshot-11"), ("rdmap", efa), ("efa", efa)):
        if first.name.startswith(prefix):
            return network + staged
    rates = Counter(nic.mbps for nic in node.nics if nic.mbps)
    gbps = max(1, (rates.most_common(1)[0][0] if rates else 400_000) // 1000)
    if _SOCKET.match(first.name):
        return f"sockets,rate={gbps}" if rates else "sockets"
    if _ETHERNET.match(first.name):
        return ("roce-400" if gbps == 400 else f"roce-400,rate={gbps}") + staged
    usual = {400: "ndr-fat-tree", 200: "hdr-fat-tree", 800: "xdr-fat-tree"}
    return usual.get(gbps, f"ndr-fat-tree,rate={gbps}") + staged


def _edges(pairs: list[tuple[str, str]]) -> list[str]:
    """Pairs as spelled in files: what hangs on one node together."""
    by_parent: dict[str, list[str]] = {}
    for a, b in pairs:
        by_parent.setdefault(a if b.startswith("GPU") and not a.startswith("GPU") else b, []).append(
            b if b.startswith("GPU") and not a.startswith("GPU") else a
        )
    return [f"{parent} - {run}" for parent, children in by_parent.items() for run in runs_of_names(children)]


UNSTATED = writer.number(GENERATIONS["pcie-gen4"], "GB/s", "assumed", "the file states no rate")
