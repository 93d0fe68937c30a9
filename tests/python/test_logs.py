"""Logs as people have them: every variant is read, no line is fatal, and what is no row is named."""

import contextlib
import json
import math
import random
import re
import signal
import tracemalloc
from pathlib import Path

import pytest

from linkwright.base.errors import FileError, LinkwrightError
from linkwright.formats import logs
from linkwright.formats.logs import lines, read_log, reading
from log_cases import (
    DEEPEP,
    FULL,
    KINDS,
    PERFTEST_LATENCY,
    PINGPONG,
    RING,
    ROCM_BANDWIDTH,
    SAID,
    SIZES,
    TRANSFERBENCH,
    imb,
    inspector,
    kineto,
    nccl,
    nccl_json,
    nvbandwidth,
    osu,
    pairs,
    perftest,
    rates,
    time_of,
)


@pytest.fixture
def read(tmp_path):
    def reader(text):
        file = tmp_path / "x.log"
        file.write_text(text, encoding="utf-8")
        return read_log(file)

    return reader


def times(table, *, in_place=False):
    return {row.size: row.time for row in table.rows if row.in_place is in_place}


@pytest.fixture
def alarm():
    @contextlib.contextmanager
    def within(seconds):
        def ring(*_):
            raise AssertionError(f"still at it after {seconds} s")

        before = signal.signal(signal.SIGALRM, ring)
        signal.alarm(seconds)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    return within


# ---- nccl-tests


def labelled(text, label):
    return "".join(label + line + "\n" for line in text.splitlines())


INFO = (
    "node0:901:950 [0] NCCL INFO NCCL_ALGO set by environment to Ring.",
    "node0:901:950 [0] NCCL INFO Channel 00/24 :    0   1   2   3",
    "node0:901:950 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(3)/GDRDMA",
    "NCCL version 2.27.3+cuda12.9",
)
VARIANTS = {
    "plain": nccl(),
    "info": nccl(between=INFO),
    "srun": labelled(nccl(), " 0: "),
    "openmpi": labelled(nccl(), "[1,0]<stdout>:"),
    "openmpi5": labelled(nccl(), "[1,0]<stdout>: "),
    "mpich": labelled(nccl(), "[0] "),
    "mpich within": "".join(line.replace("     -1  ", "     -1[0]  ") + "\n" for line in nccl().splitlines()),
    "time stamps": labelled(nccl(), "2026-01-02T03:04:05.678901234Z "),
    "indented": labelled(nccl(), "        "),
    "colours": nccl().replace("float", "\x1b[32mfloat\x1b[0m"),
    "windows": nccl().replace("\n", "\r\n"),
    "in JSON": json.dumps(nccl().splitlines(), indent=2),
    "no devices": "$ mpirun -np 8 ./all_reduce_perf -b 1K -e 1G -f 2\n" + nccl(title=False, devices=False),
    "cut": nccl(end=False),
    "not checked": nccl(wrong="N/A"),
    "one group": nccl(in_place=False),
    "rccl": nccl(name="AMD Instinct MI300X").replace("# Using", "rccl-tests: Version develop:db6ea5a\n# Using"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_same_numbers(read, variant):
    log = read(VARIANTS[variant])
    (table,) = log.tables
    assert (log.tool, table.collective, table.dtype, table.reduction) == ("nccl-tests", "allreduce", "float", "sum")
    assert times(table) == pytest.approx({size: time_of(size) for size in SIZES}, abs=0.01)
    assert log.complaints == ()
    if variant != "one group":
        assert times(table, in_place=True)[1 << 30] == pytest.approx(time_of(1 << 30, 1.1), abs=0.01)


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [(FULL, "0"), (FULL[:4], "2e-07"), (FULL[:4], "N/A"), (FULL[:3], "0e+00"), ((*FULL[:3], "root"), "0e+00")],
)
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "fp8_e4m3", "double", "uint8"])
def test_columns_of_old_and_new_versions(read, columns, wrong, dtype):
    collective = "broadcast" if "redop" not in columns else "allreduce"
    (table,) = read(nccl(collective, dtype=dtype, columns=columns, wrong=wrong)).tables
    assert (table.dtype, table.collective) == (dtype, collective)
    assert times(table) == pytest.approx({size: time_of(size) for size in SIZES}, abs=0.01)
    assert table.root == (0 if "root" in columns and collective == "broadcast" else None)


def test_a_blank_operator_is_no_column(read):
    """Old versions leave the operator of an alltoall blank, below its heading."""
    text = nccl("alltoall", columns=FULL[:4], wrong="N/A").replace("none", "    ")
    (table,) = read(text).tables
    assert times(table)[1 << 20] == pytest.approx(time_of(1 << 20), abs=0.01)


def test_facts_are_typed(read):
    facts = read(nccl(ranks=16, nodes=2, between=INFO)).facts
    assert facts.devices == {"NVIDIA H100 80GB HBM3": 16}
    assert (facts.hosts, facts.library, facts.version, facts.channels) == (2, "NCCL", "2.27.3", 24)
    assert facts.setting("NCCL_ALGO") == "Ring"
    assert facts.setting("NCCL_PROTO") == ""  # the library lists what is set
    assert facts.transports == {"NET/IB/GDRDMA": len(SIZES)}


def test_a_host_that_lists_a_gpu_twice_is_two_nodes_of_one_name(read):
    """Ranks do not share a GPU."""
    lines = nccl(ranks=16).splitlines(keepends=True)
    text = "".join(
        re.sub(r"on node\d device +(\d+) ", lambda found: f"on localhost device {int(found[1]) % 8} ", line)
        for line in lines
    )
    (table,) = read(text).tables
    assert (table.ranks, table.nodes) == (16, 2)


def test_a_process_has_as_many_ranks_as_it_was_started_with(read):
    """Only the line of rank 0 was kept: of one process with eight GPUs, each with one thread."""
    lines = nccl(ranks=8).replace("nGpus 1", "nGpus 8").splitlines(keepends=True)
    (table,) = read("".join(line for line in lines if not re.match(r"# +Rank +[1-7] ", line))).tables
    assert (table.ranks, table.nodes) == (8, 1)


