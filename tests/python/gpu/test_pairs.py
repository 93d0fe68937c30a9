"""The kernel `pair_stream` by itself on CPU threads: what readers saw, and that flags alone order it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import cases
import emulator
import numpy as np
import pytest

from linkwright.executors.cuda import job as jobs
from linkwright.executors.cuda.probes import pairs

DEVICE = SimpleNamespace(most_shared_bytes=cases.MOST_SHARED, whole_sm_bytes=4096, memory_bytes=1 << 30,
                         has_clusters=True)  # fmt: skip
GPU = SimpleNamespace(device=DEVICE, all_sms=tuple(range(cases.SMS)))


def job_of(probing: bool, **axes) -> jobs.Job:
    given = {"through": "l2", "cluster": 2, "bytes": 256, "threads": 6, **axes}
    made = pairs._job("pairs", GPU, given, list(range(cases.SMS)), probing=probing)
    words = {**made.words, "messages": 3}
    return dataclasses.replace(made, words=words, threads=2)


@pytest.mark.parametrize("probing", [False, True])
@pytest.mark.parametrize("axes", [{"threads": 8}, {"through": "cluster", "cluster": 4, "threads": 8}])
def test_readers_see_every_message_once(probing, axes):
    (left,) = emulator.run([job_of(probing, **axes)], cases.SMS)
    received, sums = left["received"].sum(axis=0), left["sums"].sum(axis=1, dtype=np.uint32)
    assert not left["trouble"].any()
    assert (received[::2] == 0).all()  # who writes
    assert received[1] == (0 if probing else 3 * len(left["received"]))
    if not probing:
        assert (left["received"][:, 1::2] == 3).all()
    assert sums.tolist() == [pairs.sum_of(int(messages), 256) for messages in received]


def test_the_sum_of_words():
    words = np.array([[i + 3 * n for i in range(64)] for n in range(5)], np.uint32)
    assert pairs.sum_of(5, 256) == int(words.sum(dtype=np.uint32))


def test_flags_alone_order_writers_and_readers():
    given = [job_of(probing, **axes) for probing in (False, True) for axes in ({}, {"through": "cluster"})]
    emulator.run(given, cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)
