"""Section 5.3: random numbers in bulk by block size, figures 5.4 and 5.5; the report prints no table.

One rate for each device, as printed, so this draws the model and tests nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwright_evidence.ipu.arithmetic import device

SAMPLE_BYTES = 8
BLOCKS = tuple(SAMPLE_BYTES << power for power in range(24))


def figures_5_4_and_5_5() -> Iterable[dict]:
    """Samples per second by the block of one endpoint, beside the printed rate."""
    for name in ("IPU", "V100"):
        one = device(name)
        limit = float(one.numbers["probe.compute.random.rate"]["value"]) * one.threads
        capacity = float(one.numbers["endpoints.capacity"]["value"]) * (1 << (10 if name == "IPU" else 30))
        for block in BLOCKS:
            if block > capacity:
                break
            found = one.ask("random", {"generator": "machine", "block": block, "threads": one.threads})
            samples = found["work"] / found["time_ps"] * 1e3
            yield {
                "device": name,
                "block_bytes": block,
                "gsamples_per_s": samples,
                "gsamples_per_s_per_w": samples / one.power_w,
                "limit_gsamples_per_s": limit,
            }
