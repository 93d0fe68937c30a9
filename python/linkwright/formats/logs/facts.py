"""What libraries say of themselves in a log: devices, versions, settings, connections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from . import topology
from .topology import SeenTopology

_RANK = re.compile(r"#\s+Rank\s+(\d{1,9})\s")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S.{0,80}?)\s+device\s+(\d+)\s+\[[^\]]{0,40}\]\s+(.+)"
)
# What a process of nccl-tests was started with: its threads, and the GPUs of each.
_PROCESS = re.compile(r"\bnThread\s+(\d{1,6})\s+nGpus\s+(\d{1,6})\b")
_SIZES = re.compile(r"\bmaxBytes\s+(\d{1,15})\s+step:\s+(\d{1,15})\((factor|bytes)\)")
_VERSION = re.compile(r"\b([NR]CCL) version[ :]+(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)
_LIBRARY = re.compile(r"\b([nr]ccl)-library=(\d+)(?![.\d])")
_SETTING = re.compile(r"\b([NR]CCL_[A-Z0-9_]+)(?:\s*=\s*|\s+set (?:by environment )?to\s+)([\w^:.,;/+=-]*[\w+-])")
# Patterns begin with a word rather than with its border, so that a search is fast.
_VIA = re.compile(r"via (?<=\bvia )((?:P2P|SHM|NET|CollNet|NVLS|MNNVL)(?:/[\w()-]+(?: Libfabric)?)*)")
_CHANNEL = re.compile(r"Channel (?<=\bChannel )\d{1,9}/(\d{1,9})\s*:")
# What stands in front of a line of the library: the host, the process, the thread and the number of the GPU.
_WRITER = re.compile(r"^\s*(\S{1,200}?):\d{1,9}:\d{1,9}\s")
_ADAPTERS = re.compile(r"NET/IB\s*:\s*Using (\[\d.{0,4000})")
_ADAPTER = re.compile(r"\[\d{1,4}\]([\w.-]{1,64}):(\d{1,3})/(\w{1,16})")
_NETWORK = re.compile(r"\b(?:Using network (\w[\w ]{0,40}\w|\w)|Assigned NET plugin (\w[\w ]{0,40}) to comm)")
# Old versions name no network: they list the interfaces of the one that they took, or the provider of its plugin.
_INTERFACES = re.compile(r"NET/Socket\s*:\s*Using \[\d")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (\w{1,20})")
_NO_VERBS = re.compile(r"NET/IB : No device found|Failed to open libibverbs")
_MULTICAST = re.compile(r"NVLS multicast support is (not )?available")
_COUNTS = re.compile(r"\b(\d{1,4}) coll channels\b(?:.*\b(\d{1,4}) nvls channels\b)?")
_GDR = re.compile(r"GPU ?Direct RDMA (Disabled|Enabled) for")
_PORT_USED = re.compile(r"via (?<=\bvia )NET/[\w ]{1,40}/(\d{1,4})")
_NO_SHARP = re.compile(r"[Cc]annot create SHARP job|CollNet is not supported or fails to initialize")
_CHOSEN = re.compile(r"\b(?:(?:All|Reduce|Broadcast)\w{0,16}: )?(\d{1,18}) Bytes -> Algo (\w{1,20}) proto (\w{1,10})\b")
_ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")  # by the library's number
_PROTOCOLS = ("ll", "ll128", "simple")
_TRAYS = re.compile(r"\bMNNVL ([01])\b")
_RANKS = re.compile(r"\bn[rR]anks\s+(\d+)")
_NODES = re.compile(r"\bnNodes\s+(\d+)")
_MOST_NAMES = 4096
_MOST_COUNT = 1 << 20
_MOST_BESIDE = 64
_MARKS = (
    "CCL", " via ", "ccl-library", "NVLS", "Using network", "NET plugin", "coll channels", "SHARP", " Algo ",
    *topology.MARKS,
)  # fmt: skip
# A line with none of these says nothing, unless it is of a connection.
MARKS = (
    "Rank ", "Rank[", "nGpus", "Using [", "Using network", "NET plugin", "rovider is", "libibverbs", "Direct RDMA",
    "NVLS multicast", "coll channels", "Algo", "SHARP", "CollNet", "use ring PXN", "ersion", "ccl-library", "CCL_",
    "anks ", "anks[", "nNodes", "Pattern ", "Trees [", "NET[", *topology.WARNINGS,
)  # fmt: skip
CONNECTIONS = ("Channel", "via ", "NET/")


@dataclass
class Facts:
    """What a log says besides its numbers; empty where it says nothing.

    Attributes:
        devices: name of a device -> how many ranks have one.
        hosts: how many hosts are named.
        library: `NCCL`, `RCCL`, or the name of an MPI library.
        version: its version, as the log says last.
        versions: all versions that the log names.
        settings: environment variables of the library -> their values.
        transports: `P2P`, `SHM`, `NET/IB`, `NET/IB/GDRDMA`, ... -> how many connections.
        channels: the most that one communicator has.
        switch_channels: the most that reduce in the switch between GPUs (NVLS); None if nothing says.
        topology: what the library found, and how its rings and trees run.
        hosts_of: rank -> its host, and which of the hosts of that name.
        measured: class of links of the machine -> (usual, least) share of its rate in a test of links of the same log.
        nics: host -> its network ports that the library uses, such as `mlx5_0:1/IB`.
        ports_used: host -> numbers of the ports that connections go through.
        passages: host -> how many connections and channels of a search named these ports.
        direct: host -> whether NICs write to the memory of its GPUs, by the connections into it.
        network: what carries messages between nodes: `IB`, `Socket`, `AWS Libfabric`, ...
        trays: whether GPUs of several hosts share links (MNNVL); None if nothing says.
        multicast: whether the switches between GPUs can reduce (NVLS); None if nothing says.
        gpudirect: whether NICs can read the memory of GPUs; None if nothing says.
        sharp: whether switches of the network reduce; None if nothing says.
        chosen: bytes -> (algorithm, protocol) as the library reports its choice.
        lists_settings: whether the library reports the variables that are set, so that others are not.
        per_process: GPUs that one process drives; None if nothing says.
        runs: how many groups of the same ranks were listed before one of them printed a row.
    """

    devices: dict[str, int] = field(default_factory=dict)
    hosts: int | None = None
    library: str | None = None
    version: str | None = None
    versions: dict[str, None] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    transports: dict[str, int] = field(default_factory=dict)
    channels: int | None = None
    switch_channels: int | None = None
    topology: SeenTopology = field(default_factory=SeenTopology)
    hosts_of: dict[int, tuple[str, int]] = field(default_factory=dict)
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    nics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ports_used: dict[str, set[int]] = field(default_factory=dict)
    passages: dict[str, int] = field(default_factory=dict)
    direct: dict[str, bool] = field(default_factory=dict)
    network: str | None = None
    trays: bool | None = None
    multicast: bool | None = None
    gpudirect: bool | None = None
    sharp: bool | None = None
    chosen: dict[int, tuple[str, str]] = field(default_factory=dict)
    lists_settings: bool = False
    per_process: int | None = None
    runs: int = 1

    def setting(self, name: str) -> str | None:
        """The value of a variable of the library, `""` if the log shows that it is not set, None if nothing says."""
        return self.settings.get(name, "" if self.lists_settings else None)

    @property
    def ports_known(self) -> list[set[int]]:
        """The ports of each host of which the log has a connection for every channel; of others it has a part."""
        search = self.topology.searches.get("ring")
        channels = self.channels or (search.channels if search else None)
        return [its for host, its in self.ports_used.items() if channels and self.passages.get(host, 0) >= channels]

    def connections(self, kind: str) -> int:
        """How many connections are of a kind: `SHM`, `P2P`, `NET`, `NET/Socket`, ..."""
        return sum(count for name, count in self.transports.items() if f"{name}/".startswith(f"{kind}/"))


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
        self._listed: list[Group] = []  # runs side by side, which have not measured yet
        # What the test was asked for: its largest size, and how sizes grow: by a factor or by bytes.
        self.asked: tuple[int, int, bool] | None = None

    def group(self, label: str) -> Group:
        """The group of a task: the one whose devices the task has listed, or the last that anybody listed."""
        return self._groups.get(label, self._latest)

    def see(self, line: str, label: str = "", times: int = 1) -> bool:
        """Take what a line says, which stands for several that are connected alike; whether it says anything."""
        if "Rank" in line and (match := _RANK.search(line)):
            named = _DEVICE.search(line)
            return self._device(label, int(match[1]), *named.groups()[1:] if named else ("", "", ""))
        if "nGpus" in line and (match := _PROCESS.search(line)):
            if len(self._of_process) < _MOST_NAMES:
                self._of_process[label] = min(int(match[1]) * int(match[2]), _MOST_COUNT)
            self.facts.per_process = min(int(match[2]), _MOST_COUNT) if int(match[1]) == 1 else 1
            sizes = _SIZES.search(line)
            self.asked = (int(sizes[1]), int(sizes[2]), sizes[3] == "factor") if sizes else None
            return True
        if not any(map(line.__contains__, _MARKS)):
            return False
        found = self._network(line)
        if "ersion" in line and (match := _VERSION.search(line)):
            found = self._version(match[1].upper(), match[2])
        elif "ccl-library" in line and (match := _LIBRARY.search(line)):
            found = self._version(match[1].upper(), _dotted(int(match[2][:9])))
        for name, value in _SETTING.findall(line)[:64] if "CCL_" in line else ():
            if len(self.facts.settings) < _MOST_NAMES:
                self.facts.settings[name], found = value[:200], True
                self.facts.lists_settings |= "set by environment to" in line
        return self._connection(label, line, times) or found

    def _version(self, library: str, version: str) -> bool:
        if len(self.facts.versions) < _MOST_NAMES:
            self.facts.versions[version] = None
        self.facts.library, self.facts.version = library, version
        return True

    def _network(self, line: str) -> bool:
        """What the library says of its network, of the switches between GPUs, and of its choice."""
        facts = self.facts
        if "Using" in line:
            if match := _ADAPTERS.search(line):
                host = written[1] if (written := _WRITER.search(line)) else ""
                if len(facts.nics) < _MOST_NAMES:
                    facts.nics[host] = tuple(f"{name}:{port}/{link}" for name, port, link in _ADAPTER.findall(match[1]))
                return True
            if _INTERFACES.search(line):
                facts.network = facts.network or (None if any(facts.nics.values()) else "Socket")
                return True
        if ("Using" in line or "NET plugin" in line) and (match := _NETWORK.search(line)):
            if "Libfabric" not in line or facts.network in (None, "Socket"):  # else its provider is known
                facts.network = match[1] or match[2]
            return True
        if "rovider" in line and (match := _PROVIDER.search(line)):
            facts.network = "Socket" if match[1] in ("tcp", "sockets", "udp") else match[1]
            return True
        if ("verbs" in line or "NET/IB" in line) and _NO_VERBS.search(line):
            facts.network = facts.network or "Socket"  # a plugin may still say which one it is
            return True
        if "RDMA " in line and (match := _GDR.search(line)):
            facts.gpudirect = match[1] == "Enabled"
        elif "NVLS multicast" in line and (match := _MULTICAST.search(line)):
            facts.multicast = not match[1]
        elif "coll channels" in line and (match := _COUNTS.search(line)):
            facts.channels = max(facts.channels or 0, int(match[1]))
            if match[2]:
                facts.switch_channels = max(facts.switch_channels or 0, int(match[2]))
            if match[2] == "0":
                facts.multicast = False
        elif "Algo" in line and (match := _CHOSEN.search(line)) and len(facts.chosen) < _MOST_NAMES:
            facts.chosen[int(match[1])] = _choice(match[2], match[3])
        elif ("SHARP" in line or "CollNet" in line) and _NO_SHARP.search(line):
            facts.sharp = False
        elif (direct := topology.reaches_memory(line)) is not None:
            facts.gpudirect = direct
        elif "via" not in line and (ports := topology.ports_of_channel(line)):
            self._use(line, ports)
        else:
            return facts.topology.see(line)
        return True

    def _use(self, line: str, ports: list[int], times: int = 1) -> str:
        """Ports that a host uses; the host."""
        host = written[1] if (written := _WRITER.search(line)) else ""
        if len(self.facts.ports_used) < _MOST_NAMES or host in self.facts.ports_used:
            self.facts.ports_used.setdefault(host, set()).update(ports[:_MOST_NAMES])
            self.facts.passages[host] = self.facts.passages.get(host, 0) + times * len(ports)
        return host

    def _device(self, label: str, rank: int, host: str, number: str, name: str) -> bool:
        name = name.strip()[:200]
        group = self._latest = self._listing(label, rank, host)
        # A log may have kept the lines of some ranks only; a process has as many as it was started with.
        group.ranks = max(group.ranks, min(rank + 1, _MOST_COUNT), self._of_process.get(label, 0))
        if len(group.places) < _MOST_COUNT and len(self.facts.devices) < _MOST_NAMES:
            group.places.add(rank)
            if host:
                group.gpus[host, number] = again = group.gpus.get((host, number), 0) + 1
                group.hosts.add((host, again))
                self.facts.hosts_of[rank] = (host, again)
                group.devices[name] = group.devices.get(name, 0) + 1
                self.facts.devices[name] = max(self.facts.devices.get(name, 0), group.devices[name])
                self.facts.hosts = max(self.facts.hosts or 0, len(group.hosts))
            if rank == 0:
                self.facts.runs = max(self.facts.runs, sum(0 in one.places for one in self._listed))
        return True

    def _listing(self, label: str, rank: int, host: str) -> Group:
        """The group that a line of a device belongs to: lists of runs side by side may mix."""
        group = self._groups.get(label)
        fits = group is not None and rank not in group.places
        if group is None or not fits or host not in dict(group.hosts):
            self._listed = [one for one in self._listed if not one.measured]
            beside = next((one for one in self._listed if rank not in one.places and host in dict(one.hosts)), None)
            if beside or not fits:
                group = beside or Group()
            if beside is None and not fits:
                self._listed = [*self._listed, group][-_MOST_BESIDE:]
            if len(self._groups) < _MOST_NAMES or label in self._groups:
                self._groups[label] = group
        return group

    def _connection(self, label: str, line: str, times: int) -> bool:
        via = _VIA.search(line) if " via " in line else None
        channel = _CHANNEL.search(line) if not via and "Channel" in line else None
        if via:
            name = _transport(via[1])
            self.facts.transports[name] = self.facts.transports.get(name, 0) + times
            if name.startswith("NET") and (port := _PORT_USED.search(line)):
                host = self._use(line, [int(port[1])], times)
                if host in self.facts.ports_used and "[send]" not in line:
                    self.facts.direct[host] = self.facts.direct.get(host, False) or name.endswith("/GDRDMA")
        if channel:
            self.facts.channels = max(self.facts.channels or 0, min(int(channel[1]), _MOST_COUNT))
        if trays := _TRAYS.search(line) if "MNNVL" in line else None:
            self.facts.trays = trays[1] != "0"
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


def _choice(algorithm: str, protocol: str) -> tuple[str, str]:
    """(algorithm, protocol) by our names; the library prints names, and earlier numbers."""
    names = [
        its[int(word)] if word.isdecimal() and int(word) < len(its) else word.lower()
        for word, its in ((algorithm, _ALGORITHMS), (protocol, _PROTOCOLS))
    ]
    return names[0].replace("nvlstree", "nvls_tree").replace("collnetchain", "collnet_chain"), names[1]


def _dotted(code: int) -> str:
    """`2.27.3` of 22703, and `2.8.4` of 2804."""
    if code < 10000:
        return f"{code // 1000}.{code // 100 % 10}.{code % 100}"
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"
