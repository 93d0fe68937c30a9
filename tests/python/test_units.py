import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwright.base import units
from linkwright.base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("8", 8), ("2K", 2048), ("64M", 64 << 20), ("1G", 1 << 30), ("4KiB", 4096)]
)
def test_sizes(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize("text", ["3 bytes", "1e99", "-1K", "", "K", "1.5K", "8iB", "KB", "9" * 30, "٣"])
def test_a_size_that_is_none_is_named_with_the_cure(text):
    with pytest.raises(UsageError, match="size"):
        units.parse_size(text)


@given(st.integers(0, units.MAX_BYTES))
def test_a_printed_size_reads_back(size):
    assert units.parse_size(units.format_size(size)) == size


def test_sweep_includes_both_ends():
    assert units.size_sweep(8, 128, 4) == [8, 32, 128]


def test_a_list_of_sizes_may_have_sweeps():
    assert units.parse_sizes("8,1K..4K, 8") == [8, 1024, 2048, 4096]
    for wrong in ("", "1K..", "..1K", "2K..1K", "0..1K", "1K..2K..4K", "8,,8"):
        with pytest.raises(UsageError):
            units.parse_sizes(wrong)


@pytest.mark.parametrize("bounds", [(0, 8, 2), (16, 8, 2), (8, 16, 1)])
def test_a_sweep_that_cannot_end_is_refused(bounds):
    with pytest.raises(UsageError):
        units.size_sweep(*bounds)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("500ms", 0.5), ("2m", 120)])
def test_durations(text, seconds):
    assert units.parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["0", "-1s", "soon", "1e3"])
def test_a_duration_that_is_none_is_refused(text):
    with pytest.raises(UsageError):
        units.parse_duration_s(text)


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(0.0, "0 ns"), (812.0, "812 ns"), (1240.0, "1.24 us"), (2.5e9, "2.50 s"), (None, "")],
)
def test_times_are_printed_in_the_unit_that_suits(time_ns, text):
    assert units.format_time(time_ns) == text


def factors(tree: ast.AST) -> list[int]:
    """The lines of products and quotients with a power of 1000."""
    powers = {10.0**exponent for exponent in (-12, -9, -6, -3, 3, 6, 9, 12)}
    scaled = [
        node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
    ]
    sides = [side for node in scaled for side in (node.left, node.right) if isinstance(side, ast.Constant)]
    return [side.lineno for side in sides if isinstance(side.value, float) and side.value in powers]


def test_only_units_converts_units():
    package = Path(units.__file__).parents[1]
    files = [file for file in package.rglob("*.py") if file != Path(units.__file__)]
    assert len(files) > 300
    found = {str(file.relative_to(package)): factors(ast.parse(file.read_text())) for file in files}
    assert not {file: lines for file, lines in found.items() if lines}


@given(st.integers(-(1 << 62), 1 << 62), st.integers(-(1 << 62), 1 << 62))
def test_times_are_compared_and_added_as_picoseconds(a, b):
    one, other = units.Time(a), units.Time(b)
    assert (one < other, one <= other, one == other) == (a < b, a <= b, a == b)
    assert ((one + other).ps, (one - other).ps, bool(one)) == (a + b, a - b, bool(a))
    assert one.ns == a / 1e3
    assert one.s == a / 1e12


def test_a_time_is_scaled_and_rounded_to_a_picosecond():
    time = units.Time(1_500_000)
    assert (time.ps, time.ms, str(time)) == (1_500_000, 0.0015, "1.50 us")
    assert (2 * time, time / 3, time / units.Time(500_000)) == (units.Time(3_000_000), units.Time(500_000), 3.0)


def test_a_time_is_a_whole_number_and_no_other_type():
    time = units.Time(5)
    assert time != 5
    with pytest.raises(TypeError):
        units.Time(1.5)
    for wrong in (lambda: time < 5, lambda: time + 1, lambda: 1 - time):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    ("rate", "plain", "three"),
    [
        (507.2e9, "507.2 GB/s", "507 GB/s"),
        (0.1e9, "0.10 GB/s", "0.1 GB/s"),
        (59.9e6, "59.90 MB/s", "59.9 MB/s"),
        (29_760.0, "29.76 kB/s", "29.8 kB/s"),
        (0.0, "0 GB/s", "0 GB/s"),
    ],
)
def test_a_rate_below_a_tenth_takes_the_next_smaller_unit(rate, plain, three):
    assert (units.format_rate(rate), units.format_gb_per_s(rate / units.GIGA)) == (plain, three)
