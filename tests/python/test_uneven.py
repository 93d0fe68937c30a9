"""Uneven exchanges: alltoallv, dispatch and combine from the command line to the check of every byte."""

import json
import os
import random
import re

import pytest

import mutants
from linkwright import _native, machines
from linkwright.ask.answer import limits
from linkwright.ask.exchange import UnevenExchange, parse_counts, skew_of, token_of
from linkwright.ask.question import of_json, of_row
from linkwright.base.errors import LinkwrightError
from linkwright.libraries.questions import collective_question
from linkwright_cases import BRIEF, invoke

MOE = ("--tokens", "24", "--experts", "16", "--topk", "4", "--hidden", "128")
MATRIX = "0,1001,1001\n0,0,2001\n0,0,0\n"


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(MATRIX)
    return str(path)


def simulated(tmp_path, *arguments):
    path = tmp_path / "rows.json"
    found = invoke("simulate", *arguments, "--out", str(path))
    assert found.status == 0, found.err
    rows = json.loads(path.read_text())
    rows = rows["rows"]
    return {row["algorithm"]: row for row in rows if row["metric"] == "time" and row["value"] is not None}


def test_times_by_hand(tmp_path, counts):
    """LogGP: o = 200 ns at both ends, L = 1000 ns, G = 0.08 ns per byte.

    Rank 0 sends 1001 B to rank 1 and then to rank 2: (200 + 80) + (200 + 80) + 1000 + 200 = 1760 ns. Rank 1 sends
    2001 B: 200 + 160 + 1000 + 200 = 1560 ns, which is the time alone without the message from 0 to 2.
    """
    rows = simulated(tmp_path, "alltoallv", "--counts", counts, "--on", "loggp", "-a", "linear", "-d", "u8")
    assert rows["linear"]["value"] == pytest.approx(1760)
    (tmp_path / "counts.csv").write_text(MATRIX.replace("0,1001,1001", "0,1001,0"))
    rows = simulated(tmp_path, "alltoallv", "--counts", counts, "--on", "loggp", "-a", "linear", "-d", "u8")
    assert rows["linear"]["value"] == pytest.approx(1560)


@pytest.mark.parametrize("collective", ["alltoallv", "dispatch", "combine"])
@pytest.mark.parametrize("routing", ["uniform", "zipf:1.2"])
def test_executors_give_the_exact_data(tmp_path, collective, routing):
    asked = (collective, *MOE, "--routing", routing, "--grid", "2x2", "-p", "4", "-d", "f32")
    found = invoke("run", *asked, "--on", "threads", "--runs", str(tmp_path), *BRIEF, "-n", "4")
    assert found.status == 0, found.out + found.err
    assert "waived" not in found.out
    exchange = UnevenExchange((), 16, 4, 128, routing)
    for row in (row for row in _native.algorithms() if row["collective"] == collective):
        for dtype, element_bytes in (("f32", 4), ("bf16", 2), ("u8", 1)):
            schedule = _native.Schedule.build(
                row["key"], 4, 24 * 128, element_bytes=element_bytes, grid=(2, 2), **exchange.shape
            )
            assert _native.schedule_memory(schedule, {"dtype": dtype})["checked_elements"] > 0


def test_proofs(counts):
    found = invoke("verify", "dispatch", *MOE, "-p", "8", "--grid", "4x2")
    assert (found.status, found.out.count("ok ")) == (0, 4), found.out
    assert "4 schedules: 4 ok" in found.out
    assert "4 schedules: 2 ok, 2 waived" in invoke("verify", "alltoallv", "--counts", counts).out


def test_the_network_carries_a_token_once_for_a_node(tmp_path):
    """All 16 experts are wanted: of 2560 tokens of 512 B, each GPU's NIC takes 2560 by rails, 20480 directly."""
    routed = ("--tokens", "2560", "--experts", "16", "--topk", "16", "--hidden", "128")
    rows = simulated(tmp_path, "dispatch", *routed, "--on", "hgx-h100", "--nodes", "2", "--grid", "8x2", "-p", "16")
    assert rows["direct"]["limit"] > 4 * rows["rails"]["limit"]
    assert all(row["value"] >= row["limit"] for row in rows.values())
    assert rows["rails"]["value"] < rows["direct"]["value"] < rows["low_latency"]["value"] * 1.01


