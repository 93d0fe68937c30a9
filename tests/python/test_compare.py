import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwright.base import registry
from linkwright.base.stats.grade import FAIR, precision
from linkwright.base.stats.interval import median_interval
from linkwright.session.compare import machines, runs
from linkwright.session.compare.verdict import Verdict, Why, exact, judged, measured
from linkwright.store import run, schema
from linkwright.store.record import Record
from linkwright_cases import invoke

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
    assert (found.verdict, found.why) == (Verdict.UNKNOWN, Why.WIDE)
    assert only(measured(noisy, noisy * 3)).verdict == Verdict.SLOWER  # the intervals of the medians are disjoint


def test_few_launches_give_no_verdict():
    found = only(measured(STEADY[:5], STEADY))
    assert (found.verdict, found.why) == (Verdict.UNKNOWN, Why.SINGLE)
    assert "an interval needs 6" in found.reason


@pytest.mark.parametrize(
    ("low", "high", "widest", "verdict"),
    [
        (0.96, 1.04, 0.02, Verdict.SAME),
        (0.92, 1.09, 0.02, Verdict.SAME),  # within 10 %
        (1.01, 1.08, 0.02, Verdict.SAME),
        (0.92, 1.12, 0.05, Verdict.UNKNOWN),
        (0.92, 1.12, 0.06, Verdict.SAME),  # within 20 %, where a value is fair
        (0.92, 1.21, 0.06, Verdict.UNKNOWN),
        (1.02, 1.30, 0.02, Verdict.UNKNOWN),
        (1.031, 1.04, 0.02, Verdict.SLOWER),
        (1.04, 1.09, 0.05, Verdict.SAME),  # a difference that values of ±5 % do not resolve
        (1.06, 1.50, 0.05, Verdict.SLOWER),
        (0.80, 0.95, 0.05, Verdict.FASTER),
    ],
)
def test_the_interval_of_the_ratio_decides(low, high, widest, verdict):
    assert judged(low, high, widest, apart=False)[0] == verdict
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert judged(1 / high, 1 / low, widest, apart=False)[0] == turned.get(verdict, verdict)


def launches(random, kind, count, spread):
    """Launch medians as machines give them: log-normal, some of them slow, or skewed to the right."""
    plain = np.exp(random.normal(0, spread, count))
    if kind == "tail":
        return np.where(random.random(count) < 0.08, plain * (1 + random.exponential(0.15, count)), plain)
    return 1 + random.exponential(spread, count) if kind == "skew" else plain


def verdicts(kind, factor, drift, spreads):
    """How often each verdict is given of values graded tight or fair; `drift`: of all launches of a run."""
    random = np.random.default_rng(16)
    found = Counter()
    for number in range(600):
        count, spread = (6, 9, 14)[number % 3], np.exp(random.uniform(*np.log(spreads)))
        sides = [launches(random, kind, count, spread) for _ in range(2)]
        sides[1] *= factor * np.exp(random.normal(0, drift))
        if max(precision(np.median(side), *median_interval(side)) for side in sides) <= FAIR:
            found.update(comparison.verdict for comparison in measured(*sides))
    return {verdict: found[verdict] / found.total() for verdict in Verdict}


@pytest.mark.parametrize("kind", ["normal", "tail", "skew"])
@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_the_same_machine_twice_is_called_the_same(kind, drift):
    rates = verdicts(kind, 1.0, drift, spreads=(0.003, 0.05))
    assert rates[Verdict.FASTER] + rates[Verdict.SLOWER] < 0.01
    assert rates[Verdict.SAME] >= 0.98


@pytest.mark.parametrize("kind", ["normal", "tail", "skew"])
def test_a_planted_slowdown_of_a_tenth_is_found(kind):
    tight = verdicts(kind, 1.10, 0.01, spreads=(0.003, 0.02))
    assert tight[Verdict.SLOWER] >= 0.94
    noisy = verdicts(kind, 1.10, 0.01, spreads=(0.02, 0.08))
    assert noisy[Verdict.SLOWER] >= 0.5
    assert noisy[Verdict.SAME] <= 0.35  # fair values support no narrower claim than 20 %


def test_modes_are_compared_with_modes():
    fast, slow = STEADY / 3, STEADY
    before = np.concatenate([fast[:6], slow[:6]])
    after = np.concatenate([fast[:7], slow[:6] * 1.2])
    a, b = measured(before, after)
    assert (a.verdict, b.verdict) == (Verdict.SAME, Verdict.SLOWER)
    assert "modes 50% + 50% against 54% + 46%" in a.reason


