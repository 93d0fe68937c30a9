"""The paper's networks, from the workload files that `linkwright predict` reads.

    work of a batch      = batch x activations
    workload intensity   = batch x activations / parameters       computation over communication
    intensity per GPU    = intensity / GPUs                       strong scaling: the batch is split

Source: Tallent, Gawande, Siegel, Vishnu, Hoisie, "Evaluating On-Node GPU Interconnects for Deep Learning Workloads".
"""

from __future__ import annotations

from functools import lru_cache

from linkwright.advise import predict
from linkwright.advise.predict.training.workload import Workload, read
from linkwright.base import registry

DEPTHS = (1, 2, 4, 8, 16, 32)


@lru_cache(maxsize=16)
def network(key: str, depth: int | None = None) -> Workload:
    """A shipped network."""
    found = predict.read(registry.workload_path(key))
    return read(found.document, found.head, depth)


def resnets() -> dict[str, Workload]:
    """The six residual networks: name as in the paper -> network."""
    return {f"ResNet/{depth}": network("resnet", depth) for depth in DEPTHS}


def networks() -> dict[str, Workload]:
    """Name as in the paper -> network."""
    return resnets() | {"AlexNet": network("alexnet"), "GoogLeNet": network("googlenet")}
