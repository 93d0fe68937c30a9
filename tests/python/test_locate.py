"""Find planted faults: predictions against the engine, searches with the engine as referee, results in files."""

import json
import math
import random
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import mutants
from linkwright import machines
from linkwright.advise.locate import fault, pair_map, results, rounds, watch
from linkwright.advise.locate.effects import SHARES, FaultModel, fair_shares
from linkwright.advise.locate.parts import HostLayout
from linkwright.advise.locate.posterior import Observation, posterior
from linkwright.advise.locate.rounds import tournament
from linkwright.advise.locate.search import RoundChooser, verdict
from linkwright.base.errors import FileError, LinkwrightError, UsageError
from linkwright.cli import locate as cli_locate
from linkwright.cli import locate_job
from linkwright.executors.cluster import spec
from linkwright.machines import Variant, writer
from linkwright_cases import invoke

NOISE = 0.03


def written(folder, shape="fat_tree", hosts=16, uplink=400e6, width=4):
    """A machine file of a cluster whose hosts have ports of 100 MB/s."""
    path = folder / f"{shape}.toml"
    path.write_text(writer.text(spec.machine(spec.shaped("lab", shape, hosts, 100e6, uplink, width))))
    return str(path)


def modelled(name, ways="each", variant=Variant()):  # noqa: B008
    layout = HostLayout(machines.load(name, variant))
    return FaultModel(layout, rounds.library(layout, ways))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    name = written(tmp_path_factory.mktemp("tree"))
    return name, modelled(name)


def referee(name, factors, test, draw=None, noise=NOISE):
    """Rates by the engine on the faulty machine, each with noise."""
    seen = Observation(test, (1.0,) * len(test.cells))
    rates = fault._simulated(machines.load(name, Variant.of(None, None, (), factors)), seen)
    return Observation(test, tuple(float(rate) * (draw.lognormvariate(0, noise) if draw else 1) for rate in rates))


@pytest.mark.parametrize("count", [2, 3, 6, 7, 16])
def test_everybody_meets_everybody_once(count):
    rounds = list(tournament(count))
    met = [pair for one in rounds for pair in one]
    assert len(rounds) == count - 1 + count % 2
    assert sorted(met) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    assert all(len({end for pair in one for end in pair}) == 2 * len(one) for one in rounds)


def test_fair_shares_by_hand():
    # Flows 0 and 1 share link 0 of 10; flow 1 also crosses link 1 of 3, so it has 3 and flow 0 the other 7.
    found = fair_shares(np.array([0, 1, 1]), np.array([0, 0, 1]), np.ones(3), np.full(2, 100.0), np.array([10.0, 3.0]))
    assert found.tolist() == [7, 3]


