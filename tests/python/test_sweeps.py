"""n_1/2: one row for each sweep of a rate, null with the reason where the sweep does not show it."""

import pytest

from linkwright.session.suite.sweeps import half_peaks
from linkwright.store import schema


def rates(start_ns, per_byte_ns, sizes, **more):
    """Rows of a machine that takes start + size * per_byte: n_1/2 = start / per_byte."""
    words = {"run": "r", "machine": "m", "executor": "threads", "metric": "bandwidth", "unit": "B/s", "status": "ok"}
    return [
        schema.row(
            **{**words, **more}, experiment=f"bandwidth/pairs/{size}", size_bytes=size,
            value=size / (start_ns + per_byte_ns * size) * 1e9,
        )
        for size in sizes
    ]  # fmt: skip


def test_half_of_the_peak_lies_where_start_and_bytes_take_the_same_time():
    # start 1000 ns, 0.1 ns per byte: half of the rate at 1000 / 0.1 = 10,000 bytes.
    (row,) = half_peaks(rates(1000, 0.1, [4**k for k in range(3, 14)]))
    assert (row["metric"], row["unit"], row["status"]) == ("half_peak_size", "B", "ok")
    assert row["value"] == pytest.approx(10_000, rel=0.06)
    assert row["experiment"] == f"bandwidth/pairs/{4**13}"


def test_a_sweep_that_begins_above_half_of_its_peak_says_so():
    (row,) = half_peaks(rates(10, 0.1, [4096, 8192, 16384]))
    assert row["value"] is None
    assert row["status"] == "waived"
    assert row["reason"] == "half of the peak is reached below the smallest size, 4096 B"


def test_sweeps_are_kept_apart_and_two_sizes_are_none():
    rows = rates(1000, 0.1, [64, 4096, 1 << 20])
    rows += rates(5000, 0.1, [64, 4096, 1 << 20], ranks=4)
    rows += rates(1000, 0.1, [64, 4096], ranks=8)
    assert [row["ranks"] for row in half_peaks(rows)] == [None, 4]
