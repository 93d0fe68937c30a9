"""Ranks are cores of a Tenstorrent chip: schedules on the vendor's runtime, on a board or on simulators of it.

linkwright run allreduce --on metalium --ranks 4 --size 2K

lower.py    a schedule as a program for each data-movement processor of the cores
image.py    the rows of bytes that the cores begin with, and what they leave
runtime.py  the process that runs the runtime, in its own Python
serve.py    what runs there
launch.py   one experiment
folder.py   a folder that runs without linkwright, by run.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from linkwright.base.errors import ShapeError
from linkwright.store.record import Outcome

from ..protocol import MOST_RANKS, Executor, Extent, Launch, Target, partial

# Ranks by default on a simulator, which takes seconds for each core.
_FEW = 4


class Metalium(Executor):
    """The workers of the chip that the runtime shows."""

    key = "metalium"
    summary = (
        "ranks are Tenstorrent cores (ran on simulators; never on a board): one kernel on the vendor's runtime "
        "walks the schedule"
    )
    description = (
        "It ran on simulators of the vendor's runtime; never on a board. A data-movement kernel walks a program in "
        "the L1 of each core: puts are writes of the network, gets are reads, notices are counters in L1, a multicast "
        "to a rectangle is the network's. Lanes take turns between the two data-movement processors and their "
        "networks, and these processors also combine data, in software. Path `noc0` (the default) walks even lanes on "
        "network 0, path `noc1` walks them on network 1. Under an issue policy a processor waits for "
        "the acknowledgement of a batch of puts and gives notice of them, a progress signal. Without a board the "
        "simulator wolfpine stands for it, and rows say so; on other simulators (TT_METAL_SIMULATOR) data are checked "
        "and nothing is timed. "
        "Needs ttnn in a Python of its own (`make setup-metalium`)."
    )
    obeys = frozenset({"placement", "arithmetic", "path", "issue"})

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """The first workers of the chip, in the rectangle that is asked for, or as square as possible."""
        from .image import rectangle
        from .runtime import runtime

        device = runtime()
        columns, lines = device.grid
        workers = columns * lines
        name = device.chip.replace("_b0", "").capitalize()
        if ranks is not None and ranks > workers:
            raise ShapeError(f"--ranks {ranks}: this {name} has {workers} workers; ask for at most {workers}")
        usual = min(workers, _FEW if device.simulator else MOST_RANKS)
        used = ranks or (math.prod(grid) if grid else usual)
        sides = grid if grid and len(grid) == 2 else rectangle(used, columns, lines)
        if sides and (sides[0] > columns or sides[1] > lines):
            raise ShapeError(
                f"--grid {sides[0]}x{sides[1]}: this {name} has {columns} columns and {lines} lines of workers, "
                "harvested ones not counted; ask for fewer"
            )
        width = sides[0] if sides else columns
        simulated = f" simulated by {device.simulator}" if device.simulator else ""
        return Target(
            name=self.key,
            executor=self,
            machine_name=f"{name}{simulated}",
            extent=Extent("measured", used, grid or sides),
            endpoint_names=tuple(f"core {rank % width},{rank // width}" for rank in range(used)),
            about={"chip": device.chip, "runtime": f"ttnn {device.version}", "simulator": device.simulator},
            handle=tuple((rank % width, rank // width) for rank in range(used)),
            partial=None if ranks or grid else partial(used, workers, "workers", "as a small example"),
            simulator=device.simulator,
        )

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """In the process of the runtime, which stays open between launches."""
        from .. import process
        from .launch import CoreMeasurer
        from .runtime import runtime

        return process.here(lambda: CoreMeasurer(runtime(), target.handle), launch)
