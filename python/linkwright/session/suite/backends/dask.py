"""The backend `dask`: processes of this machine, or workers of a Dask cluster on any number of them.

    this process                    scheduler                    worker ... worker
      plan -> tasks  ---------------->  queue  ----------------->  simulate
      journal <- rows  <----------------------------------------  rows

A task is a few experiments in the order of the plan, with the text of the machine file, so workers need linkwright
but no files. Dask gives the tasks of a lost worker to another one. If a task loses several workers (by default four),
Dask gives it up; its experiments run again at the end, alone and one at a time, so that only the one to blame fails.
Rows go to the journal of the run as tasks end: after Ctrl-C or the end of the scheduler, a resumed run repeats only
what is missing.

All workers have the version of linkwright that this process has, or nothing runs: another version may give other
numbers under the same name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from linkwright.ask.question import Question
from linkwright.base.errors import BackendError, UsageError
from linkwright.base.extras import install
from linkwright.executors import ModelledTarget, Recipe, described
from linkwright.session.suite import rows
from linkwright.session.suite.context import Context
from linkwright.session.suite.model import Finished, Work, simulate

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

ENTRY = {
    "key": "dask",
    "summary": "processes of this machine, or the workers of a Dask cluster",
    "description": __doc__.partition("\n\n")[2].strip(),
    "needs": "the extra `linkwright[dask]`; on other machines also a scheduler and workers with this linkwright",
}

# The most tasks that a machine's experiments become without --grain: a task costs the scheduler a millisecond.
MOST_TASKS = 512
# Dask logs a traceback for every lost worker; our own messages say what matters.
SILENT = logging.CRITICAL + 1
# Only processes of this machine reach the cluster that this process starts.
LOOPBACK = "127.0.0.1"
# How long a scheduler and its first worker may take to answer, and to accept a connection.
PATIENCE_S = 15
CONNECTION_S = 5
# How long Dask tries to fetch results from a worker of this machine before it has them made again.
LOST_AFTER = "5s"


@dataclass(frozen=True)
class Task:
    """Some experiments and what they need, as plain values."""

    version: str
    recipe: Recipe
    context: Context
    metrics: Mapping[str, Sequence[str]]
    seed: int
    questions: tuple[Question, ...]


def run_task(task: Task) -> list[Finished]:
    """The rows of a task's experiments; this runs on a worker."""
    if task.version != version():  # a worker that joined during the sweep
        from distributed import get_worker

        raise BackendError(_stranger(get_worker().address, version(), task.version))
    work = Work(_target(task.recipe), task.context, task.metrics, task.seed)
    return list(simulate(work, task.questions, jobs=1))


@functools.lru_cache(maxsize=4)
def _target(recipe: Recipe) -> ModelledTarget:
    """Cached, because the file of a machine with thousands of tiles takes longer to read than a small simulation."""
    return described(recipe)


def version() -> str:
    """The version of linkwright that is installed here."""
    return importlib.metadata.version("linkwright")


