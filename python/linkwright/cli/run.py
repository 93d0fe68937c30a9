"""`linkwright run COLLECTIVE --on threads`: execute schedules on hardware, checked and timed."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from linkwright.cli import exchanges, options

_SIZES = ("dtype", "min_bytes", "max_bytes", "factor", "size_list")


@click.command(cls=options.Command, name="run")
@click.argument(
    "what", metavar="COLLECTIVE[/ALGORITHM]|pattern/NAME|probe/NAME|SOURCE", shell_complete=options.runnable
)
@click.option(
    "--on", shell_complete=options.completed("executors", "machines"), default="threads", show_default=True,
    metavar="A,B", help="Executors to run on; described machines among them are simulated.",
)  # fmt: skip
@options.seated
@options.shape
@options.sizes
@options.packed_data
@options.sampling
@click.option(
    "-c", "--check", type=click.IntRange(0, 1), default=1, show_default=True,
    help="Compare all data with the exact result.",
)  # fmt: skip
@options.traffic
@click.option("--path", metavar="NAME", help="Path of the executor (`describe metalium`) or of the described machine.")
@exchanges.stated
@options.skew
@click.option(
    "--axis", "-x", "stated", multiple=True, metavar="AXIS=A,B",
    help="Values of one axis of a probe, or a range of sizes such as `working_set=4K..64M`; may be repeated.",
)  # fmt: skip
@click.option("--model", metavar="A,B", help="For training_step: what is trained; `describe training_step` names them.")
@click.option("--every-pair", is_flag=True, help="For a probe: measure every ordered pair of endpoints.")
@options.time_budget
@options.target
@options.watts
@options.seed
@click.option("--slurm", is_flag=True, help="Print a Slurm job script that runs this over MPI; needs --ranks.")
@options.view
@options.outputs
@options.runs
def command(
    what: str,
    on: str,
    algorithm: str,
    root_folder: Path,
    outputs: tuple[Path, ...],
    exchange: exchanges.Stated,
    **asked: object,
) -> int:
    """A SOURCE is your own schedule: a file (own.lw, a plan of another tool, `-`), or a Python function
    (own.py:bucket, package:bucket) that returns one for the requested ranks and size.

    A probe measures what schedules cannot express, such as memory latency, for all values of its axes;
    `linkwright describe NAME` names them and the results. Pairs, and `all` of an axis, are taken from the first --ranks
    endpoints; by default from all, or 64.

    On `threads` the ranks are threads of this machine. On `mpi` they are the processes of
    `mpirun -np 4 linkwright run allreduce --on mpi`, and `mpi-native` is the library's own algorithm.
    On `cuda` they are SMs of a GPU, and `cuda-native` is an allreduce by barriers of the whole grid. On `gpus`
    they are the GPUs of this node, and `nccl` is NCCL's own. `-a own` stands for each of these. On `metalium` they
    are cores of a Tenstorrent chip.

    A described machine in --on is simulated, not measured, into the same run folder: `--on threads,wormhole-n150` puts
    both side by side. Its values are exact, so they have no interval and need no time budget.

    Each size and algorithm is measured in at least six launches, each a fresh process. The time is that of the slowest
    rank, as the median over launches with its 95 % interval. Data are checked against the exact answer outside the
    timed region; a wrong answer yields no number.
    """
    from linkwright.cli import probe, sessions, traffic
    from linkwright.session.suite.load import one_part
    from linkwright.session.suite.session import Request

    if probe.is_meant(what):
        return probe.start(what, asked | {"on": on}, outputs, root_folder)
    probe.refuse_options()
    subject = options.subject(what, algorithm, patterns=True)
    dealt = exchange.of(subject, asked["dtype"], asked["seed"])
    if dealt:
        asked |= {"dtype": dealt.dtype, "ranks": asked["ranks"] or dealt.ranks}
    most = subject.most_ranks(asked["ranks"])
    if asked["slurm"]:
        from linkwright.executors.mpi import slurm

        click.echo(slurm.script(sys.argv[1:], on, most, asked["time_budget"]), nl=False)
        return 0
    suite = one_part(
        "run",
        subject.title,
        **subject.axes,
        **traffic.axes(subject, asked),
        sizes=(dealt.sizes if dealt else subject.sizes(*(asked[name] for name in _SIZES))) or None,
        exchange=dealt.axis if dealt else None,
        issue=asked["issue"],
        path=asked["path"],
        skew=asked["skew"],
    )
    told = ("grid", "seed", "samples", "warmup", "target", "variant")
    request = Request(
        on=on,
        budget_s=asked["time_budget"],
        ranks=most,
        check=bool(asked["check"]),
        **{name: asked[name] for name in told},
    )
    return sessions.start(root_folder, suite, request, outputs)
