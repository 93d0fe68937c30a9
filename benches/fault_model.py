"""A second model of GPU nodes and of what goes wrong with them: closed formulas, for benches/answers.py.

`explain` finds causes by simulating its own hypotheses, so logs from the same simulator would only show that it can
invert itself. This module shares nothing with it: it imports nothing of linkwright, and its times have other shapes.

    time(size) = launch + steps * hop + factor * size / rate * (1 + (half / size)^q)      the fastest protocol
    row        = time * stalls * noise                     noise is lognormal, 10 %

    healthy   plateaus of published tables; launch, `half` and `q` are drawn for each log
    faults    change the terms, or the shape: a rate that falls as the size grows, timeouts at random, bursts of others

The numbers of nodes are rounded from public tables (reference `modern` of the evidence package) or, where none was
published, assumed; they only have to be plausible, and are not those of the machine files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

MIB = 1 << 20
SIZES = tuple(1 << power for power in range(10, 34))  # 1 KiB to 8 GiB
NOISE = 0.10  # standard deviation of ln(time)
PROGRAMS = {"allreduce": "all_reduce", "allgather": "all_gather", "reduce_scatter": "reduce_scatter",
            "alltoall": "alltoall", "sendrecv": "sendrecv", "broadcast": "broadcast", "reduce": "reduce"}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A kind of node; rates are bus rates in 10^9 B/s that all of its GPUs reach together, times are in us.

    Attributes:
        machine: the described machine that a user would name.
        fabric: the network that a user would name.
        device: the name that logs print.
        library: `NCCL` or `RCCL`, and the version that logs print.
        gpus: of a node.
        links: a ring over the GPUs' own links.
        multicast: with reductions in the switch; 0 without.
        pcie: a ring over PCIe.
        ports: of a node.
        port: rate of one port.
        two: allreduce on two nodes, where trees send less than rings.
        staged: what a node's host memory can pass on to its ports.
        launch: of a collective.
        hop: of a flag inside a node.
        net_hop: of a flag from node to node.
        low_latency: rate of the protocol with a flag in every word, inside a node.
    """

    machine: str
    fabric: str
    device: str
    library: tuple[str, str]
    gpus: int
    links: float
    multicast: float
    pcie: float
    ports: int
    port: float
    two: float
    staged: float
    launch: float
    hop: float
    net_hop: float
    low_latency: float


NODES = (
    Node("hgx-h100", "ndr-fat-tree", "NVIDIA H100 80GB HBM3", ("NCCL", "2.27.3"), 8, 367, 480, 36, 8, 48.5, 470, 115,
         7.5, 0.55, 6.5, 120),
    Node("dgx-a100", "hdr-fat-tree", "NVIDIA A100-SXM4-80GB", ("NCCL", "2.18.5"), 8, 231, 0, 17, 8, 23.2, 186, 75,
         11, 0.8, 7.0, 80),
    Node("b200", "ndr-fat-tree", "NVIDIA B200", ("NCCL", "2.27.5"), 8, 690, 840, 38, 8, 48.5, 690, 125, 12, 0.95,
         6.5, 150),
    Node("gh200-alps", "slingshot-11", "NVIDIA GH200 120GB", ("NCCL", "2.23.4"), 4, 339, 0, 0, 4, 23.1, 158, 0,
         6, 0.6, 5.8, 90),
    Node("a100-polaris", "slingshot-11", "NVIDIA A100-SXM4-40GB", ("NCCL", "2.21.5"), 4, 225, 0, 16, 2, 18.1, 36, 14,
         7, 0.6, 6.5, 70),
    Node("mi300x", "roce-400", "AMD Instinct MI300X", ("RCCL", "2.22.3"), 8, 313, 0, 38, 8, 44.8, 358, 110,
         8, 0.4, 9.0, 90),
)  # fmt: skip
BY_MACHINE = {node.machine: node for node in NODES}


@dataclass(frozen=True)
class Terms:
    """What a time is made of, of one protocol.

    Attributes:
        latency: us, at any size.
        inside: the bus rate that nodes allow inside.
        network: the bus rate that the network allows; infinite on one node.
        half: the size at which the rate is half of its end.
    """

    latency: float
    inside: float
    network: float
    half: float


