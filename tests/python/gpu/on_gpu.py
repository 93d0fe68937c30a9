"""Runs the experiments on standard input on the GPU of this process, or on all of them with the argument `gpus`.

in    [{"experiment": {...}, "spoil": bool}, ...]       on several GPUs a spoilt rank waits for no other
out   one JSON line each: {"found": ...} or {"error": [kind, text]}; on one GPU a line about the GPU comes first, and
      a line with the words of all jobs by kernel last
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from linkwright.ask.question import Probe, Question, of_json
from linkwright.base.errors import LinkwrightError
from linkwright.executors.cuda import clocks, measure, probes, stream
from linkwright.executors.cuda.device import Device, device, devices
from linkwright.executors.cuda.job import Job
from linkwright.executors.cuda.probes import bandwidth, l2, latency, pairs, round_trips
from linkwright.executors.gpus import measure as several
from linkwright.executors.gpus import program
from linkwright.executors.gpus.node import Node
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

HOW = Sampling(samples=8, warmup_at_most=2, budget_s=4.0, settle_within=None, seed=3)


def main() -> None:
    if sys.argv[1:] == ["gpus"]:
        node = Node(devices("gpus"))
        answer(lambda experiment: several.run(node, experiment, HOW), unordered)
    else:
        on_one()


def on_one() -> None:
    gpu = device()
    found = clocks.measure(gpu, span_ns=3_000_000)
    sms = tuple(sorted(found.sms)[::-1])
    whole = measure.Gpu(gpu, sms, found.sms, found, clocks.Throttling(gpu.bus_id))
    print(json.dumps({"environment": gpu.environment(), "sms": sms, "calibration": found.calibration()}))
    words = recorded(gpu)
    run = lambda experiment: (probes.measure if isinstance(experiment, Probe) else measure.run)(whole, experiment, HOW)  # noqa: E731
    answer(run, spoiled)
    print(json.dumps(words))


def answer(run: Callable[[Question], Record], spoil: Callable[[], AbstractContextManager]) -> None:
    for request in json.load(sys.stdin):
        with spoil() if request.get("spoil") else nullcontext():
            try:
                print(json.dumps({"found": vars(run(of_json(request["experiment"])))}))
            except LinkwrightError as error:
                print(json.dumps({"error": [type(error).__name__, str(error)]}))


@contextmanager
def unordered() -> Iterator[None]:
    """No rank waits for another."""
    ordered = program.ordered
    program.ordered = lambda made: [dataclasses.replace(operation, after=()) for operation in ordered(made)]
    try:
        yield
    finally:
        program.ordered = ordered


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
