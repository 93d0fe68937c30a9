"""What NCCL would choose, and the rings of its early versions.

    import linkwright as lw
    from linkwright.libraries import nccl

    seen = nccl.hardware(machine, tuple(range(machine.ranks)))      since 2.18: what it sees of a machine
    choice = nccl.chooser("2.27", seen).choose("allreduce", 1 << 20)
    choice.algorithm, choice.protocol, choice.channels              ("ring", "ll", 24) on eight H100

    rings = nccl.rings("2.3.5", nccl.nvlinks(machine))              1.3.4 and 2.3.5: who is connected with whom
    schedule = lw.schedule("allreduce", "ring", ranks=8, size="64M", rings=rings)

Early versions build rings from links alone: 1.3.4 makes one ring in index order; 2.3.5 searches rings over NVLink.
Later ones search channels, predict each algorithm and protocol with constants of their own, and take the fastest.

Sources: NCCL 1.3.4, 2.3.5 and those that `constants.toml` names.
"""

from linkwright.libraries.nccl.choice import Choice, Chooser, chooser
from linkwright.libraries.nccl.hardware import Hardware, hardware
from linkwright.libraries.nccl.plans import (
    MODES,
    VERSIONS,
    Planned,
    alternatives,
    collectives,
    planned,
    required_modes,
    summary,
)
from linkwright.libraries.nccl.protocol import Plan, low_latency, plan
from linkwright.libraries.nccl.search import VERSIONS as EARLY
from linkwright.libraries.nccl.search import nvlinks, rings

NAME = "NCCL"

__all__ = [
    "EARLY", "MODES", "NAME", "VERSIONS", "Choice", "Chooser", "Hardware", "Plan", "Planned", "alternatives", "chooser",
    "collectives", "hardware", "low_latency", "nvlinks", "plan", "planned", "required_modes", "rings", "summary",
]  # fmt: skip
