"""The first table as plain text for the terminal, with a block per machine.

Only a run of several parts has it: the rows of a single part need no summary.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import quantity
from ..runs import Run
from . import headline, values


def lines(run: Run) -> Iterator[str]:
    """A heading per machine, then one line per question: the value, its share of the limit, and what was chosen."""
    if run.rows["part"].nunique() < 2:
        return
    for machine in run.machines:
        picks = headline.picks(run, machine)
        if not picks:
            continue
        never = all(_unconverged(pick) for pick in picks)
        yield headline.title(run, machine) + (", nothing converged" if never else "")
        cells = [_cells(pick, "" if never else "unconverged") for pick in picks]
        question, value, share = (max(len(line[at]) for line in cells) for at in range(3))
        for line in cells:
            yield f"  {line[0]:<{question}}  {line[1]:>{value}}  {line[2]:>{share}}  {line[3]}".rstrip()


def _cells(pick: headline.Pick, state: str) -> tuple[str, str, str, str]:
    row = pick.row
    share = f"{quantity.percent(row['share'])} of limit" if row["share"] == row["share"] else ""
    published = f"published {values.published(row).text}" if row["reference_value"] == row["reference_value"] else ""
    words = [pick.about, published, state if _unconverged(pick) else ""]
    return pick.question, values.value(row).text, share, ", ".join(filter(None, words))


def _unconverged(pick: headline.Pick) -> bool:
    return pick.row["status"] == "unconverged"
