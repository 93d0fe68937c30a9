"""The matrix of `nvidia-smi topo -m`.

            GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
    GPU0     X      NV18    PXB     0-47            0
    GPU1    NV18     X      SYS     48-95           1

    NV#   so many NVLinks together      PIX, PXB   one PCIe switch, or several
    PHB   the same processor            NODE, SYS  the same NUMA node, or another one

Columns are the words before `CPU Affinity`: GPUs, and ports by number or name. The matrix names no GPU. Pairs that
together have more NVLinks than a GPU has are joined through NVSwitches; there, twelve are an A100's and six a V100's.
Otherwise --gpu says which it is.
"""

from __future__ import annotations

import re

from linkwright.base.errors import FileError
from linkwright.formats.discovery.node import MOST_GPUS, SWITCH, Nic, Node, checked
from linkwright.machines.gpus import GpuKind, called, known

KEY = "nvidia-smi"
LINKS = "nvlink"
SUMMARY = "the matrix of nvidia-smi topo -m"
NEAR = ("PIX", "PXB")
WORDS = ("X", *NEAR, "PHB", "NODE", "SYS")
_NVLINKS = re.compile(r"NV([1-9]\d{0,2})")
_ROW = re.compile(r"\s*(GPU|NIC)\d+\s")
_TAILS = ("", "CPU Affinity", "CPU Affinity NUMA Affinity", "CPU Affinity NUMA Affinity GPU NUMA ID")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Links to the switches -> the GPU, where only one has so many.
TOLD_BY_LINKS = {6: "v100 sxm3", 12: "a100"}


def recognises(text: str) -> bool:
    """Whether the text has such a matrix."""
    lines = _COLOUR.sub("", text[: 1 << 16]).splitlines()
    return any(_is_head(line) for line in lines) and any(re.match(r"\s*GPU0\s+X\b", line) for line in lines)


def _is_head(line: str) -> bool:
    words = line.split()
    return words[:1] == ["GPU0"] and words[1:2] != ["X"]


def read_node(text: str, file: str, gpu: GpuKind | None = None) -> Node:
    """The node of the matrix; `gpu`: what its GPUs are, where the number of links does not tell."""
    names, rows, numas = _matrix(text, file)
    gpus = [name for name in names if name.startswith("GPU")]
    nics = [name for name in names if not name.startswith("GPU")]
    if len(gpus) > MOST_GPUS:
        raise FileError(f"{file}: {len(gpus)} GPUs; a node has at most {MOST_GPUS}")
    _check_entries(names, rows, file)
    counts = [[_links(rows[a][b]) for b in gpus] for a in gpus]
    node = Node(gpu or _told(counts, file), len(gpus), file)
    node.nics = [Nic(_legend(text).get(name, name)) for name in nics]
    homes = sorted({numas.get(name, "0") for name in gpus}, key=int)
    node.cpus = len(homes)
    for switch, members in enumerate(_groups(names, rows)):
        home = next((numas[name] for name in members if name in numas), None) or _near(members[0], gpus, rows, numas)
        cpu = f"CPU {homes.index(home) if home in homes else 0}"
        node.switches.append(f"PCIe {switch}")
        node.tree[f"PCIe {switch}"] = (cpu, None)
        for name in members:
            node.tree[_ours(name, gpus, nics)] = (f"PCIe {switch}", None)
    node.peers = _peers(counts, node.device.most_links)
    return checked(node, file)


def _ours(name: str, gpus: list[str], nics: list[str]) -> str:
    return f"GPU {gpus.index(name)}" if name in gpus else f"NIC {nics.index(name)}"


def _matrix(text: str, file: str) -> tuple[list[str], dict[str, dict[str, str]], dict[str, str]]:
    """Names of the columns, the entries by row and column, and the NUMA node of each GPU."""
    lines = _COLOUR.sub("", text).splitlines()
    head = next((number for number, line in enumerate(lines) if _is_head(line)), None)
    if head is None:
        raise FileError(f"{file}: has no line that begins with GPU0 GPU1; give the output of nvidia-smi topo -m")
    names, tail = _head(lines[head], f"{file}: line {head + 1}")
    rows: dict[str, dict[str, str]] = {}
    numas: dict[str, str] = {}
    for number, line in enumerate(lines[head + 1 :], head + 2):
        words = line.split()
        if not words:
            _check_rest(lines[number:], number + 1, file)
            break
        if words[0] not in names:
            raise FileError(
                f"{file}: line {number}: `{line.strip()[:60]}` is not a row of the matrix, whose columns are "
                f"{names[0]} to {names[-1]}; if lines are wrapped or cut, give the output as it was printed"
            )
        entries = words[1 : 1 + len(names)]
        bad = next((word for word in entries if word not in WORDS and not _NVLINKS.fullmatch(word)), None)
        if len(entries) < len(names) or bad:
            what = (
                f"`{bad}` is not a connection" if bad else f"{len(entries)} entries for {len(names)} columns; cut file?"
            )
            raise FileError(f"{file}: line {number}: {what}; give the output of nvidia-smi topo -m as it is")
        if words[0] in rows:
            raise FileError(f"{file}: line {number}: a second row {words[0]}; give one matrix")
        rows[words[0]] = dict(zip(names, entries, strict=True))
        rest = words[1 + len(names) :]
        if len(rest) > tail or (surplus := next((word for word in rest if _is_entry(word)), None)):
            raise FileError(
                f"{file}: line {number}: {words[0]} has more entries than the {len(names)} columns, such as "
                f"`{(surplus if len(rest) <= tail else rest[-1])[:20]}`; give the output as it was printed"
            )
        # `0`, or `0,3-9` where GPUs have memory that counts as further nodes; the first is that of the processors.
        if len(rest) > 1 and (numa := re.match(r"\d{1,4}(?=$|[,-])", rest[1])):
            numas[words[0]] = numa[0]
    if missing := [name for name in names if name not in rows]:
        raise FileError(f"{file}: no row for {missing[0]}; cut file?")
    return names, rows, numas


