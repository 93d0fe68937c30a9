"""Placements of experts: by hand, properties of any, what is drawn, and the command."""

import json

import numpy as np
import pytest

from linkwright import _native, machines
from linkwright.advise.plans import experts as planner
from linkwright.base.errors import LinkwrightError
from linkwright_cases import invoke

MOE = ("--tokens", "24", "--experts", "16", "--topk", "4", "--hidden", "128")


def found(wanted, columns, redundant=0):
    """The plans of a search, and its bound."""
    wanted = np.array(wanted)
    search = planner._Search(wanted, columns, planner._copies(wanted.sum(axis=0), redundant, len(wanted)))
    return search.run(), search.least()


def loads(wanted, owners):
    return np.bincount(owners.ravel(), np.array(wanted).ravel(), len(wanted)).tolist()


def test_the_busiest_rank_gets_the_least():
    """Experts of 8, 7, 1 and 1 tokens on two ranks: 15 and 2 in order, at best 8 + 1 and 7 + 1, the bound."""
    wanted = [[4, 4, 1, 0], [4, 3, 0, 1]]
    ((experts, owners), *_), least = found(wanted, 2)
    assert sorted(loads(wanted, owners)) == [8, 9]
    assert least == 9
    assert all(len({0, 1} & set(one)) == 1 for one in experts)


def test_experts_move_to_the_node_that_wants_them():
    """Two nodes of two ranks: node 1 wants experts 0 and 1, node 0 the others. In order, all 16 tokens change nodes."""
    wanted = [[0, 0, 2, 2], [0, 0, 2, 2], [2, 2, 0, 0], [2, 2, 0, 0]]
    for _, owners in found(wanted, 2)[0]:
        assert all(owners[source, expert] // 2 == source // 2 for source in range(4) for expert in range(4) if
                   wanted[source][expert])  # fmt: skip
        assert loads(wanted, owners) == [4, 4, 4, 4]


def test_copies_share_the_tokens_of_an_expert():
    """Expert 0 has 8 tokens on each of two ranks, the others none; with a copy, each rank serves its own."""
    wanted = [[8, 0, 0], [8, 0, 0]]
    ((experts, owners), *_), least = found(wanted, 2, redundant=1)
    assert owners[:, 0].tolist() == [0, 1]
    assert sum(one.count(0) for one in experts) == 2
    assert least == 8


