"""The ranges of `predict llm` are those of the published rows."""

from __future__ import annotations

import pytest

from linkwright.advise.predict.llm import errors
from linkwright_evidence import spreads


def agree(keys, derived):
    kind, *rest = keys
    limits = [int(most) if most < float("inf") else 1 << 40 for most in errors.bands()]
    shipped = errors.of_allreduce(limits[int(rest[0])], True) if kind == "allreduce" else errors.spread(*keys)
    assert (shipped.usual, shipped.low, shipped.high) == pytest.approx(derived[:3], abs=0.006), keys
    assert (shipped.rows, shipped.status) == (derived[3], "derived")


@pytest.mark.slow
@pytest.mark.parametrize("derive", [spreads.of_steps, spreads.of_kernels])
def test_the_shipped_ranges_are_those_of_the_studies(derive):
    found = derive()
    for keys, derived in found.items():
        agree(keys, derived)
    assert len(found) in (3, 5)


def test_the_middle_and_the_twentieths():
    """The median of 0 to 20 is 10; below 1 and above 19 lies a twentieth each."""
    assert spreads._spread([float(value) for value in range(21)]) == (10, 1, 19, 21)
