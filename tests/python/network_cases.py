"""What tests of readers of networks share: machines of descriptions, what a message takes on them, mutants."""

import tomllib
from pathlib import Path

import pytest

import linkwright as lw
import mutants
from linkwright import _native
from linkwright.base.errors import UsageError
from linkwright.formats.discovery import networks
from linkwright_cases import invoke
from test_fuzz import judged, seeds

SIZE = 1_000_000
# No mutant of a file of a few lines needs more.
MOST_CHARACTERS = 30_000_000


class Folder:
    """A folder of good files, which some formats read."""

    def __init__(self, path, formats):
        self.texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path(path).iterdir())}
        self.formats = {network.key: network for network in formats}

    def made_of(self, text, file="x"):
        """The machine file of a text, whose one format is recognised."""
        (network,) = [network for network in self.formats.values() if network.recognises(text)]
        assert networks.recognised(text)[0].key == network.key
        return networks.machine_file(network, text, file)

    def machine(self, name, *changes):
        """The machine of a file in which texts are replaced by others."""
        text = self.texts[name]
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return _native.Machine.parse(self.made_of(text, name), "x.toml")

    def refuses(self, name, old, new, parts):
        """Assert that a changed file gives one message with these parts."""
        good = self.texts[name]
        assert old in good
        (network,) = [network for network in self.formats.values() if network.recognises(good)]
        with pytest.raises(UsageError) as caught:
            networks.machine_file(network, good.replace(old, new), "mine")
        message = str(caught.value)
        assert message.startswith("mine: ")
        assert "\n" not in message
        for part in parts:
            assert part in message

    def judge_mutants(self, key):
        """Assert that each mutant of the files of a format gives a machine or one message, within bounds."""
        network = self.formats[key]
        good = [text for text in self.texts.values() if network.recognises(text)]
        assert good
        for seed, rng in seeds(80):
            text = mutants.text(rng, rng.choice(good))
            with judged(key, seed, text):
                made = networks.machine_file(network, text, "fuzzed")
                assert len(made) < MOST_CHARACTERS
                assert _native.Machine.parse(made, "x.toml").ranks >= 2


def time_us(on, *messages):
    """The time of messages of `SIZE` bytes that begin together, each (from, to)."""
    builder = lw.Builder("pattern", ranks=on.ranks, size=SIZE, dtype="u8")
    builder.buffer("output")
    builder.step()
    for a, b in messages:
        builder.put(a, b, "output", 0)
    return lw.simulate(builder.finish(), on).time_us


def runs_once_imported(name):
    """Assert that the command line imports a file of the current folder, and simulates what it made."""
    Path("mine.toml").unlink(missing_ok=True)
    made = invoke("machines", "import", name, "--name", "mine")
    assert made.status == 0, made
    grid = tomllib.loads(Path("mine.toml").read_text(encoding="utf-8"))["endpoints"].get("grid")
    asked = ("--grid", "x".join(map(str, grid))) if grid else ()
    done = invoke("simulate", "allreduce", "-a", "ring", "--on", "./mine.toml", "--sizes", "1M", *asked)
    assert done.status == 0, done.err
    assert " ok" in done.out.splitlines()[-1]
