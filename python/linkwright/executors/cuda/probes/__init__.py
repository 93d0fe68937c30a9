"""Probes on a GPU: those of the catalogue whose axes fit, and those that only a GPU can answer; others are waived.

Each is a function of the GPU, the axes, the SMs in order and the sampling, which returns the record of one launch.
"""

from __future__ import annotations

import importlib

from linkwright.ask.question import Probe
from linkwright.base.errors import WaivedError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..measure import Gpu
from . import libraries

# Probe -> module and function.
REGISTRY = {
    "memory_latency": "latency.memory_latency", "sm_load_latency": "latency.sm_load_latency",
    "memory_bandwidth": "bandwidth.measure",
    "sm_l2_latency": "l2.sm_l2_latency", "sm_l2_bandwidth": "l2.sm_l2_bandwidth",
    "cache_line": "handover.cache_line", "sm_cluster_latency": "handover.sm_cluster_latency",
    "sm_pair_bandwidth": "pairs.sm_pair_bandwidth", "sm_loaded_latency": "pairs.sm_loaded_latency",
    "sm_barrier": "together.sm_barrier", "sm_atomic": "together.sm_atomic",
    "gpu_copy": "host_link.gpu_copy", "round_trip": "round_trips.round_trip",
    "matmul": "products.measure", "convolution": "layers.measure", "random": "generators.measure",
}  # fmt: skip


def measure(gpu: Gpu, experiment: Probe, how: Sampling) -> Record:
    """One launch of a probe: on the SMs of its placement first, then on the others."""
    if experiment.algorithm not in REGISTRY:
        raise WaivedError(
            f"probe {experiment.algorithm}: waived: it is not measured on a GPU; `--on threads` measures the "
            "processors of the host"
        )
    chosen = [gpu.sms[endpoint] for endpoint in experiment.placement or ()]
    sms = [*chosen, *(sm for sm in gpu.sms if sm not in chosen)]
    module, _, function = REGISTRY[experiment.algorithm].partition(".")
    answer = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    try:
        with libraries.refusals(f"probe {experiment.algorithm}"):
            return answer(gpu, dict(experiment.axes), sms, how)
    finally:
        libraries.release()