def _head(line: str, where: str) -> tuple[list[str], int]:
    """The columns of the matrix, and how many more words a row has at most."""
    found, cpu, rest = line.partition("CPU")
    tail = " ".join(f"{cpu}{rest}".split())
    names = found.split()
    if tail not in _TAILS:
        raise FileError(f"{where}: the heading ends in `{tail[:60]}`; if it is cut, give the output as it was printed")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FileError(f"{where}: two columns are named {twice}; give the output as it was printed")
    return names, tail.count("Affinity") + tail.count("ID")


def _is_entry(word: str) -> bool:
    return word in WORDS or _NVLINKS.fullmatch(word) is not None


def _check_rest(lines: list[str], first: int, file: str) -> None:
    """What stands below the matrix: a legend, and no row."""
    legend = False
    for number, line in enumerate(lines, first):
        legend = legend or line.strip().endswith("Legend:")
        if _ROW.match(line) or (line.strip() and not legend):
            raise FileError(
                f"{file}: line {number}: `{line.strip()[:60]}` is neither a row of the matrix nor its legend; give the "
                "output as it was printed"
            )


def _check_entries(names: list[str], rows: dict[str, dict[str, str]], file: str) -> None:
    """Each device is X to itself alone, and two devices have one connection."""
    for a in names:
        for b in names:
            if (rows[a][b] == "X") != (a == b):
                raise FileError(f"{file}: {a} to {b} is {rows[a][b]}; X is the connection to itself, so correct it")
            if rows[a][b] != rows[b][a]:
                raise FileError(f"{file}: {a} to {b} is {rows[a][b]}, and {b} to {a} is {rows[b][a]}; one is wrong")


def _links(entry: str) -> int:
    match = _NVLINKS.fullmatch(entry)
    return int(match[1]) if match else 0


def _switched(counts: list[list[int]], most_links: int) -> bool:
    """Whether all pairs have NVLinks, and more together than a GPU has: through switches, all of them serve each."""
    pairs = [counts[a][b] for b in range(len(counts)) for a in range(b)]
    return all(pairs) and max(map(sum, counts)) > most_links


def _told(counts: list[list[int]], file: str) -> GpuKind:
    """The GPU that so many links belong to."""
    most = max(max(row) for row in counts)
    if most in TOLD_BY_LINKS and _switched(counts, max(device.most_links for device in known())):
        return called(TOLD_BY_LINKS[most])
    joined = f"{most} NVLinks between two GPUs" if most else "no NVLink"
    raise FileError(f"{file}: {joined}, which several GPUs have; name yours, such as --gpu H100")


def _peers(counts: list[list[int]], most_links: int) -> dict[tuple[str, str], int]:
    if _switched(counts, most_links):  # a GPU with fewer links shows them in all of its pairs
        return {(f"GPU {i}", SWITCH): max(row) for i, row in enumerate(counts)}
    pairs = {(a, b): counts[a][b] for b in range(len(counts)) for a in range(b)}
    return {(f"GPU {a}", f"GPU {b}"): count for (a, b), count in pairs.items() if count}


def _groups(names: list[str], rows: dict[str, dict[str, str]]) -> list[list[str]]:
    """Devices behind one PCIe switch: those that PIX or PXB joins, directly or by way of others."""
    groups: list[list[str]] = []
    for name in names:
        near = [group for group in groups if any(rows[name][other] in NEAR for other in group)]
        merged = [other for group in near for other in group] + [name]
        groups = [group for group in groups if group not in near] + [merged]
    return sorted(groups, key=lambda group: names.index(group[0]))


def _near(name: str, gpus: list[str], rows: dict[str, dict[str, str]], numas: dict[str, str]) -> str:
    """The NUMA node of the GPU that is nearest to a port."""
    nearest = min(gpus, key=lambda gpu: WORDS.index(rows[name][gpu]) if rows[name][gpu] in WORDS else len(WORDS))
    return numas.get(nearest, "0")


def _legend(text: str) -> dict[str, str]:
    """NIC0 -> mlx5_0, as the legend below the matrix has it."""
    return dict(re.findall(r"^\s*(NIC\d+):\s*(\w+)\s*$", text, re.M))
