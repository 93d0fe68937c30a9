"""What a collective or a message costs on the machine: a schedule, simulated between the endpoints of its ranks.

Rank r is endpoint r. The schedule of a collective is that of the algorithm which the program names, the plan of the
machine's library, or the fastest of all. Each (kind, size, ranks) is simulated once, alone on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linkwright import _native
from linkwright.advise.predict import messages
from linkwright.advise.predict.trace.groups import MESSAGE, Meeting
from linkwright.base.errors import LinkwrightError
from linkwright.base.toml import Table

# Collectives in which S counts every rank's block, and a rank gives one block.
GIVES_A_BLOCK = ("allgather", "gather")
# Most transfers of different kinds, sizes or ranks in one program; each is simulated.
MOST_DIFFERENT = 10_000


@dataclass(frozen=True)
class Price:
    """Time of one meeting, and by which algorithm."""

    time_ps: int
    algorithm: str


class Prices:
    """Prices on one machine."""

    def __init__(self, machine: _native.Machine, document: Table, algorithms: Mapping[str, str]):
        self._machine, self._document, self._head, self._algorithms = machine, document, document["app"], algorithms
        self._known: dict[tuple[str, int, tuple[int, ...]], Price] = {}

    def of(self, meeting: Meeting) -> Price:
        """The price of a meeting."""
        key = (meeting.kind, meeting.size_bytes, meeting.ranks)
        if key not in self._known:
            if len(self._known) == MOST_DIFFERENT:
                raise self._document.error(
                    f"there are more than {MOST_DIFFERENT:,} different transfers; trace one step"
                )
            self._known[key] = self._simulated(meeting)
        return self._known[key]

    def _simulated(self, meeting: Meeting) -> Price:
        if len(meeting.ranks) == 1:
            return Price(0, "one rank")
        try:
            exchange = self._message(meeting) if meeting.kind == MESSAGE else self._collective(meeting)
            name, time_ns, _ = exchange.simulate(self._machine, meeting.ranks)
        except LinkwrightError as error:
            what = f"{meeting.kind} of {meeting.size_bytes:,} B on {len(meeting.ranks)} ranks"
            raise self._document.error(f"{what}: {error}") from error
        return Price(round(time_ns * 1000), "" if meeting.kind == MESSAGE else name.partition("/")[2])

    def _collective(self, meeting: Meeting) -> messages.Exchange:
        ranks = len(meeting.ranks)
        size = meeting.size_bytes * (ranks if meeting.kind in GIVES_A_BLOCK else 1)
        everyone = meeting.ranks == tuple(range(self._machine.ranks))
        grid = self._machine.rank_grid if everyone else None
        place = messages.Where(self._machine, ranks, grid, self._head["path"], meeting.ranks)
        wanted = self._algorithms.get(meeting.kind)
        return messages.collective(meeting.kind, wanted, size, self._head["dtype"], 0, place)

    def _message(self, meeting: Meeting) -> messages.Exchange:
        # A message without bytes takes what one of a byte takes.
        place = messages.Where(self._machine, 2, None, self._head["path"], meeting.ranks)
        return messages.listed([(0, 1, max(1, meeting.size_bytes))], place, self._head)
