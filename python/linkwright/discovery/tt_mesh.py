"""Mesh graph descriptors of tt-metal: which chips of Tenstorrent are joined, as YAML and as text of a protocol buffer.

    mesh_descriptors {                                ChipSpec: { arch: wormhole_b0, ethernet_ports: { N: 2, ... } }
      name: "M0"  arch: WORMHOLE_B0                   Board: [ { name: T3K, type: Mesh, topology: [2, 4] } ]
      device_topology { dims: [ 2, 4 ] }              Mesh: [ { id: 0, board: T3K, device_topology: [2, 4] } ]
      channels { count: 2 }                           Graph: [ [[M0, D1], [M1, D0], 1] ]
    }
    top_level_instance { mesh { mesh_descriptor: "M0" mesh_id: 0 } }

A mesh is a grid of chips, in rows, whose neighbours are joined by `channels`; an axis of type RING wraps. Meshes are
joined chip by chip where the descriptor names chips or ports. Where it names meshes alone, which chips are joined is left
to the software at run time: here the first of both, as many as the channels need, which is an assumption that the file
states. The descriptor has no rates: those of a channel are the chip's (`network_rates.toml`).

Source: tt-metal, tt_metal/fabric/mesh_graph_descriptors, the schema and guide beside it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass, field

from linkwright.discovery import network_rates, textproto, yaml_text
from linkwright.discovery.textproto import Message
from linkwright.discovery.wiring import MOST_ENDPOINTS, MOST_LINKS, Axis, Links, Wiring, bounded
from linkwright.errors import FileError, unknown

ARCHITECTURES = {"WORMHOLE_B0": "wormhole_b0", "BLACKHOLE": "blackhole"}
MOST_CHANNELS = 1024
MOST_MESHES = 4096
# Fields that say nothing of links.
_IGNORED = {
    "file": {"pinnings"},
    "mesh": {"host_topology", "pinnings", "policy"},
    "graph": {"type"},
    "connection": {"directional", "assign_z_direction", "policy"},
}


@dataclass(frozen=True)
class Mesh:
    """A grid of chips, in rows; `channels` join neighbours."""

    sides: tuple[int, ...]
    rings: tuple[bool, ...]
    arch: str
    channels: int
    express: tuple[tuple[int, int], ...] = ()

    @property
    def chips(self) -> int:
        """How many there are."""
        return math.prod(self.sides)


@dataclass
class Plan:
    """Meshes by name, and the channels between chips of two of them: ((mesh, chip), (mesh, chip)) -> how many."""

    meshes: dict[str, Mesh]
    joined: Counter = field(default_factory=Counter)
    assumed: bool = False


def recognises(text: str) -> bool:
    """Whether a text is a descriptor as text of a protocol buffer."""
    return re.search(r"^\s*mesh_descriptors\s*:?\s*[{<]", text, re.MULTILINE) is not None


def recognises_yaml(text: str) -> bool:
    """Whether a text is a descriptor as YAML."""
    return all(re.search(rf"^{key}\s*:", text, re.MULTILINE) for key in ("ChipSpec", "Mesh"))


def read(text: str, file: str) -> Wiring:
    """The chips of a descriptor as text of a protocol buffer."""
    top = textproto.read(text, file)
    _known(top, {"mesh_descriptors", "graph_descriptors", "top_level_instance"} | _IGNORED["file"], file)
    meshes = {}
    for message in _messages(top, "mesh_descriptors", file):
        name, mesh = _mesh(message, file)
        if name in meshes:
            raise FileError(f"{file}: two meshes are named {name}; rename one")
        meshes[name] = mesh
    graphs = {_text(g, "name", file): g for g in _messages(top, "graph_descriptors", file)}
    root = _message(top, "top_level_instance", file)
    return _wired(_Reader(meshes, graphs, file).plan(root), file)


def _known(message: Message, known: set[str], file: str) -> None:
    if strange := [name for name in message.fields if name not in known]:
        raise unknown("field", strange[0][:80], known, where=f"{file}: line {message.line}")


def _messages(message: Message, name: str, file: str) -> list[Message]:
    found = message.fields.get(name, [])
    if any(not isinstance(one, Message) for one in found):
        raise FileError(f"{file}: line {message.line}: `{name}` is no message; write `{name} {{ ... }}`")
    return found


def _message(message: Message, name: str, file: str) -> Message:
    found = _messages(message, name, file)
    if len(found) != 1:
        raise FileError(f"{file}: line {message.line}: `{name}` stands there {len(found)} times; write it once")
    return found[0]


def _one(message: Message, name: str, kind: type, file: str):
    found = message.fields.get(name, [])
    if len(found) != 1 or type(found[0]) is not kind:
        what = {int: "a whole number", str: "a word"}[kind]
        raise FileError(f"{file}: line {message.line}: `{name}` is missing or not {what}; write it once")
    return found[0]


def _text(message: Message, name: str, file: str) -> str:
    return str(_one(message, name, str, file))


def _channels(message: Message, file: str) -> int:
    """The count of `channels` of a message."""
    channels = _message(message, "channels", file)
    return _count(_one(channels, "count", int, file), f"{file}: line {channels.line}: channels")


def _count(count: object, where: str) -> int:
    if type(count) is not int or not 1 <= count <= MOST_CHANNELS:
        raise FileError(f"{where} is `{str(count)[:40]}`; write a whole number, 1 to {MOST_CHANNELS}")
    return count


def _sides(found: object, where: str) -> tuple[int, ...]:
    sides = found if isinstance(found, list) else []
    if not 1 <= len(sides) <= 6 or any(type(side) is not int or not 1 <= side <= MOST_ENDPOINTS for side in sides):
        raise FileError(f"{where} is `{str(found)[:60]}`; write one to six sides such as [2, 4]")
    bounded(math.prod(sides), MOST_ENDPOINTS, where, "chips")
    return tuple(sides)


def _mesh(message: Message, file: str) -> tuple[str, Mesh]:
    known = {"name", "arch", "device_topology", "channels", "express_connections"}
    _known(message, known | _IGNORED["mesh"], file)
    name, arch = _text(message, "name", file), _text(message, "arch", file)
    where = f"{file}: line {message.line}: mesh {name[:80]}"
    if arch not in ARCHITECTURES:
        raise unknown("arch", arch, ARCHITECTURES, where=where)
    shape = _message(message, "device_topology", file)
    _known(shape, {"dims", "dim_types", "types"}, file)
    sides = _sides(shape.fields.get("dims"), f"{where}: dims")
    types = [*shape.fields.get("dim_types", []), *shape.fields.get("types", [])]
    if strange := [one for one in types if one not in ("LINE", "RING")]:
        raise FileError(f"{where}: an axis of type `{str(strange[0])[:40]}`; write LINE or RING")
    if len(types) > len(sides):
        raise FileError(f"{where}: {len(types)} types for {len(sides)} dims; write one each")
    rings = tuple(kind == "RING" for kind in types) + (False,) * (len(sides) - len(types))
    express = []
    for one in _messages(message, "express_connections", file):
        ends = (_one(one, "src", int, file), _one(one, "dst", int, file))
        if not all(0 <= chip < math.prod(sides) for chip in ends) or ends[0] == ends[1]:
            raise FileError(f"{where}: an express connection from {ends[0]} to {ends[1]}; write two of its chips")
        express.append(ends)
    return name, Mesh(sides, rings, ARCHITECTURES[arch], _channels(message, file), tuple(express))


@dataclass
class _Reader:
    """What a descriptor's root stands for."""

    meshes: dict[str, Mesh]
    graphs: dict[str, Message]
    file: str
    built: int = 0

    def plan(self, root: Message) -> Plan:
        """The plan of an instance."""
        if "mesh" in root.fields:
            return self._of_mesh(_message(root, "mesh", self.file))[1]
        return self._of_graph(_message(root, "graph", self.file), ())[1]

    def _of_mesh(self, ref: Message) -> tuple[str, Plan]:
        name = _text(ref, "mesh_descriptor", self.file)
        if name not in self.meshes:
            raise unknown("mesh", name[:80], self.meshes, where=f"{self.file}: line {ref.line}")
        self.built = bounded(self.built + 1, MOST_MESHES, self.file, "meshes")
        key = f"{name} {_one(ref, 'mesh_id', int, self.file)}"
        return key, Plan({key: self.meshes[name]})

    def _of_graph(self, ref: Message, inside: tuple[str, ...]) -> tuple[str, Plan]:
        file = self.file
        name = _text(ref, "graph_descriptor", file)
        if name not in self.graphs:
            raise unknown("graph", name[:80], self.graphs, where=f"{file}: line {ref.line}")
        if name in inside:
            raise FileError(f"{file}: graph {name[:80]} contains itself; take it out of its instances")
        graph = self.graphs[name]
        known = {"name", "instances", "channels", "graph_topology", "connections"}
        _known(graph, known | _IGNORED["graph"], file)
        plan, parts = Plan({}), {}
        for instance in _messages(graph, "instances", file):
            key, part = self._instance(instance, (*inside, name))
            if key in parts:
                raise FileError(f"{file}: line {instance.line}: {key} is an instance twice; change its id")
            parts[key] = list(part.meshes)
            prefix = f"{key} " if "graph" in instance.fields else ""
            plan.meshes |= {prefix + mesh: one for mesh, one in part.meshes.items()}
            parts[key] = [prefix + mesh for mesh in part.meshes]
            plan.joined.update({((prefix + a, i), (prefix + b, j)): n for ((a, i), (b, j)), n in part.joined.items()})
            plan.assumed |= part.assumed
        self._shape(graph, parts, plan)
        for connection in _messages(graph, "connections", file):
            self._connection(connection, plan)
        return f"{name} {_one(ref, 'graph_id', int, file)}", plan

    def _instance(self, instance: Message, inside: tuple[str, ...]) -> tuple[str, Plan]:
        if "graph" in instance.fields:
            return self._of_graph(_message(instance, "graph", self.file), inside)
        return self._of_mesh(_message(instance, "mesh", self.file))

    def _shape(self, graph: Message, parts: dict[str, list[str]], plan: Plan) -> None:
        """All with all, or a ring, of the instances."""
        file = self.file
        if "graph_topology" not in graph.fields:
            return
        where = f"{file}: line {graph.line}: graph_topology"
        shape = graph.fields["graph_topology"][0]
        kind = _text(shape, "layout_type", file) if isinstance(shape, Message) else shape
        count = _channels(shape if isinstance(shape, Message) else graph, file)
        if kind not in ("ALL_TO_ALL", "RING"):
            raise unknown("graph_topology", str(kind)[:80], ("ALL_TO_ALL", "RING"), where=where)
        if any(len(meshes) != 1 for meshes in parts.values()):
            raise FileError(f"{where}: joins graphs of several meshes without naming them; write `connections` instead")
        names = [meshes[0] for meshes in parts.values()]
        bounded(len(names) ** 2, MOST_LINKS, file, "connections")
        ring = [*itertools.pairwise(names), *([(names[-1], names[0])] if len(names) > 2 else [])]
        for a, b in ring if kind == "RING" else itertools.combinations(names, 2):
            _join(plan, (a, None), (b, None), count)

    def _connection(self, connection: Message, plan: Plan) -> None:
        file = self.file
        _known(connection, {"nodes", "channels"} | _IGNORED["connection"], file)
        nodes = _messages(connection, "nodes", file)
        if len(nodes) != 2:
            raise FileError(f"{file}: line {connection.line}: a connection of {len(nodes)} nodes; write two")
        ends = [self._end(node, plan) for node in nodes]
        if ends[0] == ends[1]:
            raise FileError(
                f"{file}: line {connection.line}: a connection of {ends[0][0]} with itself; change one node"
            )
        _join(plan, ends[0], ends[1], _channels(connection, file))

    def _end(self, node: Message, plan: Plan) -> tuple[str, int | None]:
        """The mesh and, where it is named, the chip at one end of a connection."""
        path, at = "", node
        while "graph" in at.fields and len(path) < 1000:
            at = _message(at, "graph", self.file)
            path += f"{_text(at, 'graph_descriptor', self.file)} {_one(at, 'graph_id', int, self.file)} "
        if "mesh" not in at.fields:
            raise FileError(
                f"{self.file}: line {node.line}: a connection of graphs without their meshes; name one in each"
            )
        ref = _message(at, "mesh", self.file)
        name = f"{path}{_text(ref, 'mesh_descriptor', self.file)} {_one(ref, 'mesh_id', int, self.file)}"
        if name not in plan.meshes:
            raise unknown("instance", name[:80], plan.meshes, where=f"{self.file}: line {node.line}")
        chip = _one(ref, "device_id", int, self.file) if "device_id" in ref.fields else None
        if chip is not None and not 0 <= chip < plan.meshes[name].chips:
            last = plan.meshes[name].chips - 1
            raise FileError(f"{self.file}: line {ref.line}: {name} has no device {chip}; write one of 0..{last}")
        return name, chip


