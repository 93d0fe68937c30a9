"""Two nodes with eight P100s: stated numbers within their targets, exact ones exact, rings as NCCL builds them."""

import time
from pathlib import Path

import pytest

import linkwright as lw
import linkwright_evidence as studies
from linkwright import _native
from linkwright.ask.answer import ask
from linkwright.base import errors
from linkwright.base.stats.clusters import clusters
from linkwright.libraries import nccl
from linkwright.libraries.nccl.search import closes
from linkwright.machines import load
from linkwright_evidence import scoring
from linkwright_evidence.gpu_nodes import ablation, collectives, holdout
from linkwright_evidence.gpu_nodes.machine_pair import Machines
from linkwright_evidence.gpu_nodes.networks import network

ROOT = Path(__file__).parent.parent.parent

# Table -> largest relative error of its scored cells.
TARGETS = {
    "copies": 0.03,
    "Tartan, time, neighbour": 0.03,
    "Tartan, time, staged": 0.10,
    "Tartan, rate, bi routed": 0.16,
    "NCCL 2": 0.10,
    "structure": 0.0,
}


@pytest.fixture(scope="module")
def outcome():
    return studies.reproduce("gpu-nodes")


@pytest.fixture(scope="module")
def dgx1():
    return load("dgx1-p100")


def test_stated_numbers_meet_their_targets(outcome):
    largest = {row["table"]: row.get("max") for row in outcome.summary()}
    assert {table: largest[table] for table in TARGETS if largest[table] > TARGETS[table]} == {}


def test_claims_hold(outcome):
    training = ["13", "13b", "14", "14b", "15", "15b", "16", "17", "19", "20", "20b", "21", "F1"]
    others = [*(f"{n:02}" for n in range(1, 11)), "10b", "11", "12", "18"]
    assert [claim.id for claim in outcome.claims] == [f"GN-{key}" for key in (*others, *training)]
    # A lead of 2 % for 10, a gap that no known cost makes, gaps that no rule gives, a knee too small to be seen, and
    # wins that do not come.
    failed = ["GN-10b", "GN-13b", "GN-17", "GN-20b", "GN-21"]
    assert [claim.id for claim in outcome.claims if claim.holds is False] == failed
    assert [claim.id for claim in outcome.claims if claim.holds is None] == ["GN-13", "GN-15", "GN-15b"]


def test_what_was_given_is_not_scored(outcome):
    roles = {table: {c.role for c in outcome.cells if c.table == table} for table in ("workloads", "host copies")}
    assert roles == {"workloads": {"input"}, "host copies": {"input"}}
    assert {c.role for c in outcome.cells if c.table in ("allreduce", "Tartan, time, routed")} == {"fitted"}
    # GPU 4 of five: what the library does there was concluded from this number.
    assert [c.keys["gpus"] for c in outcome.cells if c.table == "NCCL 2" and c.role == "fitted"] == [5]
    assert sum(row["status"] == "fitted" for row in outcome.tuned) == 9


def test_every_stated_number_has_a_row(outcome):
    assert sum(cell.table == "facts" for cell in outcome.cells) == 250
    headlines = outcome.tables["headlines"]
    assert all(row["sign"] == "right" for row in headlines)
    # The steps of AlexNet rest on compute times that nobody printed.
    assert {row["headline"].partition(" on")[0] for row in headlines if row["within_15_percent"] == "no"} == {"AlexNet"}


def test_the_library_does_not_stage_as_the_driver_does():
    shipped = Machines.load()
    assert 0 < collectives.medium_lead(shipped) < 0.1
    # In chunks of 1 MiB every slice would be stored whole.
    driver = shipped.changed({"dgx1-p100": {"fabric.transport.shared.chunk": "1024"}})
    assert collectives.medium_lead(driver) > 0.12
    assert collectives.medium_lead(shipped, "ring") > 0.85


def test_the_anomaly_would_show_in_another_order():
    machine = Machines.load().gx8
    slow = machine.with_value("fabric.pair.GPU 0 -> GPU 5.rate", "0.8")
    ring = lw.schedule("allreduce", "ring", ranks=8, size="1M", rings=[[0, 5, 1, 2, 3, 4, 6, 7]])
    times = [lw.simulate(ring, each, path="flags").time_us for each in (machine, slow)]
    assert times[1] > 2 * times[0]


