"""Everything that a reader of network descriptions needs; plugins/linkwright-networks uses all of it.

A reader is a `Network` that an installed package names in the group `linkwright.networks`, under the network's key:

    recognises(text) -> bool          whether the text is in this format; at most one format may claim a text
    read(text, file) -> Wiring        endpoints, switches, links; a `FileError` names the file, its state and the cure
"""

from linkwright.base.errors import FileError, unknown
from linkwright.formats.discovery.hostlists import expand as host_list
from linkwright.formats.discovery.network_rates import number as usual
from linkwright.formats.discovery.networks import Network
from linkwright.formats.discovery.planes import Bundles, merged
from linkwright.formats.discovery.slurm_topology import Switch
from linkwright.formats.discovery.slurm_topology import sizes_of as block_sizes
from linkwright.formats.discovery.slurm_topology import wired as switch_tree
from linkwright.formats.discovery.wiring import (
    MOST_ENDPOINTS,
    MOST_LINKS,
    MOST_SWITCHES,
    Axis,
    Detour,
    Edge,
    Links,
    Number,
    Wiring,
    bounded,
    distinct,
    plain,
)  # fmt: skip
from linkwright.formats.discovery.xml_text import Element
from linkwright.formats.discovery.xml_text import read as read_xml

__all__ = [
    "MOST_ENDPOINTS", "MOST_LINKS", "MOST_SWITCHES", "Axis", "Bundles", "Detour", "Edge", "Element", "FileError",
    "Links", "Network", "Number", "Switch", "Wiring", "block_sizes", "bounded", "distinct", "host_list", "merged",
    "plain", "read_xml", "switch_tree", "unknown", "usual",
]  # fmt: skip
