"""The machine file of a `CpuHost`: cores that exchange messages through caches and memory, and network ports.

core 0 --- L3 0 --\\
core 1 ---/        memory 0 --- CPU 0 --- CPU 1
                                  |
                                NIC 0

A cache or a memory that all cores of its processor share adds nothing and is left out, and so is a cache of one core.
The description has no rates but those of PCIe, so the others are assumed, as `network_rates.toml` has them. Sizes of
caches are facts, which no model reads.

What it does not do: the memory's own bandwidth, and where data lie. `linkwright fit` measures the rates of a host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from linkwright._native import runs_of_names
from linkwright.base.units import counted
from linkwright.formats.discovery import network_rates, node_file
from linkwright.formats.discovery.node import CpuHost
from linkwright.formats.discovery.wiring_text import edges, stated
from linkwright.machines import writer

Table = dict[str, Any]

# First letters of a port's name -> the network whose software is that of hosts; others have none.
NETWORKS = {"hsn": "slingshot-hosts", "cxi": "slingshot-hosts", "mlx": "hdr-hosts", "ib": "hdr-hosts"}
MEASURE = "to measure them, run `linkwright dissect` there, then `linkwright fit latest`"


def text(host: CpuHost, name: str) -> str:
    """Return the machine file of a host."""
    columns = _columns(host)
    links = _links(host, list(columns.items()))
    switches = [f"CPU {i}" for i in range(host.cpus)]
    switches += [one for kind, names in columns.items() if kind != "CPU" for one in dict.fromkeys(names)]
    switches += [*host.switches, *(f"NIC {i}" for i in range(len(host.nics)))]
    ports = f", {counted(len(host.nics), 'network port')}" if host.nics else ""
    processors = counted(host.cpus, "processor") + (f" {host.model}" if host.model else "")
    about = f"Links are those of {host.source}. Rates between cores are assumed; {MEASURE}."
    summary = f"{len(host.cores)} cores of {processors}{ports}, rates assumed; from {host.source}"
    document = {
        "machine": {
            "name": name, "summary": summary, "description": about, "format": 1, "sources": [host.source],
        },
        "level": [{"name": key, "count": count, "source": host.source} for key, count in _levels(columns, host)],
        "endpoints": {"count": len(host.cores), "name": "core {i}", "source": host.source},
        **_cluster(host, links),
        "fabric": {
            "kind": "flow", "switches": runs_of_names(switches), "links": links,
            "transport": {"host": {"links": list(links), "start": _assumed("start"), "rate": _assumed("copy_rate")}},
            "network": {"mpi": {"transports": ["host"]}},
        },
        "hints": {"networks": ["mpi"]},
        "path": {"mpi": {
            "summary": "messages of MPI between cores", "completion": "source_free",
            **{key: _assumed(key) for key in ("receive", "combine_rate", "copy_rate")},
        }},
        "facts": {
            f"{level.lower()}_size": writer.number(size, "B", "documented", f"{host.source}: the largest {level}")
            for level, size in sorted(host.caches.items())
        },
    }  # fmt: skip
    return writer.text(document)


def _assumed(key: str) -> Table:
    return stated(network_rates.number("host", key))


def _columns(host: CpuHost) -> dict[str, list[str]]:
    """By kind, the outermost first, what each core is below; only what divides the kind before it."""
    found = {"CPU": [f"CPU {core.cpu}" for core in host.cores]}
    outer = found["CPU"]
    for kind, numbers in (("memory", [c.memory for c in host.cores]), ("L3", [c.cache for c in host.cores])):
        order = {number: f"{kind} {i}" for i, number in enumerate(dict.fromkeys(numbers))}
        names = [order[number] for number in numbers]
        nested = len(set(zip(names, outer, strict=True))) == len(order)
        if None not in order and nested and len(set(outer)) < len(order) < len(names):
            outer = found[kind] = names
    return found


def _levels(columns: Mapping[str, list[str]], host: CpuHost) -> list[tuple[str, int]]:
    """The levels of the cores, which is one where not all parts of a kind hold equally many of the next."""
    cores = [str(i) for i in range(len(host.cores))]
    found, outer = [], [""] * len(cores)
    for kind, names in (*columns.items(), ("core", cores)):
        counts = set(Counter(above for above, _ in set(zip(outer, names, strict=True))).values())
        if len(counts) > 1:
            return [("core", len(cores))]
        found.append((kind, counts.pop()))
        outer = names
    return [level for level in found if level[1] > 1] or found[-1:]


def _links(host: CpuHost, columns: Sequence[tuple[str, list[str]]]) -> dict[str, Table]:
    """Classes of links: from each kind to what is outside it, and those of PCIe."""
    found = {}
    inner = [f"core {i}" for i in range(len(host.cores))]
    for kind, (_, outer) in zip(("core", *(kind for kind, _ in reversed(columns))), reversed(columns), strict=False):
        key = {"L3": "cache"}.get(kind, kind)
        pairs = list(dict.fromkeys(zip(outer, inner, strict=True)))
        found[key] = {"edges": list(edges(pairs)), "source": host.source, "bandwidth": _assumed(key)}
        found[key]["latency"] = _assumed(f"{key}_latency")
        inner = outer
    if host.cpus > 1:
        found |= node_file.sockets(host)
        found["socket"]["latency"] = _assumed("socket_latency")
    pcie = node_file.classes("pcie", list(host.parts("PCIe")), host) | node_file.classes(
        "nic", list(host.parts("NIC")), host
    )
    for link in pcie.values():
        link.setdefault("bandwidth", node_file.UNSTATED)
    return found | pcie


def _cluster(host: CpuHost, links: Mapping[str, Table]) -> Table:
    """How the host joins others; nothing where no network of hosts is known for its ports."""
    network = next((key for first, key in NETWORKS.items() if host.nics and host.nics[0].name.startswith(first)), None)
    if network is None:
        return {}
    if mbps := host.nics[0].mbps:
        network += f",rate={mbps // 1000}"
    ports = runs_of_names([f"NIC {i}" for i in range(len(host.nics))])
    return {"cluster": {"ports": ports[0], "network": network, "direct": list(links)}}
