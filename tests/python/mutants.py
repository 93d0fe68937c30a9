"""Mutants of good files, command lines and folders: what a stranger, a full disk or a typing error makes of them.

    tree      a value of a TOML or JSON document, changed in its structure: another kind of value, a key gone, doubled,
              renamed or put elsewhere
    text      a file as text: cut, a line gone, doubled or swapped, a number made huge
    words     a command line

Everything is drawn from the `random.Random` that is given, so a seed names a mutant.
"""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Iterator
from typing import Any

WHOLE = (0, 1, 2, 3, 7, -1, 255, 4096, 999_999, 2**31, 2**32 - 1, 2**32, 2**61, 2**63 - 1, 2**63, 2**64, 10**23)
FLOATS = (0.5, -1.5, 16.5, 1e-300, 1e18, 1e300, 1.7e308, math.inf, -math.inf, math.nan)
TEXTS = (
    "", " ", "x", "8", "4K", "16.5", "1024T", "2048T", "1e300", "\x1b[31mred", "../../x", "/etc/passwd", "a\nb", "é",
    "nan", "-1", "all", "own", "default", "ring", "ring,ring", "x" * 5000, "5s", "0s", "18446745s", "late:0:18446745s",
    "uniform:1e9s", "list:0us,1us", "window(0)", "window(99999999999)", "batch(-1)", "blocking", "9" * 400, "\u202e",
    "2 * last_cache", "99999999999 * last_cache", "last_cache / 0", "x.py:y", "no.lw", "f64", "alltoall", "ping_pong",
)  # fmt: skip
LISTS: tuple[Any, ...] = ([], [[]], [0], ["2"], ["7"], [1, "x"], [4294967296, 8], [0, 1, "4K"], [None], {}, {"min": 1})


def strange(rng: random.Random) -> Any:
    """A value that hardly any key expects."""
    pool = rng.choice((WHOLE, FLOATS, TEXTS, LISTS, (True, False)))
    return copy.deepcopy(rng.choice(pool))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key or index of it."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)


def tree(rng: random.Random, good: Any, changes: int | None = None) -> Any:
    """The document with a few changes."""
    made = copy.deepcopy(good)
    for _ in range(changes or rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(made))
        if not places:
            break
        inside, key = rng.choice(places)
        _change(rng, inside, key, places)
    return made


def _change(rng: random.Random, inside: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    """One change at `inside[key]`."""
    how = rng.randrange(8)
    if how < 4:
        inside[key] = strange(rng)
    elif how == 4:
        del inside[key]
    elif how == 5:  # the value of another place
        other, there = rng.choice(places)
        inside[key] = copy.deepcopy(other[there])
    elif how == 6:
        inside[key] = [inside[key]] * rng.choice((1, 2, 3))
    elif isinstance(inside, dict):  # a key of another table, or one misspelt
        name = rng.choice([str(k) for _, k in places if isinstance(k, str)] or ["x"])
        inside[name if rng.random() < 0.7 else name + rng.choice("xs_")] = inside[key]
    else:
        inside.append(copy.deepcopy(inside[key]))


def text(rng: random.Random, good: str) -> str:
    """The text of a file with a few changes."""
    made = good
    for _ in range(rng.choice((1, 1, 2, 4))):
        made = rng.choice((_cut, _without_line, _doubled_line, _swapped, _number, _character))(rng, made)
    return made


def _cut(rng: random.Random, good: str) -> str:
    return good[: rng.randrange(len(good) + 1)]


def _without_line(rng: random.Random, good: str) -> str:
    lines = good.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return "".join(lines)


def _doubled_line(rng: random.Random, good: str) -> str:
    lines = good.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines.insert(at, lines[at])
    return "".join(lines)


def _swapped(rng: random.Random, good: str) -> str:
    lines = good.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = rng.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def _number(rng: random.Random, good: str) -> str:
    found = list(re.finditer(r"\d+(\.\d+)?", good))
    if not found:
        return good
    at = rng.choice(found)
    return good[: at.start()] + str(rng.choice((*WHOLE, *FLOATS))) + good[at.end() :]


def _character(rng: random.Random, good: str) -> str:
    at = rng.randrange(len(good) + 1)
    return good[:at] + rng.choice('\0\x1b\t"[]{=\n#9-.é\u2028') + good[at:]


def words(rng: random.Random, good: list[str]) -> list[str]:
    """A command line with a few changes."""
    made = list(good)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1, len(made)) if len(made) > 1 else 0
        how = rng.randrange(6)
        if how < 4:
            made[at] = str(strange(rng)).replace("\0", "")
        elif how == 4 and len(made) > 2:
            del made[at]
        else:
            made.insert(at, made[rng.randrange(1, len(made))] if len(made) > 1 else "x")
    return made


def damaged(rng: random.Random, good: bytes) -> bytes:
    """The bytes of a file that rotted: cut, emptied, a byte flipped, a stretch overwritten."""
    if not good:
        return b"\0"
    at = rng.randrange(len(good))
    return rng.choice(
        (
            good[:at],
            b"",
            good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :],
            good[:at] + b"\xff" * min(64, len(good) - at) + good[at + 64 :],
            good + good[:at],
        )
    )


def toml(document: dict[str, Any]) -> str:
    """A document as TOML, whatever it holds."""
    return "".join(f"{_bare(key)} = {_inline(value)}\n" for key, value in document.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_bare(key)} = {_inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # TOML's `inf` and `nan` are Python's
    return '"none"' if value is None else json.dumps(value).replace("\x7f", "\\u007f")


def _bare(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key)
