"""Serving of large language models: bytes and times by hand, published figures, layouts, refusals, the verb."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from linkwright import machines
from linkwright.advise.predict import llm
from linkwright.advise.predict.llm import compute, errors, serving
from linkwright.base.errors import UsageError
from linkwright.base.units import NS_PER_US
from linkwright.cli.main import status_of
from linkwright.machines import Variant
from linkwright_cases import invoke
from test_llm import GB, P, model, parsed

L = serving.ServingLoad


def served(name, layout, load, *, on="hgx-h100", nodes=1, gpus=8, capacity=None, chip=None, efficiency=None, first=0):
    machine = machines.load(on, Variant(nodes) if nodes > 1 else Variant())
    found = model(name) if isinstance(name, str) else name
    rates = chip or compute.chip(machine, layout.precision, efficiency)
    return serving.forecast_serving(
        found, layout, load, rates, llm.GroupExchanges(machine, range(first, first + gpus)), machine=machine.name,
        ranks=gpus, capacity=capacity,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "published"), [("deepseek-v3", 70_272), ("llama3-405b", 516_096), ("llama3-70b", 327_680)]
)
def test_keys_and_values_of_a_token_are_those_published(name, published):
    """Zhao et al.: Insights into DeepSeek-V3, 2025, table 1; its 72B model has the layers and heads of the 70B."""
    found = model(name)
    held = [serving.held(found, P().on(1), L(1, context, 1), "bf16").cache for context in (4096, 8192)]
    assert held[1] - held[0] == 4096 * published


def test_weights_of_a_gpu():
    """Mixtral on 8: without --ep each expert's matrices are split by tp; with it a GPU has whole experts."""
    found, load = model("mixtral-8x7b"), L(8, 4096, 4096)
    split = serving.held(found, P(tp=8).on(8), load, "bf16")
    whole = serving.held(found, P(ep=8).on(8), load, "bf16")
    experts = 32 * 8 * 3 * 4096 * 14336
    dense = found.parameters - experts - 4096  # the last norm is not counted
    assert split.weights == pytest.approx(2 * (experts + dense) / 8, rel=1e-6)
    assert whole.weights == pytest.approx(2 * (experts / 8 + dense), rel=1e-6)
    halved = serving.held(found, P(tp=8, precision="fp8").on(8), load, "fp8").weights
    ends = 2 * 32000 * 4096 * 2 / 8  # embedding and output stay in bf16
    assert halved == pytest.approx((split.weights - ends) / 2 + ends, rel=1e-6)


def test_keys_are_copied_where_there_are_fewer_heads_than_gpus():
    """Two sequences on 16 GPUs: with dp 2 a copy has one of them; with tp 16 it has both, and eight heads."""
    found = model("llama3-70b")
    tp8, tp16 = (serving.held(found, P(tp=tp).on(16), L(2, 8192, 8192), "bf16") for tp in (8, 16))
    assert tp16.cache == 2 * tp8.cache


def test_one_gpu_by_hand():
    """Llama 3 8B, one sequence of 8,192: all weights but the embedding, and the keys, over 0.75 of the memory's rate.

    Besides: norms, residuals and positions of a token, 20 h + 4 (q + kv) + 6 f bytes a layer, and 9 starts of 1 us.
    """
    found = model("llama3-8b")
    made = served(found, P(), L(1, 8192, 8192), gpus=1)
    matrices = found.parameters - found.embedding - 32 * 2 * 4096 - 4096
    moved = 2 * matrices + 8192 * 32 * 2 * 8 * 128 * 2 + 32 * (20 * 4096 + 4 * (4096 + 2048) + 6 * 14336)
    rate = 3 * 1117 * GB
    assert made.token.parts["memory"] == pytest.approx(moved / (0.75 * rate) * 1e9, rel=1e-9)
    assert made.token.parts["kernel starts"] == 32 * 9 * NS_PER_US
    assert made.token.parts["arithmetic"] == made.token.parts["communication"] == 0
    assert made.token.low_ns == pytest.approx(moved / (0.9 * rate) * 1e9, rel=1e-9)
    assert made.token.high_ns == pytest.approx(moved / (0.6 * rate) * 1e9 + 32 * 9 * 3000, rel=1e-9)


