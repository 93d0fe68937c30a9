"""Too few channels, or too few queue pairs: links could carry more than the processors and connections hand to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import COMMON, FREE, RARE, Case, Hypothesis

PARTS = (0.75, 0.5, 0.25)
_RATES = re.compile(r"fabric\.transport\..*\.channel")
_LIMITS = ("NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS")
_LARGE = 1 << 30  # bytes, for which all channels are used


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    rates = [key for key in system.numbers if _RATES.fullmatch(key)]
    limit = next((f"{name}={value}" for name in _LIMITS if (value := facts.setting(name))), "")
    have, expected = _counted(system, facts)
    few = 0 < have < expected
    if have >= expected > 0 and system.nodes == 1:  # queue pairs, of several nodes, are not known
        return
    said = f"{have} channels, and {expected} are usual here" if few else ""
    for part in ((have / expected,) if few else PARTS) if rates else ():
        yield Case(
            f"channels carry {part:.0%} together", system.scaled(dict.fromkeys(rates, part)), "few channels",
            f"{limit} is set" if limit else "the library uses too few channels, or one queue pair per connection",
            "look for `coll channels` in the log with NCCL_DEBUG=INFO" if facts.channels is None
            else "run again with twice as many channels",
            "NCCL_MIN_CTAS (NCCL_MIN_NCHANNELS) 24 or 32; on several nodes NCCL_IB_QPS_PER_CONNECTION=2 or 4",
            limit if _binds(limit, facts) else said, common=COMMON if limit else RARE, strength=FREE,
        )  # fmt: skip


def _counted(system: System, facts: Facts) -> tuple[int, int]:
    """How many channels the library reports, and how many it has on a healthy machine; 0 where nothing says."""
    choice = system.choice(_LARGE) if facts.channels else None
    if choice is None or choice.algorithm == "p2p":
        return 0, 0
    have = facts.switch_channels if choice.algorithm.startswith("nvls") else facts.channels
    return have or 0, choice.channels if have else 0


def _binds(limit: str, facts: Facts) -> bool:
    """Whether the library reached a limit such as `NCCL_MAX_CTAS=4`; one above its own choice changes nothing."""
    number = limit.partition("=")[2]
    return number.isdecimal() and facts.channels is not None and facts.channels >= int(number)


HYPOTHESIS = Hypothesis("few_channels", "too few channels or queue pairs", _cases)
