"""The report of a dissected run: what a machine can do. One line per section, in reading order."""

from __future__ import annotations

from dataclasses import replace

from linkwright.base import studies

from .first import overview
from .model import Report
from .runs import Run
from .sections import (
    collectives,
    computing,
    curves,
    environment,
    fitted,
    headline,
    load,
    matrices,
    memory,
    picture,
    round_trips,
    spread,
    status,
)

SECTIONS = (
    picture.section,
    headline.section,
    memory.section,
    matrices.section,
    curves.by_size,
    curves.under_load,
    load.section,
    collectives.section,
    fitted.section,
    round_trips.section,
    computing.section,
    spread.section,
    status.section,
    environment.section,
)
# Of a page with more sections than these, the others are folded, so that it is read in one go.
OPEN = (picture.section, headline.section, matrices.section, curves.by_size, collectives.section)


def report(run: Run) -> Report:
    """The report of `run`; a run folder with a study and no results gives that study's report."""
    if run.study is not None and not len(run.rows):
        about = [section for section in (environment.section(run),) if section]
        return studies.module("report").page(run.study, about, environment.facts(run))
    found = [(build, section) for build in SECTIONS if (section := build(run))]
    many = len(found) > len(OPEN)
    built = [replace(section, folded=many and build not in OPEN) for build, section in found]
    if run.study is not None:
        built[-1:-1] = studies.module("report").sections(run.study)
    return Report(
        title=" and ".join(run.machines) or run.id,
        subtitle=headline.subtitle(run),
        badges=status.badges(run),
        overviews=overview.overviews(run),
        sections=built,
    )
