"""`linkwright probe NAME`: what schedules cannot express, measured here or modelled on a described machine."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options


@click.command(name="probe")
@click.argument("name", shell_complete=options.completed("probes"))
@click.option(
    "--on", shell_complete=options.completed("executors", "machines"), default="threads", show_default=True,
    metavar="A,B", help="Executors that measure (threads, cuda) and machines that are modelled.",
)  # fmt: skip
@options.variant
@click.option(
    "--axis", "-x", "stated", multiple=True, metavar="AXIS=A,B",
    help="Values of one axis, or a range of sizes such as `working_set=4K..64M`; may be repeated.",
)  # fmt: skip
@click.option(
    "--ranks", "-p", type=options.RANKS,
    help="Take pairs, and `all` of an axis, from the first N endpoints; default: all, or 64.",
)  # fmt: skip
@click.option("--every-pair", is_flag=True, help="Measure every ordered pair of endpoints.")
@options.sampling
@options.time_budget
@options.target
@options.watts
@options.seed
@options.view
@options.outputs
@options.runs
def command(
    name: str,
    stated: tuple[str, ...],
    every_pair: bool,
    time_budget: float,
    outputs: tuple[Path, ...],
    root_folder: Path,
    **asked: object,
) -> int:
    """Run the probe NAME for all values of its axes.

    `linkwright describe NAME` names the axes and the results. Each value is measured in at least six launches, each a
    fresh process. A modelled machine answers exactly, or says why it has no answer.
    """
    from linkwright import probes
    from linkwright.cli import sessions
    from linkwright.suite.load import one_part
    from linkwright.suite.session import Request

    probe = probes.find(name)
    axes = dict(_axis(probe, text) for text in stated)
    options.View.current().axes = tuple(axes)
    suite = one_part(
        "probe",
        probe.summary,
        part=probe.key,  # as the parts of a suite are called, so that both runs compare
        probe=probe.key,
        axes=axes or None,
        placement="every_pair" if every_pair else None,
    )
    return sessions.start(root_folder, suite, Request(budget_s=time_budget, **asked), outputs)


def _axis(probe: object, text: str) -> tuple[str, object]:
    """`working_set=4K,64K` or `working_set=4K..64M`, as a suite writes it."""
    from linkwright.errors import UsageError

    key, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"--axis {text}: write an axis and its values, such as `{probe.axes[0].key}=4K,64K`")
    probe.axis(key)
    low, dots, high = values.partition("..")
    return key, {"min": low, "max": high, "factor": 2} if dots else tuple(values.split(","))
