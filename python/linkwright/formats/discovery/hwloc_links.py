"""Links between GPUs in hwloc's XML: its matrix of bandwidths.

    <distances2hetero nbobjs="3" kind="25" name="NVLinkBandwidth">
      <indexes length="20">OSDev:80 OSDev:81 PCIDev:44</indexes>         objects by gp_index
      <u64values length="..">0 0 150000 0 0 150000 150000 ...</u64values>    MB/s, row by row

An object is a GPU, or what the operating system has below one (`nvml0`); another PCI device is a chip of an NVSwitch,
whatever class a container shows of it; links of processors are left out. A bandwidth is that of all links of a pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkwright.base.errors import FileError
from linkwright.formats.discovery.node import SWITCH
from linkwright.formats.discovery.xml_text import Element
from linkwright.machines.gpus import GpuKind

TEXTS = ("indexes", "u64values")
MATRICES = {"nvlink": "NVLinkBandwidth", "xgmi": "XGMIBandwidth"}
MOST_OBJECTS = 1024
NEAR = 0.1  # of a whole number of links

Pair = tuple[str, str]


def peers(root: Element, gpus: Sequence[Element], device: GpuKind, file: str) -> dict[Pair, int]:
    """(GPU, GPU or NVSwitch) -> how many links join them; empty without a matrix."""
    matrix = next((one for one in root.children if one.attributes.get("name") == MATRICES[device.links]), None)
    if matrix is None:
        return {}
    indices, values = _words(matrix, "indexes"), _words(matrix, "u64values")
    count = len(indices)
    wrong = f"{file}: line {matrix.line}: {matrix.attributes['name']}"
    if count > MOST_OBJECTS or len(values) != count * count or not all(re.fullmatch(r"\d{1,15}", v) for v in values):
        raise FileError(f"{wrong}: {len(values)} numbers for {count} objects, at most {MOST_OBJECTS}; cut file?")
    named = _named(root, gpus)
    if missing := next((index for index in indices if index.rpartition(":")[2] not in named), None):
        raise FileError(f"{wrong}: the file lacks object {missing}; give the whole file")
    names = [named[index.rpartition(":")[2]] for index in indices]
    found: dict[Pair, int] = {}
    for a, b in ((a, b) for a in range(count) for b in range(count) if a != b and names[a] != names[b]):
        mbps, back = int(values[a * count + b]), int(values[b * count + a])
        if not names[a].startswith("GPU") or not (names[b].startswith("GPU") or names[b] == SWITCH) or not mbps + back:
            continue
        if mbps != back:
            raise FileError(f"{wrong}: {names[a]} to {names[b]} is {mbps} MB/s, and back {back}; is a link down?")
        pair = names[a], names[b]
        if names[b] == SWITCH:  # one object for each of its chips
            found[pair] = found.get(pair, 0) + _links(mbps, device, wrong)
        elif pair[::-1] not in found:
            found[pair] = _links(mbps, device, wrong)
    return found


def _words(matrix: Element, tag: str) -> list[str]:
    return [word for child in matrix.children if child.tag == tag for word in "".join(child.pieces).split()]


def _named(root: Element, gpus: Sequence[Element]) -> dict[str, str]:
    """gp_index -> `GPU i` for a GPU and what is below it, NVSwitch for other PCI devices, otherwise empty."""
    found = {}
    for element in _all(root):
        found[element.attributes.get("gp_index", "")] = SWITCH if element.attributes.get("type") == "PCIDev" else ""
    for i, gpu in enumerate(gpus):
        found |= {element.attributes.get("gp_index", ""): f"GPU {i}" for element in _all(gpu)}
    return found


def _all(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _all(child)


def _links(mbps: int, device: GpuKind, wrong: str) -> int:
    """How many links have this bandwidth together."""
    count = round(mbps / 1000 / device.link_gb_per_s)
    if abs(mbps / 1000 - count * device.link_gb_per_s) > NEAR * mbps / 1000:
        raise FileError(
            f"{wrong}: {mbps} MB/s is not a whole number of links of {device.name}, {device.link_gb_per_s:g} GB/s "
            "each; correct one"
        )
    return count
