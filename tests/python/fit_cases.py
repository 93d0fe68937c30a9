"""Shared by the tests of `linkwright fit`: points of an invented machine, judged like measured ones, and a run."""

import numpy as np

from linkwright.advise.fit import points
from linkwright.advise.fit.points import Point
from linkwright.advise.fit.regimes import Fit
from linkwright.ask.question import Collective, Pattern
from linkwright.store import run as runs
from linkwright.store import schema


def constant(value: float) -> Fit:
    return Fit(value, value, value)


def swept(ranks, others, trips, rows, collectives, algorithms):
    """Ping-pongs and messages in a row of rank 0 with `others`, and collectives on so many `ranks`, each by size."""
    for other in others:
        pair = {"placement": (0, other)}
        yield from (Pattern("latency_by_size", "ping_pong", 2, size, "u8", **pair) for size in trips)
        yield from (Pattern("bandwidth", "pairs", 2, size, "u8", messages=16, **pair) for size in rows)
    for count in ranks:
        for key in (*points.SEEN, *algorithms):
            collective, algorithm = key.split("/")
            op = "sum" if "reduce" in collective else None
            for size in (0,) if collective == "barrier" else collectives:
                yield Collective("collectives", algorithm, count, size, "f32", op=op, collective=collective)


def like(model, protocol):
    """Times of a machine exactly like the model."""
    machine = model.machine()
    return lambda experiment: protocol.time_ns(experiment, machine, model.release_ns, model.kind)


def measured(time_of, experiments, noise=0.0, seed=1) -> list[Point]:
    """What a machine whose experiments take `time_of` would have given."""
    drawn, found, sizes = np.random.default_rng(seed), [], {}
    for experiment in experiments:
        time_ns = time_of(experiment) * drawn.lognormal(0, noise)
        found.append(Point(experiment, time_ns, max(0.02, noise) * time_ns, seen=False))
        sizes.setdefault(found[-1].sweep, []).append(experiment.size_bytes)
    return [points._judged(point, sorted(sizes[point.sweep])) for point in found]


def stored(root, data, machine, executor, about=None, records=(), value=lambda point: point.time_ns):
    """A finished run that holds these points; with `records` of its samples, or else with intervals of 2 %."""
    made = runs.create(root, "fit", "", {}, about or {})
    rows = []
    for point in data:
        ns = value(point)
        interval = {} if records else {"ci_low": 0.98 * ns, "ci_high": 1.02 * ns}
        rows.append(schema.row(
            run=made.id, machine=machine, executor=executor, metric="time", value=ns, unit="ns", status="ok",
            placement="topology", **interval, **point.question.columns(),
        ))  # fmt: skip
    made.write_results(rows, runs.samples_table(made, records))
    made.mark("done")
    return made
