"""Schedules of what a library chooses: right, forced, compared, and continued to many nodes."""

import json
from collections import Counter
from dataclasses import replace

import pytest

import linkwright as lw
from linkwright import machines
from linkwright.ask import schedules
from linkwright.ask.question import Own
from linkwright.base import errors
from linkwright.libraries import library, nccl
from linkwright.libraries.nccl import lines, shapes
from linkwright.libraries.questions import collective_question
from linkwright.libraries.settings import Setup
from linkwright.libraries.times import predicted
from linkwright.machines import Variant
from linkwright_cases import invoke
from nodes import node_machine, node_text
from test_nccl_choice import A100, H100, MI300X, on

COLLECTIVES = ["allreduce", "allgather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter"]


def asked(collective, algorithm, ranks, size, **more):
    return collective_question("", collective, algorithm, ranks, size, "f32", "sum", **more)


def plan(machine, collective="allreduce", algorithm="nccl-2.27", size=1 << 20, **more):
    return library.plan(machine, asked(collective, algorithm, machine.ranks, size, **more))


def time(plan, machine):
    return schedules.time(plan.question, machine)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_plans_are_right(collective, nodes):
    machine = node_machine(nodes, gpus=4)
    for size in (8, 1 << 16, 1 << 23):
        made = plan(machine, collective, size=size)
        assert lw.verify(made.planned.schedule).exact
        assert (made.planned.schedule.collective, made.question.path) == (collective, made.planned.choice.protocol)
        assert time(made, machine)


