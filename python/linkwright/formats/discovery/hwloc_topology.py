"""hwloc's XML, as `lstopo --output-format xml` writes it (versions 1 and 2).

    <object type="Package"> ...
      <object type="Bridge" bridge_type="0-1"> <object type="Bridge" bridge_type="1-1" pci_link_speed="31.5">
        <object type="PCIDev" pci_busid="..." pci_type="0302 [10de:2330] ..." pci_link_speed="63.0">

GPUs and network ports are found by their PCI class and the names that the operating system gives them. hwloc states the
rate of a PCIe link in GB/s. Links between GPUs are those of its matrix `NVLinkBandwidth` or `XGMIBandwidth`
(`hwloc_links`); without one, --gpu with the GPU of a board with switches adds them.

Without a GPU it is a host of cores (`CpuHost`). A core is below a package, a NUMA node and the cache of level 3, which
nest in this or another order; version 1 puts cores into a NUMA node, version 2 hangs memory on what it is near to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from linkwright.base.errors import FileError
from linkwright.base.units import counted
from linkwright.formats.discovery import hwloc_links
from linkwright.formats.discovery.node import Core, CpuHost, Lanes, Nic, Node, Up, checked, hang, slower, through_switch
from linkwright.formats.discovery.wiring import bounded
from linkwright.formats.discovery.xml_text import Element, check_spelling, read
from linkwright.machines import gpus
from linkwright.machines.gpus import GpuKind

KEY = "hwloc"
SUMMARY = "hwloc's topology (XML) of hosts with or without GPUs, by lstopo"
DOCTYPE = "topology"
GPU_CLASSES = ("0300", "0302", "0380", "1200")
ACCELERATORS = ("0302", "1200")  # which no host has for its screen
_TYPE = re.compile(r"([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\].*", re.S)
_PORT = re.compile(r"(mlx\d_|hfi|bnxt_re|irdma|rdmap|efa|ib[ps]\d|roce|hsi|cxi|hsn)\w*")
# Types of objects, of versions 1 and 2.
TYPES = {
    "System", "Machine", "Package", "Socket", "Die", "Core", "PU", "Group", "NUMANode", "MemCache", "Cache",
    "Bridge", "PCIDev", "OSDev", "Misc", *(f"L{n}{kind}Cache" for n in range(1, 6) for kind in ("", "i", "d")),
}  # fmt: skip
MOST_CORES = 4096  # of a host
ATTRIBUTES = {"PCIDev": ("type", "pci_busid", "pci_type", "pci_link_speed"), "Bridge": ("type", "bridge_type")}
_HOMES = ("Package", "Socket")
_NOWHERE = Core(-1, -1, None)
_INSIDE = Core(-2, -2, None)  # a core, whose processing units do not count


def recognises(text: str) -> bool:
    """Whether the text is such a file."""
    return re.search(r"<topology\b", text[:4096]) is not None


@dataclass
class _Found:
    """A device on its bus."""

    element: Element
    name: str
    up: Up


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.gpus: list[_Found] = []
        self.nics: list[_Found] = []
        self.switches: dict[str, Up] = {}
        self.cpus = 0
        self.vendor = ""
        self.model = ""
        self.others: list[Element] = []  # accelerators that are not known
        self.cores: list[Core] = []
        self.memories = 0
        self.last_caches = 0
        self.caches: dict[str, int] = {}

    def visit(self, element: Element, parent: str, lanes: Lanes | None, near: Core = _NOWHERE) -> None:
        kind = element.attributes.get("type")
        check_spelling(element, ATTRIBUTES.get(kind or "", ()), self.file)
        if element.tag == "object" and kind not in TYPES:
            raise FileError(f"{self.file}: line {element.line}: {str(kind)[:40]!r} is not a type of object; correct it")
        if element.tag == "info" and element.attributes.get("name") == "CPUVendor":
            self.vendor = element.attributes.get("value", "")
        if element.tag == "info" and element.attributes.get("name") == "CPUModel":
            self.model = " ".join(element.attributes.get("value", "").split())[:80]
        if kind in _HOMES:
            parent, lanes = f"CPU {self.cpus}", None
            self.cpus += 1
        near = self.place(element, near)
        if kind == "Bridge":
            lanes = slower(lanes, self.lanes(element))
            if len(_devices(element)) > 1 and element.attributes.get("bridge_type") == "1-1":
                name = f"PCIe {len(self.switches)}"
                self.switches[name] = (parent, lanes)
                parent, lanes = name, None
        if kind == "PCIDev" and not _TYPE.match(element.attributes.get("pci_type", "")):
            raise FileError(
                f"{self.file}: line {element.line}: a PCI device without its class and ids; correct pci_type"
            )
        if kind == "PCIDev" and self.device(element, parent, slower(lanes, self.lanes(element))):
            return
        for child in element.children:
            self.visit(child, parent, lanes, near)

    def place(self, element: Element, near: Core) -> Core:
        """Where cores below the element are; a core is noted, or a processing unit that is below none."""
        kind = element.attributes.get("type", "")
        if near == _INSIDE:
            return near
        if kind in _HOMES:
            near = replace(near, cpu=self.cpus - 1)
        if kind in ("Core", "PU"):
            self.cores.append(near)
            return _INSIDE
        level = _cache_level(element)
        if level:
            size = element.attributes.get("cache_size", "")
            if not re.fullmatch(r"\d{1,15}", size):
                raise FileError(
                    f"{self.file}: line {element.line}: cache_size={size[:20]!r} is not in bytes; correct it"
                )
            self.caches[f"L{level}"] = max(int(size), self.caches.get(f"L{level}", 0))
        if level == "3":
            near, self.last_caches = replace(near, cache=self.last_caches), self.last_caches + 1
        if (kind == "NUMANode" and _surrounds(element)) or any(map(_is_memory, element.children)):
            near, self.memories = replace(near, memory=self.memories), self.memories + 1
        return near

    def device(self, element: Element, parent: str, lanes: Lanes | None) -> bool:
        name = _port(element)
        kind = element.attributes.get("pci_type", "")[:4]
        if kind in ACCELERATORS and not _is_gpu(element):
            self.others.append(element)
        if _is_gpu(element):
            self.gpus.append(_Found(element, "", (parent, lanes)))
        elif name:
            self.nics.append(_Found(element, name, (parent, lanes)))
        return _is_gpu(element) or bool(name)

    def ports(self) -> list[tuple[Nic, Up]]:
        return [(Nic(found.name), found.up) for found in self.nics]

    def lanes(self, element: Element) -> Lanes | None:
        speed = element.attributes.get("pci_link_speed", "")
        if speed and not re.fullmatch(r"\d{1,5}(\.\d{1,9})?", speed):
            raise FileError(
                f"{self.file}: line {element.line}: pci_link_speed={speed[:20]!r} is not a rate in GB/s; correct it"
            )
        if not speed or not float(speed):
            return None
        return Lanes(float(speed), f"hwloc: {float(speed):g} GB/s")


def _cache_level(element: Element) -> str | None:
    """Level of a cache that holds data; version 1 has it as `depth`."""
    kind = element.attributes.get("type", "")
    if kind == "Cache" and element.attributes.get("cache_type", "0") != "2":
        return element.attributes.get("depth", "")[:1]
    match = re.fullmatch(r"L(\d)d?Cache", kind)
    return match[1] if match else None


def _is_memory(element: Element) -> bool:
    kind = element.attributes.get("type")
    return kind == "MemCache" or (kind == "NUMANode" and not _surrounds(element))


def _surrounds(element: Element) -> bool:
    """Whether a NUMA node has objects inside, as in version 1."""
    return any(child.tag == "object" and child.attributes.get("type") != "Misc" for child in element.children)


def _is_gpu(element: Element) -> bool:
    match = _TYPE.match(element.attributes.get("pci_type", ""))
    return (
        match is not None
        and match[1] in GPU_CLASSES
        and match[2].lower() in ("10de", "1002", "8086")
        and _known(element)
    )


def _known(element: Element) -> bool:
    """Whether it computes: it is known, or its vendor's software has found it. Graphics for a screen do not count."""
    match = _TYPE.match(element.attributes.get("pci_type", ""))
    assert match is not None
    computing = any(re.match(r"cuda|nvml|rsmi", child.attributes.get("name", "")) for child in element.children)
    return computing or gpus.of_pci(f"{match[2]}:{match[3]}".lower()) is not None


