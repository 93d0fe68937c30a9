"""From small to large: the fitted numbers found again from small cases, and what the model then says of large ones.

A study that fits by many cells must show that it fitted a mechanism and not the cells: numbers that come from a few
chips, GPUs or bytes should predict many. What counts as small is the study's choice, stated in its note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from linkwright_evidence import scoring
from linkwright_evidence.outcome import Cell


def tables(large: Iterable[Cell], found: Mapping[str, float], shipped: Mapping[str, float]) -> dict[str, list[dict]]:
    """The two tables of `--holdout-scale`.

    Args:
        large: the large cells, predicted with `found`. All of them took no part, so those that the shipped numbers were
            fitted to count too.
        found: key of a fitted number -> its value from small cells.
        shipped: the same keys -> the values of the machine file.

    Returns:
        `from_small_to_large`, a row of errors per table, and `numbers_from_small`.
    """
    scores = scoring.scores(replace(cell, role="predicted") for cell in large if cell.role != "input")
    return {
        "from_small_to_large": [
            {"table": score.name, "cells": len(score.errors), **score.percent_row()} for score in scores
        ],
        "numbers_from_small": [
            {"number": key, "from_small": float(f"{value:.4g}"), "from_all": float(f"{shipped[key]:.4g}")}
            for key, value in found.items()
        ],
    }
