"""One experiment on all ranks: rank 0 says which, each rank runs its part, rank 0 gathers the record.

    rank 0   broadcast order -> run -> gather answers -> record for the journal
    rank r   ------^            run -> own file, answer ------^

The answers of all ranks agree except for their starts and finishes, which stay in their files. MPI cannot start a fresh
process for every launch: launches are rounds of one mpirun, with fresh memory and communicators in the same processes.
The rows say so; run mpirun again and `linkwright compare` the runs to see what a fresh job changes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from linkwright.ask import schedules
from linkwright.ask.question import Collective, Probe, Question, Scheduled, of_json
from linkwright.base.errors import LinkwrightError, MpiError, WaivedError
from linkwright.base.stats.quantile import percentiles
from linkwright.store.record import UNCHECKED, UNWARMED, Ended, Note, Outcome, Record, remarks

from ..clocks import Clocks
from ..process import Sampling
from ..protocol import Launch, Shared
from . import exchange, samples
from .names import NATIVE, NATIVE_IN_PLACE
from .world import World

NO_PROBES = (
    "a probe measures a single host, where waiting ranks would spin; "
    "`linkwright dissect --on threads` on that host measures it"
)
ROUNDS_NOTE = "launches are rounds of one mpirun: fresh memory, the same processes"
_START_NOTES = {
    "window": "ranks start at an agreed time (window)",
    "barrier": "ranks start after a barrier",
}


def launch(world: World, launch: Launch) -> Iterator[Outcome]:
    """The outcomes of one round of the list, at rank 0."""
    end = time.monotonic() + launch.deadline_s
    for question in launch.work:
        if isinstance(question, Probe):
            yield Ended(question.key, launch.number, "waived", NO_PROBES, "not-on-mpi")
    work = [question for question in launch.work if not isinstance(question, Probe)]
    for done, question in enumerate(work):
        left = end - time.monotonic()
        if left <= 0:
            return
        order = {
            "experiment": question.to_json(),
            "folder": str(launch.folder.resolve()) if launch.folder else None,
            "launch": launch.number,
            "sampling": Sampling.of(launch.options, launch.number, launch.share_s(left, work[done:])),
        }
        world.order(order)
        answers = world.comm.gather(_answer(world, order))
        yield _outcome(question, launch.number, [answer for answer in answers if answer is not None])


def share(world: World, work: Callable[[], Shared]) -> Shared:
    """The result of `work` at rank 0, on every rank; the others serve meanwhile. An error is raised on all."""
    if world.rank > 0:
        found = serve(world)
    else:
        try:
            found = work()
        except LinkwrightError as error:
            found = error
        world.order({"shared": found})
    if isinstance(found, LinkwrightError):
        raise found
    return found


def serve(world: World) -> object:
    """Serve rank 0 until it lets this rank go; returns what rank 0 shares, if anything."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # mpirun decides what Ctrl-C means
    while (order := world.next_order()) is not None:
        if "shared" in order:
            return order["shared"]
        if "sleep" in order:
            time.sleep(order["sleep"])
            continue
        if "exchange" in order:
            world.comm.gather(exchange.take_part(world, *order["exchange"]))
            continue
        if "merge" in order:
            world.comm.gather(samples.read(order["merge"], world.rank))
        elif "remove" in order:
            samples.remove(order["remove"], world.rank)
        else:
            world.comm.gather(_answer(world, order))
    return None


def announce_end(run_id: str, root: str) -> None:
    """When mpirun ends the job because a rank died, say what is kept.

    A separate thread waits for the signal, because the main one may never return from MPI.
    """
    signalled, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(wakeup)

    def watch() -> None:
        while os.read(signalled, 1) != bytes([signal.SIGTERM]):
            pass
        message = (
            "linkwright: the MPI job was ended from outside: a rank died, or the job was stopped (mpirun reports "
            "which); all finished work is kept, and "
            f"`mpirun ... linkwright dissect --resume {run_id} --runs {root}` goes on\n"
        )
        os.write(2, message.encode())
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class _Answer:
    """One rank's part of an experiment: what it measured, or the error that ended it."""

    found: dict | None = None
    error: LinkwrightError | None = None
    clock_change: float | None = None
    clock_hz: float | None = None


