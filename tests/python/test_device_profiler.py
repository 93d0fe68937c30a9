"""Zones of tt-metal's device profiler: every version of the columns, what a run leaves behind, and what is refused."""

import re

import pytest

from linkwright.base.errors import FileError
from linkwright.formats.logs import read_log
from linkwright_cases import invoke
from log_cases import STATED, ZONE_HEAD, zone_markers, zones

OLD_HEAD = (
    "ARCH: grayskull, CHIP_FREQ[MHz]: 500\n"
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, {}"
    "zone name, zone phase, source line, source file\n"
)


@pytest.fixture
def read(tmp_path):
    def reader(text):
        file = tmp_path / "profile_log_device.csv"
        file.write_text(text, encoding="utf-8")
        return read_log(file)

    return reader


def of_zones(log):
    """(time in us, entries) by name and cores."""
    return {(table.zone.name, table.ranks): (table.rows[0].time, table.rows[0].count) for table in log.tables}


def test_a_test_of_the_vendor_states_its_bytes(read):
    table = read(zones()).tables[0]
    assert (table.zone.name, table.zone.transactions, table.ranks) == ("RISCV0 BRISC test 300 noc 1", 16, 2)
    (row,) = table.rows
    # The slower core takes 301 and 302 cycles of 2 ns; it begins 30 cycles after the other one, which is rank 0.
    assert (row.size, row.time, row.count) == (64, pytest.approx(0.603), 2)
    assert row.samples == (((0.0, 0.4), (0.06, 0.602)), ((0.0, 0.4), (0.06, 0.604)))
    assert row.algbw == pytest.approx(64 * 16 * 2 / 603)


def test_a_zone_of_firmware_is_of_one_run(read):
    assert [name for name, _ in of_zones(read(zones()))][1:] == ["BRISC-FW BRISC run 1", "BRISC-FW BRISC run 2"]


def test_a_zone_that_is_entered_again_has_several_times(read):
    text = ZONE_HEAD + "".join(zone_markers("1,1", 100 * at, 10 + at) for at in range(1, 4))
    assert of_zones(read(text)) == {("RISCV0 BRISC", 1): (0.024, 3)}


def test_zones_within_one_another_are_told_apart(read):
    # As the firmware writes them: not in the order of time. The inner one of the same name ends first.
    text = ZONE_HEAD + zone_markers("1,1", 100, 100) + zone_markers("1,1", 120, 10)
    (row,) = read(text).tables[0].rows
    assert [sample[0][1] for sample in row.samples] == [0.2, 0.02]


def test_replays_of_a_trace_are_repetitions(read):
    text = ZONE_HEAD + "".join(zone_markers("1,1", 100 * at, 10, trace=f"3,{at}") for at in range(1, 4))
    assert of_zones(read(text)) == {("RISCV0 BRISC", 1): (0.02, 3)}


def test_different_places_of_the_same_name_are_not_mixed(read):
    text = ZONE_HEAD + zone_markers("1,1", 100, 10) + zone_markers("1,1", 200, 30, line=40)
    assert of_zones(read(text)) == {("RISCV0 BRISC", 1): (0.02, 1), ("RISCV0 BRISC #2", 1): (0.06, 1)}


def test_sizes_are_those_of_one_zone_and_of_all_cores(read):
    two = zone_markers("1,1", 100, 10, stated=STATED) + zone_markers("1,1", 200, 10, name="WAIT")
    assert [table.rows[0].size for table in read(ZONE_HEAD + two).tables] == [0, 0]
    apart = zone_markers("1,1", 100, 10, stated=STATED) + zone_markers("2,1", 100, 10, stated=STATED[:3])
    (table,) = read(ZONE_HEAD + apart).tables
    assert (table.rows[0].size, table.zone.transactions) == (0, 1)


@pytest.mark.parametrize("runs", ["", "run ID, ", "run ID, run host ID,  "])
def test_older_columns(read, runs):
    number = "0," * runs.count(",")
    rows = [
        f"0,1,1,BRISC,53427 ,1000,0,{number}TEST   ,begin,10 ,./kernel.cpp\n",
        f"0,1,1,BRISC,118963,1050,0,{number}TEST   ,end  ,10 ,./kernel.cpp\n",
        f"0,1,1,TRISC_1,9,2000,70,{number}WAIT,sum,12,./kernel.cpp\n",
    ]
    log = read(OLD_HEAD.format(runs) + "".join(rows))
    assert of_zones(log) == {("WAIT TRISC_1", 1): (0.14, 1), ("TEST BRISC", 1): (0.1, 1)}


