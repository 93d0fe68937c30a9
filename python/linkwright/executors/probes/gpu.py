"""Probes that only a GPU answers, measured by `linkwright.executors.cuda.probes`; `gpu.toml` describes them.

A GPU also answers probes of the catalogue whose axes fit: `memory_latency` (in pages of 2 MiB), `memory_bandwidth`,
and `cache_line` between any two SMs.
"""

from __future__ import annotations

import functools

from linkwright.base import toml
from linkwright.base.errors import WaivedError

from . import Axes, Setting, stated


def _on_a_gpu(key: str, axes: Axes, setting: Setting) -> dict:
    raise WaivedError(f"probe {key}: waived: it needs the SMs of a GPU; measure it with --on cuda")


PROBES = tuple(
    stated(row, functools.partial(_on_a_gpu, row["key"])) for row in toml.data_file(__file__, "gpu.toml")["probe"]
)
