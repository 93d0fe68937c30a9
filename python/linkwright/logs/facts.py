"""What libraries say of themselves in a log: devices, versions, settings, connections."""

from __future__ import annotations

import re

from .kinds import Facts

_DEVICE = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+)")
_VERSION = re.compile(r"\b([NR]CCL) version[ :]+(\d+\.\d+(?:\.\d+)?)", re.IGNORECASE)
_LIBRARY = re.compile(r"nccl-library=(\d+)")
_SETTING = re.compile(r"\b([NR]CCL_[A-Z0-9_]+)(?:\s*=\s*|\s+set by environment to\s+)([\w^:.,/+-]*[\w+-])")
_VIA = re.compile(r"\bvia ((?:P2P|SHM|NET|CollNet|NVLS|MNNVL)(?:/[\w()-]+)*)")
_CHANNEL = re.compile(r"\bChannel \d+/0*(\d+)\s*:")
_RANKS = re.compile(r"\bn[rR]anks\s+(\d+)")
_NODES = re.compile(r"\bnNodes\s+(\d+)")
_MOST_NAMES = 4096
_MOST_COUNT = 1 << 20


class Gathered:
    """Facts, as they are found line by line."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.ranks = 0
        self.nodes = 0
        self._hosts: set[str] = set()
        self._places: set[int] = set()

    def see(self, line: str) -> bool:
        """Take what a line says; whether it says anything."""
        if "Rank" in line and (match := _DEVICE.search(line)):
            return self._device(int(match[1][:9]), match[2], match[3].strip())
        if "CCL" not in line and " via " not in line and "nccl-library" not in line:
            return False
        found = False
        if match := _VERSION.search(line):
            self.facts.library, self.facts.version, found = match[1].upper(), match[2], True
        elif match := _LIBRARY.search(line):
            self.facts.library, self.facts.version, found = "NCCL", _dotted(int(match[1][:9])), True
        for name, value in _SETTING.findall(line)[:64]:
            if len(self.facts.settings) < _MOST_NAMES:
                self.facts.settings[name], found = value[:200], True
        return self._connection(line) or found

    def _device(self, rank: int, host: str, name: str) -> bool:
        self.ranks = max(self.ranks, min(rank + 1, _MOST_COUNT))
        if len(self._places) < _MOST_COUNT and rank not in self._places and len(self.facts.devices) < _MOST_NAMES:
            self._places.add(rank)
            self.facts.devices[name[:200]] = self.facts.devices.get(name[:200], 0) + 1
            self._hosts.add(host)
            self.facts.hosts = len(self._hosts)
        return True

    def _connection(self, line: str) -> bool:
        via, channel = _VIA.search(line), _CHANNEL.search(line)
        if via:
            name = _transport(via[1])
            self.facts.transports[name] = self.facts.transports.get(name, 0) + 1
        if channel and not via:
            self.facts.channels = max(self.facts.channels or 0, min(int(channel[1][:9]), _MOST_COUNT))
        if ranks := _RANKS.search(line):
            self.ranks = max(self.ranks, min(int(ranks[1][:9]), _MOST_COUNT))
        if nodes := _NODES.search(line):
            self.nodes = max(self.nodes, min(int(nodes[1][:9]), _MOST_COUNT))
        return bool(via or channel or ranks or nodes)

    @property
    def hosts(self) -> int | None:
        """How many hosts there are."""
        return len(self._hosts) or self.nodes or None


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
