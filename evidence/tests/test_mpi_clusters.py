"""The study of MPI collectives by algorithm: tags, places on the torus, conditions, and times derived by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from linkwright.base.errors import FileError
from linkwright.machines import Variant, load
from linkwright_evidence import Options, reproduce
from linkwright_evidence.mpi_clusters import cells, conditions, fastest, fit, open_mpi, software, tags, trees
from linkwright_evidence.mpi_clusters.condition import Condition
from linkwright_evidence.mpi_clusters.predict import Model, places, units
from linkwright_evidence.mpi_clusters.tags import Refusal, Way
from linkwright_evidence.numbers import values

HEAD = "machine,nodes,tasks_per_node,collective,algorithm_file_tag,size_bytes\n"


@pytest.mark.parametrize(
    ("machine", "collective", "tag", "way"),
    [
        ("leonardo", "allgather", "ring_over_int32", Way("ring")),
        ("leonardo", "allgather", "bine_block_by_block_over_any_even_int32", Way("swing", blocks=True)),
        ("leonardo", "allreduce", "bine_bdw_remap_segmented_over_131072_int32", Way("bine_bandwidth")),
        ("lumi", "allreduce", "recursive_doubling_mpich_int32", tags.DEFAULT),
        ("fugaku", "allgather", "default-recursive-doubling_int32", Way("recursive_doubling")),
        (
            "fugaku",
            "broadcast",
            "BINE-BINOMIAL_TREE-UTOFU-65536-6_int32",
            Way("bine", ports=6, segment=65536, puts=True),
        ),
        (
            "fugaku",
            "gather",
            "BINE-BINOMIAL_TREE_CONT_PERMUTE-DEC-UTOFU-0-3_int32",
            Way("bine", copies=1, ports=3, puts=True),
        ),
    ],
)
def test_a_tag_says_what_runs(machine: str, collective: str, tag: str, way: Way) -> None:
    """One tag of each form."""
    assert tags.way(machine, collective, tag) == way


def test_an_unknown_tag_is_refused_with_its_name() -> None:
    """Not guessed."""
    found = tags.way("fugaku", "allreduce", "default-trix6_int32")
    assert isinstance(found, Refusal)
    assert "default-trix6" in found.reason


@pytest.mark.parametrize("sides", [(2, 2, 2), (4, 4, 4), (8, 8, 8), (4, 2, 8)])
def test_neighbours_of_a_job_are_neighbours_of_the_torus(sides: tuple[int, ...]) -> None:
    """Every place is used once, and one step along an axis of the job is one link."""
    found, whole = places(sides), units(sides)
    assert sorted(found) == list(range(math.prod(sides)))

    def coordinates(endpoint: int) -> list[int]:
        return [endpoint // math.prod(whole[:axis]) % side for axis, side in enumerate(whole)]

    stride = 1
    for side in sides:
        for rank in range(math.prod(sides)):
            place = rank // stride % side
            other = rank + ((place + 1) % side - place) * stride
            pairs = zip(coordinates(found[rank]), coordinates(found[other]), whole, strict=True)
            assert sum(min((a - b) % n, (b - a) % n) for a, b, n in pairs) == 1
        stride *= side


def test_a_ring_on_lumi_takes_its_steps() -> None:
    """14 steps of 1 MiB / 8 = 131,072 bytes: each starts, moves, is matched, and half of them are combined."""
    numbers = values(load("lumi-mpi", Variant(nodes=8)))
    block = 2**20 / 8
    step = numbers["fabric.transport.net_mpi.long_start"] + block / numbers["fabric.transport.net_mpi.rate"] / 1e3
    step += numbers["path.mpi.receive"]
    combine = block / numbers["path.mpi.combine_rate"] / 1e3
    time = Model().time_us(Condition("lumi", "8", 1, "allreduce", "ring_over_int32", 2**20))
    assert time == pytest.approx(14 * step + 7 * combine, rel=0.01)


def test_long_messages_start_later() -> None:
    """From the threshold on, and not below it: 192 bytes in two ranks' halves of an allgather."""
    model = Model()
    numbers = values(load("lumi-mpi", Variant(nodes=2)))

    def time(size_bytes: int) -> float:
        found = model.time_us(Condition("lumi", "2", 1, "allgather", "ring_over_int32", size_bytes))
        assert isinstance(found, float)
        return found

    late = numbers["fabric.transport.net_mpi.long_start"] - numbers["fabric.transport.net_mpi.start"]
    assert time(2 * 192) - time(2 * 188) == pytest.approx(late, abs=0.01)
    assert time(2 * 188) - time(2 * 184) < 0.01


