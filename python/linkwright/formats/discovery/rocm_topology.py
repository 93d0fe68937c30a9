"""The tables of `rocm-smi --showtopo`.

    == Weight between two GPUs ==          15 for each xGMI link on the way, so 15 is a link of their own
           GPU0         GPU1
    GPU0   0            15
    == Link Type between two GPUs ==       XGMI or PCIE
    == Numa Nodes ==                       GPU[0] : (Topology) Numa Node: 0

The tables name no GPU, count no links of a pair, and show no network ports: --gpu says which GPU it is, and a pair is
taken to have one link.
"""

from __future__ import annotations

import re

from linkwright.base.errors import FileError
from linkwright.formats.discovery.node import MOST_GPUS, Node, checked
from linkwright.machines.gpus import Gpu

KEY = "rocm-smi"
LINKS = "xgmi"
SUMMARY = "the tables of rocm-smi --showtopo"
DIRECT = 15  # weight of a link
_NUMA = re.compile(r"^GPU ?\[?(\d+)\]?\s*:\s*\(Topology\) Numa Node:\s*(\d+)", re.M)


def recognises(text: str) -> bool:
    """Whether the text has such tables."""
    return "Link Type between two GPUs" in text


def read_node(text: str, file: str, gpu: Gpu | None = None) -> Node:
    """The node of the tables; `gpu`: what its GPUs are."""
    if gpu is None:
        raise FileError(f"{file}: rocm-smi does not report the GPU model; add it, such as --gpu MI300X")
    types, weights = _table(text, "Link Type", file), _table(text, "Weight", file)
    gpus = len(types)
    if not 1 <= gpus <= MOST_GPUS or len(weights) != gpus:
        raise FileError(f"{file}: {gpus} GPUs in one table and {len(weights)} in another; give the whole output")
    node = Node(gpu, gpus, file)
    numas = {int(number): numa for number, numa in _NUMA.findall(text)}
    homes = sorted(set(numas.values()), key=int) or ["0"]
    node.cpus = len(homes)
    for i in range(gpus):
        node.tree[f"GPU {i}"] = (f"CPU {homes.index(numas.get(i, homes[0]))}", None)
    for b in range(gpus):
        for a in range(b):
            if types[a][b] != types[b][a]:
                raise FileError(f"{file}: GPU{a} to GPU{b} is {types[a][b]}, and back {types[b][a]}; one is wrong")
            if types[a][b] == "XGMI" and weights[a][b] == str(DIRECT):
                node.peers[f"GPU {a}", f"GPU {b}"] = 1
    return checked(node, file)


def _table(text: str, title: str, file: str) -> list[list[str]]:
    """The square below a title."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if re.match(rf"=+ {title} between two GPUs =+", line)), None)
    if start is None:
        raise FileError(f"{file}: has no table `{title} between two GPUs`; run rocm-smi --showtopo")
    names = lines[start + 1].split() if start + 1 < len(lines) else []
    rows = []
    for number in range(start + 2, start + 2 + len(names)):
        words = lines[number].split() if number < len(lines) else []
        if len(words) != len(names) + 1 or words[0] != names[number - start - 2]:
            raise FileError(f"{file}: line {number + 1}: no row of {len(names)} GPUs; cut file?")
        rows.append(words[1:])
    return rows
