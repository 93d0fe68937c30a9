"""How a composed machine differs from its file, and which of its endpoints take part.

nodes, fabric, without, degrade   another machine
ranks_per_node, place             the endpoints of ranks 0, 1, ... on it
"""

from __future__ import annotations

import hashlib
import itertools
import math
import operator
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwright import _native
from linkwright.base.errors import UsageError, check_known

# More nodes than a machine has whose links are described one by one.
MOST_NODES = 1 << 16
MOST_FACTOR = 1e6
# Characters of a machine's name, which a file has too.
_NAME_MOST = 100
_MOST_PLACES = 1 << 16


def totals(machine: _native.Machine) -> list[tuple[str, int]]:
    """Return (level, how many of it the whole machine has), outermost first: `[("rack", 4), ("node", 72)]`."""
    counts = itertools.accumulate((count for _, count in machine.levels()), operator.mul)
    return [(level, total) for (level, _), total in zip(machine.levels(), counts, strict=True)]


def nodes_of(machine: _native.Machine) -> int:
    """Return how many equal nodes the machine has; 1 if its file has no nodes, 0 if it leaves its size open."""
    return next((total for level, total in totals(machine) if level == "node"), 1)


def grid_of(machine: _native.Machine, ranks: int) -> tuple[int, ...] | None:
    """Return the grid of the machine if all of its endpoints take part; None without one."""
    return machine.rank_grid if ranks == machine.ranks else None


