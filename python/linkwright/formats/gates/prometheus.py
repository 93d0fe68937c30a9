"""Alerting rules on `nccl_bus_bandwidth_gbs`, which NCCL's Inspector exports for each GPU.

The Inspector labels a sample with collective, number of nodes and ranks, and `message_size`, a range such as `1-2GB`:
the size in the largest unit that leaves one or more (KB is 1,024 B), from its whole part to the next. It counts what
the call passes, so an allgather or reduce_scatter of n ranks has one n-th of the size of nccl-tests. Its rate is that
of a kernel on one rank, waiting for others included, so a rule looks at the fastest rank of a job.

Source: NVIDIA/nccl, plugins/profiler/inspector (inspector_prom.cc, README.md); Prometheus, alerting rules.
"""

from __future__ import annotations

from linkwright.base.errors import UsageError

from .gate import Expectation, Expected, GateFormat, commented, rate

NAMES = {
    "allreduce": "AllReduce", "allgather": "AllGather", "reduce_scatter": "ReduceScatter", "broadcast": "Broadcast",
    "reduce": "Reduce",
}  # fmt: skip
PER_RANK = ("allgather", "reduce_scatter")
UNITS = ("B", "KB", "MB", "GB", "TB")
FOR = "10m"  # how long it has to be slow


def render(expected: Expected) -> str:
    """A file of rules; sizes that share a label have the smallest of their floors."""
    rules: dict[tuple[str, str], Expectation] = {}
    for one in expected.expectations:
        if one.collective not in NAMES:
            raise UsageError(f"--format prometheus: the Inspector does not label {one.collective}; omit it")
        key = one.collective, _range(one, expected.ranks)
        rules[key] = min(rules.get(key, one), one, key=lambda one: one.floor)
    return "\n".join(
        (
            f"{commented(expected)}groups:",
            "  - name: linkwright",
            "    rules:",
            *(line for (_, size), one in rules.items() for line in _rule(expected, one, size)),
            "",
        )
    )


def _rule(expected: Expected, one: Expectation, size: str) -> list[str]:
    name = NAMES[one.collective]
    nodes = f'n_nodes="{expected.hosts}",' if expected.hosts else ""
    labels = f'collective="{name}",{nodes}nranks="{expected.ranks}",message_size="{size}"'
    return [
        f"      - alert: Nccl{name}BelowFloor",
        f"        expr: 'max by (slurm_job_id, comm_name) (nccl_bus_bandwidth_gbs{{{labels}}}) < {rate(one.floor)}'",
        f"        for: {FOR}",
        "        labels:",
        "          severity: warning",
        "        annotations:",
        f"          summary: '{one.label} on {expected.ranks} ranks is below {rate(one.floor)} GB/s, "
        f"{one.tolerance:.1%} below the model of a healthy machine'",
    ]


def _range(one: Expectation, ranks: int) -> str:
    value = float(one.size_bytes // ranks if one.collective in PER_RANK else one.size_bytes)
    unit = 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{max(1, int(value))}-{max(1, int(value)) + 1}{UNITS[unit]}"


PROMETHEUS = GateFormat(
    "prometheus", "alerting rules of Prometheus on the metrics of NCCL's Inspector (YAML)",
    "A rule for each collective and range of sizes: an alert if the fastest rank of a job stays below the floor for "
    "ten minutes.",
    "NVIDIA/nccl, plugins/profiler/inspector", render, libraries=("nccl",),
)  # fmt: skip