@pytest.mark.parametrize("part", ["n3 - leaf 0", "leaf 1 - spine", "leaf 2", "n9"])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_effects_agree_with_the_engine(tree, part, share):
    name, model = tree
    place = next(at for at, place in enumerate(model.places) if part in [one.name for one in place.parts])
    nearest = int(np.abs(SHARES - share).argmin())
    for number in (0, len(model.library) // 2):
        effects = model.effects[number]
        expected = effects.base.copy()
        its = effects.of(place)
        expected[effects.cell[its]] += effects.drop[its, nearest]
        rates = referee(name, {part: float(SHARES[nearest])}, model.library[number]).rates
        # Start-ups of the engine, and messages that go on when others have ended.
        assert np.log(rates) == pytest.approx(expected, abs=0.08)


def searched(name, model, factors, seed):
    draw = random.Random(seed)
    search, seen = RoundChooser(model), []
    test = search.first(1)[0].test
    for _ in range(12):
        seen.append(referee(name, factors, test, draw))
        known = posterior(model, seen)
        found = verdict(known, seen)
        if found.word != "open":
            break
        test = search.next(known, [one.test for one in seen]).test
    return found, known, len(seen)


@pytest.mark.parametrize("seed", range(3))
def test_one_fault_is_found_in_few_tests(tree, seed):
    name, model = tree
    draw = random.Random(seed)
    part, share = draw.choice(["n7 - leaf 1", "leaf 3 - spine", "leaf 2"]), draw.uniform(0.1, 0.8)
    found, known, count = searched(name, model, {part: share}, seed)
    assert found.word == "found"
    assert part in [one.name for at in found.which for one in model.places[at].parts]
    assert known.share(found.which)[0] == pytest.approx(share, rel=0.1)
    assert count <= 6


def test_two_faults_are_found(tree):
    name, model = tree
    found, _, _ = searched(name, model, {"n2 - leaf 0": 0.3, "leaf 3 - spine": 0.2}, 1)
    assert found.word == "found"
    names = {one.name for at in found.which for one in model.places[at].parts}
    assert {"n2 - leaf 0", "leaf 3 - spine"} <= names


def test_one_direction_is_told_from_both(tree):
    _, model = tree
    seen = []
    for test, effects in list(zip(model.library, model.effects, strict=True))[:2]:
        rates = zip(test.cells, np.exp(effects.base), strict=True)
        seen.append(Observation(test, tuple(rate * (0.3 if cell[0][0] == 5 else 1) for cell, rate in rates)))
    (which, chance), *_ = posterior(model, seen).sets()
    assert [model.places[at].part.name for at in which] == ["n5 -> leaf 1"]
    assert chance > 0.8


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_machine_is_called_so(tree, seed):
    name, model = tree
    found, known, count = searched(name, model, {}, seed)
    assert (found.word, found.which) == ("healthy", ())
    assert known.healthy >= 0.95
    assert count <= 6


def test_what_slows_all_alike_is_a_scale_and_no_fault(tree):
    _, model = tree
    seen = [Observation(model.library[0], tuple(0.8 * np.exp(model.effects[0].base)))]
    known = posterior(model, seen)
    assert known.scale == pytest.approx(0.8)
    assert known.sets()[0][0] == ()


def test_a_baseline_stands_in_for_the_model(tree):
    _, model = tree
    some = model.library[:2]
    usual = {cell: 30e6 + 1e6 * at for test in some for at, cell in enumerate(test.cells)}
    seen = [
        Observation(one, tuple(usual[cell] * (0.5 if cell[0][0] == 5 else 1) for cell in one.cells)) for one in some
    ]
    known = posterior(model, seen, baseline=usual)
    assert [model.places[at].part.name for at in known.sets()[0][0]] == ["n5 -> leaf 1"]


def test_one_wild_cell_is_set_aside(tree):
    _, model = tree
    base = [np.exp(effects.base) for effects in model.effects[:2]]
    base[0][3] *= 0.5  # seen once; the same messages' links are fast in the other test
    known = posterior(model, [Observation(model.library[at], tuple(rates)) for at, rates in enumerate(base)])
    assert known.healthy > 0.5
    assert [ratio for _, _, ratio in known.strays] == pytest.approx([0.5], rel=0.05)


# ---- files


OSU = "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1048576 95.0\n4194304 {rate}\n"
NCCL = """# nThread 1 nGpus 1 minBytes 4194304 maxBytes 4194304
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     4194304       1048576     float    none      -1  42000.0    0.10    0.10      0  42000.0    0.10    0.10      0
"""


def test_logs_of_pairs_name_the_slow_host(tree, tmp_path):
    name, _ = tree
    for a, b, rate in ((0, 4, 99), (1, 5, 99), (2, 6, 25), (3, 7, 99)):
        (tmp_path / f"r1.n{a}+n{b}.log").write_text(OSU.format(rate=rate))
    for a, b, rate in ((2, 3, 25), (6, 7, 99)):
        (tmp_path / f"r2.n{a}+n{b}.log").write_text(OSU.format(rate=rate))
    out = tmp_path / "faulty.toml"
    logs = map(str, sorted(tmp_path.glob("*.log")))
    said = invoke("locate", "--on", name, "--results", *logs, "--sure", "30%", "--out", str(out)).out
    assert "n2 - leaf 0 at 25% of its rate" in said
    assert "n2 -> leaf 0 at 25% of its rate" in said  # only one way was measured
    rates = [row for row in machines.load(str(out)).numbers() if row["key"].endswith("slower_1.bandwidth")]
    assert float(rates[0]["value"]) == pytest.approx(25, rel=0.1)


def test_sendrecv_of_nccl_tests_is_a_ring(tree, tmp_path):
    path = tmp_path / "n1+n2.log"
    path.write_text("# Collective test starting: sendrecv_perf\n" + NCCL)
    layout = tree[1].layout
    (seen,) = results.read([path], layout, layout.hosts).seen
    assert seen.test.cells == (((1, 2), (2, 1)),)
    assert seen.rates[0] == pytest.approx(99.9e6, rel=0.01)


ROW = '{"kind":"linkwright locate","machine":"lab","ranks":16,"test":"t","cells":[%s],"bytes_per_s":[1]}\n'


@pytest.fixture
def lines(tree, tmp_path):
    """A file of two tests."""
    _, model = tree
    path = tmp_path / "r.jsonl"
    seen = [Observation(model.library[at], tuple(np.exp(model.effects[at].base))) for at in (0, 3)]
    path.write_text("".join(results.line("lab", 16, one, 1000) for one in seen))
    return path


def test_lines_are_read_as_they_were_written(tree, lines):
    layout = tree[1].layout
    found = results.read([lines], layout, layout.hosts)
    assert [one.test for one in found.seen] == [tree[1].library[at] for at in (0, 3)]
    assert found.remarks == ()


def test_a_cut_line_is_named_and_left_out(tree, lines):
    layout = tree[1].layout
    lines.write_text(lines.read_text()[:-40])
    found = results.read([lines], layout, layout.hosts)
    assert len(found.seen) == 1
    assert "cut off" in found.remarks[0]


def test_logs_of_some_hosts_only_say_nothing_about_the_others(tree, tmp_path):
    _, model = tree
    for round_, a, b in ((1, 0, 1), (2, 0, 4), (3, 1, 4)):
        (tmp_path / f"r{round_}.n{a}+n{b}.log").write_text(OSU.format(rate=99))
    found = results.read(sorted(tmp_path.glob("*.log")), model.layout, model.layout.hosts)
    assert sorted(cell for one in found.seen for cell in one.test.cells) == [((0, 1),), ((0, 4),), ((1, 4),)]
    ours = FaultModel(model.layout, model.library, [one.test for one in found.seen])
    known = posterior(ours, found.seen)
    assert known.untested.max() > 0.9  # such as the port of n9
    assert verdict(known, found.seen, 0.3).word == "open"


def test_a_vanished_host_leaves_the_other_rates(tree, lines):
    rows = [json.loads(row) for row in lines.read_text().splitlines()]
    rows[0]["bytes_per_s"][0] = None
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    layout = tree[1].layout
    found = results.read([lines], layout, layout.hosts)
    assert math.isnan(found.seen[0].rates[0])
    assert posterior(tree[1], found.seen).healthy > 0.5


def test_contradicting_results_are_named(tree):
    _, model = tree
    rates = np.exp(model.effects[0].base)
    other = rates.copy()
    other[2] *= 0.4
    seen = [Observation(model.library[0], tuple(one), name) for one, name in ((rates, "monday"), (other, "tuesday"))]
    (said,) = results.contradictions(seen, lambda rank: f"n{rank}", NOISE)
    assert "monday" in said
    assert "tuesday" in said


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("r.jsonl", '{"kind":"linkwright locate","machine":"other","ranks":16}\n', "results of other with 16 ranks"),
        ("r.jsonl", "x\n", "not a line of results"),
        ("r.jsonl", ROW % "[[0,99]]", "ranks 0 to 15"),
        ("n0+n99.log", OSU.format(rate=1), "n99 is none of lab"),
        ("n0+n0.log", OSU.format(rate=1), "names a rank twice"),
        ("0@n0+3@n1.log", OSU.format(rate=1), "a host has ranks 0 to 0"),
        ("mine.log", OSU.format(rate=1), "named by its hosts"),
        ("n0+n1+n2.log", OSU.format(rate=1), "was run on 2 ranks"),
        ("n0+n1.log", "nothing\n", "holds no table"),
    ],
)  # fmt: skip
def test_what_is_refused(tree, tmp_path, file, text, said):
    layout = tree[1].layout
    (tmp_path / file).write_text(text)
    with pytest.raises(FileError, match=said):
        results.read([tmp_path / file], layout, layout.hosts)


