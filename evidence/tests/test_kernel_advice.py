"""What to set for engines: kernels under settings, the error of the model, the choice of a setting, refusals."""

import itertools
import math
import re
from collections import defaultdict

import pytest

from linkwright.base.errors import LinkwrightError
from linkwright.formats.tuning.engines import ENGINES, EngineQuestion
from linkwright_evidence.kernels import advice, allreduce, condition, fit, settings
from linkwright_evidence.kernels.condition import Condition
from linkwright_evidence.kernels.predict import Kernels

K, M = 1 << 10, 1 << 20
OFF, CUSTOM, V1 = (
    "VLLM_ALLREDUCE_USE_SYMM_MEM=0",
    "--disable-custom-all-reduce",
    "SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2=0",
)
NVLS, TORCH = "--enable-nccl-nvls", "--enable-torch-symm-mem"


def reduced(table: str, system: str, gpus: int, size: int) -> Condition:
    backend = table.partition("/")[0]
    return Condition("framework_allreduce", system, gpus, 1, backend, "all_reduce", "graph", table, size_bytes=size)


@pytest.mark.parametrize(
    ("table", "system", "gpus", "size", "words", "kernel"),
    [
        # 8 MiB is the first size that vLLM's custom all-reduce leaves to others; on two GPUs it has one shot only.
        ("vllm/0.24.0", "h100_sxm", 8, 256 * K, "the default", "switch_one"),
        ("vllm/0.24.0", "h100_sxm", 8, 256 * K, OFF, "pull_two"),
        ("vllm/0.24.0", "h100_sxm", 8, 256 * K - 16, OFF, "pull_one"),
        ("vllm/0.24.0", "h100_sxm", 8, 8 * M - 16, OFF, "pull_two"),
        ("vllm/0.24.0", "h100_sxm", 8, 8 * M, OFF, "nccl"),
        ("vllm/0.24.0", "h100_sxm", 2, 8 * M - 16, OFF, "pull_one"),
        ("vllm/0.24.0", "h100_sxm", 8, 16, CUSTOM, "switch_one"),
        ("vllm/0.24.0", "b200_sxm", 8, 256 * M, CUSTOM, "nccl"),
        ("vllm/0.24.0", "h100_sxm", 8, 16, f"{OFF} {CUSTOM}", "nccl"),
        ("vllm/0.14.0", "l40s", 8, 16, OFF, "nccl"),
        # SGLang's server switches NVLS off unless it is told to use it.
        ("sglang/0.5.14", "h100_sxm", 8, 16 * M, "the default", "store_two"),
        ("sglang/0.5.14", "h100_sxm", 8, 32 * M, "the default", allreduce.RING),
        ("sglang/0.5.14", "h100_sxm", 8, 32 * M, NVLS, "nccl"),
        ("sglang/0.5.14", "h100_sxm", 8, 32 * M, TORCH, "switch_one"),
        ("sglang/0.5.14", "b200_sxm", 4, 32 * M, TORCH, "switch_two"),
        ("sglang/0.5.14", "b200_sxm", 4, 64 * M, TORCH, allreduce.RING),
        ("sglang/0.5.14", "h100_sxm", 8, 256 * K, V1, "pull_two"),
        ("sglang/0.5.14", "h100_sxm", 8, 256 * K, f"{CUSTOM} {TORCH}", "switch_one"),
        ("trtllm/1.3.0", "h100_sxm", 8, 512 * K, "the default", "nccl"),
        ("trtllm/1.3.0", "h100_sxm", 8, 512 * K, "allreduce_strategy: ONESHOT", "push_one"),
        ("trtllm/1.3.0", "h100_sxm", 8, 8 * M, "allreduce_strategy: ONESHOT", "nccl"),
        ("trtllm/1.3.0", "h100_sxm", 2, 8 * M, "allreduce_strategy: ONESHOT", "push_one"),
    ],
)
def test_a_setting_leads_to_its_kernel(table, system, gpus, size, words, kernel):
    one = reduced(table, system, gpus, size)
    (setting,) = [its for its in settings.of_engine(one) if its.words == words]
    assert setting.serves(one) == kernel


def test_a_setting_is_written_as_its_engine_reads_it():
    assert settings.Setting(allreduce.chosen, (V1, CUSTOM, NVLS)).lines == [
        f"export {V1}",
        f'ENGINE_FLAGS="{CUSTOM} {NVLS}"',
    ]
    assert settings.Setting(allreduce.chosen, ("allreduce_strategy: NCCL",)).lines == ["allreduce_strategy: NCCL"]
    assert settings.Setting(allreduce.chosen).lines == []