def test_a_mode_of_few_launches_is_not_judged_by_itself():
    before = np.concatenate([STEADY, STEADY[:2] * 2])
    found = only(measured(before, before * 1.2))
    assert found.verdict == Verdict.SLOWER
    assert "modes 80% + 20% against 80% + 20%" in found.reason


def test_a_vanished_mode_does_not_count_as_speed():
    before = np.concatenate([STEADY[:6] / 3, STEADY[:6]])
    found = only(measured(before, STEADY))
    assert found.verdict == Verdict.SAME
    assert "against 100%" in found.reason


@settings(deadline=None)  # the first comparison imports SciPy
@given(st.lists(st.floats(1, 1e6), min_size=6, max_size=15), st.lists(st.floats(1, 1e6), min_size=6, max_size=15))
def test_exchanging_the_sides_exchanges_the_verdict(a, b):
    turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    there, back = measured(np.array(a), np.array(b)), measured(np.array(b), np.array(a))
    for one, other in zip(there, back, strict=True):
        assert other.verdict == turned.get(one.verdict, one.verdict)


def test_modelled_values_are_exact():
    assert exact(5.0, 5.0).verdict == Verdict.SAME
    assert exact(5.0, 5.001).verdict == Verdict.SLOWER


def stored(root, times, scale=1.0, more=(), flags=None):
    """A run with `times` by experiment, None for one that the budget did not reach; `real` has launches, too."""
    folder = run.create(root, "s", "", {})
    rows = []
    for key, time in times.items():
        about = {"run": folder.id, "experiment": key, "machine": "m", "metric": "time"}
        about |= {
            "executor": "threads" if key.startswith("real") else "sim",
            "n": 8 if key.startswith("real") else None,
        }
        valued = {"value": time * scale, "status": "ok", "flags": flags} if time else {"status": "out-of-time"}
        rows.append(schema.row(**about, **valued))
    launches = [{"launch": i, "values_ns": [v * scale] * 3} for i, v in enumerate(STEADY)]
    records = [
        Record(experiment=key, first_ns=1.0, **launch)
        for key, time in times.items()
        for launch in [*launches, *more]
        if key.startswith("real") and time
    ]
    folder.write_results(rows, run.samples_table(folder, records))
    folder.mark("done")
    return folder


def test_runs_are_joined_by_experiment(tmp_path):
    first = stored(tmp_path, {"real": 100.0, "modelled": 7.0, "old": 1.0})
    second = stored(tmp_path, {"real": 100.0, "modelled": 7.0}, scale=0.5)
    compared = runs.compare_runs(first, second)
    assert compared.counts() == {Verdict.FASTER: 2}
    assert compared.only_first == [("old", "m", "sim")]


def test_launches_that_were_set_aside_are_not_compared(tmp_path):
    def run_with(disturbed_ns):
        disturbed = [{"launch": 100 + i, "values_ns": [disturbed_ns] * 3, "foreign": 1.0} for i in range(20)]
        return stored(tmp_path, {"real": 100.0}, more=disturbed)

    first, second = run_with(500.0), run_with(900.0)
    assert set(first.samples()["set_aside"]) == {None, "foreign"}
    assert runs.compare_runs(first, second).counts() == {Verdict.SAME: 1}


def test_what_was_disturbed_or_is_missing_is_unknown(tmp_path):
    first = stored(tmp_path, {"real": 100.0, "real/late": 100.0, "real/never": None})
    second = stored(tmp_path, {"real": 100.0, "real/late": None, "real/never": None}, flags="unpinned,disturbed")
    found = {key[0]: comparison.why for key, comparison in runs.compare_runs(first, second).pairs}
    assert found == {"real": Why.DISTURBED, "real/late": Why.MISSING}


def test_a_measured_value_without_samples_is_not_taken_for_exact(tmp_path):
    first, second = (stored(tmp_path, {"real": 100.0}, scale=scale) for scale in (1.0, 2.0))
    for each in (first, second):
        each.write_results(each.results().records(), run.samples_table(each, []))
    assert [c.why for _, c in runs.compare_runs(first, second).pairs] == [Why.SINGLE]


# --- the verb ------------------------------------------------------------------------------------------


