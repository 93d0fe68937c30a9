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
from linkwright.machines.gpus import GpuKind

KEY = "rocm-smi"
LINKS = "xgmi"
SUMMARY = "the tables of rocm-smi --showtopo"
DIRECT = 15  # weight of a link
XGMI, PCIE, SELF = "XGMI", "PCIE", "0"
_NUMA = re.compile(r"^GPU ?\[?(\d{1,4})\]?\s*:\s*\(Topology\) Numa Node:\s*(-?\w+)", re.M)


def recognises(text: str) -> bool:
    """Whether the text has such tables."""
    return "Link Type between two GPUs" in text


def read_node(text: str, file: str, gpu: GpuKind | None = None) -> Node:
    """The node of the tables; `gpu`: what its GPUs are."""
    if gpu is None:
        raise FileError(f"{file}: rocm-smi does not report the GPU model; add it, such as --gpu MI300X")
    types, weights = _table(text, "Link Type", file), _table(text, "Weight", file)
    gpus = len(types)
    if not 1 <= gpus <= MOST_GPUS or len(weights) != gpus:
        raise FileError(f"{file}: {gpus} GPUs in one table and {len(weights)} in another; give the whole output")
    node = Node(gpu, gpus, file)
    numas = _numas(text, gpus, file)
    homes = sorted(set(numas.values()), key=int) or ["0"]
    node.cpus = len(homes)
    for i in range(gpus):
        node.tree[f"GPU {i}"] = (f"CPU {homes.index(numas.get(i, homes[0]))}", None)
    for b in range(gpus):
        for a in range(b + 1):
            for table in (types, weights):
                if table[a][b] != table[b][a]:
                    raise FileError(f"{file}: GPU{a} to GPU{b} is {table[a][b]}, and back {table[b][a]}; one is wrong")
            if _is_link(types[a][b], weights[a][b], a == b, f"{file}: GPU{a} to GPU{b}"):
                node.peers[f"GPU {a}", f"GPU {b}"] = 1
    return checked(node, file)


def _is_link(kind: str, weight: str, own: bool, where: str) -> bool:
    """Whether the entries of a pair mean a link of its own."""
    if (kind == SELF) != own or kind not in (XGMI, PCIE, SELF):
        raise FileError(
            f"{where}: `{kind[:20]}` is not a type of link; write {XGMI} or {PCIE}, and 0 for the GPU itself"
        )
    if not re.fullmatch(r"\d{1,4}", weight) or (own and int(weight)):
        raise FileError(f"{where}: the weight is `{weight[:20]}`; give a whole number, 0 for the GPU itself")
    if kind == XGMI and (int(weight) == 0 or int(weight) % DIRECT):
        raise FileError(f"{where}: the weight of XGMI is {weight}, not {DIRECT} for each link on the way; correct it")
    return kind == XGMI and int(weight) == DIRECT


def _numas(text: str, gpus: int, file: str) -> dict[int, str]:
    """The NUMA node of each GPU; none where the output states it of none."""
    found: dict[int, str] = {}
    for number, numa in _NUMA.findall(text):
        gpu = int(number)
        if gpu >= gpus or found.setdefault(gpu, numa) != numa or not re.fullmatch(r"-1|\d{1,4}", numa):
            raise FileError(
                f"{file}: NUMA node {numa[:20]} of GPU {gpu}, of {gpus} GPUs: it is stated twice, of no GPU, or not a "
                "number; give one unedited output"
            )
    if found and (missing := next((gpu for gpu in range(gpus) if gpu not in found), None)) is not None:
        raise FileError(f"{file}: no NUMA node of GPU {missing}, but of others; cut file?")
    return {gpu: "0" if numa == "-1" else numa for gpu, numa in found.items()}


def _table(text: str, title: str, file: str) -> list[list[str]]:
    """The square below a title."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(rf"=+ {title} between two GPUs =+", line)]
    if len(starts) > 1:
        raise FileError(f"{file}: line {starts[1] + 1}: a second table `{title} between two GPUs`; give one output")
    if not starts:
        raise FileError(f"{file}: has no table `{title} between two GPUs`; run rocm-smi --showtopo")
    start = starts[0]
    names = lines[start + 1].split() if start + 1 < len(lines) else []
    if names != [f"GPU{i}" for i in range(len(names))]:
        raise FileError(f"{file}: line {start + 2}: not a heading GPU0 GPU1 ...; give the output as it was printed")
    rows = []
    for number in range(start + 2, start + 2 + len(names)):
        words = lines[number].split() if number < len(lines) else []
        if len(words) != len(names) + 1 or words[0] != names[number - start - 2]:
            raise FileError(f"{file}: line {number + 1}: no row of {len(names)} GPUs; cut file?")
        rows.append(words[1:])
    end = start + 2 + len(names)
    if end < len(lines) and re.match(r"GPU\d+\s", lines[end]):
        raise FileError(f"{file}: line {end + 1}: more rows than the {len(names)} GPUs of the heading; cut file?")
    return rows
