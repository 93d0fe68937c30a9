"""A line for the node health check of Azure (azurehpc-health-checks): allreduce within a node.

`check_nccl_allreduce EXPECTED REPEATS TOPOLOGY SIZE` and `check_rccl_allreduce EXPECTED REPEATS SIZE` run all GPUs of
the node at one size and fail below EXPECTED.

Source: Azure/azurehpc-health-checks, customTests/azure_nccl_allreduce.nhc, azure_rccl_allreduce.nhc and conf.
"""

from __future__ import annotations

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size

from .gate import Expected, GateFormat, commented, rate

REPEATS = 1  # the check passes if one of the repeats does


def render(expected: Expected) -> str:
    """The line of a configuration file."""
    one = expected.largest("nhc")
    if expected.hosts != 1:  # nor a machine of several hosts, such as a rack of trays
        raise UsageError(
            "--format nhc: the check is of one node; omit --nodes and --fabric, and name a machine of one host"
        )
    library = expected.library["allreduce"].partition("-")[0]
    topology = hint = ""
    if library == "nccl":
        topology, hint = "TOPOLOGY ", "# TOPOLOGY: file of your VM size, such as /opt/microsoft/ndv5-topo.xml\n"
    return (
        f"{commented(expected)}{hint}"
        f" * || check_{library}_allreduce {rate(one.floor)} {REPEATS} {topology}{format_size(one.size_bytes)}\n"
    )


NHC = GateFormat(
    "nhc", "a line for the node health check of Azure (azurehpc-health-checks)",
    "check_nccl_allreduce or check_rccl_allreduce at the largest size, within one node. The check fails below the "
    "number. For NCCL, replace TOPOLOGY by the topology file of the VM size.",
    "Azure/azurehpc-health-checks, customTests and conf", render, libraries=("nccl", "rccl"),
)  # fmt: skip
