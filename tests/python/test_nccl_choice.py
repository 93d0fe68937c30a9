"""What NCCL and RCCL would choose: constants, the search, predictions, choices. Algebra stands beside the numbers."""

import timeit
from dataclasses import replace

import pytest

from linkwright.ask.question import Collective
from linkwright.base import errors
from linkwright.libraries import nccl, rccl
from linkwright.libraries.nccl import constants, shapes
from linkwright.libraries.nccl.hardware import Hardware
from nodes import node_machine, node_text

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ALL = frozenset({"simple", "ll", "ll128", "nvls"})
H100 = Hardware(
    gpu="sm90", host="intel", nodes=1, gpus=8, switched=True, peer=450e9, near="NVL", pcie=63e9, nics=0, nic=0.0,
    far="SYS", nic_of=(), joined=(), modes=ALL,
)  # fmt: skip
A100 = replace(H100, gpu="sm80", host="amd", peer=300e9, pcie=31.5e9, modes=ALL - {"nvls"})
B200 = replace(H100, gpu="sm100", peer=900e9)
SOCKETS = replace(
    H100, gpu="sm80", nodes=2, gpus=1, switched=False, peer=0.0, nics=1, nic=2.4e9, far="PHB", nic_of=(0,),
    modes=ALL - {"nvls"},
)  # fmt: skip


def on(hardware, nodes, nic=50e9, **more):
    return replace(
        hardware, nodes=nodes, nics=hardware.gpus, nic=nic, far="PIX", nic_of=tuple(range(hardware.gpus)), **more
    )


def graph(version, hardware, name="ring"):
    found = nccl.chooser(version, hardware).tuner.graphs[name]
    return found.channels, found.intra, found.inter


def words(version, hardware, size, collective="allreduce"):
    return nccl.chooser(version, hardware).choose(collective, size).words


# The graph search.


@pytest.mark.parametrize(
    ("version", "hardware", "ring", "channels"),
    [
        # 12 x 20 = 240 = 6 x 40, all there is: doubled at half the speed.
        ("2.27", A100, (12, 20, 20), 24),
        # 18 x 20.6 = 370.8: 6 x 60 = 360, of which 7 x 50, 9 x 40 and 12 x 30 are not more; doubled.
        ("2.27", H100, (12, 30, 30), 24),
        # 2.18 counts 20 for a link: 360 = 6 x 60.
        ("2.18", H100, (12, 30, 30), 24),
        # 18 x 40.1 = 721.8: 8 x 90 = 720; doubled.
        ("2.27", B200, (16, 45, 45), 32),
        # Eight ports of 50 behind PCIe of 48; 370.8 bear 7 x 48 = 336 or 8 x 45 = 360. Faster than 25, but not than 50.
        ("2.27", on(H100, 2), (8, 45, 45), 16),
        # Eight ports of 25 behind PCIe of 24: 8 x 24, less than 25 each.
        ("2.27", on(A100, 4, 25e9), (8, 24, 24), 16),
        # One rank per node: the port alone, 2.4 GB/s.
        ("2.27", SOCKETS, (1, 2.4, 2.4), 2),
    ],
)
def test_the_search_of_known_nodes(version, hardware, ring, channels):
    assert graph(version, hardware) == ring
    assert nccl.chooser(version, hardware).tuner.channels == channels


def test_heads_in_the_switch():
    # Each of eight heads loads its own link twice: 9 x 40 = 360 of 370.8; 9 x 80 = 720 of 721.8.
    # The speed between nodes, which nothing limits here, is raised up to the fastest, or the first from twice that on.
    assert graph("2.27", H100, "nvls") == (8, 40, 60)
    assert graph("2.27", B200, "nvls") == (8, 80, 90)
    # Over the network a head may be as fast as its port: 48.
    assert graph("2.27", on(H100, 4), "nvls_tree") == (8, 40, 48)
    assert "nvls" not in nccl.chooser("2.27", A100).tuner.graphs
    assert "nvls" not in nccl.chooser("2.27", replace(H100, gpus=2)).tuner.graphs