@pytest.mark.parametrize("seed", range(150))
def test_mutants_of_results_give_an_answer_or_one_message(tree, tmp_path, seed):
    said = judge_mutant(tree[1], tmp_path / "m.jsonl", seed)
    assert "m.jsonl" in said
    assert len(said) < 1000


def judge_mutant(model, path, seed):
    rng = random.Random(seed)
    small = rounds.Test("t", model.library[0].cells[:4])
    good = results.line("lab", 16, Observation(small, (1e6, 2e6, 3e6, 4e6)), 1000)
    if rng.random() < 0.5:
        changed = mutants.tree(rng, json.loads(good))
        path.write_text(json.dumps(changed) + "\n")
    else:
        path.write_text(mutants.text(rng, good * 3), encoding="utf-8", errors="replace")
    try:
        found = results.read([path], model.layout, model.layout.hosts)
    except LinkwrightError as error:
        return str(error)
    assert all(math.isnan(rate) or rate > 0 for one in found.seen for rate in one.rates)
    return path.name


# ---- the verb


def test_first_tests_and_commands_are_printed():
    said = invoke("locate", "--on", "hgx-h100", "--nodes", "4", "--as", "nccl-tests", "--hosts", "node[1-4]").out
    assert "32 ranks" in said
    assert "expected 48.50 GB/s each" in said
    assert "CUDA_VISIBLE_DEVICES=7 sendrecv_perf" in said
    assert "node1+node" in said


