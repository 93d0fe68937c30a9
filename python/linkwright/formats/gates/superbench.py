"""Rules for `sb result diagnosis` of SuperBench: a rule for each collective and size, without a baseline.

Metrics are `nccl-bw/OPERATION_BYTES_busbw:RANK`, or `rccl-bw`. A rule of function `value` calls a machine defective
where its criterion holds, here below the floor. A rule on return codes has to be there.

Source: microsoft/superbenchmark, docs/user-tutorial/data-diagnosis.md.
"""

from __future__ import annotations

from linkwright.base.errors import UsageError

from .gate import Expected, GateFormat, commented, rate

OPERATIONS = {
    "allreduce": "allreduce", "allgather": "allgather", "broadcast": "broadcast", "reduce": "reduce",
    "reduce_scatter": "reducescatter", "alltoall": "alltoall",
}  # fmt: skip


def render(expected: Expected) -> str:
    """The rule file."""
    benchmark = f"{next(iter(expected.library.values())).partition('-')[0]}-bw"
    lines = [
        "version: v0.10",
        "superbench:",
        "  rules:",
        "    failure-rule:",
        "      function: failure_check",
        "      criteria: lambda x:x>0",
        "      categories: Failed",
        "      metrics:",
        f"        - {benchmark}/return_code",
    ]
    for one in expected.expectations:
        if one.collective not in OPERATIONS:
            raise UsageError(f"--format superbench: {benchmark} has no {one.collective}; omit it")
        operation = f"{OPERATIONS[one.collective]}_{one.size_bytes}"
        lines += [
            f"    {operation}:",
            "      function: value",
            f"      criteria: lambda x:x<{rate(one.floor)}",
            "      categories: NCCL",
            "      metrics:",
            rf"        - {benchmark}/{operation}_busbw:\d+",
        ]
    return commented(expected) + "\n".join(lines) + "\n"


SUPERBENCH = GateFormat(
    "superbench", "rules for the data diagnosis of SuperBench (YAML)",
    "A rule for each collective and size that marks a machine as defective below the floor; it needs no baseline file. "
    "Use it with `sb result diagnosis --rule-file`.",
    "microsoft/superbenchmark, data-diagnosis.md", render, libraries=("nccl", "rccl"),
)  # fmt: skip
