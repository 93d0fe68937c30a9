"""What a time budget buys, on a made-up clock: each experiment takes what it takes, and launches add nothing."""

import itertools
import time

import numpy as np
import pytest

from linkwright.ask.question import Collective
from linkwright.base.errors import FileError
from linkwright.base.stats.interval import MIN_VALUES
from linkwright.executors.protocol import Extent, Launch, Options
from linkwright.session.suite import budget, expand, load, measure
from linkwright.session.suite.budget import Needs, affordable, plan
from linkwright.store.record import Ended, Record, from_json, to_json


def experiment(size, algorithm="ring", part="p"):
    return Collective(part, algorithm, 2, size, collective="allreduce", op="sum")


EXPERIMENTS = [experiment(8 * 4**k, algorithm) for k in range(6) for algorithm in ("ring", "swing")]


class Clock:
    """A machine whose experiments take given times, and scatter by given shares."""

    def __init__(self, monkeypatch, took_s, scatter):
        self.now, self.took_s, self.scatter = 1000.0, took_s, scatter
        self.random = np.random.default_rng(1)
        self.launches = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def launch(self, launch: Launch):
        self.launches.append([e.key for e in launch.work])
        self.now += 0.1
        end = self.now + launch.deadline_s
        for e in launch.work:
            if self.now >= end:
                return
            self.now += self.took_s(e)
            value = (100.0 + e.size_bytes) * self.random.lognormal(0, self.scatter(e))
            yield Record(experiment=e.key, launch=launch.number, values_ns=[value], first_ns=1.0)

    def measure(self, experiments, budget_s, target=0.05):
        state, written = measure.State(), []
        journal = type("Journal", (), {"append": staticmethod(written.append)})
        start = self.now
        measure.measure(experiments, budget_s, target, Options(), state, journal, lambda *_: None, self.launch)
        return state, self.now - start


def test_all_get_an_interval_before_any_gets_more(monkeypatch):
    clock = Clock(monkeypatch, lambda e: 0.05, lambda e: 0.2)
    state, _ = clock.measure(EXPERIMENTS, 10.0)
    assert [len(work) for work in clock.launches[:MIN_VALUES]] == [len(EXPERIMENTS)] * MIN_VALUES
    assert all(len(state.records(e.key)) >= MIN_VALUES for e in EXPERIMENTS)


def test_measuring_ends_where_all_are_within_the_target(monkeypatch):
    clock = Clock(monkeypatch, lambda e: 0.01, lambda e: 0.001)
    state, took = clock.measure(EXPERIMENTS, 60.0)
    assert len(clock.launches) == MIN_VALUES
    assert took < 2.0
    assert all(state.measured(e.key).settled(0.05) for e in EXPERIMENTS)


def test_more_launches_go_to_what_is_wide_and_matters(monkeypatch):
    wide, slow = EXPERIMENTS[0].key, EXPERIMENTS[1].key
    clock = Clock(monkeypatch, lambda e: 0.05, lambda e: 0.3 if e.key in (wide, slow) else 0.001)
    # Of the two wide ones the second is ten times as slow, so a reader does not look at it first.
    plain = clock.launch

    def launch(asked):
        for record in plain(asked):
            factor = 10.0 if record.experiment == slow else 1.0
            yield Record(experiment=record.experiment, launch=record.launch, first_ns=1.0,
                         values_ns=[v * factor for v in record.values_ns])  # fmt: skip

    clock.launch = launch
    # After six launches of everything (4.2 s) there is time for some launches of one experiment each.
    clock.measure(EXPERIMENTS, 4.2 + 1.5, target=0.01)
    more = list(itertools.chain(*clock.launches[MIN_VALUES:]))
    assert set(more) <= {wide, slow}
    assert more.count(wide) >= 1
    assert clock.launches[MIN_VALUES][:1] == [wide] or wide in clock.launches[MIN_VALUES]


def test_what_gets_no_interval_is_not_started(monkeypatch):
    # 12 experiments of 1 s, and six launches of at most four in 24 s after the first launch told so.
    clock = Clock(monkeypatch, lambda e: 1.0, lambda e: 0.01)
    estimates = {e.key: 1.0 for e in EXPERIMENTS}
    monkeypatch.setattr(budget, "estimate_s", lambda e: estimates[e.key])
    state, took = clock.measure(EXPERIMENTS, 24.0)
    counts = [len(state.records(e.key)) for e in EXPERIMENTS]
    assert sorted(counts) == [0] * 9 + [6] * 3
    assert took <= 24.0


def test_a_wrong_estimate_is_mended_after_the_first_launch(monkeypatch):
    dear = EXPERIMENTS[-1].key
    clock = Clock(monkeypatch, lambda e: 5.0 if e.key == dear else 0.05, lambda e: 0.2)
    state, took = clock.measure(EXPERIMENTS, 20.0)
    assert len(state.records(dear)) < MIN_VALUES
    assert all(len(state.records(e.key)) >= MIN_VALUES for e in EXPERIMENTS[:-1])
    assert took <= 20.0 + 5.0


def test_an_experiment_that_needs_a_longer_share_gets_it(monkeypatch):
    clock = Clock(monkeypatch, lambda e: 0.02, lambda e: 0.001)
    dear = EXPERIMENTS[3].key

    def launch(asked):
        for e in asked.work:
            share = asked.share_s(asked.deadline_s, [e, *(other for other in asked.work if other is not e)])
            clock.now += 0.01
            if e.key == dear and share < 0.5:
                yield Ended(e.key, asked.number, "out-of-time", "ten operations take 0.5 s", "x", need_s=0.5)
            else:
                yield Record(experiment=e.key, launch=asked.number, values_ns=[1.0], first_ns=1.0)

    clock.launch = launch
    state, _ = clock.measure(EXPERIMENTS, 30.0)
    assert len(state.records(dear)) >= MIN_VALUES - 1
    assert dear not in state.ended