def test_one_node_of_gpus_is_one_host(tmp_path):
    said = invoke("locate", "--on", "hgx-h100", "--as", "nccl-tests", "--hosts", "n1").out
    assert "1 host, 8 ranks" in said
    assert "mpirun -np 2 --host n1:2 -x CUDA_VISIBLE_DEVICES=0,1 sendrecv_perf" in said
    assert "--map-by ppr:8:node" in invoke("locate", "--on", "hgx-h100").out
    assert "18 hosts, 72 ranks" in invoke("locate", "--on", "gb200-nvl72").out  # an operating system for each tray
    assert "1 host, 8 ranks" in invoke("locate", "--on", "gaudi3").out
    (tmp_path / "t.2@n1+3@n1.log").write_text(OSU.format(rate=48000))
    found = invoke("locate", "--on", "hgx-h100", "--hosts", "n1", "--results", str(tmp_path / "t.2@n1+3@n1.log"))
    assert "hgx-h100: 1 test, 1 rate," in found.out, found.err


def test_hosts_are_stated_and_multiply_in_a_cluster(tmp_path):
    rack = machines.load("gb200-nvl72").text
    assert machines.load("gb200-nvl72", Variant(2)).hosts == 36
    assert machines.load("torus-2d").hosts is None
    # The level of this name is not what tells hosts apart.
    (tmp_path / "r.toml").write_text(rack.replace('name = "tray"', 'name = "drawer"'))
    assert HostLayout(machines.load(str(tmp_path / "r.toml"))).hosts[:2] == ["drawer 0", "drawer 1"]
    (tmp_path / "r.toml").write_text(rack.replace("hosts = 18", "hosts = 7"))
    with pytest.raises(LinkwrightError, match="72 ranks cannot share 7 hosts equally; correct one side"):
        machines.load(str(tmp_path / "r.toml"))


@pytest.mark.parametrize("form", ["slurm", "nccl-tests"])
def test_commands_that_name_hosts_need_their_names(form):
    """`srun -w node 0` would run on a host called `node`."""
    said = invoke("locate", "--on", "hgx-h100", "--nodes", "2", "--as", form)
    assert said.status == 2
    assert "give --hosts" in said.err


def test_nodes_that_a_file_describes_are_hosts(tmp_path):
    level = '[[level]]\nname = "{}"\ncount = {}\nsource = "by definition"\n'
    one = Path("examples/eight_gpus.toml").read_text()
    assert level.format("GPU", 8) in one
    (tmp_path / "two.toml").write_text(
        one.replace(level.format("GPU", 8), level.format("node", 2) + level.format("GPU", 4))
    )
    said = invoke("locate", "--on", str(tmp_path / "two.toml")).out
    assert said.startswith("eight-gpus: 2 hosts, 8 ranks")
    assert "--map-by ppr:4:node" in said


