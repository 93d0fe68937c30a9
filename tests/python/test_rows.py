"""Columns of rows, compared with what pandas makes of the same columns."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

from linkwright.base.rows import Rows, among, array, given, largest, mapped, nunique, smallest, unique

NOTHING = float("nan")


def made(seed: int, length: int) -> Rows:
    """Columns with repeated values, some of them missing."""
    draw = random.Random(seed)
    return Rows(
        {
            "name": array([draw.choice(["b", "a", "c", None]) for _ in range(length)]),
            "size": np.array([draw.choice([8.0, 1.0, 64.0, NOTHING]) for _ in range(length)]),
            "value": np.array([draw.choice([1.5, 0.5, 2.5]) for _ in range(length)]),
            "place": np.arange(length),
        },
        length,
    )


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame({name: rows[name] for name in rows.names})


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length", [0, 1, 7, 60])
def test_order_groups_and_distinct_rows_are_those_of_pandas(seed, length):
    rows = made(seed, length)
    table = frame(rows)
    by = table.sort_values(["size", "name"], kind="stable", na_position="last")
    assert rows.ordered("size", "name")["place"].tolist() == by["place"].tolist()
    by = table.sort_values(["value", "name"], ascending=[False, True], kind="stable")
    assert rows.ordered("-value", "name")["place"].tolist() == by["place"].tolist()
    by = table.sort_values("size", ascending=False, kind="stable")
    assert rows.ordered("-size")["place"].tolist() == by["place"].tolist()
    for keep in ("first", "last"):
        by = table.drop_duplicates(["name", "size"], keep=keep)
        assert rows.distinct("name", "size", keep=keep)["place"].tolist() == by["place"].tolist()
    for sort in (False, True):
        groups = table.groupby(["name", "size"], sort=sort, dropna=False)
        found = [part["place"].tolist() for _, part in rows.by("name", "size", sort=sort)]
        assert found == [part["place"].tolist() for _, part in groups]


def test_a_group_is_named_by_plain_values():
    ((name, size), part), *_ = Rows({"name": array(["a", "a"]), "size": np.array([8.0, 8.0])}).by("name", "size")
    assert (name, type(size), len(part)) == ("a", float, 2)


def test_rows_by_place_mask_and_slice():
    rows = made(1, 10)
    assert rows[3]["place"] == 3
    assert [row["place"] for row in rows] == list(range(10))
    assert rows[rows["place"] > 7]["place"].tolist() == [8, 9]
    assert rows[:2].only(("place",)).names == ["place"]
    assert rows.assign(twice=rows["place"] * 2).greatest("twice")["place"] == 9
    assert rows.least("place")["place"] == 0


def test_what_columns_hold():
    column = array(["a", None, "b", "a"])
    assert given(column).tolist() == [True, False, True, True]
    assert (unique(column), nunique(column)) == (["a", "b"], 2)
    assert among(column, ("b", None)).tolist() == [False, True, True, False]
    assert mapped(array([2.0, 3.0]), lambda value: value * 2).tolist() == [4.0, 6.0]
    assert (smallest(np.array([NOTHING, 2.0, 1.0])), largest(np.array([NOTHING, 2.0, 1.0]))) == (1.0, 2.0)
    assert np.isnan(largest(np.array([])))
    assert np.isnan(smallest(np.array([NOTHING])))


@pytest.mark.parametrize(
    ("given", "kind"),
    [([1, 2], "i"), ([1, 2.5], "f"), ([1, None], "f"), ([None, None], "O"), (["a"], "O"), ([True], "O"), ([], "O")],
)
def test_a_column_takes_the_kind_of_its_values(given, kind):
    assert array(given).dtype.kind == kind
