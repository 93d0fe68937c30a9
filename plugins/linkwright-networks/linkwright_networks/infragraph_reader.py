"""Expand the devices, instances and edges of an InfraGraph file; `infragraph` explains the format."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal

from linkwright.network_api import MOST_ENDPOINTS, MOST_LINKS, MOST_SWITCHES, FileError, Number, bounded, unknown, usual

MOST_DEPTH = 8  # devices within devices
MOST_NODES = MOST_ENDPOINTS + MOST_SWITCHES
LANES = 16
SCHEMES = ("one2one", "many2many")
_ABOUT = ("name", "description")
TOP = (*_ABOUT, "devices", "instances", "links", "edges", "annotations", "connections")
DEVICE = (*_ABOUT, "components", "links", "edges", "annotations", "connections")
# A component has a table of its choice, of which nothing matters here.
COMPONENT = (*_ABOUT, "count", "choice", "custom", "device", "cpu", "npu", "xpu", "nic", "memory", "port", "switch")
INSTANCE = (*_ABOUT, "device", "count")
LINK = (*_ABOUT, "physical", "bandwidth", "latency")
EDGE = ("ep1", "ep2", "scheme", "link")
SOURCE = "InfraGraph"
_ELEMENT = re.compile(r"([^\[\]]+?)(?:\[([^\[\]]*)\])?")
_RATES = {"gigabits_per_second": "Gb/s", "gigabytes_per_second": "GB/s"}
_TIMES = {"ms": "ms", "us": "us", "ns": "ns"}


@dataclass(frozen=True)
class Kind:
    """The bandwidth and latency of a link."""

    bandwidth: Number
    latency: Number


@dataclass
class Device:
    """A device: how many of each component, of which type, and the edges among them."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[list[str], list[str], Kind, str]] = field(default_factory=list)


def table_of(found: object, where: str, keys: Collection[str] = ()) -> dict:
    """Check that a value is a table, with no other keys than these if there are any."""
    if not isinstance(found, dict):
        raise FileError(f"{where} is no table; write it as `key: value` lines")
    if strange := [key for key in found if keys and key not in keys]:
        raise unknown("key", str(strange[0])[:80], keys, where=where)
    return found


def tables_of(table: dict, key: str, where: str, keys: Collection[str], needed: bool = True) -> list[dict]:
    """Return a list of tables with these keys, which may be missing unless it is `needed`."""
    found = table.get(key)
    if found is None and not needed:
        return []
    if not isinstance(found, list):
        raise FileError(f"{where}: `{key}` is missing or no list; add it")
    return [table_of(one, f"{where}: {key}[{i}]", keys) for i, one in enumerate(found)]


def _name(table: dict, key: str, where: str) -> str:
    found = table.get(key)
    if not isinstance(found, str) or not found.strip():
        raise FileError(f"{where}: `{key}` is missing or no text; add it")
    return found


def _count(table: dict, where: str) -> int:
    count = table.get("count", 1)
    if type(count) is not int or count < 0:
        raise FileError(f"{where}: count is `{str(count)[:40]}`; write a whole number")
    return bounded(count, MOST_NODES, where, "of one component")


