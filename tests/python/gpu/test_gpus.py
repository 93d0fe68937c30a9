"""Several GPUs on the driver of the tests: queues run as late and as far as they may, data are those of `reference`."""

from __future__ import annotations

import ctypes
import functools
import json
from types import SimpleNamespace

import cases
import emulator
import numpy as np
import pytest
import walk
from test_gpu_probes import needs_nvrtc

from linkwright import _native
from linkwright.ask.question import Collective, Pattern, Probe
from linkwright.executors.gpus import measure, order
from linkwright.store.record import Record

STAND_INS = emulator.HERE / "stand_ins"
WITHOUT_CUPY = {"PYTHONPATH": str(emulator.HERE / "absent")}


def collective(key: str, ranks: int, size: int = 480, dtype: str = "f32", **more) -> Collective:
    name, _, algorithm = key.partition("/")
    op = "sum" if "reduce" in name else None
    return Collective("test", algorithm, ranks, size, dtype, op=more.pop("op", op), **more, collective=name)


def pattern(name: str, size: int = 64, **more) -> Pattern:
    return Pattern("test", name, 2, size, "u8", **more)


ANSWERED = [
    *(collective(f"allreduce/{name}", 4) for name in ("ring", "swing_bandwidth", "shared_memory")),
    collective("allreduce/ring", 3, 3000, "bf16", op="max"),
    collective("allreduce/ring", 2, 400_000, "i32", path="staged"),
    collective("reduce_scatter/ring", 4),
    collective("alltoall/pairwise", 4),
    collective("broadcast/binomial", 4),
    collective("barrier/dissemination", 4, 0),
    *(pattern("ping_pong", placement=pair, path=path) for pair in ((0, 1), (3, 2)) for path in ("peer", "staged")),
    pattern("pairs", 4096, messages=16, both_ways=True),
    *(collective(f"{name}/nccl", 4) for name in ("allreduce", "allgather", "broadcast")),
    collective("broadcast/nccl", 3, root=2),
    collective("allreduce/nccl", 2, 1024, "i64", op="prod"),
    *(collective(f"{algorithm['collective']}/{algorithm['name']}", 3, 96)
      for algorithm in _native.algorithms() if algorithm["collective"] == "allreduce"),
]  # fmt: skip


def answers(requests: list[dict], gpus: int, **environment: str) -> list[dict]:
    return emulator.answers(requests, "gpus", FAKE_GPUS=str(gpus), **environment)


@needs_nvrtc
def test_every_answer_is_checked_samples():
    found = answers([{"experiment": each} for each in ANSWERED], 4, PYTHONPATH=str(STAND_INS))
    waived = 0
    for experiment, answer in zip(ANSWERED, found, strict=True):
        if "error" in answer:
            assert "grid" in answer["error"][1] or "power of two" in answer["error"][1], (experiment.key, answer)
            waived += 1
            continue
        assert answer["found"]["values_ns"], experiment.key
        assert max(answer["found"]["values_ns"]) > 0
        codes, texts = zip(*answer["found"]["notes"], strict=True)
        assert "unchecked" not in codes
        assert ("library: CuPy, NCCL 0" in texts) == (experiment.algorithm == "nccl")
    assert waived < len(found) / 3


@needs_nvrtc
def test_copies_that_wait_for_the_host_cannot_hold_it_up():
    asked = [{"experiment": collective("allreduce/ring", 2, 4096, path="staged")}]
    found = answers(asked, 2, FAKE_STAGING_WAITS="1")[0]["found"]
    assert found["values_ns"]
    assert ["remark", measure._AT_ONCE] in found["notes"]


@needs_nvrtc
def test_without_waiting_for_each_other_data_are_wrong():
    asked = [{"experiment": collective("allreduce/ring", 4), "spoil": True}]
    assert answers(asked, 4)[0]["error"][0] == "WrongResultError"


@needs_nvrtc
@pytest.mark.parametrize(
    ("reason", "gpus", "experiment", "environment"),
    [
        ("this node shows one GPU, and messages need two", 1, collective("allreduce/ring", 2), {}),
        ("NCCL's collectives need CuPy", 2, collective("allreduce/nccl", 2), WITHOUT_CUPY),
        ("NCCL chooses its own route, not path `staged`", 2, collective("allreduce/nccl", 2, path="staged"), {}),
        ("GPU 0 cannot reach the memory of GPU 1", 2, collective("allreduce/ring", 2), {"FAKE_NO_PEER": "1"}),
        ("there is no path `eth`; use `peer` or `staged`", 2, collective("allreduce/ring", 2, path="eth"), {}),
        ("a quarter of a GPU's memory", 2, collective("allreduce/ring", 2, 1 << 29), {}),
        ("it is not measured between GPUs", 2, Probe("test", "matmul", 2, None, axes=()), {}),
    ],
)
def test_what_cannot_be_is_waived(reason, gpus, experiment, environment):
    kind, text = answers([{"experiment": experiment}], gpus, **environment)[0]["error"]
    assert kind == "WaivedError"
    assert reason in text


