"""`linkwright synthesize`: the table, the files that it leaves, Ctrl-C, and questions that make no sense."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.advise import synthesis
from linkwright.base.errors import UsageError
from linkwright.executors import resolve_one
from linkwright_cases import BRIEF, invoke

# Known algorithms and their transforms; other methods have tests of their own.
QUICK = ("--method", "library,portfolio")
CROSSBAR = Path(lw.__file__).parent / "machines" / "crossbar.toml"


def found(tmp_path, *arguments):
    """The rows and the folder of a search."""
    out = tmp_path / "found"
    done = invoke("synthesize", *arguments, *QUICK, "--out", str(out), "--json", "-")
    assert done.status == 0, done.err
    return json.loads(done.out), out


def test_a_file_gives_the_time_in_the_table(tmp_path):
    (row,), out = found(tmp_path, "allreduce", "--on", "dgx1-p100", "--sizes", "1K")
    (file,) = out.glob("*.lw")
    assert file.name == "allreduce-dgx1-p100-8-1K.lw"
    head = [line for line in file.read_text().splitlines() if line.startswith("# ")]
    assert head[0] == "# machine: dgx1-p100"
    assert f"# recipe: {row['recipe']}" in head
    assert f"# time: {row['found_ns']} ns" in head
    assert any(line.startswith("# bound: ") for line in head)
    simulated = invoke(
        "simulate", str(file), "--on", "dgx1-p100", "--issue", row["issue"], "--output", str(tmp_path / "s.json")
    )
    assert simulated.status == 0, simulated.err
    rows = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert [one["value"] for one in rows if one["metric"] == "time"] == [row["found_ns"]]


def test_recursive_doubling_gains_from_scratch_of_its_own(tmp_path):
    """1 KiB on a DGX-1: recursive doubling alone goes from 49.09 us to 29.53 us; what is found is no slower."""
    (row,), _ = found(tmp_path, "allreduce", "--on", "dgx1-p100", "--sizes", "1K")
    assert row["bound_ns"] <= row["found_ns"] <= 29.54e3
    assert row["found_ns"] <= row["known_ns"]
    assert row["gain"] == pytest.approx(row["known_ns"] / row["found_ns"])


def test_the_table_and_the_exports(tmp_path):
    out = tmp_path / "found"
    more = ("--out", str(out), "--as", "msccl-xml")
    done = invoke("synthesize", "allgather", "--on", "dgx1-p100", "--sizes", "1K,1K,64K", *QUICK, *more)
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "# allgather over 8 ranks on dgx1-p100"
    assert lines[1].split()[:4] == ["size", "best", "known", "found"]
    assert [line.split()[0] for line in lines[2:] if not line.startswith("  wrote")] == ["1K", "64K"]
    for file in out.glob("*.msccl-xml"):
        assert invoke("verify", str(file.rename(file.with_suffix(".xml")))).status == 0
    assert len(list(out.glob("*.xml"))) == 2


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    texts = []
    for name in ("a", "b"):
        _, out = found(
            tmp_path / name, "broadcast", "--on", str(CROSSBAR), "--ranks", "8", "--sizes", "4K", "--seed", "7"
        )
        (file,) = out.glob("*.lw")
        texts.append(file.read_bytes())
    assert texts[0] == texts[1]


def test_two_ranks_run_on_threads_with_data_checked(tmp_path):
    _, out = found(tmp_path, "allreduce", "--on", str(CROSSBAR), "--ranks", "2", "--sizes", "4K")
    (file,) = out.glob("*.lw")
    done = invoke("run", str(file), "--on", "threads", "--iters", "3", *BRIEF, "--runs", str(tmp_path / "runs"))
    assert done.status == 0, done.err + done.out


@pytest.mark.parametrize(
    ("method", "collective", "ranks"),
    [
        ("composition", "allreduce", 4),
        ("composition", "alltoall", 3),
        ("matching", "allgather", 4),
        ("packing", "reduce_scatter", 4),
        ("flows", "alltoall", 4),
    ],
)
def test_what_is_synthesised_runs_on_threads_with_data_checked(tmp_path, method, collective, ranks):
    out = tmp_path / "found"
    asked = ("--on", str(CROSSBAR), "--ranks", str(ranks), "--sizes", "960", "--budget", "500ms")
    done = invoke("synthesize", collective, *asked, "--method", method, "--out", str(out))
    assert done.status == 0, done.err
    (file,) = out.glob("*.lw")
    assert f"# method: {method}" in file.read_text().splitlines()
    ran = invoke("run", str(file), "--on", "threads", "--iters", "3", *BRIEF, "--runs", str(tmp_path))
    assert ran.status == 0, ran.err + ran.out


@pytest.mark.parametrize(
    ("collective", "method", "grid"),
    [
        ("alltoall", "composition", "2x2"),
        ("allgather", "library,portfolio", "2x2"),
        ("reduce_scatter", "composition", "2x2"),
        ("allreduce", "library,portfolio", "2x2"),
        ("broadcast", "matching", "2x2"),
    ],
)
def test_what_reads_runs_on_threads_with_data_checked(tmp_path, collective, method, grid):
    out = tmp_path / "found"
    asked = ("--on", "torus-2d", "--grid", grid, "--path", "ideal", "--sizes", "960", "--budget", "1s")
    done = invoke("synthesize", collective, *asked, "--method", method, "--out", str(out))
    assert done.status == 0, done.err
    (file,) = out.glob("*.lw")
    text = file.read_text()
    assert re.search("# recipe: .*data read", text)
    assert " get " in text
    ran = invoke("run", str(file), "--on", "threads", "--iters", "3", *BRIEF, "--runs", str(tmp_path))
    assert ran.status == 0, ran.err + ran.out


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs MPI")
def test_two_ranks_run_on_mpi_with_data_checked(tmp_path):
    _, out = found(tmp_path, "allreduce", "--on", str(CROSSBAR), "--ranks", "2", "--sizes", "4K")
    (file,) = out.glob("*.lw")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [
        "mpirun", "-n", "2", "--oversubscribe", sys.executable, "-m", "linkwright", "run", str(file), "--on", "mpi",
        "--iters", "3", *BRIEF, "--runs", str(tmp_path / "runs"),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def test_hardly_any_budget_still_gives_an_answer(tmp_path):
    (row,), _ = found(tmp_path, "allreduce", "--on", "dgx1-p100", "--sizes", "1M", "--budget", "1ms")
    assert row["method"] == "library"
    assert row["found_ns"] >= row["bound_ns"]


def test_the_table_says_when_known_algorithms_were_left_out(tmp_path):
    """A gain over some of the known algorithms only is no gain over the best known."""
    asked = ("synthesize", "allreduce", "--on", "torus-2d", "--grid", "8x8", "--sizes", "64K", "--method", "library")
    hurried = invoke(*asked, "--budget", "1ms", "--json", str(tmp_path / "rows.json"))
    assert hurried.status == 0, hurried.err
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row["known_unseen"] > 0
    assert f"{row['known_unseen']} known algorithms were not examined; allow a longer --budget" in hurried.out
    assert "not examined" not in invoke(*asked).out


def test_serial_starts_are_obeyed(tmp_path):
    """The time in the table is that of a simulation with serial starts, and no less than the one that ignores them."""
    (row,), out = found(tmp_path, "allreduce", "--on", "dgx1-p100", "--sizes", "1K", "--serial-starts")
    (file,) = out.glob("*.lw")
    assert "# start-ups of a rank: one after another" in file.read_text().splitlines()
    schedule = lw.load(file)
    serial, free = (
        lw.simulate(schedule, "dgx1-p100", issue=row["issue"], serial_starts=serial).time_us for serial in (True, False)
    )
    assert serial == pytest.approx(row["found_ns"] / 1e3)
    assert free <= serial
    (careless,), _ = found(tmp_path / "free", "allreduce", "--on", "dgx1-p100", "--sizes", "1K")
    assert careless["found_ns"] < row["found_ns"]


FRAGILE = ("broadcast", "--on", "dgx1-p100", "--sizes", "1K", "--method", "library,composition", "--budget", "3s")


def test_the_answer_is_a_gain_that_lasts(tmp_path):
    """On the DGX-1, what is found at 1 KiB is 1.10 x as fast, in two of three draws of the links."""
    out = tmp_path / "found"
    done = invoke("synthesize", *FRAGILE, "--json", str(tmp_path / "rows.json"), "--out", str(out))
    assert done.status == 0, done.err
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    passed = row["fastest"]
    assert passed["gain"] >= 1.02
    assert not passed["lasting"]["lasts"]
    assert f"passed over: {passed['time_ns'] / 1e3:.2f} us" in done.out
    assert "--fastest takes it" in done.out
    if row["lasting"] is None:
        assert row["gain"] == 1.0
    else:
        assert row["lasting"]["lasts"]


def test_who_wants_the_fastest_gets_it_with_a_warning_in_its_file(tmp_path):
    out = tmp_path / "found"
    asked = ("--fastest", "--json", str(tmp_path / "rows.json"), "--out", str(out))
    done = invoke("synthesize", *FRAGILE, *asked)
    assert done.status == 0, done.err
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row["fastest"] is None
    lasting = row["lasting"]
    assert lasting["draws"] == 20
    assert not lasting["lasts"]
    assert f"{lasting['wins'] / 20:.0%}, {lasting['serial']:.2f} x" in done.out
    (file,) = out.glob("*.lw")
    told = f"# gain lasts: in {lasting['wins']} of 20 draws of rates and times, {lasting['least']:.2f} x at least"
    assert told in file.read_text()


def test_a_gain_over_nothing_has_nothing_to_last(tmp_path):
    """Without known algorithms there is no gain, and nothing is drawn."""
    done = invoke("synthesize", "allgather", "--on", "dgx1-p100", "--sizes", "4K", "--method", "composition",
                  "--budget", "1s", "--json", "-")  # fmt: skip
    (row,) = json.loads(done.out)
    assert (row["gain"], row["lasting"], row["fastest"]) == (None, None, None)


def test_one_rank_needs_nothing(tmp_path):
    (row,), out = found(tmp_path, "allreduce", "--on", str(CROSSBAR), "--ranks", "1", "--sizes", "1K")
    assert (row["found_ns"], row["gain"]) == (0.0, None)
    (file,) = out.glob("*.lw")
    assert invoke("verify", str(file)).status == 0


def test_ranks_that_do_not_factor_and_more_slices_than_elements(tmp_path):
    """Seven ranks, and 28 bytes: one element for each. There are cuts of one element only."""
    for collective in ("allreduce", "reduce_scatter", "allgather"):
        (row,), out = found(tmp_path / collective, collective, "--on", str(CROSSBAR), "--ranks", "7", "--sizes", "28")
        (file,) = out.glob("*.lw")
        assert invoke("verify", str(file)).status == 0
        assert row["found_ns"] > 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("allgather", "--on", "dgx1-p100", "--sizes", "16"), "less than one element for each of 8 ranks"),
        (("nothing", "--on", "dgx1-p100"), "unknown collective `nothing`"),
        (("allreduce", "--on", "dgx1-p100", "--ranks", "9"), "9"),
        (("allreduce", "--on", "threads"), "needs a described machine"),
        (("allreduce", "--on", "dgx1-p100", "--method", "magic"), "unknown method `magic`"),
        (("allreduce", "--on", "dgx1-p100", "--as", "msccl-xml"), "choose a folder for it with --out"),
        (("allreduce", "--on", "dgx1-p100", "--sizes", "1K", "--path", "nope"), "nope"),
        (("broadcast", "--on", "dgx1-p100", "--sizes", "1K", "--root", "8"), "root 8"),
        (("allreduce", "--on", "dgx1-p100", "--budget", "0s"), "`0s` is not a positive time"),
        (("allreduce", "--on", "dgx1-p100", "--degrade", "nvlink=0"), "the factor of a rate is above 0"),
        (("dispatch", "--on", "dgx1-p100"), "dispatch: lacks --tokens, --experts, --topk, --hidden"),
        (("allreduce", "--on", "dgx1-p100", "--tokens", "8"), "--tokens: only alltoallv, combine, dispatch are uneven"),
    ],
)
def test_questions_that_make_no_sense(arguments, why):
    done = invoke("synthesize", *arguments)
    assert done.status == 2, done.err + done.out
    assert why in done.err


def test_uneven_exchanges_are_searched_for_their_counts(tmp_path):
    """What is found is no slower than any algorithm, proved, and on threads the data is right."""
    moe = ("--tokens", "24", "--experts", "16", "--topk", "4", "--hidden", "128", "--routing", "zipf:1.0", "-d", "u8")
    (row,), out = found(tmp_path, "dispatch", "--on", str(CROSSBAR), "-p", "4", "--grid", "2x2", *moe, "--budget", "1s")
    assert row["size_bytes"] == 24 * 128
    assert row["bound_ns"] <= row["found_ns"] <= row["known_ns"]
    (file,) = out.glob("*.lw")
    assert invoke("verify", str(file)).status == 0
    ran = invoke("run", str(file), "--on", "threads", "--iters", "3", *BRIEF, "--runs", str(tmp_path))
    assert ran.status == 0, ran.err + ran.out


def test_counts_are_for_as_many_ranks(tmp_path):
    counts = tmp_path / "counts.csv"
    counts.write_text("0,9\n4,0\n")
    done = invoke("synthesize", "alltoallv", "--on", "dgx1-p100", "--counts", str(counts), *QUICK)
    assert done.status == 2
    assert "--counts: of 2 ranks, not 8; state -p 2" in done.err
    (row,), _ = found(tmp_path, "alltoallv", "--on", "dgx1-p100", "-p", "2", "--counts", str(counts))
    assert row["size_bytes"] == 9 * 4


def test_a_machine_that_is_not_connected():
    """Without any of its switches, an HGX's GPUs reach each other by nothing that an allreduce could take."""
    done = invoke("synthesize", "allreduce", "--on", "dgx1-p100", "--without", "nvlink", "--without", "pcie", *QUICK)
    assert done.status in (1, 2), done.out
    assert "Traceback" not in done.err
    assert "linkwright: " in done.err


