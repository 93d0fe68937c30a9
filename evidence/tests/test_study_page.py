"""The page of a study: its words, its charts, and the form in which a run folder keeps them."""

import json

import numpy as np
import pytest
import synthetic
from reading import words

from linkwright.show.report import html, model
from linkwright_evidence.report import agreement, pages, plain, study_tables


def test_study_summary_counts_blind_cells_apart():
    summary = next(one for one in pages.sections(synthetic.study()) if one.title == "How close").items[0]
    row = next(row for row in summary.rows if row[0].text == "dram_interleaved_read")
    assert [cell.text for cell in row[1:5]] == ["25", "5", "0", "1"]
    assert agreement.error({"predicted": 90, "reference": 100}) == pytest.approx(-0.1)
    assert agreement.error({"predicted": 17, "reference": 19, "erratum": "misprint"}) is None


def test_a_claim_that_could_not_be_judged_has_not_failed():
    claim = {"id": "1", "statement": "s", "holds": None, "why": "needs --full"}
    page = words(html.page(pages.page({"paper": "p", "cells": [], "claims": [claim], "tuned": []})))
    assert "1 not judged" in page
    assert "0 claims failed" in page


def test_tables_of_a_study_become_charts():
    times = [
        {"variant": v, "size_kib": s, "arithmetic": a, "own_start_us": 10.0 * s, "theory_us": 9.0 * s}
        for v in ("swing", "rd")
        for s in (2, 4, 8)
        for a in (True, False)
    ]
    nodes = [
        {"variant": "swing", "size_kib": s, "rank": r, "time_us": 1.0 * r, "deviation_percent": r - 32.0}
        for s in (2, 4)
        for r in range(64)
    ]
    (section,) = study_tables.sections({"run_times": times, "node_times": nodes, "empty": []})
    plots, boxes = (part.items for part in section.parts)
    assert [plot.title for plot in plots[:-1]] == ["Own start, with arithmetic", "Own start, without arithmetic"]
    assert [curve.name for curve in plots[0].curves] == ["swing", "rd", "theory of swing"]
    assert plots[0].curves[0].x[0] == 2048
    assert [box.name for box in boxes[0].boxes] == ["2 KiB", "4 KiB"]
    assert html.page(model.Report("r", sections=[section]))


def test_columns_of_one_unit_share_a_chart_and_notes_explain_it():
    rings = [
        {"ring": ring, "size_kib": s, "time_us": s * k, "best_us": 1.0 * s}
        for k, ring in enumerate(("one", "two"), 2)
        for s in (2, 4, 8)
    ]
    signals = [{"variant": "swing", "size_kib": 128, "signals": k, "time_us": 9.0 / k} for k in (1, 2, 4)]
    (section,) = study_tables.sections({"rings": rings, "signals": signals}, {"rings": "Two rings."})
    first, second = section.parts
    assert first.intro == "Two rings."
    assert [curve.name for curve in first.items[0].curves] == ["one, time", "two, time", "best"]
    assert (second.items[0].title, list(second.items[0].curves[0].x)) == ("Time, 128 KiB", [1, 2, 4])


def test_plain_form_keeps_everything():
    curve = model.Curve("c", [1.0], [2.0], [1.5], [None], "model", ["note"])
    heat = model.HeatMap("h", "s", ["a"], ["b"], np.array([[np.nan]], dtype=np.float32))
    table = model.Table("t", [model.Column("x")], [[model.Cell("1", 1)]])
    items = [model.Plot("p", model.Axis("x", "B"), model.Axis("y", "s"), [curve]), heat, table]
    section = model.Section("s", items)
    kept = plain.load(json.loads(json.dumps(plain.dump([section]))))
    assert html.page(model.Report("r", sections=kept)) == html.page(model.Report("r", sections=[section]))
    assert plain.dump(kept) == plain.dump([section])
    with pytest.raises(ValueError, match="Curve has no field colour"):
        plain.load({"type": "Curve", "colour": "red"})


def test_the_first_screen_has_scored_cells_what_was_chosen_and_what_fails():
    study = {
        "paper": "p", "title": "t",
        "cells": [
            {"table": "a", "predicted": 1.1, "reference": 1.0, "unit": "us", "role": "predicted"},
            {"table": "a", "predicted": 1.0, "reference": 1.0, "unit": "us", "role": "fitted"},
        ],
        "tuned": [
            {"key": key, "value": "1", "status": status} for key, status in (("x", "fitted"), ("y", "post_hoc"))
        ],
        "claims": [
            {"id": "P-01", "statement": "one", "holds": True, "why": ""},
            {"id": "P-02", "statement": "two", "holds": False, "why": "off by half"},
        ],
    }  # fmt: skip
    page = pages.page(study)
    badges = [(badge.count, badge.label) for badge in page.badges]
    assert badges[:3] == [(1, "of 2 cells scored"), (1, "fitted numbers"), (1, "post-hoc rules")]
    assert page.sections[0].title == "What fails"
    assert [row[0] for row in page.sections[0].items[0].rows] == ["P-02"]
