"""From small to large: numbers from at most 16 transactions of at most 4 KiB, and what they say of the other cells.

Each number is found as the machine file says: a slope over the number of transactions, or a difference of single cells.
The numbers of the allreduces cannot be found again, because no run time of the thesis is published.
"""

from __future__ import annotations

from statistics import mean

from linkwright_evidence import holdout
from linkwright_evidence.numbers import changed, values
from linkwright_evidence.wormhole import movement

FEW, SMALL, LEAST = 16, 4096, 32  # transactions; bytes of the largest and of the smallest
SHORT = (32, 64, 128, 256)  # bytes of accesses that take the least time of a DRAM channel
PARTIAL = (32, 64)
FLITS, SMALL_FLITS = 257, 129  # of a packet of 8 KiB and of 4 KiB
# Cycles of one empty round: 22 hops, in and out of two interfaces, three flits; to itself no hops.
ROUND, OWN_ROUND = 22 * 9 + 20 + 3, 20 + 3


def results(machine) -> dict[str, list[dict]]:
    """Errors of the large cells, and the numbers from the small ones."""
    found = numbers(movement.published())
    there = changed(machine, {key: repr(value) for key, value in found.items()})
    large = [cell for cell in movement.cells(there, lambda *_: None) if not is_small(cell.keys)]
    return holdout.tables(large, found, values(machine))


def is_small(keys: dict) -> bool:
    """Whether a cell has few and small transactions."""
    return keys["transactions"] <= FEW and keys["transaction_bytes"] <= SMALL


def numbers(cycles: dict[movement.Shape, float]) -> dict[str, float]:
    """The fitted numbers of the data movement tables, from small cells alone."""

    def slope(pattern: str, size: int) -> float:
        return (cycles[pattern, FEW, size] - cycles[pattern, 4, size]) / (FEW - 4)

    def packet(pattern: str) -> float:
        return slope(pattern, SMALL) * FLITS / SMALL_FLITS

    def single(pattern: str) -> float:
        return cycles[pattern, 1, LEAST]

    write, read, own = "one_to_one_write", "one_from_one_read", "loopback_write"
    from_dram, to_dram = "dram_interleaved_read", "dram_interleaved_write"
    return {
        "fabric.issue_write": slope(write, LEAST),
        "fabric.issue_read": slope(read, LEAST),
        "fabric.issue_self": slope(own, LEAST),
        "fabric.packet_write": packet(write),
        "fabric.packet_read": packet(read),
        "fabric.packet_self": packet(own) - 1,  # the acknowledgement leaves by the same port
        "fabric.dram_read_extra": single(from_dram) - single(read),
        "fabric.dram_write_extra": single(to_dram) - single(write),
        "fabric.dram_least": mean(slope(from_dram, size) for size in SHORT),
        "fabric.dram_partial_write": mean(slope(to_dram, size) for size in PARTIAL),
        "path.ideal.barrier": mean((single(write) - ROUND, single(read) - ROUND, single(own) - OWN_ROUND)),
    }