@pytest.mark.parametrize(
    ("collective", "inferred"),
    [("allreduce", "allreduce"), ("allgather", "allgather"), ("reduce_scatter", "reduce_scatter"),
     ("broadcast", "broadcast"), ("reduce", "reduce")],
)  # fmt: skip
def test_a_collective_without_a_name_follows_from_its_rates(read, collective, inferred):
    (table,) = read(nccl(collective, title=False)).tables
    assert (table.collective, table.inferred) == (inferred, True)


def test_an_alltoall_without_a_name_is_not_checked_in_place(read):
    (table,) = read(nccl("alltoall", title=False, checked_in_place=False)).tables
    assert (table.collective, table.inferred) == ("alltoall", True)


def test_rates_too_small_to_tell_leave_the_collective_open(read):
    (table,) = read(nccl(title=False, sizes=(8, 64))).tables
    assert (table.collective, table.inferred) == (None, False)


def test_rates_below_1_may_still_tell_an_allreduce(read):
    """0.18 GB/s is at least 0.175; size / time is 0.102."""
    (table,) = read(nccl(title=False, sizes=(8, 1024))).tables
    assert (table.collective, table.inferred) == ("allreduce", True)


def test_an_alltoallv_of_osu_sends_equal_blocks(read):
    (table,) = read(osu("All-to-Allv Personalized Exchange Latency")).tables
    assert (table.collective, table.per_rank) == ("alltoall", True)


def test_several_tables_of_one_file(read):
    log = read(nccl() + nccl("allgather", dtype="half") + nccl("reduce_scatter", ranks=8))
    assert [table.collective for table in log.tables] == ["allreduce", "allgather", "reduce_scatter"]


def test_two_jobs_in_one_another(read):
    """Lines of two tasks by turns: each has a table of its own."""
    first, second = nccl(title=False).splitlines(), nccl("allgather", title=False).splitlines()
    mixed = "".join(f"0: {a}\n1: {b}\n" for a, b in zip(first, second, strict=True))
    log = read(mixed)
    assert [table.collective for table in log.tables] == ["allreduce", "allgather"]
    assert all(len(table.rows) == 2 * len(SIZES) for table in log.tables)


def test_each_table_is_of_the_group_that_ran_it(read):
    """A sweep over machines, kept in one file: no run has the ranks, nodes or devices of another."""
    log = read(nccl(ranks=8) + nccl(ranks=16, nodes=2, name="NVIDIA A100-SXM4-40GB") + nccl("allgather", ranks=2))
    assert [(table.ranks, table.nodes) for table in log.tables] == [(8, 1), (16, 2), (2, 1)]
    h100, a100 = ("NVIDIA H100 80GB HBM3",), ("NVIDIA A100-SXM4-40GB",)
    assert [table.devices for table in log.tables] == [h100, a100, h100]
    assert log.facts.devices == {h100[0]: 8, a100[0]: 16}


def test_two_jobs_in_one_another_have_ranks_of_their_own(read):
    first, second = nccl(ranks=2).splitlines(), nccl("allgather", ranks=4).splitlines()
    mixed = "".join(f"0: {a}\n1: {b}\n" for a, b in zip([*first, "", ""], second, strict=True))
    assert [(table.collective, table.ranks) for table in read(mixed).tables] == [("allreduce", 2), ("allgather", 4)]


def test_ranks_that_only_the_library_states_are_those_of_the_next_table(read):
    def said(ranks):
        return f"node0:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks {ranks} nNodes 1\n" + nccl(ranks=ranks, devices=False)

    assert [table.ranks for table in read(said(8) + said(4)).tables] == [8, 4]


@pytest.mark.parametrize(
    "within",
    [
        "{}n1:12:34 [3] NCCL INFO AllReduce: 1024 Bytes -> Algo 1 proto 2 time 9\n{}",
        "{}n0:1:2 NCCL WARN x\nn0:1:2 NCCL INFO y\n{}",
    ],
)
def test_rows_that_the_library_parts_are_whole(read, within):
    """The test prints a row in three parts, and the library writes between them, without a line end in front."""
    text = nccl()
    parted = ""
    for line in text.splitlines(keepends=True):
        words = line.split()
        if " sum " in line:
            row = "  ".join(words[:5]), "  ".join(words[5:9]), "  ".join(words[9:]) + "\n"
            line = within.format(row[0], within.format(row[1], row[2]))
        parted += line
    whole, found = read(text), read(parted)
    assert found.complaints == whole.complaints == ()
    assert [times(table) for table in found.tables] == [times(table) for table in whole.tables]
    assert [times(one, in_place=True) for one in found.tables] == [times(one, in_place=True) for one in whole.tables]


def test_two_ranks_are_known_by_their_rates(read):
    """Without a line that names the test or its ranks: a sum without a root has busbw = algbw on two ranks alone."""
    (table,) = read(nccl(ranks=2, title=False, devices=False, sizes=SIZES[1:])).tables
    assert (table.collective, table.ranks, table.inferred) == ("allreduce", 2, True)


@pytest.mark.parametrize("title", [True, False])
def test_ranks_that_run_for_themselves_are_said_to(read, title):
    text = nccl(ranks=1, title=title, devices=False)
    with pytest.raises(FileError, match=r"busbw is 0 at every size: one rank has nobody to send to.*MPI=1"):
        read(text)


@pytest.mark.parametrize(("unit", "rate", "times", "rates"), [("ms", "MB/s", 1e3, 1e-3), ("ns", "TB/s", 1e-3, 1e3)])
def test_units_of_a_heading_are_obeyed(read, unit, rate, times, rates):
    plain = read(nccl()).tables[0].rows
    scaled = read(nccl().replace("(us)  (GB/s)", f"({unit})  ({rate})")).tables[0].rows
    assert [row.time for row in scaled] == pytest.approx([row.time * times for row in plain])
    assert [row.busbw for row in scaled] == pytest.approx([row.busbw * rates for row in plain])


