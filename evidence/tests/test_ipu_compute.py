"""The compute side of the study of the IPU: tables, figures and claims of chapters 1, 3 and 5."""

import itertools
import statistics

import pytest

from linkwright.executors.probes.convolution import layers
from linkwright.show.report.model import Plot
from linkwright_evidence.ipu import convolution, figures_compute, fit_compute, matmul, memory
from linkwright_evidence.ipu import random as generators
from linkwright_evidence.ipu.arithmetic import device
from linkwright_evidence.published import reference_rows

TABLES = [*memory.TABLES, *matmul.TABLES, *convolution.TABLES]


@pytest.fixture(scope="module")
def cells():
    return {table.key: table.cells(None) for table in TABLES}


def test_every_row_of_every_table_is_a_cell(cells):
    for table in TABLES:
        rows = reference_rows("ipu", table.file)
        assert [cell.keys["row"] for cell in cells[table.key]] == [int(row["row"]) for row in rows]


def test_holdout_cells_are_predicted_and_were_not_fitted(cells):
    withheld = [cell for key in ("5.3", "5.4", "5.5") for cell in cells[key] if cell.split == "holdout"]
    assert len(withheld) == 36 + 70 + 37
    assert all(cell.role == "predicted" and cell.predicted > 0 for cell in withheld)


def test_layers_meet_their_target():
    rows = {(row["table"], row["class"], row["batch_column"]): row for row in convolution.score()}
    # Just above the errors of the models, so that a changed number is noticed.
    for table, median, within in (("5.4", 0.05, 0.935), ("5.5", 0.075, 0.93)):
        assert rows[table, "scored", "all"]["median"] < median
        assert rows[table, "scored", "all"]["within_25_percent"] > within


def test_memory_meets_its_target(cells):
    errors = [cell.error for cell in cells["3.1"] if cell.table == "3.1" and cell.scored]
    assert len(errors) == 10
    assert statistics.median(errors) < 0.02
    assert max(errors) < 0.08
    ours = [cell for cell in cells["1.1"] if cell.keys["architecture"] == "Graphcore IPU"]
    assert [cell.error for cell in ours] == pytest.approx([0, 0, 0, 0])
    assert [cell for cell in cells["1.1"] if not cell.erratum] == ours


def test_products_were_not_fitted():
    ipu, gpu = device("IPU"), device("V100")
    assert matmul.best(ipu, "mixed") == pytest.approx(58.9, rel=0.055)
    assert matmul.best(gpu, "mixed") == pytest.approx(90.0, rel=0.125)
    assert matmul.best(gpu, "single") == pytest.approx(15.5, rel=0.02)
    assert matmul.best(ipu, "single") == pytest.approx(18.9, rel=0.10)


def test_at_most_six_fitted_numbers_for_each_device():
    for name in ("IPU", "V100"):
        rows = device(name).numbers.values()
        fitted = [row for row in rows if row["key"].startswith("probe.") and row["status"] == "fitted"]
        assert 4 <= len(fitted) <= 6


def test_curves_stay_below_their_limits_and_layouts_differ():
    rows = list(matmul.figures_5_1_to_5_3())
    assert all(0 < row["tflop_per_s"] <= row["limit_tflop_per_s"] for row in rows)
    at = {(row["device"], row["precision"], row["layout"], row["n"]): row for row in rows}
    for (name, precision, layout, n), row in at.items():
        if layout == "basic":
            assert row["tflop_per_s"] < at[name, precision, "optimised", n]["tflop_per_s"]
        if name == "2 IPU":
            one = at["1 IPU", precision, layout, n]
            assert row["tflop_per_s"] == pytest.approx(2 * one["tflop_per_s"])
            # The card draws more than two chips, so one chip is the more efficient.
            assert row["tflop_per_s_per_w"] < one["tflop_per_s_per_w"]
    for row in memory.figure_3_1():
        assert row["read_tb_per_s"] < row["limit_tb_per_s"]


def test_random_numbers_saturate_at_the_printed_rates():
    rows = list(generators.figures_5_4_and_5_5())
    for name, printed in (("IPU", 944), ("V100", 192)):
        curve = [row["gsamples_per_s"] for row in rows if row["device"] == name]
        assert curve == sorted(curve)
        assert rows[0]["gsamples_per_s"] < 0.1 * curve[-1]
        limit = next(row["limit_gsamples_per_s"] for row in rows if row["device"] == name)
        assert limit == pytest.approx(printed, rel=1e-3)


def test_figures_draw_every_curve_with_its_limit():
    (section,) = figures_compute.sections()
    plots = [item for item in section.items if isinstance(item, Plot)]
    assert len(plots) == 2 + 4 + 2
    for plot in plots:
        assert all(value > 0 for curve in plot.curves for value in curve.y)
        assert ("per" in plot.y.title) == all(curve.kind != "limit" for curve in plot.curves)


def test_claims():
    found = {claim.id: claim for claim in [*memory.claims(), *convolution.claims(), *matmul.claims()]}
    held = {key for key, claim in found.items() if claim.holds}
    assert held == {"I-00", "I-18a", "I-18b", "I-18c", "I-18d", "I-19", "I-5.4", "I-5.5", "I-C1"}
    # Printed as failed: the waves overpredict the product by 12 %, and the V100's kernels for groups are not known.
    assert found.keys() - held == {"I-C2", "I-18e"}
    assert "Conv2_2" in found["I-18e"].why


def test_a_ratio_is_judged_against_the_published_one():
    # 705 on Conv4_1: half or twice of it would fail.
    assert convolution._is_near(705 * 1.4, "705.23")
    assert not convolution._is_near(705 * 1.6, "705.23")
    assert not convolution._is_near(705 / 1.6, "705.23")


def test_the_machine_files_hold_what_the_fit_finds():
    # On every third cell a few steps of the simplex improve the loss hardly.
    for name, (file, classes) in fit_compute.FITTED.items():
        for of in classes:
            found = fit_compute.fit(name, of, fit_compute.cells_of(file, of)[::3], steps=40)
            for key, value in found.items():
                assert value == pytest.approx(float(device(name).numbers[key]["value"]), rel=0.2), key


def test_layers_are_those_of_the_published_table():
    rows = reference_rows("ipu", "t5_03_conv_peak_ipu_vs_v100.csv")
    names = ("filter", "input", "in_ch", "out_ch", "stride", "groups")
    published = [(row["layer"].lower(), *(int(row[name]) for name in names)) for row in rows]
    mine = ("filter", "input", "in_channels", "out_channels", "stride", "groups")
    known = [(key.partition(".")[2], *(layer[name] for name in mine)) for key, layer in layers().items()]
    # Consecutive rows are metrics of one layer; two networks begin with the same one.
    networks = [(row["network"], layer) for row, layer in zip(rows, published, strict=True)]
    assert known == [layer for (_, layer), _ in itertools.groupby(networks)]
