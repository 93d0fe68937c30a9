"""The library of a machine: what its file states, what is planned, and where the plan is the default."""

import json

import pytest

import linkwright as lw
import perfetto_reader
from linkwright import _native
from linkwright.advise.predict.training.gradients import Allreduce
from linkwright.advise.predict.training.recipes import recipes
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.base import errors, registry
from linkwright.base.rows import Rows
from linkwright.executors import resolve_one
from linkwright.libraries import library, tolerance
from linkwright.libraries.questions import collective_question
from linkwright.machines import load
from linkwright.session.suite.expand import algorithms_of, expand
from linkwright.session.suite.load import parse
from linkwright.session.suite.sweeps import half_peaks
from linkwright_cases import invoke

DGX1, GX8 = "dgx1-p100", "gx8-p100"
OWN = ["nccl-1.3.4", "nccl-2.3.5"]
SUITE = """
[suite]
format = 1
name = "own"
summary = "one part"
[[part]]
name = "part"
summary = "collectives"
collectives = ["allreduce", "alltoall"]
sizes = ["64K"]
"""


def plan(machine, collective, version, size, ranks=8, **more):
    asked = collective_question("", collective, f"nccl-{version}", ranks, size, "f32", "sum", **more)
    return library.plan(load(machine), asked)


def test_what_both_nodes_state():
    for name in (DGX1, GX8):
        assert library.algorithms(load(name), "allreduce") == OWN
        assert library.algorithms(load(name), "alltoall") == []
    assert library.algorithms(load("loggp"), "allreduce") == []
    assert {entry["key"] for entry in registry.entries("own-algorithms")} >= set(OWN)


@pytest.mark.parametrize(
    ("machine", "version", "size", "words"),
    [
        (DGX1, "1.3.4", "4K", "1 ring, flags"),
        # 64 threads carry 512 B per rank and ring: 4 KiB is one ring of the low-latency mode, 16 KiB are four.
        (DGX1, "2.3.5", "4K", "1 ring, low_latency"),
        (DGX1, "2.3.5", "16K", "4 rings, low_latency"),
        # Four directed Hamiltonian cycles over NVLink, each used twice.
        (DGX1, "2.3.5", "64M", "8 rings, flags"),
        # No NVLink: one ring over PCIe.
        (GX8, "2.3.5", "64M", "1 ring, flags"),
    ],
)
def test_the_mode_and_the_rings_of_a_plan(machine, version, size, words):
    assert plan(machine, "allreduce", version, lw.parse_size(size)).words == words


@pytest.mark.parametrize("collective", ["allreduce", "broadcast", "reduce", "allgather", "reduce_scatter"])
@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("version", ["1.3.4", "2.3.5"])
def test_plans_are_right_for_any_shape(collective, version, ranks):
    for size in (4 * ranks, 40_000 * ranks):
        root = {"root": ranks - 1} if collective in ("broadcast", "reduce") else {}
        made = plan(DGX1, collective, version, size, ranks, **root)
        assert lw.verify(made.planned.schedule).exact
        assert made.planned.schedule.collective == collective
        assert lw.simulate(made.planned.schedule, DGX1, path=made.question.path, issue=made.question.issue).time_us >= 0


def test_the_chunks_of_a_plan_are_pipelined():
    # 64 MiB over 8 ranks: blocks of 8 MiB are eight chunks of 1 MiB with two slices each; 14 steps of 8 ranks.
    assert plan(DGX1, "allreduce", "1.3.4", 64 << 20).planned.schedule.messages == 14 * 8 * 16


def test_all_has_the_library_first():
    assert algorithms_of("allreduce", ("all",), OWN) == [*OWN, *algorithms_of("allreduce")]
    assert algorithms_of("allreduce", ("ring", "own"), OWN) == ["ring", *OWN]


def names(text, machine=DGX1):
    found = expand(parse(text, "own.toml"), resolve_one(machine).extent)
    return [(e.what, e.algorithm, e.path, e.issue) for e in found if e.what == "allreduce"]


