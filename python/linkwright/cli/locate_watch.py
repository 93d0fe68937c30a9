"""`linkwright locate --run --watch`: repeat tests in this MPI job, and say when a rate has changed."""

from __future__ import annotations

import collections
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.units import GIGA, counted
from linkwright.cli import locate_job
from linkwright.cli.output import print_json, say

if TYPE_CHECKING:
    from linkwright.advise.locate.parts import Floats
    from linkwright.advise.locate.posterior import Observation
    from linkwright.advise.locate.watch import RateChange
    from linkwright.cli.locate import LocateTask

_TESTS = 3  # of a round


def watch(
    asked: LocateTask, interval: float, rounds: int | None, alarms: float, log: Path | None, textfile: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Repeat the first tests until the rounds are done, or the process is told to end."""
    from linkwright.advise.locate import watch as sequential
    from linkwright.base.files import write_text
    from linkwright.executors.mpi import exchange

    ended: list[int] = []
    # mpirun passes Ctrl-C on as SIGTERM, to all ranks; rank 0 lets the others go.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda sign, _: ended.append(sign))
    with locate_job.job(asked) as world:
        if world is None:
            return
        asked.learn((), ())
        tests = [one.test for one in asked.search.first(_TESTS)]
        state = sequential.RateWatch(asked.model, tests, asked.noise, interval, alarms)
        cells = sum(len(test.cells) for test in tests)
        say(
            f"{asked.layout.name}: {counted(len(tests), 'test')} with {cells} rates every {interval:g} s; the first "
            f"{sequential.LEARNT} rounds are learnt; at most {alarms:g} false alarms a day"
        )
        count = 0
        # An alarm takes these rounds at least, so a fault is in all of them.
        recent: collections.deque[Observation] = collections.deque(maxlen=len(tests) * sequential.LEAST_ROUNDS)
        while not ended:
            seen = [locate_job.measured(asked, world, test, log) for test in tests]
            recent += seen
            count += 1
            expected = [state.expected(test) for test in tests]
            changes = [change for one in seen for change in state.add(one)]
            if textfile:
                write_text(textfile, _metrics(asked, seen, expected, count))
            if changes:
                _alarm(asked, list(recent), changes, count, as_json)
            if count == rounds:
                break
            exchange.pause(world, interval, lambda: bool(ended))
        say(f"{counted(count, 'round')} measured{', then ended by a signal' if ended else ''}")


def _alarm(
    asked: LocateTask, seen: Sequence[Observation], changes: Sequence[RateChange], count: int,
    as_json: bool,
) -> None:  # fmt: skip
    known, found, checked = asked.judge(seen)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    places = [asked.model.places[at].part.name for at in found.which]
    if as_json:
        print_json({
            "time": now, "round": count, "verdict": found.word, "probability": round(found.chance, 4), "places": places,
            "shares": [round(share, 3) for share in known.share(found.which)],
            "impossible": asked.impossible(checked), "untested": asked.untested(known),
            "changes": [{"cell": one.cell, "expected": round(one.before), "measured": round(one.now)}
                        for one in changes],
        })  # fmt: skip
        return
    for one in changes:
        a, b = one.cell[0]
        click.echo(
            f"{now} changed  {asked.rank(a)} to {asked.rank(b)}: at {one.now / one.before:.0%} of the rate expected"
        )
    shares = known.share(found.which)
    click.echo("\n".join(asked.verdict(known, found, checked, shares, None)))
    for line in checked.words(asked.rank):
        click.echo(f"note      {line}")


def _metrics(asked: LocateTask, seen: Sequence[Observation], expected: Sequence[Floats], count: int) -> str:
    """The rates of a round as the text of a Prometheus exporter; names as those of NCCL's Inspector."""
    lines = []
    both: tuple[tuple[str, str, Sequence[Sequence[float] | Floats]], ...] = (
        ("measured", "rate of a message in the last round", [one.rates for one in seen]),
        ("expected", "rate of the same message when it was learnt", expected),
    )
    for key, words, rates in both:
        name = f"linkwright_p2p_bandwidth_gbs_{key}"
        lines += [f"# HELP {name} {words}, in GB/s", f"# TYPE {name} gauge"]
        for one, row in zip(seen, rates, strict=True):
            for cell, rate in zip(one.test.cells, row, strict=True):
                a, b = (_escaped(asked.rank(end)) for end in cell[0])
                label = f'test="{one.test.name}",source="{a}",target="{b}"'
                lines += [f"{name}{{{label}}} {rate / GIGA:.6g}"] if rate == rate else []
    rounds = "linkwright_locate_rounds_total"
    return "\n".join([*lines, f"# HELP {rounds} rounds of tests", f"# TYPE {rounds} counter", f"{rounds} {count}", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
