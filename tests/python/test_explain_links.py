"""What `explain` says of measured links: ports, pairs of a node, dispatch and combine."""

import json

import pytest

from linkwright.advise.explain import links
from linkwright.formats.logs import read_log
from linkwright.machines import Variant
from linkwright_cases import invoke
from log_cases import DEEPEP, KINDS, OF_LINKS, PERFTEST_LATENCY, ROCM_BANDWIDTH, TRANSFERBENCH, nccl, pairs, perftest

# Re-typed from a public report: dispatch and combine between two nodes, a tenth of what their ports carry.
SLOW_EXCHANGE = """\
[config] num_tokens=4096, hidden=7168, num_topk_groups=4, num_topk=8
[layout] Kernel performance: 0.054 ms
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 32: 4.50 GB/s (RDMA), 9.00 GB/s (NVL)
[tuning] Best dispatch (BF16): SMs 24, NVL chunk 24, RDMA chunk 32: 4.70 GB/s (RDMA), 9.50 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 4, RDMA chunk 32: 4.70 GB/s (RDMA), 9.50 GB/s (NVL)
"""


@pytest.fixture
def judge(tmp_path):
    def judged(text, machine=None, nodes=None):
        (tmp_path / "a.log").write_text(text, encoding="utf-8")
        return links.judged(read_log(tmp_path / "a.log"), machine, Variant(nodes))

    return judged


def said(found):
    return " ".join(sentence for one in found for sentence in one.sentences)


@pytest.mark.parametrize(
    ("rate", "machine", "verdict", "says"),
    [(49.0, None, "fine", "392 Gb/s are 98% of 400 Gb/s, the smallest class"),
     (49.0, "hgx-h100", "fine", "98% of the 400 Gb/s port of hgx-h100"),
     (24.5, None, "fine", "If mlx5_0 (IB) is a port of 400 Gb/s, it is at 49%"),
     (24.5, "hgx-h100", "broken", "49% of the 400 Gb/s port of hgx-h100"),
     (39.0, None, "suspicious", "78% of 400 Gb/s"),
     (6.2, None, "fine", "If mlx5_0 (IB) is a port of 100 Gb/s, it is at 50%"),  # of 54.5 Gb/s it would be fine
     (150.0, None, None, "more than any port carries")],
)  # fmt: skip
def test_a_port_is_judged_by_its_speed_class_or_the_machine(judge, rate, machine, verdict, says):
    found = judge(perftest(rows=((1 << 20, rate),)), machine)
    assert (links.verdict(found), says in said(found)) == (verdict, True), said(found)


@pytest.mark.parametrize(
    ("title", "heading", "row", "says"),
    [
        ("Bandwidth", "# Size      Bandwidth (MB/s)", "1048576 24500.00", "196 Gb/s are 98% of 200 Gb/s"),
        ("Bi-Directional Bandwidth", "# Size  Bandwidth (MB/s)", "1048576 49000.00", "196 Gb/s are 98% of 200 Gb/s"),
        (
            "Multiple Bandwidth / Message Rate", "# Size                  MB/s        Messages/s",
            "1048576 12250.00 11682.51", "98 Gb/s are 98% of 100 Gb/s",
        ),
    ],
)  # fmt: skip
def test_streams_of_osu_measure_a_port(tmp_path, title, heading, row, says):
    file = tmp_path / "osu.txt"
    file.write_text(f"# OSU MPI {title} Test v7.3\n# [ pairs: 1 ] [ window size: 64 ]\n{heading}\n1 5.1 9\n{row}\n")
    answer = invoke("explain", str(file))
    assert "1 port by OSU: fine" in answer.out
    assert says in " ".join(answer.out.split())


def test_small_messages_do_not_show_the_rate_of_a_port(judge):
    found = judge(perftest(rows=((8, 0.02),)))
    assert (links.verdict(found), "repeat it with -s 1048576" in said(found)) == (None, True)
    assert links.verdict(judge(PERFTEST_LATENCY)) is None


def test_both_ways_of_both_ports_share_a_rate(judge):
    text = perftest(rows=((1 << 20, 196.0),), title="Send Bidirectional BW Test").replace("OFF\t\tDev", "ON\t\tDev")
    assert "392 Gb/s are 98%" in said(judge(text))


def test_pairs_that_are_slower_than_their_like_are_named(judge):
    found = judge(pairs(slow=[(0, 3), (3, 0), (1, 3)], gpus=8))
    assert links.verdict(found) == "broken"
    assert "GPU 0 to GPU 3 39 GB/s, GPU 1 to GPU 3 39 GB/s, GPU 3 to GPU 0 39 GB/s" in said(found)
    assert "All of them have GPU 3" in said(found)


def unknown(text):
    """The same of devices that no machine is known to have."""
    return text.replace("NVIDIA H100 80GB HBM3", "Other GPU")


@pytest.mark.parametrize(("gpus", "bad"), [(4, [3]), (8, [3, 5]), (8, [0, 1, 7])])
def test_a_few_devices_that_make_most_pairs_slow_are_named(judge, gpus, bad):
    slow = [(a, b) for a in range(gpus) for b in range(gpus) if a in bad or b in bad]
    found = judge(unknown(pairs(slow=slow, gpus=gpus)))
    assert links.verdict(found) == "broken"
    assert f"All of them have {' or '.join(f'GPU {one}' for one in bad)}: suspect" in said(found)


def test_pairs_that_are_all_slow_are_compared_with_the_machine_of_the_devices(judge):
    found = judge(pairs(gpus=8, rate=100.0))
    assert links.verdict(found) == "broken"
    assert "27% of the 370.8 GB/s each way of hgx-h100, which has such devices" in said(found)


