"""A `flow` machine of hosts, switches and links from a map of all pairs of hosts (`linkwright locate --run --json`).

    ports     of each host, what most of its messages get alone; those within 10 % of the usual rate are one class
    switches  one for each group of hosts that the map found, and a spine that joins several
    uplinks   of a group, the most that its messages to others got together in a round under load
    start     of the smallest message between neighbours, less the latency of its links
    ends      what each further small message costs its sender and its receiver (`send`, `receive`)
    inline    messages up to some size take no longer than one byte, if that halves the error of their times by size
    long      messages from some size on start later, if that halves it again
    turns     messages from some size on between two hosts go one at a time, if both ways take half as long again as
              `both` explains
    both      where a host receives and sends at once more slowly than one of them, a switch before it limits the sum

The last five need times of messages by size, which maps of earlier versions lack. Ends and starts are taken from one
message alone and from bursts of one byte; nothing of a collective is fitted.

A map of a ring or a mesh has no groups, but messages that are slow under load only: it is refused.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkwright.advise.locate import pair_map
from linkwright.advise.locate.parts import Floats
from linkwright.base import files
from linkwright.base.errors import FileError
from linkwright.base.units import GIGA, MAX_BYTES, MEGA, NS_PER_US, US_PER_S
from linkwright.executors.cluster import spec
from linkwright.machines import writer

from .machine_file import MachineFile
from .regimes import Fit

_LIKE = 0.1  # of the usual rate: ports that differ less are alike
_MOST_CONTENDED = 0.1  # of all messages slow under load without groups: a network of other shape
_BOTH = 0.95  # of the rate one way: more is as fast both ways
_TURNS = 1.5  # times as long, while as much goes the other way: one at a time
_INLINE_SHARE = 0.25  # of the smallest message's time: bytes that would take less are not told from none
_LONG_SHARE = 0.1  # of a message's time: long ones that start by less later are not told from others
_LATENCY_SHARE = 0.2  # of the smallest message's time, of all its links: transfers do not tell them from the start


@dataclass(frozen=True)
class MessageCosts:
    """What a message costs, whatever the network.

    Attributes:
        start_us: of the smallest message, without its ends.
        send_us, receive_us: of the rank that sends, and of that which receives.
        inline_bytes: smaller messages take no longer than one byte; 0 if none do.
        long_bytes, long_us: messages of at least this size start so much later than smaller ones; 0 if none do.
        turns_bytes: messages of at least this size between two hosts go one at a time, whichever way; 0 if all do not.
        both: share of a rate one way that a host has both ways at once, from one and to another.
    """

    start_us: float
    send_us: float = 0.0
    receive_us: float = 0.0
    inline_bytes: int = 0
    long_bytes: int = 0
    long_us: float = 0.0
    turns_bytes: int = 0
    both: float = 1.0


@dataclass(frozen=True)
class NetworkModel(MachineFile):
    """Hosts, switches and links of a map.

    Attributes:
        name, of: of the machine file, and of what was measured.
        cluster: hosts, switches and links.
        costs: of messages.
        spread: of each class of links, the rates behind it in bytes per second.
        source: the file of the map.
    """

    name: str
    of: str
    cluster: spec.LabCluster
    costs: MessageCosts
    spread: dict[str, Floats]
    source: str
    kind: str = "flow"

    def text(self, open_size: bool = True) -> str:
        """The machine file; its size is that of the map."""
        costs = self.costs
        links = 2 if len({a for kind, a, _, _ in self.cluster.links if kind.startswith("uplink")}) == 0 else 4
        links += 2 * (costs.both < _BOTH)
        source = f"map of all pairs of hosts, {self.source}"
        stated = functools.partial(writer.fitted, source=source)
        start_us = (1 - _LATENCY_SHARE) * costs.start_us
        document: dict[str, Any] = spec.machine(
            self.cluster, summary="hosts of a map of their pairs", status="fitted", source=source,
            start_us=start_us, latency_us=_LATENCY_SHARE * costs.start_us / links,
        )  # fmt: skip
        document["path"]["put"] |= {
            key: stated(us, "us") for key, us in (("start", costs.send_us), ("receive", costs.receive_us)) if us
        }
        transport = document["fabric"]["transport"]["tcp"]
        sizes = (("inline", costs.inline_bytes), ("long", costs.long_bytes), ("turns", costs.turns_bytes))
        transport |= {key: stated(size, "B") for key, size in sizes if size}
        if costs.long_bytes:
            transport["long_start"] = stated(start_us + costs.long_us, "us")
        if costs.both < _BOTH:
            # A switch counts what it receives and what it sends: four times the rate of each of two ways.
            rates = {b: 4 * costs.both * rate for kind, _, b, rate in self.cluster.links if kind.startswith("nic")}
            document["fabric"]["switch"] = {
                name: {"throughput": stated(rate / MEGA, "MB/s")} for name, rate in rates.items()
            }
        return writer.text(document)

    def parameters(self) -> list[tuple[str, Fit, str]]:
        """(key, fit, unit) of every fitted number, with the range of what it is from."""
        costs = self.costs
        numbers = [("start", costs.start_us * NS_PER_US, "ns"), ("send", costs.send_us * NS_PER_US, "ns"),
                   ("receive", costs.receive_us * NS_PER_US, "ns"), ("inline", costs.inline_bytes, "B"),
                   ("long", costs.long_bytes, "B"), ("long start", costs.long_us * NS_PER_US, "ns"),
                   ("turns", costs.turns_bytes, "B"), ("both", costs.both, "of one way")]  # fmt: skip
        found = [(key, Fit(value, value, value), unit) for key, value, unit in numbers if value]
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
        timed = _message_times(value["messages"]) if "messages" in value else None
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
    return _fitted(pair_map.judged(hosts, rates, alone), name, of, _costs(short_us, timed), path)


def _message_times(value: Any) -> pair_map.MessageTimes:
    """The times of messages in a map."""
    sizes, one, both = ([float(number) for number in value[key]] for key in ("sizes_bytes", "one_us", "both_us"))
    send, receive = float(value["send_us"]), float(value["receive_us"])
    through = float(value.get("through_us", both[-1]))
    fits = len(sizes) == len(one) == len(both) >= 3 and sizes[0] == 1 and sorted(set(sizes)) == sizes
    good = all(0 < us < US_PER_S**2 for us in (*one, *both, through)) and all(
        0 <= us < US_PER_S for us in (send, receive)
    )
    if not (fits and good and sizes[-1] <= MAX_BYTES):
        raise ValueError("times are positive, sizes rise")
    return pair_map.MessageTimes(tuple(map(int, sizes)), tuple(one), tuple(both), through, send, receive)


def _costs(short_us: float, timed: pair_map.MessageTimes | None) -> MessageCosts:
    if timed is None:
        return MessageCosts(short_us)
    short = timed.one_us[0]
    # Both ends are parts of a message alone; on a busy host a burst may seem to take longer.
    send, receive = (
        min(one, max(short / 2, short - other))
        for one, other in ((timed.send_us, timed.receive_us), (timed.receive_us, timed.send_us))
    )
    by_size = _by_size(timed)
    both = min(1.0, max(0.5, timed.one_us[-1] / timed.through_us))
    return MessageCosts(
        short - send - receive, send, receive, by_size.inline, by_size.long, by_size.long_us,
        _turns(timed, by_size, both), both,
    )  # fmt: skip


class _BySize(NamedTuple):
    """What times by size say: the least sum of squares of relative errors, and the numbers behind it; 0 is none."""

    error: float
    us_a_byte: float
    inline: int
    long: int
    long_us: float


def _by_size(timed: pair_map.MessageTimes) -> _BySize:
    short, size, one = timed.one_us[0], np.array(timed.sizes_bytes[1:]), np.array(timed.one_us[1:])

    def fitted(inline: int = 0, long: int = 0) -> _BySize:
        columns = np.stack([np.where(size < inline, 0, size), (size >= long) & (long > 0)], axis=1) / one[:, None]
        late = (one - short) / one
        us_a_byte, long_us = np.linalg.lstsq(columns, late, rcond=None)[0].tolist()
        error = float(((columns @ [us_a_byte, long_us] - late) ** 2).sum())
        return _BySize(error, us_a_byte, inline, long, long_us)

    found = fitted()
    # Two sizes at least tell the rate.
    flat = min((fitted(edge + 1) for edge in size[:-2].tolist()), default=found)
    if flat.error < found.error / 2 and flat.us_a_byte * flat.inline > _INLINE_SHARE * short:
        found = flat
    late = min(fitted(found.inline, edge) for edge in size[1:].tolist())
    if late.error < found.error / 2 and late.long_us > _LONG_SHARE * float(one[size == late.long][0]):
        found = late
    return found


def _turns(timed: pair_map.MessageTimes, by_size: _BySize, both: float) -> int:
    """Bytes from which on all messages of a pair go one at a time; 0 if the largest do not."""
    found = 0
    for size, one, pair in zip(timed.sizes_bytes[::-1], timed.one_us[::-1], timed.both_us[::-1], strict=True):
        # Small messages both ways hinder each other at the processors.
        by_bytes = size >= by_size.inline and size * by_size.us_a_byte >= timed.one_us[0]
        if not by_bytes or pair * both <= _TURNS * one:
            break
        found = size
    return found


def _table(rows: Any) -> Floats:
    found = np.array([[np.nan if rate is None else float(rate) for rate in row] for row in rows])
    if (found[~np.isnan(found)] <= 0).any() or np.isinf(found).any():
        raise ValueError("rates are positive")
    return found


def _fitted(found: pair_map.PairMap, name: str, of: str, costs: MessageCosts, path: Path) -> NetworkModel:
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
    nics: tuple[str, ...] = ()
    if costs.both < _BOTH:
        nics = tuple(f"{host} NIC" for host in found.hosts)
        ports = {a: rate for _, a, _, rate in links}
        links = [(kind, f"{a} NIC" if a in found.hosts else a, b, rate) for kind, a, b, rate in links]
        links += [
            ("nic" + links[at][0].removeprefix("port"), host, f"{host} NIC", ports[host])
            for at, host in enumerate(found.hosts)
        ]
    every = (*nics, *switches, *(("spine",) if several else ()))
    cluster = spec.LabCluster(name, found.hosts, 1, every, tuple(links), {})
    return NetworkModel(name, of, cluster, costs, spread, files.shown_name(path.name))


def _uplink(found: pair_map.PairMap, its: set[int]) -> float:
    """The most that messages from or to a group had together in a round."""
    sums = [
        sum(found.rates[a, b] for a, b in pairs if (a in its, b in its) == way)
        for pairs in pair_map.rounds(len(found.hosts)) for way in ((True, False), (False, True))
    ]  # fmt: skip
    return float(max(sums))
