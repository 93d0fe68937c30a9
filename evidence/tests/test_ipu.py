"""The study of the C2 server: every table against its target, every claim, the budget of what is fitted."""

import json

import pytest

import linkwright_evidence as studies
from linkwright.base.errors import UsageError
from linkwright_cases import invoke
from linkwright_evidence import Options, ipu, scoring
from linkwright_evidence.ipu import ablation, catalogue, claims, fit, holdout, p2p
from linkwright_evidence.ipu.bench import Bench, tile
from linkwright_evidence.ipu.predictions import Predictions
from linkwright_evidence.ipu.tables import Table
from linkwright_evidence.numbers import tuned

# Tables that miss their target, and the only way in which they may: what the report's own contradictions cost.
# Rows 1 and 2 of 4.12 are off the line of the others; the two rows of 4.1 and 4.2 that are left are random draws and
# two rungs; the block of 4.7 was not printed; (d) and (g) of 4.13 are faster than (c) and (f) allow.
KNOWN_MISSES = {
    "4.1": ("median 5.",),
    "4.2": ("median 6.", "83%"),
    "4.7": ("median 3.",),
    "4.12": ("largest", "83%"),
    "4.13": ("88%",),
    "4.15": ("median 4.",),
}


@pytest.fixture(scope="module")
def bench():
    return Bench.shipped()


@pytest.fixture(scope="module")
def tables():
    return catalogue.interconnect(catalogue.tables())


@pytest.fixture(scope="module")
def cells(bench, tables):
    return [cell for table in tables for cell in table.cells(bench)]


def test_every_row_of_every_table_is_predicted(tables, cells):
    assert {f"4.{number}" for number in range(1, 21)} <= {table.key for table in tables}
    assert len(cells) == sum(len(table.rows()) for table in tables)
    missing = [cell for cell in cells if cell.predicted is None]
    # All-to-all over a whole chip was not measured either.
    assert {(cell.table, cell.keys["row"]) for cell in missing} == {("4.15", 11)}
    assert all("half a chip" in cell.keys["waived"] for cell in missing)
    assert all(cell.reference is not None for cell in cells if cell.split == "holdout")


def test_tables_meet_their_targets(tables, cells):
    for score in scoring.scores(cells, {table.key: table.target for table in tables}):
        allowed = KNOWN_MISSES.get(score.name, ())
        unexpected = [miss for miss in score.misses if not miss.startswith(allowed)]
        assert not unexpected, (score.name, unexpected)


def test_pooled(tables, cells):
    pooled = ipu._pooled(cells, tables)
    assert pooled.within() >= ipu.POOLED_SHARE
    assert len(pooled.errors) > 500
    blind = ipu._pooled([cell for cell in cells if cell.split == "holdout"], tables)
    assert blind.within() >= 0.93


def test_claims(bench, cells):
    judged = claims.check(Predictions.of(bench, cells))
    assert [claim.id for claim in judged] == [f"ipu-{number}" for number in range(1, 18)]
    # 13: tables 4.11 and 4.12 contradict each other (I13).
    assert {claim.id for claim in judged if not claim.holds} <= {"ipu-13"}


def test_at_most_seventeen_fitted_numbers_and_rules(bench):
    of_links = [row for row in tuned(bench.machines["server"]) if not row["key"].startswith("probe.")]
    keys = {status: {row["key"] for row in of_links if row["status"] == status} for status in ("fitted", "post_hoc")}
    assert keys["fitted"] == fit.NOMINAL.keys()
    assert keys["post_hoc"] == {*ablation.CHOSEN, *ablation.RULES.values()}
    assert len(ablation.tuned()) <= 17
    assert all(row["source"] for row in of_links)


def test_what_was_given_is_not_scored(bench, tables):
    cells = {(c.keys["table"], c.keys["row"], c.keys["metric"]): c for table in tables for c in table.cells(bench)}
    # base was read off 4.1 (c), which 4.2 prints again; 4.3 row 3 is one in four; row 4 was held out.
    assert cells["4.1", 3, "latency"].role == cells["4.2", 3, "latency_no_load"].role == "input"
    assert cells["4.3", 3, "latency"].role == "fitted"
    assert cells["4.3", 14, "latency"].role == cells["4.2", 4, "latency_under_load"].role == "fitted"
    assert cells["4.3", 4, "latency"].role == "predicted"
    fitted = [cell for cell in cells.values() if cell.role == "fitted" and cell.split == "holdout"]
    # The mechanism of random traffic and the one stage of sums were found on opened values.
    assert {(cell.keys["table"], cell.keys["row"]) for cell in fitted} == {("4.3", 18), ("4.3", 20), ("4.16", 16)}
    assert not any(cell.scored for cell in cells.values() if cell.role != "predicted")


def test_derived_numbers_follow_the_fitted_ones(bench):
    for key, value in fit.derived(bench, fit.shipped(bench)).items():
        assert bench.number(key) == pytest.approx(value, rel=1e-3), key