def test_a_zone_without_an_end_is_left_out(read):
    whole = zone_markers("1,1", 100, 10)
    cut = "".join(zone_markers("1,1", 200, 10, name="LOST").splitlines(keepends=True)[:1])
    log = read(ZONE_HEAD + whole + cut)
    assert list(of_zones(log)) == [("RISCV0 BRISC", 1)]
    assert log.left_out == ((5, "`LOST` of core 1,1 has a start without an end"),)


def test_a_zone_of_no_cycles_is_left_out(read):
    log = read(ZONE_HEAD + zone_markers("1,1", 100, 10) + zone_markers("1,1", 200, 0, name="EMPTY"))
    assert list(of_zones(log)) == [("RISCV0 BRISC", 1)]
    assert [what for _, what in log.left_out] == ["`EMPTY` took 0 cycles and has no time"]


def test_cores_that_entered_a_zone_unequally_are_left_out(read):
    text = ZONE_HEAD + zone_markers("1,1", 100, 10) + zone_markers("1,1", 200, 10) + zone_markers("2,1", 100, 10)
    with pytest.raises(FileError, match="different numbers of times; no row of tt-metal profiler"):
        read(text)


@pytest.mark.parametrize(
    ("find", "put", "says"),
    [
        ("CHIP_FREQ[MHz]: 500", "CHIP_FREQ[MHz]: 0", "1: no heading with the clock"),
        ("CHIP_FREQ[MHz]: 500", "CHIP_FREQ[MHz]: 1e-300", "1: no heading with the clock"),
        (", zone name", "", "2: column `zone name` is missing"),
        ("meta data", "colour", "2: column `colour` is not known"),
        ("meta data", "data", "2: two columns have the same name"),
        ("BRISC,17,1030", "XRISC,17,1030", "3: no marker of a core with a time"),
        ("BRISC,17,1030", "BRISC,17,10.5", "3: no marker of a core with a time"),
        ("BRISC,17,1030", "BRISC,17,-1", "3: no marker of a core with a time"),
        ("ZONE_START", "ZONE_MIDDLE", "3: a marker of a type that is not known: `ZONE_MIDDLE`"),
        ("sender.cpp,\n", "sender.cpp\n", "3: 14 columns, and the heading has 15"),
        ("0,2,1,BRISC,18", ZONE_HEAD + "0,2,1,BRISC,18", "4: a second heading"),
    ],
)
def test_what_is_not_understood_is_refused(read, find, put, says):
    assert find in zones()
    with pytest.raises(FileError, match=re.escape(f"profile_log_device.csv:{says}")):
        read(zones().replace(find, put, 1))


def test_import_keeps_the_times_of_all_cores(tmp_path):
    file, runs = tmp_path / "profile_log_device.csv", str(tmp_path / "runs")
    file.write_text(zones(), encoding="utf-8")
    done = invoke("import", str(file), "--machine", "n150", "--runs", runs)
    assert done.status == 0, done.err
    said = "select metric, value from results where algorithm = 'RISCV0 BRISC test 300 noc 1' order by metric"
    rows = invoke("query", said, "--runs", runs).out.split()[2:]
    assert dict(zip(rows[::2], map(float, rows[1::2]), strict=True)) == {
        "bandwidth": pytest.approx(2048 / 603e-9), "time": 603.0, "time_rank_median": 501.5, "time_rank_min": 400.0,
    }  # fmt: skip
    said = "select rank, start_ns, value_ns from samples where rank = 1 and experiment like '%RISCV0%'"
    assert invoke("query", said, "--runs", runs).out.split()[3:] == ["1", "60.0", "602.0", "1", "60.0", "604.0"]
    said = "select count(*) from results where size_bytes is null and algorithm like 'BRISC-FW%'"
    assert invoke("query", said, "--runs", runs).out.split()[-1] == "6"


def test_six_files_give_an_interval(tmp_path):
    files = []
    for at in range(6):
        files.append(tmp_path / f"{at}.csv")
        files[-1].write_text(ZONE_HEAD + zone_markers("1,1", 100, 100 + at), encoding="utf-8")
    done = invoke("import", *map(str, files), "--runs", str(tmp_path / "runs"))
    assert done.status == 0, done.err
    said = "select value, n, ci_low, ci_high from results where metric = 'time'"
    assert invoke("query", said, "--runs", str(tmp_path / "runs")).out.split()[4:] == ["205.0", "6", "200.0", "210.0"]


def test_a_zone_is_not_a_collective(tmp_path):
    file = tmp_path / "profile_log_device.csv"
    file.write_text(zones(), encoding="utf-8")
    done = invoke("import", str(file), "--collective", "allreduce", "--runs", str(tmp_path / "runs"))
    assert (done.status, "omit --collective" in done.err) == (2, True)
    done = invoke("explain", str(file))
    assert (done.status, "holds tt-metal profiler numbers, but no times of a collective" in done.err) == (2, True)