def test_the_limit_names_the_nics_of_the_fullest_node():
    """16 ranks have 1 MB each for each of the 8 ranks of the last node: 128 MB over its eight NICs, not 16 over one."""
    last = [*([0] * 16), *([1_000_000] * 8)]
    counts = UnevenExchange(tuple(tuple(last if rank < 16 else [0] * 24) for rank in range(24)))
    machine = machines.load("hgx-h100", machines.Variant(3))
    found = {one.name: one for one in limits(machine, "alltoallv", 24, 8_000_000, dtype="u8", exchange=counts)}
    assert found["cut"].size_bytes == 128_000_000
    assert found["cut"].what.startswith("into ranks 16, 17, 18, 19, 20, 21, 22, 23, over 8 links: ")
    assert "node 2 NIC 0" in found["cut"].what
    assert found["arrival"].time > found["cut"].time > found["port"].time


def test_describe_derives_the_limit_of_stated_tokens():
    asked = [
        "--on",
        "hgx-h100",
        "--nodes",
        "2",
        "--grid",
        "8x2",
        *["--tokens", "64", "--experts", "32", "--topk", "4", "--hidden", "512"],
    ]
    derived = json.loads(invoke("describe", "dispatch", "--limit", *asked, "--json").out)
    rows = json.loads(invoke("simulate", "dispatch", "-a", "rails", *asked, "--json").out)["rows"]
    best = next(row for row in rows if row["metric"] == "time")
    assert derived[0]["time_us"] * 1000 == pytest.approx(best["limit"], rel=1e-6)
    assert derived[0]["size_bytes"] == best["size_bytes"]
    for lacking in (asked[:6], ["--on", "hgx-h100", "--sizes", "1M"]):
        refused = invoke("describe", "dispatch", "--limit", *lacking)
        assert (refused.status, "lacks --tokens, --experts, --topk, --hidden" in refused.err) == (2, True)
    assert "--tokens applies to a limit; add --limit" in invoke("describe", "dispatch", "--tokens", "3").err


def test_a_question_keeps_its_exchange():
    exchange = UnevenExchange((), 16, 4, 128, "zipf:0.5", 3)
    asked = collective_question("p", "dispatch", "direct", 4, 5000, "u8", "sum", exchange=exchange)
    assert asked.size_bytes == 5000 // 128 * 128
    assert asked.key.endswith("/e16-top4-128-zipf:0.5-seed3")
    assert of_json(json.loads(json.dumps(asked.to_json()))) == asked
    assert of_row({"flags": None, **asked.columns()}) == asked
    matrix = UnevenExchange(parse_counts(MATRIX, "x"))
    asked = collective_question("p", "alltoallv", "linear", 3, 0, "f32", "sum", exchange=matrix)
    assert asked.size_bytes == 2002 * 4
    assert of_json(json.loads(json.dumps(asked.to_json()))) == asked