def test_the_default_of_a_suite():
    planned = ("allreduce", "nccl-1.3.4", "flags", "window(2)")
    assert names(SUITE) == [planned]
    assert names(SUITE + 'algorithms = "all"\n')[0] == planned
    assert len(names(SUITE + 'algorithms = "all"\n')) > 10
    assert len(names(SUITE, "loggp")) > 10
    assert all(path == "flags" for _, _, path, _ in names(SUITE + 'path = "flags"\n'))
    assert len(names(SUITE + 'path = "flags"\n')) > 10
    # A collective that the library does not plan has no default.
    found = expand(parse(SUITE, "own.toml"), resolve_one(DGX1).extent)
    assert {e.algorithm for e in found if e.what == "alltoall"} >= {"bruck", "pairwise"}


def test_a_plan_with_two_paths_is_one_series(tmp_path):
    """2.3.5 goes from its low-latency mode to the normal one, and the sweep is one all the same."""
    from linkwright.show.report.sections.collectives import series_name

    file = tmp_path / "rows.json"
    runs = ("--runs", str(tmp_path / "runs"), "--output", str(file))
    words = ("-a", "own,ring", "--on", DGX1, "--sizes", "4K,64K,256K,1M,4M,16M")
    assert invoke("run", "allreduce", *words, *runs).status == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    found = Rows.from_records([{**row, "label": ""} for row in rows if row["metric"] == "time"])
    assert set(found[found["algorithm"] == "nccl-2.3.5"]["path"]) == {"low_latency", "flags"}
    assert set(series_name(found)) == {*OWN, "ring"}
    assert sorted(row["algorithm"] for row in half_peaks(rows)) == sorted([*OWN, "ring"])


def test_a_plan_takes_no_other_path(tmp_path):
    result = invoke("simulate", "allreduce", "-a", "own", "--path", "ring", "--on", DGX1, "--sizes", "4K")
    assert result.status == 1
    assert "chooses its own path and issue policy" in " ".join(result.out.split())


def test_traces_links_and_runs_of_a_plan(tmp_path):
    trace, links = tmp_path / "t.pftrace", tmp_path / "l.csv"
    words = ("--on", DGX1, "--sizes", "64K", "--trace", str(trace), "--links", str(links))
    assert invoke("simulate", "allreduce", *words).status == 0
    assert perfetto_reader.read(trace).slices
    # Seven eighths of the vector twice over every hop of the ring: 3 to 4 is staged, so it leaves by PCIe.
    assert "GPU 3 -> PLX 1," in links.read_text(encoding="utf-8")
    assert ",114688," in links.read_text(encoding="utf-8")
    rows = tmp_path / "rows.json"
    runs = ("--runs", str(tmp_path / "runs"), "--output", str(rows))
    assert invoke("run", "allreduce", "--on", DGX1, "--sizes", "64K", *runs).status == 0
    (row,) = [row for row in json.loads(rows.read_text(encoding="utf-8"))["rows"] if row["metric"] == "time"]
    assert (row["algorithm"], row["path"], row["issue"]) == ("nccl-1.3.4", "flags", "window(2)")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "nccl"', 'name = "ncl"', "did you mean `nccl`"),
        ('"1.3.4", "2.3.5"', '"1.3.4", "2.3.5", "2.3"', "unknown version of nccl `2.3`"),
        ('\nlow_latency = "low_latency"\n', "\n", "no path for mode `low_latency` of nccl; add `low_latency`"),
        ('\nnormal = "flags"', '\nfast = "ring"\nnormal = "flags"', "unknown mode of nccl `fast`"),
        ('training = { value = "2.3.5"', 'training = { value = "2.3"', "library.training: unknown value `2.3`"),
        ('launch = { value = 50, unit = "us"', 'launch = { value = 50, unit = "GB"', "library.launch"),
    ],
)
def test_a_wrong_library_is_refused(old, new, problem, tmp_path):
    text = registry.machine_path(DGX1).read_text(encoding="utf-8")
    assert text.count(old) == 1
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new), encoding="utf-8")
    result = invoke("simulate", "allreduce", "--on", str(file), "--sizes", "4K")
    assert result.status == 2
    assert problem in result.err


