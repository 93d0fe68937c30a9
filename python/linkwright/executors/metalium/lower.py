"""A schedule as one program for each data-movement processor, which the kernel `metalium_walk.cpp` walks.

What a core cannot do is lowered here. It cannot combine into the memory of another core, so such data go to a
*landing*, a place of their own at the target, which combines them. A write of the network moves bytes between addresses
that are equal modulo 16, so any other piece lands, too, and its target copies it.

    lanes      an even lane is walked by processor 0 on network 0, an odd one by processor 1 on network 1
    notices    a counter at the target for each processor that sends to it; its notices are numbered
    order      instructions are written by operation id, and a processor waits only for what was written before, so
               no cycle can close
    when       what has landed is combined where an operation first needs it; writes that no wait separates share one
               acknowledgement, and a notice to each of their targets
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from linkwright.base.errors import WaivedError

from ..program import Operation, Piece, Program

# Codes of the kernel, in its order.
(END, WAIT, WRITE, LANDED, RAISE, COMBINE, COPY, MULTICAST, MULTICAST_TOO, READ, FETCHED, CHOOSE, ANNOUNCE, BEGIN,
 STAMP, COMPUTE) = range(16)  # fmt: skip
ALIGNED = 16  # bytes: addresses of a transfer are equal modulo this
_WITHIN = 255  # the lane of what happens within a rank
_PROCESSORS = 2
# Bytes from which the network copies within a core, at its own rate; a processor takes cycles for each word.
_WORTH_A_WRITE = 128

Place = tuple[int, int]  # logical column and line of a core
Instruction = tuple[int, int, int, int]  # code | where << 8, and three words
Step = tuple[int, int, int, int]  # COMBINE or COPY, into, from, bytes: offsets in the data of a rank


class Walker(NamedTuple):
    """A processor of the core of a rank."""

    rank: int
    processor: int


class Lowered(NamedTuple):
    """The programs of all processors.

    Attributes:
        programs: by walker, without its END.
        senders: by rank: who raises each of its counters, and how often in a repetition.
        data_bytes: of each rank: its memory, and behind it the landings.
        processors: how many of a core walk.
    """

    programs: dict[Walker, list[Instruction]]
    senders: list[list[tuple[Walker, int]]]
    data_bytes: int
    processors: int

    @property
    def combines(self) -> bool:
        """Whether a processor combines data."""
        return any(code[0] & 255 == COMBINE for own in self.programs.values() for code in own)

    def without_arithmetic(self) -> Lowered:
        """The same moves and waits, and nothing is combined, so that the result is wrong."""
        kept = {who: [code for code in own if code[0] & 255 != COMBINE] for who, own in self.programs.items()}
        return self._replace(programs=kept)


def lower(program: Program, places: Sequence[Place], batch: int | None = None) -> Lowered:
    """The programs of all ranks.

    Args:
        program: the operations.
        places: the core of each rank.
        batch: puts after which a processor waits for their acknowledgement and gives notice; None: no limit.
    Raises:
        WaivedError: the schedule has passive memories.
    """
    if program.participants != program.ranks:
        raise WaivedError(
            "metalium: waived: the schedule has memories beside its ranks, and only the L1 of cores is used; choose an "
            "algorithm without shared memory"
        )
    return _Lowering(program, places, batch).lowered()


class _Lowering:
    def __init__(self, program: Program, places: Sequence[Place], batch: int | None):
        self._program, self._places, self._batch = program, places, batch
        self._operations = program.operations
        self._awaited_to_end = {w.operation for item in self._operations for w in item.waits if w.moment == "done"}
        odd = any(item.lane % 2 and item.lane != _WITHIN for item in self._operations)
        self._processors = _PROCESSORS if odd else 1
        self._code: dict[Walker, list[Instruction]] = {
            Walker(rank, processor): [] for rank in range(program.ranks) for processor in range(self._processors)
        }
        ranks = range(program.ranks)
        self._number: list[dict[Walker, int]] = [{} for _ in ranks]  # at a target: the counter of a sender
        self._raised: dict[tuple[Walker, int], int] = defaultdict(int)  # (sender, target) -> notices
        self._reached: dict[tuple[Walker, Walker], int] = defaultdict(int)  # (who waits, sender) -> highest awaited
        self._arrival: dict[tuple[int, int], tuple[Walker, int]] = {}  # (operation, target) -> sender, ordinal
        self._unsaid: dict[Walker, list[Operation]] = defaultdict(list)  # written, neither acknowledged nor announced
        self._pending: list[dict[int, list[Step]]] = [{} for _ in ranks]  # landed: operation -> what is to be done
        self._position: dict[tuple[int, int], tuple[Walker, int]] = {}  # (operation, rank) -> who did it, until where
        self._marks: dict[Walker, list[tuple[int, int]]] = defaultdict(list)  # where it told its rank: until, ordinal
        self._changes: list[list[tuple[Step, Walker, int]]] = [[] for _ in ranks]  # combinations of a rank so far
        self._acknowledged: dict[int, list[tuple[Walker, int]]] = defaultdict(list)  # of operations that combine
        self._end = -(-max(program.memory_bytes) // ALIGNED) * ALIGNED
        self._ends = [self._end] * program.ranks  # of landings

    def lowered(self) -> Lowered:
        self._start()
        for item in self._operations:
            walker = self._walker(item)
            for wait in item.waits:
                self._observe(walker, self._operations[wait.operation], wait.moment)
            self._issue(walker, item)
            self._position.setdefault((item.id, item.initiator), (walker, len(self._code[walker])))
        for walker in self._code:
            self._announce(walker)
        for rank in range(self._program.ranks):
            for operation in sorted(self._pending[rank]):
                self._settle(Walker(rank, 0), operation)
        # A rank is finished when all that others send it has arrived.
        for (sender, target), ordinal in sorted(self._raised.items()):
            self._await(Walker(target, 0), sender, ordinal)
        for walker in self._code:
            self._emit(walker, STAMP, 1)
        senders = [[(sender, self._raised[sender, rank]) for sender in own] for rank, own in enumerate(self._number)]
        return Lowered(self._code, senders, max(self._ends), self._processors)

    def _start(self) -> None:
        """All begin at a time that the first rank chooses when everybody is there."""
        first, *others = self._code
        for walker in others:
            self._raise(walker, 0)
        for walker in others:
            self._await(first, walker, 1)
        self._emit(first, CHOOSE)
        told = sorted({walker.rank for walker in others})
        for rank in told:
            if rank:
                self._emit(first, ANNOUNCE, self._place(rank))
        self._emit(first, LANDED)
        for rank in told:
            self._raise(first, rank)
        for walker in others:
            self._await(walker, first, 1)
        for walker in self._code:
            self._emit(walker, BEGIN)
            self._emit(walker, STAMP, 0)

    def _walker(self, item: Operation) -> Walker:
        return Walker(item.initiator, 0 if item.lane == _WITHIN else item.lane % self._processors)

    def _place(self, rank: int) -> int:
        x, y = self._places[rank]
        return x | y << 8

    def _emit(self, walker: Walker, code: int, where: int = 0, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._code[walker].append((code | where << 8, a, b, c))

    def _raise(self, sender: Walker, target: int) -> int:
        """A notice to a rank; its ordinal."""
        number = self._number[target].setdefault(sender, len(self._number[target]))
        self._raised[sender, target] += 1
        self._emit(sender, RAISE, self._place(target), number)
        return self._raised[sender, target]

    def _await(self, walker: Walker, sender: Walker, ordinal: int) -> None:
        if self._reached[walker, sender] >= ordinal:
            return
        self._announce(walker)  # nobody may wait for what this one would only say later
        self._reached[walker, sender] = ordinal
        self._emit(walker, WAIT, self._number[walker.rank][sender], ordinal)

    def _announce(self, walker: Walker) -> None:
        """Tell the targets of all writes so far, once these have landed."""
        items = self._unsaid.pop(walker, [])
        if any(item.pieces for item in items):
            self._emit(walker, LANDED)
        told: dict[int, int] = {}  # one notice to each target stands for all
        for item in items:
            for target in item.targets:
                if target not in (walker.rank, *told):
                    told[target] = self._raise(walker, target)
                if target != walker.rank:
                    self._arrival[item.id, target] = walker, told[target]

    def _follow(self, walker: Walker, done: tuple[Walker, int]) -> None:
        """Go on when another processor of this core has come to a position of its program."""
        other, until = done
        if other == walker:
            return
        marks = self._marks[other]
        ordinal = next((ordinal for position, ordinal in marks if position >= until), None)
        if ordinal is None:
            self._announce(other)
            ordinal = self._raise(other, other.rank)
            marks.append((len(self._code[other]), ordinal))
        self._await(walker, other, ordinal)

    def _observe(self, walker: Walker, earlier: Operation, moment: str) -> None:
        """Let a processor see a moment of an earlier operation."""
        if moment == "arrived":
            self._see(walker, earlier)
            return
        issuer, until = self._position[earlier.id, walker.rank]
        self._announce(issuer)
        if moment == "done":
            for target in earlier.targets:
                if earlier.id in self._pending[target]:
                    self._settle(Walker(target, issuer.processor), earlier.id)
            for settled, ordinal in self._acknowledged[earlier.id]:
                self._await(walker, settled, ordinal)
        # The write has been read, and has landed, when its notices are out.
        self._follow(walker, (issuer, len(self._code[issuer]) if earlier.pieces and earlier.kind != "get" else until))

    def _see(self, walker: Walker, earlier: Operation) -> None:
        if earlier.id in self._pending[walker.rank]:
            self._settle(walker, earlier.id)
        elif (earlier.id, walker.rank) in self._position:
            self._follow(walker, self._position[earlier.id, walker.rank])
        else:
            self._announce(self._walker(earlier))
            self._await(walker, *self._arrival[earlier.id, walker.rank])

    def _settle(self, walker: Walker, operation: int) -> None:
        """Let a rank do what has landed with an operation."""
        steps = self._pending[walker.rank].pop(operation)
        self._announce(self._walker(self._operations[operation]))
        sender, ordinal = self._arrival[operation, walker.rank]
        self._await(walker, sender, ordinal)
        self._change(walker, operation, steps)
        self._position[operation, walker.rank] = walker, len(self._code[walker])
        if operation in self._awaited_to_end:
            self._acknowledged[operation].append((walker, self._raise(walker, sender.rank)))

    def _change(self, walker: Walker, operation: int, steps: Sequence[Step]) -> None:
        """Combine or copy, after whatever changed the same bytes before: there may be no other order between them."""
        pending, changes = self._pending[walker.rank], self._changes[walker.rank]
        for other in [number for number in pending if number < operation]:
            if other in pending and any(_overlap(a, b) for a in pending[other] for b in steps):
                self._settle(walker, other)
        for step, other_walker, until in changes:
            if other_walker != walker and any(_overlap(step, b) for b in steps):
                self._follow(walker, (other_walker, until))
        if steps:
            self._announce(walker)
        for code, into, given, nbytes in steps:
            if code == COPY and (into - given) % ALIGNED == 0 and nbytes >= _WORTH_A_WRITE:
                self._emit(walker, WRITE, self._place(walker.rank), given, into, nbytes)
                self._emit(walker, LANDED)
            else:
                self._emit(walker, code, 0, into, given, nbytes)
        if self._processors > 1:
            changes.extend((step, walker, len(self._code[walker])) for step in steps)

    def _issue(self, walker: Walker, item: Operation) -> None:
        if item.kind == "local":
            code = COMBINE if item.combine else COPY
            self._change(walker, item.id, [(code, p.target_offset, p.source_offset, p.bytes) for p in item.pieces])
        elif item.kind == "get":
            self._get(walker, item)
        elif item.kind == "compute":
            self._announce(walker)
            self._emit(walker, COMPUTE, 0, item.work)
        elif item.kind != "fence":
            self._put(walker, item)

    def _get(self, walker: Walker, item: Operation) -> None:
        steps: list[Step] = []
        for piece in item.pieces:
            at = piece.target_offset
            if self._lands(item, piece):
                at = self._landing(walker.rank, piece)
                steps.append((COMBINE if item.combine else COPY, piece.target_offset, at, piece.bytes))
            self._emit(walker, READ, self._place(item.source), piece.source_offset, at, piece.bytes)
        if item.pieces:
            self._emit(walker, FETCHED)
        self._change(walker, item.id, steps)

    def _put(self, walker: Walker, item: Operation) -> None:
        corners = self._rectangle(item) if item.kind == "multicast" else None
        if corners:
            piece = item.pieces[0]
            self._emit(walker, *corners, piece.source_offset, piece.target_offset, piece.bytes)
        else:
            for piece in item.pieces:
                at = piece.target_offset
                if self._lands(item, piece):
                    at = self._landing(piece.target, piece)
                    step = (COMBINE if item.combine else COPY, piece.target_offset, at, piece.bytes)
                    self._pending[piece.target].setdefault(item.id, []).append(step)
                self._emit(walker, WRITE, self._place(piece.target), piece.source_offset, at, piece.bytes)
        self._unsaid[walker].append(item)
        if self._batch is not None and len(self._unsaid[walker]) >= self._batch:
            self._announce(walker)

    @staticmethod
    def _lands(item: Operation, piece: Piece) -> bool:
        return item.combine or (piece.source_offset - piece.target_offset) % ALIGNED != 0

    def _landing(self, rank: int, piece: Piece) -> int:
        """A place of its own, at the offset modulo 16 at which the piece starts at its source."""
        at = self._ends[rank] + piece.source_offset % ALIGNED
        self._ends[rank] = -(-(at + piece.bytes) // ALIGNED) * ALIGNED
        return at

    def _rectangle(self, item: Operation) -> tuple[int, int] | None:
        """Code and corners of one multicast of the network, if it can reach these targets and no others."""
        offsets = {(piece.source_offset, piece.target_offset, piece.bytes) for piece in item.pieces}
        if len(offsets) != 1 or self._lands(item, item.pieces[0]) or item.source in item.targets:
            return None
        for code, ranks in ((MULTICAST, {*item.targets}), (MULTICAST_TOO, {*item.targets, item.source})):
            places = [self._places[rank] for rank in ranks]
            (x0, y0), (x1, y1) = (tuple(map(pick, zip(*places, strict=True))) for pick in (min, max))
            if (x1 - x0 + 1) * (y1 - y0 + 1) == len(places):
                # The sender gets a copy, too, which is harmless in place only.
                in_place = item.pieces[0].source_offset == item.pieces[0].target_offset
                if code == MULTICAST or in_place:
                    return code, x0 | y0 << 4 | x1 << 8 | y1 << 12 | len(item.targets) << 16
        return None


def exchange(places: Sequence[Place]) -> Lowered:
    """Programs that compare clocks: the first rank stamps before and after each answer, the others when they answer."""
    first, *others = (Walker(rank, 0) for rank in range(len(places)))
    at = [x | y << 8 for x, y in places]
    programs: dict[Walker, list[Instruction]] = {first: []}
    for number, other in enumerate(others):
        programs[first] += [
            (STAMP | 2 * number << 8, 0, 0, 0), (RAISE | at[other.rank] << 8, 0, 0, 0),
            (WAIT | number << 8, 1, 0, 0), (STAMP | 2 * number + 1 << 8, 0, 0, 0),
        ]  # fmt: skip
        programs[other] = [(WAIT, 1, 0, 0), (STAMP, 0, 0, 0), (RAISE | at[0] << 8, number, 0, 0)]
    return Lowered(programs, [[(other, 1) for other in others], *([(first, 1)] for _ in others)], 0, 1)


def _overlap(a: Step, b: Step) -> bool:
    """Whether two steps change a common byte."""
    return a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
