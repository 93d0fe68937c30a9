"""Collectives of NCCL and oneCCL: the library's plan on the described machine, as study `modern` predicts it."""

from __future__ import annotations

from linkwright.libraries.settings import COLLECTIVES, Setup
from linkwright.libraries.times import Model

from .condition import Condition

ONE_THREAD_EACH = False  # one process, one thread for each GPU: calls start side by side
VERSIONS = ((2, 27), (2, 28))  # whose rules linkwright has, of those published here


def nccl_version(version: tuple[int, ...]) -> str:
    """The nearest version whose rules are known."""
    major = version[:2] if version[:2] >= VERSIONS[0] else VERSIONS[0]
    major = min(major, VERSIONS[-1])
    return ".".join(map(str, major))


def remark(one: Condition) -> str:
    """The rules that answer for a version of NCCL whose own are not known; empty if they are."""
    asked = reported(one)
    used = nccl_version(asked or VERSIONS[0])
    if asked[:2] == tuple(map(int, used.split("."))):
        return ""
    return f"NCCL {'.'.join(map(str, asked)) or 'of unknown version'}: answered by the rules of {used}"


def reported(one: Condition) -> tuple[int, ...]:
    """The version that the run printed, else that of the table."""
    text = one.reported or one.table.rpartition("/")[2]
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def time(one: Condition, model: Model) -> float:
    """Time of a collective, us."""
    nccl = one.backend == "nccl"
    algorithm = f"nccl-{nccl_version(reported(one) or VERSIONS[0])}" if nccl else "oneccl-2021"
    setup = Setup(one.on.machine, 1, one.gpus, None, algorithm, COLLECTIVES[one.op], ONE_THREAD_EACH)
    return model.time(setup, one.size_bytes).time_us
