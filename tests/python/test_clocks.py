"""A clock that moves during an experiment: seen from injected cycles, set aside, said where nothing else is left."""

from linkwright.cli.table import LiveTable
from linkwright.executors.clocks import MOST_PROCESSORS, MOVED, Clocks, spread
from test_foreign import EXPERIMENT, launch, time_row


def clocks(*readings):
    left = iter(readings)
    return Clocks([0, 1], read=lambda processors: next(left))


def test_a_clock_that_falls_is_seen_once():
    watch = clocks([0.30, 0.30], [0.30, 0.30], [0.30, 0.40], [0.30, 0.40], [0.30, 0.40])
    assert watch.change() == -0.25
    assert watch.slowest_hz == 2.5e9
    assert watch.change() is None  # it has stayed where it fell to


def test_a_clock_that_rises_is_seen_too():
    watch = clocks([0.40, 0.30], [0.40, 0.30], [0.30, 0.30], [0.30, 0.30])
    assert watch.change() == round(0.4 / 0.3 - 1, 4)


def test_small_changes_are_borne():
    within = 0.30 * (1 + MOVED / 2)
    assert clocks([0.30, 0.30], [0.30, 0.30], [0.30, within]).change() is None


def test_a_disturbed_reading_is_not_a_slower_clock():
    assert clocks([0.90, 0.30], [0.30, 0.30], [0.30, 0.30]).change() is None
    assert clocks([0.30, 0.30], [0.30, 0.30], [0.30, 0.90], [0.30, 0.30]).change() is None


def test_where_no_cycle_can_be_measured_nothing_is_said():
    watch = clocks([None, None], [None, None], [None, None])
    assert (watch.change(), watch.slowest_hz) == (None, None)


def test_many_processors_are_looked_at_evenly():
    assert spread(range(64)) == list(range(0, 64, 64 // MOST_PROCESSORS))
    assert spread([3, 5]) == [3, 5]


def test_this_machine_has_a_clock():
    hz = Clocks().slowest_hz
    assert hz is None or 1e8 < hz < 1e10


def test_launches_whose_clock_moved_are_set_aside():
    moved = launch(900.0, clock_change=-0.2)
    found = time_row([launch(100.0, clock_hz=3e9)] * 6 + [moved] * 5)
    assert (found["time"]["value"], found["time"]["status"]) == (100.0, "ok")
    assert (found["dropped"]["value"], found["dropped"]["reason"]) == (40.0, "40 clock")
    assert (found["clock"]["value"], found["clock"]["unit"]) == (3e9, "Hz")


def test_without_a_launch_at_one_clock_the_row_says_so():
    found = time_row([launch(100.0, clock_change=change) for change in (0.04, -0.12, 0.05, 0.04, 0.04, 0.04)])
    assert found["time"]["flags"] == "disturbed"
    assert found["time"]["reason"].startswith("the clock of a processor changed by up to -12.0% in every launch")


def test_load_and_clock_together_are_both_named():
    found = time_row([launch(100.0, 0.5), launch(100.0, clock_change=-0.1)] * 4)
    assert "others kept up to 0.5 processors busy or the clock of a processor changed" in found["time"]["reason"]


def test_the_table_ends_with_what_was_set_aside(capsys):
    table = LiveTable()
    disturbed = [launch(100.0, 1.25) for _ in range(6)]
    table.dropped({"foreign": 0, "clock": 8})
    table.rows(EXPERIMENT, list(time_row([launch(100.0)] * 6 + [launch(900.0, clock_change=-0.2)]).values()))
    table.rows(EXPERIMENT, list(time_row(disturbed).values()))
    table.finish()
    printed = capsys.readouterr().out
    assert "# samples set aside: 8 clock\n" in printed
    said = f"every launch disturbed: {EXPERIMENT.key}: others kept up to 1.25 processors busy in every launch"
    assert said in printed.replace("\n#  ", "")
