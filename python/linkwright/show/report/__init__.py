"""One self-contained HTML file per run, which works from file://, offline, in light and dark, on screen and paper.

``render`` takes a run folder, or a `Report` built from the types of ``model``, and writes the page whole or not at
all. The same run folder gives the same bytes: the page contains nothing about the moment of rendering.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from linkwright.base import files
from linkwright.base.errors import StoreError

from . import dissect, html, runs
from .model import Report
from .runs import load
from .sections import glance

__all__ = ["Report", "conclude", "load", "render"]


def render(source: Path | str | runs.Run | Report, out: Path | str | None = None) -> Path:
    """Writes the report of a run, by its folder or loaded, or of a `Report`, and returns its path.

    `out` defaults to ``report/index.html`` in the run folder; it is required for a `Report` object.
    """
    if isinstance(source, Report):
        if out is None:
            raise StoreError("render: a Report object has no run folder; pass out=PATH")
        return _write(Path(out), html.page(source))
    run = source if isinstance(source, runs.Run) else load(Path(source))
    target = Path(out) if out is not None else _folder(run) / "report" / "index.html"
    return _write(target, _page(run))


def _folder(run: runs.Run) -> Path:
    if run.folder is None:
        raise StoreError("render: this run lies in no folder; pass out=PATH")
    return run.folder


def conclude(folder: Path) -> tuple[list[str], Path]:
    """Writes the report of a run folder and returns its first table, as lines for a terminal, and its path."""
    run = runs.load(folder)
    return list(glance.lines(run)), _write(folder / "report" / "index.html", _page(run))


def _page(run: runs.Run) -> str:
    with np.errstate(divide="ignore", invalid="ignore"):  # a log may have printed a time of 0.00
        return html.page(dissect.report(run))


def _write(path: Path, page: str) -> Path:
    files.make_folder(path.parent)
    files.write_text(path, page)
    return path
