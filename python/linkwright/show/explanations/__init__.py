"""Pages of `linkwright explain`: the answer to a log, to a schedule, and to a run or one of its rows.

They say what the text in a terminal says, with a curve over all sizes and a picture that moves.
"""

from .log import log
from .run import row, run
from .schedule import schedule

__all__ = ["log", "row", "run", "schedule"]
