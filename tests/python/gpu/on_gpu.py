"""Measures what standard input asks for on the GPU of this process; the tests run it where the driver is theirs.

in    [{"experiment": {...}, "spoil": bool}, ...]
out   one JSON line each: {"found": ...} or {"error": [kind, text]}
"""

from __future__ import annotations

import dataclasses
import json
import sys

from linkwright.errors import LinkwrightError
from linkwright.executors.cuda import clocks, measure, stream
from linkwright.executors.cuda.device import device
from linkwright.suite.experiment import Experiment

HOW = measure.How(samples=8, warmup_at_most=2, budget_s=1.0, settle_within=None, seed=3)


def main() -> None:
    gpu = device()
    found = clocks.measure(gpu, span_ns=3_000_000)
    sms = tuple(sorted(found.sms)[::-1])
    whole = measure.Gpu(gpu, sms, found.sms, found, clocks.Throttling(gpu.bus_id))
    print(json.dumps({"environment": gpu.environment(), "sms": sms, "calibration": found.calibration()}))
    plain = stream.memory
    for asked in json.load(sys.stdin):
        if asked.get("spoil"):
            stream.memory = lambda *given: spoiled(plain(*given))
        try:
            print(json.dumps({"found": measure.run(whole, Experiment.from_json(asked["experiment"]), HOW)}))
        except LinkwrightError as error:
            print(json.dumps({"error": [type(error).__name__, str(error)]}))
        stream.memory = plain


def spoiled(memory: stream.Memory) -> stream.Memory:
    """Another result is expected than will come."""
    other = memory.reference.copy()
    other[0] ^= 1
    return dataclasses.replace(memory, reference=other)


if __name__ == "__main__":
    main()
