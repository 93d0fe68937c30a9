"""Networks between nodes: `machines/networks/NAME.toml`, and what `--fabric NAME,taper=2` makes of one.

[network]                     topology, summary, sources
[network.parameters]          numbers that --fabric may replace: rate of a port, taper, nodes_per_leaf, ...
[network.links.CLASS]         share and latency of `port`, `trunk`, `global`
[network.transport.PROTOCOL]  a message over it from GPU to GPU, by GPUDirect
[network.staged.PROTOCOL]     the same through host memory at both ends
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from linkwright import registry, toml
from linkwright.errors import FileError, UsageError, unknown
from linkwright.store.files import read_text

from . import topologies

Table = dict[str, Any]

_STATED = {"value", "unit", "status", "source"}
# A number with unit, status and source; the native half checks each of them once it is in a machine.
NUMBER = toml.Scalar(
    "a number as `{ value = 2, unit = ..., status = ..., source = ... }`",
    (dict,),
    lambda value: (
        isinstance(value, dict)
        and set(value) == _STATED
        and type(value["value"]) in (int, float)
        and math.isfinite(value["value"])
    ),
    {"type": "object", "required": sorted(_STATED)},
)
_WIRE: toml.Keys = {
    "share": toml.Key(NUMBER, "the part of the rate that carries data"),
    "latency": toml.Key(NUMBER, "of one link, with the switch behind it"),
}
_TRANSPORT: toml.Keys = {
    "start": toml.Key(NUMBER, "time before the first byte moves", required=True),
    "notice": toml.Key(NUMBER, "the same of a message without data; default: `start`"),
    "long": toml.Key(NUMBER, "messages of so many bytes and more take `long_start` instead of `start`"),
    "long_start": toml.Key(NUMBER, "time before the first byte of a long message moves"),
    "rate": toml.Key(NUMBER, "the most that one message gets"),
    "channel": toml.Key(NUMBER, "the most that one channel of a message gets"),
}
_NETWORK: toml.Keys = {
    "name": toml.Key(toml.NAME, "name of the network, which is that of its file", required=True),
    "summary": toml.Key(toml.LINE, "one line", required=True),
    "description": toml.Key(toml.TEXT, "a paragraph"),
    "sources": toml.Key(toml.Many(toml.TEXT), "titles of documents", required=True),
    "topology": toml.Key(toml.Choice(topologies.REGISTRY), "its shape", required=True),
    "parameters": toml.Key(toml.Named(NUMBER), "numbers that --fabric may replace; `rate` of a port", required=True),
    "links": toml.Key(
        toml.OneTable({kind: toml.Key(toml.OneTable(_WIRE), what) for kind, what in topologies.LINKS.items()}),
        "by class of links",
        default={},
    ),
    "transport": toml.Key(toml.Named(toml.OneTable(_TRANSPORT)), "by protocol: from GPU to GPU", default={}),
    "staged": toml.Key(toml.Named(toml.OneTable(_TRANSPORT)), "by protocol: through host memory", default={}),
}
KEYS: toml.Keys = {"network": toml.Key(toml.OneTable(_NETWORK), "a network between nodes", required=True)}
# Parameters of every topology; the first is needed, the others may be absent.
COMMON = (
    "rate",  # of a port
    "ports",  # of a node that are connected; 0: all
    "gpudirect",  # 0: data go through host memory
    "forwarding",  # 0: no message goes by a GPU of its node to another rail
    "spread",  # of a dragonfly, 1: nodes are dealt out to groups one by one; 0: they fill group by group
    "sharp",  # 1: its switches combine and copy
)
SWITCHES = ("gpudirect", "forwarding", "sharp")  # 0 or 1
COUNTS = ("ports", "spread", "nodes_per_leaf", "group_leaves")


@dataclass(frozen=True)
class Network:
    """A network with its parameters."""

    about: Table
    parameters: dict[str, Table]  # stated numbers

    @property
    def topology(self) -> topologies.Topology:
        """Its shape."""
        return topologies.REGISTRY[self.about["topology"]]

    @property
    def numbers(self) -> dict[str, float]:
        """The values of its parameters."""
        return {name: stated["value"] for name, stated in self.parameters.items()}

    def connected(self, ports: list[str]) -> list[str]:
        """The ports of a node that the network uses, the first ones."""
        wanted = int(self.numbers.get("ports", 0)) or len(ports)
        if wanted > len(ports):
            raise UsageError(f"{self.about['name']}: {wanted} ports of a node that has {len(ports)}; ask for fewer")
        return ports[:wanted]

    def has(self, what: str, usual: bool = True) -> bool:
        """Whether a parameter switches something on; `usual` where the network does not state it."""
        return self.numbers.get(what, usual) != 0

    def rate(self, width: float, what: str) -> Table:
        """The stated rate of a link as wide as that many ports."""
        port = self.parameters["rate"]
        if width == 1:
            return port
        value = float(f"{port['value'] * width:.10g}")
        return {
            **port,
            "value": value,
            "status": "derived",
            "source": f"{width:g} ports of {self.about['name']}: {what}",
        }


def load(asked: str) -> Network:
    """The network in `ndr-fat-tree,taper=2`: a shipped name or the path of a file, and parameters."""
    name, *stated = [word.strip() for word in asked.split(",")]
    path = registry.network_path(name)
    place = toml.Place(path.name, error=FileError)
    about = toml.read(toml.load(read_text(path, "a network file"), place), KEYS, place)["network"]
    found = Network({key: about[key] for key in _NETWORK}, dict(about["parameters"]))
    needed = {COMMON[0], *found.topology.parameters}
    for key in sorted(needed - found.parameters.keys()):
        raise place.wrong(f"network.parameters: missing key `{key}`, which a {found.about['topology']} needs; add it")
    for key in found.parameters.keys() - needed - set(COMMON):
        raise unknown("key", key, needed | set(COMMON), where=f"{path.name}: network.parameters")
    return replace(found, parameters={**found.parameters, **_stated(asked, stated, found, needed)})


def _stated(asked: str, stated: list[str], network: Network, needed: set[str]) -> dict[str, Table]:
    """The parameters that replace those of the file."""
    replaced = {}
    for text in stated:
        key, _, value = (part.strip() for part in text.partition("="))
        if key not in network.parameters:
            raise unknown(f"parameter of {network.about['name']}", key, network.parameters, where=f"--fabric {asked}")
        if key in replaced:
            raise UsageError(f"--fabric {asked}: {key} is given twice; say it once")
        replaced[key] = {**network.parameters[key], **_number(asked, key, value, least_above_zero=key in needed)}
    return replaced


def _number(asked: str, key: str, text: str, least_above_zero: bool) -> Table:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and (value > 0 if least_above_zero else value >= 0)):
        least = "above 0" if least_above_zero else "at least 0"
        usual = 1 if key in SWITCHES else 2
        raise UsageError(f"--fabric {asked}: {key} is `{text}`; write a number {least}, such as `{key}={usual}`")
    if (key in SWITCHES and value > 1) or (key in SWITCHES + COUNTS and value % 1):
        kind = "0 or 1" if key in SWITCHES else "a whole number"
        raise UsageError(f"--fabric {asked}: {key} is `{text}`; write {kind}")
    plain = int(value) if value == int(value) else value
    return {"value": plain, "status": "assumed", "source": f"as `{asked}` says"}
