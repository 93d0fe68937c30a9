"""How the answers of `linkwright predict` are shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from linkwright.show.report import Report


@dataclass(frozen=True)
class Shown:
    """How the answer is shown."""

    as_json: bool
    wide: bool
    report: Path | None

    def write(self, page: Report) -> None:
        """Write the page, and say where unless JSON is printed."""
        from linkwright.show import report

        report.render(page, self.report)
        click.echo(f"page: {self.report}", err=self.as_json)
