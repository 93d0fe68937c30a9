"""Importers of descriptions of networks and systems, by format.

An importer is a module with a line in `NETWORKS`, or an object `Network` that an installed package names in the group
`linkwright.networks`. The format is recognised by what the text says, never by its name.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.base.errors import FileError, LinkwrightError, PluginError
from linkwright.formats.discovery import ibnetdiscover, slurm_topology, wiring, wiring_text
from linkwright.formats.discovery.wiring import Wiring

GROUP = "linkwright.networks"
# What the package linkwright-networks of this repository reads, for who has not installed it.
PACKAGED = ("simgrid", "infragraph", "astra-sim", "astra-sim-ns3", "tt-mesh", "tt-mesh-yaml", "slurm-yaml")
_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85-\U0010ffff]")


@dataclass(frozen=True)
class Network:
    """A format that describes a network: how its texts are recognised and read."""

    key: str
    summary: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Wiring]


# In the order in which they are tried, before those of packages; no text is recognised by two.
NETWORKS = (
    Network("ibnetdiscover", "an InfiniBand subnet, by ibnetdiscover", ibnetdiscover.recognises, ibnetdiscover.read),
    Network("slurm", "Slurm's topology.conf (tree, block)", slurm_topology.recognises, slurm_topology.read),
)
_BUILT_IN = {network.key: network for network in NETWORKS}


def keys() -> list[str]:
    """The keys of all formats; loads no package."""
    from linkwright.base import plugins  # reads the metadata of packages

    return [*_BUILT_IN, *(key for key in plugins.installed(GROUP) if key not in _BUILT_IN)]


def find(key: str) -> Network:
    """The format of a key; raises a `PluginError` if its package is broken."""
    return _BUILT_IN.get(key) or _packaged(key)


@functools.cache
def _packaged(key: str) -> Network:
    from linkwright.base import plugins

    network, where, entry = plugins.load(GROUP, key, "network format")
    if not isinstance(network, Network) or network.key != key:
        raise PluginError(f"{where}: `{entry.value}` is not a linkwright.network_api.Network with the key `{key}`")
    guarded = {name: _guarded(where, getattr(network, name)) for name in ("recognises", "read")}
    return dataclasses.replace(network, **guarded)


def _guarded(where: str, function: Callable) -> Callable:
    """A function of a package, whose mistakes become errors that name the package."""

    @functools.wraps(function)
    def called(*arguments: str) -> object:
        try:
            return function(*arguments)
        except LinkwrightError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise PluginError(f"{where}: `{function.__name__}` fails: {said}; report it to its authors") from error

    return called


def recognised(text: str) -> tuple[Network | None, list[PluginError]]:
    """The format of a text, and what is wrong with the packages that were asked in vain."""
    problems = []
    for key in keys():
        try:
            network = find(key)
            if network.recognises(text):
                return network, problems
        except PluginError as error:
            problems.append(error)
    return None, problems


def described(network: Network, text: str, file: str, rates: Sequence[str] = ()) -> Wiring:
    """The network of a text, which is in one piece, with rates as `wiring.rate` takes them."""
    if strange := _CONTROL.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise FileError(f"{file}: line {line}: a control character; give the file as the program wrote it")
    found = network.read(text, file)
    wiring.check(found, file)
    wiring.rate(found, rates, file)
    return found


def machine_file(network: Network, text: str, file: str, name: str | None = None, rates: Sequence[str] = ()) -> str:
    """The machine file of a text, checked; `name` is that of the machine, by default that of the file."""
    found = described(network, text, file, rates)
    found.name = name or wiring.key(found.name)
    return checked(wiring_text.text(found, file), file)


def checked(made: str, file: str) -> str:
    """A machine file made from `file`, which the simulator reads."""
    try:
        _native.Machine.parse(made, "made.toml")
    except LinkwrightError as error:
        raise FileError(f"{file}: gives no machine: {error}") from error
    return made
