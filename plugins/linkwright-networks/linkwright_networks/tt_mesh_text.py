"""Read tt-metal mesh graph descriptors as text of a protocol buffer; `tt_mesh` explains them."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass

from linkwright.network_api import MOST_LINKS, FileError, Network, Wiring, bounded, unknown

from . import textproto
from .textproto import Message
from .tt_mesh import ARCHITECTURES, MOST_MESHES, Mesh, Plan, checked_count, checked_sides, join, wired

# Fields that do not affect links.
_IGNORED = {
    "file": {"pinnings"},
    "mesh": {"host_topology", "pinnings", "policy"},
    "graph": {"type"},
    "connection": {"directional", "assign_z_direction", "policy"},
}
# Fields of the references to meshes and graphs.
_MESH, _GRAPH = {"mesh_descriptor", "mesh_id", "device_id"}, {"graph_descriptor", "graph_id", "mesh", "graph"}


def recognises(text: str) -> bool:
    """Whether a text is a descriptor as text of a protocol buffer."""
    return re.search(r"^\s*mesh_descriptors\s*:?\s*[{<]", text, re.MULTILINE) is not None


def read(text: str, file: str) -> Wiring:
    """Read the chips of a descriptor as text of a protocol buffer."""
    top = textproto.read(text, file)
    _known(top, {"mesh_descriptors", "graph_descriptors", "top_level_instance"} | _IGNORED["file"], file)
    meshes = {}
    for message in _messages(top, "mesh_descriptors", file):
        name, mesh = _mesh(message, file)
        if name in meshes:
            raise FileError(f"{file}: line {message.line}: two meshes are named {name[:80]}; rename one")
        meshes[name] = mesh
    graphs: dict[str, Message] = {}
    for message in _messages(top, "graph_descriptors", file):
        name = _text(message, "name", file)
        if graphs.setdefault(name, message) is not message:
            raise FileError(f"{file}: line {message.line}: two graphs are named {name[:80]}; rename one")
    root = _message(top, "top_level_instance", file)
    return wired(_Reader(meshes, graphs, file).plan(root), file)


def _known(message: Message, known: set[str], file: str) -> Message:
    """Return a message, all of whose fields are known."""
    if strange := [name for name in message.fields if name not in known]:
        raise unknown("field", strange[0][:80], known, where=f"{file}: line {message.line}")
    return message


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
    """Return the count of `channels` in a message."""
    channels = _known(_message(message, "channels", file), {"count", "policy"}, file)
    return checked_count(_one(channels, "count", int, file), f"{file}: line {channels.line}: channels")


def _mesh(message: Message, file: str) -> tuple[str, Mesh]:
    known = {"name", "arch", "device_topology", "channels", "express_connections"}
    _known(message, known | _IGNORED["mesh"], file)
    name, arch = _text(message, "name", file), _text(message, "arch", file)
    where = f"{file}: line {message.line}: mesh {name[:80]}"
    if arch not in ARCHITECTURES:
        raise unknown("arch", arch, ARCHITECTURES, where=where)
    shape = _message(message, "device_topology", file)
    _known(shape, {"dims", "dim_types", "types"}, file)
    sides = checked_sides(shape.fields.get("dims"), f"{where}: dims")
    types = [*shape.fields.get("dim_types", []), *shape.fields.get("types", [])]
    if strange := [one for one in types if one not in ("LINE", "RING")]:
        raise FileError(f"{where}: an axis of type `{str(strange[0])[:40]}`; write LINE or RING")
    if len(types) > len(sides):
        raise FileError(f"{where}: {len(types)} types for {len(sides)} dims; write one each")
    rings = tuple(kind == "RING" for kind in types) + (False,) * (len(sides) - len(types))
    express = []
    for shape in _messages(message, "host_topology", file):
        _known(shape, {"dims"}, file)
    for one in _messages(message, "express_connections", file):
        _known(one, {"src", "dst"}, file)
        ends = (_one(one, "src", int, file), _one(one, "dst", int, file))
        if not all(0 <= chip < math.prod(sides) for chip in ends) or ends[0] == ends[1]:
            raise FileError(f"{where}: an express connection from {ends[0]} to {ends[1]}; write two of its chips")
        express.append(ends)
    return name, Mesh(sides, rings, ARCHITECTURES[arch], _channels(message, file), tuple(express))


@dataclass
class _Reader:
    """Expands the root instance of a descriptor."""

    meshes: dict[str, Mesh]
    graphs: dict[str, Message]
    file: str
    built: int = 0

    def plan(self, root: Message) -> Plan:
        """Build the plan of an instance."""
        return self._instance(root, ())[1]

    def _of_mesh(self, ref: Message) -> tuple[str, Plan]:
        name = _text(_known(ref, _MESH - {"device_id"}, self.file), "mesh_descriptor", self.file)
        if name not in self.meshes:
            raise unknown("mesh", name[:80], self.meshes, where=f"{self.file}: line {ref.line}")
        self.built = bounded(self.built + 1, MOST_MESHES, self.file, "meshes")
        key = f"{name} {_one(ref, 'mesh_id', int, self.file)}"
        return key, Plan({key: self.meshes[name]})

    def _of_graph(self, ref: Message, inside: tuple[str, ...]) -> tuple[str, Plan]:
        file = self.file
        name = _text(_known(ref, _GRAPH - {"mesh", "graph"}, file), "graph_descriptor", file)
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
            prefix = f"{key} " if "graph" in instance.fields else ""
            plan.meshes |= {prefix + mesh: one for mesh, one in part.meshes.items()}
            parts[key] = [prefix + mesh for mesh in part.meshes]
            plan.joined.update({((prefix + a, i), (prefix + b, j)): n for ((a, i), (b, j)), n in part.joined.items()})
            plan.assumed |= part.assumed
        if not parts:
            raise FileError(f"{file}: line {graph.line}: graph {name[:80]} has no instances; add some")
        self._shape(graph, parts, plan)
        for connection in _messages(graph, "connections", file):
            self._connection(connection, plan)
        return f"{name} {_one(ref, 'graph_id', int, file)}", plan

    def _instance(self, instance: Message, inside: tuple[str, ...]) -> tuple[str, Plan]:
        if self._kind(instance, {"mesh", "graph"}) == "graph":
            return self._of_graph(_message(instance, "graph", self.file), inside)
        return self._of_mesh(_message(instance, "mesh", self.file))

    def _kind(self, ref: Message, known: set[str]) -> str:
        """Return whether a reference is to a mesh or to a graph; it is to one of them."""
        kinds = [kind for kind in ("mesh", "graph") if kind in _known(ref, known, self.file).fields]
        if len(kinds) > 1:
            raise FileError(f"{self.file}: line {ref.line}: a mesh and a graph in one reference; write one of them")
        return kinds[0] if kinds else "mesh"

    def _shape(self, graph: Message, parts: dict[str, list[str]], plan: Plan) -> None:
        """Join the instances all with all, or in a ring."""
        file = self.file
        if "graph_topology" not in graph.fields:
            return
        where = f"{file}: line {graph.line}: graph_topology"
        if len(graph.fields["graph_topology"]) > 1:
            raise FileError(f"{where}: is given twice; keep one")
        shape = graph.fields["graph_topology"][0]
        if isinstance(shape, Message):
            _known(shape, {"layout_type", "channels"}, file)
        kind = _text(shape, "layout_type", file) if isinstance(shape, Message) else shape
        count = _channels(shape if isinstance(shape, Message) else graph, file)
        if kind not in ("ALL_TO_ALL", "RING"):
            raise unknown("graph_topology", str(kind)[:80], ("ALL_TO_ALL", "RING"), where=where)
        # Of a graph of several meshes tt-metal chooses one at run time, too: the first stands for it.
        names = [meshes[0] for meshes in parts.values()]
        bounded(len(names) ** 2, MOST_LINKS, file, "connections")
        ring = [*itertools.pairwise(names), *([(names[-1], names[0])] if len(names) > 2 else [])]
        for a, b in ring if kind == "RING" else itertools.combinations(names, 2):
            join(plan, (a, None), (b, None), count)

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
        join(plan, ends[0], ends[1], _channels(connection, file))

    def _end(self, node: Message, plan: Plan) -> tuple[str, int | None]:
        """Return the mesh and, if it is named, the chip at one end of a connection."""
        path, at, known = "", node, {"mesh", "graph"}
        while self._kind(at, known) == "graph" and len(path) < 1000:
            known = _GRAPH
            at = _message(at, "graph", self.file)
            path += f"{_text(at, 'graph_descriptor', self.file)} {_one(at, 'graph_id', int, self.file)} "
        if "mesh" not in at.fields:
            first = next((name for name in plan.meshes if path and name.startswith(path)), None)
            if first is None:
                raise unknown("instance", path[:80], plan.meshes, where=f"{self.file}: line {node.line}")
            return first, None
        ref = _known(_message(at, "mesh", self.file), _MESH, self.file)
        name = f"{path}{_text(ref, 'mesh_descriptor', self.file)} {_one(ref, 'mesh_id', int, self.file)}"
        if name not in plan.meshes:
            raise unknown("instance", name[:80], plan.meshes, where=f"{self.file}: line {node.line}")
        chip = _one(ref, "device_id", int, self.file) if "device_id" in ref.fields else None
        if chip is not None and not 0 <= chip < plan.meshes[name].chips:
            last = plan.meshes[name].chips - 1
            raise FileError(f"{self.file}: line {ref.line}: {name} has no device {chip}; write one of 0..{last}")
        return name, chip


NETWORK = Network("tt-mesh", "tt-metal's mesh graph (textproto)", recognises, read)
