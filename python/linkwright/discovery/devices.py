"""GPUs that are known: which part of machine files has their numbers, and what one of their links carries."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from linkwright.errors import FileError, UsageError

TABLE = Path(__file__).parent / "devices.toml"


@dataclass(frozen=True)
class Device:
    """A kind of GPU; rates are GB/s of each direction."""

    name: str
    names: tuple[str, ...]
    pci: tuple[str, ...]
    architecture: tuple[str, ...]
    part: str
    links: str  # class of its links: nvlink, xgmi
    link_gbps: float
    most_links: int
    source: str
    combines: bool = False  # whether the switches of its boards combine and copy
    library: str = ""  # the generation that the library takes it for, where that is not its own
    share: float | None = None  # of a link's rate that carries data; None: that of the part

    @property
    def generation(self) -> str:
        """What the library calls it: `sm90`, `gfx942`."""
        return self.library or self.architecture[0]


@functools.cache
def known() -> tuple[Device, ...]:
    """All of the table."""
    return tuple(
        Device(name, tuple(row["names"]), tuple(row["pci"]), tuple(row["architecture"]), **_rest(row))
        for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()
    )


def _rest(row: dict) -> dict:
    listed_apart = ("names", "pci", "architecture")
    return {key: value for key, value in row.items() if key not in listed_apart}


def called(name: str) -> Device:
    """The GPU that a user or a program calls so, such as `NVIDIA H100 80GB HBM3`."""
    words = name.lower().replace("-", " ").split()
    for device in known():
        if any(word in device.names for word in words):
            return device
    raise UsageError(f"unknown GPU `{name}`; {listed()}")


def of_architecture(architecture: str, file: str) -> Device:
    """The GPU of `sm90` or `gfx942`."""
    for device in known():
        if architecture in device.architecture:
            return device
    raise FileError(f"{file}: unknown GPU of architecture {architecture}; {listed()}")


def of_pci(pci: str) -> Device | None:
    """The GPU with this PCI vendor and device, such as `10de:2330`."""
    return next((device for device in known() if pci in device.pci), None)


def listed() -> str:
    """What is known, and the cure, for messages."""
    names = ", ".join(f"{device.name} ({', '.join(device.architecture)})" for device in known())
    return f"known: {names}. Name one with --gpu, or add yours to linkwright/discovery/devices.toml"
