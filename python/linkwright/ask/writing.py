"""Writing a schedule from Python: `Builder`."""

from __future__ import annotations

from typing import Any, Self, cast

from linkwright import _native
from linkwright.ask.question import DTYPES, check_whole
from linkwright.base.errors import UsageError, check_known
from linkwright.base.units import format_size, parse_size


class Builder(_native.Builder):
    """Write your own schedule: at this step, who sends which chunks to whom.

    Declare buffers with `buffer` (and memories with `memory`). Then begin each `step` and say what moves in it: `put`,
    `put_blocks`, `multicast` or `aggregate` between ranks, `local` within one; `compute` takes time. `finish` orders
    the hazards between steps and returns the schedule. `help(linkwright.Builder.put)` explains a method with its
    parameters.

    Args:
        collective: the collective that the schedule must carry out, or `pattern` for mere traffic.
        ranks: the number of ranks, at least 1.
        size: the message size S, as bytes or as text such as `64K`; a whole number of elements.
        dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`; only its size matters.
        root: the rank that a rooted collective starts or ends at.
        grid: its sides, (columns, rows, ...), if the ranks form a grid.
        out_of_place: whether `input` holds the data and `output` gets the result, for collectives that usually have
            one buffer `output`.
    Raises:
        UnknownNameError: there is no such collective or data type.
        ShapeError: the shape makes no sense.
        UsageError: `size` is not a size, or not a whole number of elements.
    Example:
        >>> import linkwright as lw
        >>> builder = lw.Builder("broadcast", ranks=3, size="4K")
        >>> builder.buffer("output")
        >>> builder.step()
        >>> builder.put(0, 1, "output", 0)
        >>> builder.step()
        >>> builder.put(1, 2, "output", 0)
        >>> builder.finish()
        <Schedule broadcast over 3 ranks: 2 operations, 2 messages>
    """

    _what: str

    def __new__(
        cls,
        collective: str,
        ranks: int,
        size: int | str,
        *,
        dtype: str = "f32",
        root: int = 0,
        grid: tuple[int, ...] | None = None,
        out_of_place: bool = False,
    ) -> Self:
        """Begin a schedule; `size` is converted to elements of `dtype`."""
        size_bytes, element_bytes = size_in_bytes(size, dtype), DTYPES[dtype]
        made: Any = super().__new__(
            cls, collective, ranks, size_bytes // element_bytes, element_bytes=element_bytes, root=root, grid=grid,
            out_of_place=out_of_place,
        )  # fmt: skip
        made._what = f"{collective} over {ranks} ranks, {format_size(size_bytes)}"
        return cast("Self", made)

    def __repr__(self) -> str:
        return f"<Builder {self._what}>"


def size_in_bytes(size: int | str, dtype: str) -> int:
    """A size given as bytes or as text, checked against the data type."""
    check_known("data type", dtype, DTYPES)
    size_bytes = size if isinstance(size, int) else parse_size(size)
    if size_bytes < 0:
        raise UsageError(f"size {size}: below 0; give the bytes of one vector")
    check_whole(size_bytes, dtype)
    return size_bytes
