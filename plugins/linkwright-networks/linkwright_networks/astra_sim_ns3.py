"""Read ASTRA-sim topologies for ns-3: nodes, switches and links as lines of numbers.

    9 1 8                       nodes, switches, links
    8                           which of the nodes are switches
    8 0 400Gbps 0.0005ms 0      a link: its ends, rate, delay and error rate
    8 1 400Gbps 0.0005ms 0

Parallel links are merged into one, as wide as all of them, with the delay of the slowest; equivalent switches are
merged, too (`planes`). Error rates, queues and protocols of ns-3 are not modelled.

Source: ASTRA-sim, astra-network-ns3.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from decimal import Decimal

from linkwright.network_api import (
    MOST_ENDPOINTS,
    MOST_SWITCHES,
    Bundles,
    FileError,
    Links,
    Network,
    Number,
    Wiring,
    bounded,
    merged,
)

_LINK = re.compile(
    r"(\d{1,7})\s+(\d{1,7})\s+(\d{1,9}(?:\.\d{1,9})?)([GMkK]?bps)\s+(\d{1,9}(?:\.\d{1,9})?)(ms|us|ns|s)\s+(\S+)",
    re.ASCII,
)
_HEAD = re.compile(r"\s*(\d{1,7})[ \t]+(\d{1,7})[ \t]+(\d{1,7})[ \t]*(?:\n|$)", re.ASCII)
_ZERO = re.compile(r"0+(\.0*)?", re.ASCII)
_BPS = {"bps": "0.000000001", "kbps": "0.000001", "Kbps": "0.000001", "Mbps": "0.001", "Gbps": "1"}


def recognises(text: str) -> bool:
    """Whether a text is a topology for the ns-3 backend."""
    return _HEAD.match(text) is not None and any(_LINK.fullmatch(line.strip()) for line in text.splitlines()[1:50])


def read(text: str, file: str) -> Wiring:
    """Read the network of a topology for the ns-3 backend."""
    head = _HEAD.match(text)
    if not head:
        raise FileError(f"{file}: line 1 is not the number of nodes, switches and links")
    nodes, switch_count, link_count = map(int, head.groups())
    bounded(nodes, MOST_ENDPOINTS + MOST_SWITCHES, file, "nodes")
    lines = [(i, line.strip()) for i, line in enumerate(text.split("\n"), 1) if line.strip()][1:]
    ids = lines.pop(0)[1].split() if switch_count and lines else []
    switches = {int(word) for word in ids if re.fullmatch(r"\d{1,7}", word, re.ASCII) and int(word) < nodes}
    if len(switches) != switch_count or len(ids) != switch_count:
        raise FileError(f"{file}: line 2 names {len(switches)} switches among {nodes} nodes, not {switch_count}")
    if len(lines) != link_count:
        raise FileError(f"{file}: {len(lines)} lines of links, and the first line says {link_count}; cut file?")
    if nodes - switch_count < 2:
        raise FileError(f"{file}: {nodes - switch_count} nodes that are no switches; a machine has at least two")
    bundles: Bundles = defaultdict(Counter)
    for number, line in lines:
        _ns3_link(line, f"{file}: line {number}", nodes, switches, bundles)
    return _ns3_wired(nodes, switches, bundles, file)


def _ns3_link(line: str, where: str, nodes: int, switches: set[int], bundles: Bundles) -> None:
    match = _LINK.fullmatch(line)
    if not match:
        raise FileError(f"{where}: `{line[:80]}` is no link; write `0 8 400Gbps 0.0005ms 0`")
    a, b = int(match[1]), int(match[2])
    if a >= nodes or b >= nodes or a == b:
        raise FileError(f"{where}: a link from {a} to {b}; write two of the nodes 0..{nodes - 1}")
    rate = Decimal(match[3]) * Decimal(_BPS[match[4]])
    if not 0 < rate < 10**9:
        raise FileError(f"{where}: a rate of {match[3]}{match[4]}; write one above 0, below 10^9Gbps")
    if not _ZERO.fullmatch(match[7]):
        raise FileError(f"{where}: error rate `{match[7][:20]}`; lost packets are not modelled, so write 0")
    names = [f"switch {i}" if i in switches else f"node {i}" for i in (a, b)]
    pair = (names[0], names[1])
    kinds = bundles[pair if pair in bundles or pair[::-1] not in bundles else pair[::-1]]
    kinds[rate, Decimal(match[5]), match[6]] += 1


def _ns3_wired(nodes: int, switches: set[int], bundles: Bundles, file: str) -> Wiring:
    endpoints = [f"node {i}" for i in range(nodes) if i not in switches]
    names = [f"switch {i}" for i in sorted(switches)]
    plane, wide = merged(endpoints, names, bundles)
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{len(endpoints)} nodes and {len(names)} switches of an ns-3 topology",
        description="Links, rates and delays are from a topology of ASTRA-sim's ns-3 backend. Switches that join the "
        "same switches stand as one. It states no cost of software; protocols and queues of ns-3 are not modelled.",
        sources=[f"ASTRA-sim ns-3 topology: {file}"],
        endpoints=endpoints,
        endpoint_source="ns-3 topology: nodes that are no switches",
        start=Number(Decimal(0), "ns", "derived", "the topology states no cost besides links: none"),
        levels=[("node", len(endpoints))],
        switches=list(dict.fromkeys(plane[name] for name in names)),
        relays=True,
    )
    for (a, b), kinds in wide.items():
        _bundle(wiring, a, b, kinds)
    return wiring


def _bundle(wiring: Wiring, a: str, b: str, kinds: Counter) -> None:
    """Merge all links between two nodes into one, as wide as all of them, with the delay of the slowest."""
    total = sum(rate * count for (rate, _, _), count in kinds.items())
    delay, unit = max(
        ((delay, unit) for _, delay, unit in kinds),
        key=lambda one: one[0] * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[one[1]],
    )
    name = f"{format(total.normalize(), 'f')} Gb_s {format(delay.normalize(), 'f')} {unit}"
    if name not in wiring.links:
        count = sum(kinds.values())
        source = "ns-3 topology" if count == 1 else f"ns-3 topology: {count} links together"
        rate = Number(total, "Gb/s", "documented" if count == 1 else "derived", source)
        wiring.links[name] = Links(rate, Number(delay, unit, "documented", "ns-3 topology"), "ns-3 topology")
    wiring.links[name].edges.append((a, b))


NETWORK = Network("astra-sim-ns3", "ASTRA-sim's ns-3 topology", recognises, read)
