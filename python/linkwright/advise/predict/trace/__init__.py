"""`kind = "trace"`: a recorded execution, its messages simulated on another machine.

The files are Chakra execution traces, one for each rank, or one that stands for all. Computation takes the time that
was recorded, times a factor. Everything that communicates is a schedule, simulated on the described machine, and takes
place when the dependencies of the trace let it: see `replay.py` for when, `groups.py` for who, `price.py` for how
long, and `outcome.py` for where the time goes.

    files -> traces -> order of issue -> meetings -> prices on a machine -> replay -> outcome

Not modelled: collectives that share links, other than by waiting in one group; computation that a transfer slows
down; what a device other than the recorded one would need, beyond the factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkwright import _native
from linkwright.advise.predict import FORMAT, Program, head_keys
from linkwright.advise.predict.rates import DTYPES as PRECISIONS
from linkwright.advise.predict.rates import Rates
from linkwright.advise.predict.trace import files
from linkwright.advise.predict.trace.groups import meetings
from linkwright.advise.predict.trace.nodes import COMPUTE, MEMORY, MOST_MICROS, Node, Trace
from linkwright.advise.predict.trace.order import settled
from linkwright.advise.predict.trace.outcome import Outcome, outcome
from linkwright.advise.predict.trace.price import Prices
from linkwright.advise.predict.trace.replay import Replayed, replay, works
from linkwright.ask import sources
from linkwright.ask.question import DTYPES, MAX_RANKS, collectives
from linkwright.base.errors import FileError, check_known
from linkwright.base.toml import AMOUNT, TEXT, Choice, Key, Many, Named, OneTable, Place, Table, read, whole
from linkwright.base.units import counted

PS_PER_US = 1_000_000

_COUNT = whole(1, MAX_RANKS)
HEAD = head_keys(
    "trace",
    files=Key(
        Many(TEXT, single=True), "Chakra traces, one for each rank, relative to this file: names, or one pattern such "
        "as `step.*.et`", required=True,
    ),
    ranks=Key(_COUNT, "ranks, where one file stands for all; default: as many as files"),
    compute_scale=Key(AMOUNT, "factor on recorded times of the device and its memory", default=1.0),
    host_scale=Key(AMOUNT, "factor on recorded times of the host", default=1.0),
    grid=Key(Many(_COUNT, 2, 2, words="[columns, rows], such as [8, 8]"), "grid of a machine that has any"),
    path=Key(TEXT, "path of the machine file"),
    dtype=Key(Choice(DTYPES), "data type of reductions", default="f32"),
    precision=Key(Choice(PRECISIONS), "precision of operations without a recorded time", default="single"),
    flops_per_s=Key(AMOUNT, "operations of a device, for nodes without a time; default: what the probes answer"),
    bytes_per_s=Key(AMOUNT, "memory rate of a device, for nodes without a time; default: what the probes answer"),
)  # fmt: skip
PROGRAM = {
    "app": Key(OneTable(HEAD), "the program", required=True),
    "groups": Key(
        Named(Many(whole(0, MAX_RANKS - 1))),
        "members of each `pg_name`; default: as recorded, or the ranks that use it",
    ),
    "algorithms": Key(Named(TEXT), "algorithm of each collective, or `best`; default: as a library plans it, or best"),
}  # fmt: skip


def program_of(names: Sequence[str]) -> Program:
    """The program of trace files alone, with every key at its default."""
    name = Path(names[0]).name.removesuffix(".gz").partition(".")[0]
    values = {"app": {"format": FORMAT, "kind": "trace", "name": name or "trace", "files": list(names)}}
    document = read(values, PROGRAM, Place(names[0], error=FileError))
    return Program(document, document["app"], "trace", Path())


def recorded(program: Program) -> Replayed:
    """Read and check all files."""
    head = program.head
    paths = files.found(head["files"], program.folder, head.where)
    traces = files.read(paths, head["ranks"], head.where)
    return settled_all(traces, program)


def settled_all(traces: list[Trace], program: Program) -> Replayed:
    """The traces with their orders and with what communicates together."""
    # Ranks that one file stands for share its order.
    known: dict[int, tuple[list[list[int]], list[int]]] = {}
    for trace in traces:
        if id(trace) not in known:
            known[id(trace)] = settled(trace)
    orders = [known[id(trace)][1] for trace in traces]
    groups = program.document["groups"] or {}
    found = meetings(traces, orders, groups, program.document.where)
    used = {one.channel for one in found}
    for name in groups:
        if f"group {name}" not in used:
            raise program.document.error(f"groups.{name}: no trace has a collective of this group; correct its name")
    return Replayed(traces, orders, [known[id(trace)][0] for trace in traces], found)


def forecast_on(program: Program, record: Replayed, machine: _native.Machine) -> Outcome:
    """The forecast on one machine."""
    machine = _sized(program.head, machine, len(record.traces))
    prices = Prices(machine, program.document, _algorithms(program))
    paid = [prices.of(one) for one in record.meetings]
    work_ps = _work_ps(program.head, record.traces, machine)
    times = replay(record, work_ps, [price.time_ps for price in paid])
    return outcome(program.head["name"], machine.name, record, times, paid, tuple(_notes(program.head, record)))


def forecasts(program: Program, machines: Sequence[_native.Machine]) -> list[Outcome]:
    """The forecast on each machine."""
    if program.head["grid"] is not None and all(machine.open_size != "grid" for machine in machines):
        raise program.head.error("`grid` is for machines that take any grid, and none is used; omit it")
    record = recorded(program)
    return [forecast_on(program, record, machine) for machine in machines]


def _algorithms(program: Program) -> dict[str, str]:
    stated = program.document["algorithms"] or {}
    for collective in stated:
        check_known("collective", collective, collectives(), where=f"{program.document.where}: algorithms")
    return {collective: sources.within(program.folder, name) for collective, name in stated.items()}


def _sized(head: Table, machine: _native.Machine, ranks: int) -> _native.Machine:
    """The machine with its endpoints."""
    if machine.open_size == "grid":
        if head["grid"] is None:
            raise head.error(
                f"machine {machine.name} takes any grid of endpoints; give `grid = [columns, rows]` in a program"
            )
        machine = machine.with_grid(*head["grid"])
    elif machine.open_size:
        machine = machine.with_endpoints(ranks)
    if ranks > machine.ranks:
        raise head.error(f"the trace has {counted(ranks, 'rank')}; {machine.name} has {machine.ranks}")
    return machine


def _work_ps(head: Table, traces: Sequence[Trace], machine: _native.Machine) -> list[int]:
    """Time of every node that does not communicate, rank after rank."""
    rates = Rates(machine, head)
    known: dict[int, list[int]] = {}
    found = []
    for trace in traces:
        if id(trace) not in known:
            known[id(trace)] = [
                _node_ps(head, rates, node) if works(trace, place) else 0 for place, node in enumerate(trace.nodes)
            ]
        found += known[id(trace)]
    return found


def _node_ps(head: Table, rates: Rates, node: Node) -> int:
    time_us = 0.0
    if node.duration_us:
        time_us = node.duration_us * head["host_scale" if node.host else "compute_scale"]
    elif _on_roofline(node):
        flops, moved = (node.attributes.get(key, 0) for key in ("num_ops", "tensor_size"))
        time_us = max(rates.flops_ns(flops, head["precision"]), rates.bytes_ns(moved, moved)) / 1000
    if time_us > MOST_MICROS:
        raise head.error(f"{node.shown} would take {time_us:.3g} us, more than eleven days; correct its factor or rate")
    return round(time_us * PS_PER_US)


def _on_roofline(node: Node) -> bool:
    """Whether a node of the device says what it computes, but not for how long."""
    return node.type == COMPUTE and not node.host and not node.duration_us and bool(node.attributes.get("num_ops"))


def _notes(head: Table, record: Replayed) -> list[str]:
    """What the reader must know of this trace."""
    told = []
    for key, what in (("compute_scale", "device"), ("host_scale", "host")):
        if head[key] != 1:
            told.append(f"recorded times of the {what} are multiplied by {head[key]:g}")
    if len({id(trace) for trace in record.traces}) < len(record.traces):
        told.append(f"one file stands for all {len(record.traces)} ranks, which are never late relative to each other")
    if absent := sum({trace.file: trace.absent for trace in record.traces}.values()):
        told.append(f"{absent:,} control dependencies are on nodes missing from the files, and count as met")
    if circles := {trace.file: trace for trace in record.traces if trace.control_circle}:
        first = next(iter(circles.values()))
        told.append(
            f"control dependencies of {counted(len(circles), 'file')} are ignored, because they form cycles such as "
            f"{first.control_circle}"
        )
    nodes = [node for trace in record.traces for place, node in enumerate(trace.nodes) if works(trace, place)]
    if timed := sum(map(_on_roofline, nodes)):
        told.append(f"{counted(timed, 'computation')} without a recorded time: the longer of operations and bytes")
    unknown = sum(not node.duration_us and not _on_roofline(node) and node.type in (COMPUTE, *MEMORY) for node in nodes)
    if unknown:
        told.append(f"{counted(unknown, 'node')} of computation or memory without a time, which count as nothing")
    if uneven := sum(one.uneven for one in record.meetings):
        told.append(f"{counted(uneven, 'collective')} to which ranks give different amounts: the largest counts")
    return told