def test_a_rate_above_the_wire_is_impossible_and_says_nothing(tree, tmp_path):
    """Ports carry 100 MB/s: with 3 % of noise, more than 115 is impossible. A second rate is still used."""
    name, model = tree
    (flow, _), rate = (0, 9), 1.16e8
    pair = rounds.Test("t", (((flow, 9),), ((1, 10),)))
    for rates, healthy in (((rate, 9.6e7), True), ((rate, float("nan")), False)):
        seen = Observation(pair, rates)
        (tmp_path / "r.jsonl").write_text(results.line("lab", 16, seen, 1000))
        found = invoke("locate", "--on", name, "--results", str(tmp_path / "r.jsonl"))
        assert "impossible: " in found.out
        assert "n0 to n9 at 0.116 GB/s, and its links carry 0.1 GB/s; set aside" in found.out
        assert ("nothing was slow" in found.out) == healthy
        assert ("open      no rate is possible" in found.out) != healthy
        assert f"missing   {len(model.places)} of {len(model.places)} places" in found.out
    assert results.possible(model, [Observation(pair, (1.14e8, 9.6e7))], NOISE).above == 0


def test_most_rates_above_the_wire_accuse_the_description(tree):
    _, model = tree
    test = model.library[0]
    seen = [Observation(test, tuple(1.5 * np.exp(model.effects[0].base)))]
    checked = results.possible(model, seen, NOISE)
    (said,) = checked.words(str)
    assert (checked.seen, checked.impossible) == (tuple(seen), ())
    assert "correct the machine file" in said


def test_a_machine_without_links_is_refused():
    with pytest.raises(UsageError, match="describes no links"):
        HostLayout(machines.load("loggp").with_endpoints(4))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "--results", "x"), "--run measures by itself"),
        (("--log", "x.jsonl"), "are of --run"),
        (("--out", "x.toml"), "writes the machine with what was found"),
        (("--hosts", "a,b"), "2 names"),
    ],
)
def test_options_that_make_no_sense(tree, words, said):
    done = invoke("locate", "--on", tree[0], *words)
    assert done.status == 2
    assert said in done.err


def test_parts_are_parts_of_the_machine(tree):
    name, model = tree
    for place in model.places:
        names = dict.fromkeys(place.part.degrade, 0.5)
        assert machines.load(name, Variant.of(None, None, (), names)).ranks == 16


def test_a_test_that_was_run_is_known_in_any_order(tree):
    _, model = tree
    chooser = RoundChooser(model)
    first = chooser.first(1)[0].test
    turned = rounds.Test("log", first.cells[::-1])
    seen = Observation(turned, tuple(np.exp(model.of(turned).base)))
    assert chooser.next(posterior(model, [seen]), [turned]).test != first


# ---- a map without a machine


def mapped(rates):
    return pair_map.judged([f"n{at}" for at in range(len(rates))], rates)


def flat(count=6, rate=10e6):
    rates = np.full((count, count), rate) * np.random.default_rng(0).lognormal(0, 0.01, (count, count))
    np.fill_diagonal(rates, np.nan)
    return rates


def test_a_map_of_equals_has_nothing_to_say():
    found = mapped(flat())
    assert found.coverage == 1
    assert found.groups == (tuple(range(6)),)
    assert "alike" in found.findings[0]


def test_a_map_names_a_host_and_its_direction():
    rates = flat()
    rates[:, 3] *= 0.25
    (said,) = mapped(rates).findings
    assert "n3 receives at 25% from everybody" in said
    rates[3] *= 0.25
    (said,) = mapped(rates).findings
    assert "n3 sends at 25% and receives at 25%" in said


def test_a_map_names_one_path():
    rates = flat()
    rates[1, 4] *= 0.3
    (said,) = mapped(rates).findings
    assert said == "n1 -> n4 alone is slow, at 30%: one path"


