"""Puts the first screen together."""

from __future__ import annotations

from ..drawing import picture
from ..findings import findings
from ..model import Overview
from ..runs import Run
from . import tiles, verdict


def overviews(run: Run) -> list[Overview]:
    """One overview for each machine of the run, measured ones first."""
    return [_overview(run, machine) for machine in run.machines]


def _overview(run: Run, machine: str) -> Overview:
    modelled = bool(run.rows[run.rows["machine"] == machine]["modelled"].all())
    found = findings(run, machine)
    state, sentence = verdict.verdict(run, machine, found)
    return Overview(
        name=machine,
        kind="model" if modelled else "measured",
        state=state,
        verdict=sentence,
        tiles=tiles.tiles(run, machine),
        findings=found,
        picture=picture(run, machine),
    )