def test_one_shot_at_512_kib_by_hand():
    """Eight H100: start 1.345 + six further peers of 0.06766 flags of 1.488 us, a flag, and seven vectors of 524,288 B
    at 450,000 x 0.6582 B/us: 1.345 + 0.604 + 1.488 + 12.391 = 15.83 us. NCCL: 20.2 us, 1.28 times as long."""
    text = advice.text(EngineQuestion("trtllm", "", "hgx-h100", 1, 8, (512 * K,)))
    gained = "allreduce_strategy: ONESHOT: 1.28x (1.08x to 1.50x) at 512K; no size here is more than 2 % slower."
    assert "15.8" in text
    assert gained in text
    assert text.endswith("\nallreduce_strategy: ONESHOT\n")


def quantile(errors: list[float]) -> float:
    return math.exp(sorted(errors)[int(0.9 * len(errors))])


def test_the_error_is_that_of_published_ratios():
    """All-reduce: two published tables whose kernels differ, one condition. DeepEP: dispatch and combine together."""
    kernels = Kernels()
    reductions, exchanges = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for measured in condition.published():
        one = measured.condition
        if measured.suspect or fit.case(one) or one.op.endswith("notify"):
            continue
        log = math.log(kernels.time_us(one) / measured.time_us) if one.mode == "graph" else 0.0
        if one.mode == "graph":
            reductions[one.system, one.gpus, one.size_bytes].append((one, log))
        elif one.kind.startswith("deepep"):
            key = (one.nodes, one.system, one.gpus, one.tokens, one.hidden, one.topk, one.experts)
            exchanges[key][one.sms].append((measured.time_us, kernels.time_us(one)))
    found = defaultdict(list)
    for its in reductions.values():
        for (one, log), (other, of_other) in itertools.combinations(its, 2):
            if allreduce.chosen(one) != allreduce.chosen(other):
                found[one.on.generation].append(abs(log - of_other))
    for (nodes, *_), by_sms in exchanges.items():
        sums = {
            sms: math.log(sum(p for _, p in its) / sum(t for t, _ in its))
            for sms, its in by_sms.items()
            if len(its) == 2
        }
        for sms, other in itertools.combinations(sums, 2):
            if 0 in (sms, other) or advice.OWN_SMS in (sms, other):
                found["mode" if 0 in (sms, other) else "sms", nodes].append(abs(sums[sms] - sums[other]))
    errors = {key: quantile(its) for key, its in found.items()}
    for generation, error in advice.ERROR.items():
        assert errors[generation] == pytest.approx(error, abs=0.006)
    assert [errors["mode", nodes] for nodes in (1, 2)] == pytest.approx(advice.ERROR_MODE, abs=0.006)
    assert [errors["sms", nodes] for nodes in (1, 2)] == pytest.approx(advice.ERROR_SMS, abs=0.006)


def test_published_times_of_a_setting_are_within_its_range():
    """64 MiB on two H100: vLLM 0.24 has symmetric memory (306.7 us), SGLang 0.5.14 NCCL (248.0 us): 1.24 times."""
    times = {
        its.condition.table: its.time_us
        for its in condition.published()
        if (its.condition.system, its.condition.gpus, its.condition.size_bytes) == ("h100_sxm", 2, 64 * M)
        and its.condition.mode == "graph"
    }
    gain = times["vllm/0.24.0"] / times["sglang/0.5.14"]
    assert gain == pytest.approx(1.237, abs=0.001)
    text = advice.text(EngineQuestion("vllm", "", "hgx-h100", 1, 2, (64 * M,)))
    assert f"{OFF}: 1.42x (1.20x to 1.68x) at 64M" in text


def test_a_gain_over_nccl_without_nvls_is_stated_but_not_recommended():
    """64 MiB on eight H100: vLLM 0.14 has no NVLS (361.5 us), SGLang 0.5.14 has it (321.5 us): 1.12 times, where the
    model has 1.33 times, farther than the error."""
    times = {
        its.condition.table: its.time_us
        for its in condition.published()
        if (its.condition.system, its.condition.gpus, its.condition.size_bytes) == ("h100_sxm", 8, 64 * M)
        and its.condition.mode == "graph"
    }
    gain = times["vllm/0.14.0"] / times["sglang/0.5.14"]
    assert gain == pytest.approx(1.124, abs=0.001)
    lines = advice.text(EngineQuestion("sglang", "", "hgx-h100", 1, 8)).splitlines()
    (row,) = [line.split() for line in lines if line.split()[1] == "64M"]
    assert row[-3::2] == [NVLS, "1.33x"]
    assert 1.33 / gain > advice.ERROR["hopper"]
    assert lines[-2:] == [f"# {advice.UNSUPPORTED}", "# Leave the default: no setting gains more than the error."]
    assert f"predicted at 1.33x and published at {gain:.2f}x (64M, eight H100), which is farther" in advice.UNSUPPORTED


