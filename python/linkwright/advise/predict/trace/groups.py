"""Which nodes of which ranks communicate together.

A collective belongs to a communicator: the one that its `pg_name` names, or else that of all ranks. The members of a
named one are, in this order of preference, what the program states in `[groups]`, what PyTorch recorded in the trace
(the metadata node `process_group:init`), or the ranks whose traces use it. The first collective of a communicator on
one rank meets the first on the others, the second the second, and so on: as in NCCL and MPI, no name is compared. A
send meets a receive likewise, by sender, receiver and tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwright.advise.predict.trace.nodes import COLLECTIVE, COLLECTIVES, SEND, Node, Trace
from linkwright.base.errors import FileError

# Collectives whose members may give different amounts: the largest counts.
UNEVEN = ("alltoall", "allgather", "reduce_scatter", "gather", "scatter")
# The kind of a meeting that is not a collective.
MESSAGE = "message"
Groups = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Nodes that communicate together: a collective, or a send with its receive."""

    kind: str  # the collective, or MESSAGE
    size_bytes: int  # what one rank gives
    ranks: tuple[int, ...]  # of a message: from, to
    places: tuple[int, ...]  # the node of each of them, by place in its trace
    channel: str  # those of one channel take place one after the other
    uneven: bool = False


@dataclass(frozen=True)
class Call:
    """One rank's node of a meeting."""

    rank: int
    place: int
    node: Node
    trace: Trace

    @property
    def shown(self) -> str:
        """Rank, node and what it does, for messages."""
        what = kind_of(self.trace, self.node) if self.node.type == COLLECTIVE else MESSAGE
        return f"rank {self.rank} {self.node.shown}: {what} of {size_of(self.trace, self.node):,} B"


def meetings(traces: Sequence[Trace], orders: Sequence[Sequence[int]], stated: Groups, where: str) -> list[Meeting]:
    """All of them, of each channel in order."""
    calls: dict[str, dict[int, list[Call]]] = {}
    messages: dict[tuple[int, int, int], tuple[list[Call], list[Call]]] = {}
    for rank, (trace, order) in enumerate(zip(traces, orders, strict=True)):
        for place in order:
            node = trace.nodes[place]
            if not node.communicates:
                continue
            call = Call(rank, place, node, trace)
            if node.type == COLLECTIVE:
                calls.setdefault(_communicator(call), {}).setdefault(rank, []).append(call)
            else:
                messages.setdefault(_ends(call, len(traces)), ([], []))[node.type != SEND].append(call)
    members = _Members(traces, stated, where)
    found = [one for name, by_rank in calls.items() for one in _collectives(name, by_rank, members.of(name, by_rank))]
    return found + [one for ends, both in messages.items() for one in _messages(ends, *both)]


def kind_of(trace: Trace, node: Node) -> str:
    """The collective of a node."""
    number = node.attributes.get("comm_type")
    if number is None:
        raise trace.wrong(node, f"it has no comm_type; write one of 0 to {len(COLLECTIVES) - 1}")
    if number >= len(COLLECTIVES):
        raise trace.wrong(node, f"comm_type {number} is not a collective; known are 0 to {len(COLLECTIVES) - 1}")
    return COLLECTIVES[number]


def size_of(trace: Trace, node: Node) -> int:
    """Bytes that the rank of a node gives."""
    if "comm_size" in node.attributes:
        return node.attributes["comm_size"]
    if node.type == COLLECTIVE and kind_of(trace, node) == "barrier":
        return 0
    raise trace.wrong(node, "it has no comm_size; write the bytes that this rank gives")


def _communicator(call: Call) -> str:
    attributes = call.node.attributes
    name = attributes.get("pg_name", "")
    if not name and not all(attributes.get("involved_dim", ())):
        raise call.trace.wrong(
            call.node, "involved_dim leaves out dimensions of a network that the trace does not describe; name its "
            "ranks by `pg_name` and [groups]"
        )  # fmt: skip
    return name


class _Members:
    """The ranks of each communicator."""

    def __init__(self, traces: Sequence[Trace], stated: Groups, where: str):
        self._traces, self._stated = traces, stated
        self._everyone = tuple(range(len(traces)))
        self._recorded: dict[str, Mapping[str, tuple[int, ...]]] = {}  # by file
        for name, ranks in stated.items():
            _check_ranks(ranks, len(traces), f"{where}: groups.{name}")

    def of(self, name: str, by_rank: Mapping[int, list[Call]]) -> tuple[int, ...]:
        """The members of the communicator, each of which must use it."""
        everyone = self._everyone
        first = next(iter(by_rank.values()))[0]
        if name in self._stated:
            members = tuple(self._stated[name])
        elif name and name in (recorded := self._recorded_in(first.trace)):
            members = recorded[name] or everyone
            _check_ranks(members, len(everyone), f"{first.trace.file}: process group {name}")
        else:
            members = tuple(sorted(by_rank)) if name else everyone
            if len(members) < 2:
                raise first.trace.wrong(
                    first.node, f"{_called(name)} has one member, rank {members[0]}, among "
                    f"{len(everyone)} traces; give the traces of all ranks, or state `ranks` or [groups] in a program"
                )  # fmt: skip
        return self._checked(name, members, by_rank)

    def _recorded_in(self, trace: Trace) -> Mapping[str, tuple[int, ...]]:
        if trace.file not in self._recorded:
            self._recorded[trace.file] = _recorded(trace)
        return self._recorded[trace.file]

    def _checked(self, name: str, members: tuple[int, ...], by_rank: Mapping[int, list[Call]]) -> tuple[int, ...]:
        own = set(members)
        for rank, calls in by_rank.items():
            if rank not in own:
                raise calls[0].trace.wrong(
                    calls[0].node, f"rank {rank} is not a member of {_called(name)}, whose ranks are "
                    f"{_few(members)}; correct the group"
                )  # fmt: skip
        for rank in members:
            if rank not in by_rank:
                trace = self._traces[rank]
                raise trace.wrong(
                    None, f"rank {rank} does not use {_called(name)}, of which it is a member; give the trace of "
                    "the same step, or correct the group"
                )  # fmt: skip
        return members