def test_nodes_without_their_own_links_go_over_the_host():
    l40s = replace(H100, gpu="sm89", peer=0.0, switched=False, near="SYS", pcie=31.5e9, modes=ALL - {"nvls"})
    # The link between two Intel processors, 22 from 2.27 on, of which a peer gets 5/6: 18.3, so 18.
    assert graph("2.27", l40s) == (1, 18, 18)
    # Under one PCIe switch Gen4 counts 24: 2 x 12 is more than 20.
    assert graph("2.27", replace(l40s, near="PIX")) == (2, 12, 12)


# Predictions.


def rate(version, hardware, algorithm, protocol, collective="allreduce"):
    return nccl.chooser(version, hardware).table(collective)[algorithm, protocol]


@pytest.mark.parametrize(
    ("algorithm", "protocol", "latency", "bandwidth"),
    [
        # 14 hops; 360 GB/s on the bus, of which 8/14 is the vector. LL: half, at most 141.
        ("ring", "ll", 6.6 + 14 * 0.6, 141 * 8 / 14),
        ("ring", "ll128", 14 + 14 * 1.9, 0.92 * 360 * 8 / 14),
        ("ring", "simple", 8.4 + 14 * 3.4, 360 * 8 / 14),
        # A chain of seven hops up and down; 0.92 of the bus, half of it for the vector.
        ("tree", "ll", 6.8 + 14 * 0.6, 0.92 * 360 / 3.8 / 2),
        ("tree", "ll128", 14 + 14 * 1.25, 0.92 * 360 * 7 / 9 / 2),
        ("tree", "simple", 8.4 + 14 * 4, 0.92 * 360 / 2),
        # 8 x 40, five sixths of it.
        ("nvls", "simple", 25, 320 * 5 / 6),
    ],
)
def test_the_rates_of_one_node(algorithm, protocol, latency, bandwidth):
    found = rate("2.27", H100, algorithm, protocol)
    assert (found.latency, found.bandwidth) == pytest.approx((latency, bandwidth))


@pytest.mark.parametrize(
    ("version", "algorithm", "protocol", "latency"),
    [
        # 16 ranks on 2 nodes: 30 steps. Up to 2.22 four of them cross, later two; a post occupies the proxy 1 us (x 3).
        ("2.20", "ring", "ll", 6.6 + 26 * 1 + 4 * 2.7),
        ("2.20", "ring", "ll128", 14 + 26 * 1.9 + 4 * 4),
        ("2.20", "ring", "simple", 8.4 + 26 * 3.4 + 4 * 14),
        ("2.27", "ring", "ll", 6.6 + 28 * 1 + 2 * 2.7),
        # Seven hops and one crossing, up and down. Tree Simple of 2.19 to 2.22: 28 us for every hop.
        ("2.20", "tree", "ll", 6.8 + 2 * (7 * 0.6 + 5)),
        ("2.20", "tree", "ll128", 14 + 2 * (7 * 1.25 + 8.5)),
        ("2.20", "tree", "simple", 2 * (7 * 28 + 28)),
        ("2.27", "tree", "simple", 8.4 + 2 * (7 * 4 + 14)),
        ("2.20", "nvls_tree", "simple", 25 + 2 * 14),
        # 2.18: 23 us, and two crossings of 19 us for each further node.
        ("2.18", "nvls_tree", "simple", 23 + 2 * 19),
    ],
)
def test_latencies_of_sixteen_h100_by_version(version, algorithm, protocol, latency):
    assert rate(version, on(H100, 2, 25e9), algorithm, protocol).latency == pytest.approx(latency)


def test_bandwidths_of_sixteen_h100():
    # Up to two nodes a channel counts with what it carries inside: 8 x 24.
    hardware = on(H100, 2, 25e9)
    assert rate("2.20", hardware, "ring", "simple").bandwidth == pytest.approx(192 * 16 / 30)
    # A quarter before 2.21, then half; an Intel host allows 39 in any case.
    assert rate("2.20", hardware, "ring", "ll").bandwidth == pytest.approx(39 * 16 / 30)
    slow = on(H100, 2, 12.5e9)
    assert rate("2.20", slow, "ring", "ll").bandwidth == pytest.approx(96 / 4 * 16 / 30)
    assert rate("2.21", slow, "ring", "ll").bandwidth == pytest.approx(39 * 16 / 30)


