"""Training of large language models: parameters, memory, layouts, groups that share links, steps by hand."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import pytest

from linkwright import _native, machines
from linkwright.advise import predict
from linkwright.advise.predict import llm
from linkwright.advise.predict.llm import compute, errors, search, together
from linkwright.advise.predict.llm.memory import activation_bytes, memory, share
from linkwright.advise.predict.llm.step import step
from linkwright.advise.predict.llm.together import WireExchanges
from linkwright.ask.answer import How, ask
from linkwright.base.errors import FileError, UsageError
from linkwright.cli.main import status_of
from linkwright.machines import Variant

GB = 10**9
P = llm.ParallelLayout


# Puts and local sums; notices; gets; messages to oneself.
SIDE_BY_SIDE = ("allreduce/ring", "allreduce/recursive_doubling_latency", "broadcast/binomial", "alltoall/linear")


def model(name: str) -> llm.Transformer:
    found = predict.read(predict.find(name))
    return llm.read(found.document, found.head)


def gpt(layers: int, hidden: int, heads: int, sequence: int = 2048, vocabulary: int = 51200) -> llm.Transformer:
    """A GPT, as its papers describe it."""
    text = f"""[app]\nformat = 1\nkind = "transformer"\nname = "gpt"\n[model]\nlayers = {layers}\nhidden = {hidden}