def test_tokens_as_they_travel():
    assert token_of(7168, "fp8") == (7168 + 7168 // 128 * 4, "u8")
    assert token_of(7168, "nvfp4") == (7168 // 2 + 7168 // 16, "u8")
    assert token_of(7168, "bf16") == (7168, "bf16")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dispatch",), "lacks --tokens, --experts, --topk, --hidden; state all four, or --counts"),
        (("dispatch", "--tokens", "0", *MOE[2:]), "every rank has at least 1 token"),
        (("dispatch", "--tokens", "8", "--experts", "16", "--topk", "17", "--hidden", "128"),
         "top-k 17 of 16 experts; use 1 to 16"),
        (("dispatch", "--tokens", "8", "--experts", "18", "--topk", "2", "--hidden", "128"),
         "18 experts are not divisible by 4 ranks; each rank owns as many, use 16 or 20"),
        (("dispatch", "--tokens", "8", "--experts", "3", "--topk", "2", "--hidden", "128"),
         "by 4 ranks; each rank owns as many, use 4"),
        (("dispatch", "--tokens=-8", *MOE[2:]), "every rank has at least 1 token"),
        (("dispatch", *MOE[:-1], "130", "-d", "fp8"), "hidden 130 is not a multiple of 128, which fp8 packs"),
        (("dispatch", *MOE[:-1], "24", "-d", "nvfp4"), "hidden 24 is not a multiple of 16"),
        (("dispatch", *MOE, "--routing", "zipf:9"), "routing `zipf:9`: write `uniform` or `zipf:S`"),
        (("dispatch", *MOE, "-b", "8"), "states the size, too"),
        (("combine", *MOE, "-d", "fp8"), "a combine adds up"),
        (("alltoall", "--tokens", "8"), "--tokens: only alltoallv, combine, dispatch are uneven"),
        (("allreduce", "-d", "fp8"), "only tokens of a dispatch travel packed"),
        (("alltoallv", "--counts", "no.csv"), "cannot be read"),
    ],
)  # fmt: skip
def test_impossible_exchanges_are_refused(arguments, words):
    found = invoke("simulate", *arguments, "--on", "crossbar", "-p", "4")
    assert (found.status, found.out) == (2, "")
    assert words in re.sub(r"\s+", " ", found.err)
    assert found.err.count("linkwright: ") == 1


@pytest.mark.parametrize(
    "asked",
    [
        ("explain", "dispatch/direct", "--on", "crossbar", "-p", "4", "--size", "1K"),
        ("draw", "combine/direct", "--on", "crossbar", "-p", "4", "--out", "picture.svg"),
        ("compare", "crossbar", "loggp", "-p", "4", "--collectives", "dispatch", "--sizes", "1K"),
        ("plan", "cost", "combine", "--on", "hgx-h100"),
        ("predict", "app.toml", "--on", "crossbar"),
    ],
)
def test_a_time_of_tokens_that_nobody_stated_is_refused_in_every_verb(tmp_path, monkeypatch, asked):
    monkeypatch.chdir(tmp_path)
    message = '[[superstep]]\nname = "s"\n[[superstep.message]]\ncollective = "dispatch"\nsize = "1K"\n'
    (tmp_path / "app.toml").write_text(
        f'[app]\nformat = 1\nkind = "supersteps"\nname = "a"\nsummary = "s"\nendpoints = 4\n{message}'
    )
    found = invoke(*asked)
    assert (found.status, found.out) == (2, "")
    assert re.search(r"(dispatch|combine): lacks tokens and experts; state them with `linkwright simulate", found.err)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n3\n", "row 2 has 1 counts, and there are 2 rows"),
        ("1,-2\n3,4\n", "row 1, column 2: `-2` is not a count"),
        ("1,2.5\n3,4\n", "`2.5` is not a count"),
        ("1,\n3,4\n", "`nothing` is not a count"),
        ("0,0\n0,0\n", "all counts are 0"),
        ("", "has 0 rows"),
        ("9999999999999\n", "adds up to more than"),
    ],
)
def test_wrong_counts_are_refused(text, words):
    with pytest.raises(LinkwrightError, match=re.escape(words)):
        parse_counts(text, "counts.csv")


def test_mutants_of_counts_give_a_matrix_or_one_message():
    rng = random.Random(int(os.environ.get("LINKWRIGHT_FUZZ_SEED", "0")))
    messages: list[str] = []
    for _ in range(int(os.environ.get("LINKWRIGHT_FUZZ_COUNTS", "500"))):
        text = mutants.text(rng, MATRIX)
        try:
            matrix = parse_counts(text, "counts.csv")
        except LinkwrightError as error:
            messages.append(str(error))
            continue
        ranks = len(matrix)
        assert all(len(row) == ranks for row in matrix)
        if max(map(sum, matrix)) < 1 << 20 and ranks < 16:
            exchange = UnevenExchange(matrix)
            elements = exchange.whole(0, ranks, 1)
            _native.Schedule.build("alltoallv/linear", ranks, elements, element_bytes=1, **exchange.shape).verify()
    assert all("counts.csv" in message and len(message) < 400 for message in messages)


def test_skew():
    assert skew_of("uniform") == 0
    assert skew_of("zipf:1.25") == 1.25
