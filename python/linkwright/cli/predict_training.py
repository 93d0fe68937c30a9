"""Training: its options, and the answer as a table, JSON or a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import NS_PER_S
from linkwright.cli import options, training_table, values
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.advise.predict import Program
    from linkwright.cli.predict_shown import Shown


def _positive(text: str) -> float:
    """8.8e12 from its text."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise UsageError(f"`{text}` is not a number above 0; write one such as `8.8e12`")
    return number


_COUNTS = values.pattern(
    "N,..", r"[1-9]\d{0,8}(?:,[1-9]\d{0,8})*", "is not a list of counts; write whole numbers such as `1,2,4,8`",
    lambda match: list(dict.fromkeys(int(part) for part in match[0].split(","))),
)  # fmt: skip
training_options = options.together(
    click.option("--depth", type=click.IntRange(1), help="Training: depth of a network whose file leaves it open."),
    click.option("--batch", type=_COUNTS, help="Training: batches; default: those of the network."),
    click.option("--gpus", type=_COUNTS, help="Training: numbers of devices; default: those of the network."),
    click.option(
        "--scaling", type=click.Choice(["strong", "weak"]),
        help="Training: split a batch over the devices (strong, default), or give each device one (weak).",
    ),
    click.option(
        "--rate", metavar="RATE",
        help="Training: samples per second measured on one device, `250`, or by local batch, `16:210,64:250`.",
    ),
    click.option(
        "--efficiency", type=values.SHARE,
        help="Training: share of the peak that one device reaches; default: 50 %, from 25 to 75 %.",
    ),
    click.option(
        "--precision", type=click.Choice(["single", "tf32", "half", "bf16"]),
        help="Training: precision of the products; default: that of the network. Tensor cores compute all but single.",
    ),
    click.option(
        "--samples", type=click.IntRange(1, 1 << 53), metavar="N",
        help="Training: samples of the whole training, for the time to train; default: data set x epochs of the file.",
    ),
    click.option(
        "--peak", type=values.OptionType("NUMBER", _positive),
        help="Training: operations per second of a device whose file does not state them.",
    ),
    click.option(
        "--algorithm", "-a", metavar="NAME",
        help="Training: allreduce algorithm, or `best`; default: the plan of the machine's library if it has one and "
        "no --path is given, otherwise ring.",
    ),
    click.option(
        "--path", metavar="NAME",
        help="Training: path of the machine for allreduces; default: what the library's plan takes, or its first.",
    ),
    click.option(
        "--bucket", type=values.SIZE, metavar="SIZE",
        help="Training: send gradients in buckets of at least SIZE during the backward pass; default: whole, after it.",
    ),
    click.option("--no-overlap", is_flag=True, help="Training: send buckets only after the backward pass."),
    click.option(
        "--input", type=click.Choice(["prefetched", "serial", "none"]),
        help="Training: copy input during the step (prefetched, default), before it (serial), or not at all.",
    ),
    click.option("--imbalance", type=values.SHARE, help="Training: how much longer the last device computes."),
    click.option(
        "--skew", type=values.MODELLED_DURATION, help="Training: how much later the last device starts.",
    ),
)  # fmt: skip


def answer(found: Program, machines: list[_native.Machine], asked: dict, shown: Shown) -> int:
    """Print the steps; the status says whether every machine has a time for one."""
    from linkwright.advise.predict.training import training

    made = training(found.document, found.head, machines, _asked(asked))
    if shown.as_json:
        print_json(made.as_dict())
    else:
        training_table.show(made, shown.wide)
    if shown.report is not None:
        from linkwright.show.report import forecast

        shown.write(forecast.training(made))
    return 0 if made.fits else 1


def _asked(asked: dict) -> object:
    from linkwright.advise.predict.training import Wanted
    from linkwright.advise.predict.training.step import Choices

    if asked["no_overlap"] and asked["bucket"] is None:
        raise UsageError("--no-overlap applies to buckets; add --bucket SIZE, or omit --no-overlap")
    if asked["bucket"] == 0:
        raise UsageError("--bucket 0: an empty bucket never fills; give a size such as `1M`, or omit --bucket")
    options.check_efficiency(asked["efficiency"])
    names = ("scaling", "algorithm", "path", "input", "imbalance")
    given = {name: asked[name] for name in names if asked[name] is not None}
    if asked["algorithm"] is not None:
        given["algorithm"] = options.own_names("allreduce", asked["algorithm"])
    skew_ns = (asked["skew"] or 0.0) * NS_PER_S
    choices = Choices(**given, bucket_bytes=asked["bucket"], overlap=not asked["no_overlap"], skew_ns=skew_ns)
    wanted = ("depth", "batch", "gpus", "rate", "peak", "efficiency", "precision", "samples")
    return Wanted(*(asked[name] for name in wanted), choices)
