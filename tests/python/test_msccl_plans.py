"""MSCCL plans: what is exported and read again takes the same time, and foreign plans run."""

from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native

# All that the Rust tests do not already prove equal: the way through the program, and simulated time.
ALGORITHMS = ("allreduce/ring", "allreduce/swing_bandwidth", "alltoall/pairwise", "gather/binomial", "reduce/ring")

# Two GPUs: each adds its half of the other's vector to its own, and sends the sum back.
HALVES = """<algo name="halves" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""


@pytest.mark.parametrize("key", ALGORITHMS)
@pytest.mark.parametrize("ranks", [3, 8])
def test_a_plan_takes_the_time_of_its_schedule(key: str, ranks: int) -> None:
    collective, name = key.split("/")
    schedule = lw.schedule(collective, name, ranks=ranks, size="64K")
    again = _native.read_schedule(schedule.export("msccl-xml"), "plan.xml")
    again = again.resized(schedule.size_bytes // schedule.element_bytes, schedule.element_bytes)
    assert again.text() == schedule.text()
    assert lw.simulate(again, "loggp").time_us == lw.simulate(schedule, "loggp").time_us


def test_a_foreign_plan_is_right_on_the_judge() -> None:
    schedule = _native.read_schedule(HALVES, "halves.xml").resized(1000, 4)
    assert lw.run(schedule, on="reference")
    assert lw.simulate(schedule, "loggp").time_us > 0


def test_a_plan_that_is_wrong_names_file_and_step(tmp_path: Path) -> None:
    plan = HALVES.replace('depid="-1" deps="-1"', 'depid="5" deps="0"', 1)
    with pytest.raises(lw.LinkwrightError, match=r"halves\.xml: gpu 0, tb 0, step 0: waits for gpu 0, tb 5, step 0"):
        _native.read_schedule(plan, "halves.xml")
