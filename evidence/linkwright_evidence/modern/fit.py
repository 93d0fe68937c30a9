"""Recovers the fitted numbers of the parts and networks from a few tables.

    python -m linkwright_evidence.modern.fit [GENERATION | NETWORK ...]

Each number is moved until the median error of its tables is least, one number after the other, a few rounds. What is
minimised is the mean over tables of the mean of |log(predicted / published)|, each cell counting at most `MOST`: a few
wild cells do not move a fit. Everything is deterministic, and starts from the numbers of the files.

At most six numbers belong to a generation of GPUs and three to a kind of network. A network is fitted after the
generations, to tables of several nodes.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from linkwright.libraries.times import Model
from linkwright_evidence import Options
from linkwright_evidence.numbers import values

from . import cells
from .cells import Table

ROUNDS = 3
# Factors that are tried on a number, coarse to fine; the best of each row is the start of the next.
STEPS = ((0.5, 0.7, 0.85, 1, 1.2, 1.45, 2), (0.9, 0.95, 1, 1.05, 1.1), (0.975, 1, 1.025))
MOST = 1.5  # |log| of a cell, a factor of 4.5
DIGITS = 3


@dataclass(frozen=True)
class Fit:
    """Numbers that are fitted together, by key, and the tables that they are fitted to."""

    name: str
    kind: str  # `part` or `network`, whose file has the numbers
    keys: tuple[str, ...]
    tables: tuple[str, ...]


NVLINK, XGMI, PCIE, NET = (f"fabric.transport.{kind}_" for kind in ("nvlink", "xgmi", "pcie", "net"))
STARTS = (f"{NET}ll.start", f"{NET}ll128.start", f"{NET}simple.long_start")
# Numbers that other places of a file repeat, with status `derived`: they move together.
REPEATED: Mapping[str, tuple[str, ...]] = {
    f"{NET}simple.long_start": (f"{NET}ll.long_start", f"{NET}ll128.long_start"),
}
RING = ("library.launch", f"{NVLINK}ll.start", f"{NVLINK}ll.channel", f"{NVLINK}simple.start")
MESH = ("library.launch", f"{XGMI}ll.start", f"{XGMI}simple.start", "fabric.links.xgmi.share")
CARD = (
    "library.launch", f"{PCIE}ll.start", f"{PCIE}ll.channel", f"{PCIE}simple.start", f"{PCIE}simple.channel",
    "fabric.links.pcie.share",
)  # fmt: skip

FITS: tuple[Fit, ...] = (
    Fit(
        "ampere", "part", (*RING, f"{NVLINK}simple.channel"),
        ("T0262", "T0263", "T0264", "T0260", "T0261", "T0269", "T0270", "T0267"),
    ),
    Fit("nccl", "part", ("facts.launch_each",), ("T0032",)),
    Fit("a100-polaris", "part", ("fabric.links.nic.share",), ("T0060",)),
    Fit(
        "hopper", "part", (*RING, f"{NVLINK}nvls.channel", "facts.nvls_flag"),
        ("T0283", "T0284", "T0285", "T0281", "T0282", "T0290", "T0291", "T0288", "T0245", "T0246", "T0248"),
    ),
    Fit(
        "blackwell", "part", (*RING[:-1], f"{NVLINK}simple.channel", f"{NVLINK}nvls.channel", "facts.nvls_flag"),
        ("T0316", "T0317", "T0314", "T0315", "T0323", "T0324", "T0321", "T0424"),
    ),
    Fit("cdna3", "part", MESH, ("T0014",)),
    Fit("cdna4", "part", MESH[:-1], ("T0422",)),
    Fit("cdna4", "part", MESH[-1:], ("T0423",)),
    Fit("rccl", "part", ("facts.launch_each",), ("T0423",)),
    Fit("pcie-gpu", "part", CARD, ("T0377", "T0380", "T0383", "T0386")),
    Fit("arc-b60", "part", ("fabric.links.pcie.share", f"{PCIE}simple.start"), ("T0403", "T0405")),
    Fit("ndr-fat-tree", "network", STARTS, ("T0407", "T0408")),
    Fit("hdr-fat-tree", "network", STARTS, ("T0149", "T0151")),
    # On neither system is a GPU next to a NIC, so that LL128 is not used.
    Fit("slingshot-11", "network", STARTS[:1], ("T0201", "T0060")),
    Fit("slingshot-11", "network", (f"{NET}ll.handling",), ("T0055", "T0201")),
    Fit("slingshot-11", "network", (f"{NET}simple.handling",), ("T0054", "T0060")),
    Fit("roce-400", "network", STARTS, ("T0002",)),
    Fit("efa-p5", "network", STARTS, ("T0011",)),
    Fit("efa-p4", "network", STARTS, ("T0010",)),
    Fit("gcp-tcpxo", "network", STARTS, ("T0021",)),
    Fit("gcp-tcpx", "network", STARTS, ("T0025",)),
)  # fmt: skip


def fitted_to() -> frozenset[str]:
    """The tables that any number was fitted to; they are shown and not scored."""
    return frozenset(table for fit in FITS for table in fit.tables)


def refit(
    fit: Fit, tables: Sequence[Table], before: Mapping[str, str] | None = None, rounds: int = ROUNDS,
    rows: Sequence[Sequence[float]] = STEPS,
) -> dict[str, str]:  # fmt: skip
    """Key -> value in the unit of the file, found from `tables`; `before` are other numbers that have changed."""
    now = dict(before or {})
    start = _starts(fit, tables, now)
    found = {key: start[key] for key in fit.keys if key in start}
    best = _loss(tables, now | _texts(found))
    for _ in range(rounds):
        for key in found:
            for steps in rows:
                tried = {factor: found | {key: _rounded(found[key] * factor)} for factor in steps if factor != 1}
                losses = {factor: _loss(tables, now | _texts(values)) for factor, values in tried.items()}
                factor = min(losses, key=lambda factor: (losses[factor], abs(math.log(factor))))
                if losses[factor] < best:
                    best, found = losses[factor], tried[factor]
    return _texts(found)


def _starts(fit: Fit, tables: Sequence[Table], now: Mapping[str, str]) -> dict[str, float]:
    model, found = Model(now), {}
    for shape in dict.fromkeys(table.shape for table in tables if table.shape):
        found |= values(model.machine(shape))
    return {key: found[key] for key in fit.keys if key in found}


def _loss(tables: Sequence[Table], changes: Mapping[str, str]) -> float:
    """The mean over tables of the mean of |log(predicted / published)|."""
    times = cells.predictions(Model(changes), tables, Options())
    by_table: dict[object, list[float]] = {}
    for cell in cells.cells(tables, times):
        error = abs(math.log(cell.predicted / cell.reference)) if cell.reference else 0.0  # type: ignore[operator]
        by_table.setdefault(cell.keys["table_id"], []).append(min(MOST, error))
    return statistics.fmean(map(statistics.fmean, by_table.values())) if by_table else math.inf


def _texts(found: Mapping[str, float]) -> dict[str, str]:
    return {same: f"{value:.9g}" for key, value in found.items() for same in (key, *REPEATED.get(key, ()))}


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def fits(names: Collection[str] = ()) -> list[Fit]:
    """All fits, or those named."""
    return [fit for fit in FITS if not names or fit.name in names]


def main() -> None:
    """Print the value of each number in the files and in the fit."""
    changes: dict[str, str] = {}
    for fit in fits(sys.argv[1:]):
        tables = cells.tables(fit.tables)
        shipped = _starts(fit, tables, {})
        found = refit(fit, tables, changes)
        for key in filter(found.get, fit.keys):
            print(f"{fit.name:20} {key:40} {shipped[key]:>8g} fitted {found[key]}", flush=True)


if __name__ == "__main__":
    main()
