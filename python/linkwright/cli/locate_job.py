"""`linkwright locate --run`: measure in the MPI job that this process belongs to."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import MEGA, US_PER_S, counted, format_size
from linkwright.cli.output import print_json, say

if TYPE_CHECKING:
    from linkwright.advise.locate.posterior import Observation
    from linkwright.advise.locate.rounds import Test
    from linkwright.cli.locate import LocateTask

_SHOWN_HOSTS = 16  # in a map
_TIMED_ROUNDS = 22
_SECONDS = 0.25  # that a message of a test takes
_LEAST, _FIRST, _MOST = 64 << 10, 1 << 20, 256 << 20  # bytes of a message


def search(
    asked: LocateTask, baseline: Sequence[Path], log: Path | None, budget: float, out: Path | None, as_json: bool
) -> None:
    """Run tests in this MPI job, until the verdict."""
    from linkwright.advise.locate.search import MOST_WAITS

    with job(asked) as world:
        if world is None:
            return
        asked.learn((), asked.read(baseline)[0] if baseline else ())
        seen: list[Observation] = []
        end, longest = time.monotonic() + budget, 0.0
        test, ended = asked.search.first(1)[0].test, ""
        repeated: set[tuple[int, ...]] = set()
        while True:
            begin = time.monotonic()
            seen.append(measured(asked, world, test, log))
            known, found, _ = asked.judge(seen)
            if not as_json:
                say(f"{test.name}: {counted(len(test.cells), 'rate')}; {found.word} {found.chance:.1%}")
            longest = max(longest, time.monotonic() - begin)
            if found.word == "found" and found.which not in repeated:
                # Something else may have kept a host busy: what is named is slow again when its tests are repeated.
                repeated.add(found.which)
                tests = dict.fromkeys(one.test for one in seen if asked.feels(one.test, found.which))
                seen += [measured(asked, world, one, log) for one in tests]
                known, found, _ = asked.judge(seen)
            test = asked.search.next(known, [one.test for one in seen], found.word == "found").test
            again = test in {one.test for one in seen}
            if found.word == "healthy" or (found.word == "found" and (found.covered or again)):
                break
            if (waits := known.waits(found.which) or 0) >= MOST_WAITS:
                ended = f"it was not slow again in {waits} tests; something else may have kept a host busy. Use --watch"
                break
            if time.monotonic() + longest > end:
                if found.word == "open":
                    ended = "the budget is spent; give more with --budget, or repeat with --baseline"
                break
        asked.show(seen, (), out, as_json, ended)


@contextlib.contextmanager
def job(asked: LocateTask | None) -> Iterator[Any]:
    """The ranks of this MPI job, for its first one; None for the others, which have served it and end."""
    from linkwright.executors import EXECUTORS

    mpi = EXECUTORS["mpi"]
    with mpi.job(True, False) as leads:
        world = mpi.resolve(None, None).handle if leads else None
        if world is not None and asked:
            check_job(asked, world)
        yield world


def check_job(asked: LocateTask, world) -> None:
    """Refuse a job whose ranks are not those of the machine."""
    layout = asked.layout
    if world.size != layout.machine.ranks:
        raise UsageError(
            f"--run: the job has {world.size} ranks and {layout.name} {layout.machine.ranks}; start as many, "
            f"{layout.each} on each host, or name a machine of that size"
        )
    of: dict[str, set[int]] = {}
    for place, host in zip(world.places, layout.host_of, strict=True):
        of.setdefault(place.host, set()).add(host)
    shared = next((name for name, its in of.items() if len(its) > 1), None)
    if shared:
        raise UsageError(
            f"--run: {layout.name} has {counted(len(layout.hosts), 'host')} of {layout.each} ranks in order, and "
            f"{shared} has ranks of several; start the job with `--map-by ppr:{layout.each}:node`, or "
            "state in the machine file how many hosts its ranks share: `hosts` in [endpoints]"
        )
    if len(of) == len(layout.hosts):
        asked.hosts = list(of)


def measured(asked: LocateTask, world, test: Test, log: Path | None) -> Observation:
    """Run a test, and append its results to a file."""
    import numpy as np

    from linkwright.advise.locate import results
    from linkwright.advise.locate.posterior import Observation
    from linkwright.executors.mpi import exchange

    slowest = float(np.exp(asked.model.of(test).base.min()))
    size = _size(slowest)
    rates = exchange.rates(world, [cell[0] for cell in test.cells], size)
    found = Observation(test, tuple(rates), f"{test.name}, {format_size(size)}")
    if log:
        with log.open("a", encoding="utf-8") as file:
            file.write(results.line(asked.layout.name, asked.layout.machine.ranks, found, size))
    return found


def _size(rate: float) -> int:
    """Bytes of a message that takes about `_SECONDS` at a rate in bytes per second."""
    return max(1, min(int(_SECONDS * rate), _MOST) // _LEAST) * _LEAST


def map_of_hosts(budget: float, as_json: bool) -> None:
    """Measure a map of all pairs of hosts of this MPI job, as far as the budget goes."""
    import numpy as np

    from linkwright.advise.locate import pair_map
    from linkwright.executors.mpi import exchange

    with job(None) as world:
        if world is None:
            return
        first = {host: [place.host for place in world.places].index(host) for host in world.hosts}
        if len(first) < 3:
            raise UsageError(f"--run: a map needs three hosts, and the job has {len(first)}; start it on more")
        leaders, count = list(first.values()), len(first)
        rates, alone = (np.full((count, count), np.nan) for _ in range(2))
        end = time.monotonic() + budget
        # A short round says how large messages have to be.
        size, longest = _FIRST, 0.0
        for number, pairs in enumerate(pair_map.rounds(count)):
            begin = time.monotonic()
            flows = [(leaders[a], leaders[b]) for a, b in pairs]
            if not number:
                usual = sorted(exchange.rates(world, flows, size))[len(flows) // 2]
                size = _size(usual)
            for (a, b), rate in zip(pairs, exchange.rates(world, flows, size), strict=True):
                rates[a, b] = rate
            longest = time.monotonic() - begin
            if begin + 2 * longest > end:
                break
        # Messages of all sizes between neighbours take about as long as so many rounds.
        timed = None
        if time.monotonic() + _TIMED_ROUNDS * longest < end:
            timed = pair_map.message_times(
                count, size, lambda pairs, size, apart_s: [
                    size / rate
                    for rate in exchange.rates(world, [(leaders[a], leaders[b]) for a, b in pairs], size, apart_s)
                ],
                lambda pairs: exchange.gaps(world, [(leaders[a], leaders[b]) for a, b in pairs]),
            )  # fmt: skip
        longest = 0.0
        # Messages alone, the slowest under load first: what is slow alone as well is no matter of shared links.
        order = [at for at in np.argsort(rates, axis=None).tolist() if rates.flat[at] == rates.flat[at]]
        for a, b in (divmod(at, count) for at in order):
            begin = time.monotonic()
            if begin + longest > end:
                break
            (alone[a, b],) = exchange.rates(world, [(leaders[a], leaders[b])], size)
            longest = max(longest, time.monotonic() - begin)
        # The smallest message, between neighbours in the order of the job.
        short = [1 / exchange.rates(world, [pair], 1)[0] for pair in itertools.pairwise(leaders)]
        found = pair_map.judged(list(first), rates, alone)
        _show_map(found, size, float(np.median(short)), timed, as_json)


def _show_map(found, size: int, short_s: float, timed, as_json: bool) -> None:
    if as_json:
        maps = {
            key: [[None if rate != rate else round(rate) for rate in row] for row in getattr(found, key).tolist()]
            for key in ("rates", "alone")
        }
        costs = {"messages": vars(timed)} if timed else {}
        print_json({**vars(found), **maps, "size_bytes": size, "short_us": round(short_s * US_PER_S, 3), **costs})
        return
    single = (found.alone == found.alone).sum() / max(1, (found.rates == found.rates).sum())
    click.echo(
        f"{len(found.hosts)} hosts, {found.coverage:.0%} of their pairs with a round at once and {single:.0%} of these "
        f"alone, {format_size(size)} each; one byte takes {short_s * US_PER_S:.0f} us\n"
    )
    order = found.order[:_SHOWN_HOSTS]
    width = max(9, *(len(found.hosts[host]) + 1 for host in order))
    for title, rates in (("at once", found.rates), ("alone", found.alone)):
        click.echo(f"MB/s {title}".ljust(width + 4) + "".join(found.hosts[host].rjust(width) for host in order))
        for a in order:
            cells = ("" if rates[a, b] != rates[a, b] else f"{rates[a, b] / MEGA:.4g}" for b in order)
            click.echo(found.hosts[a].ljust(width + 4) + "".join(cell.rjust(width) for cell in cells))
        click.echo("")
    click.echo("\n".join(found.findings))