def test_what_a_library_reports_is_typed(read):
    facts = read(nccl(ranks=16, nodes=2, between=[SAID.format(node=node) for node in (1, 2)])).facts
    assert facts.nics == dict.fromkeys(("n1", "n2"), ("mlx5_0:1/IB", "mlx5_1:1/RoCE"))
    assert facts.ports_used == {"n1": {1}, "n2": {1}}
    assert (facts.passages, facts.direct, facts.ports_known) == ({"n1": 3, "n2": 3}, {}, [])
    assert (facts.network, facts.multicast, facts.gpudirect, facts.sharp) == ("IB", False, False, False)
    assert facts.chosen == {1 << 20: ("ring", "simple"), 8: ("nvls_tree", "ll")}
    assert (facts.connections("SHM"), facts.connections("NET"), facts.connections("NET/Socket")) == (6, 6, 0)
    assert (facts.channels, facts.per_process, facts.runs) == (16, 1, 1)
    assert (facts.setting("NCCL_IB_HCA"), facts.setting("NCCL_ALGO")) == ("mlx5_0,mlx5_1", None)


@pytest.mark.parametrize("mixed", [False, True])
def test_runs_side_by_side_are_groups_of_their_own(read, mixed):
    """A test built without MPI: two hosts list ranks 0 to 7, one after the other or by turns."""
    lines = nccl(ranks=8).splitlines(keepends=True)
    listed = [line for line in lines if "Rank" in line]
    again = [line.replace("node0", "node1") for line in listed]
    both = [line for pair in zip(listed, again, strict=True) for line in pair] if mixed else [*listed, *again]
    rows = [again for line in lines if " sum " in line for again in (line, line)]
    first = lines.index(listed[0])
    end = (line for line in lines[first + 8 :] if " sum " not in line)
    log = read("".join([*lines[:first], *both, *end, *rows]))
    assert log.facts.runs == 2
    assert [(table.ranks, table.nodes) for table in log.tables] == [(8, 1)]


@pytest.mark.parametrize(("units", "says"), [("(fortnights)", "`fortnights` is not known"), ("(us) (ms)", "mixed")])
def test_rows_below_units_that_are_not_known_are_refused(read, units, says):
    with pytest.raises(FileError, match=says):
        read(nccl().replace("(us)", units))


def test_tools_may_follow_one_another(read):
    log = read(osu() + nccl(ranks=4) + imb() + nvbandwidth() + osu("Allgather Latency"))
    assert [(table.tool, table.collective) for table in log.tables] == [
        ("OSU", "allreduce"), ("nccl-tests", "allreduce"), ("IMB", "allreduce"), ("OSU", "allgather"),
    ]  # fmt: skip
    assert [len(table.rows) for table in log.tables] == [3, 6, 3, 3]
    assert {link.test for link in log.links} == NVBANDWIDTH
    assert log.complaints == ()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("1024 256 float sum -1 nan 1.0 1.0 0", "a time or a rate is not a number"),
        ("1024 256 float sum -1 -5.0 1.0 1.0 0", "a time or a rate is not a number"),
        ("1024 256 float sum -1 5.0", "columns are missing"),
        ("1024 256 float sum -1 5.0 0.20 0.36 0 5.0 0.20", "columns in place are missing"),
        ("9" * 40 + " 256 float sum -1 5.0 1.0 1.0 0", "the size is not a whole number"),
    ],
)
def test_a_line_that_looks_like_a_row_and_is_none_is_named(read, row, says):
    log = read(nccl(end=False) + row + "\n")
    assert len(log.tables[0].rows) in (2 * len(SIZES), 2 * len(SIZES) + 1)
    (complaint,) = (one for one in log.complaints if "the job ended early" not in one[1])
    assert says in complaint[1]
    assert complaint[0] == nccl(end=False).count("\n") + 1


def test_chatter_is_counted_and_passed_over(read):
    assert read("a shell prompt\n" * 7 + nccl()).skipped == 7 + read(nccl()).skipped


# ---- other tools


def test_the_json_of_nccl_tests(read):
    log = read(nccl_json())
    (table,) = log.tables
    assert (table.collective, table.ranks, table.nodes, table.reduction) == ("allreduce", 8, 1, "sum")
    assert times(table) == {size: time_of(size) for size in SIZES}
    assert (log.facts.version, log.facts.setting("NCCL_ALGO"), log.facts.devices) == (
        "2.27.3",
        "Ring",
        {"NVIDIA H100 80GB HBM3": 8},
    )


@pytest.mark.parametrize(
    ("title", "collective", "quantity", "per_rank"),
    [
        ("Allreduce Latency", "allreduce", "collective", False),
        ("Allgather Latency", "allgather", "collective", True),
        ("All-to-All Personalized Exchange Latency", "alltoall", "collective", True),
        ("Broadcast Latency", "broadcast", "collective", False),
        ("Latency", "sendrecv", "latency", False),
    ],
)
def test_osu(read, title, collective, quantity, per_rank):
    (table,) = read(osu(title)).tables
    assert (table.collective, table.quantity, table.per_rank) == (collective, quantity, per_rank)
    assert times(table) == pytest.approx({size: time_of(size) for size in SIZES}, abs=0.01)


def test_rates_of_osu_are_of_ten_to_the_sixth(read):
    (table,) = read(osu("Bandwidth", "# Size      Bandwidth (MB/s)", lambda size: "12500.00")).tables
    assert (table.quantity, table.rows[0].time, table.rows[0].algbw) == ("bandwidth", None, 12.5)


@pytest.mark.parametrize(("unit", "us"), [("us", 1.0), ("ms", 1e3)])
def test_units_of_osu_are_obeyed(read, unit, us):
    (table,) = read(osu(header=f"# Size       Avg Latency({unit})", value=lambda size: "2.5")).tables
    assert times(table) == dict.fromkeys(SIZES, 2.5 * us)


