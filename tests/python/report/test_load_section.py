"""Who gets how much: rates and tails in a table, latencies as shares, the time of each rank by processor."""

import numpy as np
import pandas as pd
from made import MODEL, run_of

from linkwright.show.report import model
from linkwright.show.report.sections import load

RATES = {"endpoint_rate_min": 1e9, "endpoint_rate_median": 2e9, "endpoint_rate_max": 4e9}
TAIL = {"message_min": 10, "message_p25": 20, "message_p50": 30, "message_p99": 500, "message_max": 900}


def pattern(experiment="hot", algorithm="hot_spot", ranks=3, **about):
    """The rows of one pattern: its time, its total rate, the rates of endpoints and the latencies of messages."""
    common = {"collective": None, "algorithm": algorithm, "ranks": ranks, "size_bytes": 64, "experiment": experiment}
    common |= {"messages": 16, "both_ways": False, "issue": None} | about
    rates = {"bandwidth": 3e9, **RATES}
    return [
        common | {"metric": "time", "value": 1000.0},
        *(common | {"metric": metric, "value": value, "unit": "B/s"} for metric, value in rates.items()),
        *(common | {"metric": metric, "value": float(value)} for metric, value in TAIL.items()),
    ]


def samples(experiment="hot", ranks=3):
    """Rank r takes 100 (r + 1) ns, in four launches of two samples."""
    rows = [
        ("r", experiment, launch, sample, rank, 100.0 * (rank + 1), None)
        for launch in range(4)
        for sample in range(2)
        for rank in range(ranks)
    ]
    columns = ["run", "experiment", "launch", "sample", "rank", "value_ns", "set_aside"]
    return pd.DataFrame(rows, columns=columns)


def items(section, kind):
    found = []
    for item in section.items:
        found += [one for one in (item.items if isinstance(item, model.Choice) else [item]) if isinstance(one, kind)]
    return found


def test_the_table_says_what_each_endpoint_gets():
    (table,) = items(load.section(run_of(*pattern())), model.Table)
    (line,) = table.rows
    said = [cell.text for cell in line]
    assert said == ["Hot spot", "3", "64 B", "3 GB/s", "1 GB/s", "4 GB/s", "25", "30 ns", "500 ns", "900 ns"]
    assert line[6].share == 0.25


def test_latencies_are_drawn_as_shares_of_messages():
    (plot,) = items(load.section(run_of(*pattern())), model.Plot)
    (curve,) = plot.curves
    assert curve.kind == "measured"
    assert list(curve.y) == [0, 25, 50, 99, 100]
    assert np.allclose(curve.x, [10e-9, 20e-9, 30e-9, 500e-9, 900e-9])


def test_issue_policies_of_a_pattern_share_a_chart_and_are_its_curves():
    policies = [row for issue in ("blocking", "window(4)") for row in pattern(issue, issue=issue)]
    both = pattern("back", both_ways=True)
    charts = items(load.section(run_of(*pattern(), *both, *policies)), model.Plot)
    named = {plot.title: [curve.name for curve in plot.curves] for plot in charts}
    assert named == {
        "Patterns, 3 ranks, 64 B": ["hot spot"],
        "Patterns, both ways, 3 ranks, 64 B": ["hot spot"],
        "Hot spot by issue policy, 3 ranks, 64 B": ["blocking", "window(4)"],
    }


def test_the_time_of_each_rank_is_named_by_its_processor():
    environment = {"threads": {"endpoints": ["cpu 4", "cpu 6"]}}
    run = run_of(*pattern(), samples=samples(), environment=environment)
    (chart,) = items(load.section(run), model.BoxPlot)
    assert [box.name for box in chart.boxes] == ["cpu 4", "cpu 6", "rank 2"]
    assert np.allclose([box.median for box in chart.boxes], [100e-9, 200e-9, 300e-9])
    assert {box.n for box in chart.boxes} == {4}


def test_ranks_of_a_job_are_named_by_their_host():
    environment = {"mpi": {"ranks": [{"rank": rank, "host": "node"} for rank in range(3)]}}
    run = run_of(*pattern(executor="mpi"), samples=samples(), environment=environment)
    (chart,) = items(load.section(run), model.BoxPlot)
    assert [box.name for box in chart.boxes] == ["node 0", "node 1", "node 2"]


def test_charts_show_the_most_ranks_and_a_model_has_no_samples():
    rows = [*pattern("few", ranks=2), *pattern("many", ranks=3), *pattern("many", ranks=3, **MODEL)]
    section = load.section(run_of(*rows, samples=samples("many")))
    assert [plot.title for plot in items(section, model.Plot)] == ["Patterns, 3 ranks, 64 B"] * 2
    assert [plot.curves[0].kind for plot in items(section, model.Plot)] == ["measured", "model"]
    assert len(items(section, model.BoxPlot)) == 1
    assert [len(table.rows) for table in items(section, model.Table)] == [2, 1]


def test_set_aside_launches_do_not_count():
    some = samples()
    some["set_aside"] = np.where(some["launch"] == 0, "foreign", None)
    (chart,) = items(load.section(run_of(*pattern(), samples=some)), model.BoxPlot)
    assert {box.n for box in chart.boxes} == {3}


def test_a_run_without_patterns_has_no_such_section():
    assert load.section(run_of({"collective": "allreduce", "value": 1.0})) is None
    assert load.section(run_of({"collective": None, "algorithm": "pairs", "value": 1.0})) is None
