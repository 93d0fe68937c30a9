"""What the author of an executor needs, in one place; docs/executors.md walks through an example.

An executor is a subclass of `Executor` that an installed package names in the group `linkwright.executors`:

    resolve(ranks, grid) -> Target                  prepare: what there is to run on
    launch(target, launch) -> outcomes              one `Record` of samples, or one `Ended`, for each experiment
    fresh(module, launch), serve(measurer)          run a launch in a process of its own, module `__main__`
    Measurer.measure(experiment, sampling)          one experiment: prepare, check the data, take the samples
    Program.of(experiment, seed)                    its operations, data and check, rank by rank

In `measure`, raise a `WaivedError` for what the executor cannot serve, an `OutOfTimeError` where the share of the time
is too short, and another `LinkwrightError` for what fails. Wrong data are a `WrongResultError` and never give a number.
"""

from linkwright.ask.experiment import Experiment
from linkwright.base.errors import (
    ExecError,
    LinkwrightError,
    OutOfTimeError,
    ShapeError,
    WaivedError,
    WrongResultError,
)
from linkwright.executors.process import Measurer, Sampling, fresh, here, serve
from linkwright.executors.program import Operation, Piece, Program, Wait
from linkwright.executors.protocol import Executor, Extent, Launch, Options, OwnAlgorithm, Target
from linkwright.executors.sampling import Samples, take_samples
from linkwright.store.record import UNCHECKED, UNWARMED, Ended, Note, Outcome, Record

__all__ = [
    "UNCHECKED", "UNWARMED", "Ended", "ExecError", "Executor", "Experiment", "Extent", "Launch", "LinkwrightError",
    "Measurer", "Note", "Operation", "Options", "OutOfTimeError", "Outcome", "OwnAlgorithm", "Piece", "Program",
    "Record", "Samples", "Sampling", "ShapeError", "Target", "Wait", "WaivedError", "WrongResultError", "fresh", "here",
    "serve", "take_samples",
]  # fmt: skip
