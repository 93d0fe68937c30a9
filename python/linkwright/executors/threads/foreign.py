"""Did other processes use the processors meanwhile?

A process on another core costs no context switch here, but shares caches, memory and clock, so the guards inside a
launch do not see it. From outside it shows as processor time that the machine spent and we did not:

    foreign = busy time of all processors (/proc/stat) - processor time of this process and its children

Above a tenth of one processor, the samples of that launch are set aside. They count only if no launch was undisturbed;
then the row is flagged `disturbed` and says how busy the machine was. Ticks of /proc/stat are 10 ms and truncated in
each of its columns, so a window reaches back at least half a second, into earlier experiments, and tolerates that much
more.
"""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path

from linkwright._native import measurement

# Foreign processor time from which a window counts as disturbed: a share of it, and the slack of ticks.
MOST_SHARE = measurement.FOREIGN_SHARE
SLACK_S = 0.05
SPAN_S = 0.5
_STAT = Path("/proc/stat")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Watch:
    """Looks back over the last half second; finds nothing if the system does not report busy time."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, float | None, float]] = deque([_mark()])

    def foreign(self) -> float | None:
        """Processors that other processes kept busy, if more than a measurement tolerates."""
        now, busy, own = mark = _mark()
        while len(self._marks) > 1 and now - self._marks[1][0] >= SPAN_S:
            self._marks.popleft()
        then, busy_then, own_then = self._marks[0]
        self._marks.append(mark)
        if busy is None or busy_then is None or now <= then:
            return None
        foreign_s = (busy - busy_then) - (own - own_then)
        disturbed = foreign_s > MOST_SHARE * (now - then) + SLACK_S
        return round(foreign_s / (now - then), 2) if disturbed else None


def _mark() -> tuple[float, float | None, float]:
    return time.monotonic(), busy_s(), own_s()


def busy_s(stat: str | None = None) -> float | None:
    """Seconds in which processors ran anything, over all processors; `stat` is the text of /proc/stat."""
    try:
        first = (stat if stat is not None else _STAT.read_text(encoding="ascii")).splitlines()[0].split()
    except OSError:
        return None
    if first[0] != "cpu" or len(first) < 9:
        return None
    # cpu user nice system idle iowait irq softirq steal: a guest's time is part of user.
    user, nice, system, _, _, irq, softirq, _ = map(int, first[1:9])
    return (user + nice + system + irq + softirq) * _TICK_S


def own_s() -> float:
    """Processor time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