class Dask:
    """Workers of the scheduler at `scheduler`, or `jobs` processes of this machine without one."""

    def __init__(self, scheduler: str | None = None, jobs: int = 0, grain: int | None = None):
        self.command = "dissect --backend dask" + (f" --scheduler {scheduler}" if scheduler else "")
        self.note = ""
        self._scheduler, self._jobs, self._grain = scheduler, jobs, grain
        self._client: Client | None = None
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Dask:
        with contextlib.ExitStack() as opened:
            self._client = opened.enter_context(_connected(self._scheduler, self._jobs))
            _refuse_strangers(self._client)
            self._closing = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def about(self) -> dict[str, object]:
        """Scheduler and workers, as they are now."""
        addresses = sorted(self._client.nthreads())
        return {"key": "dask", "scheduler": self._scheduler, "workers": addresses, "grain": self._grain}

    def run(self, work: Work, questions: Sequence[Question]) -> Iterator[Finished]:
        """The rows of each experiment, task by task as they end; those whose task killed workers come last."""
        grain = self._grain or -(-len(questions) // MOST_TASKS) or 1
        batches = [tuple(questions[i : i + grain]) for i in range(0, len(questions), grain)]
        asked = {}
        for batch in batches:
            future = self._submit(work, batch)
            asked[future.key] = (future, batch)
        suspects: list[Question] = []
        try:
            for future, result in self._ended([future for future, _ in asked.values()]):
                _, batch = asked.pop(future.key)
                if _killed(future):
                    suspects += batch
                else:
                    yield from self._found(future, result)
                self.note = f"; {len(batches) - len(asked)} of {len(batches)} tasks, {self._workers()} workers"
        finally:
            with contextlib.suppress(Exception):  # of a scheduler that is gone
                self._client.cancel([future for future, _ in asked.values()])
        for question in suspects:
            yield from self._alone(work, question)

    def _alone(self, work: Work, question: Question) -> list[Finished]:
        """Run an experiment whose task killed workers alone, so that nothing else can be to blame."""
        ((future, result),) = self._ended([self._submit(work, (question,))])
        if not _killed(future):
            return self._found(future, result)
        reason = "every worker that ran it was killed, probably out of memory; give workers more memory"
        return [(question, rows.without_value(work.context, question, "failed", reason, "worker-killed"))]

    def _submit(self, work: Work, batch: tuple[Question, ...]) -> Future:
        task = Task(version(), work.target.recipe, work.context, work.metrics, work.seed, batch)
        return self._client.submit(run_task, task, pure=False)

    def _ended(self, futures: list[Future]) -> Iterator[tuple[Future, list[Finished]]]:
        """Each future as it ends, with its result; results on a lost worker hold up no others."""
        from distributed import as_completed

        return iter(as_completed(futures, loop=self._client.loop, with_results=True, raise_errors=False))

    def _found(self, future: Future, result: list[Finished]) -> list[Finished]:
        """The rows of a task that has ended; raises if it has none."""
        if future.status == "cancelled":
            where = self._scheduler or "of this machine"
            raise BackendError(f"--backend dask: the scheduler {where} is gone; start it again")
        error = future.exception()
        if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("linkwright"):
            raise BackendError(_stranger("of the cluster", None, version())) from error
        if error:
            raise error
        return result

    def _workers(self) -> int:
        with contextlib.suppress(OSError):
            return len(self._client.nthreads())
        return 0


def _killed(future: Future) -> bool:
    from distributed import KilledWorker

    return future.status == "error" and isinstance(future.exception(), KilledWorker)


@contextlib.contextmanager
def _connected(scheduler: str | None, jobs: int) -> Iterator[Client]:
    """A client of the scheduler, or of a cluster of processes that ends with it."""
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            f"--backend dask: the package `distributed` is missing; {install('dask')} installs it; or omit --backend"
        ) from error
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(SILENT)
    where = re.fullmatch(r"(?:(\w+)://)?(.+):(\d+)/?", scheduler or "")
    if scheduler is not None and not where:
        raise UsageError(f"--scheduler {scheduler}: is not an address; write it as `tcp://HOST:PORT`")
    with contextlib.ExitStack() as opened:
        cluster = scheduler or opened.enter_context(_processes(jobs))
        try:
            if where and where[1] in (None, "tcp", "tls"):  # Dask would retry even if refused
                socket.create_connection((where[2].strip("[]"), int(where[3])), CONNECTION_S).close()
            client = opened.enter_context(distributed.Client(cluster, timeout=PATIENCE_S, set_as_default=False))
        except (OSError, OverflowError, ValueError) as error:
            raise BackendError(
                f"--scheduler {scheduler}: no Dask scheduler answers there; start one with `dask scheduler`, "
                "or omit --scheduler to use processes of this machine"
            ) from error
        except TypeError as error:  # Dask's, for an address of TLS
            raise BackendError(
                f"--scheduler {scheduler}: Dask is configured with no certificate for it; set `distributed.comm.tls` "
                "in its configuration"
            ) from error
        try:
            client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError as error:
            raise BackendError(
                f"--scheduler {scheduler}: it has no workers; start some with `dask worker {scheduler}`"
            ) from error
        yield client


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[LocalCluster]:
    """A scheduler in this process, and workers of one thread each: their rows are made in Python."""
    from dask import config
    from distributed import LocalCluster

    with config.set({"distributed.comm.timeouts.connect": LOST_AFTER}), _safe_path(), _private() as security:
        with _deaf_to_ctrl_c():
            cluster = LocalCluster(
                **security,
                n_workers=jobs or None,
                threads_per_worker=1,
                host=LOOPBACK,
                # A dashboard asks for no password; even without one, the default address is on all interfaces.
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=None,
                scheduler_kwargs={"dashboard": False},
                silence_logs=SILENT,
            )
        with cluster:
            yield cluster


@contextlib.contextmanager
def _private() -> Iterator[dict[str, object]]:
    """Options by which only processes with the key of this sweep connect, not other users of this machine.

    The key lies in a folder that only this user can read. Without the program `openssl` there is none.
    """
    from distributed.security import Security

    if not (openssl := shutil.which("openssl")):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="linkwright-") as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365"]
        words += ["-subj", "/CN=linkwright", "-keyout", key, "-out", certificate]
        subprocess.run([openssl, *words], check=True, capture_output=True)
        roles = {f"tls_{role}_{what}": path for role in ("client", "scheduler", "worker")
                 for what, path in (("key", key), ("cert", certificate))}  # fmt: skip
        security = Security(tls_ca_file=certificate, require_encryption=True, **roles)
        yield {"protocol": "tls://", "security": security}


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Processes that begin here import nothing from the current folder: `python -c` would put it first."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Keep Ctrl-C from processes and threads that begin here: a terminal signals all, but only one has to act."""
    resource_tracker.ensure_running()  # started later, it would unblock Ctrl-C for its thread
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _refuse_strangers(client: Client) -> None:
    """Refuse workers with another version of linkwright, or with none."""

    def installed() -> str | None:  # sent by value: a worker without linkwright can run it
        try:
            return importlib.metadata.version("linkwright")
        except importlib.metadata.PackageNotFoundError:
            return None

    for address, found in sorted(client.run(installed).items()):
        if found != version():
            raise BackendError(_stranger(address, found, version()))


def _stranger(address: str, found: str | None, wanted: str) -> str:
    has = f"linkwright {found}" if found else "no linkwright"
    return f"worker {address} has {has}, this sweep is of {wanted}; install {wanted} on all workers, or stop that one"
