"""Formats of other tools: what is written can be read back, and what is broken is refused with its line."""

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwright.base.errors import LinkwrightError, StoreError, UsageError
from linkwright.formats import interop
from linkwright.formats.interop.importing import Defaults
from linkwright.formats.interop.logs import merged, take
from linkwright.store import run as runs
from linkwright.store import schema
from linkwright_cases import invoke
from log_cases import KINDS, OF_LINKS, SIZES, nccl, nvbandwidth

CACHES = [
    {"level": "1", "type": "Data", "size": "32K", "shared_cpu_list": "{cpu}"},
    {"level": "1", "type": "Instruction", "size": "32K", "shared_cpu_list": "{cpu}"},
    {"level": "3", "type": "Unified", "size": "8192K", "shared_cpu_list": "0-1", "coherency_line_size": "64"},
]
NCCL = """# nThread 1 nGpus 2 minBytes 8 maxBytes 16
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid      1 on   host device  0 [0x07] GPU
#  Rank  1 Group  0 Pid      1 on   host device  1 [0x0a] GPU
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    30.05    0.00    0.00      0    29.83    0.00    0.00      0
          16             4     float     sum      -1    31.00    0.00    0.00    N/A    29.83    0.00    0.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.001
"""
OSU = """# OSU MPI Allgather Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
4                       1.50
8                       1.75
"""


def row(metric, value, **more):
    words = {"run": "r", "suite": "s", "machine": "box", "executor": "threads", "ranks": 2, "size_bytes": 8,
             "dtype": "f32", "status": "ok", "placement": "topology"}  # fmt: skip
    words |= {"experiment": f"{more.get('algorithm', 'x')}/{more.get('size_bytes', 8)}/{more.get('placement', '')}"}
    return schema.row(**{**words, "metric": metric, "value": value, "unit": schema.METRICS[metric][0], **more})


def pair(a, b, value, **more):
    return row("latency", value, placement=f"{a}->{b}", algorithm="ping_pong", **more)


@pytest.fixture
def made(tmp_path):
    """A run of two processors, with one matrix and one collective at two sizes."""

    def make(rows, executor="threads"):
        run = runs.create(tmp_path / "runs", "dissect", "", {})
        environment = {
            "memory_bytes": 1 << 30,
            "topology": [
                {"cpu": cpu, "package": "0", "core": str(cpu), "siblings": str(cpu),
                 "caches": [{k: v.format(cpu=cpu) for k, v in cache.items()} for cache in CACHES]}
                for cpu in (0, 1)
            ],
        }  # fmt: skip
        (run.folder / "environment.json").write_text(json.dumps(environment))
        run.write_results([{**r, "executor": executor} for r in rows], runs.samples_table(run, []))
        return run

    return make


MATRIX = [pair("cpu 0", "cpu 1", 67.4), pair("cpu 1", "cpu 0", 71.6)]
RING = {"collective": "allreduce", "algorithm": "ring", "op": "sum"}


def read(text, **stated):
    return take(Path("x"), Defaults(**stated), text=text).rows


def collective(size, ns, **more):
    rate = size / ns * 1e9
    sized = {**RING, "size_bytes": size, **more}
    return [row("time", ns, **sized), row("alg_bw", rate, **sized), row("bus_bw", rate, **sized)]


# --- hwloc ------------------------------------------------------------------------------------------


def test_objects_nest_by_their_processors_and_distances_are_rounded(made):
    text = interop.exporter("hwloc").render(interop.content(made(MATRIX)))
    topology = ElementTree.fromstring(text)

    def nested(element):
        inside = [nested(child) for child in element.findall("object")]
        return element.get("type") + (f"({' '.join(inside)})" if inside else "")

    one = "L1Cache(Core(PU))"
    assert nested(topology.find("object")) == f"Machine(NUMANode Package(L3Cache({one} {one})))"
    matrix = topology.find("distances2")
    assert (matrix.get("type"), matrix.get("kind"), matrix.get("indexing")) == ("PU", "6", "os")
    assert matrix.find("indexes").text.split() == ["0", "1"]
    assert [line.text.split() for line in matrix.findall("u64values")] == [["0", "67"], ["72", "0"]]
    assert all(len(e.text) == int(e.get("length")) for e in matrix)