def test_rows_of_osu_below_an_unknown_unit_are_refused(read):
    with pytest.raises(FileError, match="without a known unit"):
        read(osu(header="# Size       Avg Latency(jiffies)"))


def test_a_nonblocking_collective_takes_its_time_without_computing(read):
    header = "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)"
    (table,) = read(osu("Non-blocking Allreduce Latency", header, lambda size: "40.1 20.2 19.9 12.3")).tables
    assert (table.collective, table.rows[0].time) == ("allreduce", 19.9)


@pytest.mark.parametrize(
    ("title", "header", "row", "time"),
    [("Barrier Latency", "# Avg Latency(us)", "3.50", 3.5),
     ("Non-blocking Barrier Latency", "    Overall(us)   Compute(us)   Pure Comm.(us)   Overlap(%)", "9 5 4.5 1", 4.5)],
)  # fmt: skip
def test_a_barrier_has_no_size(read, title, header, row, time):
    (table,) = read(f"# OSU MPI {title} Test v7.3\n{header}\n{row}\n").tables
    assert [(row.size, row.time) for row in table.rows] == [(0, time)]


def test_a_test_of_osu_that_is_not_read_is_named(read):
    with pytest.raises(FileError, match="the test `MPI_Put Bandwidth` is not supported"):
        read(osu("Bandwidth", "# Size      Bandwidth (MB/s)").replace("OSU MPI", "OSU MPI_Put"))


def test_full_columns_labels_and_unknown_tests_of_osu(read):
    full = osu(
        "Allreduce Latency", "# Size  Avg Latency(us)  Min Latency(us)", lambda size: f"{time_of(size)} 1.0 99.0"
    )
    other = osu("Get Bandwidth").replace("OSU MPI ", "OSU MPI_")
    log = read(labelled(other + full, "[1,0]<stdout>: "))
    assert [table.collective for table in log.tables] == ["allreduce"]
    assert times(log.tables[0])[1 << 20] == pytest.approx(time_of(1 << 20))


def test_imb_takes_the_mean(read):
    (table,) = read(imb()).tables
    assert (table.collective, table.ranks) == ("allreduce", 16)
    assert times(table) == pytest.approx({size: time_of(size) for size in SIZES}, abs=0.01)


def ends(log):
    """(test, from, to) -> 10^9 B/s."""
    return {(link.test, link.source, link.target): link.rate for link in log.links}


NVBANDWIDTH = {"host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce"}


def test_nvbandwidth_as_text_and_json(read):
    found = ends(read(nvbandwidth()))
    assert {test for test, *_ in found} == NVBANDWIDTH
    assert found["host_to_device_memcpy_ce", "CPU 0", "GPU 1"] == 55.29
    assert len([test for test, *_ in found if test.startswith("device")]) == 2
    cases = [{"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.31", "N/A"]]},
             {"name": "host_device_latency_sm", "status": "Passed", "bandwidth_matrix": [["612.1"]],
              "bandwidth_description": "memory latency SM CPU(row) <-> GPU(column) (ns)"},
             {"name": "all_to_host_memcpy_ce", "status": "Waived"}]  # fmt: skip
    log = read(json.dumps({"nvbandwidth": {"testcases": cases}}))
    assert ends(log) == {("host_to_device_memcpy_ce", "CPU 0", "GPU 0"): 55.31}
    assert [what for _, what in log.left_out] == ["the test `all_to_host_memcpy_ce` has no matrix"]
    cases[0]["bandwidth_matrix"] = [["55.31", "5x.3"]]
    assert read(json.dumps({"nvbandwidth": {"testcases": cases}})).complaints


def test_a_matrix_that_is_read_backwards_swaps_its_ends(read):
    text = (
        "nvbandwidth Version: v0.8\nRunning d2d_read_ce.\n"
        "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n    0   1\n 0 N/A 390.2\n 1 380.1 N/A\n"
    )
    assert ends(read(text)) == {("d2d_read_ce", "GPU 1", "GPU 0"): 390.2, ("d2d_read_ce", "GPU 0", "GPU 1"): 380.1}


@pytest.mark.parametrize(("unit", "rate"), [("Gb", 49.0), ("MB", 11.566), ("MiB", 48.8)])
def test_perftest_gives_the_rate_of_a_port(read, unit, rate):
    (link,) = read(perftest(unit, ((65536, rate),))).links
    assert (link.test, link.medium, link.source, link.size) == ("RDMA_Write", "port", "mlx5_0 (IB)", 65536)
    assert link.rate == pytest.approx(rate, rel=1e-4)
    assert not link.both_ways


def test_perftest_both_ways_of_both_ports(read):
    text = perftest(title="Send Bidirectional BW Test").replace("OFF\t\tDevice", "ON\t\tDevice")
    (link,) = read(text).links
    assert (link.test, link.source, link.both_ways) == ("Send", "mlx5_0 (IB), both ports", True)


def test_latencies_of_perftest(read):
    (link,) = read(PERFTEST_LATENCY).links
    assert (link.test, link.source, link.rate, link.size, link.time) == (
        "RDMA_Write latency",
        "mlx5_1 (IB)",
        None,
        2,
        1.12,
    )


@pytest.mark.parametrize("change", [("392.00", "39.20"), ("131072", "13107"), ("0.37", "3.7"), ("392.00", "x")])
def test_a_row_of_perftest_that_contradicts_itself_is_named(read, change):
    with pytest.raises(FileError, match=r"disagree|not numeric"):
        read(perftest().replace(*change))


def test_pairs_of_the_cuda_samples(read):
    log = read(pairs())
    found = ends(log)
    assert len(found) == 32
    assert found["Unidirectional P2P=Enabled", "GPU 0", "GPU 3"] == 390.0
    assert {link.both_ways for link in log.links if link.test.startswith("Bi")} == {True}
    assert (log.facts.devices, log.complaints) == ({"NVIDIA H100 80GB HBM3": 4}, ())


