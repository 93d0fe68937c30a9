"""The wormhole study: what is exact is exact, what is scored meets its target, what is claimed is checked."""

import statistics

import pytest

from linkwright import studies
from linkwright.machines import load
from linkwright.studies import Options
from linkwright.studies.outcome import Cell
from linkwright.studies.wormhole import allreduce, claims, facts, movement
from linkwright.studies.wormhole.allreduce import Conditions
from linkwright.studies.wormhole.layout import Layout, hop_table, link_loads


@pytest.fixture(scope="module")
def machine():
    return load("wormhole-n150")


@pytest.fixture(scope="module")
def grounds(machine):
    return facts.grounds(machine)


# Median and largest relative error that each table may have.
TARGETS = {
    "one_to_one_write": (0.02, 0.08),
    "one_from_one_read": (0.02, 0.08),
    "loopback_write": (0.02, 0.08),
    "dram_interleaved_read": (0.03, 0.15),
    "dram_interleaved_write": (0.03, 0.15),
}


def test_data_movement_meets_its_targets(machine):
    cells = movement.cells(machine, lambda *_: None)
    assert len(cells) == 300
    for table, (median, largest) in TARGETS.items():
        errors = [cell.error for cell in cells if cell.table == table]
        assert statistics.median(errors) <= median
        assert max(errors) <= largest


def test_fitted_numbers_stay_few(machine):
    assert machine.fitted <= 12


def test_hops_are_exact(grounds):
    # Means per step on the only layout that fits; claim 12 has the worst.
    assert hop_table(grounds.swing, grounds.layout).mean(1).tolist() == [1, 1.25, 1.5, 1.75, 3.5, 4.25]
    assert hop_table(grounds.doubling, grounds.layout).mean(1).tolist() == [1, 1.25, 2, 2.25, 5, 4.75]
    assert hop_table(grounds.swing, Layout.ideal()).max(1).tolist() == [1, 1, 1, 1, 3, 3]
    assert hop_table(grounds.doubling, Layout.ideal()).max(1).tolist() == [1, 1, 2, 2, 4, 4]


def test_link_loads_are_exact(grounds):
    for schedule, most, links in (
        (grounds.swing, [1, 1, 1, 1, 2, 2], [64, 80, 96, 112, 160, 192]),
        (grounds.doubling, [1, 1, 2, 2, 4, 4], [64, 80, 96, 112, 128, 128]),
    ):
        loads = link_loads(schedule, grounds.layout)
        assert [max(load.values()) for load in loads] == most
        assert [len(load) for load in loads] == links


def test_every_computed_fact_is_exact(grounds):
    cells = facts.cells(grounds)
    assert len(cells) == 222
    known = [cell for cell in cells if cell.error is not None and not cell.erratum]
    assert len(known) > 55
    wrong = {cell.keys["id"]: cell.error for cell in known if cell.error > 0.001}
    assert not wrong


def test_claims_about_the_layout_hold(machine, grounds):
    assert claims._hops_of_partners(grounds).holds
    assert claims._hop_latency_is_uniform(machine, grounds.layout).holds
    assert claims._completion_ignores_distance(machine, grounds.layout).holds


def test_allreduce_lies_between_theory_and_twice_theory(machine, grounds):
    for variant in ("swing_LO", "rd_LO", "swing_BO", "rd_BO"):
        time = allreduce.measure(machine, variant, 128, Conditions()).slowest()
        assert 1 <= time / grounds.theory.time_us(128 * 1024, variant[-2:]) <= 2


def test_shared_memory_is_ten_times_slower(machine):
    shared = allreduce.measure(machine, "SM", 128, Conditions()).slowest()
    assert shared > 10 * allreduce.measure(machine, "swing_LO", 128, Conditions()).slowest()


def test_the_same_experiment_gives_the_same_times(machine):
    first, second = (allreduce.measure(machine, "swing_LO", 8, Conditions()) for _ in range(2))
    assert (first.finish_us == second.finish_us).all()


def test_rings_are_right_and_run(machine):
    for ring in allreduce.RINGS:
        assert allreduce.measure(machine, ring, 128, Conditions()).slowest() > 0


def test_errors_of_cells():
    def error(predicted, reference):
        return Cell("t", {}, predicted, reference, "us").error

    assert error(11.0, 10.0) == pytest.approx(0.1)
    assert error(11.0, None) is None
    assert error("1;2", "1;2") == 0
    assert error("1;2", "1;3") == 1


@pytest.mark.slow
def test_the_whole_study():
    outcome = studies.reproduce("wormhole", Options())
    assert len(outcome.cells) == 522
    assert [claim.id for claim in outcome.claims] == [f"W-{n:02}" for n in range(1, 15)]