def test_pairs_that_are_alike_are_fine(judge):
    assert {one.verdict for one in judge(unknown(pairs(gpus=8)))} == {"fine"}
    assert links.verdict(judge(TRANSFERBENCH)) == "fine"
    assert links.verdict(judge(ROCM_BANDWIDTH)) == "fine"


def test_kinds_of_links_are_not_faults(judge):
    """Every GPU has two links to one other GPU and one to the rest, as in a cube mesh."""
    far = [(a, b) for a in range(8) for b in range(8) if (a ^ b) not in (0, 1, 2)]
    found = judge(unknown(pairs(slow=far, gpus=8)))
    assert links.verdict(found) == "fine"
    assert "2 kinds of pairs" in said(found)


def test_pairs_are_compared_with_the_machine(judge):
    assert "suspicious" in said(judge(pairs(gpus=8, rate=250.0), "hgx-h100"))
    one = judge(pairs(gpus=8), "hgx-h100")[0]
    assert (one.verdict, one.rows[-1][3] == pytest.approx(390 / 370.8, rel=1e-3)) == ("fine", True)


def test_no_machine_is_compared_with_what_goes_through_the_host(judge):
    text = pairs(gpus=8, rate=20.0).replace("P2P=Enabled", "P2P=Disabled")
    assert "of hgx-h100" not in said(judge(text, "hgx-h100"))


@pytest.mark.parametrize(("rate", "word"), [(10.0, "broken"), (15.0, "suspicious"), (21.0, "fine")])
def test_peer_access_that_is_slower_than_the_host_is_named(judge, rate, word):
    """All pairs are alike in both tests, so only the other test shows what is wrong."""
    direct, staged = (pairs(rate=its).replace("H100", "A10") for its in (rate, 22.0))
    found = judge(direct + staged.replace("P2P=Enabled", "P2P=Disabled"))
    assert (links.verdict(found), "Peer access is slower than copies" in said(found)) == (word, word != "fine")


def test_rates_in_bold_are_read(judge):
    text = SLOW_EXCHANGE.replace("4.50 GB/s", "_**4.50 GB/s**_").replace("9.50 GB/s", "**9.50 GB/s**")
    assert [one.rows for one in judge(text)] == [one.rows for one in judge(SLOW_EXCHANGE)]


def test_a_slow_exchange_is_that_of_one_port(judge):
    found = judge(SLOW_EXCHANGE, "hgx-h100", 2)
    assert links.verdict(found) == "broken"
    assert "all traffic on one NIC, or data that is staged through host memory" in said(found)
    assert found[0].rows[0][:3] == ("dispatch (FP8), RDMA", "4.5 GB/s", "48.5 GB/s")


def test_a_healthy_exchange_is_fine(judge):
    assert links.verdict(judge(DEEPEP, "hgx-h100", 2)) == "fine"


def test_an_exchange_without_a_machine_asks_for_it(judge):
    found = judge(SLOW_EXCHANGE)
    assert (links.verdict(found), "--on" in said(found)) == (None, True)


def test_a_late_rank_of_an_exchange_is_named(judge):
    line = "[rank {}] Dispatch bandwidth: {} GB/s, avg_t=85.2 us | Combine bandwidth: 41.61 GB/s, avg_t=210.1 us\n"
    text = "".join(line.format(rank, 12.5 if rank == 5 else 40.0) for rank in range(8))
    assert "dispatch: slower than the median of 40 GB/s: rank 5 12.5 GB/s" in said(judge(text))


@pytest.mark.parametrize("kind", OF_LINKS)
@pytest.mark.parametrize("machine", [(), ("--on", "hgx-h100"), ("--on", "mi300x", "--nodes", "2")])
def test_every_log_of_links_is_explained(tmp_path, kind, machine):
    (tmp_path / "a.log").write_text(KINDS[kind], encoding="utf-8")
    result = invoke("explain", str(tmp_path / "a.log"), *machine, "--report", str(tmp_path / "a.html"))
    assert result.status == 0, result.err
    assert all(len(line) <= 80 for line in result.out.splitlines() if not line.startswith(("wrote", str(tmp_path))))
    assert (tmp_path / "a.html").stat().st_size > 1000


def test_links_stand_below_the_answer_to_a_collective(tmp_path):
    (tmp_path / "a.log").write_text(nccl() + perftest(), encoding="utf-8")
    out = invoke("explain", str(tmp_path / "a.log")).out
    assert out.index("allreduce") < out.index("1 port by perftest: fine")


@pytest.mark.parametrize(("rate", "status"), [(49.0, 0), (24.5, 1)])
def test_links_are_a_document_and_a_gate(tmp_path, rate, status):
    (tmp_path / "a.log").write_text(perftest(rows=((1 << 20, rate),)), encoding="utf-8")
    result = invoke("explain", str(tmp_path / "a.log"), "--on", "hgx-h100", "--json", "--gate")
    document = json.loads(result.out)
    assert (result.status, document["passes"], document["tables"]) == (status, not status, [])
    assert document["links"][0]["rates"][0]["compared_with"] == "400 Gb/s"


@pytest.mark.parametrize("option", [("--table", "1"), ("--ranks", "8"), ("--search", "1s")])
def test_options_of_tables_are_refused_for_links_alone(tmp_path, option):
    (tmp_path / "a.log").write_text(perftest(), encoding="utf-8")
    result = invoke("explain", str(tmp_path / "a.log"), *option)
    assert f"{option[0]} does not apply to a log of links alone" in result.err


def test_a_network_without_a_machine_is_refused(tmp_path):
    file = tmp_path / "ib.txt"
    file.write_text(perftest())
    assert "--nodes does not apply to a log of links without --on" in invoke("explain", str(file), "--nodes", "2").err
