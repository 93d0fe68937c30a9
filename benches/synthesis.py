"""Compares what synthesis finds with known algorithms, their transforms, and what no schedule beats.

    python3 benches/synthesis.py [--machines A,B] [--collectives A,B] [--sizes 1K,1M] [--budget 4s] [--serial-starts]
                                 [--merge benches/synthesis.json] [--bounds] [--write docs/synthesis.md]

Run with the interpreter of .venv. A cell is a machine, a collective and a size. `known` is the best of the library
under several issue policies, `portfolio` the best with the transforms besides; all come from one search. `found` is the
answer of that search, whose gain over `known` lasts: `drawn` is the share of draws of the fabric's rates and times
within 20 % that leave a gain of 2 %, and the least gain, `serial` the gain where the start-ups of a rank wait for each
other. `passed` is the gain of a faster schedule that is no answer because it does not last. `binds` is what takes most
of the critical path of the best known, and of what was found. With `--serial-starts` the search obeys them, too. A
machine is written NAME[*NODES[@NETWORK]][:RANKS or :8x8][/PATH]. A cell that the machine does not hold is named with
the reason and counts nowhere. `--merge` adds the cells to those of a file, which keeps the best of several searches of
one cell; with `--bounds` nothing is searched, and all cells of that file get the bounds of this version. `--write`
replaces the table between the markers of the page.
"""

import argparse
import itertools
import json
import math
import re
import sys
import textwrap
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import quick

from linkwright.advise import synthesis
from linkwright.ask.answer import Answer, How, ask, limits_of
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import format_size, format_time, parse_duration_s, parse_size
from linkwright.executors import resolve_one
from linkwright.machines.variant import AS_DESCRIBED, Variant

