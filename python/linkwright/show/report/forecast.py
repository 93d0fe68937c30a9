"""How will my program run there? The page of a forecast: where the time goes, a chart, the tables, the assumptions.

Every number is modelled, so none has an interval; `low to high` is what the assumptions about computing leave open.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwright.advise.predict import Forecast, Part
from linkwright.advise.predict.training import Training
from linkwright.advise.predict.training.lead import COMMUNICATION, Lead, crossovers, ratio, verdict
from linkwright.advise.predict.training.step import Step
from linkwright.base.units import NS_PER_S, NS_PER_US
from linkwright.show.shown import duration, span

from . import cells, quantity, what_if
from .model import Axis, Cell, Column, Curve, Plot, Report, Section, Table, Text

_NOTHING = Cell("—", -1, tone="quiet")  # the reason stands in the first such cell of the row
_HELP = {
    "Compute": "forward and backward pass on one device",
    "Exposed messages": "allreduces that the backward pass does not hide: latency, bytes, software, adding",
    "Waiting": "for links that others use, and for a late rank",
    "Input": "copies of samples that the rest of the step does not hide",
}


def training(made: Training) -> Report:
    """The page of a training forecast."""
    load = made.workload
    facts = [
        ("Machines", ", ".join(made.steps)),
        ("Parameters", f"{load.parameters:,}"),
        ("Activations", f"{load.activations:,} per sample"),
        ("Gradients", quantity.size(load.gradient_bytes)),
        ("Precision", load.precision),
        *([("Samples", f"{load.samples:,}")] if load.samples else []),
    ]
    sections = [
        Section("How long a step takes", [_conclusion(made), _chart(made)]),
        Section("Where the time of a step goes", [_breakdown(machine, steps) for machine, steps in made.steps.items()]),
        *([Section("What if", sliders)] if (sliders := what_if.training(made)) else []),
        Section("Times and rates", [_times(made)]),
        *([Section("Side by side", [_against(made.leads)])] if made.leads else []),
        Section("Assumptions", [_assumptions(made)]),
    ]
    return Report(
        f"{load.name}: forecast of its training",
        "Modelled, not measured: messages are simulated on the described machines, computing is assumed.",
        facts,
        sections=sections,
    )


def _conclusion(made: Training) -> Text:
    told = [f"{machine}: {_best(steps)}" for machine, steps in made.steps.items()]
    for second in dict.fromkeys(lead.second for lead in made.leads):
        own = [lead for lead in made.leads if lead.second == second]
        told.append(_sentence(f"{own[0].first} against {second}: {verdict(own)}"))
    return Text(told)


def _best(steps: Sequence[Step]) -> str:
    timed = [step for step in steps if step.causes_ns]
    if not timed:
        return f"no step has a time: {steps[0].why}."
    best = max(timed, key=lambda step: step.samples_per_s)
    messages = best.share(*COMMUNICATION)
    return (
        f"at most {best.samples_per_s:,.4g} samples/s, with batch {best.batch} on {best.gpus} GPUs; a step takes "
        f"{quantity.text(best.time_ns / NS_PER_S, 's')}, {quantity.percent(messages)} of it in messages."
    )


def _sentence(text: str) -> str:
    return f"{text}."


def _chart(made: Training) -> Plot:
    whole, alone = [], {}
    for machine, steps in made.steps.items():
        for name, own in _by_batch(steps).items():
            gpus = [step.gpus for step in own]
            each = [step.samples_per_s / step.gpus for step in own]
            whole.append(Curve(f"{machine}, {name}", gpus, each, kind="model"))
            compute = [rate / step.share("compute") for rate, step in zip(each, own, strict=True)]
            # Machines and batches that compute alike share one line.
            alone.setdefault(f"{[f'{rate:.6g}' for rate in compute]} {gpus}", (f"{machine}, {name}", gpus, compute))
    names = "{}: compute alone" if len(alone) > 1 else "compute alone"
    limits = [Curve(names.format(name), gpus, rates, kind="limit") for name, gpus, rates in alone.values()]
    read = (
        "Level lines scale perfectly. The gap to the dashed line is lost to messages, waiting and input. "
        "The vertical axis need not begin at 0."
    )
    x, y = Axis("GPUs", "1", "log2"), Axis("samples per second and GPU", "1")
    return Plot("Samples per second and GPU, by number of GPUs", x, y, [*whole, *limits], read, wide=True)


def _by_batch(steps: Sequence[Step]) -> dict[str, list[Step]]:
    """Steps with a time: of one batch, or of one share of each GPU where no batch occurs twice."""
    timed = [step for step in steps if step.causes_ns]
    weak = len({step.images for step in timed}) < len({step.batch for step in timed})
    found: dict[str, list[Step]] = {}
    for step in timed:
        found.setdefault(f"{step.images} per GPU" if weak else f"batch {step.batch}", []).append(step)
    return found


def _breakdown(machine: str, steps: Sequence[Step]) -> Table:
    columns = [Column("Batch", numeric=True), Column("GPUs", numeric=True), Column("Step", "s", numeric=True)]
    columns += [Column(name, "%", numeric=True, help=_HELP[name]) for name in what_if.PARTS]
    return Table(machine, columns, [_shares(step) for step in steps], "A bar is the share of the step.")


def _shares(step: Step) -> list[Cell | str]:
    head = [cells.count(step.batch), cells.count(step.gpus)]
    if not step.causes_ns:
        return [*head, Cell("—", detail=step.why, tone="quiet"), *[_NOTHING] * len(what_if.PARTS)]
    shares = [step.share(*causes) for causes in what_if.PARTS.values()]
    return [*head, cells.time(step.time_ns), *(cells.share(share) for share in shares)]


def _times(made: Training) -> Table:
    columns = [Column("Machine"), Column("Batch", numeric=True), Column("GPUs", numeric=True)]
    columns += [Column("Step", "s", numeric=True), Column("Low to high", help="what the assumptions leave open")]
    columns += [Column("Samples per second", numeric=True), Column("Mostly", help="causes of exposed messages")]
    columns += [Column("Time to train", "s", numeric=True)] if made.workload.samples else []
    rows = [_time_row(made, step) for steps in made.steps.values() for step in steps]
    return Table("Every batch and number of GPUs", columns, rows)


def _time_row(made: Training, step: Step) -> list[Cell | str]:
    samples = made.workload.samples
    head = [step.machine, cells.count(step.batch), cells.count(step.gpus)]
    if not step.causes_ns:
        rest = 4 if samples else 3
        return [*head, Cell("—", detail=step.why, tone="quiet"), *[_NOTHING] * rest]
    exposed = {cause: step.causes_ns[cause] for cause in COMMUNICATION}
    mostly = max(exposed, key=exposed.get) if any(exposed.values()) else "—"
    ends = "as measured" if made.calibrated else span(step.low_ns, step.high_ns)
    row = [*head, cells.time(step.time_ns), ends, Cell(f"{step.samples_per_s:,.4g}", step.samples_per_s), mostly]
    if samples:
        seconds = step.training_s(samples)
        row.append(Cell(duration(seconds), seconds))
    return row


def _against(leads: Sequence[Lead]) -> Table:
    columns = [Column("First"), Column("Second"), Column("Batch", numeric=True), Column("GPUs", numeric=True)]
    columns += [Column("Faster"), Column("By", numeric=True, help="time of the slower over that of the faster")]
    columns += [
        Column("Messages of the first", "%", numeric=True, help="share of its step"),
        Column("Messages of the second", "%", numeric=True, help="share of its step"),
    ]
    return Table("Which machine is faster", columns, [_lead_row(lead) for lead in leads], " ".join(_turns(leads)))


def _turns(leads: Sequence[Lead]) -> list[str]:
    return [_sentence(line) for line in crossovers(leads)]


def _lead_row(lead: Lead) -> list[Cell | str]:
    head = [lead.first, lead.second, cells.count(lead.batch), cells.count(lead.gpus)]
    if lead.lead is None:
        return [*head, Cell("—", detail=lead.why, tone="quiet"), *[_NOTHING] * 3]
    shares = (lead.first_communication, lead.communication)
    times = lead.times_faster
    return [*head, lead.leader, Cell(ratio(times), times), *(cells.share(s) for s in shares)]


def _assumptions(made: Training) -> Text:
    choices = made.choices
    told = [f"Compute on {machine}: {basis}." for machine, basis in made.basis.items()]
    told += [_sentence(note) for note in made.notes]
    how = "whole, after the backward pass" if choices.bucket_bytes is None else (
        f"in buckets of {quantity.size(choices.bucket_bytes)}, "
        + ("during the backward pass" if choices.overlap else "after the backward pass")
    )  # fmt: skip
    by = f", by {', '.join(made.algorithms)}" if made.algorithms else ""
    told.append(f"Gradients are sent {how}{by}; {choices.scaling} scaling; input: {choices.input}.")
    if not choices.balanced:
        told.append(
            f"The last GPU computes {100 * choices.imbalance:g} % longer and starts "
            f"{choices.skew_ns / NS_PER_US:g} µs later."
        )
    told.append(
        "Left out: the update of the parameters, processors that prepare samples, messages that slow down computing, "
        "and links that input and gradients share."
    )
    return Text(told)


def supersteps(forecasts: Sequence[Forecast]) -> Report:
    """The page of a program of supersteps on one machine or several."""
    first = forecasts[0]
    sections = [
        Section(f"On {found.machine}", [_room(found), _parts(found)] if found.parts else [_room(found)])
        for found in forecasts
    ]
    return Report(
        f"{first.app}: forecast",
        "Modelled, not measured: messages are simulated on the described machines, work and messages never overlap.",
        [("Machines", ", ".join(found.machine for found in forecasts)), ("Endpoints", f"{first.endpoints:,}")],
        sections=[Section("In all", [_totals(forecasts)]), *sections],
    )


def _totals(forecasts: Sequence[Forecast]) -> Table:
    causes = list(dict.fromkeys(cause for found in forecasts if found.parts for cause in found.shares()))
    columns = [Column("Machine"), Column("Time", "s", numeric=True), Column("Messages", "%", numeric=True)]
    columns += [Column(cause.capitalize(), "%", numeric=True) for cause in causes]
    rows = []
    for found in forecasts:
        if not found.parts:
            rows.append([found.machine, Cell("—", detail="does not fit"), *[_NOTHING] * (len(causes) + 1)])
            continue
        shares = [found.message_share, *(found.shares().get(cause, 0.0) for cause in causes)]
        rows.append([found.machine, cells.time(found.time_ns), *(cells.share(s) for s in shares)])
    return Table("Time and its causes", columns, rows, "Causes are those of the critical path; messages have several.")


def _room(found: Forecast) -> Text:
    room = found.room
    needed = f"Needs {quantity.size(room.needed_bytes)} at each endpoint, most in {room.where}"
    if room.capacity_bytes is None:
        return Text([f"{needed}. The machine states no capacity, so this was not checked."])
    fits = "which fits" if room.fits else "which does not fit; split the program over more endpoints"
    return Text([f"{needed}, of {quantity.size(room.capacity_bytes)}, {fits}."])


def _parts(found: Forecast) -> Table:
    columns = [Column("Part"), Column("Times", numeric=True), Column("Once", "s", numeric=True)]
    columns += [
        Column("Together", "s", numeric=True),
        Column("Share", "%", numeric=True),
        Column("Mostly"),
        Column("By"),
    ]
    return Table("Parts", columns, [_part(part, found) for part in found.parts])


def _part(part: Part, found: Forecast) -> list[Cell | str]:
    share = part.time_ns / found.time_ns if found.time_ns else 0.0
    mostly = max(part.causes_ns, key=part.causes_ns.get)
    times = [cells.time(part.time_ns / part.times), cells.time(part.time_ns)]
    return [part.name, cells.count(part.times), *times, cells.share(share), mostly, part.choice or "—"]
