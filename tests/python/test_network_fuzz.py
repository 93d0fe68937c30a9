"""Mutants of descriptions of networks: each gives a machine or one message, in seconds and within bounds.

Seeds are counted from `LINKWRIGHT_FUZZ_SEED`; each format runs for `LINKWRIGHT_FUZZ_SECONDS` or for some mutants.
"""

from pathlib import Path

import pytest

import mutants
from linkwright import _native
from linkwright.discovery import networks
from test_fuzz import judged, seeds

FOLDER = Path(__file__).parent.parent / "networks"
GOOD = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}
BY_FORMAT = {
    network.key: [text for text in GOOD.values() if networks.recognised(text) is network]
    for network in networks.NETWORKS
}
# No mutant of a file of a few lines needs more.
MOST_CHARACTERS = 30_000_000


@pytest.mark.parametrize("network", networks.NETWORKS, ids=lambda network: network.key)
def test_mutants(network):
    assert BY_FORMAT[network.key]
    for seed, rng in seeds(80):
        text = mutants.text(rng, rng.choice(BY_FORMAT[network.key]))
        with judged(network.key, seed, text):
            made = networks.machine_file(network, text, "fuzzed")
            assert len(made) < MOST_CHARACTERS
            assert _native.Machine.parse(made, "x.toml").ranks >= 2