class Reader:
    """The devices, instances and edges read so far."""

    def __init__(self, file: str):
        self.file = file
        self.devices: dict[str, Device] = {}
        self.nodes: dict[str, str] = {}  # name -> type
        self.of: dict[str, tuple[str, int]] = {}  # instance -> device, count
        self.edges: list[tuple[str, str, Kind]] = []

    def components(self, table: dict) -> None:
        """Read the components of a device."""
        device = Device(_name(table, "name", f"{self.file}: devices"))
        where = f"{self.file}: device {device.name[:80]}"
        if device.name in self.devices:
            raise FileError(f"{where} is described twice; rename one")
        if "connections" in table:
            raise FileError(
                f"{where}: `connections` belong to a draft of InfraGraph; write `edges`, as since version 0.6"
            )
        for one in tables_of(table, "components", where, COMPONENT):
            name = _name(one, "name", where)
            if name in device.counts:
                raise FileError(f"{where}: component {name[:80]} is described twice; rename one")
            device.counts[name] = _count(one, f"{where}: component {name[:80]}")
            device.types[name] = str(one.get("choice") or "custom")
        self.devices[device.name] = device

    def device_edges(self, table: dict) -> None:
        """The edges of a device."""
        device = self.devices[table["name"]]
        where = f"{self.file}: device {device.name[:80]}"
        kinds = self.kinds(tables_of(table, "links", where, LINK, needed=False), where)
        for one in tables_of(table, "edges", where, EDGE, needed=False):
            ends = []
            for key in ("ep1", "ep2"):
                end = table_of(one.get(key), f"{where}: {key}", ("device", "component"))
                path = [end["device"]] if end.get("device") else []
                ends.append(self.paths(device, ".".join([*path, _name(end, "component", where)]), where))
            device.edges.append((ends[0], ends[1], self.kind(one, kinds, where), self.scheme(one, where)))

    def kinds(self, tables: list[dict], where: str = "") -> dict[str, Kind]:
        """Read the links that edges name."""
        kinds: dict[str, Kind] = {}
        for one in tables:
            name = _name(one, "name", f"{where or self.file}: links")
            if name in kinds:
                raise FileError(f"{where or self.file}: link {name[:80]} is described twice; rename one")
            kinds[name] = _kind(one, name, f"{where or self.file}: link {name[:80]}")
        return kinds

    def kind(self, edge: dict, kinds: dict[str, Kind], where: str) -> Kind:
        """Return the link of an edge."""
        name = _name(edge, "link", where)
        if name not in kinds:
            raise unknown("link", name[:80], kinds, where=where)
        return kinds[name]

    def scheme(self, edge: dict, where: str) -> str:
        """Return how an edge joins several components."""
        scheme = edge.get("scheme")
        if scheme not in SCHEMES:
            raise unknown("scheme", str(scheme)[:40], SCHEMES, where=where)
        return str(scheme)

    def paths(self, device: Device, text: str, where: str) -> list[str]:
        """Expand `cx5[0:2].port[0]` to `cx5.0.port.0`, `cx5.1.port.0`."""
        paths = [""]
        for number, element in enumerate(text.split(".")):
            match = _ELEMENT.fullmatch(element.strip())
            if not match or match[1] not in device.counts:
                raise unknown("component", element[:80], device.counts, where=where)
            chosen = _slice(match[2], device.counts[match[1]], f"{where}: `{text[:60]}`")
            bounded(len(paths) * len(chosen), MOST_NODES, where, "components in one edge")
            paths = [f"{path}.{match[1]}.{i}" if path else f"{match[1]}.{i}" for path in paths for i in chosen]
            if number + 1 < len(text.split(".")):
                if match[1] not in self.devices or device.types[match[1]] != "device":
                    raise FileError(f"{where}: {match[1][:80]} is no device, so nothing stands behind its `.`")
                device = self.devices[match[1]]
        return paths

    def instances(self, tables: list[dict]) -> None:
        """Add the nodes and internal edges of all instances."""
        for one in tables:
            name = _name(one, "name", f"{self.file}: instances")
            device, where = _name(one, "device", self.file), f"{self.file}: instance {name[:80]}"
            if name in self.of:
                raise FileError(f"{where} is described twice; rename one")
            if device not in self.devices:
                raise unknown("device", device[:80], self.devices, where=where)
            self.of[name] = device, _count(one, where)
            for i in range(self.of[name][1]):
                self.build(f"{name}.{i}", self.devices[device], 0)

    def build(self, prefix: str, device: Device, depth: int) -> None:
        """Add the nodes and edges of a device."""
        if depth > MOST_DEPTH:
            raise FileError(f"{self.file}: device {device.name[:80]} contains itself, or more than {MOST_DEPTH} others")
        for name, count in device.counts.items():
            bounded(len(self.nodes) + count, MOST_NODES, self.file, "components")
            for i in range(count):
                if device.types[name] != "device":
                    self.nodes[f"{prefix}.{name}.{i}"] = device.types[name]
                elif name not in self.devices:
                    raise unknown("device", name[:80], self.devices, where=f"{self.file}: device {device.name[:80]}")
                else:
                    self.build(f"{prefix}.{name}.{i}", self.devices[name], depth + 1)
        for a, b, kind, scheme in device.edges:
            self.join([f"{prefix}.{one}" for one in a], [f"{prefix}.{one}" for one in b], kind, scheme)

    def edge(self, table: dict, kinds: dict[str, Kind]) -> None:
        """Add an edge between instances."""
        ends, where = [], f"{self.file}: edges"
        for key in ("ep1", "ep2"):
            end = table_of(table.get(key), f"{where}: {key}", ("instance", "component"))
            match = _ELEMENT.fullmatch(_name(end, "instance", where).strip())
            if not match or match[1] not in self.of:
                raise unknown("instance", str(end["instance"])[:80], self.of, where=where)
            device, count = self.of[match[1]]
            chosen = _slice(match[2], count, f"{where}: `{str(end['instance'])[:60]}`")
            paths = self.paths(self.devices[device], _name(end, "component", where), where)
            bounded(len(chosen) * len(paths), MOST_NODES, where, "components in one edge")
            ends.append([f"{match[1]}.{i}.{path}" for i in chosen for path in paths])
        self.join(ends[0], ends[1], self.kind(table, kinds, where), self.scheme(table, where))

    def join(self, a: list[str], b: list[str], kind: Kind, scheme: str) -> None:
        """Add the links of an edge."""
        more = len(a) * len(b) if scheme == "many2many" else min(len(a), len(b))
        bounded(len(self.edges) + more, MOST_LINKS, self.file, "links")
        pairs = itertools.product(a, b) if scheme == "many2many" else zip(a, b, strict=False)
        seen = set()
        for one, other in pairs:
            if one != other and (other, one) not in seen:
                seen.add((one, other))
                self.edges.append((one, other, kind))


