"""The numbers of `network_rates.toml`: what links carry by the words that descriptions use, and what nobody states."""

from __future__ import annotations

import functools
import tomllib
from decimal import Decimal
from pathlib import Path

from linkwright.base.errors import FileError
from linkwright.formats.discovery.wiring import Number

WIDTHS = (1, 2, 4, 8, 12)  # lanes of an InfiniBand link


@functools.cache
def _tables() -> dict[str, dict]:
    text = (Path(__file__).parent / "network_rates.toml").read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Decimal)


def number(*path: str) -> Number:
    """The number at a path such as `network`, `port`."""
    found = functools.reduce(lambda table, word: table[word], path, _tables())
    return Number(Decimal(found["value"]), found["unit"], found["status"], found["source"])


def infiniband(width: int, speed: str, where: str) -> Number:
    """The rate of a link such as 4xNDR, each direction."""
    known = _tables()["infiniband"]
    if speed not in known:
        raise FileError(f"{where}: unknown speed `{width}x{speed}`; known: {', '.join(f'4x{word}' for word in known)}")
    if width not in WIDTHS:
        raise FileError(f"{where}: `{width}x{speed}`: a link has {', '.join(map(str, WIDTHS))} lanes; correct it")
    lane = number("infiniband", speed, "lane")
    return Number(lane.value * width, lane.unit, lane.status, f"{width}x{speed}; {lane.source}")
