"""What libraries say of themselves in a log: devices, versions, settings, connections."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_RANK = re.compile(r"#\s+Rank\s+(\d{1,9})\s")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d+)\s+\[[^\]]{0,40}\]\s+(.+)"
)
# What a process of nccl-tests was started with: its threads, and the GPUs of each.
_PROCESS = re.compile(r"\bnThread\s+(\d{1,6})\s+nGpus\s+(\d{1,6})\b")
_VERSION = re.compile(r"\b([NR]CCL) version[ :]+(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)
_LIBRARY = re.compile(r"nccl-library=(\d+)")
_SETTING = re.compile(r"\b([NR]CCL_[A-Z0-9_]+)(?:\s*=\s*|\s+set by environment to\s+)([\w^:.,/+-]*[\w+-])")
_VIA = re.compile(r"\bvia ((?:P2P|SHM|NET|CollNet|NVLS|MNNVL)(?:/[\w()-]+)*)")
_CHANNEL = re.compile(r"\bChannel \d{1,9}/(\d{1,9})\s*:")
_RANKS = re.compile(r"\bn[rR]anks\s+(\d+)")
_NODES = re.compile(r"\bnNodes\s+(\d+)")
_MOST_NAMES = 4096
_MOST_COUNT = 1 << 20


@dataclass
class Facts:
    """What a log says besides its numbers; empty where it says nothing.

    Attributes:
        devices: name of a device -> how many ranks have one.
        hosts: how many hosts are named.
        library: `NCCL`, `RCCL`, or the name of an MPI library.
        version: its version.
        settings: environment variables of the library -> their values.
        transports: `P2P`, `SHM`, `NET/IB`, `NET/IB/GDRDMA`, ... -> how many connections.
        channels: the most that one communicator has.
        algorithm: the algorithm that the run forced, `Ring`, `Tree`, ...
        protocol: the protocol that the run forced, `Simple`, `LL`, ...
    """

    devices: dict[str, int] = field(default_factory=dict)
    hosts: int | None = None
    library: str | None = None
    version: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    transports: dict[str, int] = field(default_factory=dict)
    channels: int | None = None

    @property
    def algorithm(self) -> str | None:
        """What `NCCL_ALGO` asks for."""
        return self.settings.get("NCCL_ALGO")

    @property
    def protocol(self) -> str | None:
        """What `NCCL_PROTO` asks for."""
        return self.settings.get("NCCL_PROTO")


@dataclass
class Group:
    """Those who ran a test together.

    Attributes:
        ranks: how many they are; 0 if nothing says.
        nodes: on how many nodes, as a library says; 0 if it does not.
        devices: the name of a device -> how many of them have one.
        gpus: a host and the number of a GPU there -> how many ranks of a list have it. Ranks do not share a GPU, so two
            nodes have the name of a host that lists one twice.
        hosts: the nodes of that list: a name, and which of the nodes of that name.
        places: the ranks of that list.
        measured: whether a row of theirs was read.
    """

    ranks: int = 0
    nodes: int = 0
    devices: dict[str, int] = field(default_factory=dict)
    gpus: dict[tuple[str, str], int] = field(default_factory=dict)
    hosts: set[tuple[str, int]] = field(default_factory=set)
    places: set[int] = field(default_factory=set)
    measured: bool = False


class Gathered:
    """Facts, as they are found line by line.

    A file may hold several runs. A list of devices that begins again is that of another group, and so is another number
    of ranks after a group has measured.
    """

    def __init__(self) -> None:
        self.facts = Facts()
        self._latest = Group()
        self._groups: dict[str, Group] = {}
        self._of_process: dict[str, int] = {}

    def group(self, label: str) -> Group:
        """The group of a task: the one whose devices the task has listed, or the last that anybody listed."""
        return self._groups.get(label, self._latest)

    def see(self, line: str, label: str = "") -> bool:
        """Take what a line says; whether it says anything."""
        if "Rank" in line and (match := _RANK.search(line)):
            named = _DEVICE.search(line)
            return self._device(label, int(match[1]), *named.groups()[1:] if named else ("", "", ""))
        if "nGpus" in line and (match := _PROCESS.search(line)):
            if len(self._of_process) < _MOST_NAMES:
                self._of_process[label] = min(int(match[1]) * int(match[2]), _MOST_COUNT)
            return True
        if "CCL" not in line and " via " not in line and "nccl-library" not in line:
            return False
        found = False
        if "ersion" in line and (match := _VERSION.search(line)):
            self.facts.library, self.facts.version, found = match[1].upper(), match[2], True
        elif "nccl-library" in line and (match := _LIBRARY.search(line)):
            self.facts.library, self.facts.version, found = "NCCL", _dotted(int(match[1][:9])), True
        for name, value in _SETTING.findall(line)[:64] if "CCL_" in line else ():
            if len(self.facts.settings) < _MOST_NAMES:
                self.facts.settings[name], found = value[:200], True
        return self._connection(label, line) or found

    def _device(self, label: str, rank: int, host: str, number: str, name: str) -> bool:
        name = name.strip()[:200]
        group = self._groups.get(label)
        if group is None or rank in group.places:
            group = self._latest = Group()
            if len(self._groups) < _MOST_NAMES or label in self._groups:
                self._groups[label] = group
        # A log may have kept the lines of some ranks only; a process has as many as it was started with.
        group.ranks = max(group.ranks, min(rank + 1, _MOST_COUNT), self._of_process.get(label, 0))
        if len(group.places) < _MOST_COUNT and len(self.facts.devices) < _MOST_NAMES:
            group.places.add(rank)
            if host:
                group.gpus[host, number] = again = group.gpus.get((host, number), 0) + 1
                group.hosts.add((host, again))
                group.devices[name] = group.devices.get(name, 0) + 1
                self.facts.devices[name] = max(self.facts.devices.get(name, 0), group.devices[name])
                self.facts.hosts = max(self.facts.hosts or 0, len(group.hosts))
        return True

    def _connection(self, label: str, line: str) -> bool:
        via = _VIA.search(line) if " via " in line else None
        channel = _CHANNEL.search(line) if "Channel" in line else None
        if via:
            name = _transport(via[1])
            self.facts.transports[name] = self.facts.transports.get(name, 0) + 1
        if channel and not via:
            self.facts.channels = max(self.facts.channels or 0, min(int(channel[1]), _MOST_COUNT))
        ranks = _RANKS.search(line) if "anks" in line else None
        nodes = _NODES.search(line) if "nNodes" in line else None
        if ranks or nodes:
            self._size(label, *(min(int(match[1][:9]), _MOST_COUNT) if match else 0 for match in (ranks, nodes)))
        return bool(via or channel or ranks or nodes)

    def _size(self, label: str, ranks: int, nodes: int) -> None:
        group = self.group(label)
        if group.measured and ranks and ranks != group.ranks:
            group = self._latest = Group()
            self._groups.pop(label, None)
        group.ranks, group.nodes = max(group.ranks, ranks), max(group.nodes, nodes)
        self.facts.hosts = max(self.facts.hosts or 0, nodes) or None


def _transport(path: str) -> str:
    """`NET/IB/GDRDMA` of `NET/IB/0(3)/GDRDMA`: what matters is the kind."""
    parts = path.split("/")
    kinds = [part for part in parts[1:] if part in ("IB", "Socket", "OFI", "AWS", "GDRDMA", "IPC", "CUMEM")]
    return "/".join([parts[0], *kinds])


def _dotted(code: int) -> str:
    """`2.27.3` of 22703, and `2.8.4` of 2804."""
    if code < 10000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
