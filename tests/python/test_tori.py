"""Algorithms on all ports of a torus: executed, element by element, on threads and by the judge."""

import pytest

import linkwright as lw
from linkwright import _native

MULTIPORT = (
    "swing_multiport_latency",
    "swing_multiport_bandwidth",
    "mirrored_doubling_latency",
    "mirrored_doubling_bandwidth",
    "bucket_multiport",
)


@pytest.mark.parametrize("algorithm", MULTIPORT)
@pytest.mark.parametrize("grid", [(3,), (2, 2), (3, 2)])
def test_threads_get_every_element_right(algorithm: str, grid: tuple[int, ...]) -> None:
    ranks = {(3,): 3, (2, 2): 4, (3, 2): 6}[grid]
    schedule = lw.Schedule.build(f"allreduce/{algorithm}", ranks, 1001, grid=grid)
    run = _native.run_threads(schedule, {"dtype": "f32", "op": "sum", "samples": 3})
    assert run["checked_elements"] == 4 * 1001 * ranks  # of three samples and the first run


@pytest.mark.parametrize("algorithm", MULTIPORT)
@pytest.mark.parametrize("grid", [(5, 3), (3, 2, 4), (7,)])
def test_the_judge_compares_every_element(algorithm: str, grid: tuple[int, ...]) -> None:
    ranks = {(5, 3): 15, (3, 2, 4): 24, (7,): 7}[grid]
    schedule = lw.Schedule.build(f"allreduce/{algorithm}", ranks, 100, grid=grid)
    compared = lw.run(schedule, on="reference").row("time")["reason"]
    assert compared.startswith(f"{100 * ranks} elements compared")


def test_scratch_of_its_own_saves_the_notices_of_an_exchange() -> None:
    schedule = lw.schedule("allreduce", "recursive_doubling_latency", ranks=16, size="4K")
    # Four exchanges of 16 messages; all but the first wait for 16 notices.
    assert (schedule.messages, schedule.own_scratch().messages) == (4 * 16 + 3 * 16, 4 * 16)