def test_a_link_without_a_rate_is_refused_with_its_place(tmp_path):
    text = CROSSBAR.read_text()
    line = next(line for line in text.splitlines() if line.startswith("port_bandwidth"))
    file = tmp_path / "still.toml"
    file.write_text(text.replace(line, re.sub(r"value = [-+.e\d]+", "value = 0", line)))
    done = invoke("synthesize", "allreduce", "--on", str(file), "--ranks", "4", "--sizes", "1K", *QUICK)
    assert done.status == 2, done.out
    assert "still.toml" in done.err
    assert "bandwidth" in done.err


def test_what_binds_is_in_the_json(tmp_path):
    """Two ranks of an ideal switch: what is neither start nor bytes of a message is nothing, and its link is a port."""
    (row,), _ = found(tmp_path, "allreduce", "--on", str(CROSSBAR), "--ranks", "2", "--sizes", "4K")
    for binds in (row["known_binds"], row["found_binds"]):
        assert sum(binds["critical_path"].values()) == pytest.approx(1)
        assert 0 < binds["busiest_link"]["busy_share"] <= 1


def test_the_page_says_why_the_winner_wins(tmp_path):
    page = tmp_path / "found.html"
    asked = ("synthesize", "allreduce", "--on", "dgx1-p100", "--sizes", "1K,64K", *QUICK, "--budget", "5s")
    done = invoke(*asked, "--report", str(page))
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == f"wrote {page}"
    text = page.read_text(encoding="utf-8")
    for said in ("best known: ", "found: ", "Why it wins", "At 64K", "The busiest link."):
        assert said in text, said
    assert not re.search(r"(src|href)=.?https?:", text)