def test_a_map_finds_groups_behind_uplinks():
    rates = flat(8)
    rates[:4, 4:] *= 0.5
    rates[4:, :4] *= 0.5
    found = mapped(rates)
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    (said,) = found.findings
    assert "n0 to n3 (4) and n4 to n7 (4) reach each other at 50%" in said
    assert "2.0:1" in said


def test_a_map_with_gaps_says_its_coverage():
    rates = flat()
    rates[0, 1] = rates[2, 5] = np.nan
    assert mapped(rates).coverage == pytest.approx(28 / 30)


def test_messages_alone_tell_uplinks_from_slow_paths():
    rates, alone = flat(8), flat(8)
    rates[:4, 4:] *= 0.5
    rates[4:, :4] *= 0.5
    (said,) = pair_map.judged([f"n{at}" for at in range(8)], rates, alone).findings
    assert "at 50% under load and at 100% alone: the links between them, 2.0:1" in said


def test_what_is_slow_under_load_only_is_no_slow_path():
    rates, alone = flat(), flat()
    rates[0, 2] *= 0.4  # shares a link
    rates[1, 4] *= 0.3
    alone[1, 4] *= 0.3  # slow itself
    path, load = pair_map.judged([f"n{at}" for at in range(6)], rates, alone).findings
    assert path == "n1 -> n4 alone is slow, at 30%: one path"
    assert load == "1 of 30 messages are slow under load only, at 40%: they share links with others"


def test_a_message_whose_acknowledgements_queue_is_contended(tmp_path):
    model = modelled(written(tmp_path, "ring", 8), "one")
    # 0 -> 2 goes over 1; its acknowledgements cross 1 -> 0, which 1 -> 7 fills; 3 -> 5 has its links to itself.
    test = rounds.Test("t", (((0, 2),), ((1, 7),), ((3, 5),)))
    contended = FaultModel(model.layout, [], [test]).of(test).base_shared
    assert contended.tolist() == [True, True, False]


@pytest.mark.parametrize(("shape", "hosts", "count"), [("ring", 8, 2), ("ring", 7, 3), ("star", 8, None)])
def test_where_no_switch_joins_ranks_neighbours_meet(tmp_path, shape, hosts, count):
    layout = HostLayout(machines.load(written(tmp_path, shape, hosts)))
    tests = rounds.library(layout, "each")
    near = [test for test in tests if test.name.startswith("next")]
    if count is None:
        assert near == []
    else:
        assert len(near) == len(tests) == count  # the links of an even ring are two matchings, of an odd one three
        assert sorted(flow for test in tests for flow in test.flows if flow[0] < flow[1]) == sorted(
            (min(a, b), max(a, b)) for a, b in ((at, (at + 1) % hosts) for at in range(hosts))
        )


def test_a_ring_has_quiet_tests_for_every_link(tmp_path):
    model = modelled(written(tmp_path, "ring", 8), "one")
    quiet = [link for test, effects in zip(model.library, model.effects, strict=True)
             for cell, shared in zip(test.cells, effects.base_shared, strict=True) if not shared
             for link in model.routes.link[model._uses(cell[0])].tolist()]  # fmt: skip
    assert len(set(quiet)) == 16  # eight links, both ways


def test_repeats_of_a_contended_cell_count_once(tmp_path):
    model = modelled(written(tmp_path, "ring", 8), "one")
    across = rounds.Test("across", tuple(((at, (at + 3) % 8),) for at in range(8)))  # three messages on every link
    model = FaultModel(model.layout, model.library, [across])
    assert model.of(across).base_shared.all()
    seen = Observation(across, tuple(0.75 * np.exp(model.of(across).base)))
    once, often = (posterior(model, [seen] * count).healthy for count in (1, 5))
    assert often == pytest.approx(once)


# ---- the same tests again and again


def watched(model, alarms_a_day, interval_s=300):
    test = model.library[0]
    return test, watch.RateWatch(model, [test], NOISE, interval_s, alarms_a_day)


def test_false_alarms_are_at_most_the_stated_ones(tree):
    # 16 rates, 288 rounds a day: 100 days with 0.5 a day are 50 alarms at most.
    test, state = watched(tree[1], 0.5)
    draw = np.random.default_rng(3)
    alarms = sum(
        len(state.add(Observation(test, tuple(1e8 * np.exp(NOISE * draw.standard_normal(len(test.cells)))))))
        for _ in range(28_800)
    )
    assert alarms <= 50


