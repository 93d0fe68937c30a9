"""A recorded execution: nodes of one rank, each with what it waits for, whichever file form it came from.

Chakra execution traces (mlcommons/chakra, schema/protobuf/et_def.proto) exist in three forms that hold the same facts:
delimited protobuf messages, the JSON text of each message, and one JSON object `workload_graph`. The readers in
`wire.py` and `document.py` collect the facts of a node; this module checks them. Files may be hostile: counts, sizes
and times are bounded, and names lose what a terminal would obey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from linkwright.base.errors import FileError
from linkwright.base.units import format_size

# Limits of one program, all ranks together.
MOST_NODES = 1_000_000
MOST_DEPENDENCIES = 1 << 24
MOST_RANKS = 1 << 14
# Eleven days, in a step; more is not a time.
MOST_MICROS = 10**12
# What one rank gives; more than any device holds.
MOST_SIZE = 1 << 40
MOST_NAME = 60

# Node types of the format, by number. The first two only order others.
TYPES = (
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE",
)  # fmt: skip
LABELS, MEMORY, COMPUTE, SEND, RECEIVE, COLLECTIVE = (0, 1), (2, 3), 4, 5, 6, 7

# Collectives of the format, by number, as linkwright names them.
COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "alltoall", "reduce_scatter",
    "reduce_scatter", "barrier",
)  # fmt: skip

# Attributes of a node that matter here -> what each must be.
WANTED = {
    "is_cpu_op": "flag", "num_ops": "amount", "tensor_size": "amount", "comm_type": "whole", "comm_size": "size",
    "comm_src": "whole", "comm_dst": "whole", "comm_tag": "whole", "pg_name": "name", "involved_dim": "flags",
}  # fmt: skip


@dataclass(slots=True)
class Node:
    """One operation of one rank."""

    id: int
    name: str
    type: int
    waits_for: tuple[int, ...]  # ids of data dependencies
    follows: tuple[int, ...]  # ids of control dependencies
    start_us: int
    duration_us: int
    attributes: dict[str, object]

    @property
    def host(self) -> bool:
        """Whether a processor of the host does it, rather than the device."""
        return bool(self.attributes.get("is_cpu_op", False))

    @property
    def communicates(self) -> bool:
        """Whether data travel; what the host does to start a communication is work of the host."""
        return self.type in (SEND, RECEIVE, COLLECTIVE) and not self.host

    @property
    def shown(self) -> str:
        """Id and name, for messages."""
        return f"node {self.id} ({self.name})" if self.name else f"node {self.id}"


@dataclass
class Trace:
    """The file of one rank, read."""

    file: str
    nodes: list[Node] = field(default_factory=list)
    groups_text: str | None = None  # communicators, where PyTorch recorded them
    absent: int = 0  # control dependencies on nodes that the file leaves out
    control_circle: str = ""  # for which control dependencies do not count

    def wrong(self, node: Node | None, problem: str) -> FileError:
        """The error for a `problem` of the file or of one of its nodes."""
        return FileError(f"{self.file}: {node.shown}: {problem}" if node else f"{self.file}: {problem}")


class Room:
    """What is left of the limits while files are read."""

    def __init__(self) -> None:
        self._nodes, self._dependencies = MOST_NODES, MOST_DEPENDENCIES

    def take(self, trace: Trace, node: Node) -> None:
        """Count one more node."""
        self._nodes -= 1
        self._dependencies -= len(node.waits_for) + len(node.follows)
        if self._nodes < 0 or self._dependencies < 0:
            raise trace.wrong(
                node, f"there are more than {MOST_NODES:,} nodes or {MOST_DEPENDENCIES:,} dependencies; trace one step"
            )


def checked(trace: Trace, node: Node) -> Node:
    """The node, if its numbers make sense."""
    if not 0 <= node.type < len(TYPES):
        raise trace.wrong(node, f"type {node.type} is unknown; known are 0 to {len(TYPES) - 1} ({', '.join(TYPES)})")
    for what, value in (("id", node.id), ("start", node.start_us), ("duration", node.duration_us)):
        if value < 0:
            raise trace.wrong(node, f"its {what} is {value}; write a number that is not negative")
    if node.duration_us > MOST_MICROS:
        raise trace.wrong(
            node, f"it takes {node.duration_us:,} us, more than eleven days; check the unit, which is microseconds"
        )
    for key, value in node.attributes.items():
        _check(trace, node, key, value)
    return node


def _check(trace: Trace, node: Node, key: str, value: object) -> None:
    kind = WANTED[key]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in ("whole", "size"):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise trace.wrong(node, f"{key} is {shown(value)}; write a whole number that is not negative")
        if kind == "size" and value > MOST_SIZE:
            raise trace.wrong(node, f"{key} is {shown(value)} B, beyond {format_size(MOST_SIZE)}; write bytes")
    elif kind == "amount" and not (number and 0 <= value < math.inf):
        raise trace.wrong(node, f"{key} is {shown(value)}; write a finite number that is not negative")
    elif kind == "flag" and value not in (0, 1):
        raise trace.wrong(node, f"{key} is {shown(value)}; write true or false")
    elif kind == "name" and not isinstance(value, str):
        raise trace.wrong(node, f"{key} is {shown(value)}; write a text")
    elif kind == "flags" and not (isinstance(value, tuple) and all(one in (0, 1) for one in value)):
        raise trace.wrong(node, f"{key} is {shown(value)}; write a list of true and false")


def shown(value: object) -> str:
    """A wrong value, for messages."""
    if isinstance(value, (list, tuple, dict)):
        return "an object" if isinstance(value, dict) else "a list"
    return clean(repr(value))[:40]


def clean(name: str) -> str:
    """A name without what a terminal would obey, and not too long."""
    short = name[:MOST_NAME]
    return short if short.isprintable() else "".join(c if c.isprintable() else "?" for c in short)


def distinct(ids: Iterable[int]) -> tuple[int, ...]:
    """Each id once, in order."""
    return tuple(dict.fromkeys(ids))
