"""`linkwright predict APP --on MACHINE`: how long your own program would take on a described machine."""

from __future__ import annotations

import importlib

import click

from linkwright.cli import options
from linkwright.cli.predict_training import training_options
from linkwright.errors import UsageError

# Kind of program -> module that answers and prints.
VIEWS = {
    "supersteps": "linkwright.cli.predict_supersteps",
    "training": "linkwright.cli.predict_training",
}


@click.command(name="predict")
@click.argument("app", shell_complete=options.completed("workloads"))
@click.option(
    "--on", "machines", required=True, metavar="MACHINE,..", shell_complete=options.completed("machines"),
    help="Described machines, or machine files; the first is compared with each of the others.",
)  # fmt: skip
@training_options
@options.as_json
def command(app: str, machines: str, as_json: bool, **asked: object) -> int:
    """Forecast the program APP on described machines.

    APP is a TOML file or a shipped network (`linkwright list workloads`), of one of two kinds that docs/predict.md
    explains. For supersteps, the file states what every endpoint computes, holds and sends. For training, it states the
    layers of a network, and the options below say how to train it. Messages are simulated on the machine's fabric.
    The exit status is 1 if the program does not fit into the memory of an endpoint.
    """
    from linkwright import predict
    from linkwright.machines import load

    names = [name.strip() for name in machines.split(",")]
    if not all(names):
        raise UsageError(f"--on `{machines}` has an empty name; write machines as `A,B`")
    found = predict.read(predict.find(app))
    return importlib.import_module(VIEWS[found.kind]).answer(found, [load(name) for name in names], asked, as_json)
