"""One sentence per machine: is it healthy, what is suspicious and compared with what, how far to trust the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from linkwright.advise.explain import imported
from linkwright.base.rows import among
from linkwright.base.stats import grade

from .. import quantity
from ..findings import trust
from ..model import Finding
from ..runs import Run, ok, published

State = Literal["healthy", "suspicious", "unsure"]
_CLOSE = 0.10


def verdict(run: Run, machine: str, found: Sequence[Finding]) -> tuple[State, str]:
    """The state of a machine, and the sentence that says it."""
    rows = run.rows[run.rows["machine"] == machine]
    if not len(ok(rows)):
        return "unsure", "Nothing has a value, so nothing can be judged; the reasons are below."
    modelled = bool(rows["modelled"].all())
    if run.judged and not modelled:
        its = imported.worst(run.judged)
        return its.state, " ".join(its.sentences)
    sure = _model(run, machine) if modelled else _measured(run, machine)
    odd = [finding for finding in found if finding.odd]
    about = [finding for finding in odd if finding.subject == "machine"]
    if about:
        more = f" ({len(about) - 1} more below)" if len(about) > 1 else ""
        return "suspicious", f"{about[0]}{more}. {sure}"
    claim = "its description" if modelled else "what it claims"
    if odd:
        return "unsure", f"Nothing contradicts {claim}, but the run is weak. {sure}"
    return "healthy", f"Nothing contradicts {claim}. {sure}"


def _measured(run: Run, machine: str) -> str:
    """The share of values that are tight or fair, and of experiments that were disturbed."""
    rows = trust.experiments(run, machine)
    grades = rows[rows["grade"] != ""]["grade"]
    if not len(grades):
        return "No value has a grade."
    good = float(among(grades, (grade.TIGHT, grade.FAIR_GRADE)).mean())
    disturbed = len(trust.flagged(rows, "disturbed")) + int((rows["status"] == "disturbed").sum())
    hit = quantity.percent(disturbed / len(rows)) if disturbed else "none"
    share = quantity.percent(good) if good else "None"
    trusted = f"{share} of {len(grades):,} values {'are' if good else 'is'} tight or fair, {hit} disturbed"
    return f"{trusted}: {_advice(good, disturbed / len(rows))}."


def _advice(good: float, disturbed: float) -> str:
    if disturbed >= trust.BUSY_FROM:
        return "trust orders of magnitude, and measure again on an idle machine"
    if good >= trust.ENOUGH:
        return "trust the numbers within their ±"
    if not good:
        return "trust orders of magnitude, and measure longer"
    return "trust those that are tight or fair"


def _model(run: Run, machine: str) -> str:
    """What a model is worth: it is exact in itself, and as close to reality as its published values."""
    rows = published(run, machine)
    if not len(rows):
        return "Modelled, so exact and without noise; this run has no published value to compare with."
    close = int((np.abs(rows["off"]) <= _CLOSE).sum())
    return f"Modelled, so exact and without noise; {close:,} of {len(rows):,} published values are met within 10 %."
