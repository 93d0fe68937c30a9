"""Links, ranks and the critical path over time: by hand, and what holds of any simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwright as lw
from linkwright.base.errors import UsageError
from linkwright.session import timeline

# The machine `loggp` in microseconds: L, o at either end, and G per byte.
L, END, G = 1.0, 0.2, 1 / 12.5e3

MACHINES = {
    "loggp": None, "crossbar": None, "wormhole-n150": None, "cell-be": None, "dgx-a100": None, "torus-2d": (4, 2),
}  # fmt: skip

# Times that the default path of the Wormhole runs an allreduce.
RUNS = 5


def simulate(machine, schedule, **options):
    grid = MACHINES[machine]
    return lw.simulate(schedule, lw.machine(machine, grid=grid) if grid else machine, **options)


def intervals(found, rank):
    mine = found.rank == rank
    names = [timeline.STATES[one] for one in found.state[mine]]
    return list(zip(names, found.begin_us[mine].tolist(), found.end_us[mine].tolist(), strict=True))


def test_one_message_by_hand():
    """12,501 B: the way out is busy for 12,500 G = 1 us from END on; delivered L later, handled END after that."""
    builder = lw.Builder("pattern", ranks=2, size=12504)
    builder.buffer("output", 1)
    builder.step()
    builder.put(0, 1, "output", 0, 1)
    found = simulate("loggp", builder.finish(), bins=8).timeline
    moving = 12503 * G
    delivered = END + moving + L
    assert found.span_us == pytest.approx(delivered + END)
    # 2.4 us in at most 8 bins of 2^k ps: 2^19 ps = 0.524 us, five of them.
    width = 2**19 / 1e6
    assert found.edges_us == pytest.approx(np.arange(6) * width)
    assert found.links == ("rank 0 out", "rank 1 out")
    assert found.bytes.tolist() == [12504, 0]
    begin, end = END, END + moving
    inside = [max(0, min(end, (i + 1) * width) - max(begin, i * width)) / width for i in range(5)]
    assert found.busy[0] == pytest.approx(inside, abs=1e-6)
    assert found.busy.dtype == np.float32
    assert not found.busy[1].any()
    assert intervals(found, 0) == [("send", 0, pytest.approx(delivered))]
    assert intervals(found, 1) == [
        ("wait", 0, pytest.approx(END)),
        ("receive", pytest.approx(END), pytest.approx(delivered + END)),
    ]
    path = found.path
    assert [timeline.SPENT[one] for one in path.spent] == ["overhead", "latency", "serialisation", "overhead"]
    assert set(path.source.tolist()) == {0}
    assert set(path.target.tolist()) == {1}
    assert path.slack_us.tolist() == [0] * 4


def test_who_combines_reduces():
    """Rank 1 adds what it gets; its arithmetic is the end of its time."""
    result = simulate("loggp", lw.schedule("reduce", "binomial", ranks=2, size="1M"), bins=64)
    found = result.timeline
    last = [timeline.STATES[one] for one in found.state][-1]
    states = {timeline.STATES[one] for one in found.state}
    assert "reduce" in states
    assert last in ("send", "receive", "reduce")
    reduced = found.state == timeline.STATES.index("reduce")
    spent = result.critical_path.frame().compute_us.sum()
    assert (found.end_us - found.begin_us)[reduced].sum() == pytest.approx(spent)


@settings(max_examples=25, deadline=None)
@given(
    machine=st.sampled_from(sorted(MACHINES)),
    shape=st.sampled_from(["allreduce/ring", "alltoall/pairwise", "allgather/ring", "broadcast/binomial"]),
    size=st.integers(1, 3000),
    bins=st.integers(1, 300),
    issue=st.sampled_from(["blocking", "window(3)", "unlimited"]),
)
def test_of_any_simulation(machine, shape, size, bins, issue):
    schedule = lw.schedule(*shape.split("/"), ranks=8, size=32 * size)
    plain = simulate(machine, schedule, issue=issue)
    result = simulate(machine, schedule, issue=issue, bins=bins)
    assert result.rows == plain.rows, "who watches changes nothing"
    found = result.timeline
    count = len(found.edges_us) - 1
    assert found.busy.shape == (len(found.links), count)
    assert count <= max(bins, 2)
    width = np.diff(found.edges_us)
    assert width == pytest.approx(width[0])
    assert found.edges_us[-1] >= found.span_us * (1 - 1e-12)
    # Bins add up to the busy time of their link, of all runs.
    links = result.links.columns
    runs = RUNS if machine == "wormhole-n150" and shape.startswith("allreduce") else 1
    busy = {name: runs * us for name, us in zip(links["link"], links["busy_us"], strict=True)}
    assert (found.busy.astype(float) @ width) == pytest.approx([busy[name] for name in found.links], rel=1e-5, abs=1e-6)
    assert found.busy.max(initial=0) <= 1.0001
    # One state at a time, from the arrival of a rank to its end.
    same = found.rank[1:] == found.rank[:-1]
    assert (found.end_us[:-1] == found.begin_us[1:])[same].all()
    assert (found.state[1:] != found.state[:-1])[same].all()
    assert set(found.rank.tolist()) == set(range(8))
    # The critical path has no holes.
    path = found.path
    assert path.begin_us[1:].tolist() == path.end_us[:-1].tolist()
    assert path.end_us[-1] == pytest.approx(found.span_us) if runs == 1 else path.end_us[-1] <= found.span_us


def test_a_launch_and_late_ranks_come_before_everything():
    schedule = lw.schedule("allreduce", "ring", ranks=4, size="64K")
    late = simulate("loggp", schedule, skew="list:3us,3us,3us,3us", bins=100).timeline
    first = late.edges_us[1:] <= 3
    assert first.sum() > 5
    assert not late.busy[:, first].any()
    assert late.begin_us.min() == 3


def test_what_was_not_asked_for():
    schedule = lw.schedule("allreduce", "ring", ranks=4, size="64K")
    with pytest.raises(UsageError, match="simulate with bins=200"):
        _ = lw.simulate(schedule, "loggp").timeline
    with pytest.raises(UsageError, match="bins: -1"):
        lw.simulate(schedule, "loggp", bins=-1)
    with pytest.raises(UsageError, match="at most 65536"):
        lw.simulate(schedule, "loggp", bins=10**6)