def test_without_a_mechanism_the_cells_are_worse(outcome):
    shipped = Machines.load()
    for name, table in (
        ("the sockets share one rate", "Tartan, rate, bi routed"),
        ("flat start of small staged copies", "Tartan, time, staged"),
    ):
        worse = ablation.cells(shipped.changed(ablation.MECHANISMS[name]))
        (before, after) = (
            next(s.median for s in scoring.scores(cells) if s.name == table) for cells in (outcome.cells, worse)
        )
        assert after > before + 0.005
    # What is taken away is a number or a word of the file that is named.
    for changes in ablation.MECHANISMS.values():
        for machine, keys in changes.items():
            assert keys.keys() <= {row["key"] for row in load(machine).numbers()}


def test_small_cases_give_the_numbers_of_all():
    found = holdout.results(Machines.load(), lambda what, done, total: None)
    numbers = {row["number"].rpartition(".")[2]: row for row in found["numbers_from_small"]}
    assert numbers["efficiency"]["from_small"] == pytest.approx(numbers["efficiency"]["from_all"], rel=0.01)
    assert numbers["rate"]["from_small"] == pytest.approx(numbers["rate"]["from_all"], rel=0.06)
    assert all(row["largest_percent"] < 10 for row in found["from_small_to_large"])


def test_a_ring_search_without_rings_falls_back():
    chain = [[int(abs(a - b) == 1) for b in range(4)] for a in range(4)]
    assert [closes(version, chain) for version in nccl.EARLY] == [True, False]
    assert closes("2.3.5", [[0] * 4 for _ in range(4)])  # without links it looks for none
    assert nccl.rings("1.3.4", chain) == [[0, 1, 2, 3]]
    assert nccl.rings("2.3.5", chain) == [[0, 1, 2, 3]]
    lonely = [[0] * 4 for _ in range(4)]
    distance = [[0, 3, 1, 3], [3, 0, 3, 1], [1, 3, 0, 3], [3, 1, 3, 0]]
    assert nccl.rings("2.3.5", lonely, distance) == [[0, 2, 1, 3]]


