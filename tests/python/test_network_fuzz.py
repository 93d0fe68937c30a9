"""Mutants of descriptions of networks: each gives a machine or one message, in seconds and within bounds.

Seeds are counted from `LINKWRIGHT_FUZZ_SEED`; each format runs for `LINKWRIGHT_FUZZ_SECONDS` or for some mutants.
"""

import pytest

from test_network_imports import FILES


@pytest.mark.parametrize("key", FILES.formats)
def test_mutants(key):
    FILES.judge_mutants(key)
