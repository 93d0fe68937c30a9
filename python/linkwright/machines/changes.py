"""A machine without some of its links, or with slower ones: what a fault does, for `--without` and `--degrade`.

    nvlink                 a class of links                 net_simple     a transport
    GPU 3 - NVSwitch       the links between two nodes      NIC 3          a switch: all of its links

In a cluster, a name without its `node 5` means that place in every node. What chips have in place of links is in
`networks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from linkwright import toml
from linkwright.errors import UsageError, nearest, unknown

from . import cluster, edges, networks
from .variant import Variant

Table = dict[str, Any]
Chosen = Callable[[edges.Pair], bool]


def check(machine: Table, variant: Variant, place: toml.Place) -> None:
    """Refuse a machine whose fabric is no graph of links and has no networks side by side."""
    fabric = cluster.table(machine, "fabric", place)
    if networks.has(fabric):
        networks.check(variant, place)
    elif fabric.get("kind") != "flow" or not isinstance(fabric.get("links"), dict):
        raise UsageError(f"{place.file}: --without and --degrade are for `flow` fabrics with links")


def apply(machine: Table, variant: Variant, place: toml.Place) -> None:
    """Change `machine` as the variant says."""
    if networks.has(machine["fabric"]):
        networks.apply(machine, variant, place)
        return
    graph = _Graph(machine, place)
    for name in variant.without:
        graph.remove(name)
    if variant.without:
        graph.check_connected(variant.without)
    for name, factor in variant.degrade:
        graph.degrade(name, factor)


class _Graph:
    """The fabric of a machine, with its names resolved."""

    def __init__(self, machine: Table, place: toml.Place):
        fabric = machine["fabric"]
        self._machine, self._place = machine, place
        self._ranks = cluster.rank_names(machine, place)
        links = {kind: {**one, "edges": list(one.get("edges", []))} for kind, one in fabric["links"].items()}
        transports = {key: dict(one) for key, one in cluster.table(fabric, "transport", place).items()}
        self._fabric: Table = {**fabric, "links": links, "transport": transports}
        machine["fabric"] = self._fabric

    @property
    def _links(self) -> Table:
        found: Table = self._fabric["links"]
        return found

    @property
    def _transports(self) -> Table:
        found: Table = self._fabric["transport"]
        return found

    def remove(self, name: str) -> None:
        """Take away what is called `name`."""
        if name in self._links:
            del self._links[name]
            self._forget_class(name)
        elif name in self._transports:
            self._forget_transport(name)
        else:
            chosen = self._chosen(name, "--without")
            for one in self._links.values():
                one["edges"] = [text for edge in one["edges"] for text in self._rest(edge, chosen)]
            for kind in [kind for kind, one in self._links.items() if not one["edges"]]:
                self.remove(kind)

    def degrade(self, name: str, factor: float) -> None:
        """Multiply the rates of what is called `name`."""
        source = f"--degrade {name}={factor:g}"
        if name in self._links:
            self._links[name]["bandwidth"] = _scaled(self._links[name]["bandwidth"], factor, source)
        elif name in self._transports:
            one = self._transports[name]
            limits = [key for key in ("rate", "channel") if key in one]
            if not limits:
                raise UsageError(f"{source}: transport {name} states no rate; degrade a class of its links instead")
            one |= {key: _scaled(one[key], factor, source) for key in limits}
        else:
            chosen = self._chosen(name, "--degrade")
            for kind in list(self._links):
                self._split(kind, chosen, factor, source)

    def _split(self, kind: str, chosen: Chosen, factor: float, source: str) -> None:
        """Move the chosen links of a class to one of their own, which is slower."""
        one = self._links[kind]
        slower = [f"{a} - {b}" for a, b in self._pairs(one) if chosen((a, b))]
        if not slower:
            return
        one["edges"] = [text for edge in one["edges"] for text in self._rest(edge, chosen)]
        rate = _scaled(one["bandwidth"], factor, source)
        if not one["edges"]:
            self._links[kind] = {**one, "edges": slower, "bandwidth": rate}
            return
        name = next(name for i in range(1, 1 << 20) if (name := f"{kind}_slower_{i}") not in self._links)
        # The new class stands next to the old one, because the order of links decides between equal ways.
        found = {}
        for key, value in self._links.items():
            found[key] = value
            if key == kind:
                found[name] = {**one, "edges": slower, "bandwidth": rate}
        self._fabric["links"] = found
        for transport in self._transports.values():
            if kind in transport["links"]:
                transport["links"] = [*transport["links"], name]

    def _pairs(self, links: Table) -> Iterator[edges.Pair]:
        for edge in links["edges"]:
            yield from edges.pairs(edge, self._ranks)

    def _rest(self, edge: str, chosen: Chosen) -> list[str]:
        """The edge without its chosen pairs."""
        found = edges.pairs(edge, self._ranks)
        kept = [pair for pair in found if not chosen(pair)]
        return [edge] if len(kept) == len(found) else [f"{a} - {b}" for a, b in kept]

    def _chosen(self, name: str, option: str) -> Chosen:
        """Which links a name means."""
        pairs = [pair for one in self._links.values() for pair in self._pairs(one)]
        if " - " in name:
            wanted = frozenset(part.strip() for part in name.split(" - ", 1))

            def chosen(pair: edges.Pair) -> bool:
                return wanted in (frozenset(pair), frozenset(map(cluster.bare, pair)), _half_bare(pair, wanted))
        else:

            def chosen(pair: edges.Pair) -> bool:
                return any(name in (end, cluster.bare(end)) for end in pair)

        if not any(map(chosen, pairs)):
            raise self._unknown(name, option, pairs)
        is_removed = option == "--without" and " - " not in name
        if is_removed and any(name in (rank, cluster.bare(rank)) for rank in self._ranks):
            raise UsageError(f"--without {name}: is a rank; take fewer ranks with --ranks, or name one of its links")
        return chosen

    def _unknown(self, name: str, option: str, pairs: list[edges.Pair]) -> UsageError:
        """The error for a name of nothing, with those that are near, or with the kinds of names that there are."""
        nodes = list(dict.fromkeys(cluster.bare(end) for pair in pairs for end in pair))
        joined = [" - ".join(map(cluster.bare, pair)) for pair in pairs] if " - " in name else []
        known = [*self._links, *self._transports, *nodes, *joined]
        if nearest(name, known):
            return unknown("link, node or transport", name, known, where=option)
        kinds = {"classes of links": self._links, "transports": self._transports, "nodes": edges.runs(sorted(nodes))}
        listed = "; ".join(f"{what}: {', '.join(names)}" for what, names in kinds.items())
        return UsageError(f"{option} {name}: is no link, node or transport of this machine; {listed}")

    def _forget_class(self, kind: str) -> None:
        for name, one in list(self._transports.items()):
            one["links"] = [used for used in one["links"] if used != kind]
            if not one["links"]:
                self._forget_transport(name)

    def _forget_transport(self, name: str) -> None:
        """Without it, and without the networks and paths that had no other."""
        del self._transports[name]
        networks = self._fabric.get("network", {})
        kept = {
            key: {**one, "transports": [t for t in one["transports"] if t != name]} for key, one in networks.items()
        }
        gone = [key for key, one in kept.items() if not one["transports"]]
        self._fabric["network"] = {key: one for key, one in kept.items() if key not in gone}
        if gone:
            self._forget_networks(gone)

        if not any("channel" in one for one in self._transports.values()):
            paths = self._machine.get("path", {}).items()
            self._machine["path"] = {
                key: {word: value for word, value in one.items() if word != "channels"} for key, one in paths
            }

    def _forget_networks(self, gone: list[str]) -> None:
        machine = self._machine
        hints = machine.get("hints", {})
        machine["hints"] = {**hints, "networks": [name for name in hints.get("networks", []) if name not in gone]}
        paths = machine.get("path", {})
        lost = [key for key, one in paths.items() if one.get("network") in gone]
        machine["path"] = {key: one for key, one in paths.items() if key not in lost}
        if "library" in machine:
            modes = machine["library"].get("modes", {})
            kept = {mode: path for mode, path in modes.items() if path not in lost}
            machine["library"] = {**machine["library"], "modes": kept}

    def check_connected(self, without: tuple[str, ...]) -> None:
        """Refuse a machine that has fallen apart."""
        near: dict[str, list[str]] = {}
        for one in self._links.values():
            for a, b in self._pairs(one):
                near.setdefault(a, []).append(b)
                near.setdefault(b, []).append(a)
        seen, border = {self._ranks[0]}, [self._ranks[0]]
        while border:
            new = [name for name in near.get(border.pop(), []) if name not in seen]
            seen.update(new)
            border += new
        if lost := [rank for rank in self._ranks if rank not in seen]:
            others = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise UsageError(
                f"--without {', '.join(without)}: {lost[0]}{others} cannot be reached from {self._ranks[0]} any more; "
                "leave a way between them"
            )


def _half_bare(pair: edges.Pair, wanted: frozenset[str]) -> frozenset[str]:
    """The pair with the full name of one end, where that one is wanted: `node 3 NIC 0 - leaf 0`, `NIC 0 - leaf 0`."""
    return frozenset(end if end in wanted else cluster.bare(end) for end in pair)


def _scaled(rate: Table, factor: float, source: str) -> Table:
    value = float(f"{rate['value'] * factor:.10g}")
    return {**rate, "value": value, "status": "assumed", "source": f"{source}: of {rate['value']:g}"}
