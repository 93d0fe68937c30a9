import numpy as np
import pytest

from linkwright.ask.question import Collective, Pattern
from linkwright.executors.bounds import CACHE_LINE, COPY_RATE, Bounds
from linkwright.executors.measured import Measured


def measured(best_ns):
    return Measured((np.array([2 * best_ns, best_ns]),), first_ns=0.0, dropped={}, notes=())


def stream(size, best_ns):
    return Pattern("b", "pairs", 2, size, "u8", messages=10), measured(best_ns)


def ball(size=8):
    return Pattern("l", "ping_pong", 2, size, "u8")


def collective(kind, size, ranks=2):
    return Collective("c", "ring", ranks, size, collective=kind)


@pytest.fixture
def bounds():
    """50 ns for a cache line; 20 B/ns while 10 kB are in flight, 5 B/ns with 1 MB."""
    return Bounds.of([(ball(), measured(100)), stream(1_000, 500), stream(100_000, 200_000), (ball(64), None)])


@pytest.mark.parametrize(
    ("experiment", "limit"),
    [
        (ball(), (100, CACHE_LINE)),  # there and back
        (collective("barrier", 0), (50, CACHE_LINE)),
        (collective("allreduce", 8), (50, CACHE_LINE)),
        (collective("allreduce", 16_000), (800, COPY_RATE)),  # 2 x 16 kB by two cores at 20 B/ns
        (collective("allgather", 16_000), (400, COPY_RATE)),
        (collective("gather", 16_000), (200, COPY_RATE)),
        (collective("alltoall", 16_000, ranks=4), (600, COPY_RATE)),  # 3 x 16 kB by four cores
        (collective("allreduce", 10_000_000), (2_000_000, COPY_RATE)),  # beyond the caches: 5 B/ns
        (stream(1_000, 0)[0], (500, COPY_RATE)),  # its own rate is the best one
    ],
)
def test_times_follow_from_the_best_cache_line_and_copy(bounds, experiment, limit):
    found, name = bounds.best(experiment)
    assert (found, name) == (pytest.approx(limit[0]), limit[1])


def test_what_is_not_known_has_no_limit(bounds):
    assert Bounds.of([(ball(), measured(100))]).best(ball()) is None
    assert bounds.best(collective("allreduce", 8, ranks=1)) is None
    assert bounds.best(Pattern("p", "hot_spot", 4, 8)) is None
