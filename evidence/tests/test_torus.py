"""Tori: the study of 64 nodes, and machines of any number of sides."""

import statistics

import pytest

import linkwright as lw
import linkwright_evidence as studies
from linkwright.base.errors import FileError
from linkwright.cli.main import status_of
from linkwright_evidence import Options
from linkwright_evidence.torus import curves

# Median error that each table may have.
MOST = 0.05


@pytest.fixture(scope="module")
def outcome():
    return studies.reproduce("torus", Options(holdout_scale=True))


def test_curves_of_goodput_meet_their_target(outcome):
    for name in curves.ALGORITHMS:
        errors = [cell.error for cell in outcome.cells if cell.table == f"goodput, {name}" and cell.scored]
        assert len(errors) >= 8
        assert statistics.median(errors) <= MOST, name


def test_one_cell_is_fitted_and_what_cannot_be_read_is_not_scored(outcome):
    fitted = [cell for cell in outcome.cells if cell.role == "fitted"]
    assert [(c.keys["figure"], c.keys["algorithm"], c.keys["size_bytes"]) for c in fitted] == [curves.FITTED]
    assert [row["key"] for row in outcome.tuned if row["status"] == "fitted"] == ["fabric.transport.message.start"]
    unclear = [cell for cell in outcome.cells if cell.erratum]
    assert all(cell.keys["figure"] == "goodput" and cell.reference < curves.LEAST_GBPS for cell in unclear)


def test_the_reading_of_the_figure_is_as_uncertain_as_stated():
    """Goodput and runtime of one point state the same time."""
    page = curves.published()
    both = [
        abs(8e-3 * size / runtime - page["goodput", name, size])
        for (figure, name, size), runtime in page.items()
        if figure == "runtime"
    ]
    assert 0.2 < max(both) <= curves.READING_GBPS + 0.01


def test_claims_can_fail_and_these_do(outcome):
    assert [claim.id for claim in outcome.claims if not claim.holds] == ["T-03", "T-07", "T-11"]
    assert len(outcome.claims) == 11


def test_small_times_give_the_same_start_up(outcome):
    (row,) = outcome.tables["numbers_from_small"]
    assert row["from_small"] == pytest.approx(row["from_all"], rel=0.02)


def test_a_torus_has_any_number_of_sides():
    torus = lw.machine("torus-400g", grid=(4, 2, 3))
    assert torus.rank_grid == (4, 2, 3)
    assert torus.grid is None
    assert torus.endpoints()[5]["name"] == "node (1,1,0)"
    schedule = lw.schedule("allreduce", "bucket_multiport", ranks=24, size=240 << 10, grid=(4, 2, 3))
    assert lw.simulate(schedule, torus).time_us > 0
    with pytest.raises(FileError, match="a grid of two sides, not 4x2x3"):
        lw.simulate(schedule, lw.machine("torus-2d", grid=(4, 2, 3)))


def test_the_command_line_takes_three_sides(capsys):
    words = "simulate allreduce -a bucket_multiport --on torus-400g --grid 4x4x4 --sizes 1M"
    assert status_of(words.split()) == 0
    assert "grid=4x4x4" in capsys.readouterr().out
    assert status_of(["simulate", "allreduce", "--on", "torus-400g", "--grid", "4x"]) == 2
    assert "such as `8x8` or `4x4x4`" in capsys.readouterr().err
