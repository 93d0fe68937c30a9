"""Ranks as GPUs of one node: the same schedules over copies between GPUs, and NCCL's collectives beside them.

linkwright run allreduce --algorithm ring,nccl --on gpus

order.py    in which order the host may enqueue what all ranks do
node.py     the GPUs, their queues, and access to each other's memory
program.py  a schedule as copies and combinations on those queues
nccl.py     the library's own collectives on the same data
measure.py  one launch
launch.py   the process of a launch
"""

from __future__ import annotations

LAUNCH_MODULE = "linkwright.executors.gpus.launch"
# How experiments name the library's collective.
NCCL = "nccl"
# Paths of an experiment: with access to each other's memory, or by way of the host.
PEER, STAGED = "peer", "staged"
# Fewer have nobody to talk to.
LEAST = 2

ENTRY: dict[str, object] = {
    "key": "gpus",
    "summary": "ranks are GPUs of this node: schedules over copies between them, NCCL's collectives beside ours",
    "description": (
        "Messages are copies that the driver's engines carry from GPU to GPU; what is combined is copied beside its "
        "destination first, and a kernel there does the rest. Path `peer` (the default) opens the GPUs' memory to each "
        "other, path `staged` leaves it closed, so that the driver goes through the host. The algorithm `nccl` stands "
        "for NCCL's own allreduce, allgather and broadcast (`pip install linkwright[cuda-libraries]`, or "
        "[cuda13-libraries]). With one GPU every experiment is waived. Needs NVIDIA GPUs with their driver and "
        "`pip install linkwright[cuda]`, or [cuda13]."
    ),
}
