"""Which published cells the model was given: inputs of the machine file, and what was fitted or chosen by looking.

A number that was read off one cell makes it an input. The fitted numbers come from one row in four of some tables,
those whose number leaves 3 when divided by 4, as far as they were open when the model was made: every number shows in
these. Cells that are the evidence of a rule count as fitted too. None of these are scored. Tables 4.2 and 4.5 print
cells of 4.1, 4.3, 4.4 and 4.6 again; table 5.3 has the best of 5.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from linkwright_evidence.outcome import Role

FIT_TABLES = ("4.3", "4.10", "4.11", "4.12", "4.13", "4.16", "4.17", "5.3", "5.4", "5.5")
EVERY, REST = 4, 3
# What the fit does not look at, because it follows from whole curves.
NOT_FITTED = ("message_size_for_90pct_peak", "bandwidth_aggregate_peak")

# Table -> rows that a number of the machine file was read off.
INPUTS: dict[str, tuple[int, ...]] = {
    "1.1": (1,),  # capacity, latency, clock of the tile
    "4.1": (2, 3),  # rung_hop, base
    "4.3": (11,),  # pairs.phase_start
    "4.8": (1, 6, 7),  # copy_start, wide_start
    "4.11": (11,),  # collect_lead
    "4.16": (1, 6),  # reduce_tile.compute_start, reduce_single.compute_start
    "4.20": (11, 30),  # chip_rate, group_rate
}
# Table -> rows that a rule was chosen by.
EVIDENCE: dict[str, tuple[int, ...]] = {
    "4.3": (12, 13, 14, 15, 18, 19, 20),  # rung_units, rung_half_duplex, sorted_by_board
    "4.4": (2, 3, 4),  # stored
    "4.6": (20, 22),  # random traffic crosses the middle
    "4.8": (13, 16),  # own_chip_last
    "4.9": (2, 3, 12, 15),  # paired_from, own_chip_last
    "4.11": (10, 20),  # hides, word_interval
    "4.18": (17,),  # own_vertex
    "4.16": (12, 15, 16, 17),  # sums by rows, word_interval
}
# (table, metric) -> the table whose row of the same number it repeats, and how far its rows are apart.
REPEATS = {
    ("4.2", "latency_no_load"): ("4.1", 0),
    ("4.2", "latency_under_load"): ("4.3", 10),
    ("4.5", "bandwidth_no_load"): ("4.4", 0),
    ("4.5", "bandwidth_under_load"): ("4.6", 10),
}
# Metrics that only restate documented numbers.
RESTATED = ("lanes",)
LIMITS = {"3.1": (1,), "5.1": (1, 2, 5, 6), "5.2": (1,)}


def is_fitted(row: Mapping[str, str]) -> bool:
    """Whether the fit of the interconnect looks at a row."""
    chosen = row["table"] in FIT_TABLES and int(row["row"]) % EVERY == REST
    return chosen and row["split"] == "open" and row["metric"] not in NOT_FITTED


def role(row: Mapping[str, str]) -> Role:
    """What the published value of a row did."""
    table, index = row["table"], int(row["row"])
    if (table, row["metric"]) in REPEATS:
        repeated, apart = REPEATS[table, row["metric"]]
        return role({**row, "table": repeated, "row": str(index + apart), "metric": ""})
    if index in INPUTS.get(table, ()) or index in LIMITS.get(table, ()) or row["metric"] in RESTATED:
        return "input"
    if index in EVIDENCE.get(table, ()) or is_fitted(row):
        return "fitted"
    return "predicted"
