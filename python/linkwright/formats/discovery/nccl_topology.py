"""NCCL's and RCCL's topology XML, as `NCCL_TOPO_DUMP_FILE` writes it.

    <system version="1">
      <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" ...>
        <pci busid="0000:05:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">       a bridge or switch
          <pci busid="0000:0c:00.0" class="0x030200" ...>
            <gpu dev="0" sm="90" rank="0" gdr="1"> <nvlink target="0000:c7:00.0" count="5" tclass="0x068000"/> </gpu>
          </pci>
          <pci ... class="0x020000"> <nic> <net name="mlx5_0" speed="400000" port="1" .../> </nic> </pci>

A bridge with one thing below it adds nothing but its rate, and is left out. A link of a GPU to itself joins nothing.
The processors of several hosts in one NVLink domain state a `host_hash`; bus ids are those of one host. A port that
stands under several processors is one port. A GPU with NVLink-C2C hangs on its processor by that link.
Files that providers of clouds write by hand (NCCL_TOPO_FILE) state neither <gpu> nor NVLinks, which NCCL finds when it
runs. There, GPUs and ports are found by their PCI class, --gpu says which GPU it is unless its PCI id does, and the
links are those of a board with switches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from linkwright.base.errors import FileError
from linkwright.formats.discovery.node import SWITCH, Lanes, Nic, Node, Up, checked, hang, slower, through_switch
from linkwright.formats.discovery.xml_text import Element, check_spelling, read
from linkwright.machines import gpus
from linkwright.machines.gpus import GpuKind

KEY = "nccl-topology"
SUMMARY = "NCCL's or RCCL's topology (XML), by NCCL_TOPO_DUMP_FILE"
# GT/s of a lane -> GB/s, after the coding of its generation.
GB_PER_LANE = {2.5: 0.25, 5.0: 0.5, 8.0: 0.985, 16.0: 1.969, 32.0: 3.938, 64.0: 7.563}
SWITCH_CLASSES = ("0x068000",)
HOST_CLASS = "0x068001"  # a processor with NVLinks of its own, whose links are left out
# By PCI class, where a file names no devices: 3-D controllers and accelerators; Ethernet, InfiniBand and other ports.
GPU_CLASSES = ("0x0302", "0x0300", "0x0380", "0x1200")
NIC_CLASSES = ("0x0200", "0x0207", "0x0280")
# Elements of a file, and those that each may contain.
INSIDE = {
    "system": ("cpu",), "cpu": ("pci", "nic", "gpu"), "pci": ("pci", "gpu", "nic", "pcilink"), "nic": ("net",),
    "gpu": ("nvlink", "xgmi", "c2c"),
}  # fmt: skip
ATTRIBUTES = {
    "cpu": ("numaid", "arch", "vendor", "host_hash"), "gpu": ("dev", "sm", "gcn", "rank", "gdr", "arch"),
    "pci": ("busid", "class", "vendor", "device", "link_speed", "link_width", "subsystem_vendor", "subsystem_device"),
    "net": ("name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "keep"),
    "nvlink": ("target", "count", "tclass"), "xgmi": ("target", "count", "tclass"), "c2c": ("bw", "count"),
}  # fmt: skip
UNKNOWN_SPEED, UNKNOWN_WIDTHS = re.compile(r"|Unknown.*", re.S), ("", "0", "255")  # as kernels have it
WIDTHS = ("1", "2", "4", "8", "12", "16", "32")
MOST_MBPS = 3_200_000
_SPEED = re.compile(r"\s*(\d+(?:\.\d+)?)\s*GT/s.*", re.S)


def recognises(text: str) -> bool:
    """Whether the text is such a file."""
    return re.search(r"<system\b", text[:4096]) is not None


@dataclass
class _Place:
    """A device on its bus: the element, what it hangs on, the slowest link up to there, and its host."""

    element: Element
    up: Up
    host: str

    @property
    def bus(self) -> tuple[str, str]:
        """The host and the bus id, which together are of one device alone."""
        return self.host, self.element.attributes.get("busid", "").lower()


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.gpus: list[tuple[Element, _Place]] = []
        self.nics: list[tuple[Element, _Place]] = []
        self.switches: dict[str, Up] = {}
        self.hosts: list[str] = []  # of each processor
        self.vendor = ""
        self.by_class = False

    def wrong(self, element: Element, problem: str) -> FileError:
        return FileError(f"{self.file}: line {element.line}: {problem}")

    def system(self, root: Element) -> None:
        self.by_class = not _named(root, "gpu")
        for element in root.children:
            if element.tag == "cpu":
                self.vendor = self.vendor or _vendor(element)
                self.hosts.append(element.attributes.get("host_hash", ""))
                self.below(element, f"CPU {len(self.hosts) - 1}", None)

    def below(self, element: Element, parent: str, lanes: Lanes | None) -> None:
        for child in element.children:
            if child.tag == "pci":
                self.pci(child, parent, slower(lanes, self.lanes(child)))
            elif child.tag in ("gpu", "nic"):
                self.device(child, self.place(element, parent, lanes))

    def place(self, element: Element, parent: str, lanes: Lanes | None) -> _Place:
        return _Place(element, (parent, lanes), self.hosts[-1])

    def pci(self, element: Element, parent: str, lanes: Lanes | None) -> None:
        kind = _kind(element)
        if self.by_class and kind and not element.children:
            (self.gpus if kind == "gpu" else self.nics).append((element, self.place(element, parent, lanes)))
        elif len(self.devices(element)) > 1:
            name = f"PCIe {len(self.switches)}"
            self.switches[name] = (parent, lanes)
            self.below(element, name, None)
        else:
            self.below(element, parent, lanes)

    def device(self, element: Element, place: _Place) -> None:
        if element.tag == "gpu":
            own = next((child for child in element.children if child.tag == "c2c"), None)
            self.gpus.append((element, self.beside(own, place) if own else place))
            return
        known = {(there.host, net.attributes["dev"]): net for net, there in self.nics if "dev" in net.attributes}
        for net in element.children:
            name, dev = net.attributes.get("name"), net.attributes.get("dev")
            other = known.setdefault((place.host, dev), net) if dev is not None else net
            if other.attributes.get("name") != name:
                raise self.wrong(net, f"port {name} has dev {dev}, as {other.attributes.get('name')} has; correct one")
            if other is net:
                self.nics.append((net, place))

    def beside(self, link: Element, place: _Place) -> _Place:
        """The place of a GPU whose own link to the processor is NVLink-C2C."""
        mbps, count = _number(self, link, "bw"), _number(self, link, "count")
        if mbps < 1 or count < 1:
            raise self.wrong(link, f"bw={mbps}, count={count}; an existing link has both above 0")
        lanes = Lanes(mbps * count / 1000, f"NVLink-C2C: {count} x {mbps / 1000:g} GB/s")
        return replace(place, up=(f"CPU {len(self.hosts) - 1}", lanes))

    def devices(self, element: Element) -> list[Element]:
        """GPUs and ports below an element."""
        if element.tag in ("gpu", "net") or (self.by_class and _kind(element) and not element.children):
            return [element]
        return [found for child in element.children for found in self.devices(child)]

    def lanes(self, element: Element) -> Lanes | None:
        speed, width = element.attributes.get("link_speed", ""), element.attributes.get("link_width", "")
        match = _SPEED.fullmatch(speed)
        if width not in (*WIDTHS, *UNKNOWN_WIDTHS):
            raise self.wrong(element, f"link_width={width[:20]!r} is not a number of lanes, such as 16; correct it")
        if match is None and not UNKNOWN_SPEED.fullmatch(speed):
            raise self.wrong(element, f"link_speed={speed[:20]!r} is not a rate such as 32.0 GT/s; correct it")
        if match is None or width in UNKNOWN_WIDTHS:
            return None
        rate = GB_PER_LANE.get(float(match[1]))
        if rate is None:
            raise self.wrong(element, f"link_speed {speed!r} does not belong to a PCIe generation; correct it")
        return Lanes(rate * int(width), f"{match[1]} GT/s on {width} lanes")


def _vendor(cpu: Element) -> str:
    """Who made a processor; files name that of x86 alone."""
    return cpu.attributes.get("vendor") or {"arm64": "ARM", "ppc64": "IBM"}.get(cpu.attributes.get("arch", ""), "")


def _check_elements(element: Element, reader: _Reader) -> None:
    """Refuse an element that is unknown or is inside of the wrong one, and misspelt attributes."""
    check_spelling(element, ATTRIBUTES.get(element.tag, ()), reader.file)
    for child in element.children:
        inside = INSIDE.get(element.tag, ())
        if child.tag not in inside:
            known = f"; there can be {', '.join(inside)}" if inside else ""
            raise reader.wrong(child, f"<{child.tag[:40]}> inside of <{element.tag}>{known}. Correct it")
        _check_elements(child, reader)


def _named(element: Element, tag: str) -> bool:
    """Whether there is such an element below."""
    return element.tag == tag or any(_named(child, tag) for child in element.children)


def _kind(element: Element) -> str | None:
    """`gpu` or `net`, by the PCI class."""
    stated = element.attributes.get("class", "")
    return "gpu" if stated.startswith(GPU_CLASSES) else "net" if stated.startswith(NIC_CLASSES) else None


def read_node(text: str, file: str, gpu: GpuKind | None = None) -> Node:
    """The node that the file describes; `gpu`: what its GPUs are, where the file cannot say."""
    root = read(text, file)
    if root.tag != "system":
        raise FileError(f"{file}: line {root.line}: <{root.tag}> instead of <system>; give the dump of NCCL")
    reader = _Reader(file)
    _check_elements(root, reader)
    reader.system(root)
    if not reader.gpus:
        raise FileError(
            f"{file}: holds no <gpu> and no device of a GPU's PCI class; dump the topology of a run on GPUs "
            "(NCCL_TOPO_DUMP_FILE)"
        )
    if not reader.by_class:
        order = list(dict.fromkeys(reader.hosts))
        reader.gpus.sort(key=lambda found: (order.index(found[1].host), _number(reader, found[0], "dev")))
    buses = _buses(reader)
    device = _device(reader, gpu)
    node = Node(device, len(reader.gpus), file, cpus=len(reader.hosts), vendor=reader.vendor, hosts=reader.hosts)
    hang(node, reader.switches, (place.up for _, place in reader.gpus), _ports(reader))
    node.peers = _peers(reader, buses)
    if not node.peers and (gpu or reader.by_class) and device.switched:
        node.peers = through_switch(node)
    return checked(node, file)


def _ports(reader: _Reader) -> Iterator[tuple[Nic, Up]]:
    for i, (net, place) in enumerate(reader.nics):
        name = net.attributes.get("name", f"port {i}")
        yield Nic(name, _mbps(reader, net), direct=net.attributes.get("gdr") != "0"), place.up


def _buses(reader: _Reader) -> dict[tuple[str, str], int]:
    """Host and bus id -> number of the GPU."""
    found: dict[tuple[str, str], int] = {}
    for i, (element, place) in enumerate(reader.gpus):
        if place.bus in found:
            raise reader.wrong(
                element,
                f"GPU {i} has bus id {place.bus[1]}, as GPU {found[place.bus]} has; are they parts of one (MIG, "
                "virtual functions)? Give the file of whole GPUs",
            )
        found[place.bus] = i
    return found


def _device(reader: _Reader, asked: GpuKind | None) -> GpuKind:
    """What the GPUs are, by their architecture or PCI id; all are alike."""
    ids = {f"{_hex(place.element, 'vendor')}:{_hex(place.element, 'device')}" for _, place in reader.gpus}
    known = {gpus.of_pci(pci) for pci in ids}
    exact = reader.by_class or None not in known
    said = ids if reader.by_class else {_architecture(reader, element) for element, _ in reader.gpus}
    if not exact:
        known = {gpus.of_architecture(architecture) for architecture in said}
    if len(known) > 1 or (len(said) > 1 and not reader.by_class):
        names = sorted({*said, *(gpu.name for gpu in known if gpu and exact)})
        raise FileError(f"{reader.file}: GPUs of several kinds, {', '.join(names)}; describe them by hand")
    stated = known.pop()
    if stated and not reader.by_class and said.isdisjoint(stated.architecture):
        raise FileError(
            f"{reader.file}: states PCI id {min(ids)}, {stated.name}, and architecture {min(said)}, which is another "
            "GPU's; correct one"
        )
    device = gpus.agreed(asked, stated, reader.file, exact)
    if device is None:
        which = "names no GPU" if said == {":"} else f"unknown GPU {', '.join(sorted(said))}"
        raise FileError(f"{reader.file}: {which}; {gpus.listed()}")
    return device


def _hex(element: Element, key: str) -> str:
    return element.attributes.get(key, "").lower().removeprefix("0x")


def _architecture(reader: _Reader, gpu: Element) -> str:
    if gcn := gpu.attributes.get("gcn"):
        return gcn if gcn.startswith("gfx") else f"gcn{gcn}"
    return f"sm{_number(reader, gpu, 'sm')}"


def _number(reader: _Reader, element: Element, key: str) -> int:
    number = _optional(reader, element, key)
    if number is None:
        raise reader.wrong(element, f"<{element.tag}> has no {key}; cut file?")
    return number


def _optional(reader: _Reader, element: Element, key: str) -> int | None:
    value = element.attributes.get(key)
    if value is None:
        return None
    if not re.fullmatch(r"-?\d{1,9}", value):
        raise reader.wrong(element, f"{key}={value!r} is not a whole number; correct it")
    return int(value)


def _mbps(reader: _Reader, net: Element) -> int | None:
    """The rate of a port in Mb/s; None where it is not stated."""
    found = _optional(reader, net, "speed")
    if found is not None and not 0 <= found <= MOST_MBPS:
        raise reader.wrong(net, f"speed={found} is not the rate of a port in Mb/s, such as 400000; correct it")
    return found


def _peers(reader: _Reader, buses: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Links between GPUs as both ends state them, and those to switches, summed over their chips."""
    stated: dict[tuple[int, int], int] = {}
    found: dict[tuple[str, str], int] = {}
    for i, (gpu, place) in enumerate(reader.gpus):
        for link in gpu.children:
            if link.tag not in ("nvlink", "xgmi"):
                continue
            target, count = link.attributes.get("target", "").lower(), _number(reader, link, "count")
            if count < 1:
                raise reader.wrong(link, f"count={count}; an existing link counts at least 1")
            other = buses.get((place.host, target))
            if other == i:
                continue
            if other is not None:
                stated[i, other] = stated.get((i, other), 0) + count
            elif _is_switch(link):
                found[f"GPU {i}", SWITCH] = found.get((f"GPU {i}", SWITCH), 0) + count
            elif link.attributes.get("tclass") != HOST_CLASS:
                raise reader.wrong(link, f"GPU {i} has a link to {target}, which is not in the file; complete the file")
    for (a, b), count in stated.items():
        back = stated.get((b, a), 0)
        if back != count:
            raise FileError(
                f"{reader.file}: GPU {a} states {count} links to GPU {b}, which states {back} back; one is down, or "
                "the file was edited. Describe the healthy node, and remove links with --degrade"
            )
        found[f"GPU {min(a, b)}", f"GPU {max(a, b)}"] = count
    return found


def _is_switch(link: Element) -> bool:
    return link.attributes.get("tclass") in SWITCH_CLASSES or link.attributes.get("target", "").startswith("ffff:ff")
