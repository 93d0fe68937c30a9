"""Compares what synthesis finds with known algorithms, their transforms, and what no schedule beats.

    python3 benches/synthesis.py [--machines A,B] [--collectives A,B] [--sizes 1K,1M] [--budget 4s] [--serial-starts]
                                 [--json FILE] [--write docs/synthesis.md]

Run with the interpreter of .venv. A cell is a machine, a collective and a size. `known` is the best of the library
under several issue policies, `portfolio` the best with the transforms besides; all come from one search. `serial` is
the gain over `known` that is left where the start-ups of a rank wait for each other: both schedules are simulated
again with `serial_starts`. With `--serial-starts` the search obeys them, too. A machine is written
NAME[*NODES[@NETWORK]][:RANKS or :8x8][/PATH]. A cell that the machine does not hold is named with the reason and counts nowhere. `--write` replaces the
table between the markers of the page.
"""

import argparse
import json
import math
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from linkwright import _native, synthesis
from linkwright.errors import LinkwrightError
from linkwright.executors import resolve_one
from linkwright.executors.sim import ModelledTarget
from linkwright.machines.variant import AS_DESCRIBED, Variant
from linkwright.units import format_size, format_time, parse_duration_s, parse_size

MACHINES = "dgx1-p100,gx8-p100,cell-be,torus-2d:8x8"
COLLECTIVES = "allreduce,allgather,reduce_scatter,broadcast,alltoall"
SIZES = "1K,64K,1M"
PLAIN = ("library", "portfolio")
LARGE = 1 << 20
WIN = 1.3
MARKED = re.compile(r"(<!-- measured: cells -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """One search; times in ns."""

    machine: str
    collective: str
    size: int
    known: float
    portfolio: float
    found: float
    bound: float | None
    serial: float
    method: str
    seconds: float
    # Known algorithms that were not looked at for lack of time.
    unseen: int

    @property
    def gain(self) -> float:
        """Over known algorithms."""
        return self.known / self.found

    @property
    def over_portfolio(self) -> float:
        """The gain over known algorithms with their transforms."""
        return self.portfolio / self.found

    @property
    def over_bound(self) -> float | None:
        """How far from what no schedule beats."""
        return self.found / self.bound if self.bound else None

    @property
    def stays(self) -> str:
        """Whether a gain of 2 % or more stays one with serial starts."""
        return "" if self.gain < 1.02 else "yes" if self.serial >= 1.02 else "no"


def measure(machine: str, collective: str, size: int, budget_s: float, seed: int, obey: bool) -> Cell:
    """Search once, and simulate the best known and the best found with serial starts."""
    name, _, path = machine.partition("/")
    target, grid = aimed(name)
    task = synthesis.task(target, collective, size, dtype="f32", op="sum", root=0, grid=grid, path=path or None,
                          seed=seed, budget_s=budget_s, methods=(), serial_starts=obey)  # fmt: skip
    heard: list[dict] = []
    begun = time.perf_counter()
    outcome = task.search(heard.append)
    seconds = time.perf_counter() - begun
    plain = [one["time_ps"] for one in heard if one["method"] in PLAIN]
    known, best, bound = outcome.known, outcome.best, outcome.bound
    serial = [serial_ps(task, one) for one in (known, best)]
    return Cell(machine, collective, task.experiment.size_bytes or 0, known["time_ps"] / 1e3, min(plain) / 1e3,
                best["time_ps"] / 1e3, bound and bound["time_ps"] / 1e3, serial[0] / serial[1], best["method"], seconds,
                outcome.unseen)  # fmt: skip


def aimed(name: str) -> tuple[ModelledTarget, tuple[int, ...] | None]:
    """The machine NAME[*NODES[@NETWORK]][:RANKS or :SIDExSIDE], and its grid."""
    name, _, size = name.partition(":")
    name, _, nodes = name.partition("*")
    nodes, _, network = nodes.partition("@")
    grid = tuple(int(side) for side in size.split("x")) if "x" in size else None
    ranks = math.prod(grid) if grid else int(size) if size else None
    variant = Variant(int(nodes), network or None) if nodes else AS_DESCRIBED
    return synthesis.described(resolve_one(name, ranks, grid, variant=variant)), grid


def serial_ps(task: synthesis.Task, one: dict) -> int:
    """Its time if no start-up of a rank is free beside another one."""
    options = {"path": one["path"] or task.path, "issue": one["issue"], "seed": task.seed, "serial_starts": True}
    options = {key: value for key, value in options.items() if value is not None}
    lowered = _native.lower(one["schedule"], task.target.machine, options.get("path"))
    return _native.simulate(lowered, task.target.machine, options)["makespan_ps"]


def mean(values: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, values)) / len(values))


def share(values: list[bool]) -> str:
    """Of how many it is true."""
    return f"{sum(values)} of {len(values)} cells" + (f" ({sum(values) / len(values):.0%})" if values else "")


def summary(cells: list[Cell]) -> list[str]:
    """The figures, one a line."""
    gains, more = [cell.gain for cell in cells], [cell.over_portfolio for cell in cells]
    large = [cell.over_bound for cell in cells if cell.over_bound and cell.size >= LARGE]
    small = [cell.over_bound for cell in cells if cell.over_bound and cell.size < LARGE]
    return [
        f"- Gain over known algorithms: {mean(gains):.2f} x in the geometric mean; {WIN} x or more in "
        f"{share([gain >= WIN for gain in gains])}.",
        f"- Gain over the portfolio: {mean(more):.2f} x; {WIN} x or more in {share([gain >= WIN for gain in more])}; "
        f"slower in {share([gain < 1 for gain in more])}.",
        f"- From 1 MiB, at most 1.25 x of the bound: {share([ratio <= 1.25 for ratio in large])}; at most 1.5 x: "
        f"{share([ratio <= 1.5 for ratio in large])}.",
        f"- Below 1 MiB, at most 2 x of the bound: {share([ratio <= 2 for ratio in small])}.",
        f"- Gains of 2 % or more that stay so with serial starts: "
        f"{share([cell.stays == 'yes' for cell in cells if cell.stays])}; the gain with serial starts is "
        f"{mean([cell.serial for cell in cells]):.2f} x in the geometric mean.",
        f"- The longest search took {max(cell.seconds for cell in cells):.1f} s; known algorithms were left out in "
        f"{share([cell.unseen > 0 for cell in cells])}.",
    ]


def table(cells: list[Cell]) -> list[str]:
    """Rows of Markdown."""
    head = "machine | collective | size | known | portfolio | found | gain | of bound | serial | stays | method | s"
    rows = [
        f"{cell.machine} | {cell.collective} | {format_size(cell.size)} | {format_time(cell.known)} | "
        f"{format_time(cell.portfolio)} | {format_time(cell.found)} | {cell.gain:.2f} | "
        f"{f'{cell.over_bound:.2f}' if cell.over_bound else ''} | {cell.serial:.2f} | {cell.stays} | {cell.method} | "
        f"{cell.seconds:.1f}"
        for cell in cells
    ]
    return [f"| {row} |" for row in (head, " | ".join(["---"] * (head.count("|") + 1)), *rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default=MACHINES)
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--budget", default="4s", help="time of each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serial-starts", action="store_true", help="search for schedules that need no other starts")
    parser.add_argument("--json", type=Path, help="write all cells to this file")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    asked = parser.parse_args()
    cells, budget_s = [], parse_duration_s(asked.budget)
    for machine in asked.machines.split(","):
        for collective in asked.collectives.split(","):
            for size in asked.sizes.split(","):
                how = (budget_s, asked.seed, asked.serial_starts)
                try:
                    cells.append(measure(machine, collective, parse_size(size), *how))
                except LinkwrightError as error:
                    print(f"{machine} {collective} {size}: left out: {error}", file=sys.stderr)
                    continue
                print(table(cells[-1:])[-1], file=sys.stderr, flush=True)
    if not cells:
        sys.exit("no cell could be measured")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1) + "\n")
    told = f"Budget {asked.budget} a cell, seed {asked.seed}, {len(cells)} cells."
    text = "\n".join([told, "", *summary(cells), "", *table(cells)]) + "\n"
    if asked.write is None:
        print(text, end="")
        return
    page, found = MARKED.subn(lambda marks: f"{marks[1]}{text}{marks[2]}", asked.write.read_text())
    if found != 1:
        sys.exit(f"{asked.write}: {found} places between `<!-- measured: cells -->` and `<!-- end -->`; one is needed")
    asked.write.write_text(page)


if __name__ == "__main__":
    main()
