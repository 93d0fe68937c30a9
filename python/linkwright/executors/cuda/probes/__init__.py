"""Probes on a GPU: those of the catalogue whose axes fit, and those that only a GPU can answer.

Each is a module with a dictionary `PROBES`: key -> a function that takes the GPU, the axes, the SMs in order and
how to measure, and gives one launch as `linkwright.probes.native` does. What no module answers is waived.
"""

from __future__ import annotations

import importlib

from linkwright.errors import WaivedError
from linkwright.executors.process import Sampling
from linkwright.experiment import Experiment
from linkwright.store.record import Record

from ..measure import Gpu
from . import libraries

MODULES = (
    "latency", "l2", "bandwidth", "handover", "pairs", "together", "host_link", "round_trips",
    "products", "layers", "generators",
)  # fmt: skip


def measure(gpu: Gpu, experiment: Experiment, how: Sampling) -> Record:
    """One launch of a probe on its SMs; those that it does not name follow."""
    chosen = [gpu.sms[endpoint] for endpoint in experiment.placement or ()]
    sms = [*chosen, *(sm for sm in gpu.sms if sm not in chosen)]
    for name in MODULES:
        answers = importlib.import_module(f"{__name__}.{name}").PROBES
        if experiment.probe in answers:
            try:
                with libraries.refusals(f"probe {experiment.probe}"):
                    return answers[experiment.probe](gpu, dict(experiment.axes or ()), sms, how)
            finally:
                libraries.release()
    raise WaivedError(
        f"probe {experiment.probe}: waived: on a GPU it is not measured; `--on threads` asks the processors of the host"
    )
