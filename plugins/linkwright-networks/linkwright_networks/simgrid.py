"""Read SimGrid platforms: XML of versions 4 to 4.2, one cluster or zones with routes.

    <platform version="4.1"> <zone id="world" routing="Full">
      <host id="A" speed="1Gf"/> <host id="B" speed="1Gf"/>
      <link id="1" bandwidth="125MBps" latency="100us"/>
      <route src="A" dst="B"> <link_ctn id="1"/> </route>
    </zone> </platform>

A cluster alone becomes a graph (`simgrid_clusters`): flat, fat tree, torus, dragonfly. Anything else becomes explicit
routes (`simgrid_zones`, `simgrid_routes`), one for each ordered pair of hosts, as SimGrid composes them.

A message takes the latencies of its route plus its size over the smallest share of a link: SimGrid's network model
CM02. The factors of its default model (LV08), which scale latencies and rates to resemble TCP, belong to SimGrid's
configuration and not to the platform, so the machine file lacks them. Host speeds, disks, properties, actors and
configuration do not affect the network and are ignored. Elements that would change it are refused by name.

Source: SimGrid, simgrid.dtd and the reference of platforms.
"""

from __future__ import annotations

import re

from linkwright.network_api import Element, FileError, Network, Wiring, read_xml, unknown

from . import simgrid_clusters, simgrid_routes

ZONES = ("zone", "AS")
# Elements that do not affect the network.
PASSED = ("config", "prop", "actor", "process", "disk", "storage", "storage_type", "mount", "trace", "actors")
VERSIONS = ("4", "4.0", "4.1", "4.2")
_BEGIN = re.compile(r"<platform[\s>]")


def recognises(text: str) -> bool:
    """Whether a text is a SimGrid platform."""
    return _BEGIN.search(text) is not None


def read(text: str, file: str) -> Wiring:
    """Read the network of the platform."""
    root = read_xml(text, file, doctype="platform")
    if root.tag != "platform":
        raise FileError(f"{file}: begins with <{root.tag[:40]}>; a platform begins with <platform>")
    version = root.attributes.get("version", "none")
    if version not in VERSIONS:
        raise FileError(
            f"{file}: version {version[:20]} of the format; upgrade the file to 4.1 with SimGrid's simgrid_update_xml"
        )
    if strange := sorted(set(root.attributes) - {"version"}):
        raise unknown("attribute", strange[0][:40], ("version",), where=f"{file}: line {root.line}: <platform>")
    inside = [element for element in root.children if element.tag not in PASSED]
    if not inside:
        raise FileError(f"{file}: holds no zone; give the platform, not a deployment")
    if (cluster := _only_cluster(inside)) is not None:
        return simgrid_clusters.wired(cluster, file)
    return simgrid_routes.wired(inside, file)


def _only_cluster(inside: list[Element]) -> Element | None:
    """Return the cluster, if the platform has nothing else."""
    while len(inside) == 1 and inside[0].tag in ZONES:
        inside = [element for element in inside[0].children if element.tag not in PASSED]
    return inside[0] if len(inside) == 1 and inside[0].tag == "cluster" else None


NETWORK = Network("simgrid", "a SimGrid platform (XML, version 4)", recognises, read)
