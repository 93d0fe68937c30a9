"""Everything that a reader of network descriptions needs; plugins/linkwright-networks uses all of it.

A reader is a `Network` that an installed package names in the group `linkwright.networks`, under the network's key:

    recognises(text) -> bool          whether the text is in this format; at most one format may claim a text
    read(text, file) -> Wiring        endpoints, switches, links; a `FileError` names the file, its state and the cure
"""

from linkwright.base.errors import FileError, unknown
from linkwright.formats.discovery.network_rates import number as usual
from linkwright.formats.discovery.networks import Network
from linkwright.formats.discovery.planes import Bundles, merged
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
    "Links", "Network", "Number", "Wiring", "bounded", "distinct", "merged", "plain", "read_xml", "unknown", "usual",
]  # fmt: skip