def recommended(*gains: dict[int, float], unsupported: tuple[tuple[int, int], ...] = ()) -> tuple[list[str], list[str]]:
    """The choice among a default that takes 100 us at two sizes, and settings with these gains."""
    able = [settings.Setting(allreduce.chosen, (f"A={at}",) * bool(at)) for at in range(len(gains) + 1)]
    times = {size: [100.0, *(100 / its[size] for its in gains)] for size in (1 * K, 1 * M)}
    return advice._recommended(able, times, unsupported, 1.2)


def test_a_setting_that_gains_and_loses_nowhere_is_written():
    said, lines = recommended({K: 1.5, M: 0.9}, {K: 1.0, M: 1.3}, {K: 0.99, M: 1.4})
    assert said == ["A=3: 1.40x (1.17x to 1.68x) at 1M; no size here is more than 2 % slower."]
    assert lines == ["export A=3"]


def test_a_gain_within_the_error_leaves_the_default():
    assert recommended({K: 1.19, M: 1.19}) == (["Leave the default: no setting gains more than the error."], [])


def test_a_gain_that_no_published_pair_supports_does_not_count():
    leave = "Leave the default: no setting gains more than the error."
    assert recommended({K: 1.0, M: 1.5}, unsupported=((M, 1),)) == ([advice.UNSUPPORTED, leave], [])
    said, lines = recommended({K: 1.3, M: 1.5}, unsupported=((M, 1),))
    assert said[1] == "A=1: 1.30x (1.08x to 1.56x) at 1K; no size here is more than 2 % slower."
    assert lines == ["export A=1"]


def test_nccl_without_nvls_is_supported_where_nccl_has_none():
    """NCCL has no NVLS on four GPUs, so the published times of NCCL count there; on eight B200 nothing does."""
    alone = "# At 4M, 8M alone, --disable-custom-all-reduce: up to 2.10x (1.75x to 2.52x)."
    assert alone in advice.text(EngineQuestion("sglang", "0.5.10", "b200", 1, 4)).splitlines()
    assert "alone, --disable-custom-all-reduce:" not in advice.text(EngineQuestion("sglang", "0.5.10", "b200", 1, 8))


def test_a_written_setting_may_be_slower_by_two_percent():
    assert recommended({K: 1.5, M: 0.985})[1] == ["export A=1"]
    assert recommended({K: 1.5, M: 0.975})[1] == []


def test_a_setting_that_loses_at_a_size_is_named_for_the_others():
    said, lines = recommended({K: 1.5, M: 0.9})
    assert said[1:] == ["At 1K alone, A=1: up to 1.50x (1.25x to 1.80x)."]
    assert lines == []


@pytest.mark.parametrize(
    ("times", "sms", "said"),
    [
        ([], 20, "The normal mode is not faster for any of them"),
        # As fast from 12 on: eight are free.
        ([{4: 300.0, 8: 150.0, 12: 101.0, 16: 100.0, 20: 100.0, 24: 100.0}], 12, "12 SMs: as fast as 20"),
        (
            [{4: 600.0, 8: 300.0, 12: 200.0, 16: 150.0, 20: 120.0, 24: 100.0}],
            24,
            "24 SMs: up to 1.20x (1.09x to 1.32x)",
        ),
        ([{4: 600.0, 8: 300.0, 12: 200.0, 16: 150.0, 20: 105.0, 24: 100.0}], 20, "Leave the 20 SMs of DeepEP"),
        # Two counts of tokens that no one number suits.
        (
            [
                {4: 100.0, 8: 105.0, 12: 110.0, 16: 115.0, 20: 120.0, 24: 125.0},
                {4: 600.0, 8: 300.0, 12: 200.0, 16: 150.0, 20: 120.0, 24: 100.0},
            ],
            20,
            "Leave the 20 SMs of DeepEP: no other number gains more than the error for all of them.",
        ),
    ],
)
def test_deepep_gets_the_fewest_multiprocessors_that_are_as_fast(times, sms, said):
    found, why = advice._multiprocessors(times, 1.1)
    assert (found, why.startswith(said)) == (sms, True)


def test_sglang_gets_a_configuration_of_deepep_on_one_node_alone():
    text = advice.text(EngineQuestion("deepep", "", "b200", 1))
    assert 'SGLang: --deepep-config \'{"normal_dispatch": {"num_sms": 24}, "normal_combine": {"num_sms": 24}}\'' in text
    assert text.endswith("\ndeep_ep.Buffer.set_num_sms(24)\n")
    assert "replaces sizes of chunks" in advice.text(EngineQuestion("deepep", "", "hgx-h100", 2))