def test_ports_share_the_vector_where_there_are_links() -> None:
    """Over 4x4x4 nodes a tree of six ports moves a sixth each; over 2x2x2 there are three links only."""
    model = Model()

    def time(nodes: str, ports: int) -> float:
        tag = f"BINE-BINOMIAL_TREE-UTOFU-0-{ports}_int32"
        found = model.time_us(Condition("fugaku", nodes, 1, "broadcast", tag, 2**29))
        assert isinstance(found, float)
        return found

    assert time("4x4x4", 1) / time("4x4x4", 6) == pytest.approx(6, rel=0.05)
    assert time("2x2x2", 3) == pytest.approx(time("2x2x2", 6), rel=0.01)


def test_default_takes_the_fastest_of_its_library() -> None:
    """Here of Cray MPICH's allgathers."""
    model = Model()
    times = [
        model.time_us(Condition("lumi", "16", 1, "allgather", f"{name}_mpich_int32", 2**20))
        for name in ("ring", "recursive_doubling", "brucks", "default")
    ]
    assert times[3] == min(times[:3])  # type: ignore[type-var]


def test_ranks_of_a_node_share_its_ports() -> None:
    """Halves of 64 MiB go from node to node: four ranks on each of two nodes share one port, and one rank has it."""
    model = Model()
    tag, size = "recursive_doubling_over_int32", 64 << 20
    one = model.time_us(Condition("leonardo", "2", 1, "allgather", tag, size))
    four = model.time_us(Condition("leonardo", "2", 4, "allgather", tag, size))
    assert isinstance(one, float)
    assert isinstance(four, float)
    assert four / one == pytest.approx(4, rel=0.2)


def test_several_ranks_on_a_node_of_fugaku_are_refused() -> None:
    """How they share its interfaces is not known."""
    at = Condition("fugaku", "2x2x2", 4, "allgather", "default-ring_int32", 2**20)
    assert isinstance(Model().time_us(at), Refusal)


def test_a_run_whose_column_is_wrong_has_four_ranks_on_a_node() -> None:
    """Its note says so, and 256 x 4 ranks need vectors of 4 KiB and more for a block each; other runs keep theirs."""
    row = {
        "machine": "leonardo",
        "nodes": "256",
        "tasks_per_node": "1",
        "collective": "ALLGATHER",
        "size_bytes": "16384",
    }
    row |= {"algorithm_file_tag": "ring_ompi_int32"}
    assert cells.condition(row | {"run": "2025_04_06___23_05_13/1 4 tasks per node"}).ranks == 1024
    assert cells.condition(row | {"run": "2025_04_06___20_44_58/0"}).ranks == 256
    assert cells.condition(row).ranks == 256
    blocks = [at for at, _ in cells.measured() if at.ranks == 1024 and at.collective == "allgather"]
    assert min(at.size_bytes for at in blocks) == 16 << 10


@pytest.mark.parametrize(
    ("collective", "ranks", "size", "name"),
    [
        ("allgather", 200, 131072, "neighbor"),  # blocks of 655 bytes
        ("allgather", 200, 2048, "k_bruck"),  # recursive doubling needs a power of two
        ("allgather", 1024, 16384, "k_bruck"),
        ("allreduce", 128, 32, "nonoverlapping"),
        ("broadcast", 256, 2**29, "knomial"),
        ("broadcast", 1024, 2**29, "scatter_allgather"),
        ("scatter", 1024, 2**20, "linear_nb"),
        ("scatter", 1 << 13, 2**20, "binomial"),
    ],
)
def test_open_mpi_chooses_by_ranks_and_bytes(collective: str, ranks: int, size: int, name: str) -> None:
    """As its table says; each name is a tag that we know."""
    assert open_mpi.choice(collective, ranks, size) == name
    assert name in tags.HOSTS[collective]


def test_every_choice_of_open_mpi_has_a_way() -> None:
    """Whatever the ranks and sizes."""
    for collective in open_mpi.TABLES:
        for ranks in (2, 6, 14, 30, 60, 100, 200, 400, 1000, 2000, 4000, 10**4):
            for power in range(3, 30):
                assert open_mpi.choice(collective, ranks, 1 << power) in tags.HOSTS[collective]


@pytest.mark.parametrize(("name", "ranks", "generations", "sends"), [("binomial", 256, 8, 36), ("knomial", 256, 4, 30)])
def test_sends_to_all_children_share_the_port(name: str, ranks: int, generations: int, sends: int) -> None:
    """The last rank of 256 waits for 8 + 7 + ... + 1 sends, with radix 4 for 12 + 9 + 6 + 3; starts overlap."""
    assert trees.overlap(name, ranks) == generations / sends
    schedule = trees.at_once(name, ranks, 1)
    assert sorted(schedule.operations()["to"].tolist()) == list(range(1, ranks))
    tag = {"binomial": "binomial_ompi_int32", "knomial": "knomial_ompi_int32"}[name]
    time = Model().time_us(Condition("leonardo", str(ranks), 1, "broadcast", tag, 2**29))
    both_ports = values(load("leonardo-mpi"))["facts.both_ports"]
    assert time == pytest.approx(sends * 2**29 / both_ports / 1e3, rel=0.05)


