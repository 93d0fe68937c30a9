"""Slurm's `topology.conf`, of the plugins topology/tree and topology/block, and what `scontrol show topology` prints.

    SwitchName=s0 Nodes=dev[0-5]               BlockName=b1 Nodes=node[01-04]
    SwitchName=s1 Nodes=dev[6-11]              BlockName=b2 Nodes=node[05-08]
    SwitchName=s2 Switches=s[0-1]              BlockSizes=4,8

The file says which nodes are near each other and nothing of rates: `LinkSpeed` has arbitrary units, and Slurm ignores
it, too. So ports have an assumed rate, and trunks are as wide as the ports below them: a tree without taper, unless
`--rate` states them. Switches
above the same switches, as the spines of a fat tree, stand as one. Blocks have a switch each, and those of one block of
the next size have one above them.

`scontrol` adds the level of each switch, and to a switch of switches all nodes below it, of which it joins those that
none of its switches lists. Of blocks it adds an index and a size. topograph lists nodes that are on no fabric below a
switch `no-topology`; they are left out, and the summary counts them.

Source: Slurm, topology.conf(5) and the topology guide.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from linkwright.base.errors import FileError, check_known, unknown
from linkwright.base.units import counted
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
    trunk,
)

KEYS = {
    "switchname": ("switches", "nodes", "linkspeed", "level"),
    "blockname": ("nodes", "blockindex", "blocksize"),
    "aggregatedblock": ("nodes", "blockindex", "blocksize"),
    "blocksizes": (),
}
LEFT_OUT = "no-topology"  # topograph's name of a switch for nodes that are not on the fabric
_BEGIN = re.compile(r"^\s*(SwitchName|BlockName)\s*=", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"(\w+)=(\S+)")
_SIZE = re.compile(r"[1-9]\d{0,8}", re.ASCII)


@dataclass
class Switch:
    """A switch or a block, with what is below it; `everything` of scontrol counts nodes below its switches, too."""

    name: str
    where: str
    nodes: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    is_block: bool = False
    everything: bool = False


def recognises(text: str) -> bool:
    """Whether a text is such a file."""
    return _BEGIN.search(text) is not None


def read(text: str, file: str) -> Wiring:
    """The network of the file."""
    return wired(*_lines(text, file), file, "topology.conf")


def wired(found: list[Switch], sizes: list[int], file: str, what: str) -> Wiring:
    """The network of switches, or of blocks with the sizes of larger blocks, as a file in the format `what` lists them.

    Raises:
        FileError: they contradict each other, or are no tree.

    """
    often = Counter(switch.name for switch in found)
    if again := next((switch for switch in found if often[switch.name] > 1), None):
        raise FileError(f"{again.where}: is listed twice; keep one")
    blocks = [switch for switch in found if switch.is_block]
    if blocks and len(blocks) < len(found):
        other = next(switch for switch in found if not switch.is_block)
        raise FileError(f"{other.where}: {other.name} is a switch among blocks; describe a tree or blocks, not both")
    if sizes and not blocks:
        raise FileError(f"{file}: states sizes of blocks, but no block; describe a tree or blocks, not both")
    if blocks:
        found = blocks + _blocks(blocks, sizes, file)
    found, apart = _on_the_fabric(_own(found))
    nodes = distinct(_each_once(found, "nodes", file), file, "nodes")
    bounded(len(nodes), MOST_ENDPOINTS, file, "nodes")
    if len(nodes) < 2:
        raise FileError(f"{file}: names {len(nodes)} nodes; a machine has at least two, so give the whole file")
    return _wired(_tree(_parallel(found), file), nodes, apart, file, what)


def _on_the_fabric(found: list[Switch]) -> tuple[list[Switch], int]:
    """The switches but for the one whose nodes are on no fabric, and how many nodes that leaves out."""
    joined = {name for switch in found for name in switch.switches}
    apart = [switch for switch in found if switch.name == LEFT_OUT and switch.name not in joined]
    return [switch for switch in found if switch not in apart], sum(len(switch.nodes) for switch in apart)


def _own(found: list[Switch]) -> list[Switch]:
    """The switches with the nodes that they join themselves; scontrol also lists those below their switches."""
    known = {switch.name: switch for switch in found}

    def below(switch: Switch, depth: int = 0) -> Iterator[str]:
        for lower in (known[name] for name in switch.switches if name in known and depth < len(known)):
            yield from lower.nodes
            yield from () if lower.everything else below(lower, depth + 1)

    made = []
    for switch in found:
        under = set(below(switch)) if switch.everything else set()
        if missing := under - set(switch.nodes):
            raise FileError(
                f"{switch.where}: {switch.name} lists its nodes without {min(missing)}, which is below one of its "
                "switches; give the unedited output of scontrol"
            )
        made.append(replace(switch, nodes=[node for node in switch.nodes if node not in under]))
    return made


def _lines(text: str, file: str) -> tuple[list[Switch], list[int]]:
    found: dict[str, Switch] = {}
    sizes: list[int] = []
    stated: set[int] = set()
    for number, line in enumerate(text.replace("\\\n", " \x0b").split("\n"), 1):
        where = f"{file}: line {number}"
        words = _words(line.partition("#")[0], where)
        first = next(iter(words), "")
        if not words:
            continue
        if first == "ringname":
            raise FileError(f"{where}: rings of topology/ring are not supported; describe switches or blocks")
        check_known("key", first, KEYS, where=where)
        if strange := [key for key in words if key != first and key not in KEYS[first]]:
            raise unknown("key", strange[0], KEYS[first], where=where)
        if first == "blocksizes":
            if sizes:
                raise FileError(f"{where}: a second BlockSizes; keep one")
            sizes = sizes_of(words[first].split(","), where)
            continue
        if "blocksize" in words:
            stated.update(sizes_of([words["blocksize"]], where))
        if first == "aggregatedblock":
            continue  # what the blocks and their sizes say already
        name = words[first]
        if name in found:
            raise FileError(f"{where}: {name} is also in {found[name].where.rpartition(': ')[2]}; keep one")
        lists = {key: hostlists.expand(words[key], where) for key in ("nodes", "switches") if key in words}
        everything = "level" in words and bool(lists.get("switches"))
        found[name] = Switch(name, where, **lists, is_block=first == "blockname", everything=everything)
        bounded(len(found), MOST_SWITCHES, file, "switches")
    if not found:
        raise FileError(f"{file}: names no switch; a line is `SwitchName=s0 Nodes=node[1-16]`")
    return list(found.values()), sizes or sorted(stated)


def _words(line: str, where: str) -> dict[str, str]:
    """Key, in lower case -> value, of the settings of a line."""
    words: dict[str, str] = {}
    for word in line.split():
        match = _WORD.fullmatch(word)
        if not match:
            raise FileError(f"{where}: `{word[:80]}` is not a setting; write `SwitchName=s0 Nodes=node[1-16]`")
        key, value = match[1].lower(), match[2]
        if key in words:
            raise FileError(f"{where}: {match[1]} is given twice; write one list, such as Nodes=a[1-4],b[1-4]")
        words[key] = value
    return words


def sizes_of(words: Iterable[object], where: str) -> list[int]:
    """Sizes of blocks in nodes, each a multiple of the one before."""
    listed = [str(word) for word in words]
    if not listed or not all(_SIZE.fullmatch(size) for size in listed):
        raise FileError(f"{where}: BlockSizes={','.join(listed)[:80]} are not sizes; write `BlockSizes=4,8`")
    sizes = [int(size) for size in listed]
    if any(b <= a or b % a for a, b in itertools.pairwise(sizes)):
        raise FileError(f"{where}: BlockSizes={','.join(listed)[:80]}: each must be a multiple of the one before")
    return sizes


def _blocks(blocks: list[Switch], sizes: list[int], file: str) -> list[Switch]:
    """Switches above the blocks, one for each block of the next size, and one above all."""
    if sizes and (small := next((block for block in blocks if len(block.nodes) < sizes[0]), None)):
        raise FileError(
            f"{small.where}: {small.name} has {len(small.nodes)} nodes, fewer than the smallest of BlockSizes, "
            f"{sizes[0]}; correct one"
        )
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


def _wired(found: list[Switch], nodes: list[str], apart: int, file: str, what: str) -> Wiring:
    used = _ports_below(found)
    found = [switch for switch in found if used[switch.name]]
    names = dict(zip([s.name for s in found], distinct((s.name for s in found), file, "switches"), strict=True))
    if both := set(names.values()) & set(nodes):
        raise FileError(f"{file}: {min(both)} is both a node and a switch; rename one")
    port = network_rates.number("network", "port")
    source = f"Slurm {what}"
    without = f"{counted(apart, 'node')} that {LEFT_OUT} lists" if apart else ""
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{len(nodes)} nodes below {len(found)} switches, as {what} lists them"
        + f", without {without}" * bool(without),
        description="The tree is from the file, which states no rates: ports, latencies and start-up are assumed, "
        "and trunks are as wide as the ports below them.",
        sources=[f"Slurm {what}: {file}"],
        endpoints=nodes,
        endpoint_source=source,
        start=network_rates.number("network", "start"),
        levels=[("node", len(nodes))],
        switches=list(names.values()),
        without=without,
        rateless=True,
    )
    edges = [(names[switch.name], plain(node)) for switch in found for node in switch.nodes]
    wiring.links["port"] = Links(port, network_rates.number("network", "port_latency"), source, edges)
    latency = network_rates.number("network", "trunk_latency")
    for switch in found:
        for lower in switch.switches:
            if not used[lower]:
                continue
            count = used[lower]
            trunks = Links(trunk(port, count), latency, source, ports=count)
            links = wiring.links.setdefault(f"trunk {count}", trunks)
            links.edges.append((names[switch.name], names[lower]))
    return wiring
