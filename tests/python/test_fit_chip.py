"""`linkwright fit` of a GPU: an invented one is found again, one of another make is predicted, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gpu_walk
from fit_cases import constant, like, measured, stored, swept
from linkwright import machines
from linkwright.advise.fit import chip, host, prediction
from linkwright.advise.fit.points import Point
from linkwright.advise.fit.protocol import Protocol
from linkwright.ask import schedules
from linkwright.ask.question import Scheduled
from linkwright_cases import invoke

L2_BYTES = 1 << 20
RANKS = (2, 4, 16)
PROTOCOL = Protocol()
# Round numbers in ns and ns per byte; of no machine.
NUMBERS = {
    "start": 150.0, "run": 350.0, "latency": 400.0, "look": 200.0, "combine_start": 100.0,
    "l2": 0.02, "total": 0.005, "beyond": 0.06, "combine_rate": 0.03,
}  # fmt: skip
PREDICTED = ("allreduce/ring", "allreduce/recursive_doubling_latency", "allreduce/swing_bandwidth",
             "allreduce/shared_memory", "broadcast/binomial")  # fmt: skip


def invented(seed: int) -> chip.Chip:
    """Each number drawn within a factor of 1.4 either way."""
    drawn = np.random.default_rng(seed)
    found = {key: value * float(np.exp(drawn.uniform(-0.33, 0.33))) for key, value in NUMBERS.items()}
    numbers = {key: constant(value) for key, value in found.items()}
    return chip.Chip("invented", "an invented GPU", "r", RANKS[-1], L2_BYTES, numbers)


def walked(question: Scheduled) -> float:
    """Times of a GPU that walks the instruction stream."""
    return gpu_walk.time_ns(schedules.of(question), question.dtype, question.op, gpu_walk.Costs())


def measured_on(time_of, noise: float) -> list[Point]:
    """What a GPU of these times would have given."""
    trips, rows = (8, 128, 2048, 32 << 10, 128 << 10), (8, 64, 512, 4 << 10, 16 << 10, 32 << 10, 256 << 10)
    collectives = (64, 512, 4096, 32768, 131072, 524288)
    return measured(time_of, swept(RANKS, (1, 7), trips, rows, collectives, PREDICTED), noise, seed=5)


def unseen_allreduce(found: chip.Chip, data: list[Point]) -> np.ndarray:
    predictions = prediction.predict(found, data, PROTOCOL)
    return prediction.errors([p for p in predictions if p.collective == "allreduce"], seen=False)


def trip_ns(model: chip.Chip) -> float:
    """Of a short message: what a ping-pong tells together, and other experiments hardly apart."""
    return sum(model.numbers[key].value for key in ("start", "run", "latency", "look"))


@pytest.mark.parametrize(("noise", "within"), [(0.05, 0.25), pytest.param(0.0, 0.02, marks=pytest.mark.slow)])
def test_an_invented_gpu_is_found_again(noise, within):
    truth = invented(2)
    data = measured_on(like(truth, PROTOCOL), noise)
    found = chip.fit(data, "invented", "an invented GPU", "r", L2_BYTES, PROTOCOL)
    for key in ("start", "run", "l2", "total", "beyond", "combine_rate"):
        assert found.numbers[key].value == pytest.approx(truth.numbers[key].value, rel=within), key
        assert found.numbers[key].low <= found.numbers[key].value <= found.numbers[key].high
    assert trip_ns(found) == pytest.approx(trip_ns(truth), rel=within)
    errors = unseen_allreduce(found, data)
    assert len(errors) > 50
    assert np.median(errors) < max(0.02, noise)


def test_a_gpu_of_another_make_is_predicted():
    """Every wait costs a look, SMs share the L2 as they come and go: not the model's mechanism, but the kernel's."""
    data = measured_on(walked, 0.03)
    found = chip.fit(data, "walked", "an invented GPU", "r", 50 << 20, PROTOCOL)
    assert np.median(unseen_allreduce(found, data)) < 0.10
    flat = host.fit(data, "walked", "an invented GPU", "r")
    assert np.median(unseen_allreduce(flat, data)) > 0.15  # without the L2 that all share it would not do


@pytest.fixture
def run(tmp_path):
    """A run of an invented GPU."""
    about = {"cuda": {"gpu": "Invented GPU", "l2_bytes": L2_BYTES}}
    return stored(tmp_path / "runs", measured_on(like(invented(2), PROTOCOL), 0.03), "Invented GPU", "cuda", about)


def test_the_verb_writes_a_gpu_that_can_be_simulated(run):
    result = invoke("fit", "--runs", str(run.folder.parent), "--name", "invented")
    assert result.status == 0, result.err
    file = run.folder / "machines" / "invented.toml"
    numbers = {n["key"]: n for n in machines.load(str(file)).numbers()}
    assert numbers["path.message.memory.cache[0].size"]["source"] == "L2, as the driver says it"
    assert numbers["path.message.memory.cache[0].total"]["status"] == "fitted"
    assert numbers["fabric.barrier"]["status"] == "derived"
    kept = json.loads((run.folder / "fit.json").read_text(encoding="utf-8"))
    unseen = [p for p in kept["predictions"] if p["collective"] == "allreduce" and not p["seen"]]
    assert np.median([abs(p["predicted_ns"] / p["measured_ns"] - 1) for p in unseen]) < 0.15
    # More SMs than it was fitted to, by simulate and as a machine of a suite.
    for arguments in (["simulate", "allreduce", "-a", "swing_latency"], ["dissect", "--runs", str(run.folder.parent)]):
        done = invoke(*arguments, "--on", str(file), "-p", "32")
        assert done.status == 0, done.err
