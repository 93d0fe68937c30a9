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
_NUMBERED = re.compile(r"(|.*?[^\d])(\d{1,9})", re.S)  # longer numbers are no part of a run
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
    width = len(match[2]) if _is_padded(match[2]) else 0
    if len(match[3]) != width if width else _is_padded(match[3]):
        raise FileError(f"`{run}` is no run of names; write as many digits on both sides, such as `node 08..11`")
    return [f"{match[1]}{i:0{width}}" for i in range(first, last + 1)]


def runs(found: Sequence[str]) -> list[str]:
    """Names as few runs: `GPU 0..2` of three names that follow each other, `node 08..11` of names with zeros."""
    texts: list[str] = []
    prefix, first, last = "", "", ""  # the run so far, its numbers as written; no number where the name ends in none
    for name in found:
        match = _NUMBERED.fullmatch(name)
        if match and first and match[1] == prefix and _follows(last, match[2]):
            last = match[2]
            texts[-1] = f"{prefix}{first}..{last}"
            continue
        prefix, first = (match[1], match[2]) if match else ("", "")
        last = first
        texts.append(name)
    return texts


def _follows(one: str, other: str) -> bool:
    """Whether a number comes after another in a run; with leading zeros, both have as many digits."""
    padded = _is_padded(one) or _is_padded(other)
    return int(other) == int(one) + 1 and (not padded or len(one) == len(other))


def _is_padded(number: str) -> bool:
    return len(number) > 1 and number.startswith("0")


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
