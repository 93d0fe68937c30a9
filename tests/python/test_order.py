"""The order of ranks: optima derived by hand, brute force, files for launchers, refusals."""

import itertools
import random

import pytest

import linkwright as lw
from linkwright.advise.plans import host_order, traffic
from linkwright.advise.plans.order import Search
from linkwright_cases import invoke, status_of


@pytest.fixture(scope="module")
def two_nodes():
    return lw.machine("hgx-h100", nodes=2)


def rate(machine, a, b):
    network = machine.network()
    names, edges = network["nodes"]["name"], network["edges"]
    ends = zip(edges["a"], edges["b"], edges["bytes_per_s"], strict=True)
    return sum(found for one, other, found in ends if {names[one], names[other]} == {a, b})


def test_flows_of_a_ring_and_of_a_chain():
    # A ring of 4 sends 2 * 3/4 of S, a chain S each way.
    assert set(traffic.Group("data", (0, 1, 2, 3), 400).flows()) == {(0, 1, 600), (1, 2, 600), (2, 3, 600), (3, 0, 600)}
    assert set(traffic.Group("pipeline", (0, 2), 5).flows()) == {(0, 2, 5), (2, 0, 5)}


def test_ranks_are_numbered_with_the_tensor_group_fastest():
    axes = {name: traffic.Axis(2, 8) for name in traffic.AXES}
    groups = {(group.kind, group.ranks) for group in traffic.groups_of(axes)}
    assert {("tensor", (0, 1)), ("data", (0, 2)), ("data", (5, 7)), ("pipeline", (3, 7))} <= groups
    assert len(groups) == 12


def test_pairs_across_two_nodes_are_brought_into_one(two_nodes):
    # Rank r exchanges S = 64 MiB with rank r + 8: a ring of 2 moves 2 * S / 2 = S each way. In plain order the pair is
    # in two nodes, so S crosses a NIC. Within a node it crosses one link to the switch, which is the least there is.
    size = 64 << 20
    flows = traffic.flows_of([traffic.Group("group", (r, r + 8), size) for r in range(8)], 16)
    found = Search(two_nodes, flows, 16).run([])
    assert found.identity_peak_us == pytest.approx(1e6 * size / rate(two_nodes, "node 0 NIC 0", "leaf 0"))
    assert found.peak_us == pytest.approx(1e6 * size / rate(two_nodes, "node 0 GPU 0", "node 0 NVSwitch"))
    assert found.exact
    assert all(found.endpoints[r] // 8 == found.endpoints[r + 8] // 8 for r in range(8))
    assert found.time_us < found.identity_time_us


@pytest.mark.parametrize("seed", range(4))
def test_what_is_called_exact_is_the_best_of_all_orders(seed):
    machine, draw = lw.machine("dgx1-p100"), random.Random(seed)
    pairs = draw.sample(list(itertools.permutations(range(5), 2)), 7)
    search = Search(machine, {pair: draw.randrange(1 << 20, 1 << 26) for pair in pairs}, 5)
    found = search.run([])
    assert found.exact
    assert found.peak_us == pytest.approx(min(map(search.peak_us, itertools.permutations(range(5)))))


@pytest.mark.parametrize("seed", range(4))
def test_no_order_goes_below_the_bound(seed):
    machine, draw = lw.machine("gx8-p100"), random.Random(seed)
    pairs = draw.sample(list(itertools.permutations(range(6), 2)), 9)
    search = Search(machine, {pair: draw.randrange(1 << 20, 1 << 26) for pair in pairs}, 6)
    assert search.bound_us() <= min(map(search.peak_us, itertools.permutations(range(6)))) * (1 + 1e-9)


def test_the_search_is_deterministic_and_never_worse_than_plain_order(two_nodes):
    axes = {"tensor": traffic.Axis(4, 1 << 26), "data": traffic.Axis(4, 1 << 28)}
    flows = traffic.flows_of(traffic.groups_of(axes), 16)
    first, second = (Search(two_nodes, flows, 16, 3).run(traffic.nested_orders(axes)) for _ in range(2))
    assert first == second
    assert sorted(first.endpoints) == list(range(16))
    assert first.peak_us <= first.identity_peak_us
    assert first.bound_us <= first.peak_us


def test_nothing_is_moved_for_nothing(two_nodes):
    axes = {"data": traffic.Axis(16, 1 << 20)}
    flows = traffic.flows_of(traffic.groups_of(axes), 16)
    found = Search(two_nodes, flows, 16).run(traffic.nested_orders(axes))
    assert found.endpoints == tuple(range(16))


def test_ranks_sit_on_the_endpoints_that_take_part(two_nodes):
    # Two GPUs of each node. Rank r exchanges with r + 2, which plain order puts on the other node: the pair is brought
    # into one node, over the NVSwitch. A node holds two ranks, and no group is larger, so nothing must cross.
    seats = (0, 1, 8, 9)
    flows = traffic.flows_of([traffic.Group("group", (r, r + 2), 64 << 20) for r in range(2)], 4)
    found = Search(two_nodes, flows, 4, seats=seats).run([])
    assert sorted(found.endpoints) == list(seats)
    assert all(found.endpoints[r] // 8 == found.endpoints[r + 2] // 8 for r in range(2))
    assert found.peak_us == pytest.approx(1e6 * (64 << 20) / rate(two_nodes, "node 0 GPU 0", "node 0 NVSwitch"))
    assert found.exact


def test_plan_order_takes_ranks_per_node():
    answer = invoke("plan", "order", "--on", "hgx-h100", "--nodes", "2", "--ranks-per-node", "2", "--data", "4:1M")
    assert answer.out.splitlines()[1:5] == [
        f"{at:>6}  node {at // 2} GPU {at % 2}" for at in range(4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("openmpi", "rank 0=a slot=0\nrank 1=b slot=1\nrank 2=a slot=1\n"),
        ("mpich", "a:1\nb:1\na:1\n"),
        ("slurm", "a\nb\na\n"),
    ],
)
def test_a_file_for_a_launcher(form, text):
    assert host_order.text(form, host_order.places(["a", "b"], [0, 3, 1], 2)) == text


def test_the_command_reports_the_gain_and_writes_the_file(tmp_path):
    file = tmp_path / "ranks"
    options = ["--on", "hgx-h100", "--nodes", "2", "--hosts", "n[1-2]", "--as", "openmpi", "--out", str(file)]
    groups = [text for r in range(8) for text in ("--group", f"{r},{r + 8}:64M")]
    result = invoke("plan", "order", *options, *groups)
    assert result.status == 0, result.err
    assert "exact: no order loads its busiest link less" in result.out
    assert "all groups at once" in result.out
    assert len(file.read_text().splitlines()) == 16


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--data", "8"],
        ["--data", "0:1M"],
        ["--data", "8:1M", "--group", "0,1:1M"],
        ["--data", "16:1M"],
        ["--data", "4096:1M"],
        ["--data", "1:1M"],
        ["--group", "0,0:1M"],
        ["--group", "0:1M"],
        ["--data", "8:1M", "--as", "mpich"],
        ["--data", "8:1M", "--as", "mpich", "--hosts", "a,a", "--out", "f"],
        ["--data", "8:1M", "--as", "mpich", "--hosts", "a,b,c", "--out", "f"],
    ],
)
def test_wrong_usage_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status_of(["plan", "order", "--on", "dgx1-p100", *arguments]) == 2
    assert not list(tmp_path.iterdir())
