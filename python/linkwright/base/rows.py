"""Result rows as columns: what the pages select from, group and order.

A column is a NumPy array: numbers as floats, NaN where there is none, and everything else as objects, None or an empty
text where there is nothing. Masks are NumPy's: ``rows[(rows["metric"] == "time") & given(rows["value"])]``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from linkwright.base.lazy import np

if TYPE_CHECKING:
    import numpy.typing as npt

Column: TypeAlias = "npt.NDArray[Any]"
Row = dict[str, Any]


class Rows:
    """Columns of equal length."""

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]]) -> Rows:
        """The columns of rows, in the order in which they are first named."""
        names = dict.fromkeys(name for record in records for name in record)
        return cls({name: array([record.get(name) for record in records]) for name in names}, len(records))

    def __init__(self, columns: Mapping[str, Column], length: int | None = None) -> None:
        self._columns = dict(columns)
        self._length = len(next(iter(self._columns.values()))) if length is None else length

    def __len__(self) -> int:
        return self._length

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._columns)

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def __iter__(self) -> Iterator[Row]:
        return (self[at] for at in range(len(self)))

    @overload
    def __getitem__(self, key: str) -> Column: ...
    @overload
    def __getitem__(self, key: int | np.integer) -> Row: ...
    @overload
    def __getitem__(self, key: slice | Column) -> Rows: ...
    def __getitem__(self, key: str | int | np.integer | slice | Column) -> Column | Row | Rows:
        """The column of this name, the row at this place, or the rows of a mask, of places or of a slice."""
        if isinstance(key, str):
            return self._columns[key]
        if isinstance(key, (int, np.integer)):
            return {name: column[key] for name, column in self._columns.items()}
        return Rows({name: column[key] for name, column in self._columns.items()})

    def records(self) -> list[Row]:
        """The rows with Python's own values, None where there is none."""
        columns = [[None if value != value else value for value in self[name].tolist()] for name in self.names]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def assign(self, **columns: Column | Collection[Any]) -> Rows:
        """These rows with further columns, or with others instead of theirs."""
        return Rows(self._columns | {name: array(column) for name, column in columns.items()}, len(self))

    def only(self, names: Collection[str]) -> Rows:
        """These columns alone."""
        return Rows({name: self._columns[name] for name in names}, len(self))

    def renamed(self, names: Mapping[str, str]) -> Rows:
        """These rows with other names of columns."""
        return Rows({names.get(name, name): column for name, column in self._columns.items()}, len(self))

    def by(self, *names: str, sort: bool = False) -> Iterator[tuple[tuple[Any, ...], Rows]]:
        """(values of these columns, their rows) for each combination, as they first appear, or sorted, nothing last."""
        if not len(self):
            return
        codes = _codes([self[name] for name in names], len(self), sort)
        order = np.argsort(codes, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            yield tuple(plain(self[name][places[0]]) for name in names), self[places]

    def ordered(self, *names: str) -> Rows:
        """The rows by these columns, nothing last; `-name` begins with the greatest. Equal rows keep their order."""
        return self[np.lexsort([_rank(self, name) for name in reversed(names)])]

    def distinct(self, *names: str, keep: Literal["first", "last"] = "first") -> Rows:
        """One row for each combination of values of these columns, in the order of the rows."""
        codes = _codes([self[name] for name in names], len(self), sort=False)
        codes = codes if keep == "first" else codes[::-1]
        places = np.unique(codes, return_index=True)[1]
        return self[np.sort(places if keep == "first" else len(self) - 1 - places)]

    def greatest(self, name: str) -> Row:
        """The first row with the greatest value of a column."""
        return self[int(np.nanargmax(self[name]))]

    def least(self, name: str) -> Row:
        """The first row with the least value of a column."""
        return self[int(np.nanargmin(self[name]))]


def array(column: Column | Collection[Any]) -> Column:
    """A column of Python's values: of whole numbers, of floats with NaN where there is none, or else of objects."""
    if isinstance(column, np.ndarray):
        return column
    kinds = set(map(type, column))
    if kinds == {int} or kinds == {float}:
        return np.array(list(column))
    if kinds <= {int, float, type(None)} and kinds & {int, float}:
        return np.array([np.nan if value is None else value for value in column], dtype=float)
    made = np.empty(len(column), dtype=object)
    made[:] = list(column)
    return made


def given(column: Column) -> npt.NDArray[np.bool_]:
    """Where a column has a value: neither NaN nor None."""
    if column.dtype == object:
        return np.array([value is not None and value == value for value in column], dtype=bool)
    return column == column


def among(column: Column, wanted: Collection[Any]) -> npt.NDArray[np.bool_]:
    """Where a column has one of these values."""
    return np.fromiter((value in wanted for value in column.tolist()), dtype=bool, count=len(column))


def unique(column: Column) -> list[Any]:
    """The different values of a column, as they first appear; no NaN and no None."""
    return list(dict.fromkeys(column[given(column)].tolist()))


def nunique(column: Column) -> int:
    """How many different values a column has; no NaN and no None."""
    return len(unique(column))


def smallest(column: Column) -> float:
    """The least number of a column; NaN if it has none."""
    there = column[given(column)]
    return float(there.min()) if len(there) else np.nan


def largest(column: Column) -> float:
    """The greatest number of a column; NaN if it has none."""
    there = column[given(column)]
    return float(there.max()) if len(there) else np.nan


def mapped(column: Column, function: Callable[[Any], Any]) -> Column:
    """Apply a function to each value of a column; it is called once for each different value."""
    once = functools.cache(function)
    return array([once(value) for value in column.tolist()])


def plain(value: Any) -> Any:
    """A value of a column as Python's own type."""
    return value.item() if isinstance(value, np.generic) else value


def _codes(columns: list[Column], length: int, sort: bool) -> npt.NDArray[np.int64]:
    """A number for each row, equal where all columns are: in the order of the values, or of their first appearance."""
    codes = np.zeros(length, dtype=np.int64)
    for column in columns:
        own, many = _coded(column)
        codes = np.unique(codes * many + own, return_inverse=True)[1]
    if sort or not length:
        return codes
    first = np.unique(codes, return_index=True)[1]
    return np.argsort(np.argsort(first))[codes]


def _coded(column: Column) -> tuple[npt.NDArray[np.int64], int]:
    """The place of each value among the sorted ones, nothing last, and how many places there are."""
    there = given(column)
    codes = np.zeros(len(column), dtype=np.int64)
    if column.dtype == object:
        words = column.tolist()
        places = {value: place for place, value in enumerate(sorted(set(column[there].tolist())))}
        codes[:] = [places.get(value, len(places)) for value in words]
        return np.where(there, codes, len(places)), len(places) + 1
    found, codes[there] = np.unique(column[there], return_inverse=True)
    codes[~there] = len(found)
    return codes, len(found) + 1


def _rank(rows: Rows, name: str) -> npt.NDArray[np.int64]:
    codes, many = _coded(rows[name.removeprefix("-")])
    if not name.startswith("-"):
        return codes
    return np.where(codes == many - 1, many, many - 1 - codes) if many > 1 else codes
