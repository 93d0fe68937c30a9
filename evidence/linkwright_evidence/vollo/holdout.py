"""From small to large: the nine numbers from cells of at most 1 KiB each way, and what they say of larger ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright_evidence import holdout
from linkwright_evidence.numbers import values
from linkwright_evidence.outcome import Cell
from linkwright_evidence.vollo import fit
from linkwright_evidence.vollo.grid import Grid

# In values of 2 B.
LARGEST = 512
NOTE = "Fitted to open cells of at most 1 KiB of input and output; these are all larger ones, up to 16 KiB."


def is_small(cell: Cell) -> bool:
    """Whether both sizes of a cell are small."""
    return max(cell.keys["in_values"], cell.keys["out_values"]) <= LARGEST  # type: ignore[type-var]


def results(machine, open_page: Grid, cells_of: Callable[[object], Sequence[Cell]]) -> dict[str, list[dict]]:
    """The two tables of `--holdout-scale`; `cells_of` gives the cells of the tables on a machine."""
    found = fit.refit(machine, {key: time for key, time in open_page.items() if max(key[2:]) <= LARGEST})
    large = [cell for cell in cells_of(fit.with_values(machine, found)) if not is_small(cell)]
    return holdout.tables(large, found, {key: values(machine)[key] for key in found})