def test_two_ranks_over_sockets_go_from_ll_to_simple():
    """Published: 2.29.7, two nodes of one GPU, one channel of 2.4 GB/s: LL up to 16 KiB, Simple from 32 KiB.

    Broadcast, LL: 6.6 + 2.7 + S / 1.2; Simple: 8.4 + 14 + S / 2.4 is less from 31.4 kB on.
    """
    chooser = nccl.chooser("2.29", SOCKETS)
    chosen = {size: chooser.choose("broadcast", size).protocol for size in (16 * KIB, 32 * KIB)}
    assert chosen == {16 * KIB: "ll", 32 * KIB: "simple"}


def test_eight_h100_go_from_ring_to_the_switch():
    """Published: Ring LL up to 1 MiB, NVLS from 2 MiB."""
    assert [words("2.27", H100, size).split(",")[0] for size in (8, 64 * KIB, MIB, 2 * MIB, GIB)] == [
        "Ring LL", "Ring LL", "Ring LL", "NVLS", "NVLS",
    ]  # fmt: skip


def test_lines_of_128_bytes_need_a_way_that_keeps_them_whole():
    assert ("ring", "ll128") in nccl.chooser("2.27", A100).table("allreduce")
    through_processor = [replace(on(node, 2), far="PHB") for node in (A100, H100)]
    for hardware in (replace(A100, near="PHB", peer=0.0), replace(A100, modes={"ll"}), *through_processor):
        found = replace(hardware, modes=frozenset(hardware.modes))
        assert ("ring", "ll128") not in nccl.chooser("2.27", found).table("allreduce")
    grace = replace(on(H100, 2), far="PHB", host="arm")
    over_c2c = {
        version: ("ring", "ll128") in nccl.chooser(version, grace).table("allreduce") for version in ("2.26", "2.27")
    }
    assert over_c2c == {"2.26": False, "2.27": True}
    # 2.18 knows three generations only.
    assert ("ring", "ll128") not in nccl.chooser("2.18", B200).table("allreduce")


def test_reductions_of_the_network_need_its_switches():
    plain = nccl.chooser("2.27", on(H100, 4))
    assert {a for a, _ in plain.table("allreduce")} == {"ring", "tree", "nvls_tree"}
    sharp = nccl.chooser("2.27", on(H100, 4, modes=ALL | {"collnet"}))
    assert {a for a, _ in sharp.table("allreduce")} >= {"collnet_chain", "collnet_direct", "nvls"}


def test_pat_serves_one_gpu_per_node():
    one = replace(SOCKETS, nodes=16, nic=25e9, far="PIX")
    # 8 + log2(16) 14 / 3.5 + 16 x 2.8; three quarters of the port's 24, one GPU counts with what crosses.
    found = rate("2.27", one, "pat", "simple", "allgather")
    assert (found.latency, found.bandwidth) == pytest.approx(
        (8 + 4 * 14 / 3.5 + 16 * 2.8, 0.75 * graph("2.27", one)[0] * graph("2.27", one)[2])
    )
    assert ("pat", "simple") not in nccl.chooser("2.21", one).table("allgather")
    assert ("pat", "simple") not in nccl.chooser("2.27", on(H100, 2)).table("allgather")


def test_nvls_from_2_28_on():
    # 80 of B200 with 0.74, seven heads of eight, twice for an allreduce: 103.6, at most the 90 between nodes; 8/14 of
    # that is the vector.
    found = rate("2.30", B200, "nvls", "simple")
    assert found.bandwidth == pytest.approx(8 * min(80 * 0.74 * 7 / 8 * 2, 90) * 8 / 14)


# Choices: channels, threads, chunks.


@pytest.mark.parametrize(
    ("size", "channels", "threads"),
    [
        # Ring LL: 512 threads with 8 x 8 bytes each are 32 KiB of a channel.
        (8, 1, 64), (32 * KIB, 1, 512), (256 * KIB, 8, 512), (MIB, 24, 512),
    ],
)  # fmt: skip
def test_small_messages_take_fewer_channels(size, channels, threads):
    made = nccl.chooser("2.27", H100).choose("allreduce", size, "ring", "ll")
    assert (made.channels, made.threads) == (channels, threads)


