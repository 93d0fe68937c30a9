"""References of a ReFrame test: value, lower and upper threshold as shares of it, unit.

A test fails if what it measured is beyond a threshold. There is no upper one: a fast machine is not broken. The names
of performance variables are those of the test, which has to use these or to rename them.

Source: reframe-hpc/reframe, `reference` of a regression test.
"""

from __future__ import annotations

import math

from linkwright.base.units import format_size

from .gate import Expected, GateFormat, commented, rate


def render(expected: Expected) -> str:
    """A dictionary for the attribute `reference`, for all systems."""
    rows = [
        f"        '{one.collective}_{format_size(one.size_bytes)}_busbw': "
        f"({rate(one.busbw)}, {-math.ceil(1000 * one.tolerance) / 1000}, None, 'GB/s'),\n"
        for one in expected.expectations
    ]
    return f"{commented(expected)}reference = {{\n    '*': {{\n{''.join(rows)}    }},\n}}\n"


REFRAME = GateFormat(
    "reframe", "references of a ReFrame test (Python)",
    "For each collective and size the modelled bus rate, and the tolerance as lower threshold. Name the performance "
    "variables of your test so, or rename the keys; `*` stands for all systems.",
    "reframe-hpc/reframe, reference", render,
)  # fmt: skip