def test_a_matrix_with_a_hole_is_left_out(made):
    text = interop.exporter("hwloc").render(interop.content(made(MATRIX[:1])))
    assert ElementTree.fromstring(text).find("distances2") is None


def test_endpoints_of_a_described_machine_are_numbered_in_order(made):
    names = ["tile (1,1)", "tile (2,1)", "tile (3,1)"]
    tiles = [pair(a, b, 100.0) for a in names for b in names if a != b]
    topology = ElementTree.fromstring(interop.exporter("hwloc").render(interop.content(made(tiles, "sim"))))
    units = [element for element in topology.iter("object") if element.get("type") == "PU"]
    assert [unit.find("info").get("value") for unit in units] == names
    assert [unit.get("os_index") for unit in units] == ["0", "1", "2"]


@pytest.mark.skipif(shutil.which("lstopo") is None, reason="lstopo (Debian package hwloc) is not installed")
def test_lstopo_reads_it(made, tmp_path):
    path = tmp_path / "machine.xml"
    path.write_text(interop.exporter("hwloc").render(interop.content(made(MATRIX))))
    found = subprocess.run(
        ["lstopo", "-i", path, "--distances", "--of", "console"], capture_output=True, text=True, check=True
    )
    assert "LinkwrightLatencyNs" in found.stdout
    assert found.stdout.split()[-1] == "0"


def test_of_several_machines_one_must_be_chosen(made):
    run = made([*MATRIX, *[{**r, "machine": "other"} for r in MATRIX]])
    with pytest.raises(UsageError, match=r"box and other; choose one with --machine"):
        interop.exporter("hwloc").render(interop.content(run))
    with pytest.raises(UsageError, match="unknown machine in this run `boxx`"):
        interop.exporter("hwloc").render(interop.content(run, "boxx"))


# --- nccl-tests -------------------------------------------------------------------------------------


def test_nccl_tests_text_is_as_nccl_tests_prints_it(made):
    sweep = row("half_peak_size", 1024.0, **{**RING, "algorithm": "swing"})  # of a sweep, so no table of its own
    text = interop.exporter("nccl-tests").render(interop.content(made([*collective(1024, 12340.0), sweep])))
    assert text.splitlines()[2:] == [
        "# allreduce/ring, 2 ranks, threads on box",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
        "        1024           256     float     sum      -1    12.34   0.083   0.083      0",
        "# Out of bounds values : 0 OK",
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 1 << 30), min_size=1, max_size=8, unique=True), st.floats(10.0, 1e10))
def test_what_is_exported_is_imported_to_three_digits(tmp_path_factory, sizes, ns):
    run = runs.create(tmp_path_factory.mktemp("runs"), "dissect", "", {})
    rows = [r for size in sorted(sizes) for r in collective(4 * size, ns)]
    run.write_results(rows, runs.samples_table(run, []))
    text = interop.exporter("nccl-tests").render(interop.content(run))
    found = read(text)
    assert [item.size_bytes for item in found] == [4 * size for size in sorted(sizes)]
    for item in found:
        assert (item.collective, item.algorithm, item.ranks, item.machine) == ("allreduce", "ring", 2, "box")
        assert item.value == pytest.approx(ns, rel=6e-3)


def test_a_run_without_collectives_has_nothing_for_nccl_tests(made):
    with pytest.raises(StoreError, match="holds no finished collective"):
        interop.exporter("nccl-tests").render(interop.content(made(MATRIX)))


def test_what_nccl_tests_printed_is_read():
    found = read(NCCL, machine="dgx")
    assert [(i.collective, i.ranks, i.size_bytes, i.value, i.op, i.machine) for i in found] == [
        ("allreduce", 2, 8, 30050.0, "sum", "dgx"),
        ("allreduce", 2, 16, 31000.0, "sum", "dgx"),
    ]


