"""The cell study: what is exact is exact, what is scored meets its target, what is claimed is checked."""

import pytest

from linkwright import studies
from linkwright.errors import LinkwrightError
from linkwright.machines import load as load_machine
from linkwright.studies import Options
from linkwright.studies.cell import curves, experiments, streams
from linkwright.studies.cell.chip import VARIANTS, variant

PORT = 25.6  # GB/s: 16 bytes at 1.6 GHz, as the article says


@pytest.fixture(scope="module")
def machine():
    return load_machine("cell-be")


def test_few_numbers_are_fitted(machine):
    assert machine.fitted <= 6


def test_table_1_is_exact(machine):
    cycles = {name: ns * 3.2 for name, ns in experiments.components(machine).items()}
    assert cycles == {
        "dma_issue": 10,
        "dma_to_eib": 30,
        "list_element_fetch": 10,
        "coherence_protocol": 100,
        "data_transfer_inter_spe_put": 140,
        "total": 290,
    }


@pytest.mark.parametrize("operation", curves.OPERATIONS)
def test_blocking_figures(machine, operation):
    rate = 15 if operation == "get from memory" else 22.5
    assert curves.point(machine, operation, "blocking", 16384).total == pytest.approx(rate, rel=0.03)
    if operation != "get from memory":
        for size in (128, 512):
            assert curves.point(machine, operation, "blocking", size).dma_ns == pytest.approx(91, rel=0.03)


def test_the_other_reading_keeps_the_bandwidth_and_loses_the_flatness(machine):
    changed = variant(machine, "data phase covers one line")
    # 10 + 30 + 100 + 140 + 16 x 127 SPU cycles and 10 to read the completion.
    sizes = (128, 512, 16384)
    times = {size: curves.point(changed, "put to local store", "blocking", size).dma_ns for size in sizes}
    assert times == pytest.approx({128: 90.625, 512: 105.625, 16384: 725.625})


def test_batches_gain(machine):
    get = streams.one(1, True, 256)
    gain = streams.measure(machine, get, "batch(4)").total / streams.measure(machine, get, "blocking").total
    assert 2 <= gain <= 3.2


def test_hot_spots_share_fairly(machine):
    gets = streams.measure(machine, streams.memory(8, True))
    puts = streams.measure(machine, streams.hot_store(8, False))
    assert gets.total == pytest.approx(PORT, rel=0.02)
    assert puts.total == pytest.approx(24.1, rel=0.02)
    for rates in (gets, puts):
        assert max(rates.each) / min(rates.each) < 1.02


def test_one_arbiter_serves_complement_and_pairwise(machine):
    complement = streams.measure(machine, streams.complement(8, True))
    assert complement.total == pytest.approx(200, rel=0.05)
    pair = [streams.measure(machine, streams.pairwise(8, get)).total for get in (True, False)]
    assert pair[0] - pair[1] == pytest.approx(40, abs=4)


def test_round_robin_starves_while_the_sum_is_perfect(machine):
    changed = variant(machine, "round robin at the receiver")
    rates = streams.measure(changed, streams.hot_store(8, True))
    assert rates.total <= PORT * 1.001


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs(machine, name):
    assert 0 < streams.measure(variant(machine, name), streams.one(1, True, 256)).total <= 1.001 * PORT


def test_mailbox_and_synchronisation(machine):
    assert experiments.mailboxes(machine) == {"one way": 150.0, "round trip": 300.0}
    times = [experiments.signal_barrier(machine, n) for n in (2, 8)]
    assert 0 < times[0] < times[1]
    alone, contended = (experiments.counter(machine, n, increments=10) for n in (1, 4))
    assert alone["retries_per_increment"] == 0 < contended["retries_per_increment"]


def test_a_list_beats_single_dmas_only_where_issuing_is_slow(machine):
    rows = {(row["way"], row["size_bytes"]): row["time_ns"] for row in experiments.lists(machine)}
    assert rows["proxy queue", 128] > rows["single DMAs", 128]
    assert rows["one list", 4096] == pytest.approx(rows["single DMAs", 4096], rel=0.05)


def test_refusals_name_the_rule(machine):
    answers = {row["attempt"]: row["answer"] for row in experiments.refusals(machine)}
    assert "multiple of 16 bytes" in answers["24 bytes"]
    assert "at most 16384 bytes" in answers["beyond 16 KB"]
    assert "circle: SPE0 waits for SPE1 waits for SPE0" in answers["full mailboxes in a circle"]
    with pytest.raises(LinkwrightError, match="two programs for SPE0"):
        experiments.run(machine, [("SPE0", ["wait"]), ("SPE0", ["wait"])])


@pytest.mark.slow
def test_the_whole_study():
    outcome = studies.reproduce("cell", Options())
    assert [claim.id for claim in outcome.claims] == [f"C-{n:02}" for n in range(1, 17)]
    assert all(claim.holds for claim in outcome.claims)
    for row in outcome.summary():
        if row["scored"]:
            assert row["median"] <= 0.01
    blind = [cell for cell in outcome.cells if cell.table == "blind"]
    assert blind
    assert all(cell.reference is None and cell.split == "holdout" for cell in blind)


def test_nonblocking_puts_fill_the_port(machine):
    for partner in (8, 1):
        assert streams.measure(machine, streams.one(partner, False, 2048)).total == pytest.approx(PORT, rel=0.02)


def test_the_same_experiment_gives_the_same_rates(machine):
    stream = streams.uniform(4, True, seed=3)
    assert streams.measure(machine, stream).each == streams.measure(machine, stream).each