def test_few_ranks_search_with_doubled_capacity(dgx1):
    four = [row[:4] for row in nccl.nvlinks(dgx1)[:4]]
    found = nccl.rings("2.3.5", four)
    assert len(found) == 2 * len({tuple(ring) for ring in found[: len(found) // 2]})
    for ring in found:
        assert sorted(ring) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("size", "ranks", "rings", "used"),
    # By hand: 64 threads carry 8 x 64 x N bytes per ring.
    [(4096, 8, 8, 1), (8192, 8, 8, 2), (16_384, 8, 8, 4), (2048, 4, 4, 1), (1 << 20, 8, 8, None)],
)
def test_low_latency_mode(size, ranks, rings, used):
    assert nccl.low_latency(size, ranks, rings) == used


def test_chunks_of_both_versions():
    assert nccl.plan("1.3.4", "allreduce", 240_000_000, 8).chunk_bytes == 1 << 20
    assert nccl.plan("2.3.5", "allreduce", 240_000_000, 8, 8).chunk_bytes == 2 << 20
    # 1 MiB over 8 ranks: a block of 128 KiB is one chunk of two slices.
    assert nccl.plan("1.3.4", "allreduce", 1 << 20, 8).slices == 2


def test_every_collective_goes_round_the_rings(dgx1):
    for collective in ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter"):
        for ranks in range(2, 9):
            links = [row[:ranks] for row in nccl.nvlinks(dgx1)[:ranks]]
            rings = nccl.rings("2.3.5", links)
            schedule = lw.schedule(collective, "ring", ranks=ranks, size="1M", rings=rings)
            assert lw.verify(schedule).exact
            assert lw.simulate(schedule, dgx1, path="flags", issue="window(2)").time_us > 0


def test_clusters_by_gap():
    found = clusters({"a": 10.0, "b": 10.2, "c": 7.0}, gap=0.05)
    assert [group.members for group in found] == [("b", "a"), ("c",)]


def test_chunks_taken_together_cost_less_and_say_the_same(dgx1):
    schedule = _native.Schedule.build("allreduce/ring", 8, 60_000_000)
    small = dgx1.with_value("fabric.transport.staged.chunk", "0.00390625")
    seconds, times = [], []
    for machine in (small, small.with_value("fabric.chunks", '"each"')):
        # The limit of all links is found once for each machine.
        ask(machine, _native.Schedule.build("allreduce/ring", 8, 8))
        begin = time.thread_time()
        times.append(ask(machine, schedule).time.ps)
        seconds.append(time.thread_time() - begin)
    assert times[0] == pytest.approx(times[1], rel=0.01)
    # 0.5 and 690 ms of this thread.
    assert 20 * seconds[0] < seconds[1]


@pytest.mark.parametrize("size", [1 << 16, 1 << 22, 100_000_000])
@pytest.mark.parametrize("pair", [(0, 1), (0, 5), (8, 0)])
def test_chunks_by_themselves_take_as_long(dgx1, pair, size):
    each = dgx1.with_value("fabric.chunks", '"each"')
    (one,), (other,) = (_native.quiet(machine, [pair], size) for machine in (dgx1, each))
    assert one[1] == pytest.approx(other[1], rel=0.01)


def test_a_node_of_ones_own():
    """Forty lines; another trunk, other times."""
    path = ROOT / "examples" / "eight_gpus.toml"
    text = path.read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 40
    schedule = lw.schedule("allreduce", "ring", ranks=8, size="64M")
    own = lw.simulate(schedule, str(path)).time_us
    narrow = _native.Machine.parse(text.replace("value = 100, unit", "value = 10, unit"), "narrow.toml")
    assert lw.simulate(schedule, narrow).time_us > 4 * own


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"left - GPU 0..3", ', '"left - GPU 1..3", ', "GPU 1 is cut off: no links lead from it to GPU 0; add an edge"),
        ("value = 50, unit", "value = -50, unit", "negative"),
        (
            "bandwidth = { value = 50",
            "bandwith = { value = 50",
            "missing key `bandwidth`; did you mean it by `bandwith`",
        ),
        ('"left - right"', '"left - rigth"', "no node `rigth`"),
        ('["port", "trunk"]', '["port", "trunc"]', "no class of links `trunc`; known: port, trunk"),
    ],
)
def test_mistakes_in_a_node_name_the_cure(old, new, problem):
    text = (ROOT / "examples" / "eight_gpus.toml").read_text()
    assert old in text
    with pytest.raises(errors.LinkwrightError, match=problem):
        _native.Machine.parse(text.replace(old, new), "own.toml")


def test_mistakes_in_a_run_name_the_cure(dgx1):
    pair = lw.schedule("broadcast", "linear", ranks=8, size="1M")
    with pytest.raises(errors.LinkwrightError, match="no transport of network `dma` leads from GPU 0 to GPU 5"):
        lw.simulate(pair, dgx1, path="dma")
    with pytest.raises(errors.LinkwrightError, match="ring 0 does not visit rank 3"):
        lw.schedule("allreduce", "ring", ranks=4, size="1M", rings=[[0, 1, 2]])
    with pytest.raises(errors.LinkwrightError, match="use fewer ranks or a larger machine"):
        lw.simulate(lw.schedule("allreduce", "ring", ranks=9, size="9K"), dgx1)


VECTOR = [[0, 1, 2, 3, 7, 5, 6, 4], [0, 2, 6, 7, 4, 5, 1, 3], [0, 3, 1, 5, 4, 7, 6, 2], [0, 4, 6, 5, 7, 3, 2, 1]]


def test_the_ring_search_gives_the_published_rings(dgx1):
    links = nccl.nvlinks(dgx1)
    assert nccl.rings("2.3.5", links) == VECTOR * 2
    assert nccl.rings("1.3.4", links) == [list(range(8))]


def test_workload_arithmetic():
    # 1,204,224 x + 1,155,113 activations and 46,211 x + 74,857 parameters with x = 8 blocks.
    resnet, alexnet, googlenet = network("resnet", 8), network("alexnet"), network("googlenet")
    assert (resnet.activations, resnet.parameters) == (10_788_905, 444_545)
    assert alexnet.intensity(256) / 8 == pytest.approx(0.7467, abs=1e-4)
    assert googlenet.intensity(256) / alexnet.intensity(256) == pytest.approx(84.16, abs=0.01)
    assert alexnet.gradient_bytes == 240_000_000