def _join(plan: Plan, one: tuple[str, int | None], other: tuple[str, int | None], count: int) -> None:
    """Channels between two meshes: of the chips named, else of the first chips of both."""
    (a, i), (b, j) = one, other
    if i is not None and j is not None:
        plan.joined[(a, i), (b, j)] += count
        return
    plan.assumed = True
    each = min(plan.meshes[a].channels, plan.meshes[b].channels)
    chips = min(-(-count // each), plan.meshes[a].chips, plan.meshes[b].chips)
    for chip in range(chips):
        share = count // chips + (chip < count % chips)
        plan.joined[(a, chip if i is None else i), (b, chip if j is None else j)] += share
    bounded(len(plan.joined), MOST_LINKS, "the descriptor", "links between meshes")


_PORT = re.compile(r"([NESWD])(\d{1,6})", re.ASCII)
_AXES = {"MESH": (False, False), "TORUS_1D": (False, True), "TORUS_2D": (True, True)}
_AXES |= {"TORUS_X": (False, True), "TORUS_Y": (True, False), "TORUS_XY": (True, True)}


def read_yaml(text: str, file: str) -> Wiring:
    """The chips of a descriptor as YAML."""
    top = yaml_text.load(text, file)
    if strange := [key for key in top if key not in ("ChipSpec", "Board", "Mesh", "Graph", "galaxies", "RelaxedGraph")]:
        raise unknown("key", str(strange[0])[:80], ("ChipSpec", "Board", "Mesh", "Graph"), where=file)
    chip = _table(top.get("ChipSpec"), f"{file}: ChipSpec")
    arch = str(chip.get("arch"))
    if arch not in ARCHITECTURES.values():
        raise unknown("arch", arch[:80], ARCHITECTURES.values(), where=f"{file}: ChipSpec")
    ports = _table(chip.get("ethernet_ports"), f"{file}: ChipSpec.ethernet_ports")
    counts = {_count(ports.get(side), f"{file}: ChipSpec.ethernet_ports.{side}") for side in "NESW"}
    if len(counts) != 1:
        raise FileError(f"{file}: ChipSpec.ethernet_ports: sides with different numbers of ports are not described")
    boards = {str(board.get("name")): board for board in _tables(top.get("Board"), f"{file}: Board")}
    plan = Plan({})
    for mesh in _tables(top.get("Mesh"), f"{file}: Mesh"):
        name = f"M{mesh.get('id')}"
        if name in plan.meshes:
            raise FileError(f"{file}: two meshes have the id {mesh.get('id')}; change one")
        plan.meshes[name] = _yaml_mesh(mesh, boards, arch, max(counts), f"{file}: mesh {str(mesh.get('id'))[:40]}")
    bounded(len(plan.meshes), MOST_MESHES, file, "meshes")
    _yaml_graph(top.get("Graph") or [], plan, max(counts), file)
    return _wired(plan, file)


def _table(found: object, where: str) -> dict:
    if not isinstance(found, dict):
        raise FileError(f"{where} is missing or no table; write it as {{ key: value }}")
    return found


def _tables(found: object, where: str) -> list[dict]:
    if not isinstance(found, list) or not found:
        raise FileError(f"{where} is missing or no list of tables; write it as [ {{ ... }} ]")
    return [_table(one, where) for one in found]


def _yaml_mesh(mesh: dict, boards: dict[str, dict], arch: str, channels: int, where: str) -> Mesh:
    board = str(mesh.get("board"))
    if board not in boards:
        raise unknown("board", board[:80], boards, where=where)
    kind = str(boards[board].get("type")).upper()
    if kind not in _AXES:
        raise unknown("type of board", kind[:80], _AXES, where=where)
    sides = _yaml_sides(mesh, boards[board], where)
    if len(sides) != 2:
        raise FileError(f"{where}: {len(sides)} sides; write rows and columns such as [2, 4]")
    return Mesh(sides, _AXES[kind], arch, channels)


def _yaml_sides(mesh: dict, board: dict, where: str) -> tuple[int, ...]:
    """Rows and columns of chips; older files give the boards, in the shape of their hosts, in `topology`."""
    if "device_topology" in mesh:
        return _sides(mesh["device_topology"], f"{where}: device_topology")
    sides = _sides(mesh.get("topology"), f"{where}: topology")
    ranks = mesh.get("host_ranks")
    hosts = (len(ranks), len(ranks[0])) if isinstance(ranks, list) and ranks and isinstance(ranks[0], list) else None
    one = _sides(board.get("topology"), f"{where}: topology of its board")
    if sides == hosts and len(one) == len(sides):
        return _sides([a * b for a, b in zip(sides, one, strict=True)], where)
    return sides


def _yaml_graph(graph: object, plan: Plan, channels: int, file: str) -> None:
    """Connections of chips (D), of which the count is given, or of ports (N, E, S, W), each of which is a channel."""
    seen: set[frozenset] = set()
    if not isinstance(graph, list):
        raise FileError(f"{file}: Graph is no list; write it as [ [[M0, D1], [M1, D0], 1] ]")
    for connection in graph:
        where = f"{file}: Graph: {str(connection)[:60]}"
        if not isinstance(connection, list) or len(connection) not in (2, 3):
            raise FileError(f"{where}: is no connection; write [[M0, D1], [M1, D0], 1]")
        ends = [_yaml_end(end, plan, channels, where) for end in connection[:2]]
        once = frozenset((str(end[0]), str(end[1])) for end in connection[:2])
        if once in seen:
            continue
        seen.add(once)
        count = _count(connection[2], f"{where}: channels") if len(connection) == 3 else 1
        if ends[0] == ends[1]:
            raise FileError(f"{where}: a chip with itself; change one end")
        plan.joined[ends[0], ends[1]] += count


def _yaml_end(end: object, plan: Plan, channels: int, where: str) -> tuple[str, int]:
    name, port = (str(end[0]), str(end[1])) if isinstance(end, list) and len(end) == 2 else ("", "")
    name = name if name.startswith("M") else f"M{name}"
    match = _PORT.fullmatch(port)
    if name not in plan.meshes or not match:
        raise FileError(f"{where}: `{str(end)[:40]}` is no chip or port of a mesh; write [M0, D1] or [0, E0]")
    mesh, side, number = plan.meshes[name], match[1], int(match[2])
    rows, columns = mesh.sides
    along = number // channels
    chip = {
        "D": number,
        "N": along,
        "S": (rows - 1) * columns + along,
        "W": along * columns,
        "E": along * columns + columns - 1,
    }[side]
    if chip >= mesh.chips or along >= {"N": columns, "S": columns, "E": rows, "W": rows, "D": math.inf}[side]:
        raise FileError(f"{where}: {name} has no {port}; it has {rows} x {columns} chips with {channels} ports a side")
    return name, chip


def _wired(plan: Plan, file: str) -> Wiring:
    if not plan.meshes:
        raise FileError(f"{file}: instantiates no mesh; name one in top_level_instance")
    archs = sorted({mesh.arch for mesh in plan.meshes.values()})
    if len(archs) > 1:
        raise FileError(f"{file}: chips of {' and '.join(archs)} in one descriptor; describe them in two files")
    chips = bounded(sum(mesh.chips for mesh in plan.meshes.values()), MOST_ENDPOINTS, file, "chips")
    if chips < 2:
        raise FileError(f"{file}: a single chip; a machine has at least two, so take a descriptor of several")
    source = "mesh graph descriptor of tt-metal"
    shapes = Counter(" x ".join(map(str, mesh.sides)) for mesh in plan.meshes.values())
    shown = ", ".join(f"{count} of {shape}" if count > 1 else shape for shape, count in shapes.items())
    latency = network_rates.number("tenstorrent", archs[0], "latency")
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{chips} chips ({archs[0]}): {shown}",
        description="Shape and channels are from a mesh graph descriptor of tt-metal, rates and latencies from the "
        "vendor's documents. Messages pass chips on their way, which costs the latency of each hop."
        + (" The descriptor joins meshes without naming chips: the first of both are taken." if plan.assumed else ""),
        sources=[f"tt-metal mesh graph descriptor: {file}"],
        endpoints=[f"chip {i}" for i in range(chips)],
        endpoint_source=source,
        start=network_rates.number("tenstorrent", "start", "start"),
        levels=[("mesh", len(plan.meshes)), ("chip", chips // len(plan.meshes))]
        if len(plan.meshes) > 1 and len(shapes) == 1
        else [("chip", chips)],
        relays=True,
    )
    only = next(iter(plan.meshes.values()))
    sides = [(side, ring) for side, ring in zip(only.sides, only.rings, strict=True) if side > 1]
    if len(plan.meshes) == 1 and len(sides) > 1 and not only.express and not plan.joined:
        rate = _rate(only.arch, only.channels)
        wiring.torus = [Axis(side, rate, latency, ring) for side, ring in reversed(sides)]
        wiring.endpoints = ["chip ({at})"]
    else:
        _listed(wiring, plan, latency, source)
    return wiring


def _rate(arch: str, channels: int):
    return network_rates.number("tenstorrent", arch, "channel").times(
        channels, f"{channels} channels of the descriptor"
    )


def _listed(wiring: Wiring, plan: Plan, latency, source: str) -> None:
    """The links, one by one."""
    first = dict(
        zip(plan.meshes, itertools.accumulate((m.chips for m in plan.meshes.values()), initial=0), strict=False)
    )
    counts: Counter = Counter()
    for name, mesh in plan.meshes.items():
        for a, b in _neighbours(mesh):
            counts[first[name] + a, first[name] + b, source] += mesh.channels
    between = source + (": which chips of two meshes are joined is assumed" if plan.assumed else "")
    for ((a, i), (b, j)), count in plan.joined.items():
        low, high = sorted((first[a] + i, first[b] + j))
        counts[low, high, between] += count
    arch = next(iter(plan.meshes.values())).arch
    merged: dict[tuple[int, int], list] = {}
    for (a, b, origin), count in counts.items():
        one = merged.setdefault((a, b), [0, origin])
        one[0] += count
    bounded(len(merged), MOST_LINKS, "the descriptor", "links")
    for (a, b), (count, origin) in merged.items():
        name = f"{count} channels" + ("" if origin == source else " between meshes")
        links = wiring.links.setdefault(name, Links(_rate(arch, count), latency, origin))
        links.edges.append((f"chip {a}", f"chip {b}"))


def _neighbours(mesh: Mesh):
    """Pairs of chips of one mesh that channels join."""
    strides = [math.prod(mesh.sides[number + 1 :]) for number in range(len(mesh.sides))]
    for chip in range(mesh.chips):
        for side, stride, ring in zip(mesh.sides, strides, mesh.rings, strict=True):
            place = chip // stride % side
            if place + 1 < side:
                yield chip, chip + stride
            elif ring and side > 2:
                yield chip - (side - 1) * stride, chip
    for a, b in mesh.express:
        yield min(a, b), max(a, b)