@pytest.mark.parametrize("forced", ["ring/ll", "ring/ll128", "ring/simple", "tree/ll", "tree/ll128", "tree/simple"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_forced_plans_are_right(forced, nodes):
    machine = node_machine(nodes, gpus=4)
    made = plan(machine, algorithm=f"nccl-2.27/{forced}", size=1 << 22)
    assert lw.verify(made.planned.schedule).exact
    assert f"{made.planned.choice.algorithm}/{made.planned.choice.protocol}" == forced
    algorithm, protocol = forced.split("/")
    # The protocol, or the algorithm, is left to the library.
    assert plan(machine, algorithm=f"nccl-2.27/{algorithm}").planned.choice.algorithm == algorithm
    assert plan(machine, algorithm=f"nccl-2.27//{protocol}").planned.choice.protocol == protocol


@pytest.mark.parametrize(
    ("collective", "algorithm", "nodes"),
    [
        ("allreduce", "nvls", 1), ("allgather", "nvls", 1), ("reduce_scatter", "nvls", 1), ("allreduce", "nvls", 2),
        ("allreduce", "nvls_tree", 3), ("allreduce", "collnet_direct", 2), ("allreduce", "collnet_chain", 2),
    ],
)  # fmt: skip
def test_reductions_in_switches_are_right(collective, algorithm, nodes):
    machine = node_machine(nodes, gpus=4, modes=("ll128", "nvls", "collnet"))
    for size in (16, 1 << 22):
        made = plan(machine, collective, f"nccl-2.27/{algorithm}", size)
        assert lw.verify(made.planned.schedule).exact
        assert made.planned.choice.algorithm == algorithm
        assert time(made, machine)


def test_one_gpu_per_node_gathers_by_pat():
    machine = node_machine(4, gpus=1)
    made = plan(machine, "allgather", "nccl-2.27/pat", 1 << 20)
    assert lw.verify(made.planned.schedule).exact
    # One port of 48 GB/s: two rings at 24, doubled once connected.
    assert made.words == "PAT Simple, 4 channels"


def test_a_ring_of_one_node_by_hand():
    """A ring stands for all: 14 steps of an eighth of 1 GiB at 450 GB/s; then the last slice is copied."""
    made = plan(node_machine(), size=1 << 30)
    assert (made.planned.rings, made.planned.channels, made.words) == (1, 24, "Ring Simple, 24 channels")
    expected = (14 * (1 << 30) / 8 + 24 * (1 << 20)) / 450e9 * 1e6
    assert time(made, node_machine()).us == pytest.approx(expected, rel=0.005)


KNOWN = replace(H100, threads={"simple": 40e9, "ll": 10e9, "nvls": 20e9}, flag_ps=1e6)


def drain_us(seen, collective, size, *forced):
    choice = nccl.chooser("2.27", seen).choose(collective, size, *forced)
    return shapes.drain_ps(choice, seen, asked(collective, "nccl-2.27", seen.ranks, size)) / 1e6


def test_the_last_step_of_a_ring_is_copied_out_of_a_buffer():
    """An eighth of 1 GiB by 24 channels of 40 GB/s; by LL, of 10. Over nodes, a slice of 1 MiB for each channel."""
    assert drain_us(KNOWN, "allreduce", 1 << 30, "ring", "simple") == pytest.approx((1 << 27) / (24 * 40e9) * 1e6)
    assert drain_us(KNOWN, "allgather", 1 << 20, "ring", "ll") == pytest.approx((1 << 17) / (24 * 10e9) * 1e6)
    two = replace(on(H100, 2), threads=KNOWN.threads)
    channels = nccl.chooser("2.27", two).choose("allreduce", 1 << 30, "ring", "simple").channels
    slices = channels * (1 << 20) / 450e9 * 1e6
    assert drain_us(two, "allreduce", 1 << 30, "ring", "simple") == pytest.approx(slices)


def test_grouped_sends_copy_what_stays_and_post_what_leaves():
    """32 channels of 40 GB/s: an eighth of 8 MiB for itself, and from each of seven. Two nodes: 8 x 3 posts."""
    assert drain_us(KNOWN, "alltoall", 1 << 23) == pytest.approx((1 << 23) / (32 * 40e9) * 1e6)
    assert drain_us(on(H100, 2), "alltoall", 1 << 23) == pytest.approx(8 * 3 * 1.0)
    assert drain_us(on(A100, 2), "alltoall", 1 << 23) == pytest.approx(8 * 3 * 2.0)


def test_flags_of_the_switch_count_by_peer_and_round():
    """1 GiB in rounds of 16 x 128 KiB x 8 heads: 64 rounds of 8 us, and one of 16 x 20 GB/s for both ends."""
    one = 16 * (128 << 10) * 8
    assert drain_us(KNOWN, "allreduce", 1 << 30, "nvls") == pytest.approx(64 * 8 + one / (16 * 20e9) * 1e6)
    # Over two nodes ports of 8 x 50 GB/s hide what threads take, 52 us at 320 GB/s, but for 11 flags.
    two = replace(on(H100, 2), threads=KNOWN.threads, flag_ps=1e6, modes=KNOWN.modes - {"collnet"})
    assert drain_us(two, "allreduce", 1 << 30, "nvls_tree") == pytest.approx(64 * 11)
    # Ports of a quarter hide the flags as well.
    slow = replace(two, nic=two.nic / 4)
    assert drain_us(slow, "allreduce", 1 << 30, "nvls_tree") == 0


def test_rates_of_threads_come_from_the_machine():
    seen = nccl.hardware(lw.machine("hgx-h100"), tuple(range(8)))
    stated = {row["key"]: float(row["value"]) for row in lw.machine("hgx-h100").numbers() if "channel" in row["key"]}
    assert seen.threads["simple"] == stated["fabric.transport.nvlink_simple.channel"] * 1e9
    assert seen.threads["ll"] == stated["fabric.transport.nvlink_ll.channel"] * 0.5e9
    assert nccl.hardware(lw.machine("mi300x"), tuple(range(8))).threads["simple"] == 0


def test_rails_of_two_nodes_by_hand():
    """A ring for each NIC: 30 steps with a 128th of 1 GiB at 50 GB/s each."""
    machine = node_machine(2)
    made = plan(machine, algorithm="nccl-2.27/ring/simple", size=1 << 30)
    assert (made.planned.rings, made.planned.channels) == (8, 2)
    assert time(made, machine).us == pytest.approx(30 * (1 << 30) / 128 / 50e9 * 1e6, rel=0.01)


def neighbours(rings, closed):
    return Counter(
        (a, b) for ring in rings for a, b in zip(ring, [*ring[1:], *(ring[:1] if closed else ())], strict=False)
    )


@pytest.mark.parametrize("gpus", [2, 4, 6, 8, 16])
def test_no_two_rails_have_a_hop_in_common(gpus):
    hardware = replace(on(H100, 2), gpus=gpus, nics=gpus, nic_of=tuple(range(gpus)))
    rings = shapes.rails(hardware, 2 * gpus, nccl.chooser("2.27", on(H100, 2)).choose("allreduce", 1 << 30))
    # Each begins at the GPU of its NIC, and no hop inside a node belongs to two of them.
    assert [ring[0] for ring in rings] == list(range(gpus))[: len(rings)]
    inside = {pair: n for pair, n in neighbours(rings, True).items() if pair[0] // gpus == pair[1] // gpus}
    assert set(inside.values()) == {1}


@pytest.mark.parametrize("gpus", [2, 3, 4, 5, 8])
def test_rings_over_a_mesh_load_every_link_equally(gpus):
    joined = tuple(tuple(a != b for b in range(gpus)) for a in range(gpus))
    mesh = replace(MI300X, gpus=gpus, joined=joined)
    choice = replace(nccl.chooser("2.27", A100).choose("allreduce", 1 << 30), channels=64)
    found = neighbours(shapes.rails(mesh, gpus, choice), True)
    assert len(set(found.values())) == 1
    assert len(found) == gpus * (gpus - 1)


def test_four_gpus_on_two_nics_share_them():
    hardware = replace(on(H100, 2), gpus=4, nics=2, nic_of=(0, 0, 1, 1))
    rings = shapes.rails(hardware, 8, nccl.chooser("2.27", on(H100, 2)).choose("allreduce", 1 << 30))
    # 0 1 3 2 and 2 3 1 0: they enter at GPUs 0 and 2 and leave at GPUs 2 and 0.
    assert rings == ((0, 1, 3, 2, 4, 5, 7, 6), (2, 3, 1, 0, 6, 7, 5, 4))


def test_rings_enter_a_node_at_the_gpus_that_have_a_nic():
    """Polaris: GPU 1 and GPU 3 share a quarter of the processor with a NIC; 0 and 2 do not."""
    machine = lw.machine("a100-polaris", nodes=2)
    hardware = nccl.hardware(machine, tuple(range(machine.ranks)))
    assert (hardware.nics, hardware.far) == (2, "PHB")
    rings = shapes.rails(hardware, 8, nccl.chooser("2.18", hardware).choose("allreduce", 1 << 30))
    assert [(ring[0], ring[3]) for ring in rings] == [(1, 3), (3, 1)]


def test_small_messages_take_as_many_rails_as_channels():
    assert plan(node_machine(2), algorithm="nccl-2.27/ring/ll", size=8).planned.rings == 1


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [
        ("nccl-2.27/trees", "unknown algorithm of the library for allreduce `trees`; did you mean `tree`"),
        ("nccl-2.27/tree/ll12", "unknown protocol `ll12`; did you mean `ll128`"),
        ("nccl-2.27/nvls", "nvls: version 2.27 does not use it here; it can use tree/ll, "),
        ("nccl-2.27/tree/ll/x", "unknown plan"),
        ("nccl-2.17", "unknown plan"),
        ("nccl-2.3.5", "unknown plan"),
    ],
)
def test_what_the_library_does_not_have_is_refused(algorithm, problem):
    with pytest.raises(errors.LinkwrightError, match=problem):
        plan(node_machine(), algorithm=algorithm)


def test_any_version_can_be_asked_for():
    assert plan(node_machine(), algorithm="nccl-2.20").planned.choice.protocol == "ll"


# Many nodes.


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reduce_scatter"])
@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple"])
@pytest.mark.parametrize("size", [1 << 14, 1 << 22, 1 << 28])
def test_a_long_ring_is_the_line_through_two_short_ones(collective, protocol, size, monkeypatch):
    machine, name = node_machine(16, gpus=4), f"nccl-2.27/ring/{protocol}"
    whole = plan(machine, collective, name, size)
    monkeypatch.setattr(lines, "MOST_MESSAGES", 0)
    made = plan(machine, collective, name, size)
    assert (whole.planned.line, made.planned.line.times) == (None, 2 / 3)
    assert made.words.endswith("; rings of 6 and 12 nodes continued to 16")
    assert made.planned.schedule.ranks == 48
    assert time(made, machine).ps == pytest.approx(time(whole, machine).ps, rel=0.005)


@pytest.mark.parametrize(
    ("collective", "name", "nodes", "within"),
    [
        # A chain has the same stages in every slice, so that the line is exact.
        ("allreduce", "tree/simple", 1, 1e-4), ("broadcast", "ring/simple", 1, 1e-4),
        # Stages inside and between nodes differ.
        ("allreduce", "tree/ll128", 3, 0.03), ("allreduce", "tree/simple", 3, 0.03), ("reduce", "ring/simple", 2, 0.03),
    ],
)  # fmt: skip
def test_a_long_pipeline_is_the_line_through_two_short_ones(collective, name, nodes, within, monkeypatch):
    machine = node_machine(nodes, gpus=4)
    made = plan(machine, collective, f"nccl-2.27/{name}", 1 << 30)
    assert "pipelines of 32 and 64 slices continued to " in made.words
    monkeypatch.setattr(shapes, "MOST_SIMULATED", 512)
    whole = plan(machine, collective, f"nccl-2.27/{name}", 1 << 30)
    assert whole.planned.line is None
    assert time(made, machine).ps == pytest.approx(time(whole, machine).ps, rel=within)


@pytest.mark.parametrize("name", ["tree/simple", "tree/ll128"])
def test_a_slice_adds_the_same_over_many_nodes_as_over_few(name, monkeypatch):
    machine = node_machine(32, gpus=2)
    monkeypatch.setattr(shapes, "MOST_SIMULATED", 1024)
    whole = plan(machine, "allreduce", f"nccl-2.27/{name}", 1 << 28)
    assert whole.planned.line is None
    monkeypatch.setattr(shapes, "MOST_MESSAGES", 0)
    made = plan(machine, "allreduce", f"nccl-2.27/{name}", 1 << 28)
    assert "pipelines of 32 and 64 slices over 8 nodes continued to " in made.words
    assert made.words.endswith(" over 32")
    assert time(made, machine).ps == pytest.approx(time(whole, machine).ps, rel=0.07)
    own = made.question.own
    assert Own.from_json(json.loads(json.dumps(own.to_json()))).to_json() == own.to_json()
    assert len(own.continued.others) == 2


@pytest.mark.parametrize(("collective", "size"), [("allreduce", "8G"), ("alltoall", "8M")])
def test_what_is_continued_takes_the_first_seats(collective, size):
    words = ("--on", "hgx-h100", "--nodes", "40", "--ranks-per-node", "4", "--sizes", size)
    answer = invoke("simulate", collective, *words)
    assert answer.status == 0, answer.err


def test_a_long_alltoall_is_the_line_through_two_short_ones(monkeypatch):
    machine = node_machine(16, gpus=4)
    whole = plan(machine, "alltoall", size=1 << 22)
    monkeypatch.setattr(lines, "MOST_SENDS", 0)
    made = plan(machine, "alltoall", size=1 << 22)
    assert (whole.planned.line, made.planned.line.times) == (None, 2 / 3)
    assert made.words.endswith("; alltoalls of 6 and 12 nodes continued to 16")
    assert time(made, machine).ps == pytest.approx(time(whole, machine).ps, rel=1e-4)


@pytest.mark.parametrize("size", [1 << 24, 1 << 32])
@pytest.mark.parametrize("network", ["slingshot-11", "ndr-fat-tree,gpudirect=0", "ndr-fat-tree"])
def test_nothing_that_is_continued_beats_its_limit(network, size):
    machine = machines.load("hgx-h100", Variant(16, network))
    for forced in ("tree/simple", "nvls_tree/simple"):
        made = plan(machine, algorithm=f"nccl-2.30/{forced}", size=size)
        limits = lw.limits("allreduce", machine, ranks=machine.ranks, size=size, path=made.question.path)
        assert time(made, machine).ps >= max(limit.time.ps for limit in limits)


def test_rows_of_a_long_ring_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MOST_MESSAGES", 0)
    machine, rows = tmp_path / "nodes.toml", tmp_path / "rows.json"
    machine.write_text(node_text(16, gpus=4), encoding="utf-8")
    words = ("--on", str(machine), "--sizes", "1M", "-a", "nccl-2.27/ring/simple", "--output", str(rows))
    assert invoke("simulate", "allreduce", *words).status == 0
    found = {row["metric"]: row for row in json.loads(rows.read_text(encoding="utf-8"))["rows"]}
    assert found["time"]["reason"].startswith("Ring Simple, 16 channels; rings of 6 and 12 nodes continued to 16")
    assert "hops_max" not in found
    made = plan(node_machine(16, gpus=4), algorithm="nccl-2.27/ring/simple")
    assert found["time"]["value"] == pytest.approx(time(made, node_machine(16, gpus=4)).ns)
    limit = lw.limits("allreduce", machine, ranks=64, size="1M", path=found["time"]["path"])[0]
    assert (found["time"]["limit"], found["time"]["limit_name"]) == (limit.time.ns, limit.name)


def test_a_plan_in_another_process(monkeypatch):
    monkeypatch.setattr(lines, "MOST_MESSAGES", 0)
    own = plan(node_machine(16, gpus=2), algorithm="nccl-2.27/ring").question.own
    again = Own.from_json(json.loads(json.dumps(own.to_json())))
    assert again.continued.shorter.text() == own.continued.shorter.text()
    assert again.to_json() == own.to_json()


# What users see.


def test_the_choice_stands_beside_what_was_not_chosen(tmp_path):
    machine = tmp_path / "node.toml"
    machine.write_text(node_text(), encoding="utf-8")
    shown = invoke("simulate", "allreduce", "--on", str(machine), "--sizes", "1M", "--alternatives")
    assert shown.status == 0
    lines_of = [line.split()[:2] for line in shown.out.splitlines() if not line.startswith("#")]
    assert [name for _, name in lines_of if name == "nccl-2.27"] == ["nccl-2.27"]
    assert len(lines_of) == 1 + 6
    told = " ".join(line.removeprefix("#").strip() for line in shown.out.splitlines()[-3:])
    assert "1M: nccl-2.27 picks Ring LL, 24 channels; " in told


@pytest.mark.parametrize("words", [("-a", "ring"), ()])
def test_alternatives_need_a_library(words):
    shown = invoke("simulate", "allreduce", "--on", "loggp", "--sizes", "1K", "--alternatives", *words)
    assert shown.status == 2
    assert "--alternatives: no " in shown.err


def test_a_machine_of_parts_states_its_library():
    assert library.algorithms(lw.machine("hgx-h100"), "alltoall")[0] == "nccl-2.27"
    assert library.plan(lw.machine("hgx-h100"), asked("allreduce", "nccl-2.27", 8, 1 << 20)).words.endswith(
        "24 channels"
    )
    assert (
        library.plan(lw.machine("mi300x"), asked("allreduce", "rccl-2.22", 8, 1 << 30)).words
        == "Ring Simple, 56 channels"
    )


@pytest.mark.parametrize(("missing", "rate"), [((), 96), (("NIC 3",), 72), (("NIC 2", "NIC 3"), 48)])
def test_rings_share_the_ports_that_are_left(missing, rate):
    """A ring leaves a node by a port of its own: on a dragonfly nothing forwards it to another."""
    machine = machines.load("gh200-alps", Variant(4, "slingshot-11", missing))
    size = 1 << 30
    setup = Setup("gh200-alps", 4, 4, "slingshot-11", "nccl-2.23/ring/simple", "allreduce")
    time = predicted(machine, setup, size).time_us
    assert size / time / 1e3 * 2 * 15 / 16 == pytest.approx(rate, rel=0.03)


# What threads carry between nodes.


@pytest.mark.parametrize(("nodes", "channel"), [(2, 42.8), (4, 24.0), (16, 24.0)])
def test_a_tree_carries_what_its_channels_do(nodes, channel):
    """Eight B200 have eight channels of a tree, whose cap is a bus rate."""
    machine = machines.load("b200", Variant(nodes, "ndr-fat-tree"))
    made = plan(machine, algorithm="nccl-2.30/tree/simple", size=1 << 34)
    bus = 2 * (machine.ranks - 1) / machine.ranks
    assert made.planned.across == pytest.approx(1e9 * channel / bus)
    assert bus * (1 << 34) / time(made, machine).s == pytest.approx(8e9 * channel, rel=0.03)


@pytest.mark.parametrize(
    ("version", "ranks_by_channels"),
    [
        # 48.5 GB/s of a port are four channels of 14 GB/s, halved while 16 channels do not take eight ranks each.
        ("2.30", {16: 4, 32: 4, 64: 2, 128: 1}),
        ("2.28", {16: 2, 32: 2, 64: 1, 128: 1}),
        ("2.18", {16: 2, 128: 2}),
    ],
)
def test_channels_of_a_pair_over_a_network_follow_the_version(version, ranks_by_channels):
    for ranks, channels in ranks_by_channels.items():
        machine = machines.load("b200", Variant(ranks // 8, "ndr-fat-tree"))
        made = plan(machine, "alltoall", f"nccl-{version}", 1 << 30).planned
        assert (made.channels, made.across) == (channels, channels * 14_000_000_000)


def test_a_message_inside_a_node_is_not_held_back():
    machine = machines.load("hgx-h100", Variant(2, "ndr-fat-tree"))
    schedule, inside = lw.schedule("broadcast", "linear", ranks=2, size="1M"), schedules.How(across=10**5)
    free = schedules.ask(machine, schedule).time
    assert schedules.ask(machine, schedule, inside).time == free
    assert schedules.ask(machine, schedule, inside.but(placement=[0, 8])).time.s > 1
