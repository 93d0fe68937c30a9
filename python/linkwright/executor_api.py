"""What the author of an executor needs, in one place; docs/executors.md walks through an example.

An executor is a subclass of `Executor` that an installed package names in the group `linkwright.executors`:

    resolve(ranks, grid) -> Target                  prepare: what there is to run on
    launch(target, launch) -> outcomes              one `Record` of samples, or one `Ended`, for each question
    fresh(module, launch), serve(measurer)          run a launch in a process of its own, module `__main__`
    Measurer.measure(question, sampling)            one question: prepare, check the data, take the samples
    Program.of(question, seed)                      its operations, data and check, rank by rank

In `measure`, raise a `WaivedError` for what the executor cannot serve, an `OutOfTimeError` where the share of the time
is too short, and another `LinkwrightError` for what fails. Wrong data are a `WrongResultError` and never give a number.
"""

from linkwright.ask.question import Collective, Pattern, Probe, Question
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
    "UNCHECKED", "UNWARMED", "Collective", "Ended", "ExecError", "Executor", "Extent", "Launch", "LinkwrightError",
    "Measurer", "Note", "Operation", "Options", "OutOfTimeError", "Outcome", "OwnAlgorithm", "Pattern", "Piece",
    "Probe", "Program", "Question", "Record", "Samples", "Sampling", "ShapeError", "Target", "Wait", "WaivedError",
    "WrongResultError", "fresh", "here", "serve", "take_samples",
]  # fmt: skip
