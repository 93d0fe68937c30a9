"""How the answers of `linkwright predict` are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright.advise.predict import Forecast
    from linkwright.advise.predict.trace.outcome import Outcome
    from linkwright.show.report import Report


@dataclass(frozen=True)
class Shown:
    """How the answer is shown."""

    as_json: bool
    wide: bool
    report: Path | None

    def print_json(self, found: Sequence[Forecast | Outcome], lead: Callable[[Any, Any], float | None]) -> None:
        """Print one forecast, or all with the leads of the first."""
        first, *others = found
        leads = [{"first": first.machine, "second": one.machine, "lead": lead(first, one)} for one in others]
        print_json({"forecasts": [one.as_dict() for one in found], "leads": leads} if others else first.as_dict())

    def write(self, page: Report) -> None:
        """Write the page, and say where unless JSON is printed."""
        from linkwright.show import report

        report.render(page, self.report)
        click.echo(f"page: {self.report}", err=self.as_json)
