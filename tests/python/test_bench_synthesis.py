"""The file of cells of the benchmark of synthesis."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "benches" / "synthesis.py"


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCH.parent))
    spec = importlib.util.spec_from_file_location("bench_synthesis", BENCH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_of_several_searches_the_fastest_is_kept(bench, tmp_path):
    file = tmp_path / "cells.json"
    assert bench.read(file) == []
    one = bench.Cell("crossbar:4", "allgather", 4096, 20.0, 15.0, 10.0, 5.0, 2.0, None, None, ("latency", "waiting"),
                     "packing", 1.0, 0, 4.0)  # fmt: skip
    other = replace(one, size=8192)
    slower, faster = replace(one, found=12.0, budget=9.0), replace(one, found=8.0, budget=9.0)
    assert bench.merged([one, other], [slower]) == [one, other]
    kept = bench.merged([one, other], [faster])
    assert kept == [faster, other]
    file.write_text(bench.stored(kept))
    assert bench.read(file) == kept


def test_a_gain_that_lasts_is_kept_rather_than_a_faster_one(bench):
    one = bench.Cell("crossbar:4", "allgather", 4096, 20.0, 15.0, 10.0, 5.0, 0.5, 0.6, 0.9, ("latency", "waiting"),
                     "packing", 1.0, 0, 4.0)  # fmt: skip
    lasting = replace(one, found=14.0, robust=1.0, least=1.2)
    serial = replace(lasting, found=15.0, serial=1.3)
    assert bench.merged([one], [lasting]) == [lasting]
    assert bench.merged([lasting], [serial]) == [serial]
    assert bench.merged([lasting], [replace(serial, found=16.0)]) == [lasting]


def test_a_cell_gets_the_bound_of_this_version(bench):
    # 4 ranks of an ideal switch: three blocks of 1 KiB into a port of 25 GB/s take 123 ns; 600 ns of latency are more.
    cell = bench.Cell("crossbar:4", "allgather", 4096, 2e3, 2e3, 1e3, None, 1.0, None, None, ("", ""), "library", 1.0,
                      0, 4.0)  # fmt: skip
    assert bench.bounded(cell).bound == 600.0


def test_no_cell_of_the_table_beats_its_bound(bench):
    cells = bench.read(BENCH.with_suffix(".json"))
    # Times of the first cells have four digits.
    assert all(cell.found >= cell.bound * 0.999 for cell in cells if cell.bound)
    # A transform of a known algorithm may be passed over, too.
    assert all(cell.over_portfolio >= 1 for cell in cells if cell.passed is None)
