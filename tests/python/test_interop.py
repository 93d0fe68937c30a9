"""Formats of other tools: what is written can be read back, and what is broken is refused with its line."""

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwright import interop
from linkwright.errors import StoreError, UsageError
from linkwright.interop.importing import Defaults
from linkwright.store import run as runs
from linkwright.store import schema
from linkwright_cases import invoke

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
    found = interop.importer("nccl-tests").parse(Path("x"), text, Defaults())
    assert [item.size_bytes for item in found] == [4 * size for size in sorted(sizes)]
    for item in found:
        assert (item.collective, item.algorithm, item.ranks, item.machine) == ("allreduce", "ring", 2, "box")
        assert item.value == pytest.approx(ns, rel=6e-3)


def test_a_run_without_collectives_has_nothing_for_nccl_tests(made):
    with pytest.raises(StoreError, match="holds no finished collective"):
        interop.exporter("nccl-tests").render(interop.content(made(MATRIX)))


def test_what_nccl_tests_printed_is_read():
    found = interop.importer("nccl-tests").parse(Path("x"), NCCL, Defaults(machine="dgx"))
    assert [(i.collective, i.ranks, i.size_bytes, i.value, i.op, i.machine) for i in found] == [
        ("allreduce", 2, 8, 30050.0, "sum", "dgx"),
        ("allreduce", 2, 16, 31000.0, "sum", "dgx"),
    ]


def test_nccl_tests_among_other_output_are_read():
    zero = NCCL_LINES[7].replace("           8 ", "           0 ", 1)
    assert zero != NCCL_LINES[7]
    noise = "user@node1:~$ mpirun -np 2 all_reduce_perf\nnode1:71:71 [0] NCCL INFO Bootstrap: Using eth0\n"
    among = "".join([*NCCL_LINES[:7], zero, zero, NCCL_LINES[7], "node1:71:80 [0] NCCL WARN slow\n", *NCCL_LINES[8:]])
    read = interop.importer("nccl-tests").parse(Path("x"), noise + among, Defaults(machine="dgx"))
    plain = interop.importer("nccl-tests").parse(Path("x"), NCCL, Defaults(machine="dgx"))
    assert [(row.size_bytes, row.value) for row in read] == [(row.size_bytes, row.value) for row in plain]


def test_what_osu_printed_is_read_and_blocks_are_counted_by_rank():
    found = interop.importer("osu").parse(Path("x"), OSU, Defaults(ranks=4))
    assert [(i.collective, i.size_bytes, i.value) for i in found] == [
        ("allgather", 16, 1500.0),
        ("allgather", 32, 1750.0),
    ]


NCCL_LINES = NCCL.splitlines(keepends=True)
BROKEN = {
    "cut at the end": ("nccl-tests", "".join(NCCL_LINES[:9]), r"x:9: .*ends before"),
    "cut in a line": ("nccl-tests", "".join(NCCL_LINES[:8]) + "   16   4  float", r"x:9: 3 columns.*cut"),
    "two mixed": ("nccl-tests", "".join([*NCCL_LINES[:9], NCCL_LINES[7], *NCCL_LINES[9:]]), r"x:10: size 8 follows 16"),
    "two joined": ("nccl-tests", NCCL + NCCL_LINES[7], r"x:12: .*joined"),
    "without header": ("nccl-tests", "".join(NCCL_LINES[7:]), r"x:1: numbers before the header"),
    "wrong sums": ("nccl-tests", NCCL.replace("0    29.83", "7    29.83", 1), r"x:8: 7 wrong elements"),
    "no number": ("nccl-tests", NCCL.replace("30.05", "3O.05"), r"x:8: time `3O.05` is not a number"),
    "osu cut": ("osu", OSU.rstrip("\n"), r"x:5: .*cut"),
    "osu cut in a line": ("osu", OSU + "16\n", r"x:6: 1 columns"),
    "osu without title": ("osu", "4 1.5\n", r"x:1: numbers before a title"),
    "osu of another test": ("osu", OSU.replace("Allgather", "Tennis"), r"x:1: test `tennis latency`"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_its_line(name):
    key, text, message = BROKEN[name]
    with pytest.raises(UsageError, match=message):
        interop.importer(key).parse(Path("x"), text, Defaults(ranks=4))


def test_what_a_file_does_not_say_must_be_given():
    with pytest.raises(UsageError, match="give it with --ranks"):
        interop.importer("osu").parse(Path("x"), OSU, Defaults())
    unnamed = NCCL.replace("# Collective test starting: all_reduce_perf\n", "")
    with pytest.raises(UsageError, match="give it with --collective"):
        interop.importer("nccl-tests").parse(Path("x"), unnamed, Defaults())


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
    assert "holds no statement" in empty.err
    asked = invoke("query", "select 'nan'::double as a, 1 / 0 as b, 2.5::decimal(4, 1) as c", *root, "--json")
    assert json.loads(asked.out, parse_constant=pytest.fail) == [{"a": None, "b": None, "c": 2.5}]


def test_a_refused_file_leaves_no_run(tmp_path):
    (tmp_path / "nccl.txt").write_text("".join(NCCL_LINES[:9]))
    result = invoke("import", str(tmp_path / "nccl.txt"), "--as", "nccl-tests", "--runs", str(tmp_path / "runs"))
    assert result.status == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("exporter", interop.EXPORTERS, ids=lambda e: e.key)
def test_every_exporter_writes_a_whole_file(made, tmp_path, exporter):
    path = tmp_path / "file"
    exporter.write(interop.content(made([*MATRIX, *collective(64, 10.0)])), path)
    assert path.read_bytes().endswith(b"PAR1" if exporter.key == "parquet" else b"\n")
