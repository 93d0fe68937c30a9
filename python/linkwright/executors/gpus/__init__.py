"""Ranks as GPUs of one node: the same schedules over copies between GPUs, and NCCL's collectives for comparison.

linkwright run allreduce --algorithm ring,nccl --on gpus

order.py    an order in which the host may enqueue the work of all ranks
node.py     the GPUs, their queues, and access to each other's memory
program.py  a schedule as copies and combinations on those queues
nccl.py     the library's own collectives on the same data
measure.py  one launch
launch.py   the process of a launch
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.base.errors import ShapeError
from linkwright.base.extras import install
from linkwright.store.record import Outcome

from ..protocol import Executor, Extent, Launch, OwnAlgorithm, Target
from .names import LEAST, NCCL


class Gpus(Executor):
    """The GPUs of this node."""

    key = "gpus"
    summary = (
        "ranks are GPUs of this node (never run on hardware): schedules over copies between them, compared with NCCL"
    )
    description = (
        "Messages are copies that the driver's engines carry from GPU to GPU; operands of a combination are first "
        "copied to a staging buffer next to the destination, where a kernel combines them. Path `peer` "
        "(the default) opens the GPUs' memory to each other, path `staged` leaves it closed, so that the driver stages "
        "data through host memory. The algorithm `nccl` stands "
        f"for NCCL's own allreduce, allgather and broadcast ({install('cuda-libraries', 'cuda13-libraries')}). "
        "With one GPU every experiment is waived. Needs NVIDIA GPUs with their driver, and "
        f"{install('cuda', 'cuda13')}."
    )
    obeys = frozenset({"path", "placement"})
    own = (
        OwnAlgorithm(
            NCCL,
            "NCCL's own collective, through CuPy",
            ("allreduce", "allgather", "broadcast"),
            install("cuda-libraries", "cuda13-libraries"),
        ),
    )

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """The GPUs that the driver shows; a single one is planned as two, and every experiment waived."""
        from ..cuda.device import asked

        with asked(self.key) as devices:
            found = [device.environment() for device in devices]
        most = max(LEAST, len(found))
        if ranks is not None and ranks > most:
            raise ShapeError(f"--ranks {ranks}: this node shows {len(found)} GPUs; ask for at most {most}")
        used = ranks or most
        return Target(
            name=self.key,
            executor=self,
            machine_name=f"{len(found)} x {found[0]['gpu']}",
            extent=Extent("measured", used, grid, self.own_algorithms),
            endpoint_names=tuple(f"GPU {number}" for number in range(used)),
            about={"gpus": found},
        )

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """In a fresh process with a context on each GPU, or in this one."""
        from .. import process

        if isolated:
            return process.fresh("linkwright.executors.gpus.launch", launch)
        from .launch import Measurer

        return process.here(Measurer, launch)