def test_nccl_tests_among_other_output_are_read():
    zero = NCCL_LINES[7].replace("           8 ", "           0 ", 1)
    assert zero != NCCL_LINES[7]
    noise = "user@node1:~$ mpirun -np 2 all_reduce_perf\nnode1:71:71 [0] NCCL INFO Bootstrap: Using eth0\n"
    among = "".join([*NCCL_LINES[:7], zero, zero, NCCL_LINES[7], "node1:71:80 [0] NCCL WARN slow\n", *NCCL_LINES[8:]])
    found = read(noise + among, machine="dgx")
    plain = read(NCCL, machine="dgx")
    assert [(row.size_bytes, row.value) for row in found] == [(row.size_bytes, row.value) for row in plain]


def test_what_osu_printed_is_read_and_blocks_are_counted_by_rank():
    found = read(OSU, ranks=4)
    assert [(i.collective, i.size_bytes, i.value) for i in found] == [
        ("allgather", 16, 1500.0),
        ("allgather", 32, 1750.0),
    ]


NCCL_LINES = NCCL.splitlines(keepends=True)
BROKEN = {
    "cut in a line": ("".join(NCCL_LINES[:8]) + "   16   4  float\n", r"x:9: columns are missing.*cut"),
    "cut before the type": ("".join(NCCL_LINES[:8]) + "   16   4\n", r"x:9: columns are missing.*cut"),
    "cut in the last number": ("".join(NCCL_LINES[:9]).rstrip(), r"x:9: the last line is not terminated"),
    "wrong sums": (NCCL.replace("0    29.83", "7    29.83", 1), r"x:8: 7 wrong elements"),
    "no number": (NCCL.replace("30.05", "3O.05"), r"x:8: a time or a rate is not a number"),
    "osu cut": (OSU.rstrip("\n"), r"x:5: the last line is not terminated"),
    "osu cut in a line": (OSU + "16\n", r"x:6: a size or a value is not a number"),
    "osu without title": ("4 1.5\n", r"holds no table of a known tool"),
    "osu of another test": (OSU.replace("Allgather", "Tennis"), r"x:1: the test `MPI Tennis Latency` is not supported"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_its_line(name):
    text, message = BROKEN[name]
    with pytest.raises(LinkwrightError, match=message):
        read(text, ranks=4)


def test_what_a_file_does_not_say_must_be_given():
    with pytest.raises(UsageError, match="give it with --ranks"):
        read(OSU)
    unnamed = NCCL.replace("# Collective test starting: all_reduce_perf\n", "").replace("sum ", "none")
    with pytest.raises(UsageError, match="give it with --collective"):
        read(unnamed)
    assert {row.collective for row in read(unnamed, collective="allgather")} == {"allgather"}


def test_without_its_last_line_a_file_may_be_cut():
    taken = take(Path("x"), Defaults(), text="".join(NCCL_LINES[:9]))
    assert "x: ends at 16 without `# Out of bounds values`, so it may be cut; compare that" in taken.told
    assert not any("cut" in told for told in take(Path("x"), Defaults(), text=NCCL).told)


def test_a_repeated_test_gives_the_median():
    twice = read(NCCL + NCCL.replace("30.05", "32.05"))
    assert [(row.size_bytes, row.value, row.count) for row in merged(twice)] == [(8, 31050.0, 2), (16, 31000.0, 2)]


def test_tables_of_other_things_are_named_and_left_out():
    taken = take(Path("x"), Defaults(), text=NCCL + NCCL.replace("all_reduce", "sendrecv"))
    assert len(taken.rows) == 2
    assert "x:19: left out: `sendrecv` is not a collective of linkwright" in taken.told
    with pytest.raises(UsageError, match="no time of a collective"):
        read(nvbandwidth())


def test_tables_of_one_tool_are_taken_where_several_stand_in_a_file():
    assert {row.executor for row in take(Path("x"), Defaults(ranks=2), "OSU", NCCL + OSU).rows} == {"osu"}
    with pytest.raises(UsageError, match="holds numbers of nccl-tests, and --as asks for OSU"):
        take(Path("x"), Defaults(), "OSU", NCCL)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {*OF_LINKS, "zones"}))
