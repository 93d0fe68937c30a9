"""`linkwright predict APP --on MACHINE`: how long your own program would take on a described machine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.cli import options
from linkwright.cli.predict_shown import Shown
from linkwright.cli.predict_training import training_options

if TYPE_CHECKING:
    from linkwright.advise.predict import Program
    from linkwright.machines import Variant

# Kind of program -> module that answers and prints.
VIEWS = {
    "supersteps": "linkwright.cli.predict_supersteps",
    "training": "linkwright.cli.predict_training",
    "trace": "linkwright.cli.predict_trace",
    "transformer": "linkwright.cli.predict_llm",
}


class Predict(options.Command):
    """`predict APP`; `predict llm MODEL` and `predict training_step` with options of their own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Hand over to a command of its own where that is the first word; name what only `llm` takes."""
        if args[:1] == ["training_step"]:
            from linkwright.cli import predict_measured

            return predict_measured.command.make_context(f"{info_name} training_step", args[1:], parent, **extra)
        if args[:1] != ["llm"]:
            if seats := next((word for word in args if word.startswith(("--ranks-per-node", "--place"))), None):
                raise UsageError(
                    f"{seats}: a program states its own endpoints, the first ones of a machine; omit it (`predict llm` "
                    "takes it)"
                )
            return super().make_context(info_name, args, parent, **extra)
        from linkwright.cli import predict_llm

        return predict_llm.command.make_context(f"{info_name} llm", args[1:], parent, **extra)


@click.command(name="predict", cls=Predict)
@click.argument("apps", nargs=-1, required=True, metavar="APP...", shell_complete=options.completed("workloads"))
@options.on(
    "machines", required=True, metavar="MACHINE,..",
    help="Described machines, or machine files; the first is compared with each of the others.",
)  # fmt: skip
@options.variant
@training_options
@click.option("--wide", is_flag=True, help="Show all columns, even if lines exceed 80 characters.")
@options.page(
    "--report", help="Also write the forecast as a page: where the time goes, a chart, the tables, the assumptions."
)
@options.as_json
def command(
    apps: tuple[str, ...],
    machines: str,
    variant: Variant,
    wide: bool,
    report: Path | None,
    as_json: bool,
    **asked: object,
) -> int:
    """APP is a TOML file or a shipped network (`linkwright list workloads`), of one of three kinds that docs/predict.md
    explains. For supersteps, the file states what every endpoint computes, holds and sends. For training, it states the
    layers of a network, and the options below say how to train it. For a trace, it names Chakra execution traces of a
    recorded step; the traces themselves, one for each rank, also serve as APP: `linkwright predict step.*.et --on A`.
    `linkwright predict llm MODEL` forecasts a large language model, with options of its own: `predict llm --help`.
    `linkwright predict training_step` compares steps that `linkwright run training_step` measured with predicted ones.
    Messages are simulated on the machine's fabric. The exit status is 1 if a machine cannot hold the program.
    """
    from linkwright.machines import load

    names = [name.strip() for name in machines.split(",")]
    if not all(names):
        raise UsageError(f"--on `{machines}` contains an empty name; write machines as `A,B`")
    if report is not None:
        from linkwright.base.files import check_page

        check_page(report, "--report")
    found = _program(apps)
    shown = Shown(as_json, wide, report)
    return importlib.import_module(VIEWS[found.kind]).answer(
        found, [load(name, variant) for name in names], asked, shown
    )


def _program(apps: tuple[str, ...]) -> Program:
    """The program in a file, or of the traces of one step."""
    from linkwright.advise import predict

    traces = [app for app in apps if predict.is_trace(app)]
    if len(traces) == len(apps):
        from linkwright.advise.predict import trace

        return trace.program_of(apps)
    if traces or len(apps) > 1:
        other = next(app for app in apps if app not in traces)
        raise UsageError(f"`{other}` is not a trace; give one program, or the traces of one step (`.et` or `.json`)")
    return predict.read(predict.find(apps[0]))
