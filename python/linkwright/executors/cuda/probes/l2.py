"""The near and the far partition of the L2: `sm_l2_latency` line by line, `sm_l2_bandwidth` from either side.

The reference of `l2_lines.cu`: every line leads back to itself, and the XOR of the lines read is known.

Only their latencies tell which lines are near an SM. They are split in two so that the sums of squares within both
sides are least (2-means in one dimension). The split counts if the means of the sides lie `APART` standard deviations
apart and neither side is tiny: evenly spread latencies lie 3.5 apart, a bell curve 2.7. Without a split the GPU shows
one partition, and all lines count as near.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record, remarks

from ..device import Loaded
from ..measure import Gpu
from .latency import LINE_BYTES
from .sampling import SAMPLES, enough_sms, fits, job, run, sampled

ROUNDS = 8
THREADS = 1024
APART = 5.0
LEAST_SHARE = 0.1
_WORDS = LINE_BYTES // 8
_ONE_PARTITION = "the latencies of its lines form one group: one partition, or copies of what the other one holds"


def near_lines(latencies: np.ndarray) -> np.ndarray:
    """Whether each line is near; all are if the latencies form one group."""
    order = np.argsort(latencies, kind="stable")
    ordered = latencies[order].astype(float)
    n, least = len(ordered), max(2, int(np.ceil(LEAST_SHARE * len(ordered))))
    found = np.ones(n, bool)
    cuts = np.arange(least, n - least + 1)
    if not len(cuts):
        return found
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    below = squares[cuts - 1] - sums[cuts - 1] ** 2 / cuts
    above = squares[-1] - squares[cuts - 1] - (sums[-1] - sums[cuts - 1]) ** 2 / (n - cuts)
    best = int(np.argmin(below + above))
    cut, within = int(cuts[best]), np.sqrt(max(0.0, (below + above)[best]) / n)
    if ordered[cut:].mean() - ordered[:cut].mean() > APART * within:
        found[order[cut:]] = False
    return found


def folded(memory: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The XOR of all words of the chosen lines, by SM."""
    return np.bitwise_xor.reduce(memory[chosen].reshape(len(chosen), -1), axis=1)


def sm_l2_latency(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One access of one line, and the latencies of each side."""
    key = "sm_l2_latency"
    with _lines(key, gpu, axes, sms, atomic=axes["access"] == "atomic") as loaded:
        lines = loaded.number("lines")
        found = sampled(
            gpu, loaded, how, operations=ROUNDS * lines, check=_led_back(key, loaded), least_cycles=1, spans=lines
        )
        latencies = gpu.clocks.ns(_cycles(loaded)) / ROUNDS
    near = np.array([near_lines(of_sm) for of_sm in latencies])
    columns = {"near": _middle(latencies[near]), "near_share": [float(near.mean())]}
    columns |= {} if near.all() else {"far": _middle(latencies[~near])}
    notes = remarks(f"no far side: {_ONE_PARTITION}" if near.all() else None)
    nearest, farthest = np.percentile(latencies, (5, 95))
    columns |= {"nearest": [float(nearest)], "farthest": [float(farthest)]}
    return dataclasses.replace(found, columns=columns).noted(*notes)


def sm_l2_bandwidth(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One pass of every SM over equally many lines of one side."""
    key, side = "sm_l2_bandwidth", str(axes["side"])
    with _lines(key, gpu, axes, sms, atomic=side != "any") as loaded:
        run(gpu, loaded)
        _led_back(key, loaded)()
        latencies = _cycles(loaded)
        chosen = [_side(gpu, of_sm, side) for of_sm in latencies]
        count = min(len(lines) for lines in chosen)
        chosen = np.array([lines[:count] for lines in chosen], np.uint32)
        loaded.write("chosen", chosen)
        loaded.set("count", count)
        loaded.set("stream", 1)
        wanted = folded(loaded.read("memory"), chosen)

        def check() -> None:
            if not np.array_equal(np.bitwise_xor.reduce(loaded.read("folds"), axis=1), wanted):
                raise WrongResultError(f"{key}: an SM read data that its lines do not hold; no value is reported")

        counted = chosen.size * LINE_BYTES
        return sampled(gpu, loaded, how, operations=1, check=check, counted_bytes=counted, moved_bytes=counted)


@contextmanager
def _lines(key: str, gpu: Gpu, axes: dict, sms: list[int], *, atomic: bool) -> Iterator[Loaded]:
    """A job whose lines hold their own addresses, followed by noise."""
    chosen = enough_sms(key, sms, int(axes["threads"]))
    lines, parts = int(axes["working_set"]) // LINE_BYTES, len(chosen)
    most = (gpu.device.most_shared_bytes - LINE_BYTES) // 4
    if not 2 <= lines <= most:
        raise WaivedError(f"{key}: waived: it looks at 2 to {most} lines of {LINE_BYTES} bytes, not at {lines}")
    fits(key, gpu, lines * LINE_BYTES)
    words = {
        "lines": lines,
        "rounds": ROUNDS,
        "atomic": int(atomic),
        "stream": 0,
        "count": 0,
        "memory": np.zeros((lines, _WORDS), np.uint64),
        "took": np.zeros((parts, SAMPLES, lines), np.uint32),
        "chosen": np.zeros((parts, lines), np.uint32),
        "folds": np.zeros((parts, THREADS), np.uint64),
        "fold_threads": THREADS,
        "lost": np.zeros(1, np.uint64),
    }
    made = job(gpu, "l2_lines", chosen, words, threads=THREADS, shared_bytes=4 * lines)
    with gpu.device.loaded(made) as loaded:
        memory = np.random.default_rng(lines).integers(0, 1 << 63, (lines, _WORDS), np.uint64)
        memory[:, 0] = loaded.address("memory") + LINE_BYTES * np.arange(lines, dtype=np.uint64)
        loaded.write("memory", memory)
        yield loaded


def _led_back(key: str, loaded: Loaded):
    def check() -> None:
        lost = int(loaded.read("lost")[0])
        if lost:
            raise WrongResultError(f"{key}: {lost} lines did not lead back to themselves; no value is reported")

    return check


def _cycles(loaded: Loaded) -> np.ndarray:
    """By (SM, line): the median over the samples of the last kernel."""
    return np.median(loaded.read("took"), axis=1)


def _side(gpu: Gpu, latencies: np.ndarray, side: str) -> np.ndarray:
    """Numbers of the lines on one side of an SM."""
    near = near_lines(latencies)
    if side != "any" and near.all():
        raise WaivedError(f"sm_l2_bandwidth: waived: {gpu.device.name} shows no sides: {_ONE_PARTITION}")
    return np.flatnonzero({"any": np.ones_like(near), "near": near, "far": ~near}[side])


def _middle(values: np.ndarray) -> list[float]:
    return [float(np.median(values))]