def _answer(world: World, order: dict) -> _Answer | None:
    """This rank's part of an experiment; None if it has none."""
    question = of_json(order["experiment"])
    members = question.placement or tuple(range(question.ranks))
    if world.rank not in members:
        return None
    clocks = Clocks()
    try:
        found = _run(world, members, question, order["sampling"])
    except MpiError as error:
        _abort(world, f"linkwright: rank {world.rank} on {world.places[world.rank].host}: {error}")
    except LinkwrightError as error:
        return _Answer(error=error)
    except Exception:
        _abort(world, traceback.format_exc())
    if order["folder"]:
        samples.append(order["folder"], world.rank, question.key, order["launch"], members.index(world.rank), found)
    return _Answer(found, clock_change=clocks.change(), clock_hz=clocks.slowest_hz)


def _abort(world: World, message: str) -> None:
    print(message, file=sys.stderr, flush=True)
    world.comm.Abort(1)


def _run(world: World, members: tuple[int, ...], question: Scheduled, sampling: Sampling) -> dict:
    options = {"dtype": question.dtype, "op": question.op, "skew": question.skew, **vars(sampling)}
    native = question.algorithm in (NATIVE, NATIVE_IN_PLACE)
    if native and question.issue:
        raise WaivedError(
            "mpi: waived: the library's own collective has its own issue policy, not `issue "
            f"= {question.issue}`; omit the policy, or use another algorithm"
        )
    schedule = None if native else schedules.of(question)
    if schedule is not None:
        schedule.verify()
    group, communicators = world.group(members)
    try:
        if schedule is not None:
            return group.run(schedule, {**options, "issue": question.issue})
        return group.run_native(
            question.collective,
            question.elements,
            root=question.root,
            in_place=question.algorithm == NATIVE_IN_PLACE,
            **(question.exchange.shape if question.exchange else {}),
            options=options,
        )
    finally:
        for communicator in communicators:
            communicator.Free()


def _outcome(question: Question, number: int, answers: list[_Answer]) -> Outcome:
    """The outcome of a question from the answers of all ranks."""
    key = question.key
    errors = [answer.error for answer in answers if answer.error]
    failures = [error for error in errors if not isinstance(error, WaivedError)]
    if failures:  # the failing rank gives the reason, the others only say that some rank failed
        first = min(failures, key=lambda error: error.code == "exec.rank-failed")
        return Ended.by(first, "failed", key, number)
    if errors:
        return Ended.by(errors[0], "waived", key, number)
    found = answers[0].found
    latencies = np.concatenate([answer.found["message_ns"] for answer in answers])
    traffic = not isinstance(question, Collective)
    return Record(
        experiment=key,
        launch=number,
        values_ns=schedules.rounded(found["slowest_ns"]),
        first_ns=round(found["first_ns"], 2),
        rank_ns=schedules.rounded([_median_ns(answer.found) for answer in answers]) if traffic else (),
        message_ns=schedules.rounded(percentiles(latencies)),
        batch=found["batch"],
        dropped=found["drops"],
        notes=(*_notes(found), *remarks(_START_NOTES[found["sync"]], ROUNDS_NOTE)),
        start=found["sync"],
        residual_ns=round(max(answer.found["residual_ns"] for answer in answers), 2),
        canary_ns=tuple(round(value, 2) for value in found["canary_ns"]),
        clock_change=max((answer.clock_change or 0 for answer in answers), key=abs) or None,
        clock_hz=min((answer.clock_hz for answer in answers if answer.clock_hz), default=None),
    )


def _median_ns(found: dict) -> float:
    """The time of one rank."""
    return float(np.median(found["finish_ns"] - found["start_ns"]))


def _notes(found: dict) -> Iterator[Note]:
    if found["oversubscribed"]:
        yield Note("oversubscribed", f"oversubscribed: {found['ranks']} ranks share fewer processors")
    if not found["warmed_up"]:
        yield UNWARMED
    if not found["checked_elements"]:
        yield UNCHECKED
