"""`linkwright predict training_step`: steps of several ranks that were measured, predicted from one rank."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.base.units import format_time
from linkwright.cli import options
from linkwright.cli.output import print_json, print_table
from linkwright.cli.training_table import say


@click.command(cls=options.Command, name="predict training_step")
@click.option("--run", "name", default="latest", show_default=True, metavar="RUN", help="A run of training_step.")
@options.on(
    "machine", help="Simulate messages on this described machine; default: LogGP of the exchanges that the run timed."
)
@options.variant
@click.option("--algorithm", "-a", metavar="NAME", help="Allreduce algorithm, or `best`; default: ring.")
@options.as_json
@options.runs
def command(
    name: str, machine: str | None, variant: object, algorithm: str | None, as_json: bool, root_folder: Path
) -> None:
    """Predict the steps of several ranks in a run of `linkwright run training_step --ranks 1,2` from those of one
    rank and simulated messages, and compare them with those measured. A rank is called late if even its quick steps are
    longer than those of another, by a tenth of a step. docs/predict.md explains it.

    \b
    linkwright run training_step --model resnet,mlp --ranks 1,2 --axis neighbours=0,1 --time-budget 5m
    linkwright predict training_step --run latest
    """
    from linkwright import machines
    from linkwright.advise.predict.training import measured
    from linkwright.store import run as runs

    described = machines.load(machine, variant) if machine else None
    own = options.own_names("allreduce", algorithm) if algorithm else None
    found = measured.compare(runs.find(root_folder, name), described, own)
    if as_json:
        print_json(found.as_dict())
        return
    say(f"{found.run}: measured on {found.measured_on}; compute of one rank as measured, messages by {found.messages}")
    if apart := sorted({one.of.ranks - 1 for one in found.steps if one.neighbours < one.of.ranks - 1}):
        most = ",".join(map(str, (0, *apart)))
        say(f"ranks slow each other while they compute, which is not in it; `--axis neighbours={most}` measures it")
    rows = []
    for one in found.steps:
        predicted = [format_time(ns) for ns in (one.step.time_ns, *one.parts_ns.values())]
        seen = [format_time(one.of.metrics[part]) for part in ("time", *measured.PARTS)]
        rows.append([one.of.model, str(one.of.batch), str(one.of.ranks), *predicted, f"{one.error:+.1%}"])
        rows.append(["  measured", "", "", *seen, ""])
    print_table(["model", "batch", "ranks", "step", "compute", "waiting", "messages", "error"], rows)
    for one in found.steps:
        if one.late_rank is not None:
            words = f"{one.of.model} on {one.of.ranks} ranks: rank {one.late_rank} is late"
            say(f"{words} by {format_time(one.of.metrics['late_by'])} in each step")
    for row in found.without_value:
        say(f"{row['status']}: {row['experiment']}: {row['reason']}")
    if any("disturbed" in (one.of.flags or "").split(",") for one in found.steps):
        say("some rows were disturbed by other programs in every launch; stop these and measure again")