LAUNCH_US = 50


def without_launch(name):
    return load(name).with_value("library.launch", "0")


def times_us(machine, *words, tmp_path):
    """Algorithm -> time of a plain `simulate` of 64 KiB."""
    file = tmp_path / "rows.json"
    assert invoke("simulate", "allreduce", "--on", machine, "--sizes", "64K", "--output", str(file), *words).status == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return {row["algorithm"]: row["value"] / 1e3 for row in rows if row["metric"] == "time"}


def test_a_launch_is_paid_once_by_plans_and_by_nothing_else(tmp_path):
    bare = tmp_path / "bare.toml"
    bare.write_text(
        registry.machine_path(DGX1)
        .read_text(encoding="utf-8")
        .replace("launch = { value = 50", "launch = { value = 0"),
        encoding="utf-8",
    )
    words = ("-a", "own,ring", "--skew", "late:3:7us")
    there, here = (times_us(machine, *words, tmp_path=tmp_path) for machine in (DGX1, str(bare)))
    assert {name: there[name] - here[name] for name in there} == pytest.approx(
        {"nccl-1.3.4": LAUNCH_US, "nccl-2.3.5": LAUNCH_US, "ring": 0}
    )


def test_a_launch_is_overhead_on_the_critical_path_and_shifts_every_operation():
    made = plan(DGX1, "allreduce", "1.3.4", 1 << 20)
    how = How(path=made.question.path, issue=made.question.issue, operations=True, skew="late:0:9us")
    bare = ask(load(DGX1), made.planned.schedule, how)
    started = ask(load(DGX1), made.planned.schedule, how.but(launch_ps=made.question.own.launch_ps))
    ps = LAUNCH_US * 1_000_000
    assert (made.question.own.launch_ps, (started.time - bare.time).ps) == (ps, ps)
    assert (started.ranks.start_ps == bare.ranks.start_ps).all()
    assert (started.ranks.finish_ps - bare.ranks.finish_ps == ps).all()
    for column in ("issued_ps", "delivered_ps"):
        late, early = (getattr(answer.operations, column) for answer in (started, bare))
        assert (late - early == ps).all()
    path = started.path
    assert (path.operation[0], path.spent[0], path.begin_ps[0], path.end_ps[0]) == (-1, "overhead", 0, ps)
    # Without gaps, as before.
    assert (path.begin_ps[1:] == path.end_ps[:-1]).all()
    assert sum(started.critical.values()) == pytest.approx(1)


def test_a_launch_is_refused_where_there_is_no_schedule():
    asked = [("fold", "allreduce/ring", {"ranks": 8, "elements": 1024}, How(launch_ps=1))]
    ((_, answer),) = list(_native.Simulations(load("loggp").with_endpoints(8), asked))
    assert isinstance(answer, errors.LinkwrightError)
    assert "leave the launch out" in str(answer)


def test_every_allreduce_of_a_training_step_is_launched():
    one, two = (Allreduce(machine, 8, None, None).time_ns(1 << 16) for machine in (load(GX8), without_launch(GX8)))
    assert one - two == pytest.approx(1e3 * LAUNCH_US)


def test_training_takes_the_version_of_the_frameworks():
    (found,) = recipes(load(DGX1), 8, 1 << 20, None, None)
    assert found == "nccl-2.3.5 (8 rings, flags)"
    first = load(DGX1).with_value("library.training", '"1.3.4"')
    assert next(iter(recipes(first, 8, 1 << 20, None, None))) == "nccl-1.3.4 (1 ring, flags)"
    # Other collectives of a program take the first version.
    assert library.default(load(DGX1), "allreduce") == "nccl-1.3.4"


