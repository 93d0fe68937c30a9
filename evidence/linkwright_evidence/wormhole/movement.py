"""The five data movement tables: n transactions of b bytes by one tile on an idle chip.

One experiment is one transfer of n contiguous runs: the initiator issues them one after another and waits once
until all are acknowledged (or, for reads, until all data are there), which is how the published kernels do it.
The time is from before the first issue to after that wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.ask.answer import Answer, How, ask
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import number, reference_rows
from linkwright_evidence.wormhole.theory import RANKS, clock_hz

INITIATOR = 0  # logical (0,0), place (1,1)


@dataclass(frozen=True)
class Pattern:
    """How one table addresses the machine."""

    target: int | None  # a rank; None: DRAM channel 0
    get: bool
    hint: str  # "+x" is NoC 0, "-x" NoC 1
    path: str


PATTERNS = {
    "one_to_one_write": Pattern(target=9, get=False, hint="+x", path="stream"),
    "one_from_one_read": Pattern(target=9, get=True, hint="-x", path="read"),
    "loopback_write": Pattern(target=0, get=False, hint="+x", path="stream"),
    "dram_interleaved_read": Pattern(target=None, get=True, hint="-x", path="read"),
    "dram_interleaved_write": Pattern(target=None, get=False, hint="+x", path="stream"),
}


# Pattern, transactions, bytes of each.
Shape = tuple[str, int, int]


def _shapes(patterns: Iterable[str], transactions: Iterable[int], sizes: Iterable[int]) -> frozenset[Shape]:
    return frozenset(itertools.product(patterns, transactions, sizes))


_MANY, _SEVERAL = (64, 256), (4, 16, 64, 256)
# Number of the machine file -> the cells by which it was set, which are not scored.
FITTED_BY: dict[str, frozenset[Shape]] = {
    "fabric.issue_write": _shapes(["one_to_one_write"], _MANY, [32]),
    "fabric.issue_read": _shapes(["one_from_one_read"], _MANY, [32]),
    "fabric.issue_self": _shapes(["loopback_write"], _MANY, [32]),
    "fabric.packet_write": _shapes(["one_to_one_write"], _MANY, [8192]),
    "fabric.packet_read": _shapes(["one_from_one_read"], _MANY, [8192]),
    "fabric.packet_self": _shapes(["loopback_write"], _MANY, [8192]),
    "fabric.dram_read_extra": _shapes(["dram_interleaved_read", "one_from_one_read"], [1], [32]),
    "fabric.dram_write_extra": _shapes(["dram_interleaved_write", "one_to_one_write"], [1], [32]),
    "fabric.dram_least": _shapes(["dram_interleaved_read"], _SEVERAL, [32, 64, 128, 256]),
    "fabric.dram_partial_write": _shapes(["dram_interleaved_write"], _SEVERAL, [32, 64]),
    "fabric.dram_partial_below": _shapes(["dram_interleaved_write"], _SEVERAL, [64, 128]),
    "path.ideal.barrier": _shapes(["one_to_one_write", "one_from_one_read", "loopback_write"], [1], [32]),
}


def schedule(pairs: Sequence[tuple[int, int | None]], get: bool, hint: str, transactions: int, transaction_bytes: int):
    """One transfer of `transactions` runs for each (initiator, other), pair after pair.

    Runs take every second chunk, so that they stay apart. Nothing is written twice, so no transfer waits for another: a
    slot belongs to the rank whose data it takes, the initiator's of a write and the other's of a read. None is DRAM
    channel 0, whose slot for reads is the initiator's.
    """
    chunks = 2 * transactions
    owners = [other if get and other is not None else initiator for initiator, other in pairs]
    slots = 1 + max(owners)
    builder = _native.Builder("pattern", RANKS, slots * chunks * transaction_bytes, element_bytes=1)
    builder.buffer("input", slots * chunks)
    memory = builder.memory() if pairs[0][1] is None else None
    builder.buffer("output", slots * chunks, only_at=memory)
    taken, given = ("output", "input") if get else ("input", "output")
    for (initiator, other), owner in zip(pairs, owners, strict=True):
        ends = (initiator, memory if other is None else other)
        source, target = reversed(ends) if get else ends
        blocks = list(range(owner * chunks, (owner + 1) * chunks, 2))
        builder.step()
        builder.put_blocks(source, target, taken, blocks, into=given, get=get, hint=hint)
    return builder.finish()


def cycles(machine, pattern: Pattern, transactions: int, transaction_bytes: int) -> float:
    """Modelled cycles of one experiment."""
    pairs = [(INITIATOR, pattern.target)]
    made = schedule(pairs, pattern.get, pattern.hint, transactions, transaction_bytes)
    result = ask(machine, made, How(path=pattern.path))
    return cycles_of(machine, result, INITIATOR)


def cycles_of(machine, answer: Answer, rank: int) -> float:
    """Cycles from the start of `rank` to its finish."""
    return int(answer.ranks.finish_ps[rank] - answer.ranks.start_ps[rank]) * clock_hz(machine) / 1e12


def cells(machine, progress) -> list[Cell]:
    """All 300 cells."""
    rows = reference_rows("wormhole", "data_movement.csv")
    given = frozenset().union(*FITTED_BY.values())
    made = []
    for index, row in enumerate(rows):
        progress("data movement", index, len(rows))
        shape = _shape(row)
        keys = {key: number(value) for key, value in row.items() if key not in ("cycles", "split")}
        predicted = cycles(machine, PATTERNS[row["pattern"]], *shape[1:])
        reference = float(row["cycles"]) if row["cycles"] else None
        role = "fitted" if shape in given else "predicted"
        made.append(Cell(row["pattern"], keys, predicted, reference, "cycles", row["split"], role=role))
    return made


def published() -> dict[Shape, float]:
    """The published cycles of every experiment."""
    return {_shape(row): float(row["cycles"]) for row in reference_rows("wormhole", "data_movement.csv")}


def _shape(row: dict[str, str]) -> Shape:
    return row["pattern"], int(row["transactions"]), int(row["transaction_bytes"])
