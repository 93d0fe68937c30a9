"""Importers of what hosts with GPUs say about themselves, by format.

An importer is a module with `KEY`, `SUMMARY`, `recognises` and `read_node`, and a line in `HOSTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from linkwright.base.errors import UsageError
from linkwright.formats.discovery import hwloc_topology, nccl_topology, nvidia_topology, rocm_topology
from linkwright.formats.discovery.node import CpuHost, Node
from linkwright.machines.gpus import GpuKind


@dataclass(frozen=True)
class Host:
    """A format that describes a node: how its texts are recognised and read."""

    key: str
    summary: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str, GpuKind | None], Node | CpuHost]
    links: str | None = None  # class of the links of the only maker's GPUs that it describes

    def check(self, gpu: GpuKind, file: str) -> GpuKind:
        """The GPU, which must be of a maker that this format describes."""
        if self.links and gpu.links != self.links:
            raise UsageError(f"--gpu {gpu.name}: {file} is of {self.key}, which does not list such GPUs; correct --gpu")
        return gpu


def _of(module: ModuleType) -> Host:
    return Host(module.KEY, module.SUMMARY, module.recognises, module.read_node, getattr(module, "LINKS", None))


# In the order in which they are tried; no text is recognised by two.
HOSTS = tuple(map(_of, (nccl_topology, nvidia_topology, rocm_topology, hwloc_topology)))


def recognised(text: str) -> Host | None:
    """The format of a text."""
    return next((host for host in HOSTS if host.recognises(text)), None)