def test_a_long_prompt_is_arithmetic():
    """2 operations a parameter and token, and attention's over half of the prompt, at the given share of the peak."""
    found = model("llama3-8b")
    made = served(found, P(), L(1, 8192, 8192), gpus=1, efficiency=0.5)
    products = 8192 * (found.parameters - found.embedding - 128256 * 4096 - 32 * 2 * 4096 - 4096) * 2
    attention = 8192 * 32 * 2 * 4096 * 256 * 32
    assert made.first.parts["arithmetic"] == pytest.approx((products + attention) / (989.4e12 * 0.5) * 1e9, rel=1e-6)


LLAMA2 = """[app]\nformat = 1\nkind = "transformer"\nname = "llama2"\n[model]\nvocabulary = 32000\nsequence = 4096
"""
LLAMA2_7B = LLAMA2 + "layers = 32\nhidden = 4096\nheads = 32\nffn = 11008\n"
LLAMA2_70B = LLAMA2 + "layers = 80\nhidden = 8192\nheads = 64\nkv_heads = 8\nffn = 28672\n"


@pytest.mark.parametrize(
    ("text", "on", "memory", "gpus", "tokens_per_s"),
    [
        (LLAMA2_7B, "dgx-a100", 2039, 1, 104.9), (LLAMA2_7B, "dgx-a100", 2039, 8, 328.43),
        (LLAMA2_70B, "dgx-a100", 2039, 2, 21.32), (LLAMA2_70B, "dgx-a100", 2039, 4, 38.01),
        (LLAMA2_70B, "dgx-a100", 2039, 8, 62.50), (LLAMA2_7B, "mi250x-frontier", 1600, 1, 76.33),
    ],
)  # fmt: skip
def test_published_decoding_is_in_the_range(text, on, memory, gpus, tokens_per_s):
    """README of gpt-fast: batch 1 in bf16, 8 A100 of 80 GB (2,039 GB/s), limited to 330 W; one die of an MI250X.

    Its eight GPUs are a mesh; switches stand for it here.
    """
    chip = replace(compute.chip(machines.load(on), "bf16"), memory_bytes_per_s=memory * GB)
    made = served(parsed(text), P(tp=gpus), L(1, 256, 8), on=on, gpus=gpus, chip=chip)
    assert made.token.low_ns <= 1e9 / tokens_per_s <= made.token.high_ns


def test_the_largest_batch_fits_and_the_next_does_not():
    layout = P(tp=4)
    largest = served("llama3-70b", layout, L(), capacity=80 * GB).largest_batch
    assert served("llama3-70b", layout, L(largest), capacity=80 * GB).fits
    assert served("llama3-70b", layout, L(largest + 2), capacity=80 * GB).fits is False


def test_fewer_sequences_than_stages_take_as_long_and_leave_stages_idle():
    """A token passes all stages however many others do, so 1 of 8 sequences gives an eighth of the tokens."""
    few, full = (served("llama3-70b", P(pp=8), L(batch), capacity=80 * GB) for batch in (1, 8))
    assert (few.idle_stages, full.idle_stages) == (7, 0)
    assert few.token.time_ns == full.token.time_ns
    rates = [one.tokens_per_s_per_gpu["usual"] for one in (few, full)]
    assert 8 * rates[0] == pytest.approx(rates[1])
    said = invoke("predict", "llm", "llama3-70b", "--on", "hgx-h100", "--serve", "--pp", "8", "--batch", "1").out
    assert "7 of 8 stages are idle at any time: a copy has 1 sequence" in said


def test_cures_are_not_what_was_given():
    asked = ("predict", "llm", "llama3-405b", "--on", "hgx-h100", "--serve")
    said = {more: " ".join(invoke(*asked, *more).out.split()) for more in ((), ("--precision", "fp8"))}
    assert ["use --precision fp8" in text for text in said.values()] == [True, False]
    said = " ".join(invoke(*asked, "--tp", "8", "--precision", "fp8", "--batch", "4096", "--cache", "fp8").out.split())
    assert "or a shorter --context" in said
    assert "or --cache" not in said


