"""The table of docs/accuracy.md."""

import re
from pathlib import Path

from linkwright_evidence import REGISTRY, accuracy

PAGE = Path(__file__).parent.parent.parent / "docs" / "accuracy.md"


def cell(predicted, reference, role="predicted"):
    return {"predicted": predicted, "reference": reference, "role": role}


def test_a_row_counts_what_is_scored():
    """Errors of 0, 10 and 50 % remain of five cells; the median is 10 %."""
    study = {
        "claims": [{"holds": True}, {"holds": False}, {"holds": None}],
        "cells": [cell(1, 1), cell(11, 10), cell(5, 10), cell(9, 1, "fitted"), cell(7, None)],
        "tuned": [{"status": "fitted"}, {"status": "assumed"}, {"status": "assumed"}],
    }
    assert accuracy.row("x", study) == ["`x`", "1 of 2", "3", "10.0%", "50.0%", "1", "0", "2"]


def test_the_page_has_every_study():
    rows = re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(REGISTRY)