def test_a_limit_by_hand():
    # d = 2.5 - 2 / sqrt(6); the mean run of one message at the limit is cells * rounds / alarms = 1000.
    d = 2.5 - 2 / math.sqrt(6)
    b = watch.limit(10, 100, 1) + 1.166
    assert (math.exp(2 * d * b) - 1 - 2 * d * b) / (2 * d**2) == pytest.approx(1000)


def test_a_drop_is_named_in_the_third_round_and_then_expected(tree):
    test, state = watched(tree[1], 0.1)
    usual = np.full(len(test.cells), 1e8)
    for _ in range(watch.LEARNT):
        assert state.add(Observation(test, tuple(usual))) == []
    wild = usual.copy()
    wild[5] = 1e7
    assert state.add(Observation(test, tuple(wild))) == []  # one wild rate is no change
    for _ in range(20):
        assert state.add(Observation(test, tuple(usual))) == []
    slow = usual.copy()
    slow[3] = 5e7
    found = [state.add(Observation(test, tuple(slow))) for _ in range(10)]
    assert [len(changes) for changes in found] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    (change,) = found[2]
    assert (change.cell, change.before, change.now) == (test.cells[3], pytest.approx(1e8), pytest.approx(5e7))
    assert state.expected(test)[3] == pytest.approx(5e7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "--rounds", "2"), "are of --watch"),
        (("--watch", "5m"), "--watch repeats tests of a described machine in this job; add --run"),
        (
            ("--run", "--watch", "5m", "--budget", "3m"),
            "--watch learns its own first rounds, until it is stopped; omit --budget",
        ),
        (("--sure", "1.5"), "`1.5` is not a share above 0 and below 100 %; write `1.5%`, with its sign"),
        (("--sure", "150"), "`150` is not a share above 0 and below 100 %; write one such as `95%`"),
        (("--run", "--watch", "5m", "--textfile", "x.txt"), "end in .prom"),
    ],
)
def test_options_of_watch_that_make_no_sense(tree, words, said):
    done = invoke("locate", "--on", tree[0], *words)
    assert done.status == 2
    assert said in done.err


# ---- faults that come and go


def repeated(model, slow, share=0.4, number=0):
    """Results of the same test, in some of which host 5 sends more slowly."""
    base = np.exp(model.effects[number].base)
    cells = model.library[number].cells
    return [
        Observation(
            model.library[number],
            tuple(
                float(rate) * (share if there and cell[0][0] == 5 else 1)
                for cell, rate in zip(cells, base, strict=True)
            ),
            f"test {at}",
        )
        for at, there in enumerate(slow)
    ]


def test_a_fault_that_comes_and_goes_is_found_and_named_so(tree):
    _, model = tree
    seen = repeated(model, [1, 0, 1, 0, 0, 1, 0, 1]) + repeated(model, [0, 1, 1, 0], number=1)
    known = posterior(model, seen)
    (which, chance), *_ = known.sets()
    assert [model.places[at].part.name for at in which] == ["n5 -> leaf 1"]
    assert chance > 0.8
    assert known.share(which)[0] == pytest.approx(0.4, rel=0.1)
    assert known.passing(which) > 0.95
    assert known.active == tuple(map(bool, [1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0]))
    assert known.strays == ()  # each test is explained: with the fault, or without it


def test_a_fault_that_stays_is_not_intermittent(tree):
    _, model = tree
    seen = repeated(model, [1, 1, 1]) + repeated(model, [1, 1], number=1)
    known = posterior(model, seen)
    assert known.passing(known.sets()[0][0]) < 0.2
    assert all(known.active)


