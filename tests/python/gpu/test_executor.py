"""The executor from the command line to the driver, on a driver whose GPU is CPU threads."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import emulator
import numpy as np
import pandas as pd
import pytest
from test_gpu_probes import needs_nvrtc

from linkwright import _native
from linkwright.ask.question import Collective, Pattern
from linkwright.base import registry
from linkwright.base.errors import CudaError
from linkwright.cli.main import status_of
from linkwright.executors.cuda import clocks
from linkwright.show.report.runs import Run


def allreduce(ranks: int, size: int = 256, **more) -> Collective:
    algorithm = more.pop("algorithm", "ring")
    return Collective("test", algorithm, ranks, size, "f32", collective="allreduce", op="sum", **more)


PING_PONG = Pattern("test", "ping_pong", 2, 8, "u8", placement=(1, 6))


@pytest.fixture(scope="module")
def answers() -> list[dict]:
    """What one process on that GPU says to all that it is asked."""
    asked = [
        {"experiment": allreduce(4)},
        {"experiment": allreduce(6, algorithm="swing_latency", path="cluster")},
        {"experiment": PING_PONG},
        {"experiment": allreduce(3, skew="late:1:3ms")},
        {"experiment": allreduce(4), "spoil": True},
        {"experiment": allreduce(17, path="cluster")},
        {"experiment": allreduce(13)},
        {"experiment": allreduce(4, path="eth")},
        {"experiment": allreduce(4, 1 << 20, path="cluster")},
        {"experiment": allreduce(5, 1000, algorithm="cuda-native", skew="late:1:1ms")},
        {"experiment": allreduce(4, algorithm="cuda-native"), "spoil": True},
        {"experiment": allreduce(4, algorithm="cuda-native", path="cluster")},
    ]
    return emulator.answers(asked)


@needs_nvrtc
def test_the_gpu_describes_itself(answers):
    about = answers[0]
    assert about["environment"]["gpu"] == "CPU threads behind the driver's interface"
    assert about["environment"]["architecture"] == "sm_90"
    assert sorted(about["sms"]) == list(range(12))
    rate = {row["key"]: row["value"] for row in about["calibration"]}["sm_clock"]
    assert rate == pytest.approx(2e9, rel=0.01)  # the shim counts two cycles per nanosecond


@needs_nvrtc
@pytest.mark.parametrize(("number", "ranks"), [(1, 4), (2, 6), (3, 2), (4, 3), (10, 5)])
def test_checked_samples_of_every_rank(answers, number, ranks):
    found = answers[number]["found"]
    assert found["values_ns"], found
    assert len(found["ranks_ns"]) == ranks
    durations = np.array([durations for _, durations in found["ranks_ns"]])
    assert durations.max(axis=0).tolist() == found["values_ns"]
    assert (durations > 0).all()
    assert "unchecked" not in dict(found["notes"])
    assert found["start"] == "timer"


@needs_nvrtc
def test_ranks_arrive_late_where_that_is_asked(answers):
    starts = np.array([starts for starts, _ in answers[4]["found"]["ranks_ns"]])
    assert np.median(starts[1] - starts[0]) > 2e6


@needs_nvrtc
@pytest.mark.parametrize("number", [5, 11])
def test_wrong_data_give_no_number(answers, number):
    assert answers[number]["error"][0] == "WrongResultError"
    assert answers[number]["error"][1].startswith(
        "rank 0: byte 0 of output is wrong, and 1 bytes in all, after cuda ran"
    )


@needs_nvrtc
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (6, "17 ranks; a cluster has at most 16 blocks"),
        (7, "13 ranks need as many SMs; 12 take part"),
        (8, "there is no path `eth`; use `global_memory` or `cluster`"),
        (12, "cuda-native is a barrier of the whole grid"),
        (9, "a rank holds 1048576 bytes and the shared memory of a block 100000"),
    ],
)
def test_what_it_cannot_do_is_waived(answers, number, reason):
    assert answers[number]["error"][0] == "WaivedError"
    assert reason in answers[number]["error"][1]


ONE_LAUNCH = "import sys; from linkwright.session.suite import measure; from linkwright.cli.main import main; "
ONE_LAUNCH += "measure.MAX_LAUNCHES = 1; main(sys.argv[1:])"


@needs_nvrtc
def test_a_whole_run(tmp_path):
    """From the command line through a launch's process and the driver to rows, but one launch instead of six."""
    out = tmp_path / "rows.json"
    arguments = ["run", "allreduce/ring", "--on", "cuda,loggp", "--ranks", "4", "--sizes", "256", "--iters", "4"]
    arguments += ["--time-budget", "120s", "--runs", tmp_path, "--output", out]
    # The session leaves the GPU to its launches, also one that serves a single process.
    exclusive = {"FAKE_EXCLUSIVE": str(tmp_path / "gpu")}
    done = emulator.on_fake_gpu(["-c", ONE_LAUNCH, *arguments], environment=exclusive)
    assert done.returncode == 0, done.stderr
    rows = [row for row in json.loads(out.read_text(encoding="utf-8"))["rows"] if row["executor"] == "cuda"]
    times = [row for row in rows if row["metric"] == "time"]
    assert [row["machine"] for row in times] == ["CPU threads behind the driver's interface"]
    assert (times[0]["status"], times[0]["grade"], times[0]["n"]) == ("ok", "single", 1)
    residual = next(row for row in rows if row["metric"] == "sync_residual")
    assert residual["reason"] == "timer"
    about = json.loads(next(tmp_path.glob("*/environment.json")).read_text(encoding="utf-8"))["cuda"]
    assert about["endpoints"] == [0, 1, 2, 3]
    assert {row["key"] for row in about["calibration"]} >= {"sm_clock", "timer_resolution", "counter_offset"}