@pytest.mark.parametrize(("name", "why"), [("found.txt", "ends in .html"), ("no/found.html", "--report")])
def test_a_page_that_has_no_place_is_refused_before_the_search(tmp_path, name, why):
    asked = ("synthesize", "allreduce", "--on", "dgx1-p100", "--sizes", "1K", "--budget", "1h")
    done = invoke(*asked, "--report", str(tmp_path / name))
    assert done.status == 2
    assert why in done.err


@pytest.mark.parametrize(("name", "why"), [("no/rows.json", "does not exist; create it first"), ("", "is a folder")])
def test_a_table_that_has_no_place_is_refused_before_the_search(tmp_path, name, why):
    asked = ("synthesize", "allreduce", "--on", "dgx1-p100", "--sizes", "1K", "--budget", "1h")
    done = invoke(*asked, "--json", str(tmp_path / name))
    assert done.status == 2
    assert why in done.err


def test_a_program_that_names_an_unknown_collective_gets_the_same_error():
    target = synthesis.described(resolve_one("dgx1-p100", None, None))
    with pytest.raises(UsageError, match="unknown collective `allreduces`"):
        synthesis.task(
            target, "allreduces", 1024, dtype="f32", op="sum", root=0, grid=None, path=None, seed=1, budget_s=1,
            methods=(),
        )  # fmt: skip


