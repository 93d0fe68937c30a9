"""Thresholds of AMD's Cluster Validation Suite (cvs): `results` of the configuration of its RCCL tests.

A measurement fails below 0.95 times the reference of its size: in place, for alltoall out of place. One node is checked
by references of `scale_up`, which name data type and ranks; several by the flat form, which counts for all NICs.

Source: ROCm/cvs, cvs/lib/rccl_lib.py, its documentation and cvs/input/config_file/rccl.
"""

from __future__ import annotations

import json

from .gate import PROGRAMS, Expectation, Expected, GateFormat, rate

FAILS_BELOW = 0.95  # of the reference, unless `bus_bw_tolerance` says otherwise
DTYPE = "float"


def render(expected: Expected) -> str:
    """The parts of the configuration that the thresholds need."""
    found: dict[str, dict] = {}
    parameters = {"verify_bus_bw": "True"}
    for collective in dict.fromkeys(one.collective for one in expected.expectations):
        its, program = expected.of(collective), PROGRAMS[collective]
        if expected.nodes == 1:
            parameters |= {"fabric": "scale_up", "bus_bw_tolerance": str(FAILS_BELOW)}
            rows = {str(one.size_bytes): {"bus_bw": _reference(one)} for one in its}
            found.setdefault("scale_up", {})[f"{program}-{DTYPE}-{expected.ranks}"] = rows
        else:
            found[program] = {"bus_bw": {str(one.size_bytes): _reference(one) for one in its}}
    # JSON has no comments; keys that begin so are the suite's own habit.
    comment = "; ".join((*expected.comments(), f"the suite fails below {FAILS_BELOW} x these references"))
    document = {"rccl": {"_comments_results": comment, "cvs_params": parameters, "results": found}}
    return json.dumps(document, indent=4, ensure_ascii=False) + "\n"


def _reference(one: Expectation) -> str:
    return rate(one.floor / FAILS_BELOW)


CVS = GateFormat(
    "cvs", "thresholds of AMD's Cluster Validation Suite (JSON)",
    "References by collective and size for the configuration of the RCCL tests. The suite fails below 0.95 times a "
    "reference, which is chosen so that it fails below the floor.",
    "ROCm/cvs, rccl_lib.py and config_file/rccl", render, libraries=("rccl",),
)  # fmt: skip
