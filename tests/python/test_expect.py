"""Expected rates, their floors, and gates: each format is read back by a small reader, written from the tool's source.

A gate has to fail exactly where the floor is, whatever margin the tool has of its own.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from expect_cases import PUBLIC
from linkwright import schemas
from linkwright.advise import expect
from linkwright.base import registry
from linkwright.base.errors import UsageError
from linkwright.formats import gates
from linkwright.formats.gates import Expectation, Expected, Judged, Standing
from linkwright.formats.gates.gate import PROGRAMS, rate
from linkwright.formats.logs import Facts
from linkwright.libraries import tolerance
from linkwright.libraries.settings import COLLECTIVES
from linkwright.libraries.tolerance import Basis
from linkwright.machines import Variant
from linkwright_cases import invoke
from log_cases import nccl

GIB, MIB = 1 << 30, 1 << 20


def expectation(collective="allreduce", size=8 * GIB, busbw=400.0, share=0.125):
    return Expectation(
        collective, size, 1000.0, busbw, share, Basis.SYSTEM, 3, 2, "Ring Simple, 16 channels", (0.8, 1.25)
    )


def made(*its, library="nccl-2.27", nodes=2, ranks=16, **more):
    its = its or (expectation(),)
    return Expected("box", nodes, nodes, ranks, {one.collective: library for one in its}, its, ("a note",), **more)


# ---- tolerances


def test_the_nearest_published_systems_decide():
    exact = tolerance.of("hgx-h100", "ndr-fat-tree", "allreduce", 2, GIB)
    assert (exact.basis, exact.tables, exact.sites) == (Basis.SYSTEM, 3, 3)
    assert tolerance.of("hgx-h100", "ndr-fat-tree,taper=2", "allreduce", 2, GIB) == exact
    more = tolerance.of("hgx-h100", "ndr-fat-tree", "allreduce", 16, GIB)
    assert more.basis is Basis.MACHINE
    assert more.share >= exact.share


def test_few_nodes_say_nothing_about_many():
    assert tolerance.of("hgx-h100", "ndr-fat-tree", "allreduce", 128, GIB).basis is Basis.COLLECTIVE


def test_without_data_the_widest_known_counts():
    unknown = tolerance.of("own.toml", None, "gather", 1, GIB)
    one_node = [one for one in tolerance.groups() if one.nodes == 0 and one.size == 2]
    assert unknown.basis is Basis.ANY
    assert unknown.share == max(one.shortfall for one in one_node)


def test_no_tolerance_is_below_what_systems_of_one_kind_differ_by():
    for one in tolerance.groups():
        nodes = (1, *tolerance.NODES, 1 << 10)[one.nodes + (one.nodes > 0)]
        found = tolerance.of(one.machine, one.fabric, one.collective, nodes, (8, 8 * MIB, GIB)[one.size])
        assert found.basis is Basis.SYSTEM
        assert found.share >= tolerance.scatter()[one.nodes > 0][one.size]
        assert 0 < found.least < 1


def test_every_group_has_data_of_a_known_collective():
    for one in tolerance.groups():
        assert one.tables >= one.sites >= 1
        assert one.collective in COLLECTIVES.values()


# ---- public floors


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.where)
def test_a_floor_is_above_what_operators_ship_and_below_what_they_measure(public):
    assert (public.shipped < public.ours < public.measured) is public.between


# ---- gates, read back


def comments(text):
    return [line for line in text.splitlines() if line.startswith("#")]


@pytest.fixture(params=[gate for gate in gates.GATES.values() if not gate.needs_log], ids=lambda gate: gate.key)
def gate(request):
    return request.param


def test_a_gate_says_where_its_numbers_are_from(gate):
    library = "rccl-2.22" if gate.libraries == ("rccl",) else "nccl-2.27"
    one = made(nodes=1, ranks=8, library=library) if gate.key == "nhc" else made(library=library)
    text = gates.written(gate, one)
    assert "a note" in text
    assert text.endswith("\n")
    assert gates.written(gate, one) == text


def test_a_gate_is_refused_where_the_tool_does_not_test(gate):
    if gate.libraries:
        with pytest.raises(UsageError, match=f"--format {gate.key}: is for"):
            gates.written(gate, made(library="oneccl-2021"))
        if gate.key not in ("nccl-tests", "superbench", "cvs"):
            with pytest.raises(UsageError, match=f"--format {gate.key}: this gate is about|does not label"):
                gates.written(gate, made(expectation("alltoall")))


@pytest.mark.parametrize("value", [12345.6, 355.99, 99.99, 10.05, 1.999, 0.012345])
def test_rates_are_rounded_down_to_three_digits(value):
    assert value * 0.99 < float(rate(value)) <= value


def test_nccl_tests_fail_at_the_average_of_the_floors():
    its = [expectation(size=size, busbw=busbw) for size, busbw in ((GIB, 200.0), (2 * GIB, 300.0), (4 * GIB, 400.0))]
    text = gates.written(gates.find("nccl-tests"), made(*its))
    assert "all_reduce_perf -b 1G -e 4G -f 2" in text
    number = float(re.search(r"^export NCCL_TESTS_MIN_BW=([\d.]+)$", text, re.M)[1])
    floor = 300 * 0.875
    assert 0.99 * floor < 0.9 * number <= floor  # `bw[0] < check_avg_bw*(0.9)` fails


def test_nccl_tests_take_one_collective_and_one_sweep():
    with pytest.raises(UsageError, match="name one collective"):
        gates.written(gates.find("nccl-tests"), made(expectation(), expectation("alltoall")))
    uneven = [expectation(size=size) for size in (GIB, 2 * GIB, 8 * GIB)]
    with pytest.raises(UsageError, match=r"sizes such as `1M\.\.8G`"):
        gates.written(gates.find("nccl-tests"), made(*uneven))


def test_aicr_passes_from_the_floor_on():
    text = gates.written(gates.find("aicr"), made())
    (value,) = re.findall(r'- name: nccl-all-reduce-bw\n +value: ">= (\d+)"', text)
    assert 0.99 * 350 < 0.9 * int(value) <= 350  # `bandwidth >= threshold * 0.9` passes
    assert "- nccl-all-reduce-bw\n    constraints:" in text
    for wrong in (made(nodes=1), made(expectation(size=GIB))):
        with pytest.raises(UsageError, match="two nodes or more"):
            gates.written(gates.find("aicr"), wrong)


@pytest.mark.parametrize(
    ("nodes", "name", "size"),
    [
        (1, "preflight-nccl-loopback", ("TEST_SIZE_MB", "8192")),
        (2, "preflight-nccl-allreduce", ("MESSAGE_SIZES", "8G")),
    ],
)
def test_nvsentinel_compares_the_number_as_it_is(nodes, name, size):
    text = gates.written(gates.find("nvsentinel"), made(nodes=nodes))
    assert f"    - name: {name}\n" in text
    values = dict(re.findall(r'- name: (\w+)\n +value: "(.+)"', text))
    assert values == {"BW_THRESHOLD_GBPS": "350", size[0]: size[1]}
    with pytest.raises(UsageError, match="whole number of MiB"):
        gates.written(gates.find("nvsentinel"), made(expectation(size=GIB + 4)))


@pytest.mark.parametrize("nodes", [1, 2])
def test_cvs_fails_below_the_floor(nodes):
    its = (expectation(), expectation("alltoall", busbw=40.0))
    document = json.loads(gates.written(gates.find("cvs"), made(*its, library="rccl-2.22", nodes=nodes)))["rccl"]
    assert document["cvs_params"]["verify_bus_bw"] == "True"
    size = str(8 * GIB)
    for one in its:
        if nodes == 1:
            assert document["cvs_params"]["fabric"] == "scale_up"
            reference = document["results"]["scale_up"][f"{PROGRAMS[one.collective]}-float-16"][size]["bus_bw"]
        else:
            reference = document["results"][PROGRAMS[one.collective]]["bus_bw"][size]
        assert 0.99 * one.floor < 0.95 * float(reference) <= one.floor  # `actual < expected * 0.95` fails


def test_hosts_within_a_machine_are_not_guessed():
    """A rack of trays is one node here, several hosts to a library."""
    rack = replace(made(nodes=1), hosts=None)
    assert "nccl-all-reduce-bw" in gates.written(gates.find("aicr"), rack)
    assert "preflight-nccl-allreduce" in gates.written(gates.find("nvsentinel"), rack)
    assert "n_nodes" not in gates.written(gates.find("prometheus"), rack)
    assert 'n_nodes="2"' in gates.written(gates.find("prometheus"), made())


def test_nhc_is_a_line_of_one_node():
    nvidia = gates.written(gates.find("nhc"), made(nodes=1))
    amd = gates.written(gates.find("nhc"), made(nodes=1, library="rccl-2.22"))
    assert nvidia.splitlines()[-1] == " * || check_nccl_allreduce 350 1 TOPOLOGY 8G"
    assert amd.splitlines()[-1] == " * || check_rccl_allreduce 350 1 8G"
    with pytest.raises(UsageError, match="one node"):
        gates.written(gates.find("nhc"), made())


def test_superbench_marks_what_is_below_the_floor():
    text = gates.written(gates.find("superbench"), made(expectation(), expectation("reduce_scatter", GIB)))
    rules = re.findall(r"function: value\n +criteria: (.+)\n +categories: NCCL\n +metrics:\n +- (.+)\n", text)
    assert [metric for _, metric in rules] == [
        rf"nccl-bw/allreduce_{8 * GIB}_busbw:\d+", rf"nccl-bw/reducescatter_{GIB}_busbw:\d+",
    ]  # fmt: skip
    for criterion, metric in rules:
        assert re.fullmatch(r"lambda x:x<[\d.]+", criterion)
        assert float(criterion.partition("<")[2]) == 350
        assert re.search(metric, metric.replace(r"\d+", "0"))
    assert "nccl-bw/return_code" in text


def test_reframe_thresholds_are_shares_of_the_value():
    space: dict = {}
    exec(gates.written(gates.find("reframe"), made(expectation(share=0.1239))), space)
    value, lower, upper, unit = space["reference"]["*"]["allreduce_8G_busbw"]
    assert (value, lower, upper, unit) == (400, -0.124, None, "GB/s")


def test_prometheus_rules_use_the_labels_of_the_inspector():
    its = (expectation(), expectation("allgather", size=16 * GIB), expectation(size=int(1.5 * GIB)))
    text = gates.written(gates.find("prometheus"), made(*its))
    found = re.findall(r"expr: 'max by \(slurm_job_id, comm_name\) \(nccl_bus_bandwidth_gbs\{(.+)\}\) < (.+)'", text)
    assert [re.search('message_size="(.+?)"', labels)[1] for labels, _ in found] == ["8-9GB", "1-2GB", "1-2GB"]
    assert [re.search('collective="(.+?)"', labels)[1] for labels, _ in found] == [
        "AllReduce",
        "AllGather",
        "AllReduce",
    ]
    assert {floor for _, floor in found} == {"350"}
    with pytest.raises(UsageError, match="does not label alltoall"):
        gates.written(gates.find("prometheus"), made(expectation("alltoall")))


# ---- a measured log


@pytest.fixture(scope="module")
def healthy():
    """Size -> us of one node, modelled."""
    found = expect.systems(expect.Installation("hgx-h100", Variant()), ["allreduce"])
    return {one.size_bytes: one.time_us for one in expect.expectations(found, (MIB, 64 * MIB, GIB))}


def judged(tmp_path, times, *options, **how):
    log = tmp_path / "all_reduce.log"
    log.write_text(nccl(times=times, in_place=False, **how))
    return invoke("expect", "allreduce", "--on", "hgx-h100", "--log", str(log), *options)


def test_a_healthy_log_passes(tmp_path, healthy):
    result = judged(tmp_path, healthy)
    assert result.status == 0, result.err
    assert result.out.count("passed") == 4
    assert "all_reduce.log: passed" in result.out


def test_a_slow_log_fails_at_its_sizes(tmp_path, healthy):
    result = judged(tmp_path, healthy | {GIB: 2 * healthy[GIB]}, "--format", "junit")
    assert result.status == 1
    cases = {case.get("name"): case for case in ElementTree.fromstring(result.out).iter("testcase")}
    assert {name: case.find("failure") is not None for name, case in cases.items()} == {
        "allreduce 1M": False, "allreduce 64M": False, "allreduce 1G": True,
    }  # fmt: skip
    assert "below the floor: measured 2" in cases["allreduce 1G"].find("failure").get("message")
    (suite,) = ElementTree.fromstring(result.out)
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "0"]


def test_wrong_results_fail_however_fast_they_are(tmp_path, healthy):
    result = judged(tmp_path, healthy, wrong="128")
    assert result.status == 1
    assert "wrong results" in result.out


def test_a_size_that_the_log_lacks_has_not_passed(tmp_path, healthy):
    result = judged(tmp_path, healthy, "--format", "junit", "--sizes", "1G,8G")
    assert result.status == 1
    failed = {case.get("name") for case in ElementTree.fromstring(result.out).iter("testcase") if len(case)}
    assert failed == {"allreduce 8G"}


def test_a_log_of_others_is_refused(tmp_path, healthy):
    four, two = (judged(tmp_path, healthy, **shape).err for shape in ({"ranks": 4}, {"nodes": 2}))
    assert "was measured on 4 ranks, and the question is about 8; give --ranks 4" in four
    assert "was measured on 2 nodes, and the question is about 1; give --nodes 2" in two
    many = judged(tmp_path, healthy, ranks=32, devices=False).err
    assert "was measured on 32 ranks, and the question is about 8; give --nodes 4" in many
    assert "has no times of allreduce" in judged(tmp_path, healthy, collective="allgather").err


def test_the_document_follows_its_schema(tmp_path, healthy):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schemas.path("expect").read_text(encoding="utf-8"))
    for document in (
        json.loads(judged(tmp_path, healthy, "--json").out),
        json.loads(invoke("expect", "allreduce", "--on", "hgx-h100", "--sizes", "1G", "--json").out),
    ):
        jsonschema.Draft7Validator(schema).validate(document)
        assert document["rows"][0]["floor_gb_per_s"] < document["rows"][0]["busbw_gb_per_s"]
        assert document["passed"] in (True, None)


# ---- the verb


def test_a_table_states_value_tolerance_floor_and_where_they_are_from():
    result = invoke("expect", "allreduce", "--on", "hgx-h100", "--nodes", "2", "--sizes", "512M..1G")
    assert result.status == 0, result.err
    head, _, header, *rows, _, note = result.out.splitlines()
    assert head == "hgx-h100 --nodes 2, 16 ranks, nccl-2.27"
    assert header.split()[:3] == ["collective", "size", "time"]
    assert [row.split()[1] for row in rows] == ["512M", "1G"]
    assert note.startswith("tolerance of allreduce from 64M, ")
    assert note.endswith("of hgx-h100 over ndr-fat-tree on 2 to 4 nodes")


def test_a_widest_tolerance_is_stated():
    result = invoke("expect", "alltoall", "--on", "hgx-h200", "--nodes", "2", "--sizes", "1G")
    assert "the widest known of " in result.out


def test_what_a_machine_lacks_is_stated():
    result = invoke("expect", "allreduce", "--on", "hgx-h100", "--without", "nvlink", "--sizes", "1G")
    assert "the tolerances are those of whole machines" in result.out


def test_a_gate_goes_to_a_file(tmp_path):
    out = tmp_path / "gate.conf"
    result = invoke("expect", "allreduce", "--on", "hgx-h100", "--sizes", "1G", "--format", "nhc", "--out", str(out))
    assert result.out == f"wrote {out}: nhc, hgx-h100, 8 ranks, nccl-2.27\n"
    assert "check_nccl_allreduce" in out.read_text()


def test_a_name_does_not_leave_its_comment(tmp_path, monkeypatch):
    """A gate for the shell is sourced, so a line of a file name may not become one of its own."""
    monkeypatch.chdir(tmp_path)
    text = registry.machine_path("hgx-h100").read_text(encoding="utf-8")
    Path("x\necho.toml").write_text(text, encoding="utf-8")
    result = invoke("expect", "allreduce", "--on", "./x\necho.toml", "--sizes", "1G", "--format", "nccl-tests")
    assert result.status == 0, result.err
    assert [line for line in result.out.splitlines() if not line.startswith(("#", "export NCCL_TESTS_MIN_BW="))] == []
    assert "the widest known of allreduce on any machine" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", "--on", "hgx-h100"), "unknown collective `nothing`"),
        (("allreduce", "--on", "loggp"), "describes no library for"),
        (("allreduce", "--on", "hgx-h100", "--sizes", "64G"), "published tables have 1 B to 32G"),
        (("allreduce", "--on", "hgx-h100", "--sizes", "0"), "published tables have 1 B to 32G"),
        (("alltoall", "--on", "hgx-h100", "--sizes", "8"), "alltoall of 8 ranks has a block for each, 32 B or more"),
        (("allreduce", "--on", "hgx-h100", "-p", "9"), "give 2 to 8, the same number on each node"),
        (("allreduce", "--on", "hgx-h100", "-p", "1"), "give 2 to 8, the same number on each node"),
        (("allreduce", "--on", "hgx-h100", "--nodes", "2", "-p", "3"), "the same number on each node"),
        (("allreduce", "--on", "hgx-h100", "--nodes", "2", "--fabric", "nothing"), "unknown network `nothing`"),
        (("allreduce", "--on", "hgx-h100", "-a", "nccl-2.26/tree"), "unknown version for allreduce"),
        (("allreduce", "--on", "hgx-h100", "--format", "nothing"), "unknown gate `nothing`"),
        (("allreduce", "--on", "hgx-h100", "--format", "junit"), "give one with --log"),
        (("allreduce", "--on", "hgx-h100", "--format", "aicr", "--log", "x"), "does not judge a log"),
        (("alltoall", "--on", "hgx-h100", "--nodes", "128"), "1,024 ranks: every size would be simulated for minutes"),
        (("allreduce", "--on", "hgx-h100", "--nodes", "60000"), "480,000 ranks"),
        (("allreduce", "--on", "hgx-h100", "--format", "cvs", "--sizes", "1G"), "is for rccl, not for nccl"),
    ],
)
def test_what_cannot_be_answered_is_refused(arguments, message):
    result = invoke("expect", *arguments)
    assert result.status == 2
    assert message in result.err


def test_a_version_is_the_one_asked_for():
    asked = ("expect", "allreduce", "--on", "hgx-h100", "--sizes", "1G")
    assert "nccl-2.26" in invoke(*asked, "-a", "nccl-2.26").out


def test_an_absent_size_has_not_passed():
    one = made()
    absent = replace(one, log="x", judged=[Judged(one.expectations[0], Standing.ABSENT)])
    assert absent.failed


def test_a_log_is_judged_by_the_version_that_it_names():
    asked = expect.Installation("hgx-h100", Variant())
    assert expect.versioned(asked, Facts(library="NCCL", version="2.19.3"), "allreduce").version == "nccl-2.19"
    assert expect.versioned(asked, Facts(library="RCCL", version="2.22.3"), "allreduce") == asked
    assert expect.versioned(asked, Facts(), "allreduce") == asked


def test_the_former_spelling_of_json_names_the_new_one():
    asked = ("expect", "allreduce", "--on", "hgx-h100", "--sizes", "1G")
    new, old = invoke(*asked, "--json"), invoke(*asked, "--format", "json")
    assert (new.out, old.err) == (old.out, "linkwright: `expect --format json` is now `linkwright expect --json`\n")
    assert "omit one of them" in invoke(*asked, "--json", "--format", "nhc").err