def compared(tmp_path, first, second, *more, scale=1.0, flags=None):
    a, b = stored(tmp_path, first), stored(tmp_path, second, scale, flags=flags)
    return invoke("compare", a.id, b.id, "--runs", str(tmp_path), *more)


def test_what_did_not_change_is_counted_and_what_changed_is_listed_worst_first(tmp_path):
    first = {"real": 100.0, "a": 1.0, "b": 1.0, "c": 1.0, "old": 1.0, "real/late": 100.0}
    second = {"real": 100.0, "a": 2.0, "b": 1.0, "c": 3.0, "real/late": None}
    result = compared(tmp_path, first, second)
    assert result.status == 0
    assert result.out == (
        "5 compared: 2 SAME, 2 SLOWER, 1 UNKNOWN\n"
        "\n"
        "verdict  ratio  low  high  first  second  experiment\n"
        "SLOWER   3.000    -     -   1 ns    3 ns  c\n"
        "SLOWER   2.000    -     -   1 ns    2 ns  a\n"
        "\n"
        "UNKNOWN, by reason; --all lists them:\n"
        "1 missing: no value in one of the runs; such as real/late\n"
        "1 experiment only in the first run, such as old on m\n"
    )
    everything = compared(tmp_path, first, second, "--all").out
    assert [line.split()[0] for line in everything.splitlines()[3:8]] == ["SLOWER", "SLOWER", "SAME", "SAME", "UNKNOWN"]
    pairs = json.loads(compared(tmp_path, first, second, "--json").out)["pairs"]
    assert {(pair["experiment"], pair["verdict"], pair["why"]) for pair in pairs} == {
        ("real", "SAME", None), ("a", "SLOWER", None), ("b", "SAME", None), ("c", "SLOWER", None),
        ("real/late", "UNKNOWN", "missing"),
    }  # fmt: skip


def test_fail_slower_fails_where_something_is_slower_and_where_nothing_can_be_judged(tmp_path):
    same = {"real": 100.0}
    assert compared(tmp_path, same, same, "--fail-slower").status == 0
    assert compared(tmp_path, same, same, "--fail-slower", scale=1.1).status == 1
    assert compared(tmp_path, same, same, "--fail-slower", scale=0.9).status == 0
    disturbed = compared(tmp_path, same, same, "--fail-slower", flags="disturbed")
    assert disturbed.status == 1
    assert "no experiment could be judged" in disturbed.err
    assert compared(tmp_path, same, same, flags="disturbed").status == 0


def test_runs_without_a_common_experiment_are_refused(tmp_path):
    for more in ((), ("--json",)):
        result = compared(tmp_path, {"a": 1.0}, {"b": 1.0}, *more)
        assert result.status == 2
        assert result.out == ""
        assert "have no experiment in common that has a value; compare two runs of one suite" in result.err


# Two described machines.


@pytest.fixture
def halved(tmp_path):
    """`loggp` with half of its bandwidth, 12.5 GB/s."""
    text = (registry.machine_path("loggp")).read_text(encoding="utf-8")
    assert text.count("bandwidth = { value = 12.5,") == 1
    path = tmp_path / "halved.toml"
    changed = text.replace("bandwidth = { value = 12.5,", "bandwidth = { value = 6.25,")
    path.write_text(changed.replace('name = "loggp"', 'name = "halved"'), encoding="utf-8")
    return path


def test_two_machines_are_compared_at_every_size(tmp_path, halved):
    """Half of the bandwidth costs nothing at 8 B, and nearly twice the time where the bytes are most of it."""
    page = tmp_path / "page.html"
    done = invoke(
        "compare", "loggp", str(halved), "-p", "4", "--collectives", "broadcast,alltoall", "--sizes", "8,64M", "--json",
        "--report", str(page),
    )  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["machines"] == ["loggp", "halved"]
    ratios = {(pair["collective"], pair["size_bytes"]): pair["ratio"] for pair in found["pairs"]}
    assert ratios["broadcast", 8] == pytest.approx(1, abs=0.01)
    assert ratios["alltoall", 1 << 26] == pytest.approx(2, rel=0.01)
    assert found["said"] == [
        "alltoall: 8, equal within 10%; 64M, loggp is 2.00 times as fast.",
        "broadcast: 8, equal within 10%; 64M, loggp is 2.00 times as fast.",
    ]
    text = page.read_text(encoding="utf-8")
    for part in (
        "loggp against halved",
        "loggp: limit",
        "Time on halved over time on loggp",
        "2.00 ×",
        found["said"][0],
    ):
        assert part in text
    plain = invoke("compare", "loggp", str(halved), "-p", "4", "--collectives", "broadcast", "--sizes", "64M")
    assert plain.out.splitlines()[1].split()[-2:] == ["2.00", "loggp"]


