"""`linkwright locate`: the tests that find the slow part of a cluster, and what their results say."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import counted, format_rate
from linkwright.cli import locate_job, locate_watch, options, values
from linkwright.cli.output import print_json, say

if TYPE_CHECKING:
    from linkwright.advise.locate.effects import FaultModel
    from linkwright.advise.locate.posterior import Observation, Posterior
    from linkwright.advise.locate.results import CheckedRates
    from linkwright.advise.locate.rounds import Test
    from linkwright.advise.locate.search import NextTest, SearchState
    from linkwright.machines import Variant

SHOWN = 5  # answers, pairs and remarks in a text


@click.command(cls=options.Command, name="locate")
@click.argument("more", nargs=-1, type=click.Path(path_type=Path), metavar="[FILES]...")
@options.on("name", help="The machine as it should be, or the path of its file; with --run it may be omitted.")
@options.variant
@options.file(
    "--results", multiple=True, metavar="FILES...",
    help="Results of tests: lines of --log, logs named by their hosts (`a+b.log`), run folders of `pattern/pairs`.",
)  # fmt: skip
@options.file(
    "--baseline", multiple=True, help="Results of the same machine when it was healthy, instead of modelled rates."
)
@click.option("--as", "form", type=click.Choice(["mpirun", "nccl-tests", "slurm"]), default="mpirun", show_default=True,
              help="Commands to print.")  # fmt: skip
@click.option("--hosts", metavar="LIST", help="Names of the hosts, in the order of the machine: `node[01-04]`, `a,b`.")
@click.option("--run", "runs", is_flag=True, help="Run the tests in this MPI job, until the verdict.")
@options.file("--log", help="With --run: append results to FILE.jsonl.")
@click.option("--budget", type=values.DURATION, default="20m", show_default=True, help="With --run: stop after this.")
@click.option("--watch", "interval", type=values.DURATION, metavar="TIME",
              help="With --run: repeat the first tests this often, and say when a rate has changed.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="With --watch: stop after N rounds.")
@click.option("--alarms", type=click.FloatRange(1e-6, 1000), default=0.1, show_default=True, metavar="N",
              help="With --watch: false alarms a day, of all rates together.")  # fmt: skip
@options.file("--textfile", help="With --watch: metrics for the textfile collector of Prometheus, FILE.prom.")
@click.option("--noise", type=values.PROPER_SHARE, default="3%", show_default=True,
              help="Relative deviation of a rate from run to run.")  # fmt: skip
@click.option("--sure", type=values.PROPER_SHARE, default="95%", show_default=True,
              help="Probability that ends the search.")  # fmt: skip
@options.file("--out", help="Write the machine with the fault to FILE.")
@options.as_json
def command(
    more: tuple[Path, ...], name: str | None, variant: Variant, results: tuple[Path, ...], baseline: tuple[Path, ...],
    form: str, hosts: str | None, runs: bool, log: Path | None, budget: float, noise: float, sure: float,
    out: Path | None, as_json: bool, interval: float | None, rounds: int | None, alarms: float, textfile: Path | None,
) -> None:  # fmt: skip
    """Without results it prints the first tests. With results it says what they exclude, what is slow with which
    probability, and which test is next. A test is a round of pairs that exchange data at the same time. --run does all
    of it in an MPI job whose ranks are those of the machine, in its order. Without --on it measures a map of all pairs
    of the hosts of the job and says in words which hosts, groups and paths are slow.

    \b
    linkwright locate --on hgx-h100 --nodes 16 --as nccl-tests --hosts node[01-16]
    linkwright locate --on hgx-h100 --nodes 16 --hosts node[01-16] --results r1.*.log
    mpirun -np 6 --map-by node linkwright locate --on lab.toml --run --out faulty.toml
    mpirun -np 6 --map-by node linkwright locate --on lab.toml --run --watch 5m --textfile lab.prom
    """
    from linkwright.base.files import check_place

    if runs and (results or more or form != "mpirun"):
        raise UsageError("--run measures by itself; omit --results and --as")
    if interval is not None:
        lacks = [word for word, there in (("--on MACHINE", name), ("--run", runs)) if not there]
        if lacks:
            raise UsageError(f"--watch repeats tests of a described machine in this job; add {' and '.join(lacks)}")
        others = {"--baseline": baseline, "--out": out, "--budget": options.given("budget")}
        if excess := [word for word, there in others.items() if there]:
            raise UsageError(f"--watch learns its own first rounds, until it is stopped; omit {' and '.join(excess)}")
    if (log or options.given("budget")) and not runs:
        raise UsageError("--log and --budget are of --run; add it, or omit them")
    if log and log.suffix != ".jsonl":
        raise UsageError(f"--log {log}: results are lines of JSON; name a file that ends in .jsonl")
    if interval is None and (rounds or textfile or options.given("alarms")):
        raise UsageError("--rounds, --alarms and --textfile are of --watch; add it, or omit them")
    if textfile and textfile.suffix != ".prom":
        raise UsageError(f"--textfile {textfile}: the collector reads files that end in .prom; name one")
    given = (*results, *more)
    if out and not (given or runs):
        raise UsageError("--out writes the machine with what was found; give --results, or --run")
    for file, option in ((out, "--out"), (log, "--log"), (textfile, "--textfile")):
        if file:
            check_place(file, f"{option} {file}")
    if name is None:
        if not runs or variant or baseline or log or out:
            raise UsageError("--on: name the machine as it should be; only a map, of --run, needs none, and no file")
        locate_job.map_of_hosts(budget, as_json)
        return
    asked = LocateTask(name, variant, hosts, noise, sure, form)
    if interval is not None:
        locate_watch.watch(asked, interval, rounds, alarms, log, textfile, as_json)
        return
    if runs:
        locate_job.search(asked, baseline, log, budget, out, as_json)
        return
    seen, remarks = asked.read(given) if given else ((), ())
    asked.learn(seen, asked.read(baseline)[0] if baseline else ())
    if seen:
        asked.show(seen, remarks, out, as_json)
    else:
        asked.plan(as_json)


class LocateTask:
    """One question: a machine, its model, and what is known of it."""

    def __init__(self, name: str, variant: Variant, hosts: str | None, noise: float, sure: float, form: str) -> None:
        from linkwright import machines
        from linkwright.advise.locate.parts import HostLayout
        from linkwright.formats.discovery import hostlists

        self.name, self.variant, self.noise, self.sure, self.form = name, variant, noise, sure, form
        self.layout = HostLayout(machines.load(name, variant))
        self.hosts = hostlists.expand(hosts, "--hosts") if hosts else self.layout.hosts
        if len(self.hosts) != len(self.layout.hosts) or len(set(self.hosts)) < len(self.hosts):
            raise UsageError(
                f"--hosts: {len(set(self.hosts))} names; {self.layout.name} has {len(self.layout.hosts)} hosts; name "
                "each once"
            )
        if odd := [host for host in self.hosts if hosts and not re.fullmatch(r"\w[\w.-]*", host, re.ASCII)]:
            raise UsageError(
                f"--hosts: `{odd[0]}`: commands and names of logs hold the names of hosts, so one has letters, digits, "
                "dots, - and _ alone; give another name of it"
            )
        if form != "mpirun" and not hosts:
            raise UsageError(f"--as {form}: its commands need the names of the hosts; give --hosts")

    def read(self, paths: Sequence[Path]) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
        """Results and remarks about them."""
        from linkwright.advise.locate import results

        found = results.read(paths, self.layout, self.hosts)
        return found.seen, found.remarks

    def learn(self, seen: Sequence[Observation], baseline: Sequence[Observation]) -> None:
        """Make the model, for these results as well."""
        from linkwright.advise.locate.effects import FaultModel
        from linkwright.advise.locate.rounds import library
        from linkwright.advise.locate.search import RoundChooser

        chosen = library(self.layout, "one" if self.form == "mpirun" else "pair")
        self.model: FaultModel = FaultModel(self.layout, chosen, [one.test for one in (*seen, *baseline)])
        self.search: RoundChooser = RoundChooser(self.model, self.noise)
        self.usual = {
            cell: rate for one in baseline for cell, rate in zip(one.test.cells, one.rates, strict=True) if rate == rate
        }

    def judge(self, seen: Sequence[Observation]) -> tuple[Posterior, SearchState, CheckedRates]:
        """What is known after these results, the verdict, and which results are possible."""
        from linkwright.advise.locate.posterior import posterior
        from linkwright.advise.locate.results import possible
        from linkwright.advise.locate.search import verdict

        checked = possible(self.model, seen, self.noise)
        known = posterior(self.model, checked.seen, self.noise, self.usual)
        return known, verdict(known, checked.seen, self.sure), checked

    def feels(self, test: Test, which: Sequence[int]) -> bool:
        """Whether a slow one of these places would slow a message of a test."""
        effects = self.model.of(test)
        return any(len(effects.cell[effects.of(place)]) for place in which)

    def plan(self, as_json: bool) -> None:
        """Print the first tests."""
        chosen = self.search.first(3)
        if as_json:
            print_json(
                {"machine": self.layout.name, "places": len(self.model.places), "tests": [*map(self._test, chosen)]}
            )
            return
        click.echo(
            f"{self.layout.name}: {counted(len(self.layout.hosts), 'host')}, {self.layout.machine.ranks} ranks, "
            f"{len(self.model.places)} places that tests can tell apart\n"
        )
        for choice in chosen:
            click.echo("\n".join(self._lines(choice)))
        self._chooses()
        click.echo("\n" + "\n".join(self._commands(chosen[0].test)))

    def _chooses(self) -> None:
        if self.model.routes.chooses:
            click.echo(
                "\nmessages choose among equal ways between switches: links there are not searched, ports and hosts are"
            )

    def _test(self, choice: NextTest) -> dict[str, object]:
        import numpy as np

        effects = self.model.of(choice.test)
        return {
            "name": choice.test.name, "bits": round(choice.bits, 3), "cells": choice.test.cells,
            "expected_bytes_per_s": [round(float(rate)) for rate in np.exp(effects.base)],
        }  # fmt: skip

    def _lines(self, choice: NextTest) -> Iterator[str]:
        """A test in words."""
        import numpy as np

        effects = self.model.of(choice.test)
        rates = np.exp(effects.base)
        span = format_rate(rates.min()) + (
            "" if rates.max() < 1.01 * rates.min() else f" to {format_rate(rates.max())}"
        )
        pairs = list(dict.fromkeys(cell[0] for cell in choice.test.cells))
        both = len(choice.test.flows) > len(pairs)
        shown = ", ".join(f"{self.rank(a)} {'-' if both else '->'} {self.rank(b)}" for a, b in pairs[:SHOWN])
        more = f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else ""
        said = f"{counted(len(pairs), 'pair')} at once{', both ways' if both else ''}"
        yield f"{choice.test.name}: {said}; expected {span} each; {choice.bits:.1f} bits"
        yield f"    {shown}{more}"

    def rank(self, rank: int) -> str:
        """A rank by the name of its host."""
        host = self.layout.host_of[rank]
        name = self.layout.nodes[rank]
        inner = name.removeprefix(f"{self.layout.hosts[host]}").strip()
        return f"{self.hosts[host]} {inner}".strip()

    def _commands(self, test: Test) -> Iterator[str]:
        """What to type to run a test."""
        machine = f"--on {shlex.quote(self.name)} {self.variant.options}".strip()
        hosts = "" if self.hosts == self.layout.hosts else f" --hosts {','.join(self.hosts)}"
        if self.form == "mpirun":
            each = f"--map-by ppr:{self.layout.each}:node"
            yield f"mpirun -np {self.layout.machine.ranks} {each} linkwright locate {machine} --run --log locate.jsonl"
            return
        for a, b in dict.fromkeys((min(flow), max(flow)) for flow in test.flows):
            (x, i), (y, j) = ((self.hosts[self.layout.host_of[end]], self._place(end)) for end in (a, b))
            log = f"{test.name.replace(' ', '')}.{f'{i}@' if i else ''}{x}+{f'{j}@' if j else ''}{y}.log"
            yield f"{self._started(x, i, y, j)} > {shlex.quote(log)} &"
        yield "wait"
        yield f"linkwright locate {machine}{hosts} --as {self.form} --results {test.name.replace(' ', '')}.*.log"

    def _started(self, x: str, i: int, y: str, j: int) -> str:
        """A command that exchanges data between GPU i of host x and GPU j of host y."""
        tool, gpu = "sendrecv_perf -b 256M -e 256M -g 1", "CUDA_VISIBLE_DEVICES"
        if x == y:
            return (
                f"mpirun -np 2 --host {x}:2 -x {gpu}={i},{j} {tool}" if self.form == "nccl-tests"
                else f"srun -N 1 -n 2 --overlap -w {x} env {gpu}={i},{j} {tool}"
            )  # fmt: skip
        if self.form == "nccl-tests":
            return "mpirun " + " : ".join(f"-np 1 --host {h} -x {gpu}={one} {tool}" for h, one in ((x, i), (y, j)))
        chosen = str(i) if i == j else f"$([ $SLURMD_NODENAME = {x} ] && echo {i} || echo {j})"
        return f"srun -N 2 -n 2 --overlap -w {x},{y} sh -c '{gpu}={chosen} {tool}'"

    def _place(self, rank: int) -> int:
        return self.layout.ranks_of[self.layout.host_of[rank]].index(rank)

    def show(
        self, seen: Sequence[Observation], remarks: Sequence[str], out: Path | None, as_json: bool, ended: str = ""
    ) -> None:
        """Print the verdict, what else it may be, and the next test; write the machine."""
        from linkwright.advise.locate.results import contradictions

        known, found, checked = self.judge(seen)
        remarks = [*remarks, *contradictions(checked.seen, self.rank, self.noise)]
        again = self.search.next(known, [one.test for one in seen])
        shares = known.share(found.which)
        apart = self._apart(found, shares, [one for one, there in zip(seen, known.active, strict=True) if there])
        sets = [
            {"places": [[part.name for part in self.model.places[at].parts] for at in which],
             "probability": round(chance, 4), "shares": [round(share, 3) for share in known.share(which)],
             "intermittent": round(known.passing(which), 4)}
            for which, chance in known.sets(SHOWN)
        ]  # fmt: skip
        if as_json:
            print_json({
                "machine": self.layout.name, "verdict": found.word, "probability": round(found.chance, 4),
                "answers": sets, "scale": round(known.scale, 4), "simulated_apart": apart, "remarks": list(remarks),
                "impossible": self.impossible(checked), "untested": self.untested(known),
                "unexplained": known.strays[:SHOWN], "next": self._test(again),
            })  # fmt: skip
        else:
            rates = counted(sum(len(one.rates) for one in seen), "rate")
            click.echo(f"{self.layout.name}: {counted(len(seen), 'test')}, {rates}, {self._scale(known)}")
            click.echo("\n".join(self.verdict(known, found, checked, shares, apart)))
            for line in (
                *itertools.islice(checked.words(self.rank), SHOWN),
                *remarks[:SHOWN],
                *self._unexplained(known),
                *([ended] if ended else []),
            ):
                click.echo(f"note      {line}")
            self._chooses()
            if found.word == "open":
                click.echo("next      " + "\n".join(self._lines(again)))
                if not ended:
                    click.echo("\n".join(self._commands(again.test)))
        if out:
            self._write(out, found, shares)

    def _scale(self, known: Posterior) -> str:
        if self.usual:
            return "against the baseline"
        far = (
            ""
            if 0.9 <= known.scale <= 1.1
            else ", so they are judged against each other: what slows all alike is not seen"
        )
        return f"at {known.scale:.1%} of the modelled rates{far}"

    def verdict(
        self, known: Posterior, found: SearchState, checked: CheckedRates, shares: Sequence[float], apart: float | None
    ) -> Iterator[str]:
        """The answer in words, and what else it may be."""
        word = {"found": "found", "healthy": "healthy", "open": "likely"}[found.word]
        untested, every = self.untested(known), len(self.model.places)
        missing = f"missing   {untested} of {every} places: no usable rate shows yet whether they are slow"
        if not checked.usable:
            yield "open      no rate is possible, so that nothing is known of any place"
            yield missing
            return
        yield f"{word:9} {self._set(found.which, shares)}, probability {found.chance:.1%}"
        for at in found.which:
            place = self.model.places[at]
            if len(place.parts) > 1:
                names = [part.name for part in place.parts if part is not place.part]
                yield f"          in line with {place.part.name}, and as likely: {', '.join(names[:SHOWN])}"
        if apart is not None:
            yield f"          the engine with this fault is {apart:.1%} from the slow rates (median)"
        passing = known.passing(found.which) if found.which else 0.0
        if passing > 0.5:
            felt = [one for one in known.active if one is not None]
            yield f"          comes and goes, probability {passing:.1%}: slow in {sum(felt)} of {len(felt)} tests of it"
        for which, chance in known.sets(SHOWN)[1:]:
            if chance >= 1e-3:
                yield f"or        {self._set(which, known.share(which))}, probability {chance:.1%}"
        if untested:
            yield missing
        named = {place for which, _ in known.sets(SHOWN) for place in which}
        import numpy as np

        chances = np.bincount(known.places[known.places >= 0], minlength=len(self.model.places)) > 0
        left = len(self.model.places) - len(named | set(np.flatnonzero(chances).tolist()))
        yield f"excluded  {left} of {len(self.model.places)} places, below a millionth of the likeliest answer"

    def impossible(self, checked: CheckedRates) -> list[dict[str, object]]:
        """Rates that were set aside, for JSON."""
        return [
            {"source": one.source, "from": self.rank(one.flow[0]), "to": self.rank(one.flow[1]),
             "bytes_per_s": round(one.rate), "most_bytes_per_s": round(one.most)}
            for one in checked.impossible
        ]  # fmt: skip

    def untested(self, known: Posterior) -> int:
        """Places of which the results do not say whether they are slow."""
        from linkwright.advise.locate.search import TESTED

        return int((known.untested > TESTED).sum())

    def _set(self, which: Sequence[int], shares: Sequence[float]) -> str:
        names = [
            f"{self.model.places[at].part.name} at {share:.0%} of its rate"
            for at, share in zip(which, shares, strict=True)
        ]
        return " and ".join(names) or "in these tests nothing was slow by more than 10 %"

    def _unexplained(self, known: Posterior) -> Iterator[str]:
        for source, (a, b), ratio in known.strays[:SHOWN]:
            where = f"{source}: {self.rank(a)} to {self.rank(b)}"
            yield f"{where} is at {ratio:.0%} of what this answer gives; repeat that test"

    def _apart(self, found: SearchState, shares: Sequence[float], seen: Sequence[Observation]) -> float | None:
        from linkwright.advise.locate import fault

        if not found.which or any(self.model.places[at].part.one_way for at in found.which):
            return None
        slow = fault.slowed(self.model, found.which, shares, self.variant)
        every = (fault.apart(self.name, self.variant, slow, one) for one in reversed(seen))
        return next((one for one in every if one is not None), None)

    def _write(self, out: Path, found: SearchState, shares: Sequence[float]) -> None:
        from linkwright import machines
        from linkwright.advise.locate import fault
        from linkwright.base.files import write_text

        if found.word != "found":
            say(f"note      {out}: not written; no fault is certain enough")
            return
        write_text(out, machines.draft(self.name, fault.slowed(self.model, found.which, shares, self.variant)).text)
        one_way = any(self.model.places[at].part.one_way for at in found.which)
        say(f"wrote {out}: the machine with the fault{', slow both ways: files know no direction' if one_way else ''}")
