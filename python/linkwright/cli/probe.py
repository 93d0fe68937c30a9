"""`linkwright run probe/NAME`: measure a probe here, or model it on a described machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from linkwright.ask.question import collectives
from linkwright.base.errors import UsageError, nearest
from linkwright.cli import options

# Options of `run` that are passed on to a probe, by their parameters.
_TAKEN = ("on", "variant", "samples", "warmup", "target", "watts", "seed")
_ALLOWED = {
    *_TAKEN, "what", "model", "nodes", "fabric", "without", "degrade", "stated", "ranks", "every_pair", "time_budget",
    "wide", "columns", "json", "color", "outputs", "root_folder",
}  # fmt: skip
_ONLY = {"stated": "--axis", "every_pair": "--every-pair", "model": "--model", "watts": "--watts"}


def is_meant(name: str) -> bool:
    """Whether `name` is `probe/NAME` or the name of a probe, or is closer to one than to any collective."""
    from linkwright.executors import probes

    if name.startswith("probe/") or name in probes.registry():
        return True
    known = collectives()
    return name not in known and bool(nearest(name, probes.registry())) and not nearest(name, known)


def refuse_options() -> None:
    """Reject options that only probes have."""
    for name, option in _ONLY.items():
        if options.given(name):
            raise UsageError(f"{option}: only probes have it; omit it, or name a probe (`linkwright list probes`)")


def start(name: str, asked: Mapping[str, object], outputs: tuple[Path, ...], root_folder: Path) -> int:
    """Run the probe for all values of its axes."""
    from linkwright.cli import sessions
    from linkwright.executors import probes
    from linkwright.session.suite.load import one_part
    from linkwright.session.suite.session import Request

    probe = probes.find(name)
    options.refuse_others(f"{probe.key} is a probe, which takes --axis instead", _ALLOWED)
    stated = [_axis(probe, text) for text in asked["stated"]]
    ranks = asked["ranks"]
    if asked["model"]:
        stated.append(_axis(probe, f"model={asked['model']}"))
    if ranks and any(axis.key == "ranks" for axis in probe.axes):
        stated.append(("ranks", tuple(map(str, ranks))))
        ranks = None
    if ranks and len(ranks) > 1:
        raise UsageError(f"--ranks: {probe.key} is a probe, which takes one number of ranks")
    axes = dict(stated)
    if len(axes) < len(stated):
        again = next(key for key in axes if [name for name, _ in stated].count(key) > 1)
        raise UsageError(f"--axis {again}: is given twice; list its values once, such as `{again}=4K,64K`")
    if probe.check_host and asked["on"] == "threads":
        probe.check_host(axes)
    options.View.current().axes = tuple(axes)
    suite = one_part(
        "probe",
        probe.summary,
        part=probe.key,  # the name of the part in suites, so that runs of both can be compared
        probe=probe.key,
        axes=axes or None,
        placement="every_pair" if asked["every_pair"] else None,
    )
    request = Request(
        budget_s=asked["time_budget"], ranks=ranks[0] if ranks else None, **{key: asked[key] for key in _TAKEN}
    )
    return sessions.start(root_folder, suite, request, outputs)


def _axis(probe: object, text: str) -> tuple[str, object]:
    """Read `working_set=4K,64K` or `working_set=4K..64M` into the form that suites use."""
    key, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"--axis {text}: write an axis and its values, such as `{probe.axes[0].key}=4K,64K`")
    probe.axis(key)
    low, dots, high = values.partition("..")
    return key, {"min": low, "max": high, "factor": 2} if dots else tuple(values.split(","))
