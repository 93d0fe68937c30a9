"""Edges of a `flow` machine as the pairs of nodes that they join; the spellings are those of docs/fabrics/flow.md.

GPU 0..2 - hub           (GPU 0, hub) (GPU 1, hub) (GPU 2, hub)
GPU 0..1 = GPU 2..3      (GPU 0, GPU 2) (GPU 1, GPU 3)
GPU 0..2 x GPU 0..2      (GPU 0, GPU 1) (GPU 0, GPU 2) (GPU 1, GPU 2)
* / 2 - leaf 0..1        the first two ranks and leaf 0, the next two and leaf 1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from linkwright.errors import FileError

Pair = tuple[str, str]

_RUN = re.compile(r"(.*?)(\d{1,9})\.\.(\d{1,9})", re.S)
_JOINS = (" - ", " = ", " x ")
ALL = "*"  # every rank
MOST = 1 << 20  # names of a run


def names(run: str) -> list[str]:
    """`GPU 0..2` as its three names; any other text as itself."""
    match = _RUN.fullmatch(run)
    if not match:
        return [run]
    first, last = int(match[2]), int(match[3])
    if not first <= last < first + MOST:
        raise FileError(f"`{run}` is no run of names; write one of at most {MOST:,}, such as `GPU 0..7`")
    return [f"{match[1]}{i}" for i in range(first, last + 1)]


def runs(found: Sequence[str]) -> list[str]:
    """Names as few runs: `GPU 0..2` of three names that follow each other."""
    texts: list[str] = []
    before = ("", 0, 0)  # the last run: prefix, first and last number
    for name in found:
        match = re.fullmatch(r"(.*?)(0|[1-9]\d{0,8})", name, re.S)
        prefix, number = (match[1], int(match[2])) if match else ("", -1)
        if texts and match and (before[0], before[2] + 1) == (prefix, number):
            before = (prefix, before[1], number)
            texts[-1] = f"{prefix}{before[1]}..{number}"
        else:
            before = (prefix, number, number) if match else ("", 0, -9)
            texts.append(name)
    return texts


def split(edge: str) -> tuple[str, str, str]:
    """(left side, sign, right side) of an edge; the sign keeps its spaces."""
    for sign in _JOINS:
        left, found, right = edge.partition(sign)
        if found:
            return left.strip(), sign, right.strip()
    raise FileError(f"edge `{edge}`: an edge is two nodes, `A - B`")


def renamed(edge: str, rename: Callable[[str], str]) -> str:
    """The edge with each side, without its ` / 8`, passed through `rename`."""
    left, sign, right = split(edge)
    return sign.join(_blocks(side, rename) for side in (left, right))


def _blocks(side: str, rename: Callable[[str], str]) -> str:
    name, slash, size = side.partition(" / ")
    return f"{rename(name.strip())}{slash}{size}"


def pairs(edge: str, ranks: Sequence[str]) -> list[Pair]:
    """Every pair that an edge joins, each once; `ranks` are the names that `*` stands for."""
    left, sign, right = split(edge)
    (one, size), (other, blocks) = _side(left, ranks), _side(right, ranks)
    if size or blocks:
        many, few, size = (one, other, size) if size else (other, one, blocks)
        return [(name, few[i // size]) for i, name in enumerate(many) if i // size < len(few)]
    if sign == " = ":
        return list(zip(one, other, strict=False))
    seen: set[Pair] = set()
    for a in one:
        seen |= {(a, b) for b in other if a != b and (b, a) not in seen}
    return [(a, b) for a in one for b in other if (a, b) in seen]


def _side(side: str, ranks: Sequence[str]) -> tuple[list[str], int]:
    """The names of one side, and the size of its blocks; 0 without."""
    name, slash, size = side.rpartition(" / ")
    if not (slash and size.strip().isdecimal()):
        name, size = side, "0"
    return list(ranks) if name.strip() == ALL else names(name.strip()), int(size)
