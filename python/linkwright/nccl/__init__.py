"""Rings as NCCL builds them, from links alone: who is connected with whom, and how often.

Two versions, because they build differently: 1.3.4 makes one ring in index order; 2.3.5 searches rings over NVLink. An
order of ranks is all that comes out; ring algorithms take it (`rings=`) and know nothing of links.

    import linkwright as lw
    from linkwright import nccl

    machine = lw.machine("dgx1-p100")
    rings = nccl.rings("2.3.5", nccl.nvlinks(machine))
    schedule = lw.schedule("allreduce", "ring", ranks=8, size="64M", rings=rings)

Sources: NCCL 1.3.4 and 2.3.5.
"""

from linkwright.nccl.planned import COLLECTIVES, MODES, planned
from linkwright.nccl.protocol import Plan, low_latency, plan
from linkwright.nccl.search import VERSIONS, nvlinks, rings

NAME = "NCCL"

__all__ = ["COLLECTIVES", "MODES", "NAME", "VERSIONS", "Plan", "low_latency", "nvlinks", "plan", "planned", "rings"]
