"""Traces for Perfetto: one derived by hand, and what holds of any."""

import itertools

import pytest

import linkwright as lw
import perfetto_reader
from linkwright import machines
from linkwright.ask.answer import How, ask

# The machine `loggp` in nanoseconds: L, o at either end, and G per byte.
L, END, G = 1000, 200, 0.08

CASES = [
    ("loggp", "allreduce", "ring", 8),
    ("wormhole-n150", "allreduce", "recursive_doubling_latency", 64),
    ("cell-be", "alltoall", "pairwise", 8),
    ("torus-2d", "allgather", "ring", 9),
    ("crossbar", "broadcast", "multicast", 6),
    ("dgx-a100", "allreduce", "ring", 8),
]


def simulated(tmp_path, machine, schedule, name="one.pftrace", **options):
    """The file of a trace, and the answer of the simulation."""
    described = machines.load(machine)
    if described.open_size == "grid":
        described = described.with_grid(3, 3)
    elif described.open_size:
        described = described.with_endpoints(schedule.ranks)
    file = tmp_path / name
    answer = ask(described, schedule, How(trace=True, operations=True, links=True, **options))
    answer.trace(str(file))
    return file, answer


def put(size):
    """One message of `size` bytes from rank 0 to rank 1."""
    builder = lw.Builder("pattern", ranks=2, size=size)
    builder.buffer("output", 1)
    builder.step()
    builder.put(0, 1, "output", 0, 1)
    return builder.finish()


def test_one_message_by_hand(tmp_path):
    """1004 B: o = 200 ns, then 1003 G = 80.24 ns and L until delivery, o for the receiver."""
    file, _ = simulated(tmp_path, "loggp", put(1004))
    trace = perfetto_reader.read(file)
    injected = END
    delivered = injected + int(1003 * G) + L
    [transfer] = trace.of("transfers", "rank 0")
    assert (transfer.name, transfer.start, transfer.end) == ("put 0 to 1", injected, delivered)
    assert transfer.arguments == {"operation": 0, "step": 1, "bytes": 1004}
    [issue] = trace.of("lane 0", "rank 0")
    assert (issue.start, issue.end) == (0, injected)
    assert [(one.name, one.start, one.end) for one in trace.of("rank 0")] == [("send", 0, delivered)]
    assert [(one.name, one.start, one.end) for one in trace.of("rank 1")] == [
        ("wait", 0, injected),
        ("receive", injected, delivered + END),
    ]
    assert [(a.name, b.name, a.start, b.start) for a, b in trace.flows] == [("put 0 to 1", "put 0 to 1", 0, injected)]
    path = trace.of("critical path")
    assert [(one.depth, one.name, one.start, one.end) for one in path] == [
        (0, "put 0 to 1", 0, delivered + END),
        (1, "overhead", 0, injected),
        (1, "latency", injected, injected + L),
        (1, "serialisation", injected + L, delivered),
        (1, "overhead", delivered, delivered + END),
    ]
    # The way out of rank 0 is busy for 80.24 ns from 200 on; no bin of two to some power of ps is shorter than 4 ns.
    [(track, values)] = trace.counters.items()
    assert trace.names[track] == "rank 0 out"
    assert trace.names[trace.parents[track]] == "links"
    assert values[0] == (0, 0.0)
    assert values[-1][1] == 0.0
    assert max(value for _, value in values) == 100.0
    assert injected - 9 <= values[1][0] <= injected


@pytest.mark.parametrize(("machine", "collective", "algorithm", "ranks"), CASES)
def test_what_a_trace_tells_is_what_was_simulated(tmp_path, machine, collective, algorithm, ranks):
    grid = (3, 3) if machine == "torus-2d" else None
    schedule = lw.schedule(collective, algorithm, ranks=ranks, size=ranks * 512, grid=grid)
    file, answer = simulated(tmp_path, machine, schedule)
    operations, links, lowered = answer.operations, answer.links, answer.schedule
    trace = perfetto_reader.read(file)
    table = lowered.operations()
    moves = [at for at, kind in enumerate(table["kind"]) if kind not in ("local", "compute", "fence")]
    transfers = {one.arguments["operation"]: one for one in trace.of("transfers")}
    assert sorted(transfers) == moves
    for at in moves:
        assert transfers[at].end == operations.delivered_ps[at] // 1000
        assert transfers[at].start >= operations.issued_ps[at] // 1000
        assert transfers[at].arguments["bytes"] == table["bytes"][at]
    for rank in range(ranks):
        states = trace.of(f"rank {rank}")
        assert {one.depth for one in states} == {0}, "one state at a time"
        assert all(one.end == after.start for one, after in itertools.pairwise(states))
    path = [one for one in trace.of("critical path") if one.depth == 0]
    assert path[-1].end == int(answer.path.end_ps[-1]) // 1000
    assert all(one.end == after.start for one, after in itertools.pairwise(path))
    busy = {name: ps for name, ps in zip(links.name, links.busy_ps, strict=True) if ps}
    assert {trace.names[track] for track in trace.counters} == set(busy)


def fan_out(ranks):
    """Rank 0 sends to each other rank, all at once."""
    builder = lw.Builder("pattern", ranks=ranks, size=1000)
    builder.buffer("output", 1)
    builder.step()
    for rank in range(1, ranks):
        builder.put(0, rank, "output", 0, 1)
    return builder.finish()


def test_transfers_at_once_have_lines_of_their_own(tmp_path):
    """Injections are 200 ns apart, and data take 999 G + L = 1079.92 ns, so up to six are under way."""
    file, _ = simulated(tmp_path, "loggp", fan_out(20), issue="unlimited")
    trace = perfetto_reader.read(file)
    transfers = trace.of("transfers", "rank 0")
    assert len(transfers) == 19
    assert len({one.track for one in transfers}) == 6
    assert {one.depth for one in transfers} == {0}


def test_the_same_simulation_gives_the_same_bytes(tmp_path, monkeypatch):
    files = []
    for threads in ("1", "3"):
        monkeypatch.setenv("RAYON_NUM_THREADS", threads)
        files.append(simulated(tmp_path, "loggp", fan_out(9), f"{threads}.pftrace", issue="unlimited")[0])
    assert files[0].read_bytes() == files[1].read_bytes()
