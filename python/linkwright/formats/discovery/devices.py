"""GPUs that are known: which part of machine files has their numbers, and what one of their links carries."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from linkwright.base.errors import UsageError

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
    cards: tuple[str, ...] = ()  # those of `pci` that are PCIe cards, which no switch joins
    switched: bool = False  # whether its boards have switches, to which links go where a file states none
    combines: bool = False  # whether the switches of its boards combine and copy
    library: str = ""  # the generation that the library takes it for, where that is not its own
    share: float | None = None  # of a link's rate that carries data; None: that of the part

    @property
    def generation(self) -> str:
        """What the library calls it: `sm90`, `gfx942`."""
        return self.library or self.architecture[0]

    def boarded(self, ids: Iterable[str] = ()) -> bool:
        """Whether switches join such GPUs, whose PCI ids are `ids` if these are known."""
        return self.switched and not set(ids) & set(self.cards)


@functools.cache
def known() -> tuple[Device, ...]:
    """All of the table."""
    return tuple(
        Device(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()
    )


def called(name: str) -> Device:
    """The GPU that a user or a program calls so, such as `NVIDIA H100 80GB HBM3`; it goes by the word that is known."""
    words = name.lower().replace("-", " ").split()
    for device in known():
        if word := next((word for word in words if word in device.names), None):
            return replace(device, name=word.upper())
    raise UsageError(f"unknown GPU `{name}`; {listed()}")


def agreed(asked: Device | None, stated: Device | None, file: str) -> Device | None:
    """The GPU that the user names, which must not be another one than the file states; else that of the file."""
    if asked and stated and set(asked.architecture).isdisjoint(stated.architecture):
        raise UsageError(f"--gpu {asked.name}: {file} states that its GPUs are {stated.name}; omit --gpu")
    return asked or stated


def of_architecture(architecture: str) -> Device | None:
    """The GPU of `sm90` or `gfx942`."""
    return next((device for device in known() if architecture in device.architecture), None)


def of_pci(pci: str) -> Device | None:
    """The GPU with this PCI vendor and device, such as `10de:2330`."""
    return next((device for device in known() if pci in device.pci), None)


def listed() -> str:
    """What is known, and the cure, for messages."""
    names = ", ".join(f"{device.name} ({', '.join(device.architecture)})" for device in known())
    return f"known: {names}. Name one with --gpu, or add yours to linkwright/formats/discovery/devices.toml"
