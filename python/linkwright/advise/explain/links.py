"""What measured links say: a port, the pairs of a node, dispatch and combine between GPUs.

    port        against the port of the named machine, or the smallest speed class that is not below its rate
    pairs       against their like: pairs of the same kinds of ends in the same test; and the machine, if it is named
    exchange    dispatch and combine, against the links and ports of a GPU of the named machine

Where the machine is not named, the answer says under which assumption it holds. An exchange is limited by the link that
is the busiest for its rate, so that one decides.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from linkwright import _native, machines
from linkwright.base import toml
from linkwright.base.errors import UsageError
from linkwright.base.units import GIGA, counted, format_gb_per_s, format_size
from linkwright.formats.logs import Link, Log
from linkwright.libraries.settings import Condition, Refusal, settle
from linkwright.machines import Variant

if TYPE_CHECKING:
    from linkwright.base.native_types import NetworkColumns

# Of the rate of a port, a pair or a GPU's links. A stream of messages comes nearer to it than an exchange does.
# Published exchanges of few tokens on healthy nodes are at six tenths, long ones at nine.
FINE = {"port": 0.90, "pair": 0.80, "exchange": 0.55}
BROKEN = {"port": 0.50, "pair": 0.50, "exchange": 0.35}
LEAST_SIZE = 32 << 10  # bytes: smaller messages do not show the rate of a port
GAP = 1.25  # rates farther apart than this factor are of different kinds of pairs
FEW = 0.25  # of the pairs: more of them are another kind of link rather than slow ones
NAMED = 8  # pairs in an answer
_RATES = {"GB/s": 1.0, "Gb/s": 1 / 8, "MB/s": 1e-3, "TB/s": 1e3}
WORDS = ("broken", "suspicious", "fine")
_SCALE_UP = ("nvlink", "xgmi")


@dataclass(frozen=True)
class LinkVerdict:
    """What is said of the links of one test.

    Attributes:
        title: what was measured.
        rows: (what, rate, what it is compared with, share of it) to be listed; None where nothing is known.
        verdict: `fine`, `suspicious` or `broken`; None where nothing can be judged.
        sentences: the answer.
    """

    title: str
    rows: tuple[tuple[str, str, str, float | None], ...]
    verdict: str | None
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class HealthyRate:
    """Rates of a described machine in 10^9 B/s, each with what software gets of it.

    Attributes:
        machine: its name.
        pair: of two GPUs; None if the machine does not say.
        scale_up: what all links of a GPU to the others of its node carry.
        port: of one port of a network; None of a single node without one.
        scale_out: the ports of a node by its GPUs.
        gpus: how many GPUs a node has.
        line_rate: of a port, without what headers take.
        own: the class of links between its GPUs.
    """

    machine: str
    pair: float | None
    scale_up: float | None
    port: float | None
    scale_out: float | None
    gpus: int
    line_rate: float | None
    own: str


def judged(log: Log, machine: str | None, variant: Variant) -> list[LinkVerdict]:
    """What is to be said of the links of a log.

    Args:
        log: with links.
        machine: a described machine or the path of a machine file; None: that of the devices in the log, if pairs of
            them were measured.
        variant: its nodes and network.

    Raises:
        UsageError: the machine is not known.
    """
    reference = _reference(machine, variant) if machine else _of_devices(log)
    found: list[LinkVerdict] = []
    found += _ports([link for link in log.links if link.medium == "port"], reference)
    found += _pairs([link for link in log.links if link.medium == "pair"], reference)
    found += _peers([link for link in log.links if link.medium == "pair"])
    found += _exchanges([link for link in log.links if link.medium not in ("port", "pair")], reference, variant)
    return found


def verdict(found: Iterable[LinkVerdict]) -> str | None:
    """The worst verdict; None if there is none."""
    said = [one.verdict for one in found if one.verdict]
    return min(said, key=WORDS.index, default=None)


def _word(kind: str, share: float) -> str:
    return "fine" if share >= FINE[kind] else "suspicious" if share >= BROKEN[kind] else "broken"


def shares(links: Sequence[Link], machine: str, variant: Variant) -> dict[str, tuple[float, float]]:
    """Return the (usual, least) share of its rate that each class of links of a machine had in tests.

    Of pairs of GPUs the fastest test counts, of a port its fastest row. Copies through host memory measure no links.
    """
    reference = _reference(machine, variant) if links else None
    if reference is None:
        return {}
    tests: dict[tuple[str, str], list[float]] = {}
    ports: dict[str, float] = {}
    for link in links:
        ends = (link.source.split()[0], (link.target or "").split()[:1])
        if link.rate is None or "Disabled" in link.test or link.source == link.target:
            continue
        if link.medium == "pair" and reference.pair and ends == ("GPU", ["GPU"]):
            share = link.rate / (2 if link.both_ways else 1) / reference.pair
            tests.setdefault((reference.own, link.test), []).append(share)
        elif link.medium == "port" and reference.line_rate and (link.size or 0) >= LEAST_SIZE:
            share = link.rate / _streams(link) / reference.line_rate
            ports[link.source] = max(share, ports.get(link.source, 0.0))
    tests |= {("port", ""): list(ports.values())} if ports else {}
    return {
        name: max((statistics.median(its), min(its)) for (other, _), its in tests.items() if other == name)
        for name, _ in tests
    }


def _streams(link: Link) -> int:
    """How many ways and ports share the rate of a row."""
    return (2 if link.both_ways else 1) * (2 if link.source.endswith("both ports") else 1)


# ---- ports


@functools.cache
def classes() -> list[float]:
    """Rates of ports in Gb/s, from the slowest."""
    table = toml.data_file(__file__, "ports.toml")["port"]
    return sorted(float(row["rate"]["value"]) for row in table.values())


def _ports(links: Sequence[Link], reference: HealthyRate | None) -> Iterator[LinkVerdict]:
    """Each port by its fastest row; a rate of both ways or both ports is shared among them."""
    groups: dict[tuple[str, str, str], list[Link]] = {}
    for link in links:
        groups.setdefault((link.tool, link.test, link.source), []).append(link)
    if not groups:
        return
    rows: list[tuple[str, str, str, float | None]] = []
    sentences: list[str] = []
    words: list[str] = []
    for (_, test, port), its in groups.items():
        timed = [link for link in its if link.rate is None]
        rows += [(f"{port}, {test}, {format_size(one.size or 0)}", f"{one.time:.4g} us", "", None) for one in timed[:1]]
        rated = [link for link in its if link.rate is not None and (link.size or 0) >= LEAST_SIZE]
        if not rated and len(timed) < len(its):
            sentences.append(
                f"{port}: no message of {test} has {format_size(LEAST_SIZE)} or more, so its rate does not show the "
                "port's; repeat it with -s 1048576."
            )
        if not rated:
            continue
        best = max(rated, key=lambda link: link.rate or 0)
        parts = _streams(best)
        gbits = 8 * (best.rate or 0) / parts
        line = 8 * reference.line_rate if reference and reference.line_rate else _class_of(gbits)
        if line is None:
            sentences.append(f"{port}: {gbits:.4g} Gb/s are more than any port carries, so it went through memory.")
            continue
        share = gbits / line
        words.append(_word("port", share))
        each = "" if parts == 1 else f" each of {parts}"
        rows.append(
            (f"{port}, {test}, {format_size(best.size or 0)}", f"{gbits:.4g} Gb/s{each}", f"{line:g} Gb/s", share)
        )
        sentences += _of_port(port, gbits, line, share, reference)
    tools = ", ".join(sorted({tool for tool, _, _ in groups}))
    yield LinkVerdict(
        f"{counted(len({port for _, _, port in groups}), 'port')} by {tools}", tuple(rows),
        min(words, key=WORDS.index, default=None), tuple(sentences),
    )  # fmt: skip


def _class_of(gbits: float) -> float | None:
    return next((rate for rate in classes() if gbits <= 1.01 * rate), None)


def _of_port(port: str, gbits: float, line: float, share: float, reference: HealthyRate | None) -> Iterator[str]:
    word = _word("port", share)
    of = f"the {line:g} Gb/s port of {reference.machine}" if reference and reference.line_rate else f"{line:g} Gb/s"
    assumed = "" if reference and reference.line_rate else ", the smallest class of ports that carries it"
    yield f"{port}: {word}. {gbits:.4g} Gb/s are {share:.0%} of {of}{assumed}" + (
        f"; a healthy port reaches {FINE['port']:.0%}." if word != "fine" else "."
    )
    checks = (
        "the rate of the link (ibstat | grep Rate, or ethtool), the width and speed of its PCIe slot (lspci -vv | grep "
        "LnkSta), the MTU, and whether the buffers are on the NIC's own NUMA node (numactl)"
    )
    if word != "fine":
        yield f"Check {checks}."
    elif not (reference and reference.line_rate) and (
        above := [rate for rate in classes() if _word("port", gbits / rate) != "fine"]
    ):
        yield f"If {port} is a port of {above[0]:g} Gb/s, it is at {gbits / above[0]:.0%}: then check {checks}."


# ---- pairs


def _pairs(links: Sequence[Link], reference: HealthyRate | None) -> Iterator[LinkVerdict]:
    groups: dict[tuple[str, str, str, str], list[Link]] = {}
    for link in links:
        if link.target is not None and link.source != link.target:
            ends = (link.source.split()[0], link.target.split()[0])
            groups.setdefault((link.tool, link.test, *ends), []).append(link)
    for (_, test, source, target), its in groups.items():
        if len(its) > 1 or reference:
            yield _alike(f"{test}, {source} to {target}: {counted(len(its), 'pair')}", its, reference)


def _alike(title: str, links: Sequence[Link], reference: HealthyRate | None) -> LinkVerdict:
    """Pairs of one kind in one test."""
    kinds = _kinds(links)
    is_of_host = any(end and end.startswith("CPU") for end in (links[0].source, links[0].target))
    ends = _slow_ends(links, kinds[-1][0].rate or 0)
    # All GPUs reach the host alike, and a few slow devices make most pairs slow.
    usual = kinds[-1] if ends or is_of_host else max(kinds, key=len)
    slow = [link for kind in kinds for link in kind if (link.rate or 0) < (usual[0].rate or 0)]
    typical = statistics.median(link.rate or 0 for link in usual)
    rows: list[tuple[str, str, str, float | None]] = [
        (_spread(kind), counted(len(kind), "pair"), "", None) for kind in reversed(kinds)
    ]
    sentences: list[str] = []
    word = "fine"
    one_sided = _one_sided(links)
    if slow and (ends or is_of_host or len(slow) <= FEW * len(links)):
        worst = min((link.rate or 0) / typical for link in slow)
        word = "broken" if worst < BROKEN["pair"] else "suspicious"
        sentences += _of_slow(slow, typical, ends)
    elif len(kinds) > 1:
        sentences.append(
            f"There are {len(kinds)} kinds of pairs, as where some have more links, or another processor, between them "
            f"(nvidia-smi topo -m, rocm-smi --showtopo): {'; '.join(_spread(kind) for kind in reversed(kinds))}."
        )
        if one_sided:
            word = "suspicious"
            sentences.append(f"One way is slower than the other: {_named(one_sided)}.")
    else:
        sentences.append(f"All pairs are alike, within {GAP - 1:.0%}: {_spread(usual)}.")
    # Without peer access data go through the host, whatever links there are.
    is_direct = all(end and end.startswith("GPU") for end in (links[0].source, links[0].target))
    expected = reference.pair if reference and is_direct and "Disabled" not in links[0].test else None
    if reference and expected:
        share = typical / (2 if links[0].both_ways else 1) / expected
        rows.append((f"{reference.machine}, a pair of GPUs", format_gb_per_s(expected, 4), "", share))
        of_machine = _word("pair", min(1.0, share))
        word = min(word, of_machine, key=WORDS.index)
        sentences.append(
            f"The usual pair has {share:.0%} of the {format_gb_per_s(expected, 4)} each way of {reference.machine}: "
            f"{of_machine}."
        )
    return LinkVerdict(title, tuple(rows), word if len(links) > 1 or expected else None, tuple(sentences))


def _peers(links: Sequence[Link]) -> Iterator[LinkVerdict]:
    """Pairs with peer access next to the same pairs without, whose data goes through host memory."""
    ways = {way: statistics.median(its) for way in ("Enabled", "Disabled") if (its := _rates(links, way))}
    if len(ways) < 2 or ways["Enabled"] >= FINE["pair"] * ways["Disabled"]:
        return
    share = ways["Enabled"] / ways["Disabled"]
    through = format_gb_per_s(ways["Disabled"], 4)
    yield LinkVerdict(
        "peer access against copies through host memory",
        (("the usual pair with peer access", format_gb_per_s(ways["Enabled"], 4), through, share),),
        _word("pair", share),
        (f"Peer access is slower than copies through host memory ({through}): PCIe access control services (ACS) or an "
         "IOMMU redirect it through the processor, or it crosses processors. Check lspci -vvv | grep ACSCtl, "
         "cat /proc/cmdline (iommu=) and nvidia-smi topo -m; until then NCCL_P2P_DISABLE=1 is faster.",),
    )  # fmt: skip


def _rates(links: Sequence[Link], way: str) -> list[float]:
    """One-way rates between different GPUs with peer access `Enabled` or `Disabled`."""
    its = (link for link in links if f"P2P={way}" in link.test and link.source != link.target and not link.both_ways)
    return [link.rate for link in its if link.rate]


def _kinds(links: Sequence[Link]) -> list[list[Link]]:
    """Links by their rates, the slowest first: a kind ends where the next rate is much higher."""
    ordered = sorted(links, key=lambda link: link.rate or 0)
    kinds = [[ordered[0]]]
    for link in ordered[1:]:
        if (link.rate or 0) > GAP * (kinds[-1][-1].rate or 0):
            kinds.append([])
        kinds[-1].append(link)
    return kinds


def _spread(kind: Sequence[Link]) -> str:
    least, most = (format_gb_per_s(one.rate or 0.0, 4) for one in (kind[0], kind[-1]))
    return least if least == most else f"{least} to {most}"


def _one_sided(links: Sequence[Link]) -> list[Link]:
    """Links that are much slower than the same pair the other way."""
    rates = {(link.source, link.target): link.rate or 0 for link in links}
    return [link for link in links if rates.get((link.target or "", link.source), 0) > GAP * (link.rate or 0)]


def _slow_ends(links: Sequence[Link], fast: float) -> list[str]:
    """The devices, fewer than half, all of whose pairs are slow, if these are all slow pairs."""
    slow = [link for link in links if (link.rate or 0) < fast]
    well = {end for link in links if (link.rate or 0) >= fast for end in (link.source, link.target)}
    devices = {end for link in links for end in (link.source, link.target)}
    ends = sorted(end for end in devices - well if end)
    explained = all(link.source in ends or link.target in ends for link in slow)
    return ends if slow and explained and 0 < 2 * len(ends) < len(devices) else []


def _of_slow(slow: Sequence[Link], typical: float, ends: Sequence[str]) -> Iterator[str]:
    yield f"Slower than their like, which have {format_gb_per_s(typical, 4)}: {_named(slow)}."
    common = ends or sorted(set.intersection(*({link.source, link.target or ""} for link in slow)))[:1]
    if (len(slow) > 1 or ends) and common:
        yield (
            f"All of them have {' or '.join(common)}: suspect its links and its slot (nvidia-smi nvlink -s, "
            "lspci -vv | grep LnkSta)."
        )
    else:
        yield "Check the links of these pairs (nvidia-smi topo -p2p r, nvidia-smi nvlink -s, rocm-smi --showtopo)."


def _named(links: Sequence[Link]) -> str:
    shown = [
        f"{link.source} to {link.target} {format_gb_per_s(link.rate or 0.0, 4)}"
        for link in sorted(links, key=lambda one: one.rate or 0)
    ]
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if len(shown) > NAMED else "")


# ---- dispatch and combine


def _exchanges(links: Sequence[Link], reference: HealthyRate | None, variant: Variant) -> Iterator[LinkVerdict]:
    if not links:
        return
    tests: dict[str, list[Link]] = {}
    for link in links:
        tests.setdefault(link.test, []).append(link)
    rows: list[tuple[str, str, str, float | None]] = []
    sentences: list[str] = []
    words: list[str] = []
    for test, its in tests.items():
        shares: dict[str, float] = {}
        for medium in dict.fromkeys(link.medium for link in its):
            rates = [link.rate or 0 for link in its if link.medium == medium]
            typical = statistics.median(rates)
            # What limits an exchange that does not say what it went through.
            between = "scale-out" if (variant.nodes or 1) > 1 else "scale-up"
            kind = between if medium == "exchange" else medium
            limit = (reference.scale_out if kind == "scale-out" else reference.scale_up) if reference else None
            share = typical / limit if limit else None
            name = {"scale-up": "NVLink or xGMI", "scale-out": "RDMA", "exchange": "all"}[medium]
            rows.append(
                (f"{test}, {name}", format_gb_per_s(typical, 4), format_gb_per_s(limit, 4) if limit else "", share)
            )
            if share is not None:
                shares[kind] = share
            sentences += _late(test, [link for link in its if link.medium == medium], typical)
        if shares:
            words.append(_word("exchange", max(shares.values())))
    if reference is None:
        sentences.append("Name the machine with --on (and --nodes) to compare these rates with its links and ports.")
    elif words:
        sentences += _of_exchange(tests, rows, min(words, key=WORDS.index), reference)
    yield LinkVerdict(
        "dispatch and combine by DeepEP", tuple(rows), min(words, key=WORDS.index, default=None), tuple(sentences)
    )


def _late(test: str, links: Sequence[Link], typical: float) -> Iterator[str]:
    """Ranks that are slower than the others."""
    slow = [link for link in links if (link.rate or 0) * GAP < typical]
    if slow and len(links) > 2:
        yield (
            f"{test}: slower than the median of {format_gb_per_s(typical, 4)}: "
            + ", ".join(f"{link.source} {format_gb_per_s(link.rate or 0.0, 4)}" for link in slow[:NAMED])
            + "."
        )


def _of_exchange(
    tests: Mapping[str, Sequence[Link]], rows: Sequence[tuple[str, str, str, float | None]], word: str, on: HealthyRate
) -> Iterator[str]:
    shares = [share for *_, share in rows if share is not None]
    yield (
        f"Verdict: {word}. The busiest link of the slowest test is at {_least(tests, rows):.0%} of what a GPU of "
        f"{on.machine} has; healthy exchanges reach {FINE['exchange']:.0%} and more."
    )
    out = [link.rate or 0 for its in tests.values() for link in its if link.medium == "scale-out"]
    if not out or word == "fine":
        if word != "fine" and shares:
            yield "Check that peers reach each other over NVLink (nvidia-smi topo -m), and how many SMs the test had."
        return
    rate = statistics.median(out)
    if on.port and on.gpus > 1 and rate <= GAP * on.port / on.gpus:
        yield (
            f"{format_gb_per_s(rate)} for each GPU are what one port of {format_gb_per_s(on.port)} gives when all "
            f"{on.gpus} GPUs of a node share it: all traffic on one NIC, or data that is staged through host memory."
        )
    yield (
        "Check that each GPU uses its own NIC (NVSHMEM_HCA_PE_MAPPING, NVSHMEM_HCA_LIST, nvidia-smi topo -m), that "
        "GPUDirect RDMA is on (lsmod | grep nvidia_peermem), and ib_write_bw with GPU memory on each port."
    )


def _least(tests: Mapping[str, Sequence[Link]], rows: Sequence[tuple[str, str, str, float | None]]) -> float:
    found = []
    for test in tests:
        its = [share for what, _, _, share in rows if what.startswith(f"{test}, ") and share is not None]
        found += [max(its)] if its else []
    return min(found)


# ---- the machine


def _of_devices(log: Log) -> HealthyRate | None:
    """Rates of the machine whose devices a log lists; None if nobody knows it."""
    names = list(log.facts.devices)
    if len(names) != 1 or not any(link.medium == "pair" for link in log.links):
        return None
    found = settle(Condition("links", names[0], log.facts.devices[names[0]], 1, "alltoall"))
    if isinstance(found, Refusal) or found.setup.machine.startswith(machines.ASSUMED):
        return None
    reference = _reference(found.setup.machine, Variant())
    return replace(reference, machine=f"{reference.machine}, which has such devices")


def _reference(machine: str, variant: Variant) -> HealthyRate:
    """Rates of a described machine, with the network that its generation mostly has."""
    node = machines.load(machine)
    gpus = node.ranks
    if not gpus:
        raise UsageError(f"--on {machine}: the machine has no size; name one whose GPUs are described")
    numbers = rates(node)
    up = next((name for name in _SCALE_UP if f"fabric.links.{name}.bandwidth" in numbers), "pcie")
    share = numbers.get(f"fabric.links.{up}.share", 1.0)
    network = node.network()
    edges = [] if network is None else _edges(network, up)
    pair, scale_up = (max(edges) * share, sum(edges) * share) if edges else (None, None)
    fabric = variant.fabric
    if fabric is None and gpus > 1:
        settled = settle(Condition("links", machine, 2 * gpus, 2, "alltoall"))
        fabric = None if isinstance(settled, Refusal) else settled.setup.fabric
    if fabric is None:
        return HealthyRate(node.name, pair, scale_up, None, None, gpus, None, up)
    cluster = machines.load(machine, Variant(2, fabric))
    numbers = rates(cluster)
    line = numbers.get("fabric.links.port.bandwidth")
    if line is None:
        return HealthyRate(node.name, pair, scale_up, None, None, gpus, None, up)
    port = line * numbers.get("fabric.links.port.share", 1.0)
    drawn = cluster.network()
    ports = 0 if drawn is None else sum(1 for kind in drawn["edges"]["class"] if kind == "port") // 2
    return HealthyRate(node.name, pair, scale_up, port, port * ports / gpus or None, gpus, line, up)


def rates(machine: _native.Machine) -> dict[str, float]:
    """Return the numbers of the links of a machine file: key -> 10^9 B/s, or a ratio."""
    found = {}
    for row in machine.numbers():
        if row["key"].startswith("fabric.links.") and row["unit"] in (*_RATES, "ratio"):
            found[row["key"]] = float(str(row["value"])) * _RATES.get(row["unit"], 1.0)
    return found


def _edges(network: NetworkColumns, kind: str) -> list[float]:
    """Rates of the links of a kind at the first GPU, 10^9 B/s."""
    first = next((at for at, what in enumerate(network["nodes"]["kind"]) if what == "rank"), None)
    edges = network["edges"]
    rows = zip(edges["class"], edges["a"], edges["b"], edges["bytes_per_s"], strict=True)
    return [rate / GIGA for name, a, b, rate in rows if name == kind and first in (a, b) and rate]
