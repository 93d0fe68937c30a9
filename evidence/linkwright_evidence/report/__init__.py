"""Pages of studies: `page` of the dict that ``reproduce --json`` prints; `render_study` writes it as HTML."""

from __future__ import annotations

from pathlib import Path

from linkwright.show import report

from .pages import page, sections

__all__ = ["page", "render_study", "sections"]


def render_study(study, out: Path | str, extras=(), facts=()) -> Path:
    """Writes the report of a reproduced study, with `extras` as further sections, and returns its path."""
    return report.render(page(study, extras, facts), out)
