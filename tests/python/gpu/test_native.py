"""The grid-wide reduction on CPU threads: its data against `reference`, and that two barriers order all of it."""

from __future__ import annotations

import cases
import emulator
import numpy as np
import pytest

from linkwright.executors import EXECUTORS
from linkwright.executors.cuda import job, native
from linkwright.session.suite import expand


def ring(ranks: int, elements: int, dtype: str = "f32", op: str = "sum") -> cases.Case:
    return cases.build("allreduce/ring", ranks, elements, dtype, op)


def check(wanted: list[cases.Case], **more) -> None:
    jobs = [cases.walk_of(case, make=native.job, **more) for case in wanted]
    for case, left in zip(wanted, emulator.run(jobs, cases.SMS), strict=True):
        assert job.trouble_of(left["trouble"]) is None, case.name
        case.memory.check(case.stream, left["memory"], f"the reduction, {case.name},")


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_every_rank_ends_with_the_sum(threads):
    # Fewer packs than ranks, slices smaller and larger than a block, ragged ends.
    check([ring(ranks, elements) for ranks in (2, 3, 8, 11) for elements in (1, 5, 72, 1001)], threads=threads)


def test_every_type_and_operator():
    check([ring(5, 33, dtype, op) for dtype, op in cases.TYPES], threads=2)


def test_repetitions_follow_each_other():
    """Of equal vectors the largest is each of them, however often."""
    case = ring(6, 100, op="max")
    (left,) = emulator.run([cases.walk_of(case, make=native.job, repetitions=4, threads=3)], cases.SMS)
    case.memory.check(case.stream, left["memory"], "four repetitions")
    assert (left["times"][..., 1] >= left["times"][..., 0]).all()


def test_a_rank_that_does_not_come_ends_the_kernel_and_names_the_barrier():
    delays = np.array([[0, 2_000_000_000, 0]])
    made = cases.walk_of(ring(3, 72), make=native.job, delays=delays, patience_ns=10**8)
    (left,) = emulator.run([made], cases.SMS)
    assert f"to reach {1 << 63}; it was at" in job.trouble_of(left["trouble"])


def test_barriers_alone_order_it():
    jobs = [cases.walk_of(ring(ranks, 72), make=native.job, repetitions=2, threads=3) for ranks in (2, 5)]
    emulator.run(jobs, cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)


def test_own_algorithms_are_those_of_the_machine():
    brought = EXECUTORS["cuda"].own_algorithms("allreduce")
    assert expand.algorithms_of("allreduce", ("ring", "own"), brought) == ["ring", "cuda-native"]
    assert expand.algorithms_of("allreduce", ("own",)) == []
    assert EXECUTORS["cuda"].own_algorithms("broadcast") == []
    assert expand.algorithms_of("allreduce", ("all",), brought)[0] == "cuda-native"


def test_vectors_lie_one_after_the_other():
    made = cases.walk_of(ring(3, 5), make=native.job)
    assert (made.words["bytes"], made.words["stride"]) == (20, 256)
    assert made.words["result"].nbytes == 32
