"""Products, layers, random numbers by the vendor's libraries: the real path, with stand-ins that use NumPy."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import inspect
import operator
import re
from types import SimpleNamespace

import emulator
import numpy as np
import pytest
from test_gpu_probes import asked, needs_nvrtc

from linkwright.base.errors import CudaError, WaivedError, WrongResultError
from linkwright.executors.cuda import peaks, power, probes
from linkwright.executors.cuda.probes import generators, libraries, products, sampling
from linkwright.executors.measured import Measured
from linkwright.executors.process import Sampling
from linkwright.session.suite.rows import Context, of_samples
from linkwright.store.record import Record, remarks

STAND_INS = emulator.HERE / "stand_ins"
BY_TORCH = [
    *(asked("matmul", n=64, dtype=dtype) for dtype in ("f64", "f32", "tf32", "f16", "bf16", "f8")),
    asked("convolution", layer="ssd.conv10", batch=2),
    asked("convolution", layer="ssd.conv6", batch=2, dtype="tf32"),
    asked("convolution", layer="ssd.conv8", batch=2, dtype="f16"),
    asked("convolution", layer="resnext.conv5_2", batch=2, dtype="bf16"),
]  # fmt: skip
BY_CUPY = [
    *(asked("matmul", n=48, dtype=dtype) for dtype in ("f64", "f32", "tf32", "f16", "bf16")),
    *(asked("random", generator=name, block="4K") for name in ("store", *generators._GENERATORS)),
    asked("random", generator="curand_mtgp32", block="64"),
]  # fmt: skip
WAIVED = {
    "matmul in f8: waived: it needs PyTorch": asked("matmul", n=64, dtype="f8"),
    "convolution: waived: it needs PyTorch": asked("convolution"),
    "a library takes all SMs of the GPU": asked("matmul", threads=2),
    "a product needs a size of at least 1": asked("matmul", n=0),
    "a quarter of the GPU's memory": asked("matmul", n=20000),
    "a batch of 0 images is empty": asked("convolution", batch=0),
    "a block holds at least one sample": asked("random", generator="curand_xorwow", block=4),
    "a GPU has no generator numpy_pcg64; ask for curand_xorwow": asked("random"),
}


@pytest.fixture(scope="module")
def by_torch() -> list[dict]:
    return emulator.answers([*BY_TORCH, asked("matmul", n=24, dtype="f8")], PYTHONPATH=str(STAND_INS))


@pytest.fixture(scope="module")
def by_cupy(tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("without_torch")
    for name in ("cupy", "pynvml.py"):
        (path / name).symlink_to(STAND_INS / name)
    return emulator.answers([*BY_CUPY, *WAIVED.values()], PYTHONPATH=str(path))


def checked(found: dict, experiment, library: str) -> None:
    axes = dict(experiment.axes)
    assert found["values_ns"]
    assert all(value > 0 for value in found["values_ns"])
    assert any(text.startswith(f"library: {library}") for _, text in found["notes"])
    assert found["watts"] is None or 90 < found["watts"] < 110, "the counter of the tests counts 100 W"
    if experiment.algorithm == "random":
        assert found["work"] == axes["block"] // 8
        return
    # 12 SMs at 2 GHz, or at what the threads of the tests count as cycles.
    rate = float(peaks.rates()["sm_90"][axes["dtype"]]["value"])
    assert found["limit_ns"] == pytest.approx(found["work"] / (12 * 2.0 * rate), rel=0.02)
    assert found["limit_name"] == "gpu_peak"


@needs_nvrtc
@pytest.mark.parametrize("number", range(len(BY_TORCH)))
def test_pytorch_answers_where_it_is_installed(by_torch, number):
    found = by_torch[1 + number]
    assert "found" in found, found
    experiment = BY_TORCH[number]["experiment"]
    checked(found["found"], experiment, "PyTorch stand-in")
    if experiment.algorithm == "matmul":
        assert found["found"]["work"] == 2 * 64**3


@needs_nvrtc
@pytest.mark.parametrize("number", range(len(BY_CUPY)))
def test_cupy_answers_else(by_cupy, number):
    found = by_cupy[1 + number]
    assert "found" in found, found
    experiment = BY_CUPY[number]["experiment"]
    store = dict(experiment.axes).get("generator") == "store"
    checked(found["found"], experiment, "the driver's memset" if store else "CuPy, cu")


def test_what_a_library_does_first_is_no_pause_between_two_looks(monkeypatch):
    now, calls = [0.0], []

    def call() -> None:
        now[0] += 1.4e-3 if calls else 3.0  # it loads its kernels
        calls.append(now[0])

    def elapsed_ns(work, times=1, *, meanwhile=lambda: None):
        marks = [now[0], *((work(), now[0])[1] for _ in range(times))]
        meanwhile()
        return np.diff(marks) * 1e9

    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(libraries, "time", clock)
    monkeypatch.setattr(sampling, "time", clock)
    monkeypatch.setattr(libraries, "Meter", functools.partial(power.Meter, clock=clock.monotonic))
    counter = SimpleNamespace(
        joules=lambda: 300.0 * (now[0] // 0.1) * 0.1, reasons=lambda: [], notice=lambda: None, note=None
    )
    gpu = SimpleNamespace(device=SimpleNamespace(elapsed_ns=elapsed_ns), throttling=counter)
    how = Sampling(samples=50, warmup_at_most=None, budget_s=2.0, settle_within=None, seed=0)
    found = libraries.sampled("matmul", gpu, call, how, library="slow to start", done=1.0)
    assert found.first_ns == pytest.approx(3e9)
    assert found.values_ns == pytest.approx([1.4e6] * 50)
    assert found.watts == pytest.approx(300, rel=0.1)


@needs_nvrtc
@pytest.mark.parametrize("reason", WAIVED)
def test_what_no_library_answers_is_waived(by_cupy, reason):
    kind, text = by_cupy[1 + len(BY_CUPY) + list(WAIVED).index(reason)]["error"]
    assert kind == "WaivedError"
    assert reason in text


@needs_nvrtc
def test_sizes_that_a_type_does_not_have_are_waived(by_torch):
    assert by_torch[1 + len(BY_TORCH)]["error"] == [
        "WaivedError",
        "matmul: waived: in f8 n is a multiple of 16, not 24",
    ]


def test_what_a_library_refuses_is_the_reason(monkeypatch):
    def refuse(*given):
        raise RuntimeError("CUDA out of memory\nTried to allocate")

    monkeypatch.setattr(products, "measure", refuse)
    with pytest.raises(CudaError, match=r"^probe matmul: the library refuses: CUDA out of memory$"):
        probes.measure(SimpleNamespace(sms=()), asked("matmul")["experiment"], None)


def test_without_any_library_the_cure_is_named(monkeypatch):
    monkeypatch.setattr(libraries, "_imported", lambda *names: None)
    with pytest.raises(
        Exception, match=r"PyTorch \(`.venv/bin/pip install torch`\) or CuPy with the library \(`.venv/bin/pip install "
    ):
        products._library("f32")


def test_a_pytorch_that_sees_no_gpu_is_said(monkeypatch):
    blind = SimpleNamespace(__version__="2.15.0+cpu", cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setattr(libraries, "_imported", lambda *names: blind if names == ("torch",) else None)
    with pytest.raises(WaivedError, match=r"PyTorch 2\.15\.0\+cpu is installed and sees no GPU"):
        products._library("f8")


@pytest.mark.parametrize("dtype", products.EPSILON)
@pytest.mark.parametrize("n", [16, 300, 1024])
def test_rounding_is_borne_and_a_wrong_product_is_not(dtype, n):
    a, b = (products.operand(n, np.dtype(float if dtype == "f64" else np.float32), seed) for seed in range(2))
    exact = a.astype(float) @ b
    signs = np.random.default_rng(n).choice([-1, 1], exact.shape)
    rounded = (exact * (1 + products.EPSILON[dtype] / 2 * signs)).astype(a.dtype)
    products.check(a, b, rounded, dtype)
    for wrong in (np.roll(rounded, 1, 0), np.zeros_like(rounded), rounded * np.float32(1.5), rounded.T):
        with pytest.raises(WrongResultError, match="no time is reported"):
            products.check(a, b, wrong, dtype)


def test_numbers_that_are_not_random_are_found_out():
    one, two = 1 - np.random.default_rng(0).random((2, 4096))
    assert generators.not_random(one, two) is None
    assert "twice" in generators.not_random(one, one)
    assert "outside" in generators.not_random(one - 1, two)
    assert "mean" in generators.not_random(one**2, two)
    assert "variance" in generators.not_random((one + two) / 2, two)
    assert "sixteenth" in generators.not_random((np.floor(one * 8) + 0.5) / 8, two)


def test_every_peak_has_a_unit_and_a_source():
    for rates in peaks.rates().values():
        for rate in rates.values():
            assert rate.keys() == {"value", "unit", "status", "source"}
            assert rate["unit"] == "Flop/cycle"
            assert rate["status"] in ("documented", "derived")
            assert re.search(r"NVIDIA .+: .+", rate["source"])


def test_a_data_sheet_follows_from_the_table():
    device = SimpleNamespace(architecture="sm_90", sm_count=132, attribute=lambda name: 1_830_000)
    assert peaks.flops_per_ns(device, "bf16", 1.0) == pytest.approx(989.4e3, rel=1e-3)
    assert peaks.flops_per_ns(device, "bf16", 1.98) > 1e6  # a clock measured above what the driver says
    assert peaks.flops_per_ns(SimpleNamespace(architecture="sm_10"), "f32", 1.0) is None


def test_power_is_energy_between_two_steps_of_the_counter():
    now = [0.0]
    counter = SimpleNamespace(joules=lambda: 300.0 * (now[0] // 0.1) * 0.1)
    meter = power.Meter(counter, clock=lambda: now[0])
    for _ in range(25):
        now[0] += 0.01
        meter.look()
    assert meter.watts() is None  # a tenth of a second between two ends, each off by a hundredth
    for _ in range(20):
        now[0] += 0.01
        meter.look()
    assert meter.watts() == pytest.approx(300, rel=0.1)
    silent = power.Meter(SimpleNamespace(joules=lambda: None))
    silent.look()
    assert (silent.counts, silent.watts()) == (False, None)


def test_rows_carry_the_share_of_the_peak_and_the_rate_per_watt():
    record = Record(
        values_ns=[100.0] * 8, first_ns=1.0, notes=tuple(remarks("library: PyTorch 2")), work=2000, limit_ns=50.0,
        limit_name="gpu_peak",
    )  # fmt: skip
    drawn = (None, 400.0, 420.0, 410.0, None, 410.0)
    found = Measured.of([dataclasses.replace(record, watts=watts) for watts in drawn])
    rows = of_samples(Context("r", "s", "m", "cuda", ()), asked("matmul")["experiment"], (), found, found.limit)
    rates = {row["metric"]: row for row in rows}
    assert rates["flop_rate"]["value"] == pytest.approx(2e13 / 1e3)
    assert rates["flop_rate"]["limit"] == pytest.approx(2 * rates["flop_rate"]["value"])
    assert rates["flop_rate"]["limit_name"] == "gpu_peak"
    per_watt = rates["flop_rate_per_watt"]
    assert per_watt["value"] == pytest.approx(rates["flop_rate"]["value"] / 410)
    assert "library: PyTorch 2; at 410 W drawn" in per_watt["reason"]


@pytest.mark.parametrize(
    "name", [f"{module}.{name}" for module, names in {
        "cublas": ("gemmEx", "create", "destroy", "getVersion"),
        "curand": ("createGenerator", "destroyGenerator", "setPseudoRandomGeneratorSeed", "generateUniformDouble",
                   "getVersion"),
        "nccl": ["get_version", *(f"NcclCommunicator.{name}"
                                  for name in ("initAll", "rank_id", "allReduce", "allGather", "broadcast"))],
    }.items() for name in names]
)  # fmt: skip
def test_stand_ins_have_the_signatures_of_cupy(name, monkeypatch):
    module, _, function = name.partition(".")
    real = libraries.cupy(module)
    if real is None:
        pytest.skip(f"no CuPy with {module}: pip install -e '.[cuda-libraries]'")
    wanted = re.search(r"\((.*)\)", inspect.getdoc(operator.attrgetter(function)(real)))[1]
    spec = importlib.util.spec_from_file_location(module, STAND_INS / "cupy" / "cuda" / f"{module}.py")
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    given = list(inspect.signature(operator.attrgetter(function)(stand_in)).parameters)
    assert given == [word.split()[-1] for word in wanted.split(",") if word]
    for constant in (word for word in vars(stand_in) if word.isupper() and not word.startswith("_")):
        assert getattr(real, constant) == getattr(stand_in, constant), constant