def test_chunks():
    chooser = nccl.chooser("2.27", H100)
    # Four of eight steps of 4 MiB, in two slices; a broadcast one step.
    assert (chooser.choose("allreduce", GIB, "ring", "simple").chunk_bytes) == 2 * MIB
    assert (chooser.choose("broadcast", GIB, "ring", "simple").chunk_bytes) == 512 * KIB
    # One step of 512 KiB / 8, half of which is data.
    assert (chooser.choose("allreduce", MIB, "ring", "ll").chunk_bytes) == 32 * KIB
    # 16 channels x 8 heads: 128 KiB from 64 x 128 x 128 KiB = 1 GiB on, 64 KiB from 64 MiB on, 32 KiB from 8 MiB on.
    found = [chooser.choose("allreduce", size, "nvls").chunk_bytes // KIB for size in (GIB, GIB - 4, 63 * MIB, 7 * MIB)]
    assert found == [128, 64, 32, 16]


def test_chunks_of_a_tree_become_shorter_up_to_2_19():
    # Two nodes of four: depth 3 + 1 = 4, 16 channels. 512 KiB from 8 x 4 x 16 x 512 KiB on (256 MiB), then half each
    # time down to 128 KiB; below 4 x 4 x 16 x 128 KiB = 32 MiB 64 KiB; below 4 x 16 x 64 KiB = 4 MiB 32 KiB.
    def chunks_kib(version):
        chooser = nccl.chooser(version, on(H100, 2, gpus=4))
        made = [chooser.choose("allreduce", size * MIB, "tree", "simple") for size in (256, 255, 127, 31, 3)]
        assert made[0].channels == 16
        return [one.chunk_bytes // KIB for one in made]

    assert chunks_kib("2.19") == [512, 256, 128, 64, 32]
    assert chunks_kib("2.20") == [512] * 5


def test_messages_of_the_library_that_one_of_a_ring_stands_for():
    def counted(size, collective="allgather", algorithm="ring", protocol="simple"):
        seen = on(H100, 2)
        choice = nccl.chooser("2.27", seen).choose(collective, size, algorithm, protocol)
        question = Collective("", "nccl", 16, size, collective=collective)
        made = shapes.shape(choice, seen, question)
        found = shapes.sends(choice, seen, made, question)
        return (shapes.bundle(choice, made) if found is None else found) * len(made.rings) / choice.channels

    # Blocks of a channel are size / 16 / 16: one message up to 1 MiB / 32 = 32 KiB, then two slices, which the schedule
    # itself has from 1 MiB on; four from two chunks of 2 MiB on, of which it has two.
    assert [counted(256 * block * KIB) for block in (32, 33, 1024, 1025, 4096)] == [1, 2, 2, 1, 2]
    assert counted(256 * 64 * KIB, protocol="ll") == 1


def test_sends_and_receives():
    alltoall = nccl.chooser("2.27", H100).choose("alltoall", 64 * MIB)
    # Two channels for each of 18 links are 36, of which 24 are there; a power of two.
    assert (alltoall.algorithm, alltoall.channels, alltoall.chunk_bytes) == ("p2p", 32, 512 * KIB)
    assert nccl.chooser("2.27", on(H100, 2)).choose("alltoall", 64 * MIB).chunk_bytes == 128 * KIB


def test_a_choice_takes_far_less_than_a_fifth_of_a_millisecond():
    chooser = nccl.chooser("2.27", on(H100, 4))
    assert min(timeit.repeat(lambda: chooser.choose("allreduce", MIB), number=100, repeat=5)) / 100 < 200e-6


@pytest.mark.parametrize("version", constants.versions())
@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reduce_scatter", "broadcast", "reduce", "alltoall"])
def test_every_version_chooses_for_every_size(version, collective):
    for hardware in (A100, H100, B200, on(A100, 2, 25e9), on(H100, 16), on(B200, 4, 100e9), SOCKETS):
        chooser = nccl.chooser(version, hardware)
        for size in (8, KIB, 64 * KIB, MIB, 64 * MIB, 8 * GIB):
            made = chooser.choose(collective, size)
            assert made.channels in range(1, 65)
            assert made.chunk_bytes > 0
            times = chooser.predicted(collective, size) if made.algorithm != "p2p" else {}
            assert all(made.predicted_us <= time for time in times.values())


def test_versions():
    assert nccl.chooser("2.22", H100).tuner.version == "2.21"
    assert nccl.chooser("2.29", H100).tuner.version == "2.30"
    for module, version in ((nccl, "2.17"), (rccl, "2.18")):
        with pytest.raises(errors.UnknownNameError, match="unknown version"):
            module.chooser(version, H100)
    for model in constants.models().values():
        assert model.source.startswith("NVIDIA/nccl v")


# What is seen of a machine.


def test_the_hardware_of_a_node():
    seen = nccl.hardware(node_machine(), tuple(range(8)))
    assert (seen.nodes, seen.gpus, seen.switched, seen.peer, seen.near) == (1, 8, True, 450e9, "NVL")
    two = nccl.hardware(node_machine(nodes=2), tuple(range(16)))
    assert (two.nodes, two.gpus, two.nics, two.nic, two.far, two.nic_of) == (2, 8, 8, 50e9, "PIX", tuple(range(8)))
    # Two ranks of each node, as a placement names them.
    assert nccl.hardware(node_machine(nodes=2), (0, 1, 8, 9)).gpus == 2


def test_links_that_are_not_there_are_not_seen():
    plain = nccl.hardware(node_machine(nvlink=0), tuple(range(8)))
    assert (plain.peer, plain.near, plain.switched) == (0, "SYS", False)
    assert nccl.hardware(node_machine(nvlink=0), (0, 1)).near == "PHB"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('host = "intel"', 'host = "intl"', "unknown host `intl`; did you mean `intel`"),
        (
            '[library.hardware]\ngpu = "sm90"\nhost = "intel"\nsource = "by definition"\n',
            "",
            r"add \[library.hardware\]",
        ),
    ],
)
def test_hardware_that_is_not_stated_is_refused(old, new, problem):
    from linkwright import _native

    text = node_text()
    assert old in text
    with pytest.raises(errors.LinkwrightError, match=problem):
        nccl.hardware(_native.Machine.parse(text.replace(old, new), "test.toml"), tuple(range(8)))


