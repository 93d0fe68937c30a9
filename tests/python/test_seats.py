"""Which endpoints take part: ranks per node, named endpoints, and what is too large to be simulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import machines
from linkwright.base.errors import LinkwrightError, UsageError
from linkwright.base.units import format_us
from linkwright.libraries.settings import Setup
from linkwright.libraries.times import Model, places
from linkwright.machines import Variant
from linkwright.machines.variant import nodes_of
from linkwright_cases import invoke

HGX = ("--on", "hgx-h100", "--nodes", "2", "--sizes", "16M")


def head(*arguments: str) -> str:
    """What `simulate` prints."""
    result = invoke("simulate", *arguments)
    assert result.status == 0, result.err
    return result.out


@pytest.mark.parametrize(
    ("variant", "ranks", "expected"),
    [
        (Variant(2), None, None),
        (Variant(2), 16, None),
        (Variant(2), 2, (0, 8)),
        (Variant(2), 6, (0, 1, 2, 8, 9, 10)),
        (Variant(2, ranks_per_node=4), None, (0, 1, 2, 3, 8, 9, 10, 11)),
        (Variant(2, ranks_per_node=4), 4, (0, 1, 2, 3)),
        (Variant(ranks_per_node=2), None, (0, 1)),
        (Variant(2, place=("node 1 GPU 0..1", "node 0 GPU 7")), None, (8, 9, 7)),
    ],
)
def test_every_node_gets_an_equal_share(variant: Variant, ranks: int | None, expected: tuple[int, ...] | None):
    assert variant.places(machines.load("hgx-h100", variant), ranks) == expected


@pytest.mark.parametrize(
    ("variant", "ranks", "problem"),
    [
        (Variant(2), 3, "3 ranks do not divide equally among 2 nodes"),
        (Variant(2, ranks_per_node=9), None, "a node of hgx-h100-x2 has 8 ranks"),
        (
            Variant(2, ranks_per_node=4),
            6,
            "4 on each of 2 nodes are 8; ask for a multiple of 4 up to that",
        ),
        (Variant(2, place=("GPU 0",)), None, "unknown endpoint `GPU 0`"),
        (Variant(2, place=("node 0 GPU 0", "node 0 GPU 0")), None, "is named twice"),
        (Variant(2, place=("node 0 GPU 0..1",)), 3, "--place names 2 endpoints"),
    ],
)
def test_what_does_not_fit_is_refused(variant: Variant, ranks: int | None, problem: str):
    machine = machines.load("hgx-h100", Variant(variant.nodes))
    with pytest.raises(LinkwrightError, match=problem):
        variant.places(machine, ranks)


def test_a_variant_survives_a_run_folder():
    variant = Variant(2, "ndr-fat-tree", ranks_per_node=4)
    assert Variant.of(**variant.to_json()) == variant
    with pytest.raises(UsageError, match="omit --ranks-per-node"):
        Variant(2, ranks_per_node=4, place=("GPU 0",))


def test_two_ranks_on_two_nodes_are_one_on_each():
    out = head("allreduce", "-p", "2", *HGX)
    assert "# 2 of 16 endpoints take part, the first ones of each node" in out
    # A port carries 50 GB/s, NVLink nine times as much.
    assert float(out.splitlines()[-1].split()[4]) < 50
    assert out.splitlines()[-1] == head("allreduce", "--ranks-per-node", "1", *HGX).splitlines()[-1]
    named = head("allreduce", "--place", "node 0 GPU 0,node 1 GPU 0", *HGX)
    assert out.splitlines()[-1] == named.splitlines()[-1]


def test_without_ranks_all_endpoints_of_the_nodes_take_part():
    out = head("broadcast", "-a", "binomial", "--on", "hgx-h100", "--nodes", "40", "--sizes", "8")
    assert "take part" not in out
    assert "320 ranks" in out


def test_a_machine_of_too_many_endpoints_asks_how_many(tmp_path):
    result = invoke("simulate", "allreduce", "--on", "hgx-h100", "--nodes", "1024", "--sizes", "8")
    assert result.status == 2
    assert "has 8,192 endpoints; say how many take part, with --ranks or --ranks-per-node" in result.err


def test_part_of_each_node_is_planned_and_simulated_where_it_is():
    setup = Setup("hgx-h100", 2, 1, "ndr-fat-tree", "nccl-2.27", "allreduce")
    model = Model()
    assert places(model.machine(setup), setup) == (0, 8)
    size = 1 << 30
    for collective in ("allreduce", "sendrecv"):
        alone = Setup("hgx-h100", 2, 1, "ndr-fat-tree", "nccl-2.27", collective)
        assert size / model.time(alone, size).time_us / 1e3 < 50  # GB/s of a port


def test_a_suite_runs_on_part_of_each_node(tmp_path):
    asked = ("--ranks-per-node", "2", *HGX, "--runs", str(tmp_path))
    result = invoke("run", "allreduce", "-a", "ring", *asked)
    assert result.status == 0, result.err
    assert "4 of 16 endpoints take part, the first ones of each node" in result.out


def test_a_schedule_is_explained_where_its_ranks_are():
    result = invoke("explain", "allreduce/ring", "--on", "hgx-h100", "--nodes", "2", "--ranks-per-node", "1")
    assert result.status == 0, result.err
    assert "2 ranks" in result.out
    assert "NIC" in result.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("explain", "allreduce/ring", "--on", "loggp", "-p", "1"), "takes no time on 1 rank; ask for more ranks"),
        (
            ("draw", "allreduce/ring", "--on", "loggp", "-p", "1", "--out", "a.svg"),
            "takes no time on 1 rank; ask for more ranks",
        ),
        (
            ("explain", "alltoall/linear", "--on", "loggp", "-p", "2048", "--size", "1M"),
            "an answer simulates it some 30 times, about 8 minutes",
        ),
        (
            ("simulate", "allreduce", "-a", "ring", "--on", "loggp", "-p", "7919", "--sizes", "8"),
            "about 128,8",
        ),
        (  # few operations, each with a set of all ranks
            ("simulate", "allreduce", "-a", "nvls", "--on", "crossbar", "-p", "7919", "--sizes", "8"),
            "about 58,1",
        ),
    ],
)  # fmt: skip
def test_what_is_too_large_or_too_small_is_refused_before_the_work(arguments, problem, tmp_path, monkeypatch):
    import re

    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.status != 0
    assert re.search(problem, re.sub(r"\s+#?\s*", " ", result.err + result.out))


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "empty.json").touch()
    result = invoke("explain", str(tmp_path / "empty.json"))
    assert result.status != 0
    assert "is empty; give a log or a schedule" in result.err


def test_a_sweep_of_an_axis_goes_up():
    result = invoke("run", "probe/memory_latency", "--axis", "working_set=4K..1K")
    assert result.status == 2
    assert "4K..1K ends before it begins; write the smaller first" in result.err


@pytest.mark.parametrize(
    ("words", "grid"),
    [
        (("--nodes", "4"), (8, 4)),
        (("--nodes", "4", "-p", "8"), (2, 4)),
        (("--nodes", "4", "--ranks-per-node", "3"), (3, 4)),
        (("--nodes", "4", "--grid", "4x8"), (4, 8)),
        (("--nodes", "4", "-p", "4"), None),  # one on each
        (("--nodes", "2", "--place", "node 0 GPU 0..2,node 1 GPU 0"), None),  # three and one
        (("--nodes", "2", "--place", "node 0 GPU 0,node 1 GPU 0,node 0 GPU 1,node 1 GPU 1"), None),  # in turns
        (("--nodes", "2", "--place", "node 0 GPU 0..1,node 1 GPU 0..1,node 0 GPU 2..3,node 1 GPU 2..3"), None),
        ((), None),
    ],
)
def test_algorithms_between_nodes_take_the_nodes_of_the_machine(words: tuple[str, ...], grid: tuple[int, ...] | None):
    result = invoke(
        "simulate", "allreduce", "-a", "hierarchical,ring", "--on", "hgx-h100", "--sizes", "1M", *words, "--json"
    )
    rows = {row["algorithm"]: row for row in json.loads(result.out)["rows"] if row["metric"] == "time"}
    assert rows["hierarchical"]["status"] == ("ok" if grid else "waived")
    assert rows["hierarchical"]["grid"] == (f"{grid[0]}x{grid[1]}" if grid else None)
    assert bool(rows["ring"]["grid"]) == ("--grid" in words)


def test_explain_takes_the_nodes_of_the_machine_as_simulate_does():
    """A grid that only the schedule asked about needs does not reach `two_shot`, which takes one if it is given."""
    on = "--on", "hgx-h100", "--nodes", "4"
    told = json.loads(invoke("explain", "allreduce/hierarchical", *on, "--size", "1M", "--json").out)
    names = "hierarchical,two_shot,nvls_tree"
    rows = json.loads(invoke("simulate", "allreduce", "-a", names, *on, "--sizes", "1M", "--json").out)["rows"]
    times = {row["algorithm"]: row["value"] / 1e3 for row in rows if row["metric"] == "time"}
    assert told["time_us"] == pytest.approx(times["hierarchical"])
    better = {one["algorithm"].partition("/")[2]: one["time_us"] for one in told["better"]}
    assert better["two_shot"] == pytest.approx(times["two_shot"])
    assert better["nvls_tree"] == pytest.approx(times["nvls_tree"])


@pytest.mark.parametrize("name", ["allreduce/one_shot", "own.lw"])
def test_every_verb_puts_an_equal_share_on_each_node(name, tmp_path, monkeypatch):
    """Two GPUs of each of two nodes; a file states its four ranks itself."""
    monkeypatch.chdir(tmp_path)
    Path("own.lw").write_text(lw.schedule("allreduce", "one_shot", ranks=4, size="1M").text())
    on, ranks = ("--on", "hgx-h100", "--nodes", "2"), () if name == "own.lw" else ("-p", "4")
    words = name.split("/")
    asked = (words[0], *(("-a", words[1], *ranks, "--sizes", "1M") if ranks else ()), *on, "--json")
    (row,) = [row for row in json.loads(invoke("simulate", *asked).out)["rows"] if row["metric"] == "time"]
    told = json.loads(invoke("explain", name, *on, *ranks, "--json").out)
    assert told["time_us"] == pytest.approx(row["value"] / 1e3)
    drawn = invoke("draw", name, *on, *ranks, "--out", "a.html")
    assert f": {format_us(told['time_us'])}" in Path("a.html").read_text(), drawn.err


def test_a_search_takes_the_first_endpoints_and_says_so():
    on = ("--on", "hgx-h100", "--nodes", "2")
    says = (
        "its ranks are not its first 4 endpoints in order, which a search takes; search for all ranks, on fewer "
        "--nodes, or without --place"
    )
    refused = invoke("synthesize", "allreduce", *on, "-p", "4", "--sizes", "1M", "--budget", "1s")
    assert f"hgx-h100-x2: {says}" in refused.err
    for asked in [(*on, "-p", "4"), ("--on", "hgx-h100", "--place", "GPU 4..7")]:
        assert says in invoke("explain", "allreduce/ring", "--search", "1s", *asked).err


def test_the_limit_is_that_of_the_ranks_where_they_sit():
    on = ("--on", "hgx-h100", "--nodes", "2", "-p", "4", "--sizes", "1M")
    (row,) = [
        row for row in json.loads(invoke("simulate", "allreduce", "-a", "one_shot", *on, "--json").out)["rows"]
        if row["metric"] == "time"
    ]  # fmt: skip
    first, *_ = json.loads(invoke("describe", "allreduce", "--limit", *on, "--json").out)
    assert first["time_us"] == pytest.approx(row["limit"] / 1e3)


def test_a_machine_of_any_size_has_no_share_of_a_node():
    done = invoke("simulate", "allreduce", "-a", "ring", "--on", "loggp", "-p", "3000000", "--ranks-per-node", "1")
    assert done.status == 2
    assert "leaves its number of ranks open" in done.err


def test_nodes_are_those_of_all_racks():
    text = (Path(__file__).parents[2] / "examples" / "gpu_cluster.toml").read_text(encoding="utf-8")
    rack = 'name = "rack"\ncount = 4\nsource = "a"\n\n[[level]]\nname = "node"\ncount = 128'
    assert nodes_of(machines.read(text, "one.toml")) == 512
    assert nodes_of(machines.read(text.replace('name = "node"\ncount = 512', rack), "racks.toml")) == 512


def test_a_machine_of_any_size_has_no_nodes():
    """Of so many ranks one stands for all, and the machine keeps its number open."""
    words = (
        "simulate",
        "allreduce",
        "-a",
        "hierarchical,ring",
        "--on",
        "crossbar",
        "-p",
        "2000000",
        "--sizes",
        "8000000",
    )
    result = invoke(*words)
    assert result.status == 0, result.err
    assert "waived: simulate/allreduce/hierarchical/p2000000" in result.out
