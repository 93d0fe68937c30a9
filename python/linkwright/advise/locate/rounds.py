"""Tests: pairs of ranks that exchange data at the same time, each with its own rate.

    tournament   each host meets each other one once, n - 1 rounds (n if it is odd, and one host rests in each)
    XOR          host i meets host i ^ m: for powers of two the same, and near hosts meet first
    inside       ranks of one host meet, in all hosts at once
    next         where no switch joins ranks, as in a torus: those that a link joins meet, so that each message has its
                 links to itself. Messages over several links would share them, and slow or speed each other up

What a tool reports one number for is a *cell*; the number is that of its slowest message:

    each    a pair sends both ways at once, and each direction has a number of its own
    pair    a pair sends both ways at once, and has one number: nccl-tests sendrecv
    one     a pair sends one way, and the other way in a test of its own: MPI, whose libraries may not send both ways at
            once at full rate
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .parts import HostLayout, Pair

Cell = tuple[Pair, ...]
Ways = Literal["each", "pair", "one"]
MOST_ROUNDS = 24  # of each kind; more of them tell little more
MOST_PAIRS = 60_000  # routes of all tests


@dataclass(frozen=True)
class Test:
    """Cells that are measured at the same time.

    Attributes:
        name: for people, `round 3`.
        cells: the messages behind each number, (source, target) ranks.
    """

    name: str
    cells: tuple[Cell, ...]

    @property
    def flows(self) -> list[Pair]:
        """All messages."""
        return [flow for cell in self.cells for flow in cell]


def library(layout: HostLayout, ways: Ways) -> list[Test]:
    """The tests that a search chooses from.

    Args:
        layout: of the machine.
        ways: what has a number.
    """
    hosts, each = len(layout.hosts), layout.each
    most = max(4, min(MOST_ROUNDS, MOST_PAIRS // (2 * layout.machine.ranks)))
    found = []
    rounds = dict.fromkeys(
        itertools.chain(_spread(list(xor_rounds(hosts)), most), _spread(list(tournament(hosts)), most))
    )
    for number, pairs in enumerate(rounds):
        shift = number % 2 if each > 1 and number >= len(rounds) // 2 else 0
        its = [(layout.ranks_of[a][i], layout.ranks_of[b][(i + shift) % each]) for a, b in pairs for i in range(each)]
        found.append((f"round {number + 1}", its))
    if each > 1:
        inner = dict.fromkeys(itertools.chain(xor_rounds(each), tournament(each)))
        for number, pairs in enumerate(_spread(list(inner), 8 if hosts > 1 else most)):
            its = [(ranks[a], ranks[b]) for ranks in layout.ranks_of for a, b in pairs]
            found.append((f"inside {number + 1}", its))
    near = _neighbours(layout)
    if 0 < len(near) <= MOST_ROUNDS:
        found = [(f"next {number + 1}", pairs) for number, pairs in enumerate(near)]
    made = []
    for name, pairs in found:
        if ways == "pair":
            made.append(Test(name, tuple(((a, b), (b, a)) for a, b in pairs)))
        elif ways == "each":
            made.append(Test(name, tuple((flow,) for a, b in pairs for flow in ((a, b), (b, a)))))
        else:
            made.append(Test(name, tuple(((a, b),) for a, b in pairs)))
            made.append(Test(f"{name} back", tuple(((b, a),) for a, b in pairs)))
    return [test for test in made if test.cells]


def tournament(count: int) -> Iterator[tuple[Pair, ...]]:
    """Rounds in which everybody meets everybody once; with an odd count one rests in each round."""
    seats = count + count % 2
    for turn in range(seats - 1):
        ring = [seats - 1, *((turn + at) % (seats - 1) for at in range(seats - 1))]
        pairs = ((ring[at], ring[seats - 1 - at]) for at in range(seats // 2))
        yield tuple(sorted((min(pair), max(pair)) for pair in pairs if max(pair) < count))


def xor_rounds(count: int) -> Iterator[tuple[Pair, ...]]:
    """Rounds in which `i` meets `i ^ mask`; those in which more than half rest are left out."""
    for mask in range(1, 1 << max(0, (count - 1).bit_length())):
        pairs = tuple((at, at ^ mask) for at in range(count) if at < at ^ mask < count)
        if 2 * len(pairs) >= count - 1:
            yield pairs


def _neighbours(layout: HostLayout) -> list[list[Pair]]:
    """Pairs of ranks that one link joins, each in the first round in which both its ends rest; none if one has not."""
    found: list[dict[int, int]] = []
    for a, b in sorted(dict.fromkeys(layout.edges)):
        if max(a, b) >= layout.machine.ranks:
            return []
        one = next((one for one in found if a not in one and b not in one), None)
        if one is None:
            found.append(one := {})
        one |= {a: b, b: a}
    return [sorted((a, b) for a, b in one.items() if a < b) for one in found]


def _spread(rounds: Sequence[tuple[Pair, ...]], most: int) -> list[tuple[Pair, ...]]:
    """At most so many, those of powers of two and the others evenly."""
    if len(rounds) <= most:
        return list(rounds)
    chosen = {(1 << bit) - 1 for bit in range(len(rounds).bit_length()) if (1 << bit) - 1 < len(rounds)}
    free = max(0, most - len(chosen))
    chosen |= {round(at * (len(rounds) - 1) / max(1, free - 1)) for at in range(free)}
    return [rounds[at] for at in sorted(chosen)[:most]]
