"""On a real GPU: the kernel and the executor. Without one they are skipped, with the reason."""

from __future__ import annotations

import cases
import emulator
import numpy as np
import pytest

from linkwright import _native
from linkwright.ask.question import Collective
from linkwright.base.errors import WaivedError
from linkwright.executors import probes
from linkwright.executors.cuda import clocks, job, measure, native
from linkwright.executors.cuda.probes import host_link, products
from linkwright.executors.process import Sampling

pytestmark = pytest.mark.skipif(not emulator.has_gpu(), reason=f"no GPU: {emulator.why_no_gpu()}")


@pytest.fixture(scope="module")
def gpu() -> measure.Gpu:
    from linkwright.executors.cuda.device import device

    found = clocks.settled(device())
    sms = tuple(sorted(found.sms))
    return measure.Gpu(device(), sms, found.sms, found, clocks.Throttling(device().bus_id))


def left_by(gpu: measure.Gpu, case: cases.Case, **how) -> dict[str, np.ndarray]:
    device = gpu.device
    placed = job.Placement.on(list(gpu.sms), case.schedule.ranks, device.whole_sm_bytes, device.most_shared_bytes)
    made = cases.walk_of(case, placement=placed, threads=measure.THREADS, **how)
    with device.loaded(made) as loaded:
        loaded.run()
        return {name: loaded.read(name) for name in ("memory", "trouble", "sm_of_rank")}


def check(gpu: measure.Gpu, case: cases.Case, **how) -> None:
    left = left_by(gpu, case, **how)
    assert job.trouble_of(left["trouble"]) is None, case.name
    case.memory.check(case.stream, left["memory"], f"cuda, {case.name},")


def test_every_algorithm_on_few_and_on_all_sms(gpu):
    for algorithm in _native.algorithms():
        for case in cases.buildable(algorithm["key"], (2, 5, 8, len(gpu.sms)), 1200):
            check(gpu, case)


def test_the_native_reduction_on_few_and_on_all_sms(gpu):
    for ranks in (2, 5, len(gpu.sms)):
        for elements in (1, 1024, 100_003):
            check(gpu, cases.build("allreduce/ring", ranks, elements), make=native.job)


def test_every_type_and_operator(gpu):
    for dtype, op in cases.TYPES:
        check(gpu, cases.build("allreduce/ring", 4, 1000, dtype, op))


def test_in_clusters(gpu):
    if not gpu.device.has_clusters:
        pytest.skip(f"{gpu.device.name} has no clusters")
    for ranks in (2, 4, 8):
        check(gpu, cases.build("allreduce/swing_bandwidth", ranks, 1024), cluster=True)


def test_products_in_bf16_are_as_fast_as_those_of_pytorch(gpu):
    torch = pytest.importorskip("torch", reason="no PyTorch to compare with")
    assigned = probes.find("matmul").assignment({"n": 8192, "dtype": "bf16"})
    how = Sampling(samples=50, warmup_at_most=None, budget_s=4.0, settle_within=None, seed=0)
    found = products.measure(gpu, assigned, list(gpu.sms), how)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(20):
        first.record()
        for _ in range(10):
            torch.matmul(a, b)
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e5)
    assert np.median(found.values_ns) < 1.03 * np.median(times[5:])


@pytest.mark.parametrize("direction", ["to_device", "to_host"])
def test_queued_copies_are_as_fast_as_a_loop_of_the_driver(gpu, direction):
    nbytes, times = 1 << 28, 32
    axes = {"bytes": nbytes, "direction": direction, "memory": "pinned", "queued": times}
    how = Sampling(samples=20, warmup_at_most=None, budget_s=4.0, settle_within=None, seed=0)
    found = host_link.gpu_copy(gpu, axes, list(gpu.sms), how)
    device, took = gpu.device, []
    with host_link.host_memory(gpu, nbytes, pinned=True) as host, host_link.device_memory(gpu, nbytes) as address:
        call = {"to_device": "cuMemcpyHtoDAsync", "to_host": "cuMemcpyDtoHAsync"}[direction]
        places = (address, host.ctypes.data) if direction == "to_device" else (host.ctypes.data, address)
        for _ in range(10):
            took += device.elapsed_ns(lambda: device.call(call, *places, nbytes, 0), times).tolist()
    assert np.median(found.values_ns) < 1.03 * np.median(took)


def test_products_say_what_they_draw(gpu):
    how = Sampling(samples=50, warmup_at_most=None, budget_s=4.0, settle_within=None, seed=0)
    found = products.measure(gpu, {"n": 8192, "dtype": "f32", "threads": 1}, list(gpu.sms), how)
    assert 50 < found.watts < 2000


@pytest.mark.parametrize("dtype", products.EPSILON)
def test_products_of_every_type_are_right(gpu, dtype):
    how = Sampling(samples=8, warmup_at_most=2, budget_s=1.0, settle_within=None, seed=0)
    try:
        found = products.measure(gpu, {"n": 512, "dtype": dtype, "threads": 1}, list(gpu.sms), how)
    except WaivedError as error:
        pytest.skip(str(error))
    assert found.values_ns


@pytest.mark.parametrize("path", ["peer", "staged"])
@pytest.mark.parametrize("algorithm", ["ring", "nccl"])
def test_several_gpus_reduce_as_reference_does(algorithm, path):
    from linkwright.executors.cuda.device import devices
    from linkwright.executors.gpus import measure as several
    from linkwright.executors.gpus.node import Node

    found = devices("gpus")
    asked = Collective("test", algorithm, len(found), 1 << 20, "f32", op="sum", path=path, collective="allreduce")
    how = Sampling(samples=8, warmup_at_most=2, budget_s=2.0, settle_within=None, seed=0)
    try:
        answer = several.run(Node(found), asked, how)
    except WaivedError as error:
        pytest.skip(str(error))
    finally:
        found[0].make_current()
    assert answer.values_ns


def test_samples_are_plausible(gpu):
    how = Sampling(samples=50, warmup_at_most=None, budget_s=2.0, settle_within=None, seed=0)
    found = measure.run(gpu, Collective("test", "ring", 8, 4096, "f32", op="sum", collective="allreduce"), how)
    # Fourteen messages, each of which crosses the L2 at least once.
    assert 14 * 200 < np.median(found.values_ns) < 1e6