def test_transferbench(read):
    log = read(TRANSFERBENCH)
    found, one = ends(log), "Unidirectional copy, local read / remote write"
    assert (found[one, "GPU 0", "GPU 1"], found[one, "CPU 0", "GPU 1"]) == (48.46, 27.30)
    both = "Bidirectional copy, local read / remote write"
    assert (found[f"{both} <-", "GPU 1", "GPU 0"], found[f"{both} <->", "GPU 0", "GPU 1"]) == (47.41, 94.87)
    assert found["transfer by GPU00:004", "GPU 0", "GPU 1"] == 48.46
    assert log.complaints == ()
    assert read(TRANSFERBENCH.replace("1.385 ms", "13.85 ms")).complaints


def test_rocm_bandwidth_test(read):
    log = read(ROCM_BANDWIDTH)
    assert ends(log)["Unidirectional copy", "device 1", "device 0"] == 54.147
    assert set(log.facts.devices) == {"AMD EPYC 9654", "AMD Instinct MI300X"}


def test_deepep(read):
    log = read(DEEPEP)
    assert [(link.test, link.medium, link.source, link.rate) for link in log.links] == [
        ("dispatch (FP8)", "scale-out", "GPU", 43.10), ("dispatch (FP8)", "scale-up", "GPU", 140.70),
        ("dispatch (BF16)", "scale-out", "GPU", 43.20), ("dispatch (BF16)", "scale-up", "GPU", 141.10),
        ("combine", "scale-up", "GPU", 339.63), ("dispatch + combine", "exchange", "rank 0", 40.10),
        ("dispatch", "exchange", "rank 1", 39.01), ("combine", "exchange", "rank 1", 41.61),
        ("expanded dispatch", "scale-out", "rank 0", 61.0), ("expanded dispatch", "scale-up", "rank 0", 205.0),
    ]  # fmt: skip
    assert log.complaints == ()
    assert read(DEEPEP.replace("43.10 GB/s", "43,10 GB/s")).complaints


def test_links_and_collectives_in_one_file(read):
    log = read(perftest() + nccl() + pairs())
    assert ([table.collective for table in log.tables], len(log.links)) == (["allreduce"], 33)


@pytest.mark.parametrize("indent", [None, 2])
def test_inspector_gives_medians(read, indent):
    (table,) = read(inspector(indent)).tables
    assert (table.collective, table.ranks, table.nodes) == ("allreduce", 8, 1)
    assert times(table) == {size: round(time_of(size)) + 1 for size in SIZES}
    assert [row.count for row in table.rows] == [2, 2, 2]


def test_kineto_gives_collectives_with_sizes_and_groups(read):
    log = read(kineto())
    (table,) = log.tables
    assert (table.collective, table.ranks, table.dtype) == ("allreduce", 8, "BFloat16")
    assert times(table) == pytest.approx({size: time_of(size) + 1 for size in SIZES})
    assert log.skipped == 1


@pytest.mark.parametrize(
    ("name", "says"), [("NPKIT_EVENT_ALL_REDUCE_RING_ENTRY", "a trace of NPKit"), ("gemm", "no kernel of the trace")]
)
def test_a_trace_without_collectives_says_why(read, name, says):
    with pytest.raises(FileError, match=says):
        read(json.dumps({"traceEvents": [{"ph": "B", "cat": "GPU", "name": name, "args": {"size_0": 4096}}]}))


def test_mpi4py_bench(read):
    (pairs,) = read(PINGPONG).tables
    assert (pairs.quantity, pairs.rows[0].time, pairs.rows[0].algbw) == ("latency", 0.25, 0.004)
    (ring,) = read(RING).tables
    assert (ring.ranks, ring.rows[0].time) == (8, pytest.approx(1.0))  # 8 ms / 1,000 loops / 8 messages


# ---- hostile files


@pytest.mark.parametrize(
    "text", ["", "\0\0\0", "hello\n", "{", "[1, 2", '{"traceEvents": [', "<html>", "\x1b[2J" * 1000]
)
def test_what_is_no_log_is_refused_with_the_tools_that_are_read(read, text):
    with pytest.raises(FileError, match=r"nccl-tests|cut"):
        read(text)


def test_a_folder_and_a_missing_file_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileError, match="does not exist or is not a file"):
            read_log(place)