def _port(element: Element) -> str:
    names = [child.attributes.get("name", "") for child in element.children]
    return next((name for name in names if _PORT.fullmatch(name)), "")


def _devices(element: Element) -> list[Element]:
    """GPUs and network ports below a bridge."""
    if element.attributes.get("type") == "PCIDev":
        return [element] if _is_gpu(element) or _port(element) else []
    return [found for child in element.children for found in _devices(child)]


def read_node(text: str, file: str, gpu: GpuKind | None = None) -> Node | CpuHost:
    """The node or host that the file describes; `gpu`: what its GPUs are, where their PCI ids do not tell."""
    root = read(text, file, DOCTYPE, texts_of=hwloc_links.TEXTS)
    if root.tag != "topology":
        raise FileError(f"{file}: line {root.line}: <{root.tag}> instead of <topology>; give the XML of lstopo")
    reader = _Reader(file)
    for element in root.children:
        reader.visit(element, "CPU 0", None)
    if not reader.gpus:
        return _host(reader, gpu)
    node = Node(_device(reader, gpu), len(reader.gpus), file, cpus=max(1, reader.cpus), vendor=reader.vendor)
    _check_buses(reader)
    hang(node, reader.switches, (found.up for found in reader.gpus), reader.ports())
    node.peers = hwloc_links.peers(root, [found.element for found in reader.gpus], node.device, file)
    if not node.peers and gpu and node.device.switched:
        node.peers = through_switch(node)
    return checked(node, file)