def test_a_fault_that_went_is_found_only_when_it_has_come_back(tree):
    _, model = tree
    seen = repeated(model, [1, 1, 1, 0, 0])
    known = posterior(model, seen)
    assert known.passing(known.sets()[0][0]) > 0.5
    assert known.waits(known.sets()[0][0]) == 2
    assert verdict(known, seen, 0.5).word == "open"
    (which, *_) = known.sets()[0]
    test = RoundChooser(model).next(known, [one.test for one in seen]).test
    effects = model.of(test)
    assert len(effects.cell[effects.of(which[0])])  # the next test would show it again
    seen += repeated(model, [1])
    known = posterior(model, seen)
    assert known.waits(known.sets()[0][0]) is None
    assert verdict(known, seen, 0.5).word == "found"


def test_one_slow_test_of_many_is_no_fault(tree):
    _, model = tree
    known = posterior(model, repeated(model, [0, 0, 0, 1, 0, 0]))
    assert known.sets()[0][0] == ()
    assert [source for source, _, _ in known.strays] == ["test 3"]


def test_the_verb_says_that_a_fault_comes_and_goes(tree, tmp_path):
    name, _ = tree
    model = modelled(name, "one")
    path = tmp_path / "r.jsonl"
    first, other = [at for at, test in enumerate(model.library) if any(cell[0][0] == 5 for cell in test.cells)][:2]
    seen = repeated(model, [1, 0, 1, 0, 1, 0, 1], number=first) + repeated(model, [0, 1, 0, 1], number=other)
    path.write_text("".join(results.line("lab", 16, one, 1000) for one in seen))
    said = invoke("locate", "--on", name, "--results", str(path)).out
    assert "comes and goes" in said
    assert "slow in 6 of 11 tests of it" in said
    assert "the same test: both count; a fault may come and go" in said


# ---- a job, with a stand-in for its ranks


@pytest.fixture
def job(monkeypatch, tree):
    """Search a job; a function of a message and of how many tests were repeated gives shares of the healthy rates."""
    name, _ = tree

    def started(rate):
        asked = cli_locate.LocateTask(name, Variant(), None, NOISE, 0.95, "mpirun")
        ran = []

        def measured(asked, world, test, log):
            ran.append(test)
            repeats = len(ran) - len(set(ran))
            rates = zip(test.cells, np.exp(asked.model.of(test).base).tolist(), strict=True)
            return Observation(
                test, tuple(healthy * rate(cell[0], repeats) for cell, healthy in rates), f"turn {len(ran)}"
            )

        monkeypatch.setattr(locate_job, "job", lambda _: nullcontext("ranks"))
        monkeypatch.setattr(locate_job, "measured", measured)
        locate_job.search(asked, (), None, 60.0, None, False)
        return ran

    return started


def test_what_is_named_was_slow_again_when_its_tests_were_repeated(job, capsys):
    ran = job(lambda flow, repeats: 0.3 if 5 in flow else 1.0)
    assert "found     n5" in capsys.readouterr().out
    named = next(at for at, test in enumerate(ran) if test in ran[:at])  # then tests are repeated
    slow = {test for test in ran[:named] if any(5 in cell[0] for cell in test.cells)}
    assert slow
    assert all(ran.count(test) == 2 for test in slow)


def test_a_host_that_was_busy_for_a_while_is_not_found(job, capsys):
    ran = job(lambda flow, repeats: 0.3 if 5 in flow and not repeats else 1.0)
    said = capsys.readouterr().out
    assert "\nfound" not in said
    assert "the same test: both count; a fault may come and go" in said
    assert "it was not slow again in" in said
    assert len(ran) < 30


@pytest.mark.parametrize(
    ("option", "file"), [("--results", "a.log"), ("--results", "a.jsonl"), ("--baseline", "a.jsonl")]
)
def test_results_that_are_not_there_are_named(tmp_path, option, file):
    found = invoke("locate", "--on", "hgx-h100", "--nodes", "2", option, str(tmp_path / file))
    assert found.status == 2
    assert f"{file}: no such file; give the results of tests" in found.err


@pytest.mark.parametrize("name", ["a+b", "2@a", "a/b", "a;rm", "-x", "$(a)"])
def test_a_name_that_commands_and_logs_cannot_have_is_refused(name):
    found = invoke("locate", "--on", "hgx-h100", "--nodes", "2", "--hosts", f"{name},c")
    assert found.status == 2
    assert f"--hosts: `{name}`: commands and names of logs hold the names of hosts" in " ".join(found.err.split())
