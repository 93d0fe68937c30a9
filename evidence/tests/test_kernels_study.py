"""The study of kernels: copies, models by hand, switches, conditions, scores."""

import csv
import itertools
import json

import pytest

import linkwright_evidence as studies
from linkwright.base.errors import FileError, LinkwrightError, UsageError
from linkwright.cli.main import status_of
from linkwright_evidence import Options
from linkwright_evidence.kernels import allreduce, cells, condition, deepep, fit, holdout, moe, numbers, orders, routes
from linkwright_evidence.kernels.condition import KINDS, SYSTEMS, Condition
from linkwright_evidence.kernels.predict import Kernels
from linkwright_evidence.outcome import Cell

COLUMNS = (
    "kind", "system", "gpus", "nodes", "backend", "mode", "table", "reported", "op", "dtype", "size_bytes", "tokens",
    "hidden", "topk", "experts", "sms",
)  # fmt: skip
EASY = {row["key"]: 1.0 for row in numbers.rows()}


def reduced(**more: object) -> Condition:
    about = {"system": "h100_sxm", "gpus": 8, "nodes": 1, "backend": "vllm", "mode": "graph", "table": "vllm/0.19.0"}
    return Condition(**{"kind": "framework_allreduce", "op": "all_reduce", "size_bytes": 1024, **about, **more})


def exchanged(kind: str, op: str, **more: object) -> Condition:
    about = {"system": "h100_sxm", "gpus": 8, "nodes": 1, "backend": "deepep", "tokens": 64, "hidden": 1024}
    return Condition(**{"kind": kind, "op": op, "topk": 1, "experts": 8, "sms": 4, **about, **more})


# ---- copies of a token