heads = {heads}\nffn = {4 * hidden}\nvocabulary = {vocabulary}\nsequence = {sequence}\ngated = false\ntied = true
positions = {sequence}\n"""
    return parsed(text)


def parsed(text: str) -> llm.Transformer:
    found = predict.parse(text, "mine.toml")
    return llm.read(found.document, found.head)


@pytest.mark.parametrize(
    ("name", "published", "active"),
    [
        ("llama3-8b", 8_030_261_248, None),  # config.json and safetensors of the publisher
        ("llama3-70b", 70_553_706_496, None),
        ("llama3-405b", 405_853_388_800, None),
        ("mixtral-8x7b", 46_702_792_704, 12.9e9),
        ("deepseek-v3", 671e9, 37e9),
        ("qwen3-235b", 235e9, 22e9),
        ("qwen3-30b", 30.5e9, 3.3e9),
        ("gpt-oss-120b", 116.8e9, None),  # the card counts 5.1 B active without the embedding
        ("gpt3-175b", 174.6e9, None),
    ],
)
def test_parameters_are_those_published(name, published, active):
    found = model(name)
    assert found.parameters == pytest.approx(published, rel=0.002)
    if active:
        assert found.active == pytest.approx(active, rel=0.02)


def test_activations_are_those_of_korthikanti():
    """s b h (10 + 24 / t) without and 34 s b h / t with sequence parallelism; 2 s b h with full recomputation."""
    found = gpt(96, 12288, 96)
    sbh = 2048 * 3 * 12288
    asked = P(tp=8, microbatch=3, sequence=2048)
    assert activation_bytes(found, replace(asked, sequence_parallel=False), "dense") == sbh * (10 + 24 / 8)
    assert activation_bytes(found, asked, "dense") == sbh * 34 / 8
    assert activation_bytes(found, replace(asked, tp=1, recompute="full"), "dense") == 2 * sbh


def test_state_is_shared_as_zero_says():
    """Llama 3 8B on 64 copies: 2, 4 and 12 B a parameter; ZeRO 1, 2, 3 share the last, the last two, and all."""
    found, count = model("llama3-8b"), model("llama3-8b").parameters - 4096  # the last norm is not counted
    for zero, shared in ((0, ()), (1, (12,)), (2, (4, 12)), (3, (2, 4, 12))):
        held = memory(found, P(zero=zero, batch=64).checked(found, 64))
        for size, name in ((2, "parameters"), (4, "gradients"), (12, "optimizer")):
            assert getattr(held, name) == pytest.approx(size * count / (64 if size in shared else 1), rel=1e-6)


def test_experts_are_shared_by_ep_alone():
    """Mixtral: 32 layers of 8 experts of 3 x 4096 x 14336."""
    found = share(model("mixtral-8x7b"), P(tp=2, ep=4).on(8))
    assert found.experts == 32 * 8 * 3 * 4096 * 14336 // 4


# Whether a published run fits: (model, GPUs, layout, GB of a GPU, fits, source).
V100, A100, H100 = 32, 80, 80
ZERO = "Rajbhandari et al.: ZeRO, 2020"
KORTHIKANTI = "Korthikanti et al., 2022, table 3: sequence parallelism and selective recomputation"
LLAMA = "The Llama 3 Herd of Models, 2024, table 4; no recomputation at 8K"
FACTS = [
    (gpt(48, 1600, 25, 1024), 1, P(zero=0), V100, False, f"{ZERO}: GPT-2 1.5B cannot be trained on 32 GB"),
    (gpt(78, 2816, 32, 1024), 64, P(zero=0, recompute="full"), V100, False, f"{ZERO}, figure 1: 7.5B, 120 GB"),
    (gpt(78, 2816, 32, 1024), 64, P(zero=3, recompute="full"), V100, True, f"{ZERO}, figure 1: 1.9 GB of state"),
    (gpt(40, 1536, 16, 1024), 1, P(zero=0, recompute="full"), V100, True, "Shoeybi, 2019: 1.2B, one V100"),
    (gpt(72, 3072, 32, 1024), 1, P(zero=0, recompute="full"), V100, False, "Shoeybi, 2019: 8.3B needs 8"),
    (gpt(72, 3072, 32, 1024), 8, P(tp=8, zero=0, recompute="full"), V100, True, "Shoeybi, 2019: 8.3B on 8"),
    (gpt(48, 6144, 64), 8, P(tp=8, zero=0, microbatch=4, batch=4), A100, True, f"{KORTHIKANTI}: 22B"),
    (gpt(96, 12288, 96), 64, P(tp=8, pp=8, vpp=3, zero=0, batch=64), A100, True, f"{KORTHIKANTI}: 175B"),
    (gpt(105, 20480, 128), 280, P(tp=8, pp=35, vpp=3, zero=0, batch=280), A100, True, f"{KORTHIKANTI}: 530B"),
    (gpt(128, 25600, 160), 512, P(tp=8, pp=64, zero=0, batch=512), A100, True, f"{KORTHIKANTI}: 1T"),
    (gpt(96, 12288, 96), 8, P(tp=8, zero=0, recompute="full"), A100, False, "Narayanan, 2021: 175B on 8"),
    (gpt(70, 14336, 112), 384, P(tp=4, pp=12, microbatch=2, batch=2048, recompute="full"), A100, True,
     "Le Scao et al.: BLOOM, 2022: 176B on 384 A100 of 80 GB, ZeRO 1"),
    (model("llama3-405b"), 8192, P(tp=8, pp=16, zero=2, batch=2048), H100, True, LLAMA),
    (model("llama3-405b"), 16384, P(tp=8, pp=16, zero=2, batch=2048), H100, True, LLAMA),
    (model("llama3-405b"), 8, P(tp=8, batch=1), H100, False, LLAMA),
]  # fmt: skip


@pytest.mark.parametrize(("found", "gpus", "layout", "room", "fits", "source"), FACTS, ids=[fact[-1] for fact in FACTS])
def test_published_runs_fit_or_do_not(found, gpus, layout, room, fits, source):
    held = memory(found, layout.checked(found, gpus))
    assert (held.total <= room * GB) == fits, (source, held.total / GB, held)


def test_operations_of_a_token():
    """Llama 3 8B at 8,192: 6 x (parameters - embedding - norms) + 3 x 32 layers x 2 x 4096 x (128 + 128) x 32."""
    found = model("llama3-8b")
    products = 6 * (found.parameters - found.embedding)
    assert found.step_flops(8192) == products + 3 * 32 * 2 * 4096 * 256 * 32


def test_ranks_of_groups():
    asked = P(tp=2, cp=2, pp=2, ep=4).on(32)
    assert asked.dp == 4
    assert asked.groups("tp")[:2] == [(0, 1), (2, 3)]
    assert asked.groups("cp")[:2] == [(0, 2), (1, 3)]
    assert asked.groups("dp")[:1] == [(0, 2, 4, 6, 8, 10, 12, 14)]
    assert asked.groups("ep", 1)[:1] == [(16, 17, 18, 19)]
    assert asked.groups("edp")[:1] == [(0, 4, 8, 12)]


@pytest.mark.parametrize(
    ("name", "layout", "gpus", "words"),
    [
        ("llama3-70b", P(tp=7), 64, "use 8"),
        ("llama3-70b", P(tp=8, pp=3), 64, "use 48 GPUs"),
        ("llama3-70b", P(tp=8, dp=3), 64, "omit --dp, which is then 8"),
        ("llama3-70b", P(tp=8, batch=10), 64, "use 8"),
        ("llama3-70b", P(tp=8, pp=4, vpp=99), 64, "--vpp 20"),
        ("llama3-70b", P(vpp=2, tp=8), 64, "omit --vpp"),
        ("llama3-70b", P(tp=8, pp=4, vpp=2, batch=6), 64, "use --batch 8"),
        ("mixtral-8x7b", P(ep=3), 8, "use 2"),
        ("mixtral-8x7b", P(ep=8, pp=2), 8, "use 4"),
        ("llama3-8b", P(ep=8), 8, "omit --ep"),
        ("llama3-8b", P(cp=3), 24, "does not divide the 8,192 tokens"),
    ],
)
def test_what_does_not_divide_is_one_message(name, layout, gpus, words):
    machine = machines.load("hgx-h100", Variant(-(-gpus // 8)) if gpus > 8 else Variant())
    with pytest.raises(UsageError, match=words):
        llm.forecast_model(model(name), layout, machine, range(gpus), compute.chip(machine, "bf16"))


def test_groups_side_by_side_are_as_fast_as_one_unless_they_meet():
    """Four ports of a leaf, two trunks: four pairs across leaves take twice as long as one, on other leaves as long."""
    machine = machines.load("hgx-h100", Variant(8, "ndr-fat-tree,taper=2,nodes_per_leaf=4"))
    exchanges = together.GroupExchanges(machine, range(64))
    size = 64 << 20
    alone = exchanges.collective("allgather", [(0, 32)], size)
    four = exchanges.collective("allgather", [(0, 32), (8, 40), (16, 48), (24, 56)], size)
    rails = exchanges.collective("allgather", [(i, 32 + i) for i in range(4)], size)
    assert rails.time_ns == alone.time_ns
    assert four.beside == 4
    assert four.time_ns == pytest.approx(2 * alone.time_ns, rel=0.1)


def test_groups_whose_plans_have_notices_are_simulated_side_by_side():
    """GPU i of 8 nodes reduces with its peers by PAT, whose ranks notify each other; groups share links of leaves."""
    machine = machines.load("a100-perlmutter", Variant(8))
    exchanges = together.GroupExchanges(machine, range(32))
    groups = [tuple(range(first, 32, 4)) for first in range(4)]
    found = exchanges.collective("reduce_scatter", groups, 1 << 20)
    assert found.choice.startswith("PAT")
    assert found.beside == 4
    assert found.time_ns == exchanges.collective("reduce_scatter", groups[:1], 1 << 20).time_ns  # the links bear all


@pytest.mark.parametrize("keys", list(itertools.combinations_with_replacement(SIDE_BY_SIDE, 2)))
def test_groups_on_hardware_of_their_own_take_as_long_as_the_slowest(keys):
    """Nodes 0 and 1 have a group each, and one of four ranks on nodes 2 to 5 has puts, notices and local sums, too."""
    machine = machines.load("hgx-h100", Variant(6))
    schedules = [_native.Schedule.build(key, 4, 1 << 16) for key in [*keys, "allreduce/recursive_doubling_latency"]]
    places = [[0, 1, 2, 3], [8, 9, 10, 11], [16, 24, 32, 40]]
    alone = [ask(machine, one, How(placement=at)).ranks.finish_ps for one, at in zip(schedules, places, strict=True)]
    joined = schedules[0].side_by_side(schedules[1:])
    assert joined.verify()["messages"] == sum(one.messages for one in schedules)
    together = ask(machine, joined, How(placement=list(itertools.chain(*places)))).ranks.finish_ps
    assert list(together) == [time for times in alone for time in times]


def test_one_gpu_computes_by_hand():
    """No group: microbatches x (layers + output), and Adam's 30 B a parameter over 0.7 of the memory's rate."""
    found = model("llama3-8b")
    machine = machines.load("hgx-h100")
    chip = compute.chip(machine, "bf16", 0.5)
    made = llm.forecast_model(found, P(batch=4, zero=0), machine, [0], chip, anyway=True)
    asked = made.layout
    one = compute.layer(found, asked, chip, "dense")
    assert made.step.groups == []
    expected = 4 * (32 * (one.forward_ns + one.backward_ns) + compute.output_ns(found, asked, chip))
    expected += 30 * (found.parameters - 4096) / (3 * 1117 * GB * 0.7) * 1e9  # a sum is two reads and a write
    assert made.step.time_ns == pytest.approx(expected, rel=1e-9)


def drawn(count: int) -> list[tuple[str, llm.ParallelLayout]]:
    """Random layouts of 16 GPUs, whose messages a GPU can hold."""
    found, chosen = [], random.Random(11)
    while len(found) < count:
        name = chosen.choice(["llama3-8b", "llama3-70b", "mixtral-8x7b", "qwen3-30b"])
        degrees = {key: chosen.choice([1, 1, 2, 4, 8]) for key in ("tp", "cp", "pp")}
        flags = {key: chosen.random() < 0.5 for key in ("overlap_dp", "overlap_tp", "overlap_ep", "sequence_parallel")}
        ep = chosen.choice([1, 2, 4, 8, 16]) if name in ("mixtral-8x7b", "qwen3-30b") else 1
        layout = P(**degrees, **flags, ep=ep, zero=chosen.choice([0, 1, 3]), batch=64)
        try:
            held = memory(model(name), layout.checked(model(name), 16))
        except UsageError:
            continue
        if held.gradients < H100 * GB / 2:
            found.append((name, layout))
    return found


def test_more_bandwidth_never_slows_a_step():
    """Forty random layouts, on ports of 100, 200 and 400 Gb/s."""
    known = []
    for rate in (100, 200, 400):
        machine = machines.load("hgx-h100", Variant(2, f"ndr-fat-tree,rate={rate}"))
        known.append((machine, llm.GroupExchanges(machine, range(16)), compute.chip(machine, "bf16")))
    for name, layout in drawn(40):
        times = [
            llm.forecast_model(
                model(name), layout, machine, range(16), chip, exchanges=exchanges, anyway=True
            ).step.time_ns
            for machine, exchanges, chip in known
        ]
        assert times == sorted(times, reverse=True), (name, layout)


@pytest.mark.parametrize(
    ("name", "nodes", "layout"),
    [
        ("llama3-8b", 2, P(tp=8)), ("llama3-8b", 2, P(tp=2, zero=3)), ("llama3-8b", 2, P(tp=16)),
        ("llama3-8b", 2, P(tp=4, cp=2, sequence_parallel=False)), ("mixtral-8x7b", 2, P(ep=8)),
        ("qwen3-30b", 2, P(ep=16)),
    ],
)  # fmt: skip
def test_no_simulated_step_beats_what_the_wires_allow(name, nodes, layout):
    machine = machines.load("hgx-h100", Variant(nodes))
    places, chip = range(machine.ranks), compute.chip(machine, "bf16")
    checked = layout.checked(model(name), machine.ranks)
    bound = step(model(name), checked, chip, WireExchanges(machine, places))
    made = step(model(name), checked, chip, llm.GroupExchanges(machine, places))
    free = sum(group.busy_ns for group in bound.groups)
    assert 0 < free < sum(group.busy_ns for group in made.groups)
    assert bound.time_ns <= made.time_ns


def test_a_search_finds_what_trying_all_layouts_finds():
    machine, trained = machines.load("hgx-h100", Variant(2)), model("llama3-8b")
    places, chip = range(16), compute.chip(machine, "bf16")
    known = llm.GroupExchanges(machine, places)

    def forecast(layout):
        return llm.forecast_model(trained, layout, machine, places, chip, exchanges=known)

    given = {"batch": 64}
    room = {"ranks": 16, "per_node": 8, "capacity": H100 * GB}
    found, unseen = search.fastest_layouts(
        trained, given, chip, WireExchanges(machine, places), forecast, **room, tie=0.1
    )
    everything = [forecast(layout).step.time_ns for layout in search._fitting(trained, given, *room.values())]
    times = [one.step.time_ns for one in found]
    assert (times[0], unseen) == (min(everything), 0)
    near = sorted(time for time in everything if time <= times[0] * 1.1)
    assert times[: len(near)] == near


def test_the_verb_searches_and_refuses_what_it_cannot(capsys):
    words = ["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--search"]
    assert status_of(words) == 2
    assert "give --batch" in capsys.readouterr().err
    assert status_of([*words, "--batch", "64", "--compare", "tp=8"]) == 2
    assert "omit one of them" in capsys.readouterr().err
    assert status_of([*words, "--batch", "64", "--dp", "8"]) == 2
    capsys.readouterr()
    assert status_of(["predict", "llm", "llama3-405b", "--on", "hgx-h100", "--search", "--batch", "8"]) == 1
    assert "no layout of llama3-405b fits on 8 GPUs: the least that one needs is 923.0 GB of 80" in (
        capsys.readouterr().err
    )
    assert status_of([*words, "--batch", "64", "--tp", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["not_simulated"] == 0
    rates = [one["tokens_per_s_per_gpu"] for one in answer["forecasts"]]
    assert rates == sorted(rates, reverse=True)
    assert {one["layout"]["tp"] for one in answer["forecasts"]} == {2}


def test_a_search_answers_for_each_machine(capsys):
    words = ["predict", "llm", "llama3-8b", "--on", "b200,hgx-h100", "--batch", "64", "--search"]
    assert status_of(words) == 0
    text = capsys.readouterr().out
    assert text.count("FITS: ") == 2  # the fastest layout of b200, and that of hgx-h100, which is far from a tie
    assert "\nhgx-h100 " in text.partition("fastest first")[2]


def test_a_search_names_machines_without_a_layout(capsys):
    words = ["predict", "llm", "llama3-70b", "--on", "hgx-h100,b200", "--batch", "64", "--search"]
    assert status_of(words) == 0
    assert "no layout of llama3-70b fits on 8 GPUs: the least that one needs is" in capsys.readouterr().out
    assert status_of([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {one["machine"] for one in answer["forecasts"]} == {"b200"}
    assert len(answer["no_layout"]) == 1


def test_a_search_names_machines_without_a_peak(capsys):
    words = [
        "predict",
        "llm",
        "llama3-8b",
        "--on",
        "dgx-a100,hgx-h100",
        "--batch",
        "16",
        "--search",
        "--precision",
        "fp8",
    ]
    assert status_of(words) == 0
    assert "dgx-a100: no peak is known for fp8; use --precision bf16 or half" in capsys.readouterr().out
    alone = ["predict", "llm", "llama3-70b", "--on", "dgx-a100,hgx-h100", *words[5:]]
    assert status_of(alone) == 1
    told = capsys.readouterr()
    assert not told.out  # which is a document with --json
    assert "dgx-a100: no peak" in told.err
    assert "hgx-h100: no layout" in told.err


def test_the_verb_prints_json_and_its_status(capsys):
    words = ["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--fsdp", "--batch", "64", "--tokens", "15T", "--json"]
    assert status_of(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is True
    assert found["tokens_per_s_per_gpu"] * found["step_ns"] * 8 == pytest.approx(64 * 8192 * 1e9)
    assert found["training_s"] == pytest.approx(15e12 / (8 * found["tokens_per_s_per_gpu"]))
    assert {group["group"] for group in found["groups"]} == {"dp"}


def test_a_step_has_the_range_of_published_runs(capsys):
    """Published throughput is `low` to `high` times the predicted one; wider where the share is assumed."""
    for name, on, key in (
        ("llama3-8b", "hgx-h100", "dense"),
        ("qwen3-30b", "hgx-h100", "experts"),
        ("qwen3-30b", "gb200-nvl72", "experts_in_a_rack"),
    ):
        words = ["predict", "llm", name, "--on", on, "--fsdp", "--batch", "144", "--nodes", "2"]
        assert status_of([*words, "--json"]) == 0
        found, spread = json.loads(capsys.readouterr().out), errors.spread("step", key)
        assert found["range"]["source"] == spread.source
        assert found["low_ns"] == pytest.approx(found["step_ns"] / spread.high)
        assert found["high_ns"] == pytest.approx(found["step_ns"] / spread.low)
    assert status_of(["predict", "llm", "llama3-8b", "--on", "mi300x", "--fsdp", "--batch", "64"]) == 0
    assert "wider here, as the share of the peak is assumed" in " ".join(capsys.readouterr().out.split())


def test_the_answer_says_what_stands_for_the_rest(capsys):
    """Four nodes of a stage each: two are simulated; of 32 pairs those of one node; a single stage has no such line."""
    words = ["predict", "llm", "llama3-70b", "--on", "hgx-h100", "--nodes", "4", "--tp", "8", "--pp", "4", "--json"]
    assert status_of([*words, "--batch", "16"]) == 0
    assert json.loads(capsys.readouterr().out)["sampled"] == ["2 of 4 pipeline stages were simulated"]
    machine = machines.load("hgx-h100", Variant(8))
    pairs = [(rank, 32 + rank) for rank in range(32)]
    found = together.GroupExchanges(machine, range(64)).messages(pairs, 1 << 20)
    assert (found.groups, found.looked) == (32, 8)
    assert status_of(["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--fsdp", "--batch", "64"]) == 0
    assert "simulated in part" not in capsys.readouterr().out


def test_energy_and_price_of_a_training(capsys):
    words = ["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--fsdp", "--batch", "64", "--tokens", "15T"]
    assert status_of([*words, "--watts", "700", "--price", "2.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    hours = 8 * found["training_s"] / 3600
    assert found["energy_kwh"] == pytest.approx(0.7 * hours)
    assert found["cost"] == pytest.approx(2.5 * hours)
    assert found["low_s"] < found["training_s"] < found["high_s"]


@pytest.mark.parametrize(
    ("kind", "size"), [("allgather", 1 << 30), ("reduce_scatter", 64 << 20), ("allreduce", 1 << 30)]
)
def test_the_first_steps_of_a_ring_stand_for_all(kind, size, monkeypatch):
    """Within two percent on nodes of eight."""
    machine, group = machines.load("hgx-h100", Variant(8)), [tuple(range(64))]
    whole = together.GroupExchanges(machine, range(64)).collective(kind, group, size)
    monkeypatch.setattr(together, "MOST_OPERATIONS", 0)
    part = together.GroupExchanges(machine, range(64)).collective(kind, group, size)
    assert "steps" not in whole.choice
    assert f"16 of {126 if kind == 'allreduce' else 63} steps" in part.choice
    assert part.time_ns == pytest.approx(whole.time_ns, rel=0.02)


def test_the_answer_says_that_rings_were_simulated_in_part(monkeypatch):
    monkeypatch.setattr(together, "MOST_OPERATIONS", 0)
    machine = machines.load("hgx-h100", Variant(8))
    chip = compute.chip(machine, "bf16")
    made = llm.forecast_model(model("llama3-8b"), P(zero=3, batch=64), machine, range(64), chip)
    assert made.sampled == ["dp groups were simulated by 16 of 63 steps"]


def test_the_verb_says_by_how_much_it_does_not_fit(capsys):
    assert status_of(["predict", "llm", "llama3-70b", "--on", "hgx-h100"]) == 1
    assert "or compute again (--recompute full)" in " ".join(capsys.readouterr().out.split())
    assert status_of(["predict", "llm", "llama3-405b", "--on", "hgx-h100", "--fsdp", "--recompute", "full"]) == 1
    found = " ".join(capsys.readouterr().out.split())
    assert found.endswith("the largest part is optimizer. To fit, divide the model further (--tp, --pp, --ep)")
    assert status_of(["predict", "llama3-70b", "--on", "hgx-h100"]) == 2
    assert "predict llm llama3-70b" in capsys.readouterr().err
    assert status_of(["predict", "llm", "resnet", "--on", "hgx-h100"]) == 2
    assert "without `llm`" in capsys.readouterr().err
    assert status_of(["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--compare", "tq=8"]) == 2
    assert "unknown degree `tq`" in capsys.readouterr().err
    assert status_of(["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--compare", "tp=4,tp=8"]) == 2
    assert "states tp twice" in capsys.readouterr().err
    assert status_of(["predict", "llm", "llama3-8b", "--on", "assumed-t4"]) == 2
    assert "those of another GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "tflops", "gb_per_s"),
    [("assumed-a40", 149.7, 696), ("assumed-h100-pcie", 756, 2000), ("gb200-nvl72", 2500, 8000), ("b200", 2250, 8000)],
)
def test_products_and_memory_are_those_of_the_card(name, tflops, gb_per_s):
    """Data sheets, dense; a card does not have the rates of the first GPU of its generation."""
    found = compute.chip(machines.load(name), "bf16")
    assert found.peak_flops_per_s == pytest.approx(tflops * 1e12)
    assert found.memory_bytes_per_s == pytest.approx(gb_per_s * GB, rel=1e-3)


def test_volta_has_no_bf16():
    with pytest.raises(UsageError, match="no peak is known for bf16; use --precision half"):
        compute.chip(machines.load("v100"), "bf16")
    assert compute.chip(machines.load("v100"), "half").peak_flops_per_s == pytest.approx(125e12)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("topk = 9\nexperts = 8", "topk 9"), ("kv_heads = 3", "kv_heads 3"), ("hiden = 1", "did you mean `hidden`"),
        ("dense_layers = 1", "without `experts`"), ("windowed_layers = 1", "without `window`"),
        ("window = 8", "without `windowed_layers`"), ("q_rank = 8", "`q_rank` without `kv_rank`"),
        ("rope_dim = 8", "`rope_dim` without `kv_rank`"), ("kv_rank = 8\nrope_dim = 17", "part of head_dim 16"),
        ("topk = 2", "without `experts`"), ("expert_ffn = 8", "without `experts`"),
    ],
)  # fmt: skip
def test_files_that_make_no_model_are_refused(line, words):
    text = f"""[app]\nformat = 1\nkind = "transformer"\nname = "mine"\n[model]\nlayers = 2\nhidden = 64\nheads = 4
ffn = 128\nvocabulary = 100\nsequence = 32\n{line}\n"""
    with pytest.raises((FileError, UsageError), match=words):
        parsed(text)
