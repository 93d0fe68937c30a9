"""DMA programs: fences, lists, queues, mailboxes, signals, atomics, and refused commands."""

import numpy as np
import pytest

from linkwright.base.errors import ExecError, UsageError
from linkwright.machines import load as load_machine
from linkwright_evidence.cell.programs import run

CYCLE = 625  # picoseconds
ALONE = 5 + 15 + 50 + 70
STATUS = 5  # reading a completion


@pytest.fixture(scope="module")
def machine():
    return load_machine("cell-be")


def cycles(columns, name):
    return [int(time) // CYCLE for time in columns[f"{name}_ps"]]


def finish(columns, program=0):
    """Bus cycles at which the last line of the program is over."""
    return int(columns["lines_ps"][program][-1]) // CYCLE


def test_the_life_of_one_list_command_adds_up_to_table_1(machine):
    columns = run(machine, [("SPE0", ["list put SPE1 128 x 1", "wait"])])
    moments = ("issued", "queued", "selected", "requested", "data", "complete")
    assert [cycles(columns, name)[0] for name in moments] == [0, 5, 5 + 15 + 5, 5 + 15 + 5, 75, 145]
    assert finish(columns) == 145 + STATUS


@pytest.mark.parametrize(
    ("second", "completions"),
    [
        # Without order one line after another: every 8 cycles.
        ("put SPE1 128 tag=1", [140, 148, 156, 164]),
        # The fenced command waits for the first, then still has its snoop ahead; later ones overtake it.
        ("put SPE1 128 tag=1 fence", [140, 150, 158, 140 + 120]),
        # Behind a barrier the third waits as well, for the second.
        ("put SPE1 128 tag=1 barrier", [140, 155, 140 + 120, 140 + 240]),
    ],
)
def test_a_fence_waits_for_its_tag_and_a_barrier_holds_later_ones_too(machine, second, completions):
    lines = ["put SPE1 128 tag=1", second, "put SPE1 128 tag=1", "put SPE1 128 tag=2", "wait"]
    assert cycles(run(machine, [("SPE0", lines)]), "complete") == completions


def test_the_proxy_queue_comes_after_the_own(machine):
    own = ["compute 180", "put SPE1 16384", "put SPE1 16384", "wait"]
    columns = run(machine, [("SPE0", own), ("PPE", ["on SPE0 put SPE1 128", "wait"])])
    # Queued at 100, before the first of the own: but ready only while those are unrolled.
    proxy = columns["program"] == 1
    assert columns["queued_ps"][proxy] == 100 * CYCLE
    assert columns["selected_ps"][proxy] > columns["selected_ps"][~proxy].max()


def test_gets_and_puts_take_turns(machine):
    columns = run(machine, [("SPE0", ["put SPE1 4096", "get SPE2 4096", "wait"])])
    # The get is selected as soon as it is ready, while the older put has requests left.
    assert columns["selected_ps"][columns["line"] == 1] == (5 + 5 + 15) * CYCLE
    # Sixteen lines in flight, each for 96 cycles, carry both: 64 lines end after 4 such rounds.
    assert 20 + 4 * 96 <= max(cycles(columns, "complete")) < 20 + 5 * 96


def test_mailbox_and_signal(machine):
    assert finish(run(machine, [("PPE", ["mail SPE1"]), ("SPE1", ["read"])]), 1) == 240  # 150 ns
    there_and_back = [("SPE0", ["mail SPE1", "read"]), ("SPE1", ["read", "mail SPE0"])]
    assert finish(run(machine, there_and_back)) == 480  # 300 ns
    signals = [("SPE0", ["await 6"]), ("SPE1", ["signal SPE0 2"]), ("SPE2", ["signal SPE0 4"])]
    # The first comes over three segments and holds the port until 2 + 8 cycles after its start;
    # the second comes over one and starts then.
    assert finish(run(machine, signals)) == ALONE + 10


def test_a_counter_counts_every_increment_and_lost_reservations_cost_retries(machine):
    assert run(machine, [("SPE0", ["add", "add"])])["retries"].tolist() == [0]
    contended = run(machine, [(f"SPE{i}", ["add"] * 5) for i in range(8)])
    retries = int(contended["retries"].sum())
    assert retries > 0
    assert [len(lines) for lines in contended["lines_ps"]] == [5] * 8
    # Every conditional write either counted or was tried again.
    assert len(contended["program"]) == 2 * (40 + retries)


def test_a_full_mailbox_blocks_and_a_circle_is_named(machine):
    # Four words fit; the fifth waits until one is read, and none is lost.
    slow = run(machine, [("SPE0", ["mail SPE1"] * 5), ("SPE1", ["compute 4000", *["read"] * 5])])
    assert finish(slow) >= 2000
    with pytest.raises(ExecError) as stuck:
        run(machine, [("SPE0", ["mail SPE1"] * 5), ("SPE1", ["mail SPE0"] * 5)])
    assert stuck.value.code == "sim.stuck"
    assert "SPE0, line 5: `mail SPE1` waits for room in the mailbox of SPE1" in str(stuck.value)
    assert "circle: SPE0 waits for SPE1 waits for SPE0" in str(stuck.value)


def test_signals_that_overwrite_are_lost(machine):
    programs = [("SPE0", ["compute 1000", "await 6"]), ("SPE1", ["signal SPE0 2"]), ("SPE2", ["signal SPE0 4"])]
    run(machine, programs)
    with pytest.raises(ExecError, match="SPE0, line 2: `await 6` waits for signal bits 6"):
        run(machine, programs, overwrite=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("put SPE1 24", "sizes are 1, 2, 4, 8 or a multiple of 16"),
        ("put SPE1 0", "sizes are 1, 2, 4, 8"),
        ("put SPE1 16400", "at most 16384 bytes"),
        ("put SPE1 8 at=4", "address 4 for a DMA of 8 bytes: must be a multiple of 8"),
        ("get MIC 64 local=8", "must be a multiple of 16"),
        ("list put SPE1 128 x 2049", "a list of 2049 elements: at most 2048"),
        ("on SPE1 list put SPE2 128 x 2", "only the own SPU may issue lists"),
        ("put SPE1 16 tag=32", "tags are 0 to 31"),
        ("put SPE9 16", "no element `SPE9`; known: PPE"),
        ("fetch SPE1", "unknown step `fetch`"),
        ("put SPE1 16 tga=3", "unknown word `tga=3`"),
        ("put", "to whom?"),
    ],
)
def test_a_refused_command_names_the_rule_of_the_hardware(machine, line, says):
    with pytest.raises(UsageError) as refused:
        run(machine, [("SPE0", ["wait", line])])
    assert "SPE0, line 2" in str(refused.value)
    assert says in str(refused.value)


def test_two_programs_for_one_element_are_refused(machine):
    with pytest.raises(UsageError, match="two programs for SPE0"):
        run(machine, [("SPE0", ["wait"]), ("SPE0", ["wait"])])


def test_unaligned_addresses_cost_requests(machine):
    def time(line):
        return finish(run(machine, [("SPE0", [line, "wait"])]))

    aligned = time("put SPE1 4096")
    # Half a line off at both ends: 33 requests, each of which takes a slot. At one end: one more.
    assert time("put SPE1 4096 at=64 local=64") == aligned + 8
    assert time("put SPE1 4096 at=64") == aligned + 16


def test_columns_have_a_row_for_each_command(machine):
    columns = run(machine, [("SPE0", ["put SPE1 16"] * 3)])
    assert columns["line"].dtype == np.uint32
    assert columns["complete_ps"].dtype == np.uint64
    assert columns["line"].tolist() == [0, 1, 2]
