"""One picture of a machine: its endpoints and links, coloured by what the run found.

    host.py     processors, caches and memory of this host
    machine.py  a described machine, laid out as everywhere (`linkwright.show.picture`)
    cells.py    endpoints of which only the names are known, and very many

The layout follows from the machine file (grid, levels, links) or from the topology that the kernel reports. A picture
is one <svg> without scripts; its colours are classes of the page, so that it is legible in light, dark and on paper.
"""

from __future__ import annotations

from linkwright import _native
from linkwright.base.errors import LinkwrightError
from linkwright.executors import sim

from ..model import Picture
from ..runs import Run
from ..sections import levels as level_tables
from ..sections import picture as overview
from . import cells, host
from . import machine as machine_drawing
from .pairs import pairs


def picture(run: Run, machine: str) -> Picture | None:
    """The picture of a machine; None if neither a file, a kernel nor a pair of endpoints describes it."""
    found = pairs(run, machine)
    topology = run.topology(machine)
    if topology.rows:
        svg, caption = host.draw(topology, _levels(run, machine), found)
    elif (machine_file := _described(run, machine, found.names)) is not None:
        svg, caption = machine_drawing.draw(machine_file, found)
    elif found.names:
        svg, caption = cells.draw({"endpoints": found.names}, found)
    else:
        return None
    return Picture(f"{machine}: results by place", svg, caption)


def _levels(run: Run, machine: str) -> list[host.Row]:
    """Caches and memory with the latency that the run found for them."""
    topology = run.topology(machine)
    rows = []
    for level in overview.levels(level_tables.claimed(run, machine)):
        measured = overview.latency(run, machine, level)
        cache = level.cache
        rows.append(
            host.Row(
                level.name,
                cache.size_bytes if cache else run.environment.get("memory_bytes"),
                topology.instances(cache.name) if cache else [frozenset(topology.rows)],
                None if measured is None else float(measured["value"]),
            )
        )
    return rows


def _described(run: Run, machine: str, taking_part: list[str]) -> _native.Machine | None:
    path = run.folder / "machines" / f"{machine}.toml" if run.folder else None
    if path is None or not path.is_file():
        return None
    try:
        found = _native.Machine.parse(path.read_text(encoding="utf-8"), str(path))
        ranks = None if found.open_size == "grid" else len(taking_part)
        return sim.sized(found, ranks, run.plan.get("request", {}).get("grid"))
    except (LinkwrightError, ValueError):  # a file of an earlier version: its numbers stand, its picture is left out
        return None
