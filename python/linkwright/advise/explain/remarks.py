"""What a log says besides times that its reader should know, such as ports that differ between nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from linkwright.base.units import format_size
from linkwright.formats.logs import Facts, LogTable
from linkwright.machines import gpus

from .hypotheses.algorithm_forced import asked
from .hypotheses.kind import is_full
from .hypotheses.no_peer import host_memory
from .links import classes
from .sensitivity import Effect
from .system import System

APART = 1.25  # times in place over those out of place, that healthy machines do not reach
NEAR = 0.1  # of a time, for ports that would give it
MUCH = 0.2  # of the time: a number that is worth so much decides it
_MOST_NAMES = 4


def remarks(facts: Facts, table: LogTable, system: System, binds: Sequence[Effect]) -> list[str]:
    """Return the remarks on a table of a log, in sentences; `binds` are the numbers on which the healthy rate rests."""
    return [
        *_other_devices(table, facts, system), *_staged(facts, system, binds), *_assumed(assumed(binds)),
        *_in_place(table), *_versions(facts), *_runs(facts, table), *_ports(facts), *_links(facts), *_bonds(facts),
        *_measured(facts), *_topology(facts, system),
        *_unknown(facts, table),
    ]  # fmt: skip


def flaws(facts: Facts, table: LogTable, system: System) -> list[str]:
    """Return those remarks for which a gate fails, whatever the rates: the log is not a test of the whole machine."""
    return [*_other_devices(table, facts, system), *_runs(facts, table), *_ports(facts)]


def assumed(binds: Sequence[Effect]) -> Effect | None:
    """Return the assumed number on which a healthy rate rests, if it rests on one."""
    return next((one for one in binds[:1] if one.status == "assumed" and one.gain >= MUCH), None)


def other_devices(table: LogTable, facts: Facts, system: System) -> str:
    """Return what contradicts the machine: devices of the log that it does not have; empty if nothing does."""
    library = system.described.library()
    hardware = library["hardware"] if library else None
    names = gpus.others(hardware["gpu"], table.devices or facts.devices) if hardware else []
    # A machine may stand for GPUs of a later architecture that nothing describes yet.
    names = [name for name in names if (gpu := gpus.named(name)) is None or gpu.on != system.machine]
    return f"{_few(names)} in the log; {system.machine} has {hardware['gpu']}" if names else ""


def other_ports(system: System, size: int, time_us: float) -> str:
    """Return what to think of a network that was assumed: ports of another rate that give the time, if any do."""
    name = (system.fabric or "").partition(",")[0]
    said = f"The network ({name}) is assumed, as nothing names it"
    for rate in classes():
        other = system.on(f"rate={rate:g}")
        times = other.times([size])
        if times and abs(math.log(times[size] / time_us)) <= NEAR:
            return (
                f"{said}. With ports of {rate:g} Gb/s a healthy machine is within {NEAR:.0%} of yours: if it has such, "
                f"give --fabric {other.fabric}."
            )
    return f"{said}; give yours with --fabric (`linkwright list networks`)."


def wrong(table: LogTable) -> str | None:
    """What is said first of a table with wrong results; None if there are none."""
    sizes = sorted({row.size for row in table.rows if row.wrong})
    if not sizes:
        return None
    most = max(row.wrong or 0 for row in table.rows)
    of = len({row.size for row in table.rows})
    return (
        f"WRONG RESULTS: #wrong is not 0 at {len(sizes)} of {of} sizes (up to {most} elements). Data was corrupted, so "
        "no time below counts: check memory, links and the library first."
    )


def _other_devices(table: LogTable, facts: Facts, system: System) -> Iterator[str]:
    if said := other_devices(table, facts, system):
        yield f"THE LOG IS OF OTHER DEVICES: {said}. Nothing above counts unless the name is wrong: omit --on."


def _staged(facts: Facts, system: System, binds: Sequence[Effect]) -> Iterator[str]:
    stated = host_memory(facts) if system.nodes == 1 else ""
    if stated and any(one.key.startswith("fabric.transport.host_") for one in binds):
        yield (
            f"Data between GPUs pass through host memory (stated by the log: {stated}): these GPUs cannot "
            "access each other's memory, and the healthy machine is described so, too."
        )


def _assumed(number: Effect | None) -> Iterator[str]:
    if number:
        yield (
            f"The healthy rate rests on an assumed number ({number.key} = {number.value}), so no more can be judged. "
            "Measure it (p2pBandwidthLatencyTest, nvbandwidth), or fit the machine to a log of a healthy node."
        )


def _in_place(table: LogTable) -> Iterator[str]:
    """Times in place that are not those out of place, at the largest size; the verdict takes the latter."""
    last = max((row.size for row in table.rows), default=0)
    out, place = ([row.time for row in table.rows if row.size == last and row.in_place is its] for its in (False, True))
    if out and place and out[-1] and place[-1] and place[-1] > APART * out[-1]:
        yield (
            f"In place, {format_size(last)} takes {place[-1] / out[-1]:.2g} times as long as out of place, and only "
            "the latter is judged. Both should be alike: see whether buffers are registered and on the same GPU."
        )


def _versions(facts: Facts) -> Iterator[str]:
    if len(facts.versions) > 1:
        named = " and ".join(facts.versions)
        yield f"The log names {facts.library} {named}; {facts.version} is taken, which it says last."


def _runs(facts: Facts, table: LogTable) -> Iterator[str]:
    if facts.runs > 1:
        yield (
            f"The log lists ranks 0 to {(table.ranks or 1) - 1} {facts.runs} times: these are {facts.runs} independent "
            f"runs of {table.ranks} ranks side by side, and not one of {facts.runs * (table.ranks or 1)}. Build "
            "nccl-tests with MPI=1 to join them."
        )


def _ports(facts: Facts) -> Iterator[str]:
    counts = {host: len(names) for host, names in facts.nics.items()}
    if len(set(counts.values())) > 1:
        usual = Counter(counts.values()).most_common(1)[0][0]
        usual = max(counts.values()) if list(counts.values()).count(usual) == 1 else usual
        others = [f"{host} {count}" for host, count in sorted(counts.items()) if count != usual]
        yield f"Nodes differ in their network ports: most list {usual}, {_few(others)}."


def _links(facts: Facts) -> Iterator[str]:
    for host, names in sorted(facts.nics.items()):
        links = Counter(name.rpartition("/")[2] for name in names)
        if len(links) > 1:
            usual = links.most_common(1)[0][0]
            odd = [name for name in names if name.rpartition("/")[2] != usual]
            yield (
                f"{host or 'A node'} mixes links: {_few(odd)} among {links[usual]} of {usual}; leave it out of "
                "NCCL_IB_HCA."
            )
            return


def _bonds(facts: Facts) -> Iterator[str]:
    """Ports that stand for several, which one queue pair does not use together."""
    bonds = sorted({name.partition(":")[0] for names in facts.nics.values() for name in names if "bond" in name})
    if bonds and not facts.setting("NCCL_IB_QPS_PER_CONNECTION"):
        yield (
            f"{_few(bonds)} joins several ports, of which a connection with one queue pair uses one. If rates are half "
            "of what the bond has, try NCCL_IB_QPS_PER_CONNECTION=2 or 4."
        )


def _measured(facts: Facts) -> Iterator[str]:
    """Links that the same log measured."""
    shares = [f"{name} {least:.0%}" for name, (_, least) in facts.measured.items() if is_full(facts, name)]
    if shares:
        yield (
            f"Links were measured, too, and have their rate ({', '.join(shares)} of what the machine has): faults by "
            "which they would be slow are excluded."
        )


def _topology(facts: Facts, system: System) -> Iterator[str]:
    """What the library warns of, and rings that cross between rails."""
    yield from (f"The library warns: {one}." for one in facts.topology.warnings)
    ring = facts.topology.searches.get("ring")
    if ring and ring.changes_nic and system.nodes > 1:
        yield (
            "Rings enter and leave a node through different NICs (crossNic 1): where each NIC has a switch of its own, "
            "that traffic passes the switches above. Compare with NCCL_CROSS_NIC=0."
        )


def _unknown(facts: Facts, table: LogTable) -> Iterator[str]:
    value = facts.setting("NCCL_ALGO") or ""
    if unknown := asked(value, table.collective or "")[1]:
        yield f"NCCL_ALGO={value} forces an algorithm that is not modelled ({', '.join(unknown)}); it is not simulated."


def _few(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