def test_every_log_that_is_explained_is_imported(tmp_path, kind):
    (tmp_path / "a.log").write_text(KINDS[kind], encoding="utf-8")
    words = (
        "import",
        str(tmp_path / "a.log"),
        "--runs",
        str(tmp_path / "runs"),
        "-p",
        "8",
        "--collective",
        "allreduce",
    )
    result = invoke(*words)
    assert result.status == 0, result.err
    again = invoke("export", "--as", "csv", "--runs", str(tmp_path / "runs"))
    assert again.status == 0
    assert "ok" in again.out


@pytest.mark.parametrize("dtype", ["half", "fp8_e4m3", "int8", "uint64"])
def test_types_that_linkwright_does_not_compute_with_are_shown(tmp_path, dtype):
    (tmp_path / "a.log").write_text(nccl(dtype=dtype), encoding="utf-8")
    root = ("--runs", str(tmp_path / "runs"))
    assert invoke("import", str(tmp_path / "a.log"), *root).status == 0
    assert invoke("import", str(tmp_path / "a.log"), *root).status == 0
    for words in (
        ("compare", "latest~1", "latest"),
        ("draw", "latest", "--report"),
        ("list", "runs"),
        ("explain", "latest"),
    ):
        result = invoke(*words, *root)
        assert result.status == 0, f"{words}: {result.err}"
    (tmp_path / "b.log").write_text(invoke("export", "--as", "nccl-tests", *root).out, encoding="utf-8")
    again = take(tmp_path / "b.log", Defaults()).rows
    assert [row.size_bytes for row in again] == list(SIZES)


# --- verbs ------------------------------------------------------------------------------------------


def test_import_makes_a_run_that_export_and_query_know(tmp_path):
    (tmp_path / "nccl.txt").write_text(NCCL)
    root = ("--runs", str(tmp_path / "runs"))
    assert invoke("import", str(tmp_path / "nccl.txt"), "--as", "nccl-tests", "--machine", "dgx", *root).status == 0
    asked = invoke("query", "select value from results where metric='time' order by 1", *root, "--json")
    assert [r["value"] for r in json.loads(asked.out)] == [30050.0, 31000.0]
    out = tmp_path / "again.csv"
    exported = invoke("export", "--as", "csv", "--out", str(out), *root)
    assert out.read_text().count("allreduce") >= 6
    count, run = len(out.read_text().splitlines()) - 1, next((tmp_path / "runs").iterdir()).name
    assert exported == (0, f"wrote {out} ({out.stat().st_size:,} B): csv, from {count} rows of run {run}\n", "")


def test_a_root_is_imported_and_exported(tmp_path):
    (tmp_path / "nccl.txt").write_text(NCCL.replace("all_reduce", "broadcast").replace("sum      -1", "none       1"))
    root = ("--runs", str(tmp_path / "runs"))
    assert invoke("import", str(tmp_path / "nccl.txt"), "--as", "nccl-tests", *root).status == 0
    lines = invoke("export", "--as", "nccl-tests", *root).out.splitlines()
    assert [line.split()[3:5] for line in lines if not line.startswith("#")] == [["none", "1"], ["none", "1"]]


def test_queries_without_a_statement_and_numbers_that_json_lacks(tmp_path):
    (tmp_path / "nccl.txt").write_text(NCCL)
    root = ("--runs", str(tmp_path / "runs"))
    assert invoke("import", str(tmp_path / "nccl.txt"), "--as", "nccl-tests", *root).status == 0
    empty = invoke("query", "", *root)
    assert (empty.status, empty.err.count("\n")) == (2, 1)
    assert "contains no statement" in empty.err
    asked = invoke("query", "select 'nan'::double as a, 1 / 0 as b, 2.5::decimal(4, 1) as c", *root, "--json")
    assert json.loads(asked.out, parse_constant=pytest.fail) == [{"a": None, "b": None, "c": 2.5}]


def test_a_refused_file_leaves_no_run(tmp_path):
    (tmp_path / "nccl.txt").write_text("".join(NCCL_LINES[:9]).rstrip())
    result = invoke("import", str(tmp_path / "nccl.txt"), "--as", "nccl-tests", "--runs", str(tmp_path / "runs"))
    assert result.status == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("exporter", interop.EXPORTERS, ids=lambda e: e.key)