def test_experts_that_are_read():
    """One token of Mixtral reads 2 of 8 experts; many read all: on a GPU 8 / ep of them, or all, split by tp."""
    found, machine = model("mixtral-8x7b"), machines.load("hgx-h100")
    chip = compute.chip(machine, "bf16")

    def read(layout, rows):
        return serving._Pass(
            found, layout.on(8), L(8, 1, 1), chip, llm.GroupExchanges(machine, range(8))
        )._experts_read(rows)

    assert read(P(), 1) == pytest.approx(2)
    assert read(P(tp=8), 1) == pytest.approx(2 / 8)
    assert read(P(ep=8), 1000) == pytest.approx(1)
    assert read(P(ep=4), 1) == pytest.approx(2 * (1 - 0.75**4))


def test_exchanges_of_experts_take_their_multiple_of_the_library():
    """A dispatch in 8 bits and a combine in 16, of 4 tokens to 8 experts each, in each of 58 layers; 1.09 times."""
    machine = machines.load("gb200-nvl72")
    layout = P(ep=8, precision="fp8")
    made = served("deepseek-v3", layout, L(32, 4096, 4096), on="gb200-nvl72")
    alone = llm.GroupExchanges(machine, range(8))
    times = [alone.collective("alltoall", [tuple(range(8))], 4 * 8 * 7168 * width).time_ns for width in (1, 2)]
    assert made.token.parts["communication"] == pytest.approx(
        58 * sum(times) * errors.spread("experts", "one_node").usual
    )


def test_times_grow_with_what_is_asked_and_fall_with_bandwidth():
    """Over random layouts: never faster with more sequences, a longer context, or slower ports."""
    drawn = random.Random(7)
    for _ in range(30):
        name = drawn.choice(["llama3-8b", "llama3-70b", "mixtral-8x7b", "qwen3-30b"])
        tp = drawn.choice([1, 2, 4, 8, 16] if name == "llama3-70b" else [1, 2, 4, 8])
        layout = P(tp=tp, pp=drawn.choice([1, 2]) if tp < 16 else 1)
        if name in ("mixtral-8x7b", "qwen3-30b"):
            layout = replace(layout, ep=drawn.choice([1, 4, 8]))
        unit = 16 // tp
        base = L(unit * drawn.choice([1, 2, 8]), drawn.choice([512, 2048]), 256, drawn.choice(["bf16", "fp8"]))
        ports = [f"ndr-fat-tree,rate={rate}" for rate in (400, 100)]
        made = []
        for fabric, load in (
            (ports[0], base),
            (ports[0], replace(base, batch=4 * base.batch)),
            (ports[0], replace(base, context=2 * base.context)),
            (ports[1], base),
        ):
            machine = machines.load("hgx-h100", Variant(2, fabric))
            one = serving.forecast_serving(
                model(name), layout, load, compute.chip(machine, "bf16"), llm.GroupExchanges(machine, range(16)),
                machine="m", ranks=16, capacity=None,
            )  # fmt: skip
            assert one.token.low_ns < one.token.time_ns < one.token.high_ns
            made.append(one)
        least, *others = made
        assert all(least.token.time_ns <= one.token.time_ns * (1 + 1e-9) for one in others), (name, layout, base)
        assert least.first.time_ns <= others[-1].first.time_ns * (1 + 1e-9)


@pytest.mark.parametrize(
    ("layout", "load", "words"),
    [
        (P(tp=8), L(1, 200_000), "at most 131,072"),
        (P(tp=8), L(1, 4096, 8192), "use at most 4,096"),
        (P(tp=2), L(6), "dp 4 x pp 1 = 4; use 8"),
        (P(tp=2, pp=2), L(5), "dp 2 x pp 2 = 4; use 4"),
        (P(tp=2, pp=2), L(3), "dp 2, the copies; use 4"),
        (P(tp=8, ep=8), L(8), "omit --ep"),
        (P(tp=6), L(8), "use 4"),
    ],
)
def test_what_cannot_be_served_is_one_message(layout, load, words):
    with pytest.raises(UsageError, match=words):
        served("llama3-70b", layout, load)


