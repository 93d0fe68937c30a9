"""Slurm's lists of names: `node[01-03,7]` is node01, node02, node03 and node7; `a[0-1]b[0-1]` is four names."""

from __future__ import annotations

import itertools
import re

from linkwright.base.errors import FileError
from linkwright.formats.discovery.wiring import MOST_ENDPOINTS, bounded

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")


def expand(text: str, where: str) -> list[str]:
    """The names of a list, in its order."""
    names: list[str] = []
    for part in _parts(text, where):
        pieces = [_numbers(m[1], where) if m[2] is None else [m[2]] for m in _PIECE.finditer(part)]
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * len(piece)
            bounded(count, MOST_ENDPOINTS, where, "names in one list")
        names += ["".join(chosen) for chosen in itertools.product(*pieces)]
        bounded(len(names), MOST_ENDPOINTS, where, "names in one list")
    return names


def _parts(text: str, where: str) -> list[str]:
    """The list cut at its commas, those in brackets excepted."""
    depth, parts = 0, [""]
    for c in text:
        depth += (c == "[") - (c == "]")
        if depth not in (0, 1):
            break
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    if depth or not all(parts) or not text.isprintable() or " " in text:
        raise FileError(f"{where}: `{text[:80]}` is not a list of names; write `node[1-16]` or `a,b`")
    return parts


def _numbers(text: str, where: str) -> list[str]:
    """`01-03,7` as `01`, `02`, `03`, `7`."""
    numbers: list[str] = []
    for one in text.split(","):
        found = _RANGE.fullmatch(one.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not found or last < first:
            raise FileError(f"{where}: `[{text[:80]}]` is not a range of numbers; write `[1-16]` or `[01-16,18]`")
        bounded(len(numbers) + last - first + 1, MOST_ENDPOINTS, where, "names in one list")
        numbers += [f"{number:0{len(found[1])}d}" for number in range(first, last + 1)]
    return numbers