@pytest.mark.parametrize(("owners", "experts", "topk"), [(2, 4, 2), (4, 8, 3), (8, 16, 2), (3, 6, 6)])
def test_the_expected_ranks_are_those_of_all_choices(owners, experts, topk):
    each = experts // owners
    choices = list(itertools.combinations(range(experts), topk))
    mean = sum(len({expert // each for expert in choice}) for choice in choices) / len(choices)
    assert routes.expected(owners, experts, topk) == pytest.approx(mean)


def test_a_limit_of_nodes_limits_copies():
    """Eight nodes, four groups: as many copies as four nodes of the same experts per node would get."""
    assert routes.copies(64, 8, 256, 8, 4) == pytest.approx(routes.copies(32, 4, 128, 8, 4))
    assert routes.copies(8, 1, 256, 8, 4)[1] == 1


# ---- models, by hand


def test_one_shot_of_loads():
    """p = 2: start 1, two flags of 2, and 1,000 B from one peer. In flight 1 kB, a latency of 0.5 x 2 us: 1,000 B/us,
    below the link of 450,000: 1 us. In all 6 us."""
    values = EASY | {"hopper.flag": 2.0, "framework.latency": 0.5, "framework.pull": 1.0}
    assert allreduce._kernel(reduced(gpus=2, size_bytes=1000), "pull_one", values) == pytest.approx(6)


def test_two_shots_of_loads_wait_for_one_peer_at_a_time():
    """p = 4: start 1 and two further peers 2; twice two flags, and a fence of 3 peers: 10 us. Of 1,000 B,
    2 x 3/4 are moved, at 1 kB a microsecond: 1.5 us."""
    values = EASY | {"framework.pull": 1.0}
    assert allreduce._kernel(reduced(gpus=4, size_bytes=1000), "pull_two", values) == pytest.approx(11.5)


def test_sums_in_the_switch():
    """p = 8: start 1, six further peers 6, four flags: 11 us; 9/8 of 400,000 B at 450,000 B/us: 1 us."""
    assert allreduce._kernel(reduced(size_bytes=400_000), "switch_one", EASY) == pytest.approx(12)


def test_low_latency_over_two_nodes():
    """16 ranks, 8 on a node: start 1, flags 1 + 8 + 1, the network's 1: 12 us. 64 copies of 1,024 + 32 + 16 B, half of
    them over a port of 50,000 B/us: 0.7 us; but each of 16 multiprocessors takes 4 tokens, 1 us each."""
    one = exchanged("deepep_ll", "dispatch", gpus=16, nodes=2, experts=16)
    assert deepep.low_latency(one, EASY) == pytest.approx(12 + 4)


def test_normal_dispatch_on_one_node():
    """Call 1, fill 32/33 (64 tokens on two channels); a copy of 1,056 B takes 1.056 us and a token 1 us, four times
    slower for three further multiprocessors that share, a quarter for each: 64 x 2.056 us."""
    one = exchanged("deepep_ht_dispatch", "dispatch")
    assert deepep.normal(one, EASY) == pytest.approx(1 + 32 / 33 + 64 * 2.056)


def test_an_exchange_of_experts_sends_to_others():
    """EP 8: graph 1, rounds 1; 7 of 8 copies of 2,048 B for 1,000 tokens at 900,000 B/us; a step is 1 ns."""
    one = exchanged(
        "moe_alltoall", "combine", system="gb200", backend="NVLinkOneSided", tokens=1000, topk=8, dtype="nvfp4"
    )
    assert moe.time(one, EASY) == pytest.approx(2 + 1000 * 7 * 2048 / 900_000)


@pytest.mark.parametrize("kind", KINDS)
def test_more_data_never_takes_less(kind):
    ops = {"deepep_ht_dispatch": "dispatch", "deepep_ht_combine": "combine", "moe_alltoall": "dispatch"}
    kernels, times = Kernels(), []
    for step in range(0, 15, 2):
        if kind in ("collective", "framework_allreduce"):
            continue
        times.append(
            kernels.time_us(exchanged(kind, ops.get(kind, "dispatch"), tokens=2**step, experts=64, topk=4, dtype="fp8"))
        )
    assert times == sorted(times)


# ---- switches


@pytest.mark.parametrize(
    ("about", "kernel"),
    [
        ({"size_bytes": 128 << 10}, "pull_one"),
        ({"size_bytes": 256 << 10}, "switch_one"),
        ({"size_bytes": 256 << 10, "table": "vllm/0.14.0"}, "pull_two"),
        ({"size_bytes": 8 << 20, "table": "vllm/0.14.0"}, "nccl"),
        ({"size_bytes": 8 << 20, "backend": "sglang", "table": "sglang/0.5.10"}, "pull_two"),
        ({"size_bytes": 16 << 20, "backend": "sglang", "table": "sglang/0.5.10"}, "nccl"),
        ({"size_bytes": 1 << 20, "backend": "sglang", "table": "sglang/0.5.14"}, "store_two"),
        ({"size_bytes": 1 << 10, "backend": "trtllm", "table": "trtllm/1.3.0rc10"}, "push_one"),
        ({"size_bytes": 1 << 10, "backend": "trtllm", "table": "trtllm/1.0.0", "system": "l40s"}, "nccl"),
    ],
)
def test_a_framework_takes_the_kernel_of_its_version(about, kernel):
    assert allreduce.chosen(reduced(**about)) == kernel


def test_switches_name_known_kernels_and_say_what_they_rest_on():
    for row in allreduce.switches():
        assert row["kernel"] in {f"{way}_{shots}" for way in (*allreduce.ROUNDS, "store") for shots in ("one", "two")}
        assert row["status"] in ("documented", "post_hoc", "assumed")
        assert row["source"]


def test_facts_of_systems_are_those_of_machine_files():
    """NVLink 5: 18 links of 50 GB/s; ConnectX-7: 400 Gb/s; HBM3e: 8,000 GB/s. PCIe Gen5 x8: 31.5 GB/s; GDDR6: 456."""
    on = SYSTEMS["b200_sxm"]
    assert (on.link, on.nic, on.memory, on.sms) == (900_000, 50_000, 8_000_000, 148)
    on = SYSTEMS["b60"]
    assert (on.link, on.nic, on.memory, on.sms) == (31_500, 0, 456_000, 0)
    assert SYSTEMS["gb200"].nic == SYSTEMS["gb200"].link == 900_000
    assert SYSTEMS["a100_sxm"].memory == 2_039_000


def test_few_numbers_are_fitted():
    assert all(len(numbers.fitted(owner)) <= 6 for owner in ("hopper", "blackwell", "ampere", "pcie"))
    assert len(numbers.fitted("infiniband")) <= 3
    assert len({row["key"] for row in numbers.rows()}) == len(numbers.rows())


# ---- published rows


def test_all_rows_are_there():
    assert len(condition.published()) == 34_034
    assert {one.condition.system for one in condition.published()} < set(SYSTEMS)


def test_a_fit_draws_healthy_rows_once_and_always_the_same():
    drawn = fit.sample()
    assert 500 < len(drawn) < 6000
    assert not any(fit.case(one) or one.kind == "collective" or one.mode == "eager" for one in drawn)
    assert drawn == frozenset(one.condition for its in fit._drawn(condition.published()) for one in its)


def test_experts_are_within_the_aim():
    outcome = studies.reproduce("kernels", Options(kernels=("moe_alltoall",)))
    score = cells.pooled([cell for cell in outcome.cells if cell.role == "predicted"])
    assert score.median < 0.12
    assert score.p90 < 0.30


def test_an_order_counts_pairs_that_differ():
    """12 against 10 us differ by more than a tenth, 10.5 do not; of the two pairs, one is in the right order."""
    keys = {"kind": "framework_allreduce", "mode": "graph", "system": "h100_sxm", "gpus": 8, "size_bytes": 256}

    def made(version, predicted, published):
        return Cell("t", keys | {"version": version}, predicted, published, "us")

    found = orders.rows([made("vllm/1", 3.0, 10.0), made("trtllm/1", 2.0, 12.0), made("sglang/1", 2.5, 10.5)])
    assert [(row["pairs"], row["right_percent"]) for row in found] == [(2, 0.0)]


@pytest.mark.parametrize("name", holdout.PARTS)
def test_a_part_that_is_left_out_has_a_copy_elsewhere(name):
    part = holdout.PARTS[name]
    healthy = [one.condition for one in condition.published() if fit.usable(one)]
    left = {holdout._key(one) for one in healthy if not part.holds(one)}
    mine = [one for one in healthy if part.holds(one)]
    assert mine
    assert any(holdout._key(part.copied(one)) in left for one in mine)


# ---- conditions


def written(tmp_path, *rows):
    file = tmp_path / "asked.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    return file


ASKED = (
    {"kind": "framework_allreduce", "system": "b300_sxm", "gpus": 8, "nodes": 1, "backend": "vllm", "mode": "graph",
     "table": "vllm/0.19.0", "op": "all_reduce", "dtype": "bfloat16", "size_bytes": 4096},
    {"kind": "deepep_ht_combine", "system": "h200_sxm", "gpus": 64, "nodes": 8, "backend": "deepep", "op": "combine",
     "dtype": "bf16", "tokens": 4096, "hidden": 7168, "topk": 8, "experts": 256, "sms": 24},
    {"kind": "collective", "system": "rtx_pro_6000_server", "gpus": 8, "nodes": 1, "backend": "nccl", "mode": "stream",
     "table": "nccl/2.28.9", "reported": "2.28.9", "op": "all_gather", "dtype": "half", "size_bytes": 1048576},
    {"kind": "moe_alltoall", "system": "gb300", "gpus": 64, "nodes": 16, "backend": "NVLinkTwoSided", "op": "prepare",
     "dtype": "fp8", "tokens": 1, "hidden": 7168, "topk": 8, "experts": 256, "sms": 0},
)  # fmt: skip


def test_withheld_systems_and_scales_are_answered_with_their_columns(tmp_path, capsys):
    file = written(tmp_path, *ASKED)
    assert status_of(["reproduce", "kernels", "--conditions", str(file), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert len(found) == len(ASKED)
    for cell, row in zip(found, ASKED, strict=True):
        assert {name: cell[name] for name in COLUMNS} == {name: str(row.get(name, "")) for name in COLUMNS}
        assert cell["predicted"] > 1
        assert cell["reference"] is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ASKED[0], ""),
        (ASKED[0] | {"table": "vllm/0.30.0"}, "no time of vllm/0.30.0 is published: answered by the rules that also "
         "hold for vllm/0.24.0"),
        (ASKED[0] | {"table": "vllm/0.1.0"}, "hold for vllm/0.12.0"),
        (ASKED[0] | {"mode": ""}, "no mode: answered as graph"),
        (ASKED[1], "no version: answered as sglang/0.5.12"),
        (ASKED[2], ""),
        (ASKED[2] | {"reported": "2.31.1"}, "NCCL 2.31.1: answered by the rules of 2.28"),
    ],
)  # fmt: skip
def test_an_answer_for_the_nearest_version_says_so(tmp_path, row, said):
    cell = studies.reproduce("kernels", Options(conditions=written(tmp_path, row))).cells[0]
    assert cell.predicted
    assert str(cell.keys.get("remark", "")).endswith(said)
    assert bool(cell.keys.get("remark")) == bool(said)


def test_a_row_that_no_model_knows_costs_no_other_its_answer(tmp_path):
    file = written(tmp_path, *ASKED, ASKED[0] | {"system": "h100"})
    outcome = studies.reproduce("kernels", Options(conditions=file))
    assert [cell.predicted is None for cell in outcome.cells] == [False] * len(ASKED) + [True]
    assert "line 6: unknown system `h100`" in outcome.cells[-1].keys["remark"]
    assert "1 row without a prediction" in outcome.remarks[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "moe"}, "unknown kind of kernel `moe`"),
        ({"kind": "collective"}, "unknown collective `combine`"),
        ({"system": "h100"}, "unknown system `h100`"),
        ({"gpus": 3, "nodes": 2}, "3 GPUs on 2 nodes"),
        ({"tokens": 0}, "tokens missing or 0"),
        ({"tokens": -4}, "tokens = `-4`"),
        ({"topk": 512}, "512 experts of a token, but there are 256"),
        ({"sms": ""}, "sms is missing"),
        ({"sms": 500}, "500 SMs, but `h200_sxm` has 132"),
        ({"experts": 1 << 17}, "131072 experts; give at most"),
        ({"tokens": 1 << 41}, "at most 2\\^40"),
        ({"op": "broadcast"}, "line 2: unknown operation of deepep_ht_combine `broadcast`"),
        ({"backend": "nccl"}, "unknown backend of deepep_ht_combine `nccl`"),
        ({"gpus": 1, "nodes": 1}, "1 GPU on 1 node; there is nothing"),
        ({"gpus": 64, "nodes": 1}, "`h200_sxm` has 8 that reach each other"),
        ({"gpus": 16, "nodes": 2, "system": "l40s"}, "no network of `l40s`"),
        (ASKED[0] | {"system": "h100_sxm", "gpus": 16, "nodes": 2}, "on one node of `h100_sxm` only"),
        (ASKED[0] | {"mode": "stream"}, "unknown mode of framework_allreduce `stream`"),
        (ASKED[0] | {"dtype": "fp4"}, "unknown data type of framework_allreduce all_reduce `fp4`"),
        (ASKED[0] | {"table": ""}, "table is missing; the kernel depends on the version of vllm"),
        (ASKED[0] | {"table": "vllm"}, "table `vllm` has no library and version"),
        (ASKED[0] | {"table": "sglang/0.5.14"}, "table `sglang/0.5.14` is not of backend `vllm`"),
        (ASKED[3] | {"backend": "deepep"}, "unknown backend of moe_alltoall `deepep`"),
        (ASKED[3] | {"dtype": ""}, "unknown data type of moe_alltoall prepare"),
        ({"dtype": "fp8"}, "unknown data type of deepep_ht_combine combine `fp8`"),
        ({"mode": "graph"}, "unknown mode of deepep_ht_combine `graph`"),
    ],
)
def test_a_file_of_which_no_model_knows_a_row_is_refused_in_one_message(tmp_path, change, message):
    file = written(tmp_path, ASKED[1] | change)
    with pytest.raises(LinkwrightError, match=message):
        studies.reproduce("kernels", Options(conditions=file))


def test_a_file_needs_columns_and_rows(tmp_path):
    with pytest.raises(FileError, match="no rows"):
        studies.reproduce("kernels", Options(conditions=written(tmp_path)))
    file = tmp_path / "other.csv"
    file.write_text("kind,system\na,b\n", encoding="utf-8")
    with pytest.raises(FileError, match="no column `gpus`, `nodes`"):
        studies.reproduce("kernels", Options(conditions=file))
    file.write_text(",".join((*COLUMNS, "gpus")) + "\n", encoding="utf-8")
    with pytest.raises(FileError, match="column `gpus` is there twice"):
        studies.reproduce("kernels", Options(conditions=file))


def test_other_studies_have_no_kernels():
    with pytest.raises(UsageError, match="no --kernel"):
        studies.reproduce("modern", Options(kernels=("moe_alltoall",)))
    with pytest.raises(LinkwrightError, match="unknown kind of kernel `moe`"):
        studies.reproduce("kernels", Options(kernels=("moe",)))
