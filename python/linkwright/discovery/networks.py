"""Importers of descriptions of networks and systems, by format.

An importer is a module with a line in `NETWORKS`. The format is recognised by what the text says, never by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwright import _native
from linkwright.discovery import astra_sim, ibnetdiscover, simgrid, slurm_topology, tt_mesh, wiring
from linkwright.discovery.wiring import Wiring
from linkwright.errors import FileError, LinkwrightError


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
    Network("astra-sim", "ASTRA-sim's analytical network (YAML)", astra_sim.recognises, astra_sim.read),
    Network("astra-sim-ns3", "ASTRA-sim's ns-3 topology", astra_sim.recognises_ns3, astra_sim.read_ns3),
    Network("tt-mesh", "tt-metal's mesh graph (textproto)", tt_mesh.recognises, tt_mesh.read),
    Network("tt-mesh-yaml", "tt-metal's mesh graph (YAML)", tt_mesh.recognises_yaml, tt_mesh.read_yaml),
)


def recognised(text: str) -> Network | None:
    """The format of a text."""
    return next((network for network in NETWORKS if network.recognises(text)), None)


def machine_file(network: Network, text: str, file: str, name: str | None = None) -> str:
    """The machine file of a text, checked; `name` is that of the machine, by default that of the file."""
    described = network.read(text, file)
    wiring.check(described, file)
    described.name = name or wiring.key(described.name)
    made = wiring.text(described)
    try:
        _native.Machine.parse(made, f"{described.name}.toml")
    except LinkwrightError as error:
        raise FileError(f"{file}: gives no machine: {error}") from error
    return made
