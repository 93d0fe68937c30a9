"""Round trips between processes, as a user asks for them."""

import numpy as np
import pandas as pd
import pytest

from linkwright import _native
from linkwright.base.errors import LinkwrightError, WaivedError
from linkwright.executors import probes
from linkwright.executors.probes import Setting
from linkwright.show.report.runs import Run, normalise
from linkwright.show.report.sections import round_trips

TRANSPORTS = probes.find("round_trip").axis("transport").words


def launch(**given):
    setting = Setting(cpus=tuple(_native.cpus()), budget_s=5, samples=5, warmup_at_most=1)
    return probes.measure("round_trip", probes.find("round_trip").assignment(given), setting)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_gives_trips_their_mean_and_their_tail(transport):
    try:
        found = launch(transport=transport, in_bytes="256", out_bytes="1K")
    except WaivedError as error:
        pytest.skip(str(error))
    trips = found.values_ns
    if not trips:  # a busy machine: every block was disturbed
        assert sum(found.dropped.values()) > 0
        return
    mean, p99 = (found.columns[f"round_trip_{name}"][0] for name in ("mean", "p99"))
    assert mean == pytest.approx(np.mean(trips))
    assert np.median(trips) <= p99 <= max(trips)


def test_sizes_that_cannot_be_sent_are_refused():
    with pytest.raises(LinkwrightError, match="multiples of 8"):
        launch(in_bytes="12")


def test_the_report_lays_a_grid_out_as_the_published_tables_do():
    common = {"algorithm": "round_trip", "collective": None, "machine": "m", "executor": "threads", "status": "ok"}
    rows = [
        {
            **common,
            "experiment": f"part/probe/round_trip/in_bytes={i}/out_bytes={o}",
            "metric": "round_trip_mean",
            "size_bytes": i,
            "axes": f"out_bytes={o} transport=pipe",
            "unit": "ns",
            "value": i + 1000 * o,
        }
        for i in (64, 128, 512, 1024)
        for o in (64, 256, 512, 1024)
        if (i, o) != (128, 256)
    ]
    (choice,) = round_trips.section(Run("r", normalise(pd.DataFrame(rows)))).items
    (heat,) = choice.items
    assert (heat.rows[:2], heat.columns[:2]) == (["64 B", "256 B"], ["64 B", "128 B"])
    assert heat.values[1, 0] == pytest.approx((64 + 256_000) * 1e-9)
    assert np.isnan(heat.values[1, 1])
    assert (heat.rows_title, heat.columns_title) == ("reply", "request")