def test_queues_that_are_held_go_on_where_enqueuing_fails():
    word = ctypes.c_uint32()
    device = SimpleNamespace(call=lambda name, *given: ctypes.addressof(word))
    gate = measure.Gate([SimpleNamespace(device=device, hold=lambda *given: None, record=lambda event: None)])
    with pytest.raises(ZeroDivisionError):
        gate.elapsed_ns(lambda: 1 // 0, 1)
    assert word.value == 1


@pytest.mark.parametrize(("taken_ns", "left_ns"), [(90.0, 40.0), (20.0, 0.0)])
def test_less_than_nothing_counts_as_nothing_and_is_said(taken_ns, left_ns, monkeypatch):
    made = SimpleNamespace(entries=1, notes=[], enqueue=lambda: None)
    gate = SimpleNamespace(
        blocked=False, elapsed_ns=lambda enqueue, *_, **how: taken_ns if enqueue is made.enqueue else 50.0
    )
    memory = SimpleNamespace(restore=lambda: None, read=lambda: None)
    record = functools.partial(Record, first_ns=1.0)
    monkeypatch.setattr(measure, "collected", lambda _, several, how: record(values_ns=several().tolist()))
    node, how = SimpleNamespace(devices=[1, 2]), SimpleNamespace(check=True)
    found = measure._Launch(node, gate, made, memory, lambda found: None, how).measure()
    assert set(found.values_ns) == {left_ns}
    assert any("count as 0" in note.text for note in found.notes) == (left_ns == 0)


@needs_nvrtc
def test_the_suite_on_one_gpu_lists_what_needs_more(tmp_path):
    out = tmp_path / "rows.json"
    arguments = ["-m", "linkwright", "dissect", "--suite", "gpus", "--time-budget", "60s", "--runs", tmp_path]
    done = emulator.on_fake_gpu([*arguments, "--output", out])
    assert done.returncode == 1, done.stderr
    rows = json.loads(out.read_text())["rows"]
    assert {row["status"] for row in rows} == {"waived"}
    assert {row["placement"] for row in rows} >= {"GPU 0->GPU 1", "GPU 1->GPU 0"}
    assert {row["algorithm"] for row in rows} >= {"ping_pong", "pairs", "ring", "nccl"}
    assert all("this node shows one GPU" in row["reason"] for row in rows)


@pytest.mark.parametrize("case", list(cases.algorithms((24,))), ids=lambda case: case.name)
def test_operations_in_their_order_leave_what_reference_leaves(case):
    memory, made = case.memory.initial.copy(), case.stream
    combine = walk.combination(case.dtype, case.op)
    operations = order.ordered(made)
    for number, operation in enumerate(operations):
        assert all(other < number and operations[other].rank != operation.rank for other in operation.after)
        for source, offset, target, at, nbytes in operation.pieces:
            begin, end = int(made.participant_first[source]) + offset, int(made.participant_first[target]) + at
            read, written = memory[begin : begin + nbytes], memory[end : end + nbytes]
            written[:] = combine(written, read) if operation.combines else read
    case.memory.check(made, memory, "the order of the host")


@pytest.mark.parametrize("blocks", [1, 3, 12])
@pytest.mark.parametrize(("dtype", "op"), [("f32", "sum"), ("bf16", "max"), ("u8", "prod")])
def test_the_kernel_combines_every_element_once(dtype, op, blocks):
    from linkwright.executors.cuda.job import DTYPES, OPS, Job

    numbers = np.random.default_rng(blocks).integers(0, 100, (2, 1210), np.uint8)
    if dtype == "f32":
        numbers = np.ascontiguousarray(numbers[:, :1208]).view(np.uint8)
    words = {
        "to": numbers[0], "from": numbers[1], "bytes": numbers.shape[1], "dtype": DTYPES.index(dtype),
        "op": OPS.index(op),
    }  # fmt: skip
    job = Job("combine_pieces", "combine_pieces", words, blocks=blocks, threads=3, cooperative=False)
    left = emulator.run([job], sms=12)[0]["to"]
    assert left.tobytes() == walk.combination(dtype, op)(*numbers.copy()).tobytes()
