"""What contradicts a claim, a published value, an earlier run or the plan: sentences, the weightiest first.

One rule is one function `rule(run, machine) -> Iterable[Finding]` and one line here. A rule compares what the run found
with something that was said before, and it says what to do; a number without a contradiction belongs in a table.

    trust.py    how far to trust the run: failures, disturbance, precision, what was not started
    memory.py   what the kernel claims of caches, and what the curves show
    pairs.py    pairs of endpoints that differ from their kind, or by direction
    speed.py    sizes, algorithms, limits, published values, the earlier run
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..model import Finding
from ..runs import Run
from . import memory, pairs, speed, trust


@dataclass(frozen=True)
class Rule:
    """One kind of finding."""

    key: str
    summary: str
    find: Callable[[Run, str], Iterable[Finding]]


RULES = (
    Rule("failed", "experiments with a wrong answer or an error", trust.failed),
    Rule("busy", "others kept the machine busy in many experiments", trust.busy),
    Rule("imprecise", "few values are tight or fair", trust.imprecise),
    Rule("not-started", "the time budget ended before some experiments", trust.not_started),
    Rule("shared-processors", "ranks shared processors or were not pinned", trust.shared_processors),
    Rule("moved", "the canary changed during many experiments", trust.moved),
    Rule("two-modes", "many values fall into two groups", trust.two_modes),
    Rule("hidden-cache", "a claimed cache without a step in the curve", memory.hidden_cache),
    Rule("cache-size", "a cache that ends far from its claimed size", memory.cache_size),
    Rule("unclaimed-step", "a step that belongs to no claimed cache", memory.unclaimed_step),
    Rule("too-fast-memory", "more lines in flight than a core can have", memory.too_fast),
    Rule("far-pair", "pairs that are far from others of their kind", pairs.far),
    Rule("uneven-pair", "pairs whose directions differ", pairs.uneven),
    Rule("slower-than-before", "values that became slower than in the earlier run", speed.slower_than_before),
    Rule("fewer-bytes-slower", "collectives that take longer for fewer bytes", speed.fewer_bytes_slower),
    Rule("beyond-limit", "values that beat their limit", speed.beyond_limit),
    Rule("beyond-best-seen", "values that beat the best measured on this host", speed.beyond_best_seen),
    Rule("off-published", "modelled values far from the published ones", speed.off_published),
    Rule("still-rising", "a sweep that ends before its peak", speed.still_rising),
)


@lru_cache(maxsize=32)  # shared by the page and the terminal
def findings(run: Run, machine: str) -> tuple[Finding, ...]:
    """Everything that the rules find on a machine, the weightiest first."""
    found = [finding for rule in RULES for finding in rule.find(run, machine)]
    return tuple(sorted(found, key=lambda finding: -finding.weight))  # stable: ties in the order of the rules
