"""What Open MPI chooses by itself: the decision of its module `tuned`, by ranks and bytes.

    256: recursive_doubling<512 neighbor<131072 ring         below 256 ranks: recursive doubling below 512 bytes, ...

Bytes are those of a block for an allgather, alltoall, gather or scatter, and of the vector for the others. Operators
commute.

Source: Open MPI 4.1 and 5.0, `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`.
"""

from __future__ import annotations

import functools
import math

BY_BLOCK = ("allgather", "alltoall", "gather", "scatter")
# The last line of each holds for any number of ranks.
TABLES = {
    "allgather": """
        32: recursive_doubling
        64: recursive_doubling<1024 neighbor<65536 ring
        128: recursive_doubling<512 neighbor<65536 ring
        256: recursive_doubling<512 neighbor<131072 ring<524288 neighbor<1048576 ring
        512: recursive_doubling<32 k_bruck<128 recursive_doubling<1024 neighbor<131072 ring<524288
            neighbor<1048576 ring
        1024: recursive_doubling<64 k_bruck<256 recursive_doubling<2048 neighbor
        2048: recursive_doubling<4 k_bruck<8 recursive_doubling<16 k_bruck<32 recursive_doubling<256
            k_bruck<512 recursive_doubling<4096 neighbor
        4096: k_bruck<32 recursive_doubling<128 k_bruck<512 recursive_doubling<4096 neighbor
        ...: recursive_doubling<2 k_bruck<8 recursive_doubling<16 k_bruck<512
            recursive_doubling<4096 neighbor
    """,
    "allreduce": """
        4: ring<8 recursive_doubling<4096 ring<8192 recursive_doubling<16384 ring<65536
            ring_segmented<262144 rabenseifner
        8: ring<16 recursive_doubling<8192 rabenseifner
        16: recursive_doubling<8192 rabenseifner
        32: ring_segmented<64 recursive_doubling<4096 rabenseifner
        64: ring_segmented<128 rabenseifner
        128: recursive_doubling<262144 rabenseifner
        256: nonoverlapping<131072 recursive_doubling<262144 rabenseifner
        512: nonoverlapping<4096 rabenseifner
        2048: nonoverlapping<2048 recursive_doubling<16384 rabenseifner
        4096: nonoverlapping<2048 ring_segmented<4096 recursive_doubling<16384 rabenseifner
        ...: nonoverlapping<2048 ring_segmented<16384 recursive_doubling<32768 rabenseifner
    """,
    "alltoall": """
        8: linear_sync<8192 linear<16384 linear_sync<65536 linear<524288 pairwise<1048576 linear
        16: linear_sync<262144 linear
        32: linear_sync<4 modified_bruck<512 linear_sync<8192 linear<32768 linear_sync<262144
            linear<524288 linear_sync
        64: modified_bruck<512 linear<524288 linear_sync
        128: modified_bruck<1024 linear<2048 linear_sync<4096 linear<262144 pairwise
        256: modified_bruck<1024 linear_sync<2048 linear<262144 pairwise
        512: modified_bruck<1024 linear_sync<8192 linear<32768 pairwise
        1024: modified_bruck<512 linear_sync<8192 linear<16384 linear_sync<131072 linear<262144
            pairwise
        2048: modified_bruck<512 linear_sync<1024 linear<2048 linear_sync<16384 linear<262144
            linear_sync
        4096: modified_bruck<1024 linear_sync<4096 linear<8192 linear_sync<131072 linear
        ...: modified_bruck<2048 linear_sync<8192 linear<16384 linear_sync<32768 linear<65536
            linear_sync
    """,
    "broadcast": """
        4: pipeline<32 binary<256 pipeline<512 knomial<1024 linear<32768 binary<131072 chain<262144
            linear<524288 binomial<1048576 binary
        8: binary<64 binomial<128 binary<2048 binomial<8192 linear<1048576 chain
        16: knomial<8 binary<64 knomial<4096 binary<16384 binomial<32768 linear
        32: knomial<4096 binomial<1048576 scatter_allgather
        64: binomial<2048 knomial
        128: knomial
        256: binomial<2 binary<16384 linear<32768 binary<65536 knomial
        1024: knomial<16384 split_binary<32768 knomial
        2048: knomial<524288 scatter_allgather
        4096: knomial<262144 scatter_allgather
        ...: knomial<8192 binary<16384 knomial<262144 scatter_allgather
    """,
    "gather": """
        4: linear_synch<2 linear<4 binomial<32768 linear<65536 binomial<131072 linear_synch
        8: binomial<1024 linear<8192 binomial<32768 linear<262144 linear_synch
        256: binomial
        512: binomial<2048 linear<8192 binomial
        ...: binomial
    """,
    "reduce": """
        4: rabenseifner<8 binary<16 pipeline<32 linear<262144 pipeline<524288 chain<1048576 pipeline
        8: binary<4096 chain<65536 binomial<262144 linear<524288 binomial<1048576 linear
        16: binary<8192 binomial
        32: binary<4096 binomial
        256: binomial
        512: binomial<8192 in_order<16384 binomial
        2048: binomial
        4096: binomial<512 in_order<1024 binomial<8192 in_order<16384 binomial
        ...: binomial<16 in_order<32 binomial<1024 in_order<2048 binomial<8192 in_order<16384
            binomial
    """,
    "reduce_scatter": """
        4: ring<65536 butterfly<131072 ring
        8: nonoverlapping<8 recursive_halving<262144 ring
        32: recursive_halving<262144 ring
        64: nonoverlapping<64 recursive_halving<2048 butterfly<524288 ring
        128: nonoverlapping<256 recursive_halving<512 butterfly<2048 recursive_halving<4096
            butterfly
        256: nonoverlapping<256 recursive_halving<512 butterfly
        512: nonoverlapping<256 recursive_halving<1024 butterfly
        1024: nonoverlapping<512 recursive_halving<2048 butterfly<8192 recursive_halving<16384
            butterfly
        2048: nonoverlapping<512 recursive_halving<4096 butterfly<16384 recursive_halving<32768
            butterfly
        4096: nonoverlapping<512 recursive_halving<4096 butterfly
        ...: nonoverlapping<1024 recursive_halving<8192 butterfly
    """,
    "scatter": """
        4: linear_nb<2 linear<131072 linear_nb<262144 linear
        8: binomial<2048 linear<4096 binomial<8192 linear<32768 linear_nb<1048576 linear
        16: binomial<16384 linear_nb<1048576 linear
        32: binomial<16384 linear<32768 linear_nb
        64: binomial<512 linear_nb<8192 binomial<16384 linear_nb
        ...: binomial<512 linear_nb
    """,
}


@functools.cache
def _lines(collective: str) -> list[tuple[float, list[str]]]:
    """(ranks that it is below, its words) of each line."""
    found: list[tuple[float, list[str]]] = []
    for word in TABLES[collective].split():
        if word.endswith(":"):
            found.append((math.inf if word == "...:" else int(word[:-1]), []))
        else:
            found[-1][1].append(word)
    return found


def choice(collective: str, ranks: int, size_bytes: int) -> str:
    """The algorithm for that many ranks, in the words of its tags; `size_bytes` as in a condition."""
    words = next(words for below, words in _lines(collective) if ranks < below)
    size = size_bytes // ranks if collective in BY_BLOCK else size_bytes
    for word in words[:-1]:
        name, _, below = word.partition("<")
        if size < int(below):
            return _possible(collective, name, ranks)
    return _possible(collective, words[-1], ranks)


def _possible(collective: str, name: str, ranks: int) -> str:
    """What Open MPI takes instead where an algorithm of allgather needs another number of ranks."""
    if collective == "allgather" and name == "recursive_doubling" and not math.log2(ranks).is_integer():
        return "k_bruck"
    if collective == "allgather" and name == "neighbor" and ranks % 2:
        return "ring"
    return name