def test_the_library_that_waits_sends_to_the_largest_subtree_first() -> None:
    """Cray MPICH's tree is that of the registry."""
    assert tags.way("lumi", "broadcast", "binomial_mpich_int32") == Way("binomial")
    assert tags.way("leonardo", "broadcast", "binomial_ompi_int32") == Way("tree/binomial")


def test_all_threads_combine_long_blocks() -> None:
    """Recursive doubling over 8 nodes has 3 steps; halves of 32 KiB are 16 and 8 KiB long, then 4 KiB."""

    def forks(algorithm: str, size_bytes: int) -> int:
        at = Condition("fugaku", "2x2x2", 1, "allreduce", "", size_bytes)
        return software.forks(at, Way(algorithm, puts=True), 8 << 10)

    assert [forks("swing_latency", size) for size in (4 << 10, 8 << 10)] == [0, 3]
    assert [forks("swing_bandwidth", size) for size in (8 << 10, 32 << 10, 1 << 20)] == [0, 2, 3]


def test_large_jobs_are_left_out() -> None:
    """512 ranks keep three sizes, more need --full."""

    def slow(ranks: int, size_bytes: int, full: bool) -> bool:
        return cells.slow(Condition("lumi", str(ranks), 1, "allgather", "", size_bytes), full)

    assert [slow(512, size, False) for size in (16 << 10, 2 << 10)] == [False, True]
    assert [slow(512, size, True) for size in (16 << 10, 2 << 10)] == [False, False]
    assert [slow(1024, 16 << 10, full) for full in (False, True)] == [True, False]
    assert slow(1024, 2 << 10, True)
    assert slow(2048, 16 << 10, True)


def test_a_number_moves_to_where_the_error_is_least() -> None:
    """Times of the model with another start give that start back, within the finest factor."""
    key = "fabric.transport.net_mpi.start"
    true = Model({"lumi": {key: "5"}})
    at = [Condition("lumi", str(nodes), 1, "allgather", "ring_over_int32", 256) for nodes in (4, 8)]
    times = [true.time_us(one) for one in at]
    found = fit.found("lumi", [(one, time) for one, time in zip(at, times, strict=True) if isinstance(time, float)])
    assert found[key] == pytest.approx(5, rel=0.03)


def test_the_choice_is_judged_by_what_was_measured() -> None:
    """The model takes the ring, which took twice as long as recursive doubling."""
    ring = Condition("lumi", "8", 1, "allgather", "ring_over_int32", 2**20)
    doubling = Condition("lumi", "8", 1, "allgather", "recursive_doubling_over_int32", 2**20)
    (choice,) = fastest.choices([(ring, 20.0), (doubling, 10.0)], [1.0, 2.0])
    assert (choice.predicted, choice.slower, choice.same, choice.near) == ("ring_over_int32", 2.0, False, False)


def test_conditions_are_predicted_and_refused(tmp_path: Path) -> None:
    """Each row ends in one of two tables, in the order of the file."""
    file = tmp_path / "rows.csv"
    rows = [f"lumi,8,1,ALLREDUCE,{name}_over_int32,1024\n" for name in ("ring", "magic")]
    file.write_text(HEAD + "".join(rows) + "moon,8,1,BCAST,x,1024\nlumi,1,1,BCAST,x,4\nlumi,8,1,GOSSIP,x,4\n")
    tables = reproduce("mpi-clusters", Options(conditions=file)).tables
    assert [row["row"] for row in tables["predictions"]] == [1]
    assert tables["predictions"][0]["median_us"] > 0
    assert [row["row"] for row in tables["refused"]] == [2, 3, 4, 5]
    reasons = [row["reason"].partition(";")[0] for row in tables["refused"][1:]]
    assert reasons == ["machine `moon`", "1 ranks", "unknown collective `gossip`"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("machine,nodes\nlumi,8\n", "no column `tasks_per_node`"),
        (HEAD, "no rows"),
        (HEAD + "lumi,8,1,BCAST,x\n", "size_bytes = ``"),
        (HEAD + "lumi,eight,1,BCAST,x,4\n", "nodes = `eight`"),
        (HEAD + "fugaku,4x4,1,BCAST,x,4\n", "nodes = `4x4`"),
        (HEAD + "lumi,8,1,BCAST,x,4,5\n", "more fields than columns"),
    ],
)
def test_a_bad_file_of_conditions_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """With the line and the cure."""
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises(FileError, match=says):
        conditions.read(file)


def test_every_row_of_the_reference_is_read() -> None:
    """5,434 medians, all of known collectives and whole sizes."""
    rows = cells.measured()
    assert len(rows) == 5434
    assert {at.collective for at, _ in rows} <= set(tags.COLLECTIVES.values())
    assert all(value > 0 for _, value in rows)