def test_five_gpus_have_links_but_no_ring():
    # GPU 4 has one link to GPUs 0..3, and a ring needs two neighbours; each switch of GPUs 0..3 serves two of them.
    made = plan(DGX1, "allreduce", "2.3.5", 256 << 20, 5)
    assert (made.question.path, made.planned.rings) == ("host_flags", 1)
    assert plan(DGX1, "allreduce", "1.3.4", 256 << 20, 5).question.path == "flags"
    assert plan(DGX1, "allreduce", "2.3.5", 256 << 20, 6).question.path == "flags"
    result = lw.simulate(made.planned.schedule, DGX1, path=made.question.path, issue=made.question.issue)
    # Two writers share 15.75 x 0.766 GB/s; a vector passes every hop 8/5 times.
    assert result.time_us == pytest.approx((256 << 20) * 8 / 5 / (15.75e9 * 0.766 / 2) * 1e6, rel=0.01)


def test_a_plan_is_not_staged_in_chunks_of_the_driver():
    """A slice of 64 KiB over the sockets: a copy stores it whole, the library forwards 16 KiB at a time."""
    (staged,), (shared,) = (
        _native.quiet(load(DGX1), [(3, 4)], 1 << 16, load(DGX1).networks.index(name)) for name in ("ring", "flags")
    )
    # (64 + 16) KiB at 0.866 x 10.6 GB/s, after 2 us and the latencies of six links and a packet.
    assert shared[1] / 1e6 == pytest.approx(2 + 80 * 1024 / (0.866 * 10.6e3) + 0.9, abs=0.3)
    # 128 KiB at the same rate after 20.6 us.
    assert staged[1] / 1e6 == pytest.approx(20.6 + 128 * 1024 / (0.866 * 10.6e3) + 0.9, abs=0.3)


def test_rings_need_a_library_that_says_which_links():
    from linkwright.libraries import nccl

    with pytest.raises(errors.UsageError, match="no library states which links"):
        nccl.nvlinks(load("loggp").with_endpoints(4))


def test_supersteps_take_the_plan(tmp_path):
    app = tmp_path / "app.toml"
    head = '[app]\nformat = 1\nkind = "supersteps"\nname = "x"\n{path}'
    step = '[[superstep]]\nname = "s"\n[[superstep.message]]\ncollective = "allreduce"\nsize = "1M"\n'

    def part(path="", algorithm=""):
        app.write_text(head.format(path=path) + step + algorithm, encoding="utf-8")
        result = invoke("predict", str(app), "--on", DGX1, "--json")
        assert result.status == 0, result.err
        (found,) = json.loads(result.out)["parts"]
        return found["choice"], found["time_ns"]

    made = plan(DGX1, "allreduce", "1.3.4", 1 << 20)
    alone = schedules.time(made.question, load(DGX1)).ns
    assert part() == ("allreduce/nccl-1.3.4", pytest.approx(alone))
    assert part(algorithm='algorithm = "best"\n') == ("allreduce/nccl-2.3.5", pytest.approx(86.7e3, rel=0.01))
    assert part(algorithm='algorithm = "ring"\n')[0] == "allreduce/ring"
    assert "nccl" not in part(path='path = "flags"\n')[0]


def test_a_table_says_how_far_published_systems_are_from_a_choice():
    """By bands of sizes, on as many nodes as the ranks are on: 8 of 16 ranks are on two nodes, four on each."""
    few, several = (tolerance.spread(nodes, 1 << 20) for nodes in (1, 2))
    large = tolerance.spread(2, 1 << 30)
    words = ("simulate", "allreduce", "--on", "hgx-h100", "--sizes")
    one = " ".join(invoke(*words, "1M").out.replace("#", "").split())
    assert f"eight published systems in ten, in modelled times: {few[0]:.2f} to {few[1]:.2f} up to 1M" in one
    two = " ".join(invoke(*words, "1M,1G", "--nodes", "2", "--ranks", "8").out.replace("#", "").split())
    assert f"{several[0]:.2f} to {several[1]:.2f} up to 1M, {large[0]:.2f} to {large[1]:.2f} up to 1G" in two
    # Of algorithms that a user forces nothing was collected.
    for forced in ("ring", "nccl-2.27/tree/ll"):
        assert "published" not in invoke(*words, "1M", "-a", forced).out
