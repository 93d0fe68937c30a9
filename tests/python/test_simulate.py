"""Simulations and verification through the command line and from Python."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import linkwright as lw
import perfetto_reader
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.base import errors, registry
from linkwright.base.errors import UsageError
from linkwright.session.compare.runs import compare_runs
from linkwright.session.compare.verdict import Verdict
from linkwright.store import run as runs
from linkwright_cases import invoke

QUICK = ("simulate", "allreduce", "-a", "ring", "--sizes", "4K")


def rows_of(path):
    return json.loads(path.read_text())["rows"]


@pytest.mark.parametrize("machine", registry.keys("machines"))
def test_every_machine_simulates(machine, tmp_path):
    # A node of one rank takes a second one to send to.
    alone = machine in ("leonardo-mpi", "lumi-mpi")
    nodes = ["--nodes", "2"] if alone else []
    result = invoke(*QUICK, "--on", machine, *nodes, "--output", str(tmp_path / "rows.json"))
    assert result.status == 0, result.err
    document = json.loads((tmp_path / "rows.json").read_text())
    assert document["machines"][f"{machine}-x2" if alone else machine]  # every result carries the constants behind it
    by_metric = {row["metric"]: row for row in document["rows"]}
    time = by_metric["time"]
    assert time["ci_low"] is None
    assert time["value"] >= time["limit"] > 0
    assert by_metric["time_rank_min"]["value"] <= by_metric["time_rank_median"]["value"] <= time["value"]
    assert 0 < by_metric["critical_share"]["value"] <= 1


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for name in ("one.json", "two.json"):
        invoke(*QUICK, "--on", "wormhole-n150", "--output", str(tmp_path / name))
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_trace_and_links_are_files_of_one_experiment(tmp_path):
    trace, links = tmp_path / "trace.pftrace", tmp_path / "links.csv"
    result = invoke(*QUICK, "--on", "wormhole-n150", "--trace", str(trace), "--links", str(links))
    assert result.status == 0, result.err
    assert perfetto_reader.read(trace).slices
    assert links.read_text().startswith("link,busy_ns,busy_share,bytes,peak_messages\n")
    several = invoke("simulate", "allreduce", "--on", "loggp", "--trace", str(trace))
    assert several.status == 2
    assert "name one machine, algorithm and size" in several.err


@pytest.mark.parametrize("name", ["one.pftrace", "one.perfetto-trace"])
def test_a_trace_has_one_of_two_endings(tmp_path, name):
    trace = tmp_path / name
    result = invoke(*QUICK, "--on", "wormhole-n150", "--trace", str(trace))
    assert result.status == 0, result.err
    assert perfetto_reader.read(trace).of("critical path")


def test_a_trace_of_another_ending_is_refused_before_anything_runs(tmp_path):
    for name in ("one.json", "trace"):
        result = invoke(*QUICK, "--on", "wormhole-n150", "--trace", str(tmp_path / name))
        assert result.status == 2
        assert ".pftrace or .perfetto-trace; write " in result.err
        assert "ui.perfetto.dev" in result.err
        assert not list(tmp_path.iterdir())


def test_options_change_the_time(tmp_path):
    def time_us(*more):
        path = tmp_path / "rows.json"
        result = invoke(*QUICK, "--on", "wormhole-n150", *more, "--output", str(path))
        assert result.status == 0, result.err
        return next(row["value"] for row in rows_of(path) if row["metric"] == "time")

    plain = time_us()
    assert time_us("--no-arithmetic") < plain
    assert time_us("--skew", "late:3:5us") != plain
    assert time_us("--ranks", "16") < plain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "threads"], "use `linkwright run`"),
        (["--on", "reference"], "it only checks data; use `threads`"),
        (["--on", "wormhole"], "did you mean `wormhole-n150`"),
        (["--on", "loggp,loggp"], "named twice"),
        (["--on", "wormhole-n150", "--ranks", "65"], "has 64 ranks"),
        (["--on", "loggp", "--ranks", "0"], "0 is not in the range"),
        (["--on", "loggp", "--path", "nowhere"], "no path `nowhere`; known: message"),
        (["--on", "wormhole-n150,loggp", "--path", "stream"], "no path `stream`; known: message"),
        (["--on", "loggp", "--issue", "window(0)"], "option `issue`: `window(0)` is not a policy"),
        (["--on", "loggp", "--skew", "uniform"], "skew `uniform`"),
        (["--on", "loggp", "--skew", "late:99:2us"], "rank 99 does not exist"),
        (["--on", "loggp", "--skew", "list:0us"], "1 arrival times for"),
        (["--on", "loggp", "--links", "/nowhere/links.csv"], "folder /nowhere does not exist"),
        (["--on", "loggp", "--links", f"{__file__}/links.csv"], "test_simulate.py is a file; choose another place"),
        (["--on", "loggp", "--links", "/tmp"], "is a folder"),
        (["--on", "loggp,crossbar", "--links", "links.csv"], "2 experiments were asked for"),
        (["--on", "loggp", "--ranks", str(10**20)], "not in the range"),
        (["--on", "loggp", "--seed", str(10**20)], "not in the range"),
        (["--on", "wormhole-n150", "--grid", "9x9"], "--grid 9x9: 81 places for 64 ranks"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, message):
    result = invoke(*QUICK, *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_the_head_names_the_path_that_was_asked_for():
    path = lw.machine("wormhole-n150").paths[-1]
    assert f"path {path}," in invoke(*QUICK, "--on", "wormhole-n150", "--path", path).out


def test_one_rank_has_no_rate(tmp_path):
    result = invoke(*QUICK, "--on", "loggp", "--ranks", "1", "--output", str(tmp_path / "one.json"))
    assert result.status == 0, result.err
    assert {row["metric"] for row in rows_of(tmp_path / "one.json")}.isdisjoint({"alg_bw", "bus_bw"})


def test_a_machine_of_ones_own(tmp_path):
    text = registry.machine_path("loggp").read_text().replace('name = "loggp"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(text)
    assert invoke(*QUICK, "--on", str(tmp_path / "mine.toml")).status == 0


def test_dissecting_a_modelled_machine(tmp_path):
    result = invoke("dissect", "--on", "crossbar", "--ranks", "4", "--runs", str(tmp_path))
    assert result.status == 0, result.err
    run = runs.find(tmp_path, "latest")
    assert Path(result.out.splitlines()[-1]) == run.folder / "report" / "index.html"
    again = ("draw", str(run.folder), "--report", "--out")
    assert invoke(*again, str(tmp_path / "page.html")).status == 0
    assert "a report is a page; write page.html" in invoke(*again, "page.svg").err
    table = pd.DataFrame(run.results().records())
    pairs = table[(table["metric"] == "latency") & table["placement"].str.contains("->")]
    assert len(pairs) == 12
    assert set(table["collective"].dropna()) >= {"allreduce", "alltoall", "barrier"}
    counts = compare_runs(run, run).counts()
    assert counts == {Verdict.SAME: len(table[table["metric"] == "time"].dropna(subset="value"))}


def of_size(ranks, tmp_path):
    """The file of a crossbar with so many endpoints."""
    text = registry.machine_path("crossbar").read_text().replace('count = "any"', f"count = {ranks}")
    (tmp_path / "sized.toml").write_text(text)
    return str(tmp_path / "sized.toml")


@pytest.mark.parametrize(
    ("ranks", "asked", "used", "said"),
    [
        (72, (), 72, None),
        (72, ("--ranks", "64"), 64, "# 64 of 72 endpoints take part, the first ones; --ranks 72 takes all"),
        (257, (), 257, None),
        (257, ("--ranks", "257"), 257, None),
    ],
)
def test_the_head_says_where_only_some_endpoints_take_part(ranks, asked, used, said, tmp_path):
    result = invoke("simulate", "broadcast", "-a", "binomial", "--sizes", "8", "--on", of_size(ranks, tmp_path), *asked)
    assert result.status == 0, result.err
    heads = [line for line in result.out.splitlines() if "take part" in line]
    assert heads == ([said] if said else [])
    assert f"# simulate: broadcast, {used} ranks, f32\n" in result.out


def test_a_suite_takes_64_of_more_endpoints_and_says_so(tmp_path):
    text = """
