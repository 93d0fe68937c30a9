"""Probes of computing: right results, right counts, limits from the same run, reasons where there is no number."""

import numpy as np
import pytest

from linkwright import _native
from linkwright.base.errors import OutOfTimeError, WaivedError, WrongResultError
from linkwright.executors import probes
from linkwright.executors.measured import Measured
from linkwright.executors.peaks import FLOP_RATE, STORE, Peaks
from linkwright.executors.probes import Setting, convolution, matmul, random
from linkwright.session.suite import axes as suite_axes
from linkwright.session.suite.rows import Context, of_samples

FEW = Setting(cpus=tuple(_native.cpus()), budget_s=5, samples=3, warmup_at_most=1)


GENERATORS = probes.find("random").axis("generator").words


def launch(key, **given):
    """One short launch of a probe."""
    return probes.measure(key, probes.find(key).assignment(given), FEW)


def experiment(key, **given):
    axes = {axis: (value,) for axis, value in given.items()}
    found = suite_axes.questions("part", probes.find(key), axes, 2, 1 << 20, [None])
    return next(iter(found))


def test_a_product_is_counted_and_checked():
    found = launch("matmul", n=24, dtype="f64")
    assert found.work == 2 * 24**3
    assert sum(found.dropped.values()) + len(found.values_ns) >= 1
    assert found.batch > 1, "a product of microseconds is repeated within a sample"


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_one_wrong_element_of_a_product_yields_no_number(kind):
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal((96, 96)).astype(kind) for _ in range(2))
    c = (a.astype(float) @ b.astype(float)).astype(kind)
    matmul.check(a, b, c)
    c[7, 9] += 30
    with pytest.raises(WrongResultError, match="no time is reported"):
        matmul.check(a, b, c)


def test_what_does_not_fit_is_waived_with_the_numbers():
    with pytest.raises(WaivedError, match="a quarter of what is free"):
        launch("matmul", n=10_000_000)
    hurried = Setting(cpus=FEW.cpus, budget_s=1e-9)
    with pytest.raises(OutOfTimeError, match="give more with --time-budget"):
        probes.measure("matmul", probes.find("matmul").assignment({"n": 64}), hurried)
    with pytest.raises(WaivedError, match="threads need as many processors"):
        launch("matmul", n=16, threads=100_000)


@pytest.mark.parametrize("layer", ["ssd.conv10", "ssd.conv8", "resnext.conv5_2", "ssd.conv6"])
def test_a_layer_is_convolved_as_counted(layer):
    pytest.importorskip("onnxruntime", reason="`pip install -e '.[compute]'` brings onnxruntime")
    pytest.importorskip("onnx", reason="`pip install -e '.[compute]'` brings onnx")
    found = launch("convolution", layer=layer, batch=2)
    assert found.work == 2 * convolution.layers()[layer]["flops"]


def test_one_wrong_element_of_a_layer_yields_no_number():
    layer = {"filter": 3, "input": 5, "stride": 2, "groups": 1, "out_channels": 1, "output": 3}
    x, w = np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3), np.float32)
    y = np.array([[4, 6, 4], [6, 9, 6], [4, 6, 4]], np.float32)[None, None]
    convolution.check(layer, x, w, y, seed=1)
    with pytest.raises(WrongResultError, match="no time is reported"):
        convolution.check(layer, x, w, y + 1, seed=1)


def test_sixteen_bits_are_computed_as_such_or_waived():
    pytest.importorskip("onnxruntime", reason="`pip install -e '.[compute]'` brings onnxruntime")
    pytest.importorskip("onnx", reason="`pip install -e '.[compute]'` brings onnx")
    try:
        work, reason = launch("matmul", n=16, dtype="f16")["work"], ""
    except WaivedError as error:
        work, reason = 0, str(error)
    assert work == 2 * 16**3 or "converts float16" in reason or "has no float16 kernel" in reason


@pytest.mark.parametrize("generator", [w for w in GENERATORS if w != "machine" and not w.startswith("curand")])
def test_every_generator_fills_blocks(generator):
    found = launch("random", generator=generator, block="1K")
    assert found.work == 128


@pytest.mark.parametrize(
    ("key", "given"),
    [("matmul", {"dtype": "bf16"}), ("convolution", {"dtype": "tf32"}), ("random", {"generator": "curand_xorwow"})],
)
def test_what_only_a_gpu_computes_is_waived_with_the_cure(key, given):
    with pytest.raises(WaivedError, match="measure it with --on cuda"):
        launch(key, **given)


def test_the_generator_of_a_described_machine_is_not_here():
    with pytest.raises(WaivedError):
        launch("random", generator="machine", block="1K")


def test_numpy_generators_work_side_by_side():
    if len(FEW.cpus) < 2:
        pytest.skip("needs two processors")
    found = launch("random", generator="numpy_sfc64", block="64K", threads=2)
    assert found.work == 2 * 8192
    with pytest.raises(WaivedError, match="at least one sample"):
        random.measure({"generator": "numpy_sfc64", "block": 4, "threads": 1}, FEW)


def measured(work, *times):
    one = np.array(times)
    return Measured((one,) * 6, one[0], {}, (), carried={"work_rate": work, "counted_rate": 0, "moved_rate": 0})


def test_products_are_shares_of_the_peak_of_the_same_type_and_threads():
    peaks = Peaks.of(
        [
            (experiment("fma_peak", dtype="f32", threads="2"), measured(1000, 10.0, 12.0)),
            (experiment("random", generator="store"), measured(8192, 700.0)),
            (experiment("fma_peak", dtype="f64"), None),
        ]
    )
    product = experiment("matmul", n="10", dtype="f32", threads="2")
    found = measured(2000, 40.0)
    assert peaks.best(product, found) == (20.0, FLOP_RATE)
    assert peaks.best(experiment("matmul", n="10", dtype="f64"), found) is None
    assert peaks.best(experiment("random", generator="numpy_sfc64"), found) == (700.0, STORE)
    assert peaks.best(experiment("random", generator="store"), found) is None

    rows = of_samples(Context("r", "s", "m", "threads", (), watts=5), product, (), found, (20.0, FLOP_RATE))
    rate, efficiency = (next(r for r in rows if r["metric"] == m) for m in ("flop_rate", "flop_rate_per_watt"))
    assert (rate["value"], rate["best_seen"], rate["unit"]) == (50e9, 100e9, "Flop/s")
    assert (efficiency["value"], efficiency["unit"]) == (10e9, "Flop/s/W")
    assert "nominal 5 W" in efficiency["reason"]