@needs_nvrtc
def test_more_ranks_than_sms_is_wrong_usage(tmp_path):
    done = emulator.on_fake_gpu(
        ["-m", "linkwright", "run", "allreduce", "--on", "cuda", "-p", "13", "--runs", tmp_path]
    )
    assert done.returncode == 2
    assert "--ranks 13: CPU threads behind the driver's interface has 12 SMs" in done.stderr


@needs_nvrtc
@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"FAKE_INIT": "100"}, 2, ["does not start: .*CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES chooses"]),
        ({"FAKE_INIT": "802"}, 2, ["CUDA_ERROR_SYSTEM_NOT_READY", "systemctl start nvidia-fabricmanager"]),
        ({"FAKE_GPUS": "0"}, 2, ["sees no GPU; CUDA_VISIBLE_DEVICES may hide them all"]),
        ({"FAKE_CAPABILITY": "60"}, 2, [r"\(sm_60\) lacks acquire and release accesses", "Volta, sm_70"]),
        ({"FAKE_DRIVER_CUDA": "11080"}, 1, [
            "cuModuleLoadData failed: .*CUDA_ERROR_INVALID_IMAGE", "the driver is of CUDA 11.8, and NVRTC is 1",
            r"use a newer driver, or `.venv/bin/pip install -e '.\[cuda\]'`",
        ]),
    ],
)  # fmt: skip
def test_a_machine_that_is_not_ready_says_what_would_do(tmp_path, environment, status, said):
    done = emulator.on_fake_gpu(
        ["-m", "linkwright", "dissect", "--on", "cuda", "--runs", tmp_path], environment=environment
    )
    assert done.returncode == status, done.stderr
    for pattern in said:
        assert re.search(pattern, done.stderr), done.stderr


@needs_nvrtc
def test_a_gpu_that_nvrtc_does_not_know_compiles_on():
    found = emulator.answers([{"experiment": PING_PONG}], FAKE_CAPABILITY="190")
    assert found[0]["environment"]["architecture"] == "sm_190"
    assert found[1]["found"]["values_ns"]