[suite]
format = 1
name = "few"
summary = "s"
[[part]]
name = "p"
summary = "s"
collectives = ["broadcast"]
algorithms = ["binomial"]
sizes = ["8"]
"""
    (tmp_path / "few.toml").write_text(text)
    on = of_size(72, tmp_path)
    result = invoke("dissect", str(tmp_path / "few.toml"), "--on", on, "--runs", str(tmp_path / "runs"))
    assert "# 64 of 72 endpoints take part, evenly spread; --ranks 72 takes all" in result.out, result.err


# --- verification ------------------------------------------------------------------------------------


def test_verify_says_what_it_proved():
    result = invoke("verify", "allreduce", "--algorithm", "swing_bandwidth", "--ranks", "64")
    assert result.status == 0
    assert "exact contributions" in " ".join(result.out.split())
    assert result.out.endswith("\n1 schedule: 1 ok\n")


def test_verify_all():
    result = invoke("verify", "--all", "--json")
    assert result.status == 0
    findings = json.loads(result.out)
    assert {f["key"] for f in findings} == set(registry.keys("algorithms"))
    assert all(f["status"] in ("ok", "waived") for f in findings)


@pytest.fixture
def schedule_file(tmp_path):
    path = tmp_path / "ring.schedule"
    path.write_text(lw.schedule("allreduce", "ring", ranks=4, size="4K").text())
    return path


def test_verify_a_file(schedule_file):
    result = invoke("verify", str(schedule_file))
    assert result.status == 0
    assert "24 operations" in result.out


def test_a_file_cut_anywhere_is_refused_in_one_line(schedule_file):
    text = schedule_file.read_text()
    for cut in range(0, len(text) - 1, 97):
        schedule_file.write_text(text[:cut])
        result = invoke("verify", str(schedule_file))
        assert result.status in (1, 2), text[:cut]
        assert "Traceback" not in result.err
        assert "ring.schedule" in result.err + result.out


def test_a_file_with_a_lost_contribution_is_refused(schedule_file):
    schedule_file.write_text(schedule_file.read_text().replace(" reduce ", " replace ", 1))
    result = invoke("verify", str(schedule_file))
    assert result.status == 1
    assert "rank" in result.out


def test_a_file_that_is_not_there_is_named():
    assert "nowhere.schedule: cannot be read" in invoke("verify", "nowhere.schedule").err


def test_verify_as_a_machine_needs_it():
    result = invoke("verify", "allreduce", "-a", "ring", "--ranks", "64", "--on", "wormhole-n150", "--json")
    plain = invoke("verify", "allreduce", "-a", "ring", "--ranks", "64", "--json")
    operations = [json.loads(r.out)[0]["proved"]["operations"] for r in (result, plain)]
    assert operations[0] > operations[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a collective or a source"),
        (["allreduce", "--all"], "name a collective or a source"),
        (["alreduce"], "did you mean `allreduce`"),
        (["allreduce", "-a", "rign"], "did you mean `ring`"),
        (["allreduce", "--ranks", "0"], "0 is not in the range"),
        (["broadcast", "--root", "8"], "root 8"),
    ],
)
def test_verify_refuses_bad_input(arguments, message):
    result = invoke("verify", *arguments)
    assert result.status == 2
    assert message in result.err


# --- from Python -------------------------------------------------------------------------------------


def star(ranks, size="4K", lost=None):
    b = lw.Builder("allreduce", ranks, size)
    b.buffer("output", 1)
    b.step()
    for rank in range(1, ranks):
        if rank != lost:
            b.put(rank, 0, "output", 0, reduce=True)
    b.step()
    for rank in range(1, ranks):
        b.put(0, rank, "output", 0)
    return b.finish()


def test_a_schedule_of_ones_own():
    assert lw.verify(star(5)).exact
    modelled = lw.simulate(star(5), "loggp")
    assert modelled.time_us >= modelled.limit_us > 0
    measured = lw.run(star(2), launches=6, samples=8, budget_s=0.5)
    assert measured.time_us > 0
    assert set(measured.frame()["metric"]) >= {"time", "alg_bw", "bus_bw", "samples"}


def test_a_builder_fences():
    def text(**how):
        b = lw.Builder("pattern", 3, "1K")
        b.buffer("output", 2)
        b.step()
        b.put(0, 1, "output", 0)
        b.step()
        b.put_blocks(0, 2, "output", [1], **how)
        b.local(2, "output", 0, "output", 0, **how)
        return b.finish().text()

    assert text().count(" fenced") == 0
    assert text(fenced=True).count(" fenced") == 2


@pytest.mark.parametrize(("first", "count"), [(3, 2), (2, 2**32 - 1), (2**32 - 1, 1)])
def test_a_builder_refuses_chunks_that_are_not_there(first, count):
    b = lw.Builder("pattern", 2, "1K")
    b.buffer("output", 4)
    b.step()
    b.put(0, 1, "output", first, count)
    with pytest.raises(errors.ScheduleError, match=r"the buffer has chunks 0\.\.4") as refused:
        b.finish()
    assert refused.value.code == "schedule.no-chunk"


def test_a_schedule_is_copied_only_where_a_machine_changes_it():
    schedule = lw.schedule("allreduce", "ring", ranks=4, size=4096)
    assert schedules.lowered(schedule, lw.machine("loggp"), None) is schedule
    assert len(schedules.lowered(schedule, lw.machine("crossbar"), None)) > len(schedule)


def test_a_machine_file_that_changed_is_read_again(tmp_path):
    file = tmp_path / "mine.toml"
    text = registry.machine_path("crossbar").read_text()
    schedule = lw.schedule("allreduce", "ring", ranks=4, size=4096)
    file.write_text(text)
    before = lw.simulate(schedule, file).time_us
    file.write_text(text.replace("value = 500,", "value = 5000,"))
    assert lw.simulate(schedule, lw.machine(file)).time_us > 5 * before
    file.write_text(text)
    assert lw.simulate(schedule, str(file)).time_us == before


def test_ranks_are_summed_up_as_numpy_does():
    schedule = lw.schedule("broadcast", "binomial", ranks=11, size=4096)
    found = lw.simulate(schedule, "loggp")
    ranks = ask(lw.machine("loggp"), schedule).ranks
    times = (ranks.finish_ps - ranks.start_ps) / 1e3
    assert len(set(times)) > 3
    rows = {"mean": times.mean(), "min": times.min(), "median": np.median(times), "p95": np.percentile(times, 95)}
    for name, value in rows.items():
        assert found.row(f"time_rank_{name}")["value"] == pytest.approx(value, rel=1e-12)
    assert found.time_us == times.max() / 1e3


def test_a_wrong_schedule_yields_no_number_anywhere():
    for act in (lw.verify, lambda s: lw.simulate(s, "loggp"), lw.run):
        with pytest.raises(lw.VerifyError, match="rank"):
            act(star(3, lost=2))


def test_names_and_sizes_are_checked():
    with pytest.raises(lw.UsageError, match="did you mean `allreduce`"):
        lw.schedule("alreduce", "ring", ranks=2, size=8)
    with pytest.raises(lw.LinkwrightError, match="ring"):
        lw.schedule("allreduce", "rign", ranks=2, size=8)
    for ranks in (-1, 0, 10**30):
        with pytest.raises(lw.UsageError, match="1 to 4194304 are possible"):
            lw.schedule("allreduce", "ring", ranks=ranks, size=8)
    with pytest.raises(lw.UsageError, match="not a whole number"):
        lw.schedule("allreduce", "ring", ranks=2, size=6)
    with pytest.raises(lw.UsageError, match="unknown machine"):
        lw.simulate(star(2), "lgogp")


def test_one_rank_stands_for_all_where_ranks_are_alike(tmp_path, monkeypatch):
    def rows(walk, *more, by="ring,recursive_doubling_bandwidth"):
        monkeypatch.setattr("linkwright.ask.schedules.engine_kind", lambda _: walk)
        path = tmp_path / "rows.json"
        asked = ("-p", "8", "--sizes", "4K,64K", "-a", by, "--output", str(path))
        result = invoke("simulate", "allreduce", *asked, *(more if "--on" in more else ("--on", "loggp", *more)))
        assert result.status == 0, result.err
        return rows_of(path)

    plain = rows("collective")
    folded = rows("stream")
    marked = [row for row in folded if row["flags"] == "folded"]
    assert {row["metric"] for row in marked} >= {"time", "bus_bw", "byte_hops"}
    unmarked = [{**row, "reason": None, "flags": None} if row in marked else row for row in folded]
    assert unmarked == plain
    # Where ranks differ, each is simulated.
    for differ in (("--skew", "uniform:2us", "--seed", "3"), ("--on", "wormhole-n150")):
        assert rows("stream", *differ, by="ring") == rows("collective", *differ, by="ring")


def test_files_of_a_ring_that_only_folds_name_what_to_omit(tmp_path):
    page = str(tmp_path / "page.html")
    result = invoke(
        "simulate", "allreduce", "-a", "ring", "-p", "4096", "--on", "loggp", "--sizes", "1M", "--report", page
    )
    assert result.status == 1
    assert "use at most 2,048 ranks, or omit --report: files need every rank" in result.err


def test_a_million_ranks_fold():
    ranks = 1 << 20
    asked = ("-a", "ring", "--on", "loggp", "-p", str(ranks), "--sizes", "4M", "--wide")
    result = invoke("simulate", "allreduce", *asked)
    assert result.status == 0, result.err
    assert "folded" in result.out
    # 2 (p-1) rounds of 0.2 us + 1 us + 3 x 80 ps + 0.2 us, half of them 0.4 ns to combine.
    assert f"{(ranks - 1) * (2 * 1.40024 + 0.0004):.2f}" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("allreduce -a ring --sizes 4000000 -p 30000 --on loggp", "use a multiple of 120000 bytes"),
        ("allreduce -a ring --sizes 4G -p 32768 --on loggp --skew late:0:1us", "arrive at different times"),
        ("allreduce -a ring --sizes 4G -p 32768 --on loggp --issue window(2)", "one by one"),
        ("allreduce -a ring --sizes 4G -p 32768 --on loggp --launches 2", "noise delays each rank differently"),
        ("broadcast -a binomial --sizes 4K --on loggp -p 2097152", "none can stand for all"),
    ],
)
def test_what_is_too_large_and_does_not_fold_says_why_and_what_would_fit(arguments, message):
    result = invoke("simulate", *arguments.split())
    assert result.status == 1
    said = " ".join((result.out + result.err).replace("#", "").split())
    assert message in said
    assert "use at most " in said


@pytest.mark.parametrize(
    ("found", "put", "message"),
    [
        (
            "acknowledgements ",
            "# acknowledgements ",
            "missing key `acknowledgements`; add it, as one of always, awaited",
        ),
        ("acknowledgements ", "acknowledgments ", "did you mean it by `acknowledgments`?"),
        ('acknowledgements    = "always"', "acknowledgements = true", "needed: one of the texts always, awaited"),
        (
            'kind = "torus_noc"',
            'kind = "torus_nok"',
            "fabric.kind: unknown value `torus_nok`; did you mean `torus_noc`?",
        ),
    ],
)
def test_a_mistake_in_a_closed_list_of_words_names_file_line_and_words(tmp_path, found, put, message):
    text = registry.machine_path("torus-2d").read_text(encoding="utf-8")
    assert found in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(found, put, 1), encoding="utf-8")
    result = invoke("simulate", "allreduce", "-a", "ring", "--on", str(file), "--grid", "4x4", "--sizes", "1K")
    assert result.status == 2
    assert "mine.toml:" in result.err
    assert message in result.err


def test_a_schedule_too_large_to_write_names_what_fits(tmp_path):
    asked = ("-a", "ring", "--on", "loggp", "-p", "1048576", "--sizes", "1G", "--links", str(tmp_path / "links.csv"))
    result = invoke("simulate", "allreduce", *asked)
    assert result.status == 1
    assert "use at most 2,048 ranks" in result.err + result.out


@pytest.mark.parametrize(
    "option", [{"seed": -1}, {"seed": 1 << 70}, {"bins": 1.5}, {"skew": 3}, {"placement": [0, "a"]}]
)
def test_a_value_that_an_option_cannot_have_is_named(option):
    schedule = lw.schedule("allreduce", "ring", ranks=2, size=4096)
    with pytest.raises(UsageError, match=f"while processing '{next(iter(option))}'"):
        lw.simulate(schedule, "loggp", **option)


def test_what_an_answer_did_not_keep_names_the_field_that_keeps_it():
    answer = ask(lw.machine("loggp"), lw.schedule("allreduce", "ring", ranks=2, size=4096), How(seed=1))
    for name in ("links", "operations", "messages", "timeline"):
        with pytest.raises(UsageError, match="not recorded; ask with How"):
            getattr(answer, name)
    with pytest.raises(TypeError, match="unexpected keyword argument 'window'"):
        answer.how.but(window=2)
    assert answer.how.but(seed=0, path="rdma") == How(path="rdma")


def test_a_table_of_a_library_and_bare_schedules_says_which_times_hold_a_launch():
    """One answer with the library's start and one without: a column; alike, it is a field of the rows alone."""
    both = invoke("simulate", "allreduce", "--on", "hgx-h100", "-a", "nccl-2.27,ring", "--sizes", "1K")
    assert "launch" in both.out
    assert re.search(r"ring +- .* us +none ", both.out)
    for only in ("nccl-2.27", "ring"):
        assert "launch" not in invoke("simulate", "allreduce", "--on", "hgx-h100", "-a", only, "--sizes", "1K").out
    document = invoke("simulate", "allreduce", "--on", "hgx-h100", "-a", "nccl-2.27,ring", "--sizes", "1K", "--json")
    times = {row["algorithm"]: row for row in json.loads(document.out)["rows"] if row["metric"] == "time"}
    assert times["ring"]["launch_ns"] == 0
    assert 1e3 < times["nccl-2.27"]["launch_ns"] < times["nccl-2.27"]["value"]
