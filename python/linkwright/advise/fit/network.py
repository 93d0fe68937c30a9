"""A `flow` machine of hosts, switches and links from a map of all pairs of hosts (`linkwright locate --run --json`).

    ports     of each host, what most of its messages get alone; those within 10 % of the usual rate are one class
    switches  one for each group of hosts that the map found, and a spine that joins several
    uplinks   of a group, the most that its messages to others got together in a round under load
    start     of the smallest message between neighbours, less the latency of its links

A map of a ring or a mesh has no groups, but messages that are slow under load only: it is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.advise.locate import pair_map
from linkwright.advise.locate.parts import Floats
from linkwright.base import files
from linkwright.base.errors import FileError
from linkwright.base.units import GIGA, NS_PER_US, US_PER_S
from linkwright.executors.cluster import spec
from linkwright.machines import writer

from .machine_file import MachineFile
from .regimes import Fit

_LIKE = 0.1  # of the usual rate: ports that differ less are alike
_MOST_CONTENDED = 0.1  # of all messages slow under load without groups: a network of other shape
_LATENCY_SHARE = 0.2  # of the smallest message's time, of all its links: transfers do not tell them from the start


@dataclass(frozen=True)
class NetworkModel(MachineFile):
    """Hosts, switches and links of a map.

    Attributes:
        name, of: of the machine file, and of what was measured.
        cluster: hosts, switches and links.
        short_us: time of the smallest message, in us.
        spread: of each class of links, the rates behind it in bytes per second.
        source: the file of the map.
    """

    name: str
    of: str
    cluster: spec.LabCluster
    short_us: float
    spread: dict[str, Floats]
    source: str
    kind: str = "flow"

    def text(self, open_size: bool = True) -> str:
        """The machine file; its size is that of the map."""
        links = 2 if len(self.cluster.switches) == 1 else 4
        source = f"map of all pairs of hosts, {self.source}"
        return writer.text(
            spec.machine(
                self.cluster, summary="hosts of a map of their pairs", status="fitted", source=source,
                start_us=(1 - _LATENCY_SHARE) * self.short_us, latency_us=_LATENCY_SHARE * self.short_us / links,
            )
        )  # fmt: skip

    def parameters(self) -> list[tuple[str, Fit, str]]:
        """(key, fit, unit) of every fitted number, with the range of what it is from."""
        found = [("short message", Fit(*(self.short_us * NS_PER_US,) * 3), "ns")]
        for kind, rates in self.spread.items():
            inverse = GIGA / rates
            found.append((f"bandwidth {kind}", Fit(float(np.median(inverse)), inverse.min(), inverse.max()), "ns/B"))
        return found


def read(path: Path, name: str, of: str) -> NetworkModel:
    """Return the machine of a map.

    Raises:
        FileError: the file is no map, the map has gaps, or its hosts are not joined as a tree.
    """
    text = files.read_text(path, "a map of hosts")
    wrong = f"{path}: is not a map of hosts; write one with `mpirun ... linkwright locate --run --json > map.json`"
    try:
        value: Any = json.loads(text)
        hosts, rates, alone = value["hosts"], *(_table(value[key]) for key in ("rates", "alone"))
        short_us = float(value["short_us"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError(wrong) from None
    count = len(hosts) if isinstance(hosts, list) else 0
    if not (count >= 3 and rates.shape == alone.shape == (count, count) and 0 < short_us < US_PER_S):
        raise FileError(wrong)
    if not all(isinstance(host, str) and 0 < len(host) < 80 for host in hosts) or len(set(hosts)) < count:
        raise FileError(wrong)
    gaps = (np.isnan(rates) | np.isnan(alone)) & ~np.eye(count, dtype=bool)
    if gaps.any():
        raise FileError(f"{path}: {int(gaps.sum())} messages were not measured; measure again with a longer --budget")
    return _fitted(pair_map.judged(hosts, rates, alone), name, of, short_us, path)


def _table(rows: Any) -> Floats:
    found = np.array([[np.nan if rate is None else float(rate) for rate in row] for row in rows])
    if (found[~np.isnan(found)] <= 0).any() or np.isinf(found).any():
        raise ValueError("rates are positive")
    return found


def _fitted(found: pair_map.PairMap, name: str, of: str, short_us: float, path: Path) -> NetworkModel:
    ports = np.array([min(np.nanquantile(found.alone[at], 0.75), np.nanquantile(found.alone[:, at], 0.75))
                      for at in range(len(found.hosts))])  # fmt: skip
    usual = float(np.median(ports))
    like = np.abs(ports / usual - 1) < _LIKE
    spread = {"port": ports[like]} | {f"port_{at}": ports[at : at + 1] for at in np.flatnonzero(~like).tolist()}
    group = {host: at for at, its in enumerate(found.groups) for host in its}
    several = len(found.groups) > 1
    switches = tuple(f"switch {at}" for at in range(len(found.groups)))
    links = [
        ("port" if like[at] else f"port_{at}", host, switches[group[at]], usual if like[at] else float(ports[at]))
        for at, host in enumerate(found.hosts)
    ]  # fmt: skip
    if several:
        for at, its in enumerate(found.groups):
            rate = _uplink(found, set(its))
            spread[f"uplink_{at}"] = np.array([rate])
            links.append((f"uplink_{at}", switches[at], "spine", rate))
    else:
        slow = (found.rates < pair_map.SLOW * found.alone).sum() / np.isfinite(found.alone).sum()
        if slow > _MOST_CONTENDED:
            raise FileError(
                f"{path}: {slow:.0%} of its messages are slow under load only, and its hosts form no groups: a network "
                "that is no tree; describe the machine in a file"
            )
    cluster = spec.LabCluster(name, found.hosts, 1, (*switches, *(("spine",) if several else ())), tuple(links), {})
    return NetworkModel(name, of, cluster, short_us, spread, files.shown_name(path.name))


def _uplink(found: pair_map.PairMap, its: set[int]) -> float:
    """The most that messages from or to a group had together in a round."""
    sums = [
        sum(found.rates[a, b] for a, b in pairs if (a in its, b in its) == way)
        for pairs in pair_map.rounds(len(found.hosts)) for way in ((True, False), (False, True))
    ]  # fmt: skip
    return float(max(sums))
