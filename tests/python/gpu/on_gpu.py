"""Measures what standard input asks for on the GPU of this process; the tests run it where the driver is theirs.

in    [{"experiment": {...}, "spoil": bool}, ...]
out   the GPU, then one JSON line each: {"found": ...} or {"error": [kind, text]}, then the words of all jobs by kernel
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np

from linkwright.errors import LinkwrightError
from linkwright.executors.cuda import clocks, measure, probes, stream
from linkwright.executors.cuda.device import Device, device
from linkwright.executors.cuda.job import Job
from linkwright.executors.cuda.probes import bandwidth, l2, latency, pairs, round_trips
from linkwright.executors.process import Sampling
from linkwright.experiment import Experiment

HOW = Sampling(samples=8, warmup_at_most=2, budget_s=1.0, settle_within=None, seed=3)


def main() -> None:
    gpu = device()
    found = clocks.measure(gpu, span_ns=3_000_000)
    sms = tuple(sorted(found.sms)[::-1])
    whole = measure.Gpu(gpu, sms, found.sms, found, clocks.Throttling(gpu.bus_id))
    print(json.dumps({"environment": gpu.environment(), "sms": sms, "calibration": found.calibration()}))
    words = recorded(gpu)
    for asked in json.load(sys.stdin):
        experiment = Experiment.from_json(asked["experiment"])
        with spoiled() if asked.get("spoil") else nullcontext():
            try:
                answer = probes.measure if experiment.probe else measure.run
                print(json.dumps({"found": vars(answer(whole, experiment, HOW))}))
            except LinkwrightError as error:
                print(json.dumps({"error": [type(error).__name__, str(error)]}))
    print(json.dumps(words))


def recorded(gpu: Device) -> dict[str, list]:
    """By kernel the names of its words, and whether each is an array; filled while jobs are loaded."""
    words: dict[str, list] = {}
    load = gpu.loaded

    def loaded(job: Job):
        words[job.kernel] = [job.source, [[name, isinstance(word, np.ndarray)] for name, word in job.words.items()]]
        return load(job)

    gpu.loaded = loaded
    return words


@contextmanager
def spoiled() -> Iterator[None]:
    """Other results are expected than will come."""
    spoil = {
        (stream, "memory"): lambda plain, *given: other(plain(*given)),
        (latency, "after"): lambda plain, *given: plain(*given) + 1,
        (l2, "folded"): lambda plain, *given: plain(*given) + np.uint64(1),
        (round_trips, "Line"): lambda plain, *given: plain(*given[:-1], lambda: given[-1]() + np.uint8(1)),
        (pairs, "sum_of"): lambda plain, *given: plain(*given) ^ 1,
    }
    plain = {where: getattr(*where) for where in spoil}
    for (module, name), wrong in spoil.items():
        setattr(module, name, functools.partial(wrong, plain[module, name]))
    bandwidth._FACTOR += np.uint32(1)
    try:
        yield
    finally:
        bandwidth._FACTOR -= np.uint32(1)
        for (module, name), right in plain.items():
            setattr(module, name, right)


def other(memory: stream.Memory) -> stream.Memory:
    wrong = memory.reference.copy()
    wrong[0] ^= 1
    return dataclasses.replace(memory, reference=wrong)


if __name__ == "__main__":
    main()
