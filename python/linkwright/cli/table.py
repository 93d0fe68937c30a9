"""The live table on stdout: what a session finds, as it becomes final, and what it leaves out, with the reasons.

The usual tables fit the terminal and are printed group by group (`groups.py`); with `--wide` every line is printed as
soon as its number is final (`wide.py`). Lines that begin with `#` are not results.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

import click

from linkwright.ask.question import Collective, Probe, Question, Scheduled
from linkwright.base import units
from linkwright.base.units import counted
from linkwright.cli import groups
from linkwright.cli.columns import remark, terminal_columns
from linkwright.cli.output import say
from linkwright.cli.progress import Progress
from linkwright.executors import ModelledTarget, Target
from linkwright.machines import unsure
from linkwright.session.suite.budget import Plan
from linkwright.session.suite.model import spreads_of
from linkwright.session.suite.rows import Row
from linkwright.session.suite.watcher import Watcher
from linkwright.show import wide

from .options import View

# Without a value, but not on purpose: their lines stand in the table.
IN_TABLE = ("failed", "out-of-time", "disturbed")
_MOST_SIZES = 3  # that a remark names


class LiveTable(Watcher):
    """Prints the rows of a session as they become final, and progress on stderr.

    `kept`: the rows are also written elsewhere, so work continues even if the reader of these lines goes away.
    """

    def __init__(self, kept: bool = True) -> None:
        self._view = View.current()
        self._echo = _silent if self._view.json else say if kept else click.echo
        self._progress = Progress(0, "")
        self._begin(modelled=False)

    def _begin(self, modelled: bool) -> None:
        self._modelled = modelled
        self._heading = ""  # of the last lines, or of the matrix
        self._group: list[groups.Line] = []
        self._left_out: dict[tuple[str, str], list[str]] = {}  # (status, reason) -> experiments
        self._matrix: list[Row] = []
        self._matrix_heading = ""
        self._bimodal = 0
        self._dropped: Counter[str] = Counter()  # samples set aside, by reason
        self._disturbed: dict[str, str] = {}  # experiment -> what disturbed every launch

    def told(self, text: str) -> None:
        """On stderr, because it is no result."""
        click.echo(f"linkwright: {text}", err=True)

    def target(self, target: Target, questions: list[Question], launches: int = 0) -> None:
        """Announce a target and begin its table."""
        self.finish()
        self._begin(target.modelled)
        how = "modelled, deterministic" if target.modelled else "measured, time of the slowest rank"
        if target.simulator:
            how = f"simulated by {target.simulator}, not measured; time of the slowest rank"
        if launches:
            alike = "" if target.machine.noisy else ", all alike: the machine file has no [noise]"
            how = f"modelled, {launches} launches{alike}"
        names = dict.fromkeys((target.name, target.machine_name))
        self._note(f"{': '.join(names)}; {how}; {counted(sum(not question.rising for question in questions))}")
        if target.partial:
            self._note(target.partial)
        if target.modelled:
            fitted, numbers = target.machine.fitted, len(target.machine.numbers())
            paths = dict.fromkeys(getattr(e, "path", None) or target.machine.paths[0] for e in questions)
            shown = " ".join(filter(None, [target.name, target.recipe.variant.options]))
            self._note(
                f"constants: fabric {target.machine.fabric}, path {', '.join(paths)}, {numbers} numbers "
                f"of which {fitted} fitted{unsure(target.machine)}; `linkwright machines show {shown}` lists them"
            )
        plans = {target.extent.default(e.collective) for e in questions if isinstance(e, Collective)} - {None}
        if plans and {e.algorithm for e in questions} == plans:
            named = f"{', '.join(sorted(map(str, plans)))}: planned by this machine's library"
            self._note(f"{named}; `--algorithm all` shows the others")
        if isinstance(target, ModelledTarget) and not launches and (spreads := spreads_of(target, questions)):
            words = [f"{low:.2f} to {high:.2f} up to {units.format_size(size)}" for low, high, size in spreads]
            self._note(f"eight published systems in ten, in modelled times: {', '.join(words)}")
        self._progress = Progress(len(questions), target.name)
        if self._view.wide and any(isinstance(question, Scheduled) for question in questions):
            for line in wide.heads(target.modelled):  # the lines of probes have no columns
                self._write(line)

    def sizes(self, questions: Iterable[Question]) -> None:
        """Say which sizes of collectives are not those that were asked for: every rank has whole elements."""
        made = [one for one in questions if isinstance(one, Collective) and one.asked_bytes is not None]
        moved = {one.size_bytes: one.asked_bytes for one in sorted(made, key=lambda one: one.size_bytes)}
        words = [f"{units.format_size(one)} to {size} B" for size, one in moved.items()]
        if words:
            more = f", and {len(words) - _MOST_SIZES} more" if len(words) > _MOST_SIZES else ""
            self._note(f"sizes rounded to whole elements for each rank: {', '.join(words[:_MOST_SIZES])}{more}")

    def planned(self, plan: Plan, budget_s: float) -> None:
        """Say before the run what fits into the time budget, in which it will end."""
        self._note(" ".join(plan.words(budget_s)))
        self._progress.end_in(budget_s)

    def progress(self, launch: int, done: int, text: str) -> None:
        """Move the live line on stderr."""
        self._progress.show(done, text)

    def dropped(self, counts: Mapping[str, int]) -> None:
        """Count the samples that the guards set aside."""
        self._dropped.update({reason: count for reason, count in counts.items() if count})

    def rows(self, question: Question, found: list[Row]) -> None:
        """Take the rows of one experiment; one line sums up all cells of a matrix."""
        line = groups.Line(question, {str(row["metric"]): row for row in found})
        time = line.metrics["time"]
        if time["value"] is None:
            self._left_out.setdefault((str(time["status"]), _why(time)), []).append(question.key)
        else:
            self._bimodal += "mode1" in line.metrics
            if "disturbed" in wide.flags(time):
                self._disturbed[question.key] = str(time["reason"])
        if question.placement:
            self._add_cell(line)
            return
        self._end_matrix()
        if self._view.wide and time["value"] is not None:
            self._write_wide(line)
        elif not self._view.wide and (time["value"] is not None or time["status"] in IN_TABLE):
            self._add(line)

    def finish(self) -> None:
        """End the table of a target: sum up the matrices, and list what was left out with its reason."""
        self._end_matrix()
        self._end_group()
        self._progress.close()
        for (status, reason), keys in self._left_out.items():
            which = f"{keys[0]}" if len(keys) == 1 else f"{counted(len(keys))} such as {keys[0]}"
            self._note(f"{status}: {which}: {reason}")
        if self._bimodal:
            self._note(
                f"{counted(self._bimodal)} with two modes: the table gives the larger one, the results both with "
                "their shares"
            )
        if self._dropped:
            counts = ", ".join(f"{count} {reason}" for reason, count in self._dropped.most_common())
            self._note(f"samples set aside: {counts}")
        if self._disturbed:
            (key, reason), count = next(iter(self._disturbed.items())), len(self._disturbed)
            more = f" and {count - 1} more" if count > 1 else ""
            self._note(f"every launch disturbed: {key}{more}: {reason}")
        self._left_out, self._bimodal, self._dropped, self._disturbed = {}, 0, Counter(), {}

    def _add(self, line: groups.Line) -> None:
        """Put a line into its table, which is printed when the next one begins."""
        if self._group and groups.key_of(self._group[0].question) != groups.key_of(line.question):
            self._end_group()
        self._group.append(line)

    def _end_group(self) -> None:
        group, self._group = self._group, []
        if group:
            lines = groups.lines(group, self._view.columns, self._view.axes, terminal_columns())
            self._write("\n".join(lines))
            for told in groups.picks(group):
                self._note(told)

    def _write_wide(self, line: groups.Line) -> None:
        self._under(wide.heading(line.question, line.metrics))
        if isinstance(line.question, Probe):
            self._write(wide.probe_line(line.question, line.metrics, self._view.axes))
        else:
            self._write(wide.line(line.question, line.metrics, self._modelled))

    def _under(self, heading: str) -> None:
        if heading != self._heading:
            self._heading = heading
            self._write(heading)

    def _add_cell(self, line: groups.Line) -> None:
        """Keep one cell of a matrix, which is summed up when the next thing begins."""
        heading = wide.heading(line.question, {})
        heading += "".join(f", {axis}" for axis in getattr(line.question, "named", ()))
        if self._matrix and heading != self._matrix_heading:
            self._end_matrix()
        self._matrix_heading = heading
        time = line.metrics["time"]
        self._matrix += [line.metrics.get("latency", time)] if time["value"] is not None else []

    def _end_matrix(self) -> None:
        cells, self._matrix = self._matrix, []
        if cells:
            self._end_group()
            self._under(self._matrix_heading)
            times = sorted(row["value"] for row in cells)
            low, middle, high = map(units.format_time, (times[0], statistics.median(times), times[-1]))
            metric = "latency (half a round trip)" if cells[0]["metric"] == "latency" else cells[0]["metric"]
            pairs = f"{metric} of {len(times)} pairs of endpoints"
            self._note(f"{pairs}: fastest {low}, median {middle}, slowest {high}")

    def _note(self, text: str) -> None:
        """A remark: grey, and continued below where it is longer than the terminal is wide."""
        for line in remark(text, terminal_columns()):
            self._write(click.style(line, fg="bright_black"))

    def _write(self, line: str) -> None:
        self._progress.print(line, self._echo)


def _silent(line: str) -> None:
    """Print nothing: a document follows."""


def _why(time: Row) -> str:
    """The reason without its subject, which the key of the experiment names."""
    return str(time["reason"]).rpartition(": waived: ")[2]
