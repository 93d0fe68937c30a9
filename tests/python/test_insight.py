"""Why a simulation takes its time: the tables beside a result, against times derived by hand."""

import pytest

import linkwright as lw
from linkwright.ask.answer import How, ask
from linkwright.base.errors import UsageError
from linkwright.session.insight import link_rows

# The machine `loggp` in microseconds: L, o at either end, and G per byte.
L, END, G = 1.0, 0.2, 1 / 12.5e3


def relay():
    """1000 B and 5000 B go to rank 2, which needs both before it sends 6000 B to rank 3."""
    builder = lw.Builder("pattern", ranks=4, size=8000)
    builder.buffer("output", 8)
    builder.step()
    builder.put(0, 2, "output", 0, 1)
    builder.put(1, 2, "output", 1, 5)
    builder.step()
    builder.put(2, 3, "output", 0, 6)
    return builder.finish()


@pytest.fixture(scope="module")
def result():
    return lw.simulate(relay(), "loggp", links=True, trace=True)


def message(size_bytes):
    return END + (size_bytes - 1) * G + L + END


SHORT, LONG, LAST = message(1000), message(5000), message(6000)


def test_the_trace_has_the_times_of_operations(result):
    trace = result.trace.frame()
    assert trace[["operation", "kind", "from", "to", "bytes"]].values.tolist() == [
        [0, "put", 0, 2, 1000],
        [1, "put", 1, 2, 5000],
        [2, "put", 2, 3, 6000],
    ]
    assert trace.start_us.tolist() == pytest.approx([0, 0, LONG])
    assert trace.end_us.tolist() == pytest.approx([SHORT, LONG, LONG + LAST])


def test_the_critical_path_says_what_each_operation_waited_for(result):
    path = result.critical_path.frame()
    assert path.operation.tolist() == [1, 2]
    assert path.start_us.tolist() == pytest.approx([0, LONG])
    assert path.end_us.tolist() == pytest.approx([LONG, LONG + LAST])
    assert path.overhead_us.tolist() == pytest.approx([2 * END, 2 * END])
    assert path.latency_us.tolist() == pytest.approx([L, L])
    assert path.serialisation_us.tolist() == pytest.approx([4999 * G, 5999 * G])
    assert path.waiting_us.tolist() == path.compute_us.tolist() == [0, 0]


def test_the_short_message_may_come_as_late_as_the_long_one(result):
    assert result.slack.frame().slack_us.tolist() == pytest.approx([LONG - SHORT, 0, 0], abs=1e-9)


def test_an_operation_is_late_together_with_what_its_lane_does_next():
    """Rank 0 sends 1000 B to rank 1, then 5000 B to rank 2, which ends last: the first has no room that is sure."""
    builder = lw.Builder("pattern", ranks=4, size=8000)
    builder.buffer("output", 8)
    builder.step()
    builder.put(0, 1, "output", 0, 1)
    builder.step()
    builder.put(0, 2, "output", 1, 5)
    builder.put(3, 1, "output", 2, 1)
    slack = lw.simulate(builder.finish(), "loggp", trace=True).slack.frame()
    ends = slack.set_index("from").end_us
    assert slack[slack["from"] == 0].slack_us.tolist() == [0, 0]
    # Rank 3 is bound by nothing but the end.
    assert slack[slack["from"] == 3].slack_us.tolist() == pytest.approx([ends[0].max() - ends[3]])


def test_links_are_those_of_the_simulation(result):
    machine = lw.machine("loggp", ranks=4)
    rows = link_rows(ask(machine, relay(), How(links=True)))
    links = result.links.frame()
    assert links.link.tolist() == [row["link"] for row in rows]
    assert (links.busy_us * 1e3).tolist() == pytest.approx([row["busy_ns"] for row in rows])
    assert links.busy_share.tolist() == pytest.approx([row["busy_share"] for row in rows])
    assert links.bytes.tolist() == [row["bytes"] for row in rows]