@dataclass(frozen=True)
class Run:
    """A benchmark on nodes of one kind, healthy until a fault changes it.

    Attributes:
        node: the kind.
        nodes: how many.
        collective: as in the command line of linkwright.
        launch: the factor of launches and hops on this site.
        level: the factor of all rates on this site.
        bend: q of the formula.
        algorithms: `multicast`, `tree`, `ring`: what the library may use.
        protocols: `simple`, `ll128`, `ll`: what the library may use.
        serial: us for which one process launches the GPUs of a node in turn.
        inside, network: (time, size) -> the factor of the rate there.
        stalls: (generator, size, us) -> us that timeouts add.
        hops: us that every step takes longer, inside a node and between nodes.
        clock: of the GPUs, 1 is full.
        only: the bus rate of the GPUs' links, where these are not their own.
        ceiling: the bus rate above which the network does not come.
    """

    node: Node
    nodes: int
    collective: str
    launch: float = 1.0
    level: float = 1.0
    bend: float = 0.85
    half: float = 12 * MIB
    algorithms: tuple[str, ...] = ("multicast", "tree", "ring")
    protocols: tuple[str, ...] = ("simple", "ll128", "ll")
    serial: float = 0.0
    inside: Callable[[int], float] = lambda size: 1.0
    network: Callable[[int], float] = lambda size: 1.0
    stalls: Callable[[random.Random, int, float], float] = lambda random, size, time: 0.0
    hops: tuple[float, float] = (0.0, 0.0)
    clock: float = 1.0
    only: float = 0.0
    ceiling: float = math.inf

    @property
    def ranks(self) -> int:
        """GPUs that take part."""
        return self.node.gpus * self.nodes

    @property
    def factor(self) -> float:
        """busbw over size / time."""
        return bus_factor(self.collective, self.ranks)

    def time(self, size: int) -> float:
        """us, without noise and stalls: the fastest of what the library may use."""
        ways = [(a, p) for a in self._algorithms for p in self.protocols if a != "multicast" or p == "simple"]
        ways = ways or [("ring", protocol) for protocol in self.protocols]
        found = min(self._time(size, self._terms(algorithm, protocol)) for algorithm, protocol in ways)
        return found + self.serial * self.node.gpus

    @property
    def _algorithms(self) -> tuple[str, ...]:
        """What is possible of what the library may use."""
        multicast = self.node.multicast and not self.only
        if self.collective != "allreduce":
            return ("ring",)
        return tuple(one for one in self.algorithms if one != "multicast" or multicast) or ("ring",)

    def _time(self, size: int, terms: Terms) -> float:
        inside = terms.inside * self.inside(size)
        network = min(terms.network * self.network(size), self.ceiling)
        rate = min(inside, network) * self.level
        bend = 1 + (terms.half / size) ** self.bend
        return terms.latency + self.factor * size / (rate * 1e3) * bend

    def _terms(self, algorithm: str, protocol: str) -> Terms:
        node = self.node
        hop, net_hop = node.hop + self.hops[0], node.net_hop + self.hops[1]
        slower = {"ll": 1.0, "ll128": 1.3, "simple": 3.0}[protocol]
        steps = self._steps(algorithm)
        hops = (steps[0] * hop * slower + steps[1] * net_hop * min(slower, 2.0)) * self.launch / self.clock
        share = {"ll": 0.5, "ll128": 0.92, "simple": 1.0}[protocol]
        inside = self._copied((self.only or self._own(algorithm)) * share)
        network = self._network(algorithm) * share
        if protocol == "ll":
            inside = min(inside, node.low_latency)
            network = min(network, node.low_latency / 3) if self.nodes > 1 else network
        fill = {"ll": 0.01, "ll128": 0.15, "simple": 1.0}[
            protocol
        ]  # the finer its pieces, the sooner a pipeline is full
        half = self.half * fill * (self.nodes**0.5 if algorithm == "ring" else 1)
        return Terms(node.launch * self.launch / self.clock + hops, inside, network, half)

    def _steps(self, algorithm: str) -> tuple[float, float]:
        """Steps one after another, inside a node and between nodes."""
        gpus, depth = self.node.gpus, math.ceil(math.log2(self.nodes)) if self.nodes > 1 else 0
        if self.collective == "alltoall":
            return gpus - 1, 2 * depth
        if self.collective != "allreduce":
            return (gpus - 1) * self.nodes, self.nodes - 1
        if algorithm == "ring":
            return 2 * (gpus - 1) * self.nodes, 2 * (self.nodes - 1)
        return (4 if algorithm == "multicast" else 2 * (gpus - 1)), 2 * depth

    def _own(self, algorithm: str) -> float:
        """The bus rate inside a node by the GPUs' own links."""
        node = self.node
        if algorithm == "multicast":
            return node.multicast
        if self.nodes == 1:
            return 0.8 * node.links if algorithm == "tree" else node.links
        return 1.2 * node.links  # less stays inside a node

    def _copied(self, rate: float) -> float:
        """A rate as the GPUs' clock allows it: processors copy somewhat faster than links carry."""
        able = 1.35 * rate * self.clock
        return (rate**-6 + able**-6) ** (-1 / 6) * (1 + 1.35**-6) ** (1 / 6)

    def _network(self, algorithm: str) -> float:
        """The bus rate that all ports of a node allow."""
        if self.nodes == 1:
            return math.inf
        node, ring = self.node, self.node.ports * self.node.port
        if self.collective == "alltoall":
            return node.port * node.ports / node.gpus * self.nodes / (self.nodes - 1) * (self.ranks - 1) / self.ranks
        if algorithm == "ring" or self.collective != "allreduce":
            return ring
        if self.nodes == 2:
            return max(node.two, ring) if node.multicast == 0 or algorithm == "multicast" else 0.9 * ring
        return ring if algorithm == "multicast" else 0.5 * ring


