"""Numbers of an imported node, replaced by what the user's own logs of benchmarks say.

    smallest size of a log, up to 64 KiB     one factor for the start-ups of a step, of all protocols
    largest size, from 16 MiB on             one factor for the share of a link's rate that carries data

The factors make what the library would choose take as long as the log says. With several logs, they make the geometric
mean of (simulated / logged) 1. Both are those of the links that join the GPUs: NVLink or xGMI where these reach every
GPU, PCIe otherwise.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import ask
from linkwright.ask.question import Collective
from linkwright.base import registry
from linkwright.base.errors import FileError, UsageError
from linkwright.base.units import NS_PER_US, format_size
from linkwright.formats import interop
from linkwright.formats.discovery.node import Node
from linkwright.formats.interop.importing import Defaults, Imported
from linkwright.libraries import library, questions
from linkwright.machines import AS_DESCRIBED, Shelf, writer

Table = dict[str, Any]

MOST_SMALL, LEAST_LARGE = 64 << 10, 16 << 20
ROUNDS, NEAR = 12, 0.02
# Of the share of a link's rate that healthy GPUs of the kind reach: a log below it is of a slow node.
LEAST_SHARE = 0.8
PROTOCOLS = ("simple", "ll", "ll128")


@dataclass(frozen=True)
class Log:
    """What a benchmark printed: its file, and its text."""

    file: str
    text: str


@dataclass(frozen=True)
class _Point:
    file: str
    row: Imported

    def __str__(self) -> str:
        row = self.row
        return f"{self.file}: {row.collective} of {_size(row.size_bytes)} in {row.value / NS_PER_US:g} us"


def _size(size_bytes: int) -> str:
    written = format_size(size_bytes)
    return f"{written} B" if written.isdecimal() else f"{written[:-1]} {written[-1]}iB"


def text(made: str, node: Node, logs: Sequence[Log], collective: str | None = None) -> str:
    """The machine file `made` of `node` with start-ups and shares as the logs have them, marked fitted.

    Args:
        made: a machine file.
        node: what it describes.
        logs: of benchmarks on this node, with all of its GPUs.
        collective: what was measured, where a log does not say.

    Raises:
        UsageError: a log that is none, or is of something else.
        FileError: no machine with these links would take the logged times, or only one with slow links.

    """
    machine = _machine(made)
    rows = [(log.file, row) for log in logs for row in _rows(log, node, machine, collective)]
    files = [log.file for log in logs]
    small = [_Point(file, least) for file in files if (least := _ordered(rows, file)[0]).size_bytes <= MOST_SMALL]
    large = [_Point(file, most) for file in files if (most := _ordered(rows, file)[-1]).size_bytes >= LEAST_LARGE]
    if not small and not large:
        raise UsageError(
            f"{files[0]}: has neither a size of at most {_size(MOST_SMALL)} nor one of at least "
            f"{_size(LEAST_LARGE)}, so it determines neither start-ups nor rates; measure from 8 B to 1 GiB"
        )
    return _fit(made, _links(node), small, large)


def _rows(log: Log, node: Node, machine: _native.Machine, collective: str | None) -> list[Imported]:
    """The times of a log, which are of this node."""
    known = {name for name in registry.keys("collectives") if library.algorithms(machine, name)}
    found = interop.logs.take(Path(log.file), Defaults(collective, node.gpus), text=log.text).rows
    for row in found:
        if row.metric != "time" or row.collective not in known:
            raise UsageError(f"{log.file}: holds none of the collectives {', '.join(sorted(known))}; give another log")
        if row.ranks != node.gpus:
            raise UsageError(
                f"{log.file}: has {row.ranks} ranks, but the node has {node.gpus} GPUs; run on all of them"
            )
    timed = [row for row in found if row.size_bytes and row.value]
    if not timed:
        raise UsageError(f"{log.file}: holds no time; run the benchmark again")
    return timed


def _ordered(rows: Iterable[tuple[str, Imported]], file: str) -> list[Imported]:
    return sorted((row for of, row in rows if of == file), key=lambda row: row.size_bytes)


def _links(node: Node) -> str:
    """The class of links that joins all GPUs."""
    reached: set[str] = set()
    joined = {"GPU 0"}
    while joined - reached:
        reached |= joined
        joined = {name for pair in node.peers if set(pair) & reached for name in pair}
    return node.device.links if {f"GPU {i}" for i in range(node.gpus)} <= reached and node.peers else "pcie"


def _fit(made: str, base: str, small: list[_Point], large: list[_Point]) -> str:
    document = tomllib.loads(made)
    full = tomllib.loads(_draft(made).text)
    start, share = 1.0, 1.0
    for _ in range(ROUNDS):
        scaled = _scaled(document, full, base, start if small else None, share if large else None, (small, large))
        machine = _machine(scaled)
        off = [_off(machine, points) for points in (small, large)]
        if all(abs(math.log(one)) < NEAR for one in off):
            if share < LEAST_SHARE and base != "pcie":  # over PCIe, how GPUs reach each other decides
                raise FileError(
                    f"{large[0]}: that is {share:.0%} of what {base} carries between healthy GPUs, and a machine "
                    f"fitted to it would call a slow node healthy; see `linkwright explain {large[0].file}`, and give "
                    "the log of a healthy node, or the right --gpu"
                )
            return scaled
        start, share = start / off[0], share * off[1]
        _check_share(full, base, share, large)
    worst = small[0] if abs(math.log(off[0])) > abs(math.log(off[1])) else large[0]
    raise FileError(
        f"{worst}: no start-up and share of {base} fit that; was it measured on this node, without other load?"
    )


def _check_share(full: Table, base: str, factor: float, large: list[_Point]) -> None:
    for _, links in _classes(full, base):
        if _share(links) * factor > 1:
            raise FileError(
                f"{large[0]}: is faster than its {base} links can be; was it measured on "
                "this node, and does --gpu name the right one?"
            )


def _off(machine: _native.Machine, points: list[_Point]) -> float:
    """The geometric mean of (simulated / logged)."""
    if not points:
        return 1.0
    return math.exp(sum(math.log(_ns(machine, one.row) / one.row.value) for one in points) / len(points))


def _ns(machine: _native.Machine, row: Imported) -> float:
    """The time of what the library would choose, its launch included, in ns."""
    plan, *_ = library.algorithms(machine, row.collective)
    asked = Collective("api", plan, row.ranks, row.size_bytes, row.dtype, collective=row.collective)
    asked = questions.planned(machine, None, asked)
    if asked.own is None or asked.own.schedule is None:
        raise UsageError(f"{row.collective} of {row.size_bytes} B: {plan} has no plan for that; give another log")
    return ask(machine, asked.own.schedule, schedules.how(asked)).slowest.ns


def _machine(made: str) -> _native.Machine:
    return _draft(made).machine()


def _draft(made: str) -> _native.Draft:
    return _native.Draft(made, "here.toml", Shelf(Path("here.toml")), AS_DESCRIBED)


def _classes(full: Table, base: str) -> list[tuple[str, Table]]:
    """The classes of links of this kind that have any."""
    links = full["fabric"]["links"]
    return [(name, one) for name, one in links.items() if name.split("_")[0] == base and one.get("edges")]


def _share(links: Table) -> float:
    return float(links["share"]["value"]) if "share" in links else 1.0


def _scaled(
    document: Table, full: Table, base: str, start: float | None, share: float | None, points: tuple[list[_Point], ...]
) -> str:
    """The document with the start-ups and shares of `full` times these factors."""
    small, large = ("; ".join(map(str, some)) for some in points)
    fabric = document["fabric"]
    transports, links = dict(fabric.get("transport", {})), dict(fabric["links"])
    if start is not None:
        for name in (f"{base}_{protocol}" for protocol in PROTOCOLS):
            if name in full["fabric"]["transport"]:
                was = full["fabric"]["transport"][name]["start"]
                source = f"{was['value']:g} {was['unit']} x {start:.3g}: {small}"
                value = writer.fitted(was["value"] * start, was["unit"], source, digits=4)
                transports[name] = {**transports.get(name, {}), "start": value}
    if share is not None:
        for name, one in _classes(full, base):
            source = f"{_share(one):g} x {share:.3g}: {large}"
            links[name] = {
                **links.get(name, {}),
                "share": writer.fitted(_share(one) * share, "ratio", source, digits=4),
            }
    return writer.text({**document, "fabric": {**fabric, "links": links, "transport": transports}})