@pytest.mark.parametrize(("machine", "path"), [("loggp", None), ("wormhole-n150", "ideal"), ("cell-be", None)])
@pytest.mark.parametrize("algorithm", ["ring", "recursive_doubling_latency", "swing_bandwidth"])
def test_the_path_has_no_gap_and_no_slack(machine, path, algorithm):
    schedule = lw.schedule("allreduce", algorithm, ranks=8, size="4K")
    result = lw.simulate(schedule, machine, path=path, trace=True)
    path, slack = result.critical_path.frame(), result.slack.frame()
    assert path.start_us[0] == 0
    assert path.start_us.tolist()[1:] == path.end_us.tolist()[:-1]
    assert path.end_us.iloc[-1] == pytest.approx(result.time_us)
    causes = path[[name for name in path if name.endswith("_us")]].drop(columns=["start_us", "end_us"])
    assert causes.sum(axis=1).tolist() == pytest.approx((path.end_us - path.start_us).tolist())
    assert (slack.slack_us >= 0).all()
    assert slack.slack_us[path.operation].max() == 0


def test_the_path_of_repeated_runs_is_that_of_the_timed_one():
    schedule = lw.schedule("allreduce", "swing_bandwidth", ranks=64, size="4K", grid=(8, 8))
    result = lw.simulate(schedule, "wormhole-n150", path="metalium", trace=True)
    path, trace = result.critical_path.frame(), result.trace.frame()
    # Four of five runs are over when the timed one begins.
    assert 0.7 < path.start_us[0] / trace.end_us.max() < 0.9
    # The slowest rank since its own start need not be the last one.
    assert path.start_us[0] + result.time_us <= path.end_us.iloc[-1] + 1e-6 <= trace.end_us.max() + 1e-6


def test_a_rank_that_comes_late_is_on_the_path():
    result = lw.simulate(relay(), "loggp", skew="late:1:5us", trace=True)
    path = result.critical_path.frame()
    assert path[["operation", "kind", "from"]].values.tolist()[0] == [-1, "arrival", -1]
    assert path.waiting_us[0] == pytest.approx(5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"launch_ps": (1 << 64) - 1}, "launch_ps"),
        ({"buffer_sets": 0}, "0 sets hold nothing; at least 1 is needed"),
        ({"channels": 0}, "at least 1 is needed"),
        ({"operations_per_s": 0.0}, "0 is not a rate; it is above 0"),
        ({"operations_per_s": float("nan")}, "NaN is not a rate"),
    ],
)
def test_choices_that_make_no_sense_are_refused_before_anything_runs(wrong, message):
    with pytest.raises(lw.LinkwrightError, match=message):
        ask(lw.machine("loggp", ranks=4), lw.schedule("allreduce", "ring", ranks=4, size="4K"), How(**wrong))


@pytest.mark.parametrize("machine", ["loggp", "wormhole-n150", "dgx1-p100"])
def test_a_simulation_ends_where_it_passes_its_last_time(machine):
    on, schedule = lw.machine(machine), lw.schedule("allreduce", "ring", ranks=4, size="4K")
    whole = ask(on, schedule).time.ps
    assert ask(on, schedule, How(stop_ps=whole)).time.ps == whole
    if machine == "wormhole-n150":  # one run among several is timed
        assert ask(on, schedule, How(stop_ps=1)).time.ps == whole
        return
    with pytest.raises(lw.LinkwrightError, match="beyond the time at which it was to stop"):
        ask(on, schedule, How(stop_ps=whole - 1))


def test_what_was_not_asked_for_says_how_to_ask():
    plain = lw.simulate(relay(), "loggp")
    with pytest.raises(UsageError, match="simulate with links=True"):
        _ = plain.links
    for name in ("trace", "critical_path", "slack"):
        with pytest.raises(UsageError, match="simulate with trace=True"):
            getattr(plain, name)
    measured = lw.Result([])
    with pytest.raises(UsageError, match="is not a simulation of a described machine"):
        _ = measured.links


def test_a_notebook_shows_the_first_rows(result):
    assert repr(result.slack) == "<slack: 3 rows of operation, kind, from, to, bytes, end_us, slack_us>"
    assert result.links._repr_html_().count("<tr") == 1 + min(10, len(result.links))