@pytest.mark.parametrize("redundant", [0, 8, 24])
@pytest.mark.parametrize("seed", range(4))
def test_any_plan_places_every_expert(seed, redundant):
    wanted = np.random.default_rng(seed).zipf(1.7, (8, 24)).clip(0, 1000)
    plans, least = found(wanted, 4, redundant)
    for experts, owners in plans:
        assert {len(one) for one in experts} == {(24 + redundant) // 8}
        assert set().union(*experts) == set(range(24))
        assert all(expert in experts[owners[source, expert]] for source in range(8) for expert in range(24))
        assert max(loads(wanted, owners)) >= least or redundant
    assert redundant or max(loads(wanted, plans[0][1])) < 1.1 * max(least, wanted.sum(axis=0).max())


def test_owners_in_order_are_those_that_nobody_states():
    routing = (16, 4, 128, 1000, 3)
    wanted = np.array(_native.expert_loads(4, 24 * 128, routing)).reshape(4, 16)
    assert (wanted.sum(axis=1) == 24 * 4).all()
    owners = np.tile(np.arange(16) // 4, (4, 1)).ravel().tolist()
    for row in (row for row in _native.algorithms() if row["collective"] in ("dispatch", "combine")):
        about = {"element_bytes": 1, "grid": (2, 2), "routing": routing}
        plain = _native.Schedule.build(row["key"], 4, 24 * 128, **about)
        assert _native.Schedule.build(row["key"], 4, 24 * 128, **about, owners=owners).text() == plain.text()
        # Every expert on rank 0, whatever the token: a schedule like any other.
        _native.Schedule.build(row["key"], 4, 24 * 128, **about, owners=[0] * 64).verify()


@pytest.mark.parametrize(
    ("owners", "words"),
    [([0] * 8, "8 owners of experts; give one for each rank and expert, 64"), ([4] * 64, "rank 4 owns an expert")],
)
def test_impossible_owners_are_refused(owners, words):
    with pytest.raises(LinkwrightError, match=words):
        _native.Schedule.build(
            "dispatch/direct", 4, 24 * 128, element_bytes=1, routing=(16, 4, 128, 0, 0), owners=owners
        )


def test_the_plain_order_is_kept_where_nothing_is_gained():
    machine = machines.load("hgx-h100")
    tokens = planner.counted([[1] * 8] * 8, 8, 128, "bf16", None)
    placement = planner.plan(machine, tokens)
    assert placement.planned is placement.plain
    assert placement.least_tokens == placement.plain.rank_tokens == 8


def test_one_row_of_counts_is_spread_over_ranks():
    """7 tokens for expert 0 on two ranks: 4 and 3; of expert 1's 3, the odd one is on the other rank."""
    assert planner.counted([[7, 3]], 2, 128, "bf16", None).wanted.tolist() == [[4, 1], [3, 2]]


def test_the_command(tmp_path):
    counts = tmp_path / "counts.csv"
    counts.write_text("\n".join([",".join(map(str, [4000, 3000, *[10] * 14]))] * 8))
    asked = ("plan", "experts", "--on", "hgx-h100", "--counts", str(counts), "--hidden", "7168")
    shown = invoke(*asked)
    assert shown.status == 0, shown.err
    assert "no placement has less than" in shown.out
    assert "in plain order 0: 56,000 tokens" in shown.out
    document = json.loads(invoke(*asked, "--json").out)
    plain, planned = document["plain"], document["planned"]
    assert document["gained"]
    assert planned["time_us"] < plain["time_us"]
    assert planned["rank_tokens"] >= document["least_tokens"]
    assert sorted(expert for rank in planned["experts"] for expert in rank) == list(range(16))
    assert invoke(*asked, "--json").out == json.dumps(document, indent=2) + "\n"


def test_drawn_tokens_on_two_nodes():
    asked = ("plan", "experts", "--on", "hgx-h100", "--nodes", "2", *MOE, "--routing", "zipf:1.0", "--dtype", "fp8")
    plain, copied = (json.loads(invoke(*asked, *more, "--json").out) for more in ((), ("--redundant", "16")))
    assert copied["planned"]["rank_tokens"] <= plain["plain"]["rank_tokens"]
    assert sum(map(len, copied["planned"]["experts"])) in (16, 32)


@pytest.mark.parametrize(
    ("words", "endpoints"),
    [
        (("-p", "8"), [0, 1, 2, 3, 8, 9, 10, 11]),  # an equal share on each node
        (("--ranks-per-node", "4"), [0, 1, 2, 3, 8, 9, 10, 11]),
        (("--place", "node 0 GPU 4..7,node 1 GPU 0..3"), [4, 5, 6, 7, 8, 9, 10, 11]),
        (("-p", "8", "--grid", "4x2"), [0, 1, 2, 3, 8, 9, 10, 11]),
    ],
)
def test_ranks_sit_where_simulate_puts_them(words, endpoints):
    asked = ("plan", "experts", "--on", "hgx-h100", "--nodes", "2", *words, *MOE, "--routing", "zipf:1.0", "--json")
    plain = json.loads(invoke(*asked).out)["plain"]
    machine = machines.load("hgx-h100", machines.Variant(nodes=2))
    tokens = planner.routed(8, 24, 16, 4, "zipf:1.0", 128, "bf16", 0, (4, 2))
    expected = planner.plan(machine, tokens, 0, endpoints).plain
    assert plain["dispatch"] == expected.dispatch._asdict()
    assert plain["node"] == expected.node < 2


def test_ranks_of_an_open_machine_are_put_together_by_the_grid():
    for machine in ("crossbar", "torus-400g"):
        done = invoke("plan", "experts", "--on", machine, "--grid", "2x2", *MOE, "--json")
        assert done.status == 0, done.err
        assert len(json.loads(done.out)["plain"]["experts"]) == 4


def test_the_only_rank_of_a_node_gets_all_from_others():
    """Each of eight nodes has one rank: every token that changes ranks changes nodes."""
    asked = ("plan", "experts", "--on", "hgx-h100", "--nodes", "8", "--ranks-per-node", "1", *MOE, "--json")
    plain = json.loads(invoke(*asked).out)["plain"]
    assert 0 < plain["node_tokens"] < plain["rank_tokens"]


def test_an_exchange_between_single_ranks_of_nodes_is_direct():
    """By rails a token goes to a node, then to its ranks; the only one has it already."""
    asked = ("plan", "experts", "--on", "hgx-h100", "--nodes", "8", "--ranks-per-node", "1", "--hidden", "7168")
    found = json.loads(invoke(*asked, "--tokens", "4096", "--experts", "64", "--topk", "8", "--json").out)
    assert {found[side][way]["algorithm"] for side in ("plain", "planned") for way in ("dispatch", "combine")} == {
        "direct"
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--place", "node 0 GPU 0..5,node 1 GPU 0..1"), "has 6, 2 on its nodes"),
        (("--place", "node 0 GPU 0..1,node 1 GPU 0..3,node 0 GPU 2..3"), "has those of a node apart"),
        (("--grid", "2x8"), "has 8 ranks on each node"),
        (("--ranks-per-node", "4", "--grid", "8x1"), "has 4 ranks on each node"),
    ],
)
def test_ranks_that_are_not_equal_shares_of_nodes_are_refused(words, said):
    done = invoke("plan", "experts", "--on", "hgx-h100", "--nodes", "2", *words, *MOE)
    assert done.status == 2
    assert said in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "lacks --tokens, --experts, --topk"),
        (("--counts", "x.csv", "--topk", "2"), "--counts: states everything; omit --topk"),
        (("--tokens", "8", "--experts", "18", "--topk", "2"), "18 experts are not divisible by 8"),
        ((*MOE[:-2], "--redundant", "3"), "19 experts with their copies on 8 ranks"),
        ((*MOE[:-2], "--redundant", "1200"), "a rank has an expert once"),
        ((*MOE[:-2], "--grid", "3x3"), "--grid 3x3: does not have 8 ranks"),
        ((*MOE[:-2], "--dtype", "fp8", "--hidden", "100"), "hidden 100 is not a multiple of 128"),
        ((*MOE[:-2], "-p", "1"), "-p"),
    ],
)
def test_impossible_requests_are_refused(arguments, words):
    hidden = () if "--hidden" in arguments else ("--hidden", "128")
    done = invoke("plan", "experts", "--on", "hgx-h100", *hidden, *arguments)
    assert done.status == 2
    assert words in " ".join((done.out + done.err).split())
