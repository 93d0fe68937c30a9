"""Networks as a data-parallel step sees them: activations per image, parameters, bytes to reduce.

    work of a batch      = batch x activations
    workload intensity   = batch x activations / parameters       computation over communication
    intensity per GPU    = intensity / GPUs                       strong scaling: the batch is split
    ResNet/x             activations = 1,204,224 x + 1,155,113    parameters = 46,211 x + 74,857

The paper prints the constant of the activations as "11,55,113": a misplaced comma, since 1,155,113 gives all six of its
table entries. AlexNet and GoogLeNet are rounded there; so they are here.

Source: Tallent, Gawande, Siegel, Vishnu, Hoisie, "Evaluating On-Node GPU Interconnects for Deep Learning Workloads".
"""

from __future__ import annotations

from dataclasses import dataclass

GRADIENT_BYTES = 4


@dataclass(frozen=True)
class Workload:
    """A network and the batches that it is trained with."""

    key: str
    activations: int  # per image
    parameters: int
    batches: tuple[int, ...]

    @property
    def payload_bytes(self) -> int:
        """Bytes of the gradient, which every step reduces over all GPUs."""
        return GRADIENT_BYTES * self.parameters

    def work(self, batch: int) -> int:
        """Activations of a batch."""
        return batch * self.activations

    def intensity(self, batch: int, gpus: int = 1) -> float:
        """Activations per parameter and GPU."""
        return self.work(batch) / self.parameters / gpus


def resnet(blocks: int) -> Workload:
    """ResNet/x: input convolution, x residual blocks, classifier."""
    return Workload(f"ResNet/{blocks}", 1_204_224 * blocks + 1_155_113, 46_211 * blocks + 74_857, (16, 32, 64))


RESNETS = tuple(resnet(blocks) for blocks in (1, 2, 4, 8, 16, 32))
ALEXNET = Workload("AlexNet", 1_400_000, 60_000_000, (256, 512))
GOOGLENET = Workload("GoogLeNet", 10_800_000, 5_500_000, (256, 512))
WORKLOADS = {workload.key: workload for workload in (*RESNETS, ALEXNET, GOOGLENET)}
