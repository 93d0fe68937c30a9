"""Uneven exchanges: how much every rank has for whom.

    counts    elements that each rank has for each rank (alltoallv)
    routing   tokens of every rank, each for `topk` of `experts` (dispatch, combine)

The size of a question is what the fullest rank has to send: the largest sum of a row, or the tokens of one rank as they
travel. A token of `hidden` elements travels as its data type packs it:

    fp8      hidden + 4 hidden / 128 bytes    a scale of 4 bytes for every 128 (DeepEP)
    nvfp4    hidden / 2 + hidden / 16 bytes   a scale of one byte for every 16
    others   hidden elements
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from linkwright.base.errors import FileError, ShapeError

# Ranks of the largest matrix.
MOST_RANKS = 1024
# Elements in a row: more than any rank holds.
MOST_ELEMENTS = 1 << 40
MOST_HIDDEN = 1 << 24
# How packed data types travel: elements for each scale, bits of an element, bytes of a scale.
PACKED = {"fp8": (128, 8, 4), "nvfp4": (16, 4, 1)}
EVEN_BY_DEFAULT = "alltoallv"  # has as much for every pair where nothing is stated
# Largest exponent of a Zipf distribution.
MOST_SKEW = 2.0


class UnevenExchange(NamedTuple):
    """A matrix of counts, or how tokens choose experts."""

    counts: tuple[tuple[int, ...], ...] = ()
    experts: int = 0
    topk: int = 0
    token_elements: int = 0  # as a token travels
    routing: str = "uniform"
    seed: int = 0

    @property
    def word(self) -> str:
        """The word of a key."""
        if self.counts:
            return f"counts-{hashlib.sha256(repr(self.counts).encode()).hexdigest()[:12]}"
        skew = "" if self.routing == "uniform" else f"-{self.routing}"
        seed = f"-seed{self.seed}" if self.seed else ""
        return f"e{self.experts}-top{self.topk}-{self.token_elements}{skew}{seed}"

    @property
    def shape(self) -> dict[str, Any]:
        """The keywords of `Schedule.build`."""
        if self.counts:
            return {"counts": [count for row in self.counts for count in row]}
        skew = 0.0 if self.routing == "uniform" else skew_of(self.routing)
        return {"routing": (self.experts, self.topk, self.token_elements, round(1000 * skew), self.seed)}

    def whole(self, size_bytes: int, ranks: int, element_bytes: int) -> int:
        """The size of the counts, or `size_bytes` rounded down to whole tokens, at least one."""
        if self.counts:
            if len(self.counts) != ranks:
                raise ShapeError(
                    f"counts of {len(self.counts)} ranks for {ranks}; use as many ranks as the file has rows"
                )
            return max(map(sum, self.counts)) * element_bytes
        from linkwright import _native

        _native.check_routing(ranks, self.shape["routing"])
        token = self.token_elements * element_bytes
        return max(token, size_bytes // token * token)


def skew_of(routing: str) -> float:
    """Return the exponent s of `zipf:s`; 0 for `uniform`."""
    found = re.fullmatch(r"zipf:(\d{1,2}(?:\.\d{1,3})?)", routing, re.ASCII)
    if routing != "uniform" and (not found or float(found[1]) > MOST_SKEW):
        raise ShapeError(
            f"routing `{routing}`: write `uniform` or `zipf:S` with S from 0 to {MOST_SKEW:g}, such as `zipf:1.0`"
        )
    return float(found[1]) if found else 0.0


def token_of(hidden: int, dtype: str) -> tuple[int, str]:
    """Return the elements of a token as it travels, and their data type."""
    if hidden > MOST_HIDDEN:
        raise ShapeError(f"hidden {hidden} is above {MOST_HIDDEN:,}, far more than models have; give a smaller one")
    if dtype not in PACKED:
        return hidden, dtype
    pack, bits, scale = PACKED[dtype]
    if hidden % pack:
        near = max(pack, hidden // pack * pack)
        raise ShapeError(f"hidden {hidden} is not a multiple of {pack}, which {dtype} packs with one scale; use {near}")
    return hidden * bits // 8 + hidden // pack * scale, "u8"


def exchange_of(stated: Mapping[str, Any]) -> UnevenExchange | None:
    """Return the exchange of a part of a suite, whose counts are in a file; None if it states none."""
    if not stated:
        return None
    if "counts" in stated:
        if len(stated) > 1:
            raise ShapeError("exchange: counts state everything; omit the other keys")
        return UnevenExchange(read_counts(Path(stated["counts"])))
    for key in ("experts", "topk", "token_elements"):
        if key not in stated:
            raise ShapeError(f"exchange: lacks `{key}`; state it, or `counts`")
    return UnevenExchange(**stated)


def read_counts(path: Path, square: bool = True) -> tuple[tuple[int, ...], ...]:
    """Read a matrix of counts from a CSV file, a row for each rank that sends."""
    from linkwright.base.files import read_text

    return parse_counts(read_text(path, "a matrix of counts"), path.name, square)


def parse_counts(text: str, file: str, square: bool = True) -> tuple[tuple[int, ...], ...]:
    """Read the matrix of `text`: whole numbers with commas between them, if `square` as many lines as columns."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not 0 < len(lines) <= MOST_RANKS:
        raise FileError(
            f"{file}: has {len(lines)} rows of counts; give 1 to {MOST_RANKS}, one for each rank that sends"
        )
    rows: list[tuple[int, ...]] = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(",")]
        if square and len(cells) != len(lines):
            raise FileError(
                f"{file}: row {number} has {len(cells)} counts, and there are {len(lines)} rows; give a count for "
                "each pair of ranks"
            )
        if rows and len(cells) != len(rows[0]):
            raise FileError(
                f"{file}: row {number} has {len(cells)} counts, and row 1 has {len(rows[0])}; give a count for each "
                "expert"
            )
        rows.append(tuple(_count(cell, file, number, column) for column, cell in enumerate(cells, 1)))
        if sum(rows[-1]) > MOST_ELEMENTS:
            raise FileError(f"{file}: row {number} adds up to more than {MOST_ELEMENTS} elements; give fewer")
    if not any(map(any, rows)):
        raise FileError(f"{file}: all counts are 0; state what at least one rank sends")
    return tuple(rows)


def _count(cell: str, file: str, row: int, column: int) -> int:
    if not re.fullmatch(r"\d{1,13}", cell, re.ASCII):
        shown = cell[:40] or "nothing"
        raise FileError(
            f"{file}: row {row}, column {column}: `{shown}` is not a count; write a whole number, 0 or more"
        )
    return int(cell)


def refuse_unstated(collective: str, exchange: UnevenExchange | None) -> None:
    """Refuse a dispatch or a combine whose tokens and experts are not stated; only an alltoallv has even counts.

    Raises:
        ShapeError: the counts are not stated.
    """
    if collective in uneven() - {EVEN_BY_DEFAULT} and not exchange:
        raise ShapeError(
            f"{collective}: lacks tokens and experts; state them with `linkwright simulate {collective} --tokens N "
            f"--experts N --topk N --hidden N`, in a suite with `exchange`, or use {EVEN_BY_DEFAULT} for even counts"
        )


@functools.cache
def uneven() -> frozenset[str]:
    """Return the collectives that an exchange describes."""
    from linkwright import _native

    return frozenset(row["key"] for row in _native.collectives() if row["uneven"])
