"""`linkwright plan SUBJECT`: advice on one choice, from a model or from measurements."""

from __future__ import annotations

import click

from linkwright.cli import plan_cost, plan_experts, plan_io, plan_order

# One file per subject, named after it; the computation is the module of that name in linkwright.advise.plans.
SUBJECTS = (plan_io.command, plan_cost.command, plan_order.command, plan_experts.command)


@click.group(name="plan", subcommand_metavar="SUBJECT [OPTIONS]")
def command() -> None:
    """Each SUBJECT is one choice to make on a machine. It compares models or measurements that exist, and measures
    nothing itself.
    """


for subject in SUBJECTS:
    command.add_command(subject)