def test_every_mechanism_can_be_taken_away(bench, tables):
    small = [table for table in tables if table.key in ("4.4", "4.8", "4.16")]
    whole = [cell for table in small for cell in table.cells(bench)]
    rows = {row["without"]: row for row in ablation.table(bench, small, whole, lambda *_: None)}
    assert len(rows) == 2 + len(ablation.GIVEN) + len(ablation.tuned())
    assert "4.8" in rows["fabric.multicast.wide_above"]["worse"]
    assert rows["path.reduce_chip.compute_start"]["within_10_percent"] < rows["nothing"]["within_10_percent"]
    assert rows["everything tuned"]["median_percent"] > rows["nothing"]["median_percent"]


def test_the_curve_ends_with_everything_tuned(bench, tables):
    small = [table for table in tables if table.key in ("4.8", "4.16")]
    rows = ablation.curve(bench, small, lambda *_: None)
    assert [row["tuned"] for row in rows] == list(range(len(ablation.tuned()) + 1))
    assert {row["added"] for row in rows[1:]} == {ablation.RULES.get(key, key) for key in ablation.tuned()}
    errors = [row["mean_percent"] for row in rows]
    assert rows[1]["added"] in ("fabric.multicast.wide_above", "path.reduce_chip.compute_start", "sums by rows")
    assert errors[-1] == round(100 * ablation.mean_error(ablation.run(bench, small)), 2)
    assert errors[-1] < errors[4] < errors[0]


def test_a_fit_finds_its_own_numbers_again(bench):
    """Cells that the model itself made pin the numbers they depend on."""
    wrong = {"path.reduce_single.receive": 90.0}
    table = next(table for table in catalogue.tables() if table.key == "4.16")
    made = {
        row["row"]: table.predict(bench, table.conditions(row)) for row in table.rows() if row["metric"] == "latency"
    }

    class Made(Table):
        def rows(self):
            band = (row for row in super().rows() if row["metric"] == "latency" and 6 <= int(row["row"]) <= 10)
            return [{**row, "value": str(made[row["row"]])} for row in band]

    start = fit.with_values(bench, fit.shipped(bench) | wrong)
    found = fit.fit(start, [Made(**vars(table))], lambda row: True)
    assert found["path.reduce_single.receive"] == pytest.approx(bench.number("path.reduce_single.receive"), rel=0.1)


def test_small_scales_leave_out_8_and_16(tables):
    rows = [row for table in tables for row in table.rows() if holdout.is_small(row)]
    assert not {row.get("placement") for row in rows} & set(holdout.LARGE)


def test_random_pairs_have_a_seed_and_a_spread(bench):
    draws = p2p.chip_draws(bench, 4, 4)
    assert len(set(draws)) > 10
    assert draws == p2p.chip_draws(Bench.shipped(), 4, 4)
    assert draws != p2p.chip_draws(Bench.shipped(seed=2), 4, 4)


def test_a_tile_that_is_none():
    with pytest.raises(UsageError, match=r"no tile 1216 on a chip; tiles are 0\.\.1215"):
        tile(0, 1216)


def test_one_table_from_the_command_line(tmp_path):
    result = invoke("reproduce", "ipu", "--table", "4.4", "--json", "--runs", str(tmp_path))
    assert result.status == 0
    assert {cell["table"] for cell in json.loads(result.out)["cells"]} == {"4.4"}
    result = invoke("reproduce", "ipu", "--table", "4.21", "--runs", str(tmp_path))
    assert result.status != 0
    assert "4.20" in result.err
    result = invoke("reproduce", "wormhole", "--table", "1", "--runs", str(tmp_path))
    assert result.status != 0
    assert "has no --table" in result.err


@pytest.mark.slow
def test_from_four_to_sixteen(bench, tables):
    found = holdout.results(Bench.shipped(draws=10), tables, lambda *_: None)
    assert {row["table"] for row in found["from_small_to_large"]} >= {"4.8", "4.11", "4.13", "4.16", "4.20"}


def test_the_whole_study_has_claims_figures_and_verdicts():
    outcome = studies.reproduce("ipu", Options(tables=("4.4", "4.8")))
    assert set(outcome.verdicts) == {"4.4", "4.8"}
    assert outcome.remarks
    assert not outcome.claims


def test_dissect_takes_a_sample_of_every_chip():
    from linkwright.ask.question import Pattern
    from linkwright.executors import resolve
    from linkwright.session.suite.model import on_sample

    (target,) = resolve("ipu-c2-server")
    assert target.extent.ranks == len(target.endpoint_names) == 64
    assert {endpoint // 1216 for endpoint in target.sample} == set(range(16))
    pair = Pattern("latency", "ping_pong", 2, 8, "u8", placement=(0, 63))
    assert on_sample(target, pair).placement == (0, 63 * 304)
    (asked,) = resolve("ipu-c2-server", ranks=100)
    assert asked.sample is None
    assert on_sample(asked, pair) is pair
