"""Claims 0, 18 and 19: local memory, and what an IPU and a V100 compute."""

from __future__ import annotations

from linkwright.studies.ipu import convolution, matmul, memory
from linkwright.studies.outcome import Claim


def check(found) -> list[Claim]:
    """All of them; the probes of the machines are asked, not the tables."""
    return [*memory.claims(), *convolution.claims(), *matmul.claims()]
