"""Importers of descriptions of networks and systems, by format.

An importer is a module with a line in `NETWORKS`. The format is recognised by what the text says, never by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from linkwright import _native
from linkwright.discovery import (
    astra_sim,
    astra_sim_ns3,
    ibnetdiscover,
    infragraph,
    simgrid,
    slurm_topology,
    tt_mesh_text,
    tt_mesh_yaml,
    wiring,
    wiring_text,
)
from linkwright.discovery.wiring import Wiring
from linkwright.errors import FileError, LinkwrightError

_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85-\U0010ffff]")


@dataclass(frozen=True)
class Network:
    """A format that describes a network: how its texts are recognised and read."""

    key: str
    summary: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Wiring]


# In the order in which they are tried; no text is recognised by two.
NETWORKS = (
    Network("ibnetdiscover", "an InfiniBand subnet, by ibnetdiscover", ibnetdiscover.recognises, ibnetdiscover.read),
    Network("simgrid", "a SimGrid platform (XML, version 4)", simgrid.recognises, simgrid.read),
    Network("slurm", "Slurm's topology.conf (tree, block)", slurm_topology.recognises, slurm_topology.read),
    Network("infragraph", "an InfraGraph infrastructure (YAML)", infragraph.recognises, infragraph.read),
    Network("astra-sim", "ASTRA-sim's analytical network (YAML)", astra_sim.recognises, astra_sim.read),
    Network("astra-sim-ns3", "ASTRA-sim's ns-3 topology", astra_sim_ns3.recognises, astra_sim_ns3.read),
    Network("tt-mesh", "tt-metal's mesh graph (textproto)", tt_mesh_text.recognises, tt_mesh_text.read),
    Network("tt-mesh-yaml", "tt-metal's mesh graph (YAML)", tt_mesh_yaml.recognises, tt_mesh_yaml.read),
)


def recognised(text: str) -> Network | None:
    """The format of a text."""
    return next((network for network in NETWORKS if network.recognises(text)), None)


def described(network: Network, text: str, file: str) -> Wiring:
    """The network of a text, which is in one piece."""
    if strange := _CONTROL.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise FileError(f"{file}: line {line}: a control character; give the file as the program wrote it")
    found = network.read(text, file)
    wiring.check(found, file)
    return found


def machine_file(network: Network, text: str, file: str, name: str | None = None) -> str:
    """The machine file of a text, checked; `name` is that of the machine, by default that of the file."""
    found = described(network, text, file)
    found.name = name or wiring.key(found.name)
    return checked(wiring_text.text(found, file), file)


def checked(made: str, file: str) -> str:
    """A machine file made from `file`, which the simulator reads."""
    try:
        _native.Machine.parse(made, "made.toml")
    except LinkwrightError as error:
        raise FileError(f"{file}: gives no machine: {error}") from error
    return made