def _check_ranks(ranks: Sequence[int], count: int, where: str) -> None:
    if len(set(ranks)) < len(ranks):
        raise FileError(f"{where}: names a rank twice; name each once")
    if wrong := [rank for rank in ranks if not 0 <= rank < count]:
        raise FileError(f"{where}: rank {wrong[0]} does not exist; there are ranks 0 to {count - 1}")


def _recorded(trace: Trace) -> dict[str, tuple[int, ...]]:
    """The groups that PyTorch recorded: a JSON list in the printed form of a Python list."""
    text = trace.groups_text
    if text is None:
        return {}
    try:
        listed = json.loads(text[text.index("[{") : text.rindex("}]") + 2].replace('\\"', '"'))
        found = {str(one["pg_name"]): tuple(one["ranks"]) for one in listed}
        if not all(type(rank) is int for ranks in found.values() for rank in ranks):
            raise ValueError("a rank is not a whole number")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise trace.wrong(
            None, f"the groups of its process_group:init cannot be read ({error}); state them in [groups] of a program"
        ) from error
    return found


def _collectives(name: str, by_rank: Mapping[int, list[Call]], members: tuple[int, ...]) -> Iterator[Meeting]:
    first, *others = (by_rank[rank] for rank in members)
    for other in others:
        if len(other) != len(first):
            raise other[0].trace.wrong(
                None, f"{_called(name)} has {len(other)} collectives on rank {other[0].rank} and {len(first)} on rank "
                f"{first[0].rank}; give traces of the same step"
            )  # fmt: skip
    for calls in zip(*(by_rank[rank] for rank in members), strict=True):
        yield _meeting(name, calls)


def _meeting(name: str, calls: Sequence[Call]) -> Meeting:
    first = calls[0]
    kind = kind_of(first.trace, first.node)
    sizes = []
    for call in calls:
        sizes.append(size_of(call.trace, call.node))
        if kind_of(call.trace, call.node) != kind or (sizes[-1] != sizes[0] and kind not in UNEVEN):
            raise call.trace.wrong(
                None, f"ranks differ in {_called(name)}: {first.shown}, {call.shown}; give traces of the same step"
            )
    ranks, places = tuple(call.rank for call in calls), tuple(call.place for call in calls)
    return Meeting(kind, max(sizes), ranks, places, f"group {name}", min(sizes) < max(sizes))


def _ends(call: Call, count: int) -> tuple[int, int, int]:
    """From, to and tag of a message."""
    attributes, sends = call.node.attributes, call.node.type == SEND
    own, peer = ("comm_src", "comm_dst") if sends else ("comm_dst", "comm_src")
    if peer not in attributes:
        raise call.trace.wrong(
            call.node, f"it names no {peer}; write the rank that it {'goes to' if sends else 'comes from'}"
        )
    if attributes.get(own, call.rank) != call.rank:
        raise call.trace.wrong(call.node, f"{own} is {attributes[own]} in the trace of rank {call.rank}; correct it")
    other = attributes[peer]
    if other >= count or other == call.rank:
        there = "its own rank" if other == call.rank else f"no rank; there are 0 to {count - 1}"
        raise call.trace.wrong(call.node, f"{peer} {other} is {there}; name another, or add its trace")
    ends = (call.rank, other) if sends else (other, call.rank)
    return (*ends, attributes.get("comm_tag", 0))


def _messages(ends: tuple[int, int, int], sends: list[Call], receives: list[Call]) -> Iterator[Meeting]:
    source, target, tag = ends
    for send, receive in zip(sends, receives, strict=False):
        size, other = (size_of(call.trace, call.node) for call in (send, receive))
        if size != other:
            raise send.trace.wrong(
                None, f"ends of a message differ: {send.shown}, {receive.shown}; give traces of the same step"
            )
        yield Meeting(MESSAGE, size, (source, target), (send.place, receive.place), f"{source} to {target} {tag}")
    if len(sends) != len(receives):
        alone = (sends if len(sends) > len(receives) else receives)[min(len(sends), len(receives))]
        raise alone.trace.wrong(
            alone.node, f"rank {source} sends rank {target} {len(sends)} messages with tag {tag}, which receives "
            f"{len(receives)}; give traces of the same step"
        )  # fmt: skip


def _called(name: str) -> str:
    return f"group `{name}`" if name else "the group of all ranks"


def _few(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
