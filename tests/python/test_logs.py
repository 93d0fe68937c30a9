"""Logs as people have them: every variant is read, no line is fatal, and what is no row is named."""

import contextlib
import json
import random
import re
import signal
import tracemalloc

import pytest

from linkwright.base.errors import FileError, LinkwrightError
from linkwright.formats import logs
from linkwright.formats.logs import lines, read_log
from log_cases import (
    FULL,
    KINDS,
    PINGPONG,
    RING,
    SAID,
    SIZES,
    imb,
    inspector,
    kineto,
    nccl,
    nccl_json,
    nvbandwidth,
    osu,
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
        return f"node0:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks {ranks} nNodes 1\n" + nccl(devices=False)

    assert [table.ranks for table in read(said(8) + said(4)).tables] == [8, 4]


@pytest.mark.parametrize(
    ("unit", "rate", "row"), [("ms", "GB/s", "10.75 99.88 174.79"), ("us", "MB/s", "10750 99882.2 174794")]
)
def test_units_of_a_heading_are_obeyed(read, unit, rate, row):
    text = nccl(sizes=(1 << 30,), in_place=False).replace("(us)  (GB/s)", f"({unit})  ({rate})")
    (found,) = read(re.sub(r"(sum +-1) .*", rf"\1 {row} 0", text)).tables[0].rows
    assert (found.time, found.busbw) == pytest.approx((10750, 174.79), rel=1e-3)


@pytest.mark.parametrize(("time", "kept"), [("10747.42", 2), ("10740.0", 2), ("107474.2", 1), ("1074742", 1)])
def test_a_time_that_contradicts_its_rate_is_named_and_not_read(read, time, kept):
    """It lost its point, or a digit."""
    log = read(nccl(sizes=(1 << 20, 1 << 30), in_place=False).replace("10747.42", time))
    assert len(log.tables[0].rows) == kept
    assert ["time and algbw disagree" in text for _, text in log.complaints] == [True] * (2 - kept)


def test_what_a_library_reports_is_typed(read):
    facts = read(nccl(ranks=16, nodes=2, between=[SAID.format(node=node) for node in (1, 2)])).facts
    assert facts.nics == dict.fromkeys(("n1", "n2"), ("mlx5_0:1/IB", "mlx5_1:1/RoCE"))
    assert facts.ports_used == {"n1": {1}, "n2": {1}}
    assert (facts.network, facts.multicast, facts.gpudirect, facts.sharp) == ("IB", False, False, False)
    assert facts.chosen == {1 << 20: ("ring", "simple"), 8: ("nvls_tree", "ll")}
    assert (facts.connections("SHM"), facts.connections("NET"), facts.connections("NET/Socket")) == (6, 6, 0)
    assert (facts.channels, facts.per_process, facts.runs) == (16, 1, 1)
    assert (facts.setting("NCCL_IB_HCA"), facts.setting("NCCL_ALGO")) == ("mlx5_0,mlx5_1", None)
    assert facts.proxied == 6


@pytest.mark.parametrize("mixed", [False, True])
def test_runs_side_by_side_are_groups_of_their_own(read, mixed):
    """A test built without MPI: two hosts list ranks 0 to 7, one after the other or by turns."""
    lines = nccl(ranks=8).splitlines(keepends=True)
    listed = [line for line in lines if "Rank" in line]
    again = [line.replace("node0", "node1") for line in listed]
    both = [line for pair in zip(listed, again, strict=True) for line in pair] if mixed else [*listed, *again]
    rows = [again for line in lines if " sum " in line for again in (line, line)]
    log = read("".join([*lines[:3], *both, *(line for line in lines[11:] if " sum " not in line), *rows]))
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
    assert len(log.matrices) == 2
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
    (complaint,) = log.complaints
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
    with pytest.raises(FileError, match="the test `MPI Bi-Directional Bandwidth` is not read"):
        read(osu("Bi-Directional Bandwidth", "# Size      Bandwidth (MB/s)"))


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


def test_nvbandwidth_as_text_and_json(read):
    first, second = read(nvbandwidth()).matrices
    assert (first.name, first.rows) == ("host_to_device_memcpy_ce", ((55.31, 55.29),))
    assert second.rows == ((None, 390.2), (390.1, None))
    cases = [{"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["55.31", "N/A"]]}]
    (matrix,) = read(json.dumps({"nvbandwidth": {"testcases": cases}})).matrices
    assert matrix.rows == ((55.31, None),)


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


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_read_or_refused(read, kind):
    """Lines swapped, cut and doubled, characters changed: a value or a message, never another exception."""
    random_ = random.Random(kind)
    for _ in range(150):
        text = list(KINDS[kind])
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
        try:
            log = read("".join(text))
        except LinkwrightError:
            continue
        for table in log.tables:
            assert all(row.size >= 0 and (row.time is None or row.time >= 0) for row in table.rows)


def test_every_reader_is_of_a_tool_with_a_source():
    assert all(reader.summary and reader.source and reader.tool for reader in logs.READERS)
    assert rates("allreduce", 8, 8000, 1.0) == (8.0, 14.0)