def test_an_outcome_that_needs_more_time_survives_the_journal():
    ended = Ended("e", 1, "out-of-time", "why", "experiment.out-of-time", need_s=0.5)
    assert from_json(to_json(ended)) == ended
    state = measure.State()
    state.take(ended)
    assert (list(state.short), list(state.ended)) == (["e"], [])


@pytest.mark.parametrize(("budget_s", "started"), [(0.1, 1), (6 * 0.3 + 6 * 3 * 0.1 + 0.01, 3), (100.0, 12)])
def test_the_plan_says_what_fits_and_what_would_do(monkeypatch, budget_s, started):
    monkeypatch.setattr(budget, "estimate_s", lambda e: 0.1)
    found = plan(EXPERIMENTS, budget_s, Needs())
    assert (len(found.started), len(found.left_out)) == (started, len(EXPERIMENTS) - started)
    assert found.enough_s == 10.0  # six launches of 0.3 s and 12 x 0.1 s take 9.0 s
    words = " ".join(found.words(budget_s))
    assert ("--time-budget 10s" in words) == bool(found.left_out)
    # It would do: everything is started.
    assert not plan(EXPERIMENTS, found.enough_s, Needs()).left_out


def test_the_cheapest_are_started_so_that_most_are():
    needs = Needs({e.key: 0.1 * (i + 1) for i, e in enumerate(EXPERIMENTS)}, launch_s=0.0)
    chosen = affordable(EXPERIMENTS, 6 * (0.1 + 0.2 + 0.3), 6, needs)
    assert chosen == EXPERIMENTS[:3]


def test_each_experiment_has_its_share(monkeypatch):
    estimates = {e.key: 0.1 * (i + 1) for i, e in enumerate(EXPERIMENTS)}
    monkeypatch.setattr(budget, "estimate_s", lambda e: estimates[e.key])
    # A launch starts in 0.3 s, and the estimates sum up to 7.8 s.
    assert budget.shares_s(EXPERIMENTS, EXPERIMENTS, 16 * 8.1) == pytest.approx(estimates)
    assert budget.shares_s(EXPERIMENTS, EXPERIMENTS, 16 * (0.3 + 78.0)) == pytest.approx(
        {key: 10 * share for key, share in estimates.items()}
    )
    assert budget.shares_s(EXPERIMENTS, EXPERIMENTS, 1.0) == pytest.approx(estimates)
    launch = Launch(0, EXPERIMENTS[:2], 8.0, shares={EXPERIMENTS[0].key: 3.0})
    assert launch.share_s(8.0, launch.work) == 3.0
    assert launch.share_s(2.0, launch.work) == 2.0
    assert launch.share_s(2.0, launch.work[1:]) == 2.0
    assert Launch(0, EXPERIMENTS, 12.0).share_s(12.0, EXPERIMENTS) == 1.0


@pytest.mark.parametrize(("rate_at_512", "further"), [(2.0, [2048, 8192]), (1.04, [])])
def test_a_sweep_goes_on_while_the_rate_rises(monkeypatch, rate_at_512, further):
    part = load.one_part("p", "s", pattern="pairs", sizes=(128, 512), rising_to=8192, ranks=(2,), dtype="u8").parts[0]
    found = expand.expand(load.Suite("s", "s", (part,)), Extent("measured", 2))
    assert [e.size_bytes for e in found] == [128, 512, 2048, 8192]
    assert [e.size_bytes for e in found if not e.rising] == [128, 512]
    rates = {128: 1.0, 512: rate_at_512, 2048: 2 * rate_at_512, 8192: 2 * rate_at_512}
    clock = Clock(monkeypatch, lambda e: 0.01, lambda e: 0.001)

    def launch(asked):
        for e in asked.work:
            clock.now += 0.01
            time_ns = e.size_bytes / rates[e.size_bytes]
            yield Record(experiment=e.key, launch=asked.number, values_ns=[time_ns], first_ns=1.0)

    clock.launch = launch
    state, _ = clock.measure(found, 60.0)
    measured = [e.size_bytes for e in found if state.records(e.key)]
    assert measured == [128, 512, *further]
    assert all(len(state.records(e.key)) >= MIN_VALUES for e in found if e.size_bytes in measured)


def test_only_sweeps_of_patterns_rise():
    with pytest.raises(FileError, match="`rising_to` continues the sweep of a `pattern`"):
        load.one_part("p", "s", collectives=("allreduce",), sizes=(8, 16), rising_to=64)
    modelled = load.one_part("p", "s", pattern="pairs", sizes=(8, 16), rising_to=64).parts[0]
    assert len(expand.expand(load.Suite("s", "s", (modelled,)), Extent("modelled", 2))) == 2


def test_what_is_clearly_slower_than_a_precise_rival_comes_last():
    # ring is precise at 100 ns; swing scatters around 300 ns, so it cannot win; the other size has no rival.
    ring, swing, alone = experiment(8, "ring"), experiment(8, "swing"), experiment(32, "ring")
    state = measure.State()
    medians = {ring: [100.0] * 6, swing: [250, 280, 300, 310, 340, 380.0], alone: [90, 95, 100, 101, 103, 106.0]}
    for e, values in medians.items():
        for number, value in enumerate(values):
            state.take(Record(experiment=e.key, launch=number, values_ns=[value], first_ns=1.0))
    needs = Needs({e.key: 1.0 for e in medians}, launch_s=0.0)
    chosen = [budget.by_worth([swing, alone], medians, state.measured, left_s, needs) for left_s in (1.0, 2.0)]
    assert chosen == [[alone], [alone, swing]]