def test_a_format_that_cannot_hold_a_winner_costs_neither_the_rest_nor_the_other_sizes(tmp_path):
    """MSCCL has no barrier, and knows no multicast."""
    asked = ("--on", "loggp", "-p", "16", "--budget", "2s", "--out", str(tmp_path), "--as", "msccl-xml", "--as", "goal")
    done = invoke("synthesize", "allreduce", "--sizes", "4,64K", "--method", "composition", *asked)
    assert done.status == 1, done.out
    assert "not written: msccl-xml: operation t0 of step 1 at rank 0: is a multicast" in done.err
    assert {file.name for file in tmp_path.iterdir()} >= {
        f"allreduce-loggp-16-{size}.{kind}" for size in ("4", "64K") for kind in ("lw", "goal")
    }
    barrier = invoke("synthesize", "barrier", *asked)
    assert (barrier.status, "not written: msccl-xml: the format has no barrier" in barrier.err) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_gives_the_best_so_far(tmp_path):
    command = [
        sys.executable, "-m", "linkwright", "synthesize", "alltoall", "--on", "wormhole-n150", "--sizes", "64K,128K",
        "--budget", "300s", "--out", str(tmp_path / "found"),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert "64K" in out
    assert len(list((tmp_path / "found").glob("*.lw"))) >= 1
