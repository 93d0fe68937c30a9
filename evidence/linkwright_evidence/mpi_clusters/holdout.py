"""From small jobs to large ones: the fitted numbers found again from the small jobs, then all others predicted."""

from __future__ import annotations

from linkwright_evidence import Options, holdout

from . import cells, fit
from .predict import Model

NOTE = (
    "The fitted numbers are found again from every third size of the small jobs: Fugaku 2x2x2, Leonardo up to 128 "
    "nodes, LUMI up to 8. The errors are those of all other jobs that the run takes."
)
# Of the sizes of small jobs, every third is fitted to.
EVERY = 3


def results(options: Options) -> dict[str, list[dict]]:
    """Errors of the large jobs, and the numbers that were found."""
    large = [one for one in cells.measured() if not (cells.small(one[0]) or cells.slow(one[0], options.full))]
    found: dict[str, float] = {}
    shipped: dict[str, float] = {}
    other: dict[str, dict[str, str]] = {}
    for machine in fit.KEYS:
        its = [one for one in cells.measured() if one[0].machine == machine and cells.small(one[0])]
        sizes = sorted({at.size_bytes for at, _ in its})[::EVERY]
        its = sorted((one for one in its if one[0].size_bytes in sizes), key=lambda one: one[0].ranks)
        numbers = fit.found(machine, its)
        other[machine] = {key: f"{value:.6g}" for key, value in numbers.items()}
        found |= {f"{machine}: {key}": value for key, value in numbers.items()}
        shipped |= {f"{machine}: {key}": value for key, value in fit.shipped(its[-1][0]).items()}
    times = cells.predictions(Model(other), large, options)
    return holdout.tables(cells.cells(large, times), found, shipped)
