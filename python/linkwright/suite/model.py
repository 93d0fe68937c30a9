"""Simulating a list of experiments on all cores; every number is exact, so the order does not matter."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from linkwright import probes, schedules
from linkwright.errors import LinkwrightError, NoRoomError, TooFewEndpointsError, WaivedError

from . import rows
from .experiment import Experiment
from .targets import Target


def model(
    target: Target,
    experiments: Sequence[Experiment],
    metrics: Mapping[str, Sequence[str]],
    run: str,
    suite: str,
    seed: int,
    known: Mapping[str, list[rows.Row]],
) -> Iterator[tuple[Experiment, list[rows.Row]]]:
    """The rows of each experiment, in order; `known` holds those that need no second simulation."""
    context = target.context(run, suite)

    def one(experiment: Experiment) -> list[rows.Row]:
        return simulate_rows(context, target, experiment, metrics[experiment.part], seed)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        waiting = [(e, None if e.key in known else pool.submit(one, e)) for e in experiments]
        for experiment, future in waiting:
            yield experiment, known[experiment.key] if future is None else future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def simulate_rows(
    context: rows.Context, target: Target, experiment: Experiment, metrics: Sequence[str], seed: int
) -> list[rows.Row]:
    """The rows of one modelled experiment; an error becomes a row that says why."""
    try:
        if experiment.probe:
            answer = probes.model(target.machine, experiment.algorithm, dict(experiment.axes or ()))
            return rows.of_modelled_probe(context, experiment, answer)
        schedule = schedules.lowered(schedules.of(experiment), target.machine, experiment.path)
        found = schedules.simulate(schedule, target.machine, on_sample(target, experiment), seed=seed)
    except (WaivedError, TooFewEndpointsError, NoRoomError) as error:
        return rows.without_value(context, experiment, "waived", str(error))
    except LinkwrightError as error:
        return rows.without_value(context, experiment, "failed", str(error))
    return rows.of_simulation(context, experiment, metrics, found)


def on_sample(target: Target, experiment: Experiment) -> Experiment:
    """The experiment on the endpoints that stand for the machine; its rows name ranks all the same."""
    if target.sample is None:
        return experiment
    ranks = experiment.placement or range(experiment.ranks)
    return dataclasses.replace(experiment, placement=tuple(target.sample[rank] for rank in ranks))


def known_rows(records: list[dict], target: Target) -> dict[str, list[rows.Row]]:
    """Rows of this target that an earlier part of the run has in its journal."""
    known: dict[str, list[rows.Row]] = {}
    for row in (row for record in records for row in record.get("rows", ())):
        if (row["machine"], row["executor"]) == (target.machine_name, target.executor):
            known.setdefault(row["experiment"], []).append(row)
    return known
