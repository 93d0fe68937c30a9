"""The cell study: what is exact is exact, what is scored meets its target, what is claimed is checked."""

import pytest

import linkwright_evidence as studies
from linkwright.base.errors import LinkwrightError
from linkwright.machines import load as load_machine
from linkwright_evidence import Options
from linkwright_evidence.cell import ablation, curves, experiments, facts, holdout, latency, load, streams
from linkwright_evidence.cell.chip import VARIANTS, variant
from linkwright_evidence.numbers import changed, tuned, values

PORT = 25.6  # GB/s: 16 bytes at 1.6 GHz, as the article says


@pytest.fixture(scope="module")
def machine():
    return load_machine("cell-be")


def test_what_was_tuned_is_named(machine):
    kinds = {
        status: {row["key"] for row in tuned(machine) if row["status"] == status} for status in ("fitted", "post_hoc")
    }
    assert kinds["fitted"] == {"fabric.memory_read", "fabric.mmio", "path.put.barrier"}
    # Every one of them names the cells by which it was chosen; these two met no cell.
    assert set(facts.FITTED) == kinds["fitted"] | kinds["post_hoc"] - {"fabric.receiver_order", "fabric.partial_line"}


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
    assert puts.total == pytest.approx(PORT, rel=0.02)
    for rates in (gets, puts):
        assert max(rates.each) / min(rates.each) < 1.02


@pytest.mark.parametrize("get", [True, False])
def test_one_arbiter_serves_every_pattern(machine, get):
    # Slightly below 200, which is 98 % of 204.8; random targets: 80, by which the window was chosen.
    assert streams.measure(machine, streams.complement(8, get)).total == pytest.approx(200.7, rel=0.03)
    uniform = streams.measure(machine, streams.uniform(8, get, seed=1))
    assert uniform.total == pytest.approx(80, rel=0.05)
    assert max(uniform.each) / min(uniform.each) < 1.02


def test_the_depth_of_the_window_matters_little_and_the_window_much(machine):
    def uniform(key: str, value: str) -> float:
        return streams.measure(changed(machine, {key: value}), streams.uniform(8, True, seed=1)).total

    assert all(78 < uniform("fabric.arbiter_depth", depth) < 85 for depth in ("3", "8"))
    # One oldest line of each source: a line for a busy receiver holds up only those of its own source.
    assert all(uniform("fabric.arbiter_sees", word) > 110 for word in ('"all"', '"oldest"'))


def test_round_robin_favours_some_senders_of_a_hot_store(machine):
    turns = changed(machine, {"fabric.arbiter_sees": '"all"', "fabric.receiver_order": '"round_robin"'})
    each = streams.measure(turns, streams.hot_store(8, False)).each
    assert max(each) > 1.5 * min(each)


def test_all_dmas_wait_alike_under_the_memory_hot_spot(machine):
    # 127 lines, one per 8 SPEs x 8 cycles, then the last of 16 x 8 lines in flight: 5,080 + 640 ns.
    taken = latency.hot_spot(machine, get=False, counted=64)["selection"]
    assert latency.mode(taken) == pytest.approx(5720, rel=0.01)
    assert latency.alike({"put to memory": taken})
    slow = taken.copy()
    slow[3] *= 1.03
    assert not latency.alike({"put to memory": slow})


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
    given = {claim.id for claim in outcome.claims if claim.holds is None}
    fails = {claim.id for claim in outcome.claims if claim.holds is False}
    # Built on: flatness, queue, alignment. Missed: small memory gets, puts behind gets, the tail, half the ring.
    assert given == {"C-01", "C-15", "C-16"}
    assert fails == {"C-03", "C-07", "C-10", "C-11", "C-17", "C-19", "C-20"}
    for row in outcome.summary():
        if row["scored"]:
            assert row["median"] <= 0.03
    blind = [cell for cell in outcome.cells if cell.table == "blind"]
    assert blind
    assert all(cell.reference is None and cell.split == "holdout" for cell in blind)


def test_nonblocking_puts_fill_the_port(machine):
    for partner in (8, 1):
        assert streams.measure(machine, streams.one(partner, False, 2048)).total == pytest.approx(PORT, rel=0.02)


def test_the_same_experiment_gives_the_same_rates(machine):
    stream = streams.uniform(4, True, seed=3)
    assert streams.measure(machine, stream).each == streams.measure(machine, stream).each


def test_a_cell_that_the_model_was_given_is_not_scored(machine):
    quick = facts.grounds(machine, Options(), ("blocking", "batch(4)", "unlimited"), seeds=(1,))
    cells = {cell.keys.get("id", cell.keys.get("component")): cell for cell in facts.cells(quick)}
    roles = {name: cells[name].role for name in ("C042", "C099", "C100", "C152", "C151", "total")}
    assert roles == {
        "C042": "input", "C099": "input", "C100": "fitted", "C152": "fitted", "C151": "predicted", "total": "input"
    }  # fmt: skip
    # A number that is not what the fact says shows, although it is not scored.
    assert (cells["C099"].predicted, cells["C162"].predicted) == ("no", 5.12)
    subjects = {name: ablation.subject(cells[name]) for name in ("C100", "C146", "C151", "C152", "C158")}
    assert list(subjects.values()) == ["one SPE", "hot spots", "patterns", "uniform", "latency under load"]
    assert {name for name, cell in cells.items() if holdout.is_large(cell)} >= {"C062", "C146", "C152", "C163"}


def test_numbers_are_found_again_from_one_spe(machine):
    found, shipped = holdout.find(machine), values(machine)
    # 91 ns less 87.5 are 11.2 SPU cycles.
    assert found[holdout.BARRIER] == pytest.approx(11.2)
    for key in (holdout.MEMORY_READ, holdout.MMIO):
        assert found[key] == pytest.approx(shipped[key])


def test_every_ablation_changes_the_machine(machine):
    for values_without in ablation.WITHOUT.values():
        other = changed(machine, values_without)
        assert [row["value"] for row in other.numbers()] != [row["value"] for row in machine.numbers()]


def test_loss_cases_idle_two_rings(machine):
    one_way = streams.measure(machine, load.LOSSES[load.ONE_WAY]())
    assert sum(share == 0 for share in load.ring_shares(one_way).values()) == 2
    # The window lets nobody starve, although short paths could keep long ones out.
    assert max(one_way.each) / min(one_way.each) < 1.05