MACHINES = (
    "dgx1-p100,gx8-p100,cell-be,torus-2d:8x8,wormhole-n150/ideal,ipu-c2-chip:64,ipu-c2-server:64,"
    "hgx-h100*8@ndr-fat-tree,leonardo-mpi*64,torus-2d:32x32"
)
COLLECTIVES = "allreduce,allgather,reduce_scatter,broadcast,alltoall"
SIZES = "1K,64K,1M,64M"
PLAIN = ("library", "portfolio")
LARGE = 1 << 20
WIN = 1.3
# The least gain that counts as one.
LASTING = 1.02
# As in `crates/linkwright-synthesis/src/lasting.rs`.
MOST_DRAWS, DEARER = 0.95, 1.1
# Ranks above which a search has the longer budget.
MANY = 256
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
    # Gain with serial starts; 1 where there is no gain.
    serial: float
    # Of the draws of rates and latencies, the share in which a gain of 2 % or more is still one, and the least gain.
    robust: float | None
    least: float | None
    # What most of the critical path is spent on, before and after.
    binds: tuple[str, str]
    method: str
    seconds: float
    # Known algorithms that were not looked at for lack of time.
    unseen: int
    # Time that the search was given, in seconds.
    budget: float
    # Gain of a faster schedule that does not last.
    passed: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What it is about."""
        return self.machine, self.collective, self.size

    @property
    def gain(self) -> float:
        """Over known algorithms."""
        return self.known / self.found

    @property
    def rank(self) -> tuple[bool, float]:
        """Less is better: what lasts, then its time, of which a tenth is worth less than a gain with serial starts."""
        return self.robust is not None and self.robust < MOST_DRAWS, self.found * (DEARER if self.stays == "no" else 1)

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
        return "" if self.gain < LASTING else "yes" if self.serial >= LASTING else "no"


def asked_of(
    machine: str, collective: str, size: int, budgets: tuple[float, ...], seed: int, obey: bool
) -> synthesis.Task:
    """The task of a cell."""
    name, _, path = machine.partition("/")
    name, ranks, grid, variant = parts(name)
    target = synthesis.described(resolve_one(name, ranks, grid, variant=variant))
    budget_s = budgets[target.extent.ranks > MANY]
    return synthesis.task(target, collective, size, dtype="f32", op="sum", root=0, grid=grid, path=path or None,
                          seed=seed, budget_s=budget_s, methods=(), serial_starts=obey)  # fmt: skip


def measure(machine: str, collective: str, size: int, budgets: tuple[float, ...], seed: int, obey: bool) -> Cell:
    """Search once."""
    task = asked_of(machine, collective, size, budgets, seed, obey)
    heard: list[dict] = []
    begun = time.perf_counter()
    outcome = task.search(heard.append)
    seconds = time.perf_counter() - begun
    plain = [one["time_ps"] for one in heard if one["method"] in PLAIN]
    known, best, bound = outcome.known, outcome.best, outcome.bound
    lasting, passed = outcome.lasting, outcome.fastest
    return Cell(machine, collective, task.question.size_bytes or 0, known["time_ps"] / 1e3, min(plain) / 1e3,
                best["time_ps"] / 1e3, bound and bound.time.ns, lasting.serial if lasting else 1.0,
                lasting and lasting.share, lasting and lasting.least, (binds(task, known), binds(task, best)),
                best["method"], seconds, outcome.unseen, task.budget_s,
                passed and known["time_ps"] / passed["time_ps"])  # fmt: skip


Parts = tuple[str, int | None, tuple[int, ...] | None, Variant]


def parts(name: str) -> Parts:
    """Of NAME[*NODES[@NETWORK]][:RANKS or :SIDExSIDE]: name, ranks, grid, variant."""
    name, _, size = name.partition(":")
    name, _, nodes = name.partition("*")
    nodes, _, network = nodes.partition("@")
    grid = tuple(int(side) for side in size.split("x")) if "x" in size else None
    ranks = math.prod(grid) if grid else int(size) if size else None
    variant = Variant(int(nodes), network or None) if nodes else AS_DESCRIBED
    return name, ranks, grid, variant


def again(task: synthesis.Task, one: dict) -> Answer:
    """Simulate once more, with its issue policy and path."""
    how = How(
        path=one["path"] or task.question.path, issue=one["issue"], seed=task.seed,
        serial_starts=bool(task.serial_starts),
    )  # fmt: skip
    return ask(task.target.machine, one["schedule"], how)


def binds(task: synthesis.Task, one: dict) -> str:
    """What takes most of the critical path, with its share."""
    shares = again(task, one).critical
    return max(((share, cause) for cause, share in shares.items()), default=(0, ""))[1]


def mean(values: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, values)) / len(values))


def share(values: list[bool]) -> str:
    """Of how many it is true."""
    return f"{sum(values)} of {len(values)} cells" + (f" ({sum(values) / len(values):.0%})" if values else "")


def lasting_draws(cells: list[Cell]) -> float:
    """Of all draws for cells with a gain, the share that has it."""
    shares = [cell.robust for cell in cells if cell.robust is not None]
    return sum(shares) / len(shares) if shares else 1.0


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
        f"{mean([cell.serial for cell in cells]):.2f} x in the geometric mean. Faster schedules were passed over in "
        f"{share([cell.passed is not None for cell in cells])}.",
        f"- Rates and times drawn within 20 %, 20 times or as often as the budget allows: of the gains of 2 % or more, "
        f"{share([cell.robust >= MOST_DRAWS for cell in cells if cell.robust is not None])} stay so in 95 % of the "
        f"draws; of all draws, {lasting_draws(cells):.0%} keep theirs.",
        f"- The longest search took {max(cell.seconds for cell in cells):.1f} s; known algorithms were left out in "
        f"{share([cell.unseen > 0 for cell in cells])}.",
    ]


def wrapped(text: str) -> str:
    """A list item as lines of the page."""
    return textwrap.fill(text, 100, subsequent_indent="  ")


def table(cells: list[Cell]) -> list[str]:
    """Rows of Markdown."""
    head = (
        "machine | collective | size | known | portfolio | found | gain | of bound | drawn | serial | stays | passed | "
        "binds | method | s"
    )
    rows = [
        f"{cell.machine} | {cell.collective} | {format_size(cell.size)} | {format_time(cell.known)} | "
        f"{format_time(cell.portfolio)} | {format_time(cell.found)} | {cell.gain:.2f} | "
        f"{f'{cell.over_bound:.2f}' if cell.over_bound else ''} | "
        f"{'' if cell.robust is None else f'{cell.robust:.0%}, {cell.least:.2f}'} | {cell.serial:.2f} | {cell.stays} | "
        f"{f'{cell.passed:.2f}' if cell.passed else ''} | "
        f"{' > '.join(dict.fromkeys(cell.binds))} | {cell.method} | "
        f"{cell.seconds:.1f}"
        for cell in cells
    ]
    return [f"| {row} |" for row in (head, " | ".join(["---"] * (head.count("|") + 1)), *rows)]


def measured(asked: argparse.Namespace) -> list[Cell]:
    """All cells that are asked for and that their machines hold."""
    cells = []
    budgets = parse_duration_s(asked.budget), parse_duration_s(asked.large_budget)
    for machine, collective, size in itertools.product(
        asked.machines.split(","), asked.collectives.split(","), asked.sizes.split(",")
    ):
        try:
            cells.append(measure(machine, collective, parse_size(size), budgets, asked.seed, asked.serial_starts))
        except LinkwrightError as error:
            print(f"{machine} {collective} {size}: left out: {error}", file=sys.stderr)
            continue
        print(table(cells[-1:])[-1], file=sys.stderr, flush=True)
    return cells


def bounded(cell: Cell) -> Cell:
    """The cell with the bound of this version."""
    task = asked_of(cell.machine, cell.collective, cell.size, (0.0, 0.0), 0, False)
    bound = next(iter(limits_of(task.target.machine, task.question)), None)
    return replace(cell, bound=bound and bound.time.ns)


def read(file: Path) -> list[Cell]:
    """The cells of a file; none where there is no file."""
    rows = json.loads(file.read_text()) if file.exists() else []
    return [Cell(**row | {"binds": tuple(row["binds"])}) for row in rows]


def merged(before: list[Cell], now: list[Cell]) -> list[Cell]:
    """All of them, in the order in which they first came; of a cell that was searched again the best."""
    best: dict[tuple[str, str, int], Cell] = {}
    for cell in [*before, *now]:
        best[cell.key] = min(best.get(cell.key, cell), cell, key=lambda one: one.rank)
    return list(best.values())


def stored(cells: list[Cell]) -> str:
    """JSON with a line for each."""
    return "[\n" + ",\n".join(json.dumps(asdict(cell)) for cell in cells) + "\n]\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default=MACHINES)
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--budget", default="4s", help="time of each search")
    parser.add_argument("--large-budget", default="60s", help=f"the same on machines of more than {MANY} ranks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serial-starts", action="store_true", help="search for schedules that need no other starts")
    parser.add_argument("--merge", type=Path, help="file of cells that these are added to")
    parser.add_argument("--bounds", action="store_true", help="no searches, only the bounds of the cells of --merge")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    asked = quick.arguments(parser, machines="torus-2d:2x2", collectives="allgather", sizes="1K", budget="0.1s")
    before = read(asked.merge) if asked.merge else []
    cells = [bounded(cell) for cell in before] if asked.bounds else merged(before, measured(asked))
    if not cells:
        sys.exit("no cell could be measured")
    if asked.merge:
        asked.merge.write_text(stored(cells))
    budgets = sorted({cell.budget for cell in cells})
    told = f"Budget {' to '.join(f'{one:g} s' for one in dict.fromkeys([budgets[0], budgets[-1]]))} a cell, "
    told += f"seed {asked.seed}, {len(cells)} cells."
    text = "\n".join([told, "", *map(wrapped, summary(cells)), "", *table(cells)]) + "\n"
    if asked.write is None:
        print(text, end="")
        return
    page, found = MARKED.subn(lambda marks: f"{marks[1]}{text}{marks[2]}", asked.write.read_text())
    if found != 1:
        sys.exit(f"{asked.write}: {found} places between `<!-- measured: cells -->` and `<!-- end -->`; one is needed")
    asked.write.write_text(page)


if __name__ == "__main__":
    main()
