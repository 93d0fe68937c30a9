import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from linkwright import _native
from linkwright.base.stats import ratio
from linkwright.base.stats.bandwidth import FACTORS, alg_bw, bus_bw, half_peak_size
from linkwright.base.stats.grade import grade
from linkwright.base.stats.interval import median_interval, rank_of
from linkwright.base.stats.modes import modes
from linkwright.base.stats.quantile import quantile
from linkwright.base.stats.summary import summarise

times = st.floats(1.0, 1e9, allow_nan=False)
launches = st.lists(st.lists(times, min_size=1, max_size=20).map(np.array), min_size=1, max_size=20)


@given(st.lists(times, min_size=1, max_size=50), st.integers(0, 100))
def test_a_quantile_is_that_of_numpy_to_the_last_bit(values, percent):
    assert quantile(np.sort(values), percent / 100) == np.percentile(values, percent)


# --- interval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (100, 40)])
def test_ranks_agree_with_published_tables(n, rank):
    # For n = 6 the whole range covers 1 - 2/64 = 96.9 %; for 9 the second of each side 96.1 %.
    assert rank_of(n) == rank


@given(st.integers(6, 400))
def test_rank_is_the_largest_that_covers_95_percent(n):
    def coverage(j):
        return 1 - 2 * binom.cdf(j - 1, n, 0.5)

    assert coverage(rank_of(n)) >= 0.95 - 1e-12
    assert coverage(rank_of(n) + 1) < 0.95


def test_below_six_values_there_is_no_interval():
    assert median_interval(np.arange(5.0)) is None


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    random = np.random.default_rng(1)
    draws = np.exp(random.normal(size=(4000, 11)))  # skewed; the true median is 1
    hits = sum(low <= 1 <= high for low, high in (median_interval(d) for d in draws))
    # n = 11 takes the second of each side: 1 - 2 (1 + 11) / 2^11 = 98.8 %.
    assert hits / len(draws) == pytest.approx(0.988, abs=0.006)


@given(st.lists(times, min_size=6, max_size=60))
def test_the_interval_encloses_the_median(values):
    low, high = median_interval(np.array(values))
    assert low <= np.median(values) <= high


# --- modes ------------------------------------------------------------------------------------------


def test_two_speeds_of_a_virtual_machine_are_two_modes():
    fast, slow = modes(np.array([35, 190, 36, 185, 37, 35.5, 188.0]))
    assert (fast.median, slow.median) == (35.75, 188.0)
    assert (fast.share, slow.share) == (pytest.approx(4 / 7), pytest.approx(3 / 7))
    assert slow.members == (3, 6, 1)


def test_one_outlier_is_no_mode():
    assert len(modes(np.array([35, 36, 36.5, 35.5, 190.0]))) == 1


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.2])
def test_normal_spread_is_rarely_called_two_modes(spread):
    random = np.random.default_rng(2)
    found = [len(modes(100 * (1 + spread * random.normal(size=10)).clip(0.1))) for _ in range(500)]
    assert np.mean(np.array(found) == 2) < 0.01


@given(st.lists(times, min_size=1, max_size=40))
def test_modes_share_out_the_launches(values):
    found = modes(np.array(values))
    assert sum(mode.share for mode in found) == pytest.approx(1)
    assert sorted(i for mode in found for i in mode.members) == list(range(len(values)))


@given(st.lists(times, min_size=4, max_size=20), st.floats(0.1, 100))
def test_modes_do_not_depend_on_the_unit(values, scale):
    one, other = modes(np.array(values)), modes(np.array(values) * scale)
    # A gap within rounding of the threshold may fall on either side; then the counts differ.
    if len(one) == len(other):
        assert [m.members for m in one] == [m.members for m in other]


# --- summary ----------------------------------------------------------------------------------------


@given(launches)
def test_a_summary_is_ordered_and_keeps_every_sample(groups):
    s = summarise(groups)
    assert s.min <= s.median <= s.max
    assert s.min <= s.p95 <= s.p99 <= s.max
    assert s.samples == sum(map(len, groups))
    if s.ci_low is not None:
        assert s.ci_low <= s.median <= s.ci_high


