"""Helm values of NVSentinel's preflight checks: NCCL allreduce within a node, or of a gang of nodes.

Both compare the bus rate with `BW_THRESHOLD_GBPS`, in GB/s despite its name, without a margin. Within a node the size
is `TEST_SIZE_MB`; of a gang it is every one of `MESSAGE_SIZES`, so only the largest is named.

Source: NVIDIA/NVSentinel, docs/configuration of preflight, and preflight-checks.
"""

from __future__ import annotations

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size

from .gate import Expected, GateFormat, commented, rate

MIB = 1 << 20


def render(expected: Expected) -> str:
    """Values that override those of the chart."""
    one = expected.largest("nvsentinel")
    if one.size_bytes % MIB:
        raise UsageError(f"--format nvsentinel: {one.label} is not a whole number of MiB; choose other --sizes")
    check, name, size = (
        ("preflight-nccl-loopback", "TEST_SIZE_MB", str(one.size_bytes // MIB))
        if expected.hosts == 1
        else ("preflight-nccl-allreduce", "MESSAGE_SIZES", format_size(one.size_bytes))
    )
    return (
        f"{commented(expected)}"
        "# Helm replaces lists as a whole: add these variables to the entry of your own values, which has the image.\n"
        "preflight:\n"
        "  initContainers:\n"
        f"    - name: {check}\n"
        "      env:\n"
        "        - name: BW_THRESHOLD_GBPS\n"
        f'          value: "{rate(one.floor)}"\n'
        f"        - name: {name}\n"
        f'          value: "{size}"\n'
    )


NVSENTINEL = GateFormat(
    "nvsentinel", "Helm values of NVSentinel's preflight checks (YAML)",
    "BW_THRESHOLD_GBPS and the size of preflight-nccl-loopback (one node) or preflight-nccl-allreduce (several). The "
    "bus rate of the allreduce is compared with the number as it is.",
    "NVIDIA/NVSentinel, configuration of preflight", render, libraries=("nccl",),
)  # fmt: skip
