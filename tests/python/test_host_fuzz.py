"""Mutants of what hosts say about themselves: each gives a machine or one message, in seconds and within bounds.

Seeds are counted from `LINKWRIGHT_FUZZ_SEED`; each format runs for `LINKWRIGHT_FUZZ_SECONDS` or for some mutants.
"""

from pathlib import Path

import pytest

import mutants
from linkwright.discovery import hosts, importing
from test_fuzz import judged, seeds

FOLDER = Path(__file__).parent.parent / "hosts"
GOOD = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}
GPUS = {"nvidia-smi": "A100", "rocm-smi": "MI250X"}
MOST_CHARACTERS = 1_000_000


@pytest.mark.parametrize("host", hosts.HOSTS, ids=lambda host: host.key)
def test_mutants(host):
    good = [text for text in GOOD.values() if host.recognises(text)]
    assert good
    for seed, rng in seeds(80):
        text = mutants.text(rng, rng.choice(good))
        with judged(host.key, seed, text):
            made = importing.machine_file(text, "fuzzed", name="x", format_key=host.key, gpu=GPUS.get(host.key))
            assert len(made) < MOST_CHARACTERS
