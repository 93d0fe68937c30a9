"""Slurm's `topology.conf`, of the plugins topology/tree and topology/block, and what `scontrol show topology` prints.

    SwitchName=s0 Nodes=dev[0-5]               BlockName=b1 Nodes=node[01-04]
    SwitchName=s1 Nodes=dev[6-11]              BlockName=b2 Nodes=node[05-08]
    SwitchName=s2 Switches=s[0-1]              BlockSizes=4,8

The file says which nodes are near each other and nothing of rates: `LinkSpeed` has arbitrary units, and Slurm ignores
it, too. So ports have an assumed rate, and trunks are as wide as the ports below them: a tree without taper. Switches
above the same switches, as the spines of a fat tree, stand as one. Blocks have a switch each, and those of one block of
the next size have one above them.

`scontrol` adds the level of each switch, and to a switch of switches all nodes below it, which it does not join itself.

Source: Slurm, topology.conf(5) and the topology guide.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from linkwright.base.errors import FileError, unknown
from linkwright.formats.discovery import hostlists, network_rates
from linkwright.formats.discovery.wiring import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    MOST_SWITCHES,
    Links,
    Wiring,
    bounded,
    distinct,
    plain,
)

KEYS = {
    "switchname": ("switches", "nodes", "linkspeed", "level"),
    "blockname": ("nodes",),
    "blocksizes": (),
}
_BEGIN = re.compile(r"^\s*(SwitchName|BlockName)\s*=", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"(\w+)=(\S+)")


@dataclass
class Switch:
    """A switch or a block, with what is below it."""

    name: str
    where: str
    nodes: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)


def recognises(text: str) -> bool:
    """Whether a text is such a file."""
    return _BEGIN.search(text) is not None


def read(text: str, file: str) -> Wiring:
    """The network of the file."""
    found, sizes = _lines(text, file)
    if sizes:
        found += _blocks(found, sizes, file)
    nodes = distinct(_each_once(found, "nodes", file), file, "nodes")
    bounded(len(nodes), MOST_ENDPOINTS, file, "nodes")
    if len(nodes) < 2:
        raise FileError(f"{file}: names {len(nodes)} nodes; a machine has at least two, so give the whole file")
    return _wired(_tree(_parallel(found), file), nodes, file)


def _lines(text: str, file: str) -> tuple[list[Switch], list[int]]:
    found: dict[str, Switch] = {}
    sizes: list[int] = []
    for number, line in enumerate(text.replace("\\\n", " \x0b").split("\n"), 1):
        where = f"{file}: line {number}"
        words = {key.lower(): value for key, value in _words(line.partition("#")[0], where)}
        first = next(iter(words), "")
        if not words:
            continue
        if first == "ringname":
            raise FileError(f"{where}: rings of topology/ring are not supported; describe switches or blocks")
        if first not in KEYS:
            raise unknown("key", first, KEYS, where=where)
        if strange := [key for key in words if key != first and key not in KEYS[first]]:
            raise unknown("key", strange[0], KEYS[first], where=where)
        if first == "blocksizes":
            sizes = _sizes(words[first], where)
            continue
        name = words[first]
        if name in found:
            raise FileError(f"{where}: {name} is also in {found[name].where.rpartition(': ')[2]}; keep one")
        lists = {key: hostlists.expand(words[key], where) for key in ("nodes", "switches") if key in words}
        if "level" in words and lists.get("switches"):
            lists.pop("nodes", None)
        found[name] = Switch(name, where, **lists)
        bounded(len(found), MOST_SWITCHES, file, "switches")
    if not found:
        raise FileError(f"{file}: names no switch; a line is `SwitchName=s0 Nodes=node[1-16]`")
    return list(found.values()), sizes


def _words(line: str, where: str) -> list[tuple[str, str]]:
    words = []
    for word in line.split():
        match = _WORD.fullmatch(word)
        if not match:
            raise FileError(f"{where}: `{word[:80]}` is not a setting; write `SwitchName=s0 Nodes=node[1-16]`")
        words.append((match[1], match[2]))
    return words


def _sizes(text: str, where: str) -> list[int]:
    sizes = text.split(",")
    if not all(re.fullmatch(r"[1-9]\d{0,8}", size, re.ASCII) for size in sizes):
        raise FileError(f"{where}: BlockSizes={text[:80]} are not sizes; write `BlockSizes=4,8`")
    return sorted(map(int, sizes))


def _blocks(blocks: list[Switch], sizes: list[int], file: str) -> list[Switch]:
    """Switches above the blocks, one for each block of the next size, and one above all."""
    above: list[Switch] = []
    below = [block.name for block in blocks]
    steps = [max(2, later // earlier) for earlier, later in itertools.pairwise(sizes)]
    for height, step in enumerate([*steps, len(blocks)], 1):
        if len(below) == 1:
            break
        groups = [below[at : at + step] for at in range(0, len(below), step)]
        made = [Switch(f"level {height} block {i}", file, switches=group) for i, group in enumerate(groups)]
        above += made
        below = [one.name for one in made]
    return above


def _each_once(found: list[Switch], what: str, file: str) -> list[str]:
    """All nodes or switches that stand below others; those that stand below two are an error."""
    seen: dict[str, Switch] = {}
    for switch in found:
        for name in getattr(switch, what):
            if name in seen:
                raise FileError(f"{switch.where}: {name} is also below {seen[name].name}; list it once")
            seen[name] = switch
            bounded(len(seen), MOST_LINKS, file, f"{what} below others")
    return list(seen)


def _parallel(found: list[Switch]) -> list[Switch]:
    """The switches, of several above the same switches only the first: the spines of a fat tree stand as one."""
    first: dict[frozenset[str], str] = {}
    same = {s.name: first.setdefault(frozenset(s.switches), s.name) for s in found if s.switches and not s.nodes}
    kept = [switch for switch in found if same.get(switch.name, switch.name) == switch.name]
    for switch in kept:
        switch.switches = list(dict.fromkeys(same.get(name, name) for name in switch.switches))
    return kept


def _tree(found: list[Switch], file: str) -> list[Switch]:
    """The switches, every one after the one above it; anything but a tree is an error."""
    known = {switch.name: switch for switch in found}
    for switch in found:
        for name in switch.switches:
            if name not in known:
                raise FileError(f"{switch.where}: {switch.name} names switch {name}, which no line describes; add it")
    parent = {name: switch.name for switch in found for name in switch.switches}
    _each_once(found, "switches", file)
    roots = [switch for switch in found if switch.name not in parent]
    if not roots:
        raise FileError(f"{file}: switches are below each other in a cycle; remove one of `Switches=`")
    if len(roots) > 1:
        one, other = roots[0].name, roots[1].name
        raise FileError(
            f"{file}: {one} and {other} are not connected; add a switch above both, `Switches={one},{other}`"
        )
    order = [roots[0]]
    for switch in order:  # grows while it is walked: every switch comes after the one above it
        order += [known[name] for name in switch.switches]
    if len(order) < len(found):
        reached = {switch.name for switch in order}
        name = next(switch.name for switch in found if switch.name not in reached)
        raise FileError(f"{file}: {name} is below itself; remove one of `Switches=`")
    return order


def _ports_below(order: list[Switch]) -> Counter:
    """How many nodes are below each switch; `order` has every switch after the one above it."""
    below: Counter = Counter()
    for switch in reversed(order):
        below[switch.name] = len(switch.nodes) + sum(below[name] for name in switch.switches)
    return below


def _wired(found: list[Switch], nodes: list[str], file: str) -> Wiring:
    used = _ports_below(found)
    found = [switch for switch in found if used[switch.name]]
    names = dict(zip([s.name for s in found], distinct((s.name for s in found), file, "switches"), strict=True))
    if both := set(names.values()) & set(nodes):
        raise FileError(f"{file}: {min(both)} is both a node and a switch; rename one")
    port = network_rates.number("network", "port")
    source = "Slurm topology.conf"
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{len(nodes)} nodes below {len(found)} switches, as topology.conf lists them",
        description="The tree is from the file, which states no rates: ports, latencies and start-up are assumed, "
        "and trunks are as wide as the ports below them.",
        sources=[f"Slurm topology.conf: {file}"],
        endpoints=nodes,
        endpoint_source=source,
        start=network_rates.number("network", "start"),
        levels=[("node", len(nodes))],
        switches=list(names.values()),
    )
    edges = [(names[switch.name], plain(node)) for switch in found for node in switch.nodes]
    wiring.links["port"] = Links(port, network_rates.number("network", "port_latency"), source, edges)
    latency = network_rates.number("network", "trunk_latency")
    for switch in found:
        for lower in switch.switches:
            if not used[lower]:
                continue
            count = used[lower]
            rate = port.times(count, f"as wide as the {count} ports below: no taper, which is assumed")
            links = wiring.links.setdefault(f"trunk {count}", Links(rate, latency, source))
            links.edges.append((names[switch.name], names[lower]))
    return wiring
