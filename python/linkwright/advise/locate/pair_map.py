"""What a map of rates between all pairs of hosts says, without a description of the machine.

    rate of a -> b  =  usual rate * min(what a sends, what b receives, what the groups of a and b exchange, the path)

Each factor is that of most pairs it is in. A host is slow if most of its pairs are; what is left is a single path. Both
are read from messages that go alone, where these were measured. Hosts that reach each other, but not others, at the
usual rate under load are groups, as behind uplinks. A pair that is slow under load only shares links with others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from linkwright.base.units import US_PER_S, format_rate

from .parts import Floats
from .rounds import tournament, xor_rounds

SLOW = 0.8  # of the usual rate
MOST_PATHS = 10  # that are named
MOST_TIMED = 8  # pairs of neighbours whose messages are timed by size
_HUBS = 3  # hosts that send to all others


@dataclass(frozen=True)
class PairMap:
    """A map and its findings.

    Attributes:
        hosts: names.
        rates: bytes per second from each host to each other one, with a round of pairs at once; NaN where nothing was
            measured.
        alone: the same of messages that go alone.
        order: hosts by groups, those that are near each other together.
        groups: hosts that reach each other at the usual rate; one group if all do.
        findings: sentences, the widest first.
        coverage: the share of ordered pairs that were measured.
    """

    hosts: tuple[str, ...]
    rates: Floats
    alone: Floats
    order: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    findings: tuple[str, ...]
    coverage: float


def rounds(count: int) -> list[tuple[tuple[int, int], ...]]:
    """Rounds of disjoint pairs of hosts, each in both orders, so that any first ones cover all hosts.

    With a power of two, host i meets i ^ m: halves, and leaves of such a size, send all across at the same time.
    """
    every = xor_rounds(count) if count & (count - 1) == 0 else tournament(count)
    return [one for pairs in every for one in (pairs, tuple((b, a) for a, b in pairs))]


@dataclass(frozen=True)
class MessageTimes:
    """What messages cost, as medians over neighbours in the order of the job.

    Attributes:
        sizes_bytes: from one byte to the size of the map.
        one_us: time of a message alone, of each size.
        both_us: the same while a message of the same size goes the other way, the later one of a pair; it started when
            a tenth of the first was there, as equal starts are rare in a program.
        through_us: of the largest size, while its receiver sends as much to a third host.
        send_us, receive_us: time by which each further message of one byte, from one host to others and from others to
            one, arrives later.
    """

    sizes_bytes: tuple[int, ...]
    one_us: tuple[float, ...]
    both_us: tuple[float, ...]
    through_us: float
    send_us: float
    receive_us: float


def message_times(
    count: int, largest: int, times: Callable[[list[tuple[int, int]], int, float], Sequence[float]],
    gaps: Callable[[list[tuple[int, int]]], Sequence[float]],
) -> MessageTimes:  # fmt: skip
    """Time messages by size, one way and both ways, and small ones from one host and to one.

    Args:
        count: hosts, three or more.
        largest: bytes of the largest message.
        times: messages, (from, to) of hosts, that go at the same time, bytes of each, and seconds from each start to
            the next -> seconds of each.
        gaps: messages of one byte, all from one host or all to one -> seconds from each arrival to the next.
    """
    sizes = [1]
    while (size := max(1 << 10, 4 * sizes[-1])) < largest:
        sizes.append(size)
    sizes.append(max(largest, 2))
    pairs = list(itertools.pairwise(range(count)))[:MOST_TIMED]
    one = [float(np.median([times([pair], size, 0.0)[0] for pair in pairs])) for size in sizes]
    both = [
        float(np.median([max(times([pair, pair[::-1]], size, alone / 10)) for pair in pairs]))
        for size, alone in zip(sizes, one, strict=True)
    ]
    lines = [[(at, at + 1), (at + 1, at + 2)] for at in range(min(count - 2, MOST_TIMED))]
    through = [max(times(line, sizes[-1], 0.0)) for line in lines]
    hubs = [[(hub, at) for at in range(count) if at != hub] for hub in range(_HUBS)]
    out = [gap for flows in hubs for gap in gaps(flows)]
    into = [gap for flows in hubs for gap in gaps([(at, hub) for hub, at in flows])]
    return MessageTimes(
        tuple(sizes), tuple(US_PER_S * s for s in one), tuple(US_PER_S * s for s in both),
        through_us=US_PER_S * float(np.median(through)),
        send_us=US_PER_S * float(np.median(out)), receive_us=US_PER_S * float(np.median(into)),
    )  # fmt: skip


def judged(hosts: Sequence[str], rates: Floats, alone: Floats | None = None) -> PairMap:
    """Return what a map says.

    Args:
        hosts: names.
        rates: bytes per second from each host to each other one, with a round of pairs at once; NaN where nothing was
            measured.
        alone: the same of messages that go alone.
    """
    count = len(hosts)
    known = ~np.isnan(rates) & ~np.eye(count, dtype=bool)
    alone = np.full(rates.shape, np.nan) if alone is None else alone
    single = np.where(np.isnan(alone), rates, alone)
    usual = _usual(single[known])
    share = np.where(known, single / usual, np.nan)
    sends, receives = (np.ones(count) for _ in range(2))
    # A host is slow one way if nearly all of its pairs are: the best quarter of them as well. A slow host makes the
    # pairs of the others slow, too, but only one of each.
    for factor, axis in ((sends, 1), (receives, 0)):
        for host in range(count):
            its = share[host] if axis == 1 else share[:, host]
            its = its[~np.isnan(its)]
            if len(its) >= 2 and (best := float(np.quantile(its, 0.75))) < SLOW:
                factor[host] = best
    own = np.minimum(sends[:, None], receives[None, :])
    left, loaded = share / own, np.where(known, rates / usual, np.nan) / own
    groups = _groups(loaded)
    found = [
        *_of_hosts(hosts, sends, receives),
        *_of_groups(hosts, groups, loaded, alone / usual / own),
        *_of_paths(hosts, groups, left, alone),
        *_of_load(groups, left, loaded),
    ]
    order = tuple(host for group in groups for host in group)
    said = tuple(found) or (f"all pairs are alike, within {1 - SLOW:.0%} of {format_rate(usual)}",)
    return PairMap(tuple(hosts), rates, alone, order, groups, said, float(known.sum()) / max(1, count * (count - 1)))


def _usual(rates: Floats) -> float:
    """The median of the fast pairs: those near the rate that a tenth exceed."""
    return float(np.median(rates[rates >= SLOW * np.quantile(rates, 0.9)])) if len(rates) else float("nan")


def _groups(left: Floats) -> tuple[tuple[int, ...], ...]:
    """Hosts joined by pairs at the usual rate; hosts without any are left in the first group."""
    count = len(left)
    leader = list(range(count))
    near = (np.nan_to_num(left, nan=0.0) >= SLOW) & (np.nan_to_num(left.T, nan=0.0) >= SLOW)
    for a, b in np.argwhere(near).tolist():
        low, high = sorted((leader[a], leader[b]))
        leader = [low if one == high else one for one in leader]
    found: dict[int, list[int]] = {}
    for host, one in enumerate(leader):
        found.setdefault(one, []).append(host)
    if any(len(its) == 1 for its in found.values()):
        return (tuple(range(count)),)
    return tuple(tuple(its) for its in found.values())


def _of_hosts(hosts: Sequence[str], sends: Floats, receives: Floats) -> Iterator[str]:
    for host, name in enumerate(hosts):
        out, into = float(sends[host]), float(receives[host])
        if min(out, into) >= SLOW:
            continue
        if max(out, into) < SLOW:
            yield f"{name} sends at {out:.0%} and receives at {into:.0%} with everybody: its port, cable or processor"
        elif out < into:
            yield f"{name} sends at {out:.0%} to everybody: its port or cable, one way"
        else:
            yield f"{name} receives at {into:.0%} from everybody: its port or cable, one way"


def _of_groups(hosts: Sequence[str], groups: Sequence[Sequence[int]], loaded: Floats, alone: Floats) -> Iterator[str]:
    for at, one in enumerate(groups):
        for other in groups[at + 1 :]:
            rate, single = (_between(one, other, left) for left in (loaded, alone))
            if rate < SLOW:
                names = (f"{hosts[group[0]]} to {hosts[group[-1]]} ({len(group)})" for group in (one, other))
                where = f"{' and '.join(names)} reach each other at {rate:.0%}"
                if single >= SLOW:
                    yield f"{where} under load and at {single:.0%} alone: the links between them, {1 / rate:.1f}:1"
                else:
                    also = f", at {single:.0%} alone" if single == single else ""
                    yield f"{where}{also}: the links between them, about {1 / rate:.1f}:1"


def _between(one: Sequence[int], other: Sequence[int], left: Floats) -> float:
    """The median of the pairs between two groups; NaN if none was measured."""
    both = np.concatenate([left[np.ix_(x, y)].ravel() for x, y in ((one, other), (other, one))])
    both = both[~np.isnan(both)]
    return float(np.median(both)) if len(both) else float("nan")


def _of_paths(hosts: Sequence[str], groups: Sequence[Sequence[int]], left: Floats, alone: Floats) -> Iterator[str]:
    group = {host: at for at, its in enumerate(groups) for host in its}
    slow = [
        (float(left[a, b]), a, b) for a, b in np.argwhere(left < SLOW).tolist()
        if group[a] == group[b] and (not np.isnan(alone[a, b]) or np.isnan(alone).all())
    ]  # fmt: skip
    for rate, a, b in sorted(slow)[:MOST_PATHS]:
        yield f"{hosts[a]} -> {hosts[b]} alone is slow, at {rate:.0%}: one path"
    if len(slow) > MOST_PATHS:
        yield f"{len(slow) - MOST_PATHS} more paths are slow"


def _of_load(groups: Sequence[Sequence[int]], left: Floats, loaded: Floats) -> Iterator[str]:
    group = np.zeros(len(left), dtype=int)
    for at, its in enumerate(groups):
        group[list(its)] = at
    slow = loaded[(loaded < SLOW) & (left >= SLOW) & (group[:, None] == group[None, :])]
    if len(slow):
        yield (
            f"{len(slow)} of {int((~np.isnan(loaded)).sum())} messages are slow under load only, at "
            f"{np.median(slow):.0%}: they share links with others"
        )
