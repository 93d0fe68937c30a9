"""Collectives of several groups on one machine: the library's plan for each group, and all groups at once.

    group 0   GPU 0, 8, 16, 24      plan, alone: time, links that it uses
    group 1   GPU 1, 9, 17, 25      plan, alone: links; none in common with group 0?
    ...                             in common: the schedules side by side, as one, simulated on the same links

Groups of the same kind begin together. Only those that meet the first one on a link can slow it, so they are looked
for among groups with a GPU on the same nodes and a sample of the others. Groups that occupy nodes in different ways
(2 x 4 GPUs, or 8) are each simulated, and the slowest counts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import Answer, How, ask
from linkwright.base.errors import ShapeError
from linkwright.base.units import NS_PER_S
from linkwright.libraries import library
from linkwright.libraries.nccl.hardware import hardware
from linkwright.libraries.questions import collective_question
from linkwright.libraries.times import PLAIN
from linkwright.machines.variant import nodes_of

Group = tuple[int, ...]
# Groups that are compared with the first one and simulated with it; and ways of occupying nodes.
MOST_BESIDE, MOST_SHAPES = 16, 3
ELEMENT_BYTES = 4
# Operations above which a ring is simulated by its first steps; the most of them, twice over.
MOST_OPERATIONS, MOST_STEPS = 100_000, 8


@dataclass(frozen=True)
class GroupExchange:
    """A collective of every group of a kind at once, in the slowest group."""

    time_ns: float
    choice: str  # of the library
    link: str  # the busiest
    groups: int  # all that run at once
    beside: int  # simulated as one schedule, because they share links
    looked: int = 1  # compared with the slowest for shared links, itself among them


@dataclass(frozen=True)
class _Alone:
    schedule: _native.Schedule
    how: How
    time_ns: float
    span_ns: float  # of this schedule, which may stand for a longer one
    choice: str
    used: frozenset[str]
    link: str


def per_node(machine: _native.Machine) -> int:
    """Return the GPUs of a node; of a rack in one NVLink domain, those of the rack."""
    return max(1, machine.ranks // nodes_of(machine))


class GroupExchanges:
    """Collectives on one machine; `places` are the endpoints of the ranks. What was simulated is kept."""

    def __init__(self, machine: _native.Machine, places: Sequence[int]):
        self._machine, self._places = machine, places
        self._per_node = per_node(machine)
        self._alone = functools.cache(self._simulated)
        self._known: dict[tuple, GroupExchange] = {}

    def collective(self, kind: str, groups: Sequence[Group], size_bytes: int) -> GroupExchange:
        """Return the time of `kind` on every group at once, in ns; `size_bytes` as nccl-tests counts it."""
        ranks = len(groups[0])
        if ranks == 1 or size_bytes <= 0:
            return GroupExchange(0.0, "one rank", "", len(groups), 1)
        key = (kind, tuple(groups), size_bytes)
        if key not in self._known:
            size = -(-size_bytes // (ELEMENT_BYTES * ranks)) * ELEMENT_BYTES * ranks
            placed = [tuple(self._places[rank] for rank in group) for group in groups]
            shapes: dict[tuple[int, ...], Group] = {}
            for group in placed:
                shapes.setdefault(tuple(sorted(Counter(p // self._per_node for p in group).values())), group)
            found = [self._beside(kind, one, placed, size) for one in list(shapes.values())[:MOST_SHAPES]]
            self._known[key] = max(found, key=lambda one: one.time_ns)
        return self._known[key]

    def nodes(self, group: Sequence[int]) -> int:
        """Nodes on which these ranks are."""
        return len({self._places[rank] // self._per_node for rank in group})

    def has_engines(self, group: Sequence[int]) -> bool:
        """Whether kernels of inference engines were published for such a node: NCCL's, with links between its GPUs."""
        library = self._machine.library()
        places = tuple(self._places[rank] for rank in group)
        return bool(library and library["name"] == "nccl" and hardware(self._machine, places).peer)

    def messages(self, pairs: Sequence[tuple[int, int]], size_bytes: int) -> GroupExchange:
        """Return the time of one message for every pair of ranks, all at once, in ns; by LL or Simple."""
        key = ("messages", tuple(pairs), size_bytes)
        if key not in self._known:
            first = self._places[pairs[0][0]] // self._per_node
            near = [pair for pair in pairs if self._places[pair[0]] // self._per_node == first][:MOST_BESIDE]
            ranks = sorted({rank for pair in near for rank in pair})
            messages = [(ranks.index(a), ranks.index(b), max(1, size_bytes)) for a, b in near]
            schedule = schedules.at_once(len(ranks), messages)
            how = How(placement=[self._places[rank] for rank in ranks], links=True)
            ways = [how]
            if stated := self._machine.library():
                modes = {mode: path for mode, path in stated["modes"].items() if mode in ("ll", "simple")}
                ways = [
                    how.but(launch_ps=stated["launch_ps"], path=path) for path in (modes or stated["modes"]).values()
                ]
            answer = min((ask(self._machine, schedule, way) for way in ways), key=lambda one: one.time)
            link = _busiest(answer)[1]
            self._known[key] = GroupExchange(answer.time.ns, "messages", link, len(pairs), len(near), len(near))
        return self._known[key]

    def _beside(self, kind: str, first: Group, groups: Sequence[Group], size: int) -> GroupExchange:
        """The group with all that share links with it."""
        alone = self._alone(kind, first, size)
        nodes = {place // self._per_node for place in first}
        others = [group for group in groups if group != first]
        near = [group for group in others if nodes & {place // self._per_node for place in group}]
        far = [group for group in others if group not in near]
        looked = [*near, *far[:: max(1, len(far) // 4)][:4]][:MOST_BESIDE]
        meeting = [one for one in (self._alone(kind, group, size) for group in looked) if one.used & alone.used]
        made = GroupExchange(alone.time_ns, alone.choice, alone.link, len(groups), 1 + len(meeting), 1 + len(looked))
        if not meeting:
            return made
        try:
            joined = alone.schedule.side_by_side([one.schedule for one in meeting])
        except ShapeError:  # vectors of different sizes
            return replace(made, beside=1)
        placement = [place for one in (alone, *meeting) for place in one.how.placement or ()]
        answer = ask(self._machine, joined, alone.how.but(placement=placement))
        slower = max(1.0, answer.time.ns / alone.span_ns)
        return replace(made, time_ns=alone.time_ns * slower, link=_busiest(answer)[1])

    def _simulated(self, kind: str, places: Group, size: int) -> _Alone:
        name = library.default(self._machine, kind) or PLAIN.get(kind, "linear")
        asked = replace(collective_question("llm", kind, name, len(places), size, "f32", "sum"), placement=places)
        words = name
        if library.is_plan(name):
            plan = library.plan(self._machine, asked)
            asked, words = plan.question, plan.words
        schedule, how = schedules.of(asked), schedules.how(asked, links=True)
        if words.startswith("Ring") and len(schedule) > MOST_OPERATIONS and not (asked.own and asked.own.continued):
            schedule, answer, time, steps = self._ring(schedule, how)
            words = f"{words}; {steps}"
        else:
            answer = ask(self._machine, schedule, how)
            time = schedules.time(asked, self._machine, answer).ns
        used, link = _busiest(answer)
        return _Alone(schedule, how, time, answer.time.ns, words, used, link)

    def _ring(self, schedule: _native.Schedule, how: How) -> tuple[_native.Schedule, Answer, float, str]:
        """The first steps of a large ring, whose steps are alike: (they, their answer, time of all, words).

        Data crosses a slow link once in as many steps as a node has GPUs, so the difference is of so many, if few.
        """
        some = self._per_node if self._per_node <= MOST_STEPS else MOST_STEPS // 2
        fewer, more, steps = schedule.first_steps(some), schedule.first_steps(2 * some), schedule.steps
        first, answer = ask(self._machine, fewer, how).time.ns, ask(self._machine, more, how)
        time = answer.time.ns + (steps / some - 2) * (answer.time.ns - first)
        return more, answer, time, f"{2 * some} of {steps} steps"


def _busiest(answer: object) -> tuple[frozenset[str], str]:
    """The links that carry bytes, and the one that is busy longest."""
    links = answer.links  # type: ignore[attr-defined]
    used = [
        (int(busy), name) for busy, name, moved in zip(links.busy_ps, links.name, links.bytes, strict=True) if moved
    ]
    return frozenset(name for _, name in used), max(used, default=(0, ""), key=lambda one: one[0])[1]


class WireExchanges(GroupExchanges):
    """Exchanges that take what their bytes need on the wires of a GPU and on its share of a node's ports.

    No simulated exchange is faster: no start, no detour, no step that waits. A step with them bounds a search.
    """

    def __init__(self, machine: _native.Machine, places: Sequence[int]):
        super().__init__(machine, places)
        known = hardware(machine, tuple(places))
        self._peer = known.peer or known.pcie
        self._port = known.nics * known.nic / known.gpus if known.nodes > 1 and known.nics else float("inf")

    def collective(self, kind: str, groups: Sequence[Group], size_bytes: int) -> GroupExchange:
        """Every rank sends or receives all but its own share; of nodes, what each must receive from the others."""
        near, far = 0.0, 0.0
        ranks = len(groups[0])
        if ranks > 1 and size_bytes > 0:
            nodes = {self._places[rank] // self._per_node for rank in groups[0]}
            each = ranks / len(nodes)
            shared = 1.0 if kind == "alltoall" else each  # what a node receives once serves all its ranks
            near = size_bytes * (each - 1) / ranks / self._peer if self._peer else 0.0
            far = size_bytes * (1 - each / ranks) / shared / self._port
        return GroupExchange(max(near, far) * NS_PER_S, "", "", len(groups), 1)

    def messages(self, pairs: Sequence[tuple[int, int]], size_bytes: int) -> GroupExchange:
        """Messages between stages take no time: most of them are hidden."""
        return GroupExchange(0.0, "", "", len(pairs), 1)