def _host(reader: _Reader, gpu: GpuKind | None) -> CpuHost:
    if reader.others:
        other = reader.others[0]
        raise FileError(f"{reader.file}: line {other.line}: unknown GPU {_pci(other)}; {gpus.listed()}")
    if gpu:
        raise FileError(f"{reader.file}: lists no known GPU; omit --gpu")
    if len(reader.cores) < 2:
        raise FileError(
            f"{reader.file}: lists {counted(len(reader.cores), 'core')}; a machine has at least two, so give all"
        )
    bounded(len(reader.cores), MOST_CORES, reader.file, "cores")
    # What no package or memory holds is in the first.
    cores = [Core(max(0, core.cpu), max(0, core.memory), core.cache) for core in reader.cores]
    host = CpuHost(reader.file, cores, max(1, reader.cpus), reader.caches, reader.vendor, reader.model)
    hang(host, reader.switches, (), reader.ports())
    return host


def _check_buses(reader: _Reader) -> None:
    seen: set[str] = set()
    for found in reader.gpus:
        bus = found.element.attributes.get("pci_busid", "")
        if bus in seen:
            raise FileError(f"{reader.file}: line {found.element.line}: two GPUs with bus id {bus}; correct one")
        seen.add(bus)


def _pci(element: Element) -> str:
    """Vendor and device, such as `10de:2330`."""
    match = _TYPE.match(element.attributes.get("pci_type", ""))
    return f"{match[2]}:{match[3]}".lower() if match else ""


def _device(reader: _Reader, asked: GpuKind | None) -> GpuKind:
    """What the GPUs are, by their PCI ids; all are alike."""
    ids = {_pci(found.element): found for found in reader.gpus}
    said = {gpus.of_pci(pci) for pci in ids}
    if len(said) > 1:
        raise FileError(f"{reader.file}: GPUs of several kinds, {', '.join(sorted(ids))}; describe them by hand")
    device = gpus.agreed(asked, said.pop(), reader.file, exact=True)
    if device is None:
        pci, found = next(iter(ids.items()))
        raise FileError(f"{reader.file}: line {found.element.line}: unknown GPU {pci}; {gpus.listed()}")
    return device
