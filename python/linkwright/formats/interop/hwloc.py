"""hwloc's XML: the topology that the system claims, with measured distances between its processors.

    Machine > NUMANode, Package > L3Cache > L2Cache > L1Cache > Core > PU
    distances2   one matrix of latencies (ns), one of bandwidths (MB/s) if every pair was measured

hwloc, and with it Open MPI, Slurm and MPICH, read such a file through `HWLOC_XMLFILE`; `lstopo
--distances` prints it. A matrix of hwloc holds integers and no holes, so a latency is rounded to 1 ns,
the diagonal is 0, and a matrix with a missing pair is left out. A described machine has no processor
numbers of an operating system: its endpoints become one PU each, numbered as `machines show` lists them.

Objects nest by their sets of processors: of two sets the larger is outside, and equal sets nest in the
order above.

Source: hwloc 2, doc/hwloc.doxy ("Importing and exporting topologies from/to XML files"), hwloc2.dtd.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from linkwright.base.errors import StoreError
from linkwright.executors import is_modelled
from linkwright.store.topology import cpu_list

from .formats import Content, Exporter

# hwloc_distances_kind_e: from the user, means latency, means bandwidth.
_FROM_USER, _LATENCY, _BANDWIDTH = 2, 4, 8
# Metric of a result row -> (name of the matrix, kind, what one unit of hwloc is in ours).
_MATRICES = {
    "latency": ("LinkwrightLatencyNs", _FROM_USER | _LATENCY, 1.0),
    "bandwidth": ("LinkwrightBandwidthMBps", _FROM_USER | _BANDWIDTH, 1e6),
}
_ORDER = ("Machine", "Package", "L3Cache", "L2Cache", "L1Cache", "Core", "PU")


@dataclass
class _Object:
    """An object of the topology; children are the next smaller sets inside."""

    kind: str
    cpus: frozenset[int]
    index: int | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    children: list[_Object] = field(default_factory=list)


def _render(content: Content) -> str:
    """The XML of one machine of the run."""
    rows = [row for row in content.rows if _is_of_a_matrix(row)]
    if not rows:
        raise StoreError(f"{content.run}: holds no matrix between endpoints; run the suite `dissect` for one")
    machine = content.only_machine(rows, "matrices")
    names = list(dict.fromkeys(name for row in rows for name in row["placement"].split("->")))
    processors = {name: int(match[1]) for name in names if (match := re.fullmatch(r"cpu (\d+)", name))}
    # Only processors of a measured host are in the topology that its system claims; SMs of its GPU are not.
    measured = not is_modelled(rows[0]["executor"]) and bool(processors) and bool(content.environment.get("topology"))
    if measured:
        numbers = processors
        objects = _claimed(content.environment)
    else:
        numbers = {name: number for number, name in enumerate(names)}
        objects = [_Object("PU", frozenset([n]), n, name=name) for name, n in numbers.items()]
    root = _nested(objects, machine)
    topology = ElementTree.Element("topology", version="2.0")
    _write(topology, root, _memory(content.environment if measured else {}, root), iter(range(1, 1 << 30)))
    for metric, (title, kind, unit) in _MATRICES.items():
        _write_matrix(topology, title, kind, [r for r in rows if r["metric"] == metric], numbers, unit)
    ElementTree.indent(topology)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return head + ElementTree.tostring(topology, encoding="unicode") + "\n"


def _is_of_a_matrix(row: dict) -> bool:
    """Whether it is of messages between two endpoints; a probe between them, such as `cache_line`, sends none."""
    return bool(row["placement"]) and "->" in row["placement"] and row["size_bytes"] is not None and not row["axes"]


def _claimed(environment: dict) -> list[_Object]:
    """Packages, caches, cores and processors as /sys described them during the run."""
    found: dict[tuple, _Object] = {}

    def add(kind: str, cpus: frozenset[int], index: int | None = None, **attributes: str) -> None:
        found.setdefault((kind, cpus), _Object(kind, cpus, index, attributes))

    rows = environment["topology"]
    for row in rows:
        same = [other["cpu"] for other in rows if other["package"] == row["package"]]
        add("Package", frozenset(same), int(row["package"] or 0))
        siblings = cpu_list(row["siblings"] or str(row["cpu"]))
        add("Core", siblings, int(row["core"] or 0))
        add("PU", frozenset([row["cpu"]]), row["cpu"])
        for cache in row["caches"]:
            if cache["type"] != "Instruction" and cache["level"] in ("1", "2", "3") and cache["size"]:
                bytes_ = int(cache["size"].removesuffix("K")) * 1024
                kind = "1" if cache["type"] == "Data" else "0"
                # Older runs did not note line size and ways; 0 means unknown to hwloc.
                line, ways = (cache.get(key) or "0" for key in ("coherency_line_size", "ways_of_associativity"))
                size = {"cache_size": str(bytes_), "depth": cache["level"], "cache_type": kind}
                shared = cpu_list(cache["shared_cpu_list"] or str(row["cpu"]))
                add(f"L{cache['level']}Cache", shared, **size, cache_linesize=line, cache_associativity=ways)
    return list(found.values())


def _nested(objects: list[_Object], name: str) -> _Object:
    """A tree by inclusion of the sets of processors."""
    root = _Object("Machine", frozenset().union(*(o.cpus for o in objects)), 0, name=name)
    stack = [root]
    order = sorted(objects, key=lambda o: (min(o.cpus), -len(o.cpus), _ORDER.index(o.kind)))
    for item in order:
        while not item.cpus <= stack[-1].cpus:
            stack.pop()
        stack[-1].children.append(item)
        stack.append(item)
    return root


def _memory(environment: dict, root: _Object) -> dict[str, str]:
    """Attributes of the one NUMA node that hwloc asks for; its size where it is known."""
    size = environment.get("memory_bytes", 0)
    return {"type": "NUMANode", "os_index": "0", "local_memory": str(size), **_sets(root)}


def _sets(item: _Object) -> dict[str, str]:
    """Bitmaps as hwloc writes them: words of 32 bits, the highest first."""
    mask = sum(1 << cpu for cpu in item.cpus)
    words = max(1, (mask.bit_length() + 31) // 32)
    text = ",".join(f"0x{mask >> 32 * i & 0xFFFFFFFF:08x}" for i in reversed(range(words)))
    return {"cpuset": text, "complete_cpuset": text, "nodeset": "0x00000001", "complete_nodeset": "0x00000001"}


def _write(parent: ElementTree.Element, item: _Object, memory: dict[str, str] | None, ids) -> None:
    sets = _sets(item)
    if item.kind == "Machine":
        sets |= {"allowed_cpuset": sets["cpuset"], "allowed_nodeset": sets["nodeset"]}
    index = {} if item.index is None else {"os_index": str(item.index)}
    element = ElementTree.SubElement(parent, "object", type=item.kind, **index, **sets, gp_index=str(next(ids)))
    element.attrib.update(item.attributes)
    if item.name:
        ElementTree.SubElement(
            element, "info", name="LinkwrightEndpoint" if item.kind == "PU" else "HostName", value=item.name
        )
    if memory:
        ElementTree.SubElement(element, "object", **memory, gp_index=str(next(ids)))
    for child in item.children:
        _write(element, child, None, ids)


def _write_matrix(
    topology: ElementTree.Element, name: str, kind: int, rows: list[dict], numbers: dict[str, int], unit: float
) -> None:
    """One `distances2`; none where a pair is missing, or where sizes make it ambiguous."""
    order = sorted(numbers, key=numbers.get)
    place = {endpoint: i for i, endpoint in enumerate(order)}
    matrix = np.full((len(order), len(order)), np.nan)
    np.fill_diagonal(matrix, 0)
    sizes = sorted({row["size_bytes"] for row in rows})
    for row in rows:
        source, destination = row["placement"].split("->")
        if row["size_bytes"] == sizes[0] and source in place and destination in place and row["value"] is not None:
            matrix[place[source], place[destination]] = row["value"] / unit
    if len(order) < 2 or np.isnan(matrix).any():
        return
    attributes = {"type": "PU", "nbobjs": str(len(order)), "kind": str(kind), "name": name, "indexing": "os"}
    element = ElementTree.SubElement(topology, "distances2", attributes)
    _numbers(element, "indexes", [numbers[endpoint] for endpoint in order])
    for line in matrix:
        _numbers(element, "u64values", [round(value) for value in line])


def _numbers(parent: ElementTree.Element, tag: str, values: list[int]) -> None:
    text = "".join(f"{value} " for value in values)
    ElementTree.SubElement(parent, tag, length=str(len(text))).text = text


EXPORTER = Exporter(
    "hwloc",
    "hwloc 2 XML: the machine's topology with measured distances (distances2)",
    "Topology of one machine of the run as the system claims it, with the measured matrices of latency (ns) and "
    "bandwidth (MB/s) between processors. Read by hwloc, lstopo, Open MPI and Slurm through HWLOC_XMLFILE.",
    "hwloc 2, hwloc2.dtd",
    _render,
    needs="latencies between the endpoints of one machine, as the suite `dissect` measures them",
)