def test_a_long_log_streams(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MOST_LINES", 5000)
    file = tmp_path / "long.log"
    file.write_text("chatter\n" * 6000 + nccl())
    with pytest.raises(FileError, match="more than 5,000 lines"):
        read_log(file)


def test_a_log_takes_the_memory_of_its_rows(tmp_path):
    """1.2 MB of chatter around a table of 6 rows are read in less than 0.4 MB."""
    file = tmp_path / "long.log"
    file.write_text("node0:901:950 [0] NCCL INFO Connected all rings, whatever\n" * 20_000 + nccl())
    assert file.stat().st_size > 1e6
    tracemalloc.start()
    try:
        assert len(read_log(file).tables[0].rows) == 6
        assert tracemalloc.get_traced_memory()[1] < 0.4e6
    finally:
        tracemalloc.stop()


def test_a_line_without_an_end_takes_bounded_memory(read):
    assert read("x" * (5 << 20) + "\n" + nccl()).tables[0].collective == "allreduce"


@pytest.mark.parametrize(
    "line",
    ["# OSU MPI" + " " * 60_000, "Device 0: " + " (1" * 20_000, "# Rank 1 Pid 1 on x device 0 [" * 2000,
     "CCL Channel 1/" + "0" * 60_000 + "x", "memcpy CE " * 6000, "NCCL_" * 12_000, "1 " * 30_000, "[" * 60_000],
)  # fmt: skip
def test_no_line_takes_more_than_its_length(read, line, alarm):
    """A pattern that tries every start with every end would need minutes for these 100 lines; they take about 1 s."""
    with alarm(60):
        assert len(read(nccl() + f"{line}\n" * 100).tables) == 1


def test_an_object_of_many_lines_is_counted_once(read, alarm):
    """Counting its braces again at every line would look at 10^11 characters."""
    text = '{"a": {\n' + "\n" * 900_000 + "}}\n"
    with alarm(60):
        assert len(read(text + inspector()).tables) == 1


def test_objects_of_a_list_are_read_alike(read):
    (table,) = read("[\n" + inspector().replace("}\n", "},\n").rstrip(",\n") + "\n]\n").tables
    assert times(table) == times(read(inspector()).tables[0])


def test_names_of_a_log_are_printable(read):
    name = "GPU\x1b]0;owned\x07<script>"
    facts = read(nccl(name=name)).facts
    assert all(device.isprintable() for device in facts.devices)


def mutant(text, random_):
    """A text with lines swapped, cut and doubled, and characters changed."""
    text = list(text)
    for _ in range(random_.randrange(1, 6)):
        at = random_.randrange(len(text))
        change = random_.randrange(5)
        if change == 0:
            del text[at:]
        elif change == 1:
            text[at] = random_.choice('0189-.eE,"{}[]<>\\\n\x00\ud7ff# ')
        elif change == 2:
            text[at:at] = text[at : at + 200]
        elif change == 3:
            text[at:at] = random_.choice(["NaN", "1e999", "9" * 50, "-1", "null", '{"a":' * 50])
        else:
            del text[at : at + random_.randrange(1, 80)]
        text = text or ["x"]
    return "".join(text)


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused(read, kind):
    """A value or a message, never another exception."""
    random_ = random.Random(kind)
    for _ in range(150):
        try:
            log = read(mutant(KINDS[kind], random_))
        except LinkwrightError:
            continue
        for table in log.tables:
            assert all(row.size >= 0 and (row.time is None or row.time >= 0) for row in table.rows)
        for link in log.links:
            assert link.rate is None or link.rate > 0
            assert link.time is None or link.time > 0


class EveryLine:
    """Finds that every line is to be read in Python."""

    def scan(self, piece, first):
        marks = logs.OTHER | logs.ROW | logs.HEAD
        return [(at, marks, 1, line, []) for at, line in enumerate(piece.removesuffix("\n").split("\n"), first)], 0


LIBRARY_LINES = (
    "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "n1:1:2 NCCL INFO NCCL_ALGO set to Ring",
    "n2:1:2 [0] NCCL INFO Channel 01/0 : 8[0] -> 0[0] [send] via NET/IB/1(2)/GDRDMA", "batch size 8, loss[3] 0.5",
    "n2:12345678901:2 NCCL INFO Channel 02/0 : 8[0] -> 0[0] via NET/IB/3", "(via SHM/direct) foo via P2P/IPC", "# ",
    "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 nNodes 2", "n1:1:2 NCCL INFO Connected all rings", "8 9", ",5 1",
    "n1:1:2 [0] NCCL INFO Channel 00/02 : 0 1 2 3", "#  Rank[1] 3 Pid 1 on n1 device 0 [0x1] GPU", '"1024 256 float",',
)  # fmt: skip
FRONTS = ("", "", "", "0: ", "[2] ", "[1,0]<stdout>:", "2026-11-30 12:00:00 ", "[2026-11-30T12:00:00.5+01:00] ", "\\")


@pytest.mark.parametrize("kind", KINDS)
def test_what_native_code_passes_over_says_nothing(read, monkeypatch, kind):
    """Logs between lines of the library are read alike where Python reads every line."""
    random_ = random.Random(kind)
    monkeypatch.setattr(lines, "PIECE_BYTES", 512)
    for _ in range(60):
        said = [random_.choice(FRONTS) + random_.choice(LIBRARY_LINES) for _ in range(random_.randrange(20))]
        front = random_.choice(FRONTS)
        middle = [front + line for line in mutant(KINDS[kind], random_).split("\n")]
        text = "\n".join([*said, *middle, *(random_.choice(FRONTS) + one for one in said)])
        found = []
        for scanner in (logs._scanner(), EveryLine()):
            with monkeypatch.context() as patched:
                patched.setattr(logs, "_scanner", lambda scanner=scanner: scanner)
                try:
                    found.append(repr(read(text)))
                except LinkwrightError as error:
                    found.append(str(error))
        assert found[0] == found[1]


def test_every_reader_is_of_a_tool_with_a_source():
    assert all(reader.summary and reader.source and reader.tool for reader in logs.READERS)
    assert rates("allreduce", 8, 8000, 1.0) == (8.0, 14.0)


# ---- rows that contradict themselves

ROW = next(line for line in nccl().splitlines() if line.split()[:1] == [str(1 << 20)])
CONTRADICTORY = {
    "a time without its dot": (ROW.replace("20.49", "2049", 1), "time and algbw disagree"),
    "another busbw": (ROW.replace("89.57", "98.57", 1), "algbw and busbw disagree: 98.57 is not 1.75 x"),
    "another count": (ROW.replace("262144", "26214", 1), "size and count disagree"),
    "no time": (ROW.replace("20.49", "0.00", 1), "the time is 0"),
    "a size with its unit": (ROW.replace("1048576", "1M", 1), "size, count and type of a row"),
    "a size with commas": (ROW.replace("1048576", "1,048,576", 1), "size, count and type of a row"),
    "columns run together": (re.sub(r"1048576\s+262144", "1048576262144", ROW), "size, count and type of a row"),
    "a type run together": (re.sub(r"262144\s+float", "262144float", ROW), "size, count and type of a row"),
    "two rows in a line": (ROW + ROW, "two rows stand in one line"),
    "a row within another": (ROW[:60] + ROW, "is not a number"),
    "wrong elements": (re.sub(r"(89.57\s+)0", r"\1many", ROW, count=1), "is not a number"),
}


@pytest.mark.parametrize("kind", CONTRADICTORY)
def test_a_row_that_contradicts_itself_is_named(read, kind):
    row, says = CONTRADICTORY[kind]
    log = read(nccl().replace(ROW, row))
    ((line, what),) = log.complaints
    assert (line, says in what) == (nccl().splitlines().index(ROW) + 1, True), what
    assert 20.49 not in [row.time for row in log.tables[0].rows]
    assert {row.size for row in log.tables[0].rows} >= {1 << 10, 1 << 30}


def test_rows_of_healthy_logs_agree(read):
    for collective in ("allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce"):
        for ranks in (2, 8, 72, 1024):
            assert read(nccl(collective, ranks)).complaints == ()


def test_a_time_of_few_digits_agrees_with_its_rate(read):
    """nccl-tests prints so times of many seconds; 17.9 s are 0.96 GB/s."""
    row = " 17179869184  4294967296  float  none  -1  1.8e+07  0.96  0.96  0  1.8e+07  0.96  0.96  N/A"
    log = read(nccl("sendrecv", 2, end=False) + row + "\n")
    assert (log.complaints, log.tables[0].rows[-1].time) == ((), 1.8e7)


@pytest.mark.parametrize(("change", "nodes"), [(("Rank  7", "Rank  3"), None), (("Rank  7", "Rank 70"), 1)])
def test_a_list_of_ranks_that_the_rates_contradict(read, change, nodes):
    log = read(nccl().replace(*change))
    assert (log.tables[0].ranks, log.tables[0].nodes) == (8, nodes)
    assert [what for _, what in log.complaints if "lists rank 70" in what] or change[1] != "Rank 70"


def test_ranks_follow_from_rates_if_only_rank_0_is_listed(read):
    text = re.sub(r"#  Rank +[1-9].*\n", "", nccl(ranks=16, nodes=2))
    assert [(table.ranks, table.nodes) for table in read(text).tables] == [(16, None)]


def test_wrong_results_are_a_fact_of_the_log(read):
    log = read(nccl().replace(ROW, re.sub(r"(89.57\s+)0", r"\g<1>128", ROW, count=1)))
    assert [(row.size, row.wrong) for row in log.wrong] == [(1 << 20, 128)]
    assert log.tables[0].wrong == log.wrong
    assert read(nccl()).wrong == ()


@pytest.mark.parametrize("time", [math.nan, None, 2049.0])
def test_a_result_of_json_that_contradicts_itself_is_named(read, time):
    document = json.loads(nccl_json())
    document["results"][1]["out_of_place"]["time"] = time
    log = read(json.dumps(document))
    assert [what.partition(":")[0] for _, what in log.complaints] == ["result 2"]
    assert {row.size for row in log.tables[0].rows} == {1 << 10, 1 << 30}


@pytest.mark.parametrize(
    ("header", "row", "time"),
    [("# Size  Min Latency(us)  Avg Latency(us)  Max Latency(us)", "1024 1.0 2.0 3.0", 2.0),
     ("# Size Avg Latency(us) Min Latency(us) Max Latency(us)", "1024 2.0 1.0 3.0", 2.0),
     ("# Size       Latency (us)", "1024 2.0", 2.0),
     ("# Size  P50 Tail Lat(us)  Avg Latency(us)", "1024 7.0 2.0", 2.0),
     ("# Size  Min Latency(us)  Max Latency(us)", "1024 1.0 3.0", 3.0)],
)  # fmt: skip
def test_columns_of_osu_are_found_by_their_names(read, header, row, time):
    (table,) = read(f"# OSU MPI Allreduce Latency Test v7.3\n{header}\n{row}\n").tables
    assert [one.time for one in table.rows] == [time]


def test_headings_that_markdown_escapes_are_headings(read):
    (table,) = read(
        "\\# OSU MPI All-to-Allv Personalized Exchange Latency Test v7.5\n\\# Datatype: MPI_CHAR.\n"
        "\\# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n4096  467.38  460.43  474.05\n"
    ).tables
    assert (table.collective, table.per_rank, times(table)) == ("alltoall", True, {4096: 467.38})


def test_a_heading_of_osu_without_a_size_is_refused(read):
    with pytest.raises(FileError, match="without a known unit or a size"):
        read("# OSU MPI All-to-Allv Latency Test v7.5\n# Bytes  Avg Latency(us)\n4096  467.38\n")


def test_tables_of_other_tools_and_types_are_named(read):
    with pytest.raises(FileError, match="a table of nccom-test"):
        read("   size(B)    count(elems)     type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
             "  33554432        33554432    uint8         768          40.69          40.69\n")  # fmt: skip
    heading = "# size  count  type  redop  root  time  algbw  busbw #wrong\n"
    for row in ("1048576 262144 fp4 sum -1 31.90 32.87 57.52 0", "1048576,262144,float,sum,-1,31.90,32.87,57.52,0"):
        with pytest.raises(FileError, match="size, count and type of a row were expected"):
            read(f"{heading}{row}\n")


@pytest.mark.parametrize(("ranks", "busbw", "collective"), [(2, "0.06", "allreduce"), (2, "0.03", "reduce_scatter")])
def test_small_rates_tell_the_collective_where_their_digits_do(read, ranks, busbw, collective):
    """2048 B in 31.58 us are 0.0649 GB/s: of two ranks allreduce has 0.06 and reduce_scatter 0.03."""
    listed = "".join(
        f"#  Rank  {at} Group  0 Pid  {at + 5} on  n{at} device  0 [0x31] NVIDIA A40\n" for at in range(ranks)
    )
    heading = "# size  count  type  redop  root  time  algbw  busbw #wrong\n"
    (table,) = read(f"{listed}{heading} 2048 512 float sum -1 31.58 0.06 {busbw} 0\n").tables
    assert (table.collective, table.inferred) == (collective, True)


def test_a_second_heading_of_osu_replaces_the_first(read):
    with pytest.raises(FileError, match="without a known unit"):
        read("# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)\n# (us)\n8 2.0\n")


@pytest.mark.parametrize(
    ("title", "collective", "per_rank"),
    [("All-to-Allv Personalized Exchange Latency", "alltoall", True), ("Allgatherv Latency", "allgather", True),
     ("Reduce_scatter_block Latency", "reduce_scatter", False), ("Persistent Allreduce Latency", "allreduce", False)],
)  # fmt: skip
def test_variants_of_collectives_of_osu(read, title, collective, per_rank):
    (table,) = read(osu(title)).tables
    assert (table.collective, table.per_rank) == (collective, per_rank)


@pytest.mark.parametrize(
    ("text", "says"),
    [("# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us)\n8 5 1 3\n",
      "not between 1 and 3"),
     (imb().replace("# #processes = 16", "# #processes = 0"), "no process took part"),
     (re.sub(r"(\d+\.\d+)(\s*\n)", r"9\g<1>\2", imb()), "not between"),
     (imb().replace("20.49", "time-out.;"), "not numeric")],
)  # fmt: skip
def test_impossible_rows_of_osu_and_imb_are_named(read, text, says):
    try:
        named = [what for _, what in read(text).complaints]
    except FileError as error:
        named = [str(error)]
    assert any(says in what for what in named), named


def test_a_brace_in_a_name_opens_no_object(read):
    text = inspector().replace('"hostname": "', '"hostname": "a{b\\"')
    assert text != inspector()
    assert times(read(text).tables[0]) == times(read(inspector()).tables[0])


def test_a_group_of_one_rank_moves_nothing(read):
    with pytest.raises(FileError, match="no kernel of the trace"):
        read(kineto().replace('"Group size": 8', '"Group size": 1'))


@pytest.mark.parametrize("program", ["broadcast", "sendrecv", "allreduce"])
def test_a_table_of_another_collective_than_it_says_is_not_read(read, program):
    heads = {"broadcast": "broadcast_perf", "sendrecv": "sendrecv_perf", "allreduce": "all_reduce_perf"}
    text = nccl("allgather").replace("all_gather_perf", heads[program])
    with pytest.raises(FileError, match=f"busbw is 0.875 x algbw, which {program} has on no number of ranks"):
        read(text)


# ---- runs that end early, and sizes in another order


def test_a_run_that_ends_early_is_named(read):
    """The heading asks for 1 GiB by a factor of 2; the last line of the tool is missing."""
    early = nccl(sizes=SIZES[:2], end=False)
    assert [text for _, text in read(early).complaints] == [
        "sizes end at 1M, and the test was to reach 1G: the job ended early"
    ]
    assert not read(nccl(sizes=SIZES[:2])).complaints  # a user has left rows out
    assert not read(nccl(end=False)).complaints
    by_bytes = early.replace("step: 2(factor)", "step: 1073741824(bytes)")
    assert not read(by_bytes).complaints


def test_sizes_may_fall(read):
    times = {size: size / 1e5 + 20 for size in (1 << 30, 1 << 20, 1 << 10)}
    assert [len(table.rows) for table in read(nccl(times=times)).tables] == [6]
    again = nccl(times=times, end=False) + nccl(times=times, title=False, devices=False)
    assert [len(table.rows) for table in read(again).tables] == [6, 6]


def test_a_version_is_the_number_that_nccl_tests_print(read):
    head = "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library={}\n"
    assert read(head.format("21904") + nccl()).facts.version == "2.19.4"
    assert read(head.format("2.27.3") + nccl()).facts.version is None


def test_the_version_of_rccl_is_the_number_that_rccl_tests_print(read):
    head = "# rccl-tests version 2.17.9-develop:2596ca5f71 rccl-headers=22803 rccl-library=22707\n"
    facts = read(head + nccl()).facts
    assert (facts.library, facts.version) == ("RCCL", "2.27.7")


@pytest.mark.parametrize(
    ("collective", "ranks", "known"),
    [("allreduce", 8, 8), ("allgather", 32, 32), ("allreduce", 2, 2), ("broadcast", 8, None), ("alltoall", 16, 16)],
)
def test_ranks_are_those_of_the_rates_where_a_log_lists_none(read, collective, ranks, known):
    """busbw / algbw is 2 (n - 1) / n, or (n - 1) / n; of a broadcast it is 1 on any number."""
    assert read(nccl(collective, ranks, devices=False)).tables[0].ranks == known


def test_a_table_of_sizes_of_nothing_is_named(read, tmp_path):
    """An allgather of fewer bytes than ranks rounds its sizes down to 0."""
    empty = "\n".join(
        re.sub(r"^ *\d+ +\d+( +float.*)$", r"     0     0\1", line) for line in nccl().splitlines()
    )  # fmt: skip
    with pytest.raises(FileError, match="all sizes of this table are 0 bytes, so nothing moved; give -b and -e"):
        read(empty)


def test_every_line_that_a_tool_knows_has_a_mark_of_it():
    lines_of = [line for text in KINDS.values() for line in text.splitlines()]
    known = [(one, line) for line in lines_of for one in logs.TEXTS if one.knows(line)]
    assert {one.tool for one, _ in known} == {one.tool for one in logs.TEXTS}
    assert not [(one.tool, line) for one, line in known if not any(mark in line for mark in one.marks)]


def test_native_code_has_the_same_marks_and_limits():
    source = Path(__file__).parents[2] / "crates" / "linkwright-tables" / "src" / "log.rs"
    stated = re.findall(r"^(?:pub )?const (\w+): \w+ = ([\w.]+)(?: << (\d+))?;", source.read_text(), re.M)
    native = {name: float(value) * 2 ** int(shift or 0) for name, value, shift in stated}
    marks = {name: getattr(reading, name) for name in ("OTHER", "ROW", "HEAD", "FACT", "CONNECTION")}
    limits = {name: getattr(lines, name) for name in ("MOST_LINE", "MOST_MICROS", "MOST_RATE", "MOST_SIZE")}
    assert {name: value for name, value in native.items() if name not in ("APART", "LAST_DIGIT")} == marks | limits
