"""`NCCL_TESTS_MIN_BW`: nccl-tests and rccl-tests fail if the average bus rate of a run is below 0.9 times it.

The average is over all sizes of the run, out of place and in place, so the number belongs to one collective and one
sweep of sizes, which is stated above it.

Source: NVIDIA/nccl-tests, src/common.cu (`check_avg_bw`).
"""

from __future__ import annotations

import itertools
import statistics

from linkwright.base.errors import UsageError
from linkwright.base.units import format_size

from .gate import PROGRAMS, Expected, GateFormat, commented, rate

FAILS_BELOW = 0.9  # of the number, as the tests are written


def render(expected: Expected) -> str:
    """A shell file to source before the run."""
    collectives = list(dict.fromkeys(one.collective for one in expected.expectations))
    if len(collectives) > 1:
        raise UsageError("--format nccl-tests: NCCL_TESTS_MIN_BW is one number for one run; name one collective")
    its = expected.expectations
    sizes = [one.size_bytes for one in its]
    factors = {after / before for before, after in itertools.pairwise(sizes)} or {2.0}
    if len(factors) > 1 or not min(factors).is_integer():
        raise UsageError("--format nccl-tests: the average is over a sweep; give sizes such as `1M..8G`")
    sweep = f"-b {format_size(sizes[0])} -e {format_size(sizes[-1])} -f {min(factors):.0f}"
    floor = statistics.fmean(one.floor for one in its)
    return (
        f"{commented(expected)}"
        f"# {PROGRAMS[collectives[0]]} {sweep}, {expected.ranks} ranks: fails below an average of {rate(floor)} GB/s,"
        f" {FAILS_BELOW} x the number\n"
        f"export NCCL_TESTS_MIN_BW={rate(floor / FAILS_BELOW)}\n"
    )


NCCL_TESTS = GateFormat(
    "nccl-tests", "NCCL_TESTS_MIN_BW of nccl-tests and rccl-tests",
    "A line for the shell. The tests exit with an error if the average bus rate over all sizes of the run is below "
    "0.9 times the number; it is chosen so that they fail at the average of the floors. One collective and one sweep.",
    "NVIDIA/nccl-tests, src/common.cu", render, libraries=("nccl", "rccl"),
)  # fmt: skip
