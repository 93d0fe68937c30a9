"""What a collective costs on a described machine, looked up in a table: for schedulers and planners.

A table is built once, by simulation, and then answers in microseconds without one. For each collective and number of
ranks it holds a curve of times over sizes:

    points       simulated; between two of them the time is on the straight line
    refinement   where the middle of two neighbours is off by more than `WITHIN`, it becomes a point; `ROUNDS` times
    monotone     where times fall with the size, as between protocols of a library, they become a level in between
    error        of the finished curve at further sizes, a third of the way (by factor) between neighbours

The error is that of the table against the simulation. That of the simulation against the machine is not in it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkwright.advise.cost_curve import CostCurve
from linkwright.base.errors import UsageError, nearest
from linkwright.base.units import parse_size, size_sweep

# Sizes to start from where none are asked for, in bytes.
SIZES = tuple(size_sweep(64, 1 << 30, 4))
BEST = "all"  # algorithms: the fastest of everything that is known


@dataclass(frozen=True)
class CostTable:
    """Costs of collectives on one described machine.

    Attributes:
        machine: the name of the machine.
        digest: of the text of its file, so that a changed machine is noticed.
        wanted: the algorithms that were asked for: `all` for the best, or a library such as `nccl-2.27`.
        dtype: the data type of reductions.
        curves: the times by collective and number of ranks.
    Example:
        >>> import linkwright as lw
        >>> table = lw.CostTable.build("loggp", ["allreduce"], [4], sizes=["1K", "1M"])
        >>> table.machine, table.wanted, table.dtype, len(table.digest), len(table.curves)
        ('loggp', 'all', 'f32', 16, 1)
    """

    machine: str
    digest: str
    wanted: str
    dtype: str
    curves: tuple[CostCurve, ...] = field(repr=False)

    @classmethod
    def build(
        cls,
        machine: str | Path,
        collectives: Sequence[str],
        ranks: Sequence[int] | None = None,
        *,
        algorithms: str = BEST,
        sizes: Sequence[int | str] = SIZES,
        dtype: str = "f32",
        grid: tuple[int, ...] | None = None,
        nodes: int | None = None,
        fabric: str | None = None,
    ) -> CostTable:
        """Simulate a table.

        Args:
            machine: the name of a described machine, or the path of its file.
            collectives: names of collectives.
            ranks: numbers of ranks; by default all of the machine.
            algorithms: `all` for the fastest known algorithm at each size, or names of algorithms and libraries,
                separated by commas, such as `nccl-2.27`.
            sizes: sizes to start from, in bytes or as text; the table reaches from the first to the last.
            dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`.
            grid: sides, (columns, rows, ...), for a machine that leaves its grid open.
            nodes: so many of the node that the file describes, as one machine.
            fabric: the network between them, as for `machine`.
        Returns:
            The table, with its error against the simulation.
        Raises:
            UnknownNameError: there is no such machine, collective or algorithm.
            UsageError: no algorithm serves a collective at this number of ranks.
        Example:
            >>> import linkwright as lw
            >>> table = lw.CostTable.build("loggp", ["allreduce"], [4], algorithms="ring", sizes=["1K", "1M"])
            >>> table.curves[0].error.largest < 0.01
            True
        """
        from linkwright.advise import costs_build
        from linkwright.machines import Variant

        asked = tuple(parse_size(size) if isinstance(size, str) else size for size in sizes)
        variant = Variant.of(nodes, fabric, (), {})
        return cls(*costs_build.fields(str(machine), collectives, ranks, algorithms, asked, dtype, grid, variant))

    @classmethod
    def load(cls, path: str | Path) -> CostTable:
        """Read a table that `save` wrote; nothing is simulated.

        Args:
            path: the file, whose suffix is `.json`.
        Returns:
            The table.
        Raises:
            UsageError: the file cannot be read, or is no cost table.
        Example:
            >>> import linkwright as lw
            >>> file = lw.CostTable.build("loggp", ["allreduce"], [4], sizes=["1K", "1M"]).save("costs.json")
            >>> lw.CostTable.load(file).time_us("allreduce", "64K", 4) > 1
            True
        """
        from linkwright.advise import cost_table

        return cls(*cost_table.read(Path(path)))

    def save(self, path: str | Path) -> Path:
        """Write the table.

        Args:
            path: the file, whose suffix is `.json`.
        Returns:
            The path.
        Raises:
            UsageError: the suffix is another one.
            StoreError: the file cannot be written.
        Example:
            >>> import linkwright as lw
            >>> table = lw.CostTable.build("loggp", ["allreduce"], [4], sizes=["1K", "1M"])
            >>> lw.CostTable.load(table.save("costs.json")) == table
            True
        """
        from linkwright.advise import cost_table

        return cost_table.write(as_dict(self), Path(path))

    def curve(self, collective: str, ranks: int) -> CostCurve:
        """The curve of a collective on a number of ranks.

        Args:
            collective: its name.
            ranks: the number of ranks; only those that the table was built for are known.
        Returns:
            The curve.
        Raises:
            UsageError: the table has no such curve.
        Example:
            >>> import linkwright as lw
            >>> table = lw.CostTable.build("loggp", ["allreduce"], [4], sizes=["1K", "1M"])
            >>> table.curve("allreduce", 4).sizes[0]
            1024
        """
        found = self._by_problem.get((collective, ranks))
        if found is None:
            raise self._missing(collective, ranks)
        return found

    def time_us(self, collective: str, size: int | str, ranks: int) -> float:
        """The time of a collective in microseconds, between the points of its curve.

        Args:
            collective: its name.
            size: the message size S in bytes, or as text.
            ranks: the number of ranks.
        Returns:
            The time; a larger size never takes less.
        Raises:
            UsageError: the table has no such curve, or ends at a smaller size.
        Example:
            >>> import linkwright as lw
            >>> table = lw.CostTable.build("loggp", ["allreduce"], [4], sizes=["1K", "1M"])
            >>> table.time_us("allreduce", 2048, 4) <= table.time_us("allreduce", 4096, 4)
            True
        """
        return self.curve(collective, ranks).time_us(size if isinstance(size, int) else parse_size(size))

    @functools.cached_property
    def _by_problem(self) -> dict[tuple[str, int], CostCurve]:
        return {(curve.collective, curve.ranks): curve for curve in self.curves}

    def _missing(self, collective: str, ranks: int) -> UsageError:
        known = sorted(curve.ranks for curve in self.curves if curve.collective == collective)
        if not known:
            names = dict.fromkeys(curve.collective for curve in self.curves)
            near = nearest(collective, names)
            hint = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(names)}"
            return UsageError(f"cost table of {self.machine}: no collective `{collective}`{hint}")
        counts = ", ".join(map(str, known))
        return UsageError(
            f"cost table of {self.machine}: {collective} on {ranks} ranks is missing; the table has {counts}"
        )


def estimate(collective: str, size: int | str, ranks: int, machine: CostTable | str | Path) -> float:
    """What a collective takes on a described machine, from a table: some microseconds for each call.

    The first call for a machine, collective and number of ranks simulates the table that later ones look at; in a
    program that must not simulate, load one (`CostTable.load`), or give its path.

    Args:
        collective: `allreduce`, `broadcast`, ...
        size: the message size S in bytes, or as text, such as `64K`.
        ranks: the number of ranks.
        machine: a table, the path of one (`.json`), or the name of a described machine, whose fastest known
            algorithms then count.
    Returns:
        The time in microseconds; a larger size never takes less.
    Raises:
        UsageError: the table has no such collective or number of ranks, or ends at a smaller size.
        UnknownNameError: there is no such machine or collective.
    Example:
        >>> import linkwright as lw
        >>> 0 < lw.estimate("allreduce", "1K", 4, "loggp") <= lw.estimate("allreduce", "1M", 4, "loggp")
        True
    """
    table = machine if isinstance(machine, CostTable) else _table(machine, collective, ranks)
    return table.time_us(collective, size, ranks)


@functools.lru_cache(maxsize=1024)
def _table(machine: str | Path, collective: str, ranks: int) -> CostTable:
    """The table in a file, or one that is built for one curve."""
    if str(machine).endswith((".json", ".npz")):  # the latter is refused with the cure
        return _loaded(str(machine))
    return CostTable.build(machine, [collective], [ranks])


@functools.lru_cache(maxsize=64)
def _loaded(path: str) -> CostTable:
    return CostTable.load(path)


def as_dict(table: CostTable) -> dict[str, Any]:
    """Plain values, as they stand in JSON."""
    return {
        "machine": table.machine,
        "digest": table.digest,
        "algorithms": table.wanted,
        "dtype": table.dtype,
        "curves": [
            {
                "collective": curve.collective,
                "ranks": curve.ranks,
                "bytes": list(curve.sizes),
                "time_us": list(curve.times_us),
                "algorithm": list(curve.algorithms),
                "error": vars(curve.error),
            }
            for curve in table.curves
        ],
    }
