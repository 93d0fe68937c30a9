"""A condition to its time: the model of its kind."""

from __future__ import annotations

from linkwright.libraries.times import Model

from . import allreduce, collective, deepep, moe
from .condition import Condition
from .numbers import Numbers, shipped


class Kernels:
    """All kernels, with the numbers of the file or with others."""

    def __init__(self, numbers: Numbers | None = None, model: Model | None = None) -> None:
        self._numbers = shipped() if numbers is None else numbers
        self._model = model or Model()

    def time_us(self, one: Condition) -> float:
        """Time of a condition, us."""
        if one.kind == "collective":
            return collective.time(one, self._model)
        if one.kind == "framework_allreduce":
            return allreduce.time(one, self._numbers, self._model)
        if one.kind == "deepep_ll":
            return deepep.low_latency(one, self._numbers)
        if one.kind == "moe_alltoall":
            return moe.time(one, self._numbers)
        return deepep.normal(one, self._numbers)
