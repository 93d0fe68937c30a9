"""The simulator that stands for a board."""

from pathlib import Path


def simulator_dir(chip):
    """The folder that the runtime would load it from."""
    return str(Path(__file__).with_name("simulators") / chip)