# RCCL.

MI300X = replace(
    H100, gpu="gfx942", switched=False, peer=7 * 64e9, modes=frozenset({"simple", "ll"}),
    joined=tuple(tuple(a != b for b in range(8)) for a in range(8)),
)  # fmt: skip


def test_rccl_on_mi300x():
    chooser = rccl.chooser("2.22", MI300X)
    # Seven links of 48 in 28 rings, used twice.
    assert (chooser.tuner.graphs["ring"].bus, chooser.tuner.channels) == (336, 56)
    found = chooser.table("allreduce")
    # No Tree Simple on one node, no lines; LL has 0.08 of the bus.
    assert set(found) == {("tree", "ll"), ("ring", "ll"), ("ring", "simple")}
    assert found["ring", "ll"].bandwidth == pytest.approx(336 * 0.08 * 8 / 14)
    assert found["ring", "ll"].latency == pytest.approx(12 + 14 * 0.8)
    assert chooser.choose("allreduce", KIB).words == "Ring LL, 1 channel"
    assert chooser.choose("allreduce", GIB).words == "Ring Simple, 56 channels"
    two = rccl.chooser("2.22", on(MI300X, 2))
    assert two.choose("allreduce", 256 * KIB).algorithm == "tree"
    assert two.choose("allreduce", GIB).words == "Ring Simple, 16 channels"


def test_rccl_refuses_a_gpu_that_it_has_no_tuning_for():
    with pytest.raises(errors.UnknownNameError, match="gfx90a"):
        rccl.chooser("2.22", H100)


def test_what_threads_carry_does_not_depend_on_the_version():
    """2.27 counts with 72 GB/s for a channel of a tree over B200 nodes, 2.28 with 24: what is known of them changed.

    16 channels at 24 GB/s of busbw, on 32 ranks: 384 x 32 / 62 of the vector.
    """
    carried = [nccl.chooser(version, on(B200, 4)).tuner.most_across("tree", "simple") for version in ("2.27", "2.28")]
    channels = [nccl.chooser(version, on(B200, 4)).tuner.graphs["tree"].channels for version in ("2.27", "2.28")]
    assert carried == pytest.approx([24 * count * 32 / 62 for count in channels])
