"""Traffic patterns on the command line: the options that only they have, and those that they lack."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright.base.errors import UsageError
from linkwright.cli import options

_ONLY = {"messages": "--messages", "both_ways": "--both-ways"}
# The only pattern that goes to and fro, so that half of its time is a latency.
_ROUND_TRIPS = "ping_pong"


def axes(subject: options.Subject, asked: Mapping[str, object]) -> dict[str, object]:
    """The axes of a part about the subject, from the options of that name; refuses options of other subjects."""
    found = {"dtype": asked["dtype"], "root": asked["root"], "ranks": options.several(asked["ranks"])}
    if not subject.pattern:
        for name, option in _ONLY.items():
            if options.given(name):
                raise UsageError(f"{option}: only patterns have it; omit it, or name `pattern/pairs`")
        return {**found, "op": asked["op"], "metrics": ("time", "alg_bw", "bus_bw")}
    if options.given("op"):
        raise UsageError(f"--op: {subject.title} combines nothing; omit it")
    latency = ("latency",) if subject.pattern == _ROUND_TRIPS else ()
    return {
        **found,
        "messages": asked["messages"],
        "both_ways": asked["both_ways"] or None,
        "metrics": ("time", *latency, "bandwidth"),
    }