def test_low_latency_has_no_time_above_its_limit():
    """Of the default batches only 4,096 tokens is too large for low latency; it gets normal mode, with its SMs."""
    lines = advice.text(EngineQuestion("deepep", "", "b200", 1)).splitlines()
    rows = {its[1]: its[2:] for its in map(str.split, lines) if its[1:] and its[1].isdigit()}
    assert rows["1024"] == ["330", "444", "399", "low", "latency"]
    assert rows["4096"] == ["1445", "1268", "normal"]
    assert "# Low latency takes at most 1024 tokens." in lines
    assert any("choose it by its tokens" in line for line in lines)


def test_low_latency_alone_sets_no_multiprocessors():
    text = advice.text(EngineQuestion("deepep", "", "b200", 1, tokens=(1, 256)))
    assert "vLLM: --all2all-backend deepep_low_latency. " in text
    assert "num_sms" not in text
    assert "takes at most" not in text


def test_modes_that_are_alike_for_all_tokens_are_said_to_be():
    text = advice.text(EngineQuestion("deepep", "", "hgx-h100", 1, tokens=(256,)))
    assert (
        "vLLM: --all2all-backend deepep_low_latency and deepep_high_throughput are as fast, within the error." in text
    )
    assert "choose it by its tokens" not in text
    assert "num_sms" not in text


def test_every_engine_has_what_the_advice_needs():
    assert advice.KNOWN.keys() == ENGINES.keys()
    assert [key for key, its in ENGINES.items() if its.exchanges] == ["deepep"]


def test_a_version_stands_for_all_that_begin_with_it():
    title = advice.text(EngineQuestion("vllm", "0.24", "hgx-h100", 1, 8, (K,))).splitlines()
    assert title[0].startswith("# vLLM 0.24.0 on")
    assert title[1].startswith("# size")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            EngineQuestion("vllm", "0.20.0", "hgx-h100", 1, 8, (K,)),
            "No time of 0.20.0 on such GPUs is published: answered by",
        ),
        (EngineQuestion("vllm", "0.5", "hgx-h100", 1, 8, (K,)), "by the rules of 0.14.0, the oldest known."),
        (EngineQuestion("sglang", "0.5.14", "dgx-a100", 1, 8, (K,)), "answered by the rules of 0.5.10."),
        (EngineQuestion("vllm", "", "b200", 1, 8, (K,)), "No time of 8 GPUs of b200 is published."),
        (
            EngineQuestion("trtllm", "", "l40s", 1, 8, (K,)),
            "TensorRT-LLM has no kernel of its own here, so nothing can be set.",
        ),
        (
            EngineQuestion("deepep", "1.2", "hgx-h100", 4, tokens=(4096,)),
            "No time of 32 GPUs of hgx-h100 is published.",
        ),
    ],
)
def test_what_was_answered_in_place_of_what_was_asked_is_said(asked, said):
    assert said in advice.text(asked)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            EngineQuestion("vllm", "", "mi300x", 1),
            "--on mi300x: no kernel of vllm is described there; name one of b200, ",
        ),
        (EngineQuestion("deepep", "", "dgx-a100", 1), "--on dgx-a100: no kernel of deepep is described there"),
        (EngineQuestion("vllm", "", "arc-b60", 1), "--on arc-b60: no kernel of vllm"),
        (EngineQuestion("vllm", "", "hgx-h100", 2), "serve one node, which has 8 GPUs of hgx-h100"),
        (EngineQuestion("sglang", "", "gb200-nvl72", 1, 8), "serve one node, which has 4 GPUs of gb200-nvl72"),
        (EngineQuestion("vllm", "", "hgx-h100", 1, 6), "known for 2, 4 and 8 GPUs, not 6"),
        (EngineQuestion("vllm", "new", "hgx-h100", 1), "--for vllm-new: `new` is not a version"),
        (EngineQuestion("vllm", "0.30", "hgx-h100", 1), "VLLM_ALLREDUCE_USE_FLASHINFER=0 and ask for vllm-0.24"),
        (EngineQuestion("deepep", "2.0", "hgx-h100", 1), "ask for deepep-1"),
        (EngineQuestion("deepep", "", "hgx-h100", 1, 6), "256 experts on 6 GPUs; every GPU must have as many"),
        (EngineQuestion("deepep", "", "hgx-h100", 3, 16), "16 GPUs on 3 nodes; every node must have as many"),
        (
            EngineQuestion("deepep", "", "hgx-h100", 1, topk=300),
            "300 experts of a token, but there are 256; lower topk",
        ),
    ],
)
def test_what_no_model_knows_is_refused_with_its_cure(asked, message):
    with pytest.raises(LinkwrightError, match=re.escape(message)):
        advice.text(asked)
