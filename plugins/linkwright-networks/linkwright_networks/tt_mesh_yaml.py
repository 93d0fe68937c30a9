"""Read tt-metal mesh graph descriptors as YAML, the older format; `tt_mesh` explains them.

A connection joins chips, `[[M0, D1], [M1, D0], 2]` with the number of channels at the end, or ports,
`[[0, E0], [1, W0]]`. `E2` is the third port of the east side; each chip there has as many as `ethernet_ports` states.
"""

from __future__ import annotations

import math
import re

from linkwright.network_api import FileError, Network, Wiring, bounded, unknown

from . import yaml_text
from .tt_mesh import ARCHITECTURES, MOST_MESHES, Mesh, Plan, checked_count, checked_sides, wired

MESH = ("id", "board", "device_topology", "host_topology", "topology", "host_ranks")
_PORT = re.compile(r"([NESWD])(\d{1,6})", re.ASCII)
_AXES = {"MESH": (False, False), "TORUS_1D": (False, True), "TORUS_2D": (True, True)}
_AXES |= {"TORUS_X": (False, True), "TORUS_Y": (True, False), "TORUS_XY": (True, True)}


def recognises(text: str) -> bool:
    """Whether a text is a descriptor as YAML."""
    return all(re.search(rf"^{key}\s*:", text, re.MULTILINE) for key in ("ChipSpec", "Mesh"))


def read(text: str, file: str) -> Wiring:
    """Read the chips of a descriptor as YAML."""
    top = yaml_text.load(text, file)
    if strange := [key for key in top if key not in ("ChipSpec", "Board", "Mesh", "Graph", "galaxies")]:
        raise unknown("key", str(strange[0])[:80], ("ChipSpec", "Board", "Mesh", "Graph"), where=file)
    chip = _table(top.get("ChipSpec"), f"{file}: ChipSpec", ("arch", "ethernet_ports"))
    arch = str(chip.get("arch"))
    if arch not in ARCHITECTURES.values():
        raise unknown("arch", arch[:80], ARCHITECTURES.values(), where=f"{file}: ChipSpec")
    ports = _table(chip.get("ethernet_ports"), f"{file}: ChipSpec.ethernet_ports", tuple("NESWZ"))
    counts = {checked_count(ports.get(side), f"{file}: ChipSpec.ethernet_ports.{side}") for side in "NESW"}
    if len(counts) != 1:
        raise FileError(f"{file}: ChipSpec.ethernet_ports: sides with different numbers of ports are not described")
    boards: dict[str, dict] = {}
    for board in _tables(top.get("Board"), f"{file}: Board", ("name", "type", "topology")):
        if boards.setdefault(str(board.get("name")), board) is not board:
            raise FileError(f"{file}: two boards are named {str(board.get('name'))[:80]}; rename one")
    plan = Plan({})
    for mesh in _tables(top.get("Mesh"), f"{file}: Mesh", MESH):
        name = f"M{mesh.get('id')}"
        if name in plan.meshes:
            raise FileError(f"{file}: two meshes have the id {mesh.get('id')}; change one")
        plan.meshes[name] = _yaml_mesh(mesh, boards, arch, max(counts), f"{file}: mesh {str(mesh.get('id'))[:40]}")
    bounded(len(plan.meshes), MOST_MESHES, file, "meshes")
    _yaml_graph(top.get("Graph") or [], plan, max(counts), file)
    return wired(plan, file)


def _table(found: object, where: str, keys: tuple[str, ...]) -> dict:
    if not isinstance(found, dict):
        raise FileError(f"{where} is missing or no table; write it as {{ key: value }}")
    if strange := [key for key in found if key not in keys]:
        raise unknown("key", str(strange[0])[:80], keys, where=where)
    return found


def _tables(found: object, where: str, keys: tuple[str, ...]) -> list[dict]:
    if not isinstance(found, list) or not found:
        raise FileError(f"{where} is missing or no list of tables; write it as [ {{ ... }} ]")
    return [_table(one, where, keys) for one in found]


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
    """Return rows and columns of chips; older files give the grid of boards, that of their hosts, in `topology`."""
    if "device_topology" in mesh:
        return checked_sides(mesh["device_topology"], f"{where}: device_topology")
    sides = checked_sides(mesh.get("topology"), f"{where}: topology")
    ranks = mesh.get("host_ranks")
    hosts = (len(ranks), len(ranks[0])) if isinstance(ranks, list) and ranks and isinstance(ranks[0], list) else None
    one = checked_sides(board.get("topology"), f"{where}: topology of its board")
    if sides == hosts and len(one) == len(sides):
        return checked_sides([a * b for a, b in zip(sides, one, strict=True)], where)
    return sides


def _yaml_graph(graph: object, plan: Plan, channels: int, file: str) -> None:
    """Add connections of chips (D), with a count, or of ports (N, E, S, W), each of which is one channel."""
    seen: dict[frozenset, list] = {}
    ports: dict[tuple[str, str], frozenset] = {}
    if not isinstance(graph, list):
        raise FileError(f"{file}: Graph is no list; write it as [ [[M0, D1], [M1, D0], 1] ]")
    for connection in graph:
        where = f"{file}: Graph: {str(connection)[:60]}"
        if not isinstance(connection, list) or len(connection) not in (2, 3):
            raise FileError(f"{where}: is no connection; write [[M0, D1], [M1, D0], 1]")
        ends = [_yaml_end(end, plan, channels, where) for end in connection[:2]]
        once = frozenset((str(end[0]), str(end[1])) for end in connection[:2])
        if (other := seen.setdefault(once, connection)) is not connection:
            if other[2:] != connection[2:] or other[0] == connection[0]:
                raise FileError(f"{where}: joins what {str(other)[:60]} joins; keep one")
            continue  # the same from the other end
        for end in connection[:2]:
            taken = ports.setdefault((str(end[0]), str(end[1])), once)
            if taken != once and not str(end[1]).startswith("D"):
                raise FileError(f"{where}: port {end[1]} of mesh {end[0]} is joined to another one, too; correct one")
        count = checked_count(connection[2], f"{where}: channels") if len(connection) == 3 else 1
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


NETWORK = Network("tt-mesh-yaml", "tt-metal's mesh graph (YAML)", recognises, read)
