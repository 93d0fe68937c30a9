"""From a run to a model; the executor says which kind of machine it ran on (`Executor.fit_model`).

    messages    processes or queues that send messages: `loggp`, with a level for ranks of one host   (`host`)
    caches      threads that share memory: `coherent` caches                                          (`shared`)
    chip        SMs that share an L2                                                                  (`chip`)

`messages` also serves if the environment of a run lacks what another model needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from linkwright import executors
from linkwright.base.errors import UsageError
from linkwright.store.run import Run

from . import chip, hierarchy, host, network, shared
from .points import Point, measured_rows
from .protocol import Protocol

Model = host.Model | shared.Shared | chip.Chip | network.NetworkModel


def fit(run: Run, points: Sequence[Point], name: str, of: str) -> tuple[Model, Protocol]:
    """The model of the machine called `of` in `run`, and how its times were taken."""
    executor, taken = _executor(run, of), protocol(run, of)
    environment = run.environment
    about = environment.get(executor.key, {})
    model = MODELS[executor.fit_model](points, name, of, run.id, environment, about, taken)
    return model or _messages(points, name, of, run.id, environment, about, taken), taken


def protocol(run: Run, of: str) -> Protocol:
    """How the times of the machine called `of` were taken."""
    return Protocol(_executor(run, of).starts_together)


def _executor(run: Run, of: str):
    key = measured_rows(run, of)[0]["executor"]
    executor = executors.find(key)
    if executor is None:
        raise UsageError(f"{run.folder}: measured by the executor `{key}`; install the package that provides it")
    return executor


def _messages(points, name, of, run_id, environment: Mapping, about: Mapping, protocol) -> Model:
    hosts = hierarchy.of_hosts([rank["host"] for rank in about.get("ranks", ())])
    return host.fit(points, name, of, run_id, hosts)


def _caches(points, name, of, run_id, environment: Mapping, about: Mapping, protocol) -> Model | None:
    levels = hierarchy.of_host(environment)
    return shared.fit(points, host.slug(name), of, run_id, levels, protocol) if levels.caches else None


def _chip(points, name, of, run_id, environment: Mapping, about: Mapping, protocol) -> Model | None:
    l2_bytes = about.get("l2_bytes")
    return chip.fit(points, host.slug(name), of, run_id, l2_bytes, protocol) if l2_bytes else None


MODELS: dict[str, Callable[..., Model | None]] = {"messages": _messages, "caches": _caches, "chip": _chip}
