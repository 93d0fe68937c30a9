"""One launch on the GPUs of a node: a fresh process with a context on each of them.

As on `cuda`, the clocks are measured before and after each experiment, here those of the first GPU.
"""

from __future__ import annotations

import os

from linkwright.ask.question import Question
from linkwright.store.record import Record

from ..cuda import launch
from ..cuda.device import devices
from ..cuda.probes import libraries
from ..process import Sampling, serve
from .measure import run
from .node import Node


class Measurer(launch.Measurer):
    """The GPUs of this process."""

    def __init__(self) -> None:
        # How many queues of a GPU proceed independently: with the default of 8, those of all ranks may not.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        found = devices("gpus")
        self._node = Node(found)
        found[0].make_current()
        super().__init__(gpu=found[0])

    def measure(self, question: Question, sampling: Sampling) -> Record:
        """One experiment."""
        try:
            with libraries.refusals("gpus"):
                return run(self._node, question, sampling)
        finally:
            self._node.devices[0].make_current()


if __name__ == "__main__":
    serve(lambda about: Measurer())