def test_every_exporter_writes_a_whole_file(made, tmp_path, exporter):
    path = tmp_path / "file"
    exporter.write(interop.content(made([*MATRIX, *collective(64, 10.0)])), path)
    path = path / "README.md" if path.is_dir() else path
    assert path.read_bytes().endswith(b"PAR1" if exporter.key == "parquet" else b"\n")


# --- one verdict for imported logs ---------------------------------------------------------------


def imported(folder, times, *words, devices=True):
    (folder / "a.log").write_text(nccl(times=times, devices=devices), encoding="utf-8")
    return invoke("import", str(folder / "a.log"), "--runs", str(folder / "runs"), *words)


def slow(factor=1.0):
    """Times of large sizes at 320 GB/s on the bus: 2 x 7/8 x size / time."""
    return {1 << at: factor * (1 << at) * 1.75 / 320e3 for at in (28, 30, 32)}


def test_every_verb_says_that_an_imported_log_is_slow(tmp_path):
    """320 instead of 480 GB/s: in the terminal, in the report, in `compare` and in `explain`, and its gate fails."""
    root = ("--runs", str(tmp_path / "runs"))
    first = imported(tmp_path, slow())
    assert first.status == 0, first.err
    assert "suspicious. At 4G you have 320 GB/s" in " ".join(first.out.split())
    page = Path(first.out.splitlines()[-1]).read_text(encoding="utf-8")
    assert ">Suspicious<" in page
    assert ">Healthy<" not in page
    assert imported(tmp_path, slow()).status == 0
    both = invoke("compare", "latest~1", "latest", *root)
    assert "3 compared: 3 SAME" in both.out
    assert both.out.count("suspicious.") == 2
    document = json.loads(invoke("compare", "latest~1", "latest", "--json", *root).out)
    assert [one["state"] for one in document["imported"]] == ["suspicious"] * 2
    alone, again = invoke("explain", str(tmp_path / "a.log")), invoke("explain", "latest", "--gate", *root)
    assert again.status == 1
    assert alone.out.partition("Verdict:")[2] == again.out.partition("Verdict:")[2]


def test_a_log_without_a_machine_is_not_called_healthy(tmp_path):
    result = imported(tmp_path, slow(), "-p", "8", devices=False)
    assert "Compared with no healthy machine: the log names no device" in " ".join(result.out.split())
    assert ">Not sure<" in Path(result.out.splitlines()[-1]).read_text(encoding="utf-8")
    named = imported(tmp_path, slow(), "--on", "hgx-h100", "-p", "8", devices=False)
    assert "suspicious." in named.out
    assert ">Suspicious<" in Path(named.out.splitlines()[-1]).read_text(encoding="utf-8")


@pytest.mark.parametrize(("factor", "verdict", "status"), [(1.0, "SAME", 0), (2.0, "SLOWER", 1), (0.5, "FASTER", 0)])
def test_single_values_of_logs_are_judged_by_the_tolerance_of_expect(tmp_path, factor, verdict, status):
    """One node of HGX H100: 6 % from 64 MiB on, so twice the time is beyond it."""
    imported(tmp_path, slow())
    imported(tmp_path, slow(factor))
    gate = invoke("compare", "latest~1", "latest", "--fail-slower", "--runs", str(tmp_path / "runs"))
    assert (f"3 {verdict}" in gate.out, gate.status) == (True, status)


def test_six_logs_of_a_test_have_an_interval(tmp_path):
    """The median of six is between the third and the fourth, and its interval is from the first to the sixth."""
    for at in range(6):
        (tmp_path / f"{at}.log").write_text(nccl(times={1 << 30: 3000.0 + 10 * at}), encoding="utf-8")
    files, root = [str(tmp_path / f"{at}.log") for at in range(6)], ("--runs", str(tmp_path / "runs"))
    assert invoke("import", *files, *root).status == 0
    (row,) = [row for row in runs.find(tmp_path / "runs", "latest").results().records() if row["metric"] == "time"]
    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (3.025e6, 3e6, 3.05e6, 6)
    assert row["grade"] == "tight"
    assert invoke("import", *files, *root).status == 0
    assert "1 SAME" in invoke("compare", "latest~1", "latest", *root).out