def test_the_fastest_is_that_of_all_simulated_to_their_end():
    """An algorithm is given up at the time of the fastest one before it."""
    asked = ("--sizes", "8,64K,4M", "--grid", "4x2")
    found = json.loads(invoke("compare", "torus-2d", "torus-400g", "--collectives", "allreduce", *asked, "--json").out)
    for side, machine in (("first", "torus-2d"), ("second", "torus-400g")):
        rows = json.loads(invoke("simulate", "allreduce", "--on", machine, *asked, "-a", "all", "--json").out)["rows"]
        times = [row for row in rows if row["metric"] == "time" and row["status"] == "ok"]
        for pair in found["pairs"]:
            fastest = min(row["value"] for row in times if row["size_bytes"] == pair["size_bytes"])
            assert pair[f"{side}_value"] == fastest


def test_a_grid_is_for_the_machines_that_it_fits():
    """The torus takes 4 x 2; both machines have 8 ranks, so that 3 x 3 would be ignored."""
    asked = ("compare", "torus-400g", "dgx1-p100", "--collectives", "alltoall", "--sizes", "1M", "--json")
    done = invoke(*asked, "--grid", "4x2")
    assert [pair["first_ranks"] for pair in json.loads(done.out)["pairs"]] == [8], done.err
    refused = invoke("compare", "torus-400g", "dgx1-p100", "-p", "8", "--sizes", "1M", "--grid", "3x3")
    assert "--grid 3x3: 9 places for 8 ranks" in refused.err
    refused = invoke("compare", "hgx-h100", "dgx1-p100", "--sizes", "1M", "--grid", "2x4")
    assert "have the size that their files state" in refused.err


def test_sizes_that_ranks_round_are_those_that_were_asked_for():
    """Over 8 ranks, 8 B are 32 B of an alltoall of f32; over 64 they are 256 B, which is something else."""
    done = invoke("compare", "dgx1-p100", "wormhole-n150", "--collectives", "alltoall", "--sizes", "8,64K", "--json")
    found = json.loads(done.out)
    assert [pair["size_bytes"] for pair in found["pairs"]] == [64 << 10]
    assert found["said"][1].startswith("alltoall, 8: left out, because the ranks of the two machines round it to diff")


def test_where_one_machine_overtakes_the_other_is_said():
    def pair(size, first, second):
        rows = ({"value": ns, "ranks": 8, "launch_ns": None, "algorithm": "ring"} for ns in (first, second))
        return machines.Pair("allreduce", size, *rows)

    pairs = [pair(8, 10.0, 20.0), pair(64, 10.0, 15.0), pair(512, 10.0, 10.9), pair(4096, 30.0, 10.0)]
    assert machines.sentences(pairs, ["a", "b"]) == [
        "allreduce: 8 to 64, a is up to 2.00 times as fast; 512, equal within 10%; 4K, b is 3.00 times as fast."
    ]
    assert machines.notes(pairs, ["a", "b"]) == []
    other = machines.Pair("allreduce", 8, pairs[0].first | {"launch_ns": 5.0}, pairs[0].second | {"ranks": 72})
    assert machines.notes([other], ["a", "b"]) == [
        "a has 8 ranks and b 72; --ranks gives both as many.",
        "Times of a include starting its library; those of b, which names none, are of the fastest algorithm alone.",
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("hgx-h100", "mi300x", "--fail-slower"), "hgx-h100 and mi300x are machines; leave out '--fail-slower'"),
        (("latest~1", "latest", "--nodes", "2"), "latest~1 and latest are runs; leave out '--nodes'"),
        (("hgx-h100", "mi300x", "--report", "page.txt"), "choose a name that ends in .html"),
        (("hgx-h100", "mi300x", "--collectives", "nope"), "unknown collective `nope`"),
        (
            ("hgx-h100", "latest"),
            "hgx-h100 is a machine, and `latest` is not one; `linkwright list",
        ),
    ],
)
def test_compare_refuses_a_mixture(arguments, why):
    done = invoke("compare", *arguments)
    assert done.status == 2
    assert why in done.err