@given(launches, st.randoms())
def test_the_order_of_samples_and_launches_does_not_matter(groups, random):
    shuffled = [np.array(random.sample(list(g), len(g))) for g in random.sample(groups, len(groups))]
    a, b = summarise(groups), summarise(shuffled)
    assert (a.median, a.ci_low, a.ci_high, a.min, a.max) == (b.median, b.ci_low, b.ci_high, b.min, b.max)


def test_many_samples_of_few_launches_give_no_interval():
    s = summarise([np.full(10_000, 5.0)] * 5)
    assert s.ci_low is None
    assert (s.precision, grade(s.precision)) == (None, "single")


def test_precision_is_half_the_width_over_the_median():
    s = summarise([np.array([v]) for v in (98, 99, 100, 100, 101, 102.0)])
    assert s.precision == pytest.approx(0.02)
    assert [grade(s.precision, target) for target in (0.021, 0.019)] == ["tight", "fair"]


def test_a_grade_ends_where_it_says():
    assert [grade(p) for p in (0.0, 0.05, 0.0501, 0.10, 0.1001, 60.7)] == ["tight"] * 2 + ["fair"] * 2 + ["wide"] * 2


def test_two_modes_have_an_interval_each():
    s = summarise([np.array([v]) for v in (10, 10.1, 10.2, 10.3, 10.4, 10.5, 20, 20.1, 20.2)])
    assert [mode.interval for mode in s.modes] == [(10, 10.5), None]
    assert (s.ci_low, s.ci_high) == (10, 10.5)


def test_two_modes_are_summarised_by_the_larger():
    s = summarise([np.array([v]) for v in (35, 36, 35.5, 190, 191.0)])
    assert s.median == 35.5
    assert len(s.modes) == 2


# --- bandwidth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 64])
@pytest.mark.parametrize("collective", FACTORS)
def test_the_written_factor_is_the_computed_one(collective, ranks):
    written = FACTORS[collective].replace("2(", "2*(").replace("p", str(ranks))
    assert _native.bus_factor(collective, ranks) == pytest.approx(eval(written))


def test_bandwidth_of_nothing_is_null():
    assert alg_bw(0, 10.0) is None
    assert bus_bw("barrier", 4, 64, 10.0) is None
    assert alg_bw(1000, 1000.0) == 1e9


def test_half_peak_of_a_latency_bandwidth_machine():
    # t = a + n / b gives rate n / (a + n / b), half of b exactly at n = a b.
    sizes = [2**k for k in range(0, 31)]
    latency_s, rate = 1e-6, 1e9
    rates = [n / (latency_s + n / rate) for n in sizes]
    assert half_peak_size(sizes, rates) == pytest.approx(latency_s * rate, rel=0.05)


def test_half_peak_below_the_sweep_is_null():
    assert half_peak_size([1024, 2048], [5.0, 6.0]) is None


@settings(max_examples=50)
@given(st.lists(st.floats(1, 1e12), min_size=2, max_size=30))
def test_half_peak_lies_within_the_sweep(rates):
    sizes = [2**k for k in range(len(rates))]
    half = half_peak_size(sizes, rates)
    assert half is None or (sizes[0] <= half <= sizes[-1] and math.isfinite(half))


# --- ratio ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "rank"), [(6, 6, 6), (7, 7, 9), (8, 8, 14), (10, 10, 24), (6, 10, 12)])
def test_ranks_of_ratios_are_those_of_the_tables(n, m, rank):
    """One more than the critical values of the two-sided Mann-Whitney test at 5 %: 5, 8, 13, 23, 11."""
    assert ratio.rank_of(n, m) == rank


def test_the_interval_of_a_ratio_holds_it_and_is_turned_over_with_it():
    noise = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        first, second = noise.lognormal(0, 0.02, 7), 1.1 * noise.lognormal(0, 0.02, 9)
        low, high = ratio.ratio_interval(first, second)
        back = ratio.ratio_interval(second, first)
        assert back == pytest.approx((1 / high, 1 / low))
        held += low <= 1.1 <= high
    assert held / 400 > 0.93


def test_a_ratio_of_few_launches_has_no_interval():
    assert ratio.ratio_interval(np.ones(5), np.ones(9)) is None
