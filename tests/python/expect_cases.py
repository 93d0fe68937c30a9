"""Public floors of allreduce at a large size, with what was measured there, in GB/s."""

from typing import NamedTuple

from linkwright.advise import expect
from linkwright.machines import Variant

GIB = 1 << 30


class Public(NamedTuple):
    """A floor that operators ship, and what is asked here for it."""

    where: str
    machine: str
    variant: Variant
    ranks: int | None
    size_bytes: int
    shipped: int
    measured: int
    between: bool  # whether our floor is between the two

    @property
    def ours(self) -> float:
        """Our floor."""
        asked = expect.Installation(self.machine, self.variant, self.ranks)
        (one,) = expect.expectations(expect.systems(asked, ["allreduce"]), [self.size_bytes])
        return one.floor


# Where the number of ranks is not public, two nodes are asked about. Those with `False` are recorded misses: no number
# was changed to meet them.
PUBLIC = (
    Public(
        "16 H100 over GCP TCPXO (NVIDIA/aicr#1565)", "hgx-h100", Variant(2, "gcp-tcpxo"), None, 8 * GIB, 300, 338, False
    ),
    Public("GB200, all of an NVL72 (NVIDIA/aicr#2784)", "gb200-nvl72", Variant(), None, 16 * GIB, 450, 770, False),
    Public("GB200, two trays of an NVL72 (the same)", "gb200-nvl72", Variant(), 8, 16 * GIB, 450, 770, True),
    Public(
        "A100 over Azure InfiniBand, ranks unstated (NVIDIA/NVSentinel#837)", "dgx-a100", Variant(2, "hdr-fat-tree"),
        None, 4 * GIB, 100, 165, False,
    ),
    Public(
        "H100 over AWS EFA, ranks unstated (the same)", "hgx-h100", Variant(2, "efa-p5"), None, 4 * GIB, 100, 335, False
    ),
)  # fmt: skip
