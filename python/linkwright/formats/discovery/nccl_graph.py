"""NCCL's graph XML, as `NCCL_GRAPH_DUMP_FILE` writes it: the channels that its search found.

    <graphs version="1">
      <graph id="0" pattern="4" nchannels="12" speedintra="30" speedinter="30" typeintra="NVL" typeinter="PIX" ...>

Pattern 4 is the ring. NCCL runs twice as many channels as its search finds, at most 64.
"""

from __future__ import annotations

import re

from linkwright.base.errors import FileError
from linkwright.formats.discovery.xml_text import read

KEY = "nccl-graph"
SUMMARY = "NCCL's search (XML), by NCCL_GRAPH_DUMP_FILE; in addition to a topology"
RING = "4"
MOST_CHANNELS = 64


def recognises(text: str) -> bool:
    """Whether the text is such a file."""
    return re.search(r"<graphs\b", text[:4096]) is not None


def channels(text: str, file: str) -> int:
    """How many channels a ring runs on."""
    root = read(text, file)
    if root.tag != "graphs":
        raise FileError(f"{file}: line {root.line}: <{root.tag}> instead of <graphs>; give the dump of NCCL")
    for graph in root.children:
        if graph.tag == "graph" and graph.attributes.get("pattern") == RING:
            found = graph.attributes.get("nchannels", "")
            if not re.fullmatch(r"\d{1,3}", found) or int(found) == 0:
                raise FileError(f"{file}: line {graph.line}: nchannels={found!r}; a ring has 1 to 999 channels")
            return min(MOST_CHANNELS, 2 * int(found))
    raise FileError(f"{file}: no ring (pattern {RING}); was the search cut off?")
