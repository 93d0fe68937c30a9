import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwright.compare import runs
from linkwright.compare.verdict import Verdict, exact, measured
from linkwright.store import run, schema
from linkwright.store.record import Record

STEADY = np.array([100, 100.2, 99.9, 100.1, 99.8, 100.3, 100.0, 99.7])


def only(comparisons):
    assert len(comparisons) == 1
    return comparisons[0]


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, Verdict.SAME), (1.004, Verdict.SAME), (1.1, Verdict.SLOWER), (0.9, Verdict.FASTER)],
)
def test_verdicts_of_steady_launches(factor, verdict):
    assert only(measured(STEADY, STEADY * factor)).verdict == verdict


def test_noise_gives_no_verdict():
    noisy = np.array([80, 130, 95, 110, 70, 150, 100, 120.0])
    found = only(measured(noisy, noisy[::-1] * 1.05))
    assert found.verdict == Verdict.UNKNOWN
    assert "too wide" in found.reason


def test_few_launches_give_no_verdict():
    assert "an interval needs 6" in only(measured(STEADY[:5], STEADY)).reason


def test_modes_are_compared_with_modes():
    fast, slow = STEADY / 3, STEADY
    before = np.concatenate([fast[:6], slow[:6]])
    after = np.concatenate([fast[:7], slow[:6] * 1.2])
    a, b = measured(before, after)
    assert (a.verdict, b.verdict) == (Verdict.SAME, Verdict.SLOWER)
    assert "modes 50% + 50% against 54% + 46%" in a.reason


def test_a_vanished_mode_does_not_count_as_speed():
    before = np.concatenate([STEADY[:6] / 3, STEADY[:6]])
    found = only(measured(before, STEADY))
    assert found.verdict == Verdict.SAME
    assert "against 100%" in found.reason


@given(st.lists(st.floats(1, 1e6), min_size=6, max_size=15), st.lists(st.floats(1, 1e6), min_size=6, max_size=15))
def test_exchanging_the_sides_exchanges_the_verdict(a, b):
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    there, back = measured(np.array(a), np.array(b)), measured(np.array(b), np.array(a))
    for one, other in zip(there, back, strict=True):
        if abs(one.ratio - 1) > 0.1:  # close to a threshold r and 1/r may fall on different sides
            assert other.verdict == turned.get(one.verdict, one.verdict)


def test_modelled_values_are_exact():
    assert exact(5.0, 5.0).verdict == Verdict.SAME
    assert exact(5.0, 5.001).verdict == Verdict.SLOWER


def stored(root, times, scale=1.0, more=()):
    folder = run.create(root, "s", "", {})
    about = {"run": folder.id, "machine": "m", "executor": "e", "metric": "time", "status": "ok"}
    rows = [schema.row(experiment=key, value=t * scale, **about) for key, t in times.items()]
    launches = [{"launch": i, "values_ns": [v * scale] * 3} for i, v in enumerate(STEADY)]
    records = [Record(experiment="real", first_ns=1.0, **launch) for launch in [*launches, *more]]
    folder.write_results(rows, run.samples_table(folder, records))
    return folder


def test_runs_are_joined_by_experiment(tmp_path):
    first = stored(tmp_path, {"real": 100.0, "modelled": 7.0, "old": 1.0})
    second = stored(tmp_path, {"real": 100.0, "modelled": 7.0}, scale=0.5)
    compared = runs.compare_runs(first, second)
    assert compared.counts() == {Verdict.FASTER: 2}
    assert compared.only_first == [("old", "m", "e")]
    assert isinstance(first.samples(), pa.Table)


def test_launches_that_were_set_aside_are_not_compared(tmp_path):
    def run_with(disturbed_ns):
        disturbed = [{"launch": 100 + i, "values_ns": [disturbed_ns] * 3, "foreign": 1.0} for i in range(20)]
        return stored(tmp_path, {"real": 100.0}, more=disturbed)

    first, second = run_with(500.0), run_with(900.0)
    assert set(first.samples()["set_aside"].to_pylist()) == {None, "foreign"}
    assert runs.compare_runs(first, second).counts() == {Verdict.SAME: 1}