def bus_factor(collective: str, ranks: int) -> float:
    """busbw over size / time, as nccl-tests has it."""
    if collective == "allreduce":
        return 2 * (ranks - 1) / ranks
    return 1.0 if collective in ("broadcast", "reduce", "sendrecv") else (ranks - 1) / ranks


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    Attributes:
        key: one word.
        nodes: numbers of nodes on which it can be seen.
        machines: where it can be seen; empty: on all.
        collectives: by which it can be seen.
        break_: (run, generator) -> the same with the fault, and what the library's lines say of it.
    """

    key: str
    nodes: Sequence[int]
    machines: Sequence[str]
    collectives: Sequence[str]
    break_: Callable[[Run, random.Random], tuple[Run, Sequence[str]]]


def _port_down(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Traffic of the lost ports is shared by the others, not quite evenly."""
    ports = run.node.ports
    lost = draw.choice([number for number in (1, 2, 4) if ports * 0.2 <= number < ports])
    share = (ports - lost) / ports * draw.uniform(0.92, 1.0)
    return replace(run, network=lambda size: share), [_using(ports - lost)]


def _links_slow(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Errors appear as transfers last: the larger the size, the less of the rate is left."""
    end, knee = draw.uniform(0.3, 0.65), draw.uniform(2, 16) * MIB
    return replace(run, inside=lambda size: end + (1 - end) / (1 + size / knee)), []


def _port_errors(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Lost packets: ports lose time to resent ones, and timeouts add stalls of random number and length."""
    share, timeout = draw.uniform(0.3, 0.5), draw.uniform(100, 500)
    between = draw.uniform(200, 600) * MIB  # bytes from one timeout to the next

    def stalls(source: random.Random, size: int, time: float) -> float:
        count = sum(source.random() < size / between / 40 for _ in range(40))
        return sum(source.expovariate(1 / timeout) for _ in range(count))

    return replace(run, network=lambda size: share, stalls=stalls), []


def _slow_gpu(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Whatever passes through one GPU is slow, and everything does."""
    share = draw.uniform(0.2, 0.5)
    return replace(run, inside=lambda size: share), []


def _low_clock(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    return replace(run, clock=draw.uniform(0.35, 0.6)), []


def _protocol(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    name = draw.choice(["ll", "ll", "simple"])
    said = {"ll": "LL", "simple": "Simple"}[name]
    return replace(run, protocols=(name,)), [f"NCCL INFO NCCL_PROTO set by environment to {said}"]


def _algorithm(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    name = "tree" if run.nodes != 2 else draw.choice(["ring", "tree"] if run.node.multicast else ["ring"])
    said = {"ring": "Ring", "tree": "Tree"}[name]
    return replace(run, algorithms=(name,)), [f"NCCL INFO NCCL_ALGO set by environment to {said}"]


def _gpudirect_off(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Host memory carries everything once in and once out, and a step waits for a copy."""
    rate = run.node.staged * draw.uniform(0.75, 1.2)
    if run.collective == "alltoall":
        rate /= run.node.gpus / 2
    said = [f"NCCL INFO Channel 0{at}/0 : 0[0] -> {run.node.gpus}[0] [send] via NET/IB/{at}" for at in range(4)]
    return replace(run, ceiling=rate, hops=(0.0, draw.uniform(4, 12))), said


def _sockets(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    rate = draw.uniform(2.0, 5.0)
    if run.collective == "alltoall":
        rate /= run.node.gpus / 2
    said = ["NCCL INFO NET/IB : No device found.", "NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"]
    return replace(run, ceiling=rate, hops=(0.0, draw.uniform(20, 60))), said


def _one_process(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    return replace(run, serial=draw.uniform(3.5, 8.0)), [f"# nThread 1 nGpus {run.node.gpus} minBytes 1024"]


def _neighbour(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Another job's bursts: what is left changes from row to row."""
    left = {size: min(1.0, draw.lognormvariate(math.log(0.42), 0.2)) for size in SIZES}
    return replace(run, network=lambda size: left[size]), []


def _pcie_only(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    rate = run.node.pcie * draw.uniform(0.7, 1.1)
    said = [
        "NCCL INFO NCCL_P2P_DISABLE set by environment to 1",
        "NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
    ]
    return replace(run, only=rate, hops=(draw.uniform(0.3, 1.5), 0.0)), said


def _multicast_off(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    others = tuple(name for name in run.algorithms if name != "multicast")
    return replace(run, algorithms=others), ["NCCL INFO NCCL_NVLS_ENABLE set by environment to 0."]


def _nic_affinity(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """Ports are reached through the processors, which pass on part of what a switch would."""
    share = draw.uniform(0.4, 0.6)
    return replace(run, network=lambda size: share, hops=(0.0, draw.uniform(0.5, 3))), []


def _version(run: Run, draw: random.Random) -> tuple[Run, Sequence[str]]:
    """A library whose chunks are too small for the round trip: of NVLSTree from four nodes on, in 2.19.3."""
    name, version = run.node.library[0], "2.19.3"
    share = draw.uniform(0.33, 0.45)
    slowed = replace(run, network=lambda size: share if size > 8 * MIB else 0.5 + share / 2)
    return slowed, [f"{name} version {version}"]


_MANY = ("allreduce", "allreduce", "allgather", "alltoall")
_REDUCED = ("allreduce",)
_STAGED = tuple(node.machine for node in NODES if node.staged)
_PCIE = tuple(node.machine for node in NODES if node.pcie)
_MULTICAST = tuple(node.machine for node in NODES if node.multicast)
FAULTS = (
    Fault("port down", (2, 4, 8, 2), (), _MANY, _port_down),
    Fault("links slow", (1,), (), _MANY, _links_slow),
    Fault("port errors", (2, 4, 8, 2), (), _MANY, _port_errors),
    Fault("slow GPU", (1,), (), _MANY, _slow_gpu),
    Fault("low clock", (1,), (), _REDUCED, _low_clock),
    Fault("protocol forced", (1, 2, 4), (), _REDUCED, _protocol),
    Fault("algorithm forced", (2, 4, 8, 2), ("hgx-h100", "b200"), _REDUCED, _algorithm),
    Fault("GPUDirect off", (2, 4, 8, 2), _STAGED, _MANY, _gpudirect_off),
    Fault("sockets", (2, 4, 8, 2), (), _MANY, _sockets),
    Fault("one process", (1, 1, 2), (), _MANY, _one_process),
    Fault("neighbour", (2, 4, 8, 2), (), _MANY, _neighbour),
    Fault("PCIe only", (1,), _PCIE, _MANY, _pcie_only),
    Fault("multicast off", (1,), _MULTICAST, _REDUCED, _multicast_off),
    Fault("NIC affinity", (2, 4, 8, 2), _STAGED, _MANY, _nic_affinity),
    Fault("version", (4, 8), ("hgx-h100",), _REDUCED, _version),
)


@dataclass(frozen=True)
class Measured:
    """A log of the second model, with what is wrong.

    Attributes:
        fault: key of the fault.
        run: the run with the fault.
        healthy: the same without.
        rows: size -> us.
        said: what the lines of the library give away.
    """

    fault: str
    run: Run
    healthy: Run
    rows: Mapping[int, float]
    said: Sequence[str]

    def log(self, *, lines: bool) -> str:
        """The log, with the lines that libraries print or, as people mostly paste it, without."""
        node = self.run.node
        name, version = node.library
        stated = any(" version " in line for line in self.said)
        said = [*([] if stated else [f"{name} version {version}"]), *self.said] if lines else ()
        return nccl_log(
            self.run.collective, self.rows, self.run.nodes, node.gpus, node.device, said, each=1 if lines else None
        )


def logs(count: int, seed: int) -> list[Measured]:
    """So many faulty logs, faults in turn; each log has a generator of its own, so more logs leave the first alone."""
    return [_measured(FAULTS[at % len(FAULTS)], at // len(FAULTS), seed) for at in range(count)]


def _measured(fault: Fault, number: int, seed: int) -> Measured:
    draw = random.Random(f"{seed} {fault.key} {number}")
    healthy = _run(fault, number, draw)
    run, said = fault.break_(healthy, draw)
    rows = {size: measured(run, size, draw) for size in SIZES}
    return Measured(fault.key, run, healthy, rows, said)


def _run(fault: Fault, number: int, draw: random.Random) -> Run:
    machines = fault.machines or tuple(BY_MACHINE)
    node = BY_MACHINE[machines[(number + draw.randrange(len(machines))) % len(machines)]]
    nodes = fault.nodes[number % len(fault.nodes)]
    launch = math.exp(draw.uniform(math.log(0.7), math.log(1.6)))
    return Run(
        node, nodes, fault.collectives[number % len(fault.collectives)], launch=launch,
        level=draw.uniform(0.93, 1.03), bend=draw.uniform(0.75, 1.0), half=draw.uniform(5, 14) * MIB,
    )  # fmt: skip


def measured(run: Run, size: int, draw: random.Random) -> float:
    """One row: us with stalls and noise."""
    time = run.time(size)
    return (time + run.stalls(draw, size, time)) * draw.lognormvariate(0, NOISE)


def nccl_log(
    collective: str, rows: Mapping[int, float], nodes: int, gpus: int, device: str, said: Iterable[str] = (),
    *, each: int | None = 1,
) -> str:  # fmt: skip
    """A log as nccl-tests prints it.

    Args:
        collective: as in the command line of linkwright.
        rows: size -> us.
        nodes: hosts.
        gpus: of each.
        device: its name.
        said: lines of the library, before the table.
        each: GPUs of a process; None: the line that says so was not pasted.
    """
    reduces = collective in ("allreduce", "reduce_scatter", "reduce")
    redop, root = "sum" if reduces else "none", "0" if collective in ("broadcast", "reduce") else "-1"
    factor = bus_factor(collective, nodes * gpus)
    lines = [f"# Collective test starting: {PROGRAMS[collective]}_perf"]
    if each and not any("nGpus" in line for line in said):
        lines += [f"# nThread 1 nGpus {each} minBytes {min(rows)} maxBytes {max(rows)} step: 2(factor) warmup iters: 5"]
    lines += [f"node000:4000:4012 [0] {line}" if line.startswith("NCCL INFO") else line for line in said]
    lines += ["#", "# Using devices"]
    lines += [
        f"#  Rank {rank:2} Group  0 Pid {4000 + rank} on node{rank // gpus:03} device {rank % gpus:2} "
        f"[0000:{16 * (rank % gpus) + 15:02x}:00] {device}"
        for rank in range(nodes * gpus)
    ]
    lines += ["#", "#       size         count      type   redop    root     time   algbw   busbw #wrong"]
    lines += ["#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "]
    for size, time in rows.items():
        rate = size / time / 1e3
        lines += [
            f"{size:>12}  {size // 4:>12}  float  {redop:>6}  {root:>6}  {_digits(time)}  {rate:6.2f}  "
            f"{rate * factor:6.2f}      0"
        ]
    return "".join(f"{line}\n" for line in (*lines, "# Out of bounds values : 0 OK", "#"))


def _digits(time: float) -> str:
    """us with as many digits as nccl-tests prints."""
    return f"{time:7.0f}" if time >= 10_000 else f"{time:7.1f}" if time >= 100 else f"{time:7.2f}"


def _using(ports: int) -> str:
    listed = " ".join(f"[{at}]mlx5_{at}:1/IB" for at in range(ports))
    return f"NCCL INFO NET/IB : Using {listed} [RO]; OOB eth0:10.0.0.1<0>"
