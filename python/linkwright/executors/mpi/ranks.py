"""One experiment on all ranks: rank 0 says which, everybody runs its part, rank 0 gathers the record.

    rank 0   broadcast order -> run -> gather answers -> record for the journal
    rank r   ------^            run -> own file, answer ------^

What every rank answers is the same but for its own starts and finishes, which stay in its file. MPI has
no fresh process for every launch: launches are rounds of one mpirun, with fresh memory and communicators
in processes that stay. The rows say so; run mpirun again, and `linkwright compare`, to see what a fresh
job changes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator

from linkwright import _native, schedules
from linkwright.errors import LinkwrightError, MpiError, RankFailedError, WaivedError
from linkwright.suite.clocks import Clocks
from linkwright.suite.experiment import Experiment
from linkwright.suite.launch import MAX_SAMPLES

from . import NATIVE_IN_PLACE, samples
from .world import World

NO_PROBES = (
    "a probe asks one host by itself, and ranks that wait spin beside it; "
    "`linkwright dissect --on threads` on that host measures it"
)
ROUNDS_NOTE = "launches are rounds of one mpirun: fresh memory, the same processes"
_SYNC_NOTES = {
    "window": "ranks start at an agreed time (window)",
    "barrier": "ranks start after a barrier",
}


def launch(
    world: World, folder: str, number: int, work: list[Experiment], deadline_s: float, options
) -> Iterator[dict]:
    """The records of one round of the list, at rank 0."""
    end = time.monotonic() + deadline_s
    for experiment in work:
        if experiment.probe:
            yield {"waived": {"experiment": experiment.key, "launch": number, "reason": NO_PROBES}}
    work = [experiment for experiment in work if not experiment.probe]
    for done, experiment in enumerate(work):
        left = end - time.monotonic()
        if left <= 0:
            return
        name = {"experiment": experiment.key, "launch": number}
        order = {
            "experiment": experiment.to_json(),
            "folder": folder,
            "launch": number,
            "budget_s": left / (len(work) - done),
            "samples": options.samples,
            "warmup": options.warmup,
            "check": options.check,
            "seed": options.seed + number,
        }
        world.comm.bcast(order)
        answers = world.comm.gather(_answer(world, order))
        yield _record(name, [answer for answer in answers if answer is not None])


def serve(world: World) -> None:
    """What every rank but the first does until rank 0 lets it go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # mpirun decides what Ctrl-C means
    while (order := world.comm.bcast(None)) is not None:
        if "merge" in order:
            world.comm.gather(samples.read(order["merge"], world.rank))
        elif "remove" in order:
            samples.remove(order["remove"], world.rank)
        else:
            world.comm.gather(_answer(world, order))


def announce_end(run_id: str, root: str) -> None:
    """When mpirun ends the job because a rank died, say what is kept.

    A thread of its own waits for the signal, because the main one may be inside MPI and never come back.
    """
    signalled, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(wakeup)

    def watch() -> None:
        while os.read(signalled, 1) != bytes([signal.SIGTERM]):
            pass
        message = (
            "linkwright: the MPI job was ended from outside: a rank died, or somebody stopped it (mpirun says which); "
            "everything finished is kept, and "
            f"`mpirun ... linkwright dissect --resume {run_id} --runs {root}` goes on\n"
        )
        os.write(2, message.encode())
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _answer(world: World, order: dict) -> dict | None:
    """This rank's part of an experiment; None where it has none."""
    experiment = Experiment.from_json(order["experiment"])
    members = experiment.placement or tuple(range(experiment.ranks))
    if world.rank not in members:
        return None
    clocks = Clocks()
    try:
        found = _run(world, members, experiment, order)
    except WaivedError as error:
        return {"waived": str(error)}
    except MpiError as error:
        _abort(world, f"linkwright: rank {world.rank} on {world.places[world.rank].host}: {error}")
    except RankFailedError as error:
        return {"failed": str(error), "echo": True}  # the rank in question says why
    except LinkwrightError as error:
        return {"failed": str(error)}
    except Exception:
        _abort(world, traceback.format_exc())
    samples.append(order["folder"], world.rank, experiment.key, order["launch"], members.index(world.rank), found)
    return {"found": found, "clock_change": clocks.change(), "clock_hz": clocks.slowest_hz}


def _abort(world: World, message: str) -> None:
    print(message, file=sys.stderr, flush=True)
    world.comm.Abort(1)


def _run(world: World, members: tuple[int, ...], experiment: Experiment, order: dict) -> dict:
    options = {
        "dtype": experiment.dtype,
        "op": experiment.op,
        "skew": experiment.skew,
        "samples": order["samples"] or MAX_SAMPLES,
        "warmup_at_most": order["warmup"],
        "budget_s": order["budget_s"],
        "settle_within": None if order["samples"] else _native.measurement.SETTLED_WITHIN,
        "check": order["check"],
        "seed": order["seed"],
    }
    native = experiment.algorithm.startswith("mpi-native")
    schedule = None if native else schedules.of(experiment)
    if schedule is not None:
        schedule.verify()
    group, communicators = world.group(members)
    try:
        if schedule is not None:
            return group.run(schedule, options)
        return group.run_native(
            experiment.collective,
            experiment.elements,
            root=experiment.root,
            in_place=experiment.algorithm == NATIVE_IN_PLACE,
            options=options,
        )
    finally:
        for communicator in communicators:
            communicator.Free()


def _record(name: dict, answers: list[dict]) -> dict:
    """The record of the journal from the answers of all ranks."""
    failures = [answer for answer in answers if "failed" in answer]
    if failures:
        first = min(failures, key=lambda answer: answer.get("echo", False))
        return {"failed": {**name, "reason": first["failed"]}}
    waived = next((answer["waived"] for answer in answers if "waived" in answer), None)
    if waived is not None:
        return {"waived": {**name, "reason": waived}}
    found = answers[0]["found"]
    return {
        "samples": {
            **name,
            "values_ns": schedules.rounded(found["slowest_ns"]),
            "first_ns": round(found["first_ns"], 2),
            "batch": found["batch"],
            "dropped": found["drops"],
            "notes": [*_notes(found), _SYNC_NOTES[found["sync"]], ROUNDS_NOTE],
            "sync": found["sync"],
            "residual_ns": round(max(answer["found"]["residual_ns"] for answer in answers), 2),
            "probe_ns": [round(value, 2) for value in found["probe_ns"]],
            "clock_change": max((answer["clock_change"] or 0 for answer in answers), key=abs) or None,
            "clock_hz": min((answer["clock_hz"] for answer in answers if answer["clock_hz"]), default=None),
        }
    }


def _notes(found: dict) -> Iterator[str]:
    if found["oversubscribed"]:
        yield f"oversubscribed: {found['ranks']} ranks share fewer processors"
    if not found["warmed_up"]:
        yield "warm-up ended before its batches agreed"
    if not found["checked_elements"]:
        yield "data not checked"
