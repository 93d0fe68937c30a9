"""Which launches count: those in peace, or all where none was.

The journal keeps every launch with what went on beside it. A launch is disturbed where others kept processors busy
(`foreign`) or the clock of a processor moved (`clock`); its samples stay in the files, marked.
"""

from __future__ import annotations

from collections.abc import Sequence

REASONS = ("foreign", "clock")
# How the first words of a row's reason end, where no launch was left in peace.
IN_EVERY_LAUNCH = "in every launch, so stop what else runs"


def disturbed(record: dict) -> str | None:
    """Why the samples of a launch are set aside; None: it was in peace."""
    seen = {"foreign": record.get("foreign"), "clock": record.get("clock_change")}
    return next((reason for reason in REASONS if seen[reason]), None)


def counting(records: Sequence[dict]) -> tuple[list[dict], list[dict]]:
    """The launches of one experiment that count, and those that are set aside."""
    kept = [record for record in records if record["values_ns"]]
    peaceful = [record for record in kept if not disturbed(record)]
    return (peaceful, [record for record in kept if disturbed(record)]) if peaceful else (kept, [])