def _slice(text: str | None, count: int, where: str) -> list[int]:
    """Return the numbers below `count` that a slice or a single number selects."""
    if text is None or text.strip() in ("", ":"):
        return list(range(count))
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"\s*\d{0,9}\s*", part, re.ASCII) for part in parts):
        raise FileError(f"{where}: `[{text[:40]}]` is no slice; write such as [0], [0:4] or [0:8:2]")
    numbers = [int(part) if part.strip() else None for part in parts]
    if len(parts) == 1:
        if numbers[0] is None or numbers[0] >= count:
            raise FileError(f"{where}: there is no number {numbers[0]}; they are 0..{count - 1}")
        return [numbers[0]]
    if len(numbers) == 3 and numbers[2] == 0:
        raise FileError(f"{where}: a slice with steps of 0; write a step of at least 1")
    if any(number is not None and number > count for number in numbers[:2]):
        raise FileError(f"{where}: the slice [{text[:40]}] goes beyond {count}; shorten it")
    chosen = list(range(count))[slice(*numbers)]
    if not chosen:
        raise FileError(f"{where}: the slice [{text[:40]}] selects nothing; write such as [0:1]")
    return chosen


def _kind(table: dict, name: str, where: str) -> Kind:
    physical = table
    if table.get("physical") is not None:
        if "bandwidth" in table or "latency" in table:
            raise FileError(f"{where}: has both `physical` and a rate or time next to it; keep one")
        physical = table_of(table["physical"], f"{where}: physical", ("bandwidth", "latency"))
    bandwidth, latency = physical.get("bandwidth"), physical.get("latency")
    said = f"{SOURCE}: link {name[:80]}"
    rate, delay = (
        usual("network", "port"),
        Number(Decimal(0), "ns", "assumed", f"{said} states no latency"),
    )
    rate = Number(rate.value, rate.unit, "assumed", f"{said} states no bandwidth: that of a port of 400 Gb/s")
    if bandwidth is not None:
        units = (*_RATES, "gigatransfers_per_second")
        rate = _rate(_measured(table_of(bandwidth, f"{where}: bandwidth"), units, f"{where}: bandwidth"), said, where)
    if latency is not None:
        its = _measured(table_of(latency, f"{where}: latency"), tuple(_TIMES), f"{where}: latency")
        unit, value = _chosen(its, _TIMES, where, 0)
        delay = Number(value, unit, "documented", said)
    return Kind(rate, delay)


def _measured(table: dict, units: tuple[str, ...], where: str) -> dict:
    """Check that a rate or a time has one unit, which is the one of its choice."""
    table_of(table, where, ("choice", *units))
    stated = [unit for unit in units if table.get(unit) is not None]
    if len(stated) != 1 or table.get("choice", stated[0]) != stated[0]:
        raise FileError(
            f"{where}: the choice is {str(table.get('choice', 'none'))[:40]}, and the value is in "
            f"{', '.join(stated) or 'no unit'}; write one of {', '.join(units)} in both"
        )
    return table


def _rate(table: dict, said: str, where: str) -> Number:
    if (transfers := table.get("gigatransfers_per_second")) is not None:
        value = _positive(transfers, where, "gigatransfers_per_second", 1e-3)
        # PCIe encodes 8 bits of data in 10 up to 5 GT/s, and 128 in 130 above.
        data = Decimal("0.8") if value <= 5 else Decimal(128) / 130
        rate = (value * LANES * data).quantize(Decimal("0.001"))
        return Number(rate, "Gb/s", "assumed", f"{said}: {transfers} GT/s, {LANES} lanes of PCIe assumed")
    unit, value = _chosen(table, _RATES, where, 1e-3)
    return Number(value, unit, "documented", said)


def _chosen(table: dict, units: dict[str, str], where: str, least: float) -> tuple[str, Decimal]:
    found = [key for key in units if table.get(key) is not None]
    if len(found) != 1:
        raise FileError(f"{where}: a value in {', '.join(units)} is missing, or there are several; write one")
    return units[found[0]], _positive(table[found[0]], where, found[0], least)


def _positive(value: object, where: str, key: str, least: float) -> Decimal:
    if type(value) not in (int, float) or not least <= value <= 1e6:  # type: ignore[operator]
        raise FileError(f"{where}: {key} is `{str(value)[:40]}`; write a number from {least:g} to 10^6")
    return Decimal(str(value))