@dataclass(frozen=True)
class Variant:
    """What `--nodes`, `--fabric`, `--without`, `--degrade`, `--ranks-per-node` and `--place` say.

    Without any of them the machine is its file, and its first endpoints take part.
    """

    nodes: int | None = None  # copies of the node that the file describes
    fabric: str | None = None  # network between them with its parameters, `ndr-fat-tree,taper=2`
    without: tuple[str, ...] = ()  # links, nodes, classes of links and transports that are taken away
    degrade: tuple[tuple[str, float], ...] = ()  # the same, with the factor of their rates
    ranks_per_node: int | None = None  # the first endpoints of each node that take part
    place: tuple[str, ...] = ()  # names of the endpoints of ranks 0, 1, ...; `GPU 0..3` is four

    def __post_init__(self) -> None:
        """Refuse what no machine can be."""
        if self.nodes is not None and not 1 <= self.nodes <= MOST_NODES:
            raise UsageError(f"--nodes {self.nodes}: a cluster has 1 to {MOST_NODES:,} nodes")
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            raise UsageError(f"--ranks-per-node {self.ranks_per_node}: at least one rank of each node takes part")
        if self.ranks_per_node is not None and self.place:
            raise UsageError("--place names the endpoint of every rank; omit --ranks-per-node")
        for name, factor in self.degrade:
            if not (math.isfinite(factor) and 0 < factor <= MOST_FACTOR):
                raise UsageError(f"--degrade {name}={factor:g}: the factor of a rate is above 0 and at most 10^6")

    @classmethod
    def of(
        cls,
        nodes: int | None,
        fabric: str | None,
        without: Iterable[str],
        degrade: Mapping[str, float] | Iterable[str],
        ranks_per_node: int | None = None,
        place: Iterable[str] = (),
    ) -> Variant:
        """From values of the command line or of a program; `degrade` has factors by name, or texts `NAME=0.25`.

        A text for `without` is one name.
        """
        without = (without,) if isinstance(without, str) else without
        factors = list(degrade.items() if isinstance(degrade, Mapping) else map(_factor, degrade))
        names = [name for name, _ in factors]
        if again := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"--degrade {again}: is given twice; give the product of its factors once")
        factors = [(name, float(factor)) for name, factor in factors]
        return cls(nodes, fabric, tuple(without), tuple(factors), ranks_per_node, tuple(place))

    def to_json(self) -> dict[str, object]:
        """The values that `of` makes it from again."""
        return {
            "nodes": self.nodes,
            "fabric": self.fabric,
            "without": list(self.without),
            "degrade": dict(self.degrade),
            "ranks_per_node": self.ranks_per_node,
            "place": list(self.place),
        }

    def __bool__(self) -> bool:
        """Whether it changes a machine at all."""
        return self != AS_DESCRIBED

    @property
    def words(self) -> list[str]:
        """The options that make this variant of a machine, as a shell would pass them."""
        named = [("--nodes", self.nodes), ("--fabric", self.fabric), *(("--without", name) for name in self.without)]
        named += [("--degrade", f"{name}={factor:g}") for name, factor in self.degrade]
        return [word for option, value in named if value is not None for word in (option, str(value))]

    @property
    def options(self) -> str:
        """What to type after the name of a machine to get this variant of it."""
        return shlex.join(self.words)

    @property
    def chooses(self) -> bool:
        """Whether it says which endpoints take part."""
        return bool(self.ranks_per_node or self.place)

    def places(self, machine: _native.Machine, ranks: int | None) -> tuple[int, ...] | None:
        """Return the endpoint of each of `ranks` ranks, all of them if that is None; None: the first endpoints.

        With `nodes`, every node gets an equal share of the ranks.
        """
        if self.place:
            return _named(machine, self.place, ranks)
        nodes, per_node = nodes_of(machine), self.ranks_per_node
        if per_node is None:
            if ranks is None or self.nodes is None or ranks >= machine.ranks:
                return None
            if ranks % nodes:
                raise UsageError(
                    f"--ranks {ranks} --nodes {nodes}: {ranks} ranks do not divide equally among {nodes} nodes; ask "
                    f"for a multiple of {nodes}, or name the endpoints with --place"
                )
            per_node = ranks // nodes
        if not nodes:
            raise UsageError(f"--ranks-per-node: {machine.name} leaves its number of ranks open; omit it")
        each = machine.ranks // nodes
        if per_node > each:
            raise UsageError(f"--ranks-per-node {per_node}: a node of {machine.name} has {each} ranks; ask for fewer")
        if ranks is not None and (ranks % per_node or ranks > nodes * per_node):
            raise UsageError(
                f"{ranks} ranks: {per_node} on each of {nodes} nodes are {nodes * per_node}; ask for a multiple of "
                f"{per_node} up to that, or change --ranks-per-node"
            )
        used = nodes if ranks is None else ranks // per_node
        return tuple(node * each + rank for node in range(used) for rank in range(per_node))

    def name(self, base: str) -> str:
        """What to call the machine: `hgx-h100-x16-taper-2-without-nic-3`; long names end in a digest of the rest."""
        words = [f"x{self.nodes}"] if self.nodes is not None else []
        words += [self.fabric] if self.fabric else []
        words += [f"without {name}" for name in self.without]
        words += [f"{name} by {factor:g}" for name, factor in self.degrade]
        found = "-".join([base, *(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-") for word in words)])
        if len(found) <= _NAME_MOST:
            return found
        digest = hashlib.sha256(found.encode()).hexdigest()[:8]
        return f"{found[: _NAME_MOST - 9].rstrip('-.')}-{digest}"


# The machine of the file itself.
AS_DESCRIBED = Variant()


def _named(machine: _native.Machine, names: Iterable[str], ranks: int | None) -> tuple[int, ...]:
    """Return the endpoints of these names, each once."""
    known = {str(endpoint["name"]): place for place, endpoint in enumerate(machine.endpoints()[: machine.ranks])}
    found: list[int] = []
    for name in (one for text in names for one in _run(text)):
        check_known("endpoint", name, known, where="--place")
        if known[name] in found:
            raise UsageError(f"--place: `{name}` is named twice; name each endpoint once")
        found.append(known[name])
    if ranks is not None and ranks != len(found):
        raise UsageError(f"{ranks} ranks: --place names {len(found)} endpoints, and each rank needs one; name {ranks}")
    return tuple(found)


def _run(text: str) -> list[str]:
    """Return `GPU 0`, `GPU 1` for `GPU 0..1`, and any other name alone."""
    match = re.fullmatch(r"(.*?)(\d{1,7})\.\.(\d{1,7})", text.strip(), re.ASCII)
    if not match:
        return [text.strip()]
    first, last = int(match[2]), int(match[3])
    if not 0 <= last - first < _MOST_PLACES:
        raise UsageError(f"--place {text}: a run goes up, and has at most {_MOST_PLACES:,} endpoints")
    return [f"{match[1]}{number}" for number in range(first, last + 1)]


def _factor(text: str) -> tuple[str, float]:
    """(name, factor) of `NIC 3=0.25`."""
    name, equals, factor = text.rpartition("=")
    try:
        if equals and name.strip():
            return name.strip(), float(factor)
    except ValueError:
        pass
    raise UsageError(f"--degrade {text}: write a name and the factor of its rate, such as `nvlink=0.25`")
