"""Published studies, re-run on models.

A study predicts every cell of its reference tables from mechanisms and checks the claims of the paper. No code looks
up, interpolates or special-cases a published cell: references are read after the predictions are made, and only for
comparison.

A study is a package with a function `reproduce(options) -> Outcome`, a folder of the same name in `references/`, and
one line in `REGISTRY`. All studies share these modules:

    outcome.py      cells, claims and everything else that a study returns
    published.py    the published rows, as cells with their predictions
    asked.py        the rows of `--conditions FILE.csv`
    numbers.py      the numbers of a machine file: by key, changed, fitted, tuned
    ablation.py     what each mechanism is worth (`--ablate`)
    holdout.py      from small cases to large ones (`--holdout-scale`)

`scoring.py` gives the errors by table, targets and verdicts; `report/` draws pages of them, and `cli.py` is the verb
`linkwright reproduce`.

The modules of one study are usually `claims.py`, `facts.py` (stated numbers that follow from the machine), `blind.py`
(predictions of unpublished quantities) and one file for each kind of experiment.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwright.base.errors import UsageError, unknown

if TYPE_CHECKING:
    from linkwright_evidence.outcome import Outcome


@dataclass(frozen=True)
class Study:
    """One line of the registry."""

    package: str
    summary: str
    # Further options that it supports: the keys of `FLAGS`.
    offers: tuple[str, ...] = ()


REGISTRY = {
    "cell": Study(
        "linkwright_evidence.cell",
        "DMAs between the eight SPEs of a Cell Broadband Engine and main memory, on four slotted rings",
        offers=("ablate", "holdout_scale"),
    ),
    "ipu": Study(
        "linkwright_evidence.ipu",
        "microbenchmarks of a Graphcore C2 server, 16 IPUs on a ladder of links",
        offers=("tables", "ablate", "holdout_scale"),
    ),
    "gpu-nodes": Study(
        "linkwright_evidence.gpu_nodes",
        "copies and collectives of eight P100s, on NVLink (DGX-1) or in a PCIe tree (GX8)",
        offers=("ablate", "holdout_scale"),
    ),
    "wormhole": Study(
        "linkwright_evidence.wormhole",
        "allreduce algorithms on 64 tiles of a Tenstorrent Wormhole n150",
        offers=("ablate", "holdout_scale"),
    ),
    "vollo": Study(
        "linkwright_evidence.vollo",
        "host round trips of the Vollo accelerator on an IA-420F card",
        offers=("ablate", "holdout_scale"),
    ),
    "torus": Study(
        "linkwright_evidence.torus",
        "allreduce on a simulated torus of 64 nodes with 400 Gb/s links",
        offers=("ablate", "holdout_scale"),
    ),
    "mpi-clusters": Study(
        "linkwright_evidence.mpi_clusters",
        "collectives of MPI by algorithm on Fugaku, Leonardo and LUMI: 5,434 medians, 4 to 512 nodes",
        offers=("conditions", "ablate", "holdout_scale"),
    ),
    "modern": Study(
        "linkwright_evidence.modern",
        "collectives of GPU libraries on A100 to GB200 and MI300X: published tables of 2 to 2,160 GPUs",
        offers=("tables", "machines", "conditions", "ablate", "holdout_scale"),
    ),
    "training": Study(
        "linkwright_evidence.training",
        "training of large language models: tokens per second and GPU, 8 to 256 GPUs, H100 to GB300",
        offers=("conditions",),
    ),
    "kernels": Study(
        "linkwright_evidence.kernels",
        "all-reduce of serving frameworks, DeepEP and mixtures of experts on A100 to GB200: 34,034 published times",
        offers=("kernels", "machines", "conditions", "holdout_scale"),
    ),
    "tuner": Study(
        "linkwright_evidence.tuner",
        "algorithm and protocol that AWS's tuner takes for NCCL on EFA: 112 decisions, 1 to 512 nodes",
        offers=("conditions",),
    ),
}
FLAGS = {
    "tables": "--table",
    "machines": "--machine",
    "kernels": "--kernel",
    "conditions": "--conditions",
    "ablate": "--ablate",
    "holdout_scale": "--holdout-scale",
}
ABOUT_PUBLISHED = {name: flag for name, flag in FLAGS.items() if name != "conditions"} | {"full": "--full"}


@dataclass(frozen=True)
class Options:
    """The options of `linkwright reproduce`."""

    full: bool = False
    seed: int = 1
    # Supported by some studies: only these tables; the tables without each mechanism in turn; predictions of large
    # scales from a fit to small ones.
    tables: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()  # only tables of these machine files
    kernels: tuple[str, ...] = ()  # only kernels of these kinds
    conditions: Path | None = None  # a CSV file: predict its cells instead
    ablate: bool = False
    holdout_scale: bool = False
    progress: Callable[[str, int, int], None] = lambda what, done, total: None
    found: Callable[[str], None] = lambda line: None  # what is known before the end, as it comes


def reproduce(key: str, options: Options | None = None) -> Outcome:
    """Run study `key`."""
    if key not in REGISTRY:
        raise unknown("study", key, REGISTRY, lists="linkwright list studies")
    study, options = REGISTRY[key], options or Options()
    for name, flag in FLAGS.items():
        if getattr(options, name) and name not in study.offers:
            raise UsageError(f"study `{key}` has no {flag}; leave it out")
    if options.conditions is not None:
        for name, flag in ABOUT_PUBLISHED.items():
            if getattr(options, name):
                raise UsageError(
                    f"--conditions predicts the rows of {options.conditions} and no published table, which {flag} "
                    f"is about; leave {flag} out"
                )
    return importlib.import_module(study.package).reproduce(options)


def parallel(work: Callable[..., Any], cases: Iterable[tuple], options: Options, what: str) -> list:
    """`work(*case)` for every case, in order; simulation releases the interpreter lock, so threads suffice."""
    cases = list(cases)
    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, result in enumerate(pool.map(lambda case: work(*case), cases), 1):
            results.append(result)
            options.progress(what, done, len(cases))
    return results


def parallel_by_case(work: Callable[..., Any], cases: Iterable[Hashable], options: Options, what: str) -> dict:
    """Case -> `work(*case)`; a case that is not a tuple is the only argument."""
    cases = list(cases)
    arguments = [case if isinstance(case, tuple) else (case,) for case in cases]
    return dict(zip(cases, parallel(work, arguments, options, what), strict=True))
