"""Types of option values: how sizes, times, shares, grids and counts are written.

SIZE        64K             bytes
DURATION    90s, 2m         seconds
SHARE       5%, 0.05        of a whole
GRID        8x8, 4x4x4      sides
RANK_COUNTS 4, 2,4,8, 1..8  numbers of ranks
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Generic, TypeVar

import click

from linkwright.ask.question import MAX_RANKS
from linkwright.base import units
from linkwright.base.errors import UsageError

T = TypeVar("T")
_MOST_COUNTS = 1024  # each is a run of every algorithm at every size


class OptionType(click.ParamType, Generic[T]):
    """A type whose values are read from text; a value of a program passes as it is.

    Args:
        name: of the type, which help shows.
        parse: reads a text; raises `UsageError` if the text is not one.
    """

    def __init__(self, name: str, parse: Callable[[str], T]):
        self.name, self._parse = name, parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The value of a text; a wrong text is an error of the option."""
        try:
            return self._parse(value) if isinstance(value, str) else value  # type: ignore[return-value]
        except UsageError as error:
            self.fail(str(error), param, ctx)


def pattern(name: str, form: str, wrong: str, read: Callable[[re.Match[str]], T]) -> OptionType[T]:
    """Return an option type for texts that match the regular expression `form`; errors say that others are `wrong`."""

    def parse(text: str) -> T:
        if match := re.fullmatch(form, text, re.ASCII):
            return read(match)
        raise UsageError(f"`{text}` {wrong}")

    return OptionType(name, parse)


def _share(text: str, proper: bool = False) -> float:
    """0.05 from `5%` or `0.05`; a bare `5` could mean 5 % or 500 %. A `proper` one is above 0 and below all of it."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(%?)", text.strip(), re.ASCII)
    if not match:
        raise UsageError(f"`{text}` is not a share; write `5%` or `0.05`")
    number, percent = float(match[1]), bool(match[2])
    if number >= 1 and not percent:
        whole = f"{100 * number:g}"
        if proper:
            cure = f"`{number:g}%`, with its sign" if 1 < number < 100 else "one such as `95%`"
            raise UsageError(f"`{text}` is not a share above 0 and below 100 %; write {cure}")
        raise UsageError(f"`{text}` could be {number:g} % or {whole} %; write `{number:g}%` or `{whole}%`")
    share = number / 100 if percent else number
    if proper and not 0 < share < 1:
        raise UsageError(f"`{text}` is not above 0 and below 100 %; write one such as `5%`")
    return share


def _rank_counts(text: str) -> tuple[int, ...]:
    """(4,) from `4`, (2, 4, 8) from `2,4,8`, (1, 2, 3, 4) from `1..4`."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,30})(?:\.\.(\d{1,30}))?", part.strip(), re.ASCII)
        if not match:
            raise UsageError(f"`{text}` is not a number of ranks; write `8`, `2,4,8` or `1..8`")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(f"`{part.strip()}` ends before it begins; write `{last}..{first}`")
        for count in (first, last):
            RANKS.convert(count, None, None)
        if last - first >= _MOST_COUNTS:
            raise UsageError(f"`{part.strip()}` is {last - first + 1} numbers of ranks; ask for at most {_MOST_COUNTS}")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


RANKS = click.IntRange(1, MAX_RANKS)
ROOT = click.IntRange(0, MAX_RANKS - 1)
SEED = click.IntRange(0, (1 << 64) - 1)
SIZE = OptionType("SIZE", units.parse_size)
DURATION = OptionType("TIME", units.parse_duration_s)
MODELLED_DURATION = OptionType("TIME", functools.partial(units.parse_duration_s, with_unit=True))
SHARE = OptionType("SHARE", _share)
PROPER_SHARE = OptionType("SHARE", functools.partial(_share, proper=True))
RANK_COUNTS = OptionType("N", _rank_counts)
GRID = pattern(
    "CxR", r"[1-9]\d{0,5}(?:x[1-9]\d{0,5})+", "is not a grid; write columns x rows, such as `8x8` or `4x4x4`",
    lambda match: tuple(int(side) for side in match[0].split("x")),
)  # fmt: skip
WATTS = pattern(
    "W", r"(?=.*[1-9])\d{1,9}(?:\.\d{1,9})?", "is not a power in watts; write a number above 0, such as `270`",
    lambda match: float(match[0]),
)  # fmt: skip