@needs_nvrtc
def test_an_error_that_a_gpu_does_not_recover_from_costs_one_experiment(tmp_path):
    out = tmp_path / "rows.json"
    arguments = ["run", "allreduce", "--algorithm", "ring,cuda-native", "--on", "cuda", "-p", "4", "--sizes", "256,512"]
    arguments += ["--iters", "4", "--time-budget", "600s", "--runs", tmp_path, "--output", out]
    done = emulator.on_fake_gpu(["-c", ONE_LAUNCH, *arguments], environment={"FAKE_BREAKS_AT": "schedule_walk"})
    assert done.returncode == 1, done.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    by_ring, own = ([row for row in rows if row["algorithm"] == key] for key in ("ring", "cuda-native"))
    assert [row["status"] for row in by_ring] == ["failed"] * 2
    assert all(re.search("cuCtxSynchronize failed: .*CUDA_ERROR_ILLEGAL_ADDRESS", row["reason"]) for row in by_ring)
    assert [row["value"] > 0 for row in own if row["metric"] == "time"] == [True] * 2


@pytest.mark.skipif(emulator.has_gpu(), reason="there is a GPU")
@pytest.mark.parametrize(
    "arguments",
    [
        *([*words, "--on", "cuda"] for words in (["run", "allreduce"], ["dissect"], ["run", "memory_latency"])),
        ["dissect", "--suite", "gpu"],  # which is about a GPU, and not about threads
        ["dissect", "--suite", "gpus"],
    ],
)
def test_without_a_gpu_every_command_says_what_would_do(arguments, tmp_path, capsys):
    assert status_of([*arguments, "--runs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no NVIDIA driver" in said or "pip install -e '.[cuda]'" in said
    assert list(tmp_path.iterdir()) == []


def test_it_lists_and_describes_itself_without_a_gpu(capsys):
    assert "cuda" in registry.keys("executors")
    assert status_of(["describe", "cuda"]) == 0
    assert "distributed shared memory" in capsys.readouterr().out


def test_clocks_from_what_the_kernel_wrote():
    # SM, cycles and ns at the begin, cycles and ns at the end, resolution, overhead, looks.
    words = np.array([[5, 1000, 100, 19000, 10100, 32, 12, 50], [7, 4000, 100, 22010, 10100, 32, 14, 50]], np.uint64)
    found = clocks.Clocks.of(words)
    assert found.sms == (5, 7)
    assert found.rate == pytest.approx(1.8005)
    assert found.offset_cycles == (0, 3000)
    assert found.drift_cycles == 10
    assert found.resolution_ns == 32
    assert found.ns(np.array([12.0, 1812.0])) == pytest.approx([0.0, 1800 / 1.8005])
    assert found.ns(np.array([1848.0]), spans=4) == pytest.approx([1800 / 1.8005])
    words[1, 3] = 4000
    with pytest.raises(CudaError, match="do not advance"):
        clocks.Clocks.of(words)


def test_clocks_that_still_rise_are_not_those_of_a_measurement(monkeypatch):
    rates = iter([0.35, 1.2, 1.98, 1.981, 1.7])
    monkeypatch.setattr(clocks, "measure", lambda device: SimpleNamespace(rate=next(rates)))
    assert clocks.settled(None).rate == 1.981


def test_throttling_is_named_by_its_cause(monkeypatch):
    bits = iter([0, 0x4 | 0x20])
    monkeypatch.setitem(
        sys.modules,
        "pynvml",
        SimpleNamespace(
            nvmlInit=lambda: None,
            nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: next(bits),
            NVMLError=RuntimeError,
        ),
    )
    with clocks.watched(clocks.Throttling("0000:00:00.0")) as lowered:
        pass
    assert lowered == ["power cap", "temperature"]


def test_delays_are_those_of_the_other_executors():
    late = _native.arrival_delays(3, 2, {"skew": "late:2:5us"}).reshape(2, 3)
    assert late.tolist() == [[0, 0, 5000], [0, 0, 5000]]
    drawn = _native.arrival_delays(64, 4, {"skew": "uniform:1us", "seed": 1})
    assert 0 <= drawn.min() < 100
    assert 900 < drawn.max() <= 1000


def test_a_gpu_is_not_given_the_caches_of_its_host():
    rows = pd.DataFrame({"machine": ["H100", "EPYC", "loggp"], "executor": ["cuda", "threads", "sim"]})
    run = SimpleNamespace(rows=rows, environment={"topology": [{"cpu": 0, "package": "0", "core": "0", "caches": []}]})
    assert [len(Run.topology(run, name).rows) for name in rows["machine"]] == [0, 1, 0]
