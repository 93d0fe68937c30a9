"""Probes: questions about a machine that a schedule cannot ask, and who answers them.

The catalogue is in `linkwright-core`; most probes are measured natively. A probe that needs a Python library is a
module of this package with a constant `PROBE` and an entry in `MODULES`:

    PROBE = described("matmul", measure=measure)           # described in the catalogue, so it may have a model
    PROBE = ProbeKind(key="pipe_round_trip", ..., measure=measure)    # described here, without one
    PROBES = (stated(row, measure), ...)                   # several of a table

    def measure(axes, setting) -> Record                   # one launch; see `native` for what it returns

Every answer is raw samples of the time of one operation; docs/probes.md explains how to add a probe.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from linkwright import _native
from linkwright.base import units
from linkwright.base.errors import UsageError, WaivedError, check_known, unknown
from linkwright.base.units import PS_PER_NS
from linkwright.store.record import UNWARMED, Note, Record, remarks

# Modules of this package that measure in Python.
MODULES: tuple[str, ...] = ("matmul", "convolution", "random", "training_step", "gpu")

Value = int | str
Axes = Mapping[str, Value]


@dataclass(frozen=True)
class Axis:
    """One thing that may be varied."""

    key: str
    kind: str  # `bytes`, `count` or `word`
    summary: str
    default: str
    words: tuple[str, ...] = ()

    def read(self, text: object) -> Value:
        """The value from its text: bytes and counts as integers."""
        if self.kind == "word":
            check_known(f"value of axis {self.key}", str(text), self.words)
            return str(text)
        if self.kind == "bytes":
            return units.parse_size(str(text))
        if not str(text).isdecimal():
            raise UsageError(f"axis {self.key}: `{text}` is not a whole number")
        return int(str(text))

    def text(self, value: Value) -> str:
        """The value as people write it."""
        return units.format_size(int(value)) if self.kind == "bytes" else str(value)


@dataclass(frozen=True)
class Metric:
    """One thing that is found."""

    key: str
    unit: str
    better: str  # `low`, `high` or nothing
    summary: str
    source: str  # `time`, `counted_rate`, `moved_rate`, `work_rate` or `column`


@dataclass(frozen=True)
class Setting:
    """How one launch is to measure."""

    cpus: tuple[int, ...]  # those of a placed probe first
    budget_s: float
    samples: int = 100
    warmup_at_most: int | None = None
    settle_within: float | None = None
    seed: int = 0
    most_bytes: int | None = None


@dataclass(frozen=True)
class ProbeKind:
    """A question: what may be varied, what is found, and who answers."""

    key: str
    summary: str
    description: str
    axes: tuple[Axis, ...]
    metrics: tuple[Metric, ...]
    source: str
    waived: str
    size_axis: str | None = None
    measure: Callable[[Axes, Setting], Record] | None = None
    modelled: bool = False
    table: str = ""  # [probe.TABLE] of a machine file holds the parameters of its model
    check_host: Callable[[Mapping[str, object]], None] | None = None  # refuses axes that this host cannot serve

    def axis(self, key: str) -> Axis:
        """The axis of this name."""
        for axis in self.axes:
            if axis.key == key:
                return axis
        known = [axis.key for axis in self.axes]
        raise unknown(f"axis of probe {self.key}", key, known, lists=f"linkwright describe {self.key}")

    def assignment(self, given: Mapping[str, object]) -> dict[str, Value]:
        """A value for every axis, the default where none is given."""
        for key in given:
            self.axis(key)
        return {axis.key: axis.read(given.get(axis.key, axis.default)) for axis in self.axes}


def described(key: str, measure: Callable[[Axes, Setting], Record] | None = None) -> ProbeKind:
    """The probe of the catalogue called `key`, measured by `measure`."""
    return replace(_catalogue()[key], measure=measure)


def native(key: str, axes: Axes, setting: Setting) -> Record:
    """One launch of a native probe, as plain values for the journal.

    `values_ns` are times of one operation, `first_ns` that of the first, cold one; `batch` operations make a sample;
    `dropped` counts samples by reason; `notes` are for the reader; `counted_bytes` and `moved_bytes` are those of one
    operation, `work` what it achieves in the unit of the metric; `columns` maps a metric to one value per sample.
    """
    options = {name: value for name, value in asdict(setting).items() if value is not None}
    found = _native.run_probe(key, dict(axes), {**options, "cpus": list(setting.cpus)})
    return recorded(found, remarks(*found["notes"]))


def recorded(found: Mapping, notes: Iterable[Note] = ()) -> Record:
    """What the native sampler found, with what the probe knows of it."""
    return Record(
        values_ns=[round(value, 4) for value in found["values_ns"].tolist()],
        first_ns=round(found["first_ns"], 4),
        batch=found["batch"],
        dropped=found["drops"],
        notes=(*notes, *([] if found["warmed_up"] else [UNWARMED])),
        counted_bytes=found.get("counted_bytes", 0),
        moved_bytes=found.get("moved_bytes", 0),
        work=found["work"],
        columns={metric: values.tolist() for metric, values in found.get("columns", {}).items()},
    )


def measure(key: str, axes: Axes, setting: Setting) -> Record:
    """One launch of any probe."""
    probe = find(key)
    if probe.measure is None:
        raise WaivedError(f"probe {key}: waived: it has only a model; name a machine with --on")
    return probe.measure(axes, setting)


@dataclass(frozen=True)
class Modelled:
    """The answer of a described machine, exact."""

    time_ns: float
    counted_bytes: float
    moved_bytes: float
    columns: dict[str, float]
    work: float = 0


def model(machine: _native.Machine, key: str, axes: Axes) -> Modelled:
    """The answer of a described machine; raises a `WaivedError` where it has none."""
    if not find(key).modelled:
        raise without_model(key)
    return modelled(_native.model_probe(machine, key, dict(axes)))


def without_model(key: str) -> WaivedError:
    """Why a probe that only hardware answers is waived on a described machine."""
    return WaivedError(f"probe {key}: waived: it has no model; run it on hardware")


def modelled(found: Mapping) -> Modelled:
    """The columns of the native half in the units of result rows."""
    return Modelled(
        found["time_ps"] / PS_PER_NS, found["counted_bytes"], found["moved_bytes"], found["columns"], found["work"]
    )


@functools.cache
def registry() -> dict[str, ProbeKind]:
    """Every probe by key: the catalogue in its order, then those described in Python."""
    probes = dict(_catalogue())
    for name in MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        found: tuple[ProbeKind, ...] = getattr(module, "PROBES", None) or (module.PROBE,)
        probes |= {probe.key: probe for probe in found}
    return probes


def find(key: str) -> ProbeKind:
    """The probe called `key`, or `probe/key`."""
    name = key.removeprefix("probe/")
    check_known("probe", name, registry(), lists="linkwright list probes")
    return registry()[name]


def entries() -> list[dict[str, object]]:
    """All probes for `list` and `describe`."""
    return [_entry(probe) for probe in registry().values()]


@functools.cache
def _catalogue() -> dict[str, ProbeKind]:
    return {
        row["key"]: stated(row, functools.partial(native, row["key"]) if row["measured"] else None)
        for row in _native.probes()
    }


def stated(row: Mapping[str, Any], measure: Callable[[Axes, Setting], Record] | None) -> ProbeKind:
    """The probe that a row of the catalogue, or of a table such as `gpu.toml`, describes."""
    names = {field.name for field in fields(ProbeKind)} & row.keys()
    axes = tuple(Axis(**{**axis, "words": tuple(axis.get("words", ()))}) for axis in row["axes"])
    metrics = tuple(Metric(**metric) for metric in row["metrics"])
    return ProbeKind(**{name: row[name] for name in names} | {"axes": axes, "metrics": metrics, "measure": measure})


def _entry(probe: ProbeKind) -> dict[str, object]:
    answered = [*(["measured"] if probe.measure else []), *(["modelled"] if probe.modelled else [])]
    values = {a.key: "|".join(a.words) if a.kind == "word" else a.kind for a in probe.axes}
    return {
        "key": f"probe/{probe.key}",
        "summary": probe.summary,
        "description": probe.description,
        "axes": [f"{a.key}={values[a.key]} ({a.summary}; default {a.default})" for a in probe.axes],
        "metrics": [f"{m.key} in {m.unit} ({m.summary})" for m in probe.metrics],
        "answered": answered,
        "machine_table": f"[probe.{probe.table}]" if probe.modelled else None,
        "source": probe.source,
        "waived": probe.waived,
    }
