"""Mutants of what hosts say about themselves, with logs and graphs: each gives a machine or one message, in seconds.

Seeds are counted from `LINKWRIGHT_FUZZ_SEED`; each format runs for `LINKWRIGHT_FUZZ_SECONDS` or for some mutants.
"""

from pathlib import Path

import pytest

import mutants
from linkwright.base.errors import LinkwrightError
from linkwright.formats.discovery import hosts, importing
from linkwright.formats.discovery.fitted import Log
from test_fuzz import judged, seeds

FOLDER = Path(__file__).parent.parent / "hosts"
GOOD = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.iterdir())}
GPUS = {"nvidia-smi": "A100", "rocm-smi": "MI250X"}
MOST_CHARACTERS = 1_000_000
FEW, MANY = 80, 5_000


def made_of(target, seed, changed, text, **how):
    """What a mutant gives: a file of this length at most, or one line."""
    with judged(target, seed, changed):
        try:
            made = importing.machine_file(text, "fuzzed", name="x", **how)
        except LinkwrightError as error:
            made = str(error)
            if "\n" in made:
                pytest.fail(f"{target}, seed {seed}: more than one line: {made}")
        assert len(made) < MOST_CHARACTERS


def host_mutants(host, count):
    good = [text for text in GOOD.values() if host.recognises(text)]
    assert good
    for seed, rng in seeds(count):
        text = mutants.text(rng, rng.choice(good))
        made_of(host.key, seed, text, text, format_key=host.key, gpu=GPUS.get(host.key))


def graph_mutants(count):
    for seed, rng in seeds(count):
        graph = mutants.text(rng, GOOD["graph.nccl.xml"])
        made_of("graph", seed, graph, GOOD["two_h100.nccl.xml"], graph=graph, graph_file="graph.xml")


def log_mutants(count):
    for seed, rng in seeds(count):
        log = mutants.text(rng, GOOD[rng.choice(["two.nccl-tests.log", "two.osu.log"])])
        made_of("log", seed, log, GOOD["two_h100.nccl.xml"], logs=[Log("a.log", log)])


@pytest.mark.parametrize("host", hosts.HOSTS, ids=lambda host: host.key)
def test_mutants(host):
    host_mutants(host, FEW)


def test_mutants_of_graphs():
    graph_mutants(FEW)


def test_mutants_of_logs():
    log_mutants(FEW // 4)


@pytest.mark.slow
def test_many_mutants():
    for host in hosts.HOSTS:
        host_mutants(host, MANY)
    graph_mutants(MANY)
    log_mutants(MANY // 10)