WORDS = ["predict", "llm", "llama3-70b", "--on", "hgx-h100", "--serve", "--tp", "8"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--zero", "3"], "--zero is about training"),
        (["--search"], "--search is about training"),
        (["--prefill-nodes", "1"], "give --nodes 2 or more"),
        (["--nodes", "2", "--prefill-nodes", "2"], "use at most 1"),
        (["--context", "8m"], "`8m` is not a number of tokens; write one such as `8192`, `128K` or `1M`"),
        (["--context", "1M"], "--context 1,048,576: llama3-70b is stated for at most 131,072 tokens; use that"),
        (["--tp", "1", "--pp", "4", "--batch", "3"], "--batch 3 is not a multiple of dp 2, the copies; use 4"),
    ],
)
def test_the_verb_refuses_what_is_not_about_serving(capsys, more, words):
    usual = WORDS[: WORDS.index("--tp")] if "--tp" in more else WORDS
    assert status_of([*usual, *more]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_machine_without_a_rate_of_memory_is_refused(capsys):
    assert status_of(["predict", "llm", "llama3-8b", "--on", "gaudi3", "--serve"]) == 2
    assert "states no rate of the memory" in " ".join(capsys.readouterr().err.split())


def test_options_of_serving_need_serve(capsys):
    assert status_of(["predict", "llm", "llama3-70b", "--on", "hgx-h100", "--prompt", "2K"]) == 2
    assert "add --serve" in capsys.readouterr().err
    assert status_of(["predict", "llm", "llama3-8b", "--on", "hgx-h100", "--fsdp", "--price", "2"]) == 2
    assert "give its --tokens, or --serve" in " ".join(capsys.readouterr().err.split())


def test_the_verb_serves(capsys):
    asked = ["--batch", "64", "--context", "8K", "--prompt", "2K", "--watts", "700", "--price", "2"]
    assert status_of([*WORDS, *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["fits"], found["serving"]["context"], found["serving"]["prompt"]) == (True, 8192, 2048)
    rates, token = found["tokens_per_s_per_gpu"], found["output_token"]
    assert rates["low"] < rates["usual"] < rates["high"]
    # A request takes its prompt and, with 63 others, 6,144 tokens.
    each_ns = found["first_token"]["time_ns"] + 6144 * token["time_ns"] / 64
    assert rates["usual"] == pytest.approx(6144 / 8 / each_ns * 1e9)
    assert found["cost"] == pytest.approx(2 * 1e6 / rates["usual"] / 3600)
    assert found["energy_kwh"] == pytest.approx(0.7 * 1e6 / rates["usual"] / 3600)
    assert status_of([*WORDS, *asked]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "the largest batch that fits is 1" in text
    assert "of the first token is arithmetic, whose kernels are not simulated" in text
    assert status_of([*WORDS, "--batch", "4096", "--compare", "tp=4"]) == 1
    assert "DOES NOT FIT" in capsys.readouterr().out


def test_keys_travel_from_prefill_to_decode_nodes(capsys):
    """2,048 tokens x 80 layers x 4 KiB, over tp 8, through a port of 50 GB/s at most; the range starts at one layer."""
    asked = ["--batch", "8", "--context", "8K", "--prompt", "2K", "--nodes", "2", "--json"]
    assert status_of([*WORDS, *asked, "--prefill-nodes", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    sent = found["first_token"]["parts_ns"]["keys and values"]
    size = 2048 * 80 * 4096 / 8
    assert size / 50 <= sent <= 2 * size / 50
    assert found["gpus"] == 8
    first = found["first_token"]
    assert first["high_ns"] > first["time_ns"] > first["low_ns"]


@pytest.mark.parametrize(("context", "prompt", "binds"), [("8K", "2K", "output"), ("8K", "8100", "prompts")])
def test_the_slower_of_prompts_and_output_binds(context, prompt, binds, capsys):
    """One copy on each node: prompts one after the other, output of 64 requests at once; all 16 GPUs count."""
    asked = ["--batch", "64", "--context", context, "--prompt", prompt, "--nodes", "2", "--prefill-nodes", "1"]
    assert status_of([*WORDS, *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = found["first_token"]["parts_ns"]
    sent = parts.pop("keys and values")
    prompts = 1e9 / max(sum(parts.values()), sent)
    output = 64e9 / (found["requests"]["outputs"] * found["output_token"]["time_ns"])
    assert found["requests"]["binds"] == binds
    assert found["requests"]["per_s"]["usual"] == pytest.approx(min(prompts, output))
    assert found["requests"]["prompt_share"] == pytest.approx(min(1, output / prompts))
    assert found["tokens_per_s_per_gpu"]["usual"] == pytest.approx(
        found["requests"]["per_s"]["usual"] * found["requests"]["outputs"] / 16
    )
    assert status_of([*WORDS, *asked]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert ("prompts bind: output alone could take" in text) == (binds == "prompts")


def test_prompts_are_not_counted_where_no_token_follows(capsys):
    assert status_of([*WORDS, "--batch", "8", "--context", "2K"]) == 0
    assert "prompts not counted: no token follows them" in " ".join(capsys.readouterr().out.split())


def test_prefill_nodes_are_nodes_also_where_ranks_are_placed(capsys):
    names = [f"node {node} GPU {gpu}" for node, gpus in ((1, 8), (0, 4)) for gpu in range(gpus)]
    asked = ["llama3-8b", "--on", "hgx-h100", "--serve", "--tp", "4", "--nodes", "2", "--prefill-nodes", "1"]
    words = ["predict", "llm", *asked, "--place"]
    assert status_of([*words, ",".join(names), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["prefill_gpus"], found["gpus"]) == (4, 8)
    assert status_of([*words, ",".join(names[:8])]) == 2
    assert "--place leaves no rank on these nodes" in capsys.readouterr().err


def test_a_gpu_without_bf16_computes_in_half(capsys):
    words = ["predict", "llm", "llama3-8b", "--on", "v100", "--serve", "--tp", "8"]
    assert status_of(words) == 2
    assert "no peak is known for bf16; use --precision half" in capsys.readouterr().err
    assert status_of([*words, "--precision", "half", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["peak_flops_per_s"] == 125e12  # the data sheet's, on tensor cores


def test_ranges_are_ordered_and_have_a_source():
    for keys in (("step", "dense"), ("step", "experts"), ("step", "experts_in_a_rack"), ("experts", "one_node"),
                 ("experts", "several_nodes"), ("memory",), ("products",), ("start_us",)):  # fmt: skip
        found = errors.spread(*keys)
        assert found.low < found.usual < found.high
        assert found.source
        assert found.status in ("derived", "assumed")
        assert (found.rows > 0) == (found.status == "derived")
    assert errors.of_allreduce(1 << 18, True).usual < errors.of_allreduce(1 << 19, True).usual < 1
    assert errors.of_allreduce(1 << 30, True).usual == 1
    assert errors.of_allreduce(1 << 10, False).status == "assumed"


@pytest.mark.parametrize(
    "words", [("llama3-8b", "--context", "64"), ("llama3-70b", "--context", "8K", "--prompt", "2K")]
)
def test_the_largest_batch_is_the_last_that_fits(words):
    """Logits and activations grow with the batch, so that the room after the weights is not all for keys and values."""
    asked = ("predict", "llm", *words, "--on", "hgx-h100", "--serve", "--tp", "8", "--json")
    most = json.loads(invoke(*asked, "--batch", "1").out)["largest_batch"]
    fits, over = (json.loads(invoke(*asked, "--batch", str(batch)).out) for batch in (most, most + 1))
    assert (fits["fits"], over["fits"]) == (True, False)
    assert fits["output_token"]["time_ns"] > 0


def test_more_nodes_for_prompts_receive_no_faster(capsys):
    """Ports at a hundredth of their rate bind: each prompt enters the one node that answers through the same ports."""
    rates = []
    for nodes in (2, 4):
        words = ["predict", "llm", "llama3-70b", "--on", "hgx-h100", "--nodes", str(nodes), "--serve", "--tp", "8"]
        words += ["--batch", "32", "--prompt", "8000", "--prefill-nodes", str(nodes - 1), "--degrade", "port=0.01"]
        assert status_of([*words, "--json"]) == 0
        rates.append(json.loads(capsys.readouterr().out)["requests"]["per_s"])
    assert rates[0] == rates[1]
