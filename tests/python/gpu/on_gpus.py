"""Measures what standard input asks for on all GPUs of this process; with `unordered` nobody waits for another rank.

in    [{"experiment": {...}, "unordered": bool}, ...]
out   one JSON line each: {"found": ...} or {"error": [kind, text]}
"""

from __future__ import annotations

import dataclasses
import json
import sys

from linkwright.errors import LinkwrightError
from linkwright.executors.cuda.device import devices
from linkwright.executors.gpus import measure, program
from linkwright.executors.gpus.node import Node
from linkwright.executors.process import Sampling
from linkwright.experiment import Experiment

HOW = Sampling(samples=4, warmup_at_most=2, budget_s=1.0, settle_within=None, seed=3)


def main() -> None:
    node = Node(devices("gpus"))
    ordered = program.ordered
    for asked in json.load(sys.stdin):
        program.ordered = unordered if asked.get("unordered") else ordered
        try:
            print(json.dumps({"found": vars(measure.run(node, Experiment.from_json(asked["experiment"]), HOW))}))
        except LinkwrightError as error:
            print(json.dumps({"error": [type(error).__name__, str(error)]}))
        program.ordered = ordered


def unordered(stream):
    from linkwright.executors.gpus.order import ordered

    return [dataclasses.replace(operation, after=()) for operation in ordered(stream)]


if __name__ == "__main__":
    main()
