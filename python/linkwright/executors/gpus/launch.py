"""One launch on the GPUs of a node: a fresh process with a context on each of them.

As on `cuda` the clocks are looked at before and after each experiment, here those of the first GPU.
"""

from __future__ import annotations

import contextlib
import os

from linkwright.suite.experiment import Experiment
from linkwright.suite.launch import serve

from ..cuda import launch
from ..cuda.device import devices
from ..cuda.probes import libraries
from .measure import run
from .node import Node


class Measurer(launch.Measurer):
    """The GPUs of this process."""

    def __init__(self, plan: dict):
        # So many queues of a GPU go on without each other; by default eight do, and those of all ranks may meet on one.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        found = devices("gpus")
        self._node = Node(found)
        found[0].make_current()
        super().__init__({"sms": ()}, found[0])

    def measure(self, experiment: Experiment, plan: dict, budget_s: float) -> dict[str, object]:
        """One experiment, as plain values for the journal."""
        try:
            with libraries.refusals("gpus"):
                return run(self._node, experiment, launch.how(plan, budget_s))
        finally:
            self._node.devices[0].make_current()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        serve(Measurer)
