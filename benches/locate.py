"""How well `linkwright locate` finds planted faults: a referee simulates each test with the engine.

    .venv/bin/python benches/locate.py --drawn 40 --healthy 40 --large
    .venv/bin/python benches/locate.py --real 5 --healthy 5 [--only ring --hosts 8]   namespaces, a real MPI job; root

The search predicts by fair shares of one test at a time. The referee has the machine with the fault (`--degrade`,
through the composer), simulates all messages of a test with start-ups, latencies and ranks that start up to 0.1 ms
apart, and multiplies each rate by the share that software gets and by noise.
Faults are drawn over links, switches and hosts of the described machine; one in three is a pair of them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import quick

from linkwright import _native, machines
from linkwright.advise.locate import posterior as beliefs
from linkwright.advise.locate.effects import FaultModel
from linkwright.advise.locate.parts import Component, HostLayout
from linkwright.advise.locate.posterior import NOISE, Observation
from linkwright.advise.locate.rounds import Test, library
from linkwright.advise.locate.search import MOST_WAITS, RoundChooser, verdict
from linkwright.advise.plans.traffic import as_goal
from linkwright.ask.answer import How, ask
from linkwright.executors.cluster import spec
from linkwright.machines import Variant, writer

SIZE = 256 << 20  # bytes of a message
MOST_TESTS = 20
# What the search does not know: the part of the described rates that software gets, and how far apart ranks start.
SOFTWARE, START_NS = (0.85, 1.0), 100_000
Fault = tuple[Component, float]  # and the share of its rate that is left
BANDS = ((0.0, 0.5), (0.5, 0.85), (0.85, 0.95), (0.95, 0.99), (0.99, 1.01))


@dataclass
class Case:
    """One search.

    Attributes:
        true: the planted parts that a test of the library feels, by the referee; empty if healthy.
        felt: whether there are any, and they were there in a test.
        named: rank of the true set among the answers, from 1; 0 if it is not among them.
        tests: tests that were run.
        word, chance: the verdict.
        right: whether the verdict holds.
        error: of the found rate, relative.
        seconds: processor time of the longest update.
        stated: the probability of the likeliest answer after each test, and whether it was right.
        said: what was planted, and what was answered.
    """

    true: tuple[Component, ...]
    felt: bool
    named: int
    tests: int
    word: str
    chance: float
    right: bool
    error: float
    seconds: float
    stated: list[tuple[float, bool]]
    said: str


def torus(folder: Path, sides: Sequence[int]) -> str:
    """A torus of nodes that pass messages on, as a list of links."""
    names = [",".join(map(str, at)) for at in np.ndindex(*sides)]
    links = []
    for at in np.ndindex(*sides):
        for axis, side in enumerate(sides):
            other = tuple((c + 1) % side if k == axis else c for k, c in enumerate(at))
            if side > 2 or other > at:
                links.append(("link", f"node {','.join(map(str, at))}", f"node {','.join(map(str, other))}", 50e9))
    made = spec.LabCluster("torus", tuple(f"node {name}" for name in names), 1, (), tuple(links), {})
    return _written(folder, "torus-" + "x".join(map(str, sides)), made)


def _written(folder: Path, name: str, cluster: spec.LabCluster) -> str:
    document = spec.machine(cluster)
    document["machine"]["name"] = name
    path = folder / f"{name}.toml"
    path.write_text(writer.text(document), encoding="utf-8")
    return str(path)


def systems(folder: Path, large: bool) -> Iterator[tuple[str, str, Variant]]:
    """Machines to search."""
    tree = spec.shaped("tree", "fat_tree", 64, 12.5e9, 100e9, 8)
    yield "fat tree, 64 hosts", _written(folder, "tree-64", tree), Variant()
    for nodes in (8, 16, 32):
        network = "ndr-fat-tree,nodes_per_leaf=4,taper=2"
        yield f"rails, {8 * nodes} GPUs", "hgx-h100", Variant(nodes=nodes, fabric=network)
    yield "torus 4x4x4", torus(folder, (4, 4, 4)), Variant()
    yield "NVL72", "gb200-nvl72", Variant()
    yield "4 NVL72, 288 GPUs", "gb200-nvl72", Variant(nodes=4, fabric="ndr-fat-tree")
    if large:
        yield "torus 8x8x8", torus(folder, (8, 8, 8)), Variant()
        yield (
            "fat tree, 1024 hosts",
            _written(folder, "tree-1024", spec.shaped("tree", "fat_tree", 1024, 12.5e9, 200e9, 32)),
            Variant(),
        )
        yield "rails, 1024 GPUs", "hgx-h100", Variant(nodes=128, fabric="ndr-fat-tree")


class Referee:
    """The machine as it is; faults are there in a share `often` of the tests."""

    def __init__(
        self, name: str, variant: Variant, faults: Sequence[Fault], draw: random.Random, often: float = 1.0
    ) -> None:
        factors: dict[str, float] = {}
        for part, share in faults:
            for one in part.degrade:
                factors[one] = factors.get(one, 1.0) * share
        self._slow = machines.load(name, Variant.of(variant.nodes, variant.fabric, (), factors))
        self._sound = machines.load(name, variant) if often < 1 else self._slow
        self._draw, self._often, self.were_slow = draw, often, False
        self._software = draw.uniform(*SOFTWARE)

    def run(self, test: Test, noise: float) -> Observation:
        """Simulate a test; without noise, ranks start together and software gets all of the rates."""
        slow = self._often == 1 or self._draw.random() < self._often
        self.were_slow |= slow
        self.machine = self._slow if slow else self._sound
        program = as_goal(dict.fromkeys(test.flows, SIZE), self.machine.ranks)
        starts = ",".join(f"{self._draw.uniform(0, START_NS):.0f}ns" for _ in range(self.machine.ranks))
        how = How(messages=True, skew=f"list:{starts}" if noise else None)
        answer = ask(self.machine, _native.read_schedule(program, "test.goal"), how)
        operations = answer.schedule.operations()
        times = zip(
            operations["from"].tolist(), operations["to"].tolist(), answer.messages.latency_ps.tolist(), strict=True
        )
        rates = {(a, b): (self._software if noise else 1.0) * SIZE / (ps * 1e-12) for a, b, ps in times}
        slowest = (min(rates[flow] for flow in cell) for cell in test.cells)
        return Observation(test, tuple(rate * self._draw.lognormvariate(0, noise) for rate in slowest))


def search(
    name: str,
    variant: Variant,
    model: FaultModel,
    chooser: RoundChooser,
    true: Sequence[Fault],
    draw: random.Random,
    often: float = 1.0,
) -> Case:
    """Search one drawn fault."""
    referee = Referee(name, variant, true, draw, often)
    # A fault that no test of the library feels, as of a link that is never full, is none.
    felt = [one for one in true if _felt(name, variant, model, true, one)]
    seen: list[Observation] = []
    test = chooser.first(1)[0].test
    longest, wanted = 0.0, {part for part, _ in felt}
    stated: list[tuple[float, bool]] = []
    while True:
        seen.append(referee.run(test, NOISE))
        begin = time.process_time()
        known = beliefs.posterior(model, seen)
        found = verdict(known, seen)
        stated.append((found.chance, _is(model, found.which, wanted)))
        test = chooser.next(known, [one.test for one in seen], found.word == "found").test
        again = test in {one.test for one in seen}
        if found.word == "healthy" or (found.word == "found" and (found.covered or again)):
            break
        if len(seen) >= MOST_TESTS or (known.waits(found.which) or 0) >= MOST_WAITS:
            break
        longest = max(longest, time.process_time() - begin)
    ranked = [which for which, _ in known.sets()]
    named = next((at for at, which in enumerate(ranked[:10], 1) if _is(model, which, wanted)), 0)
    right = _is(model, found.which, wanted)
    error = float("nan")
    if right and len(felt) == 1:
        planted, place = felt[0][0], model.places[found.which[0]]
        error = abs(known.share(found.which)[0] * _rate(model, place.part) / felt[0][1] / _rate(model, planted) - 1)
    said = f"{' + '.join(f'{part.name} at {share:.0%}' for part, share in true)} => {_words(model, known, found.which)}"
    return Case(
        tuple(wanted),
        bool(felt) and referee.were_slow,
        named,
        len(seen),
        found.word,
        found.chance,
        right,
        error,
        longest,
        stated,
        said,
    )


def _rate(model: FaultModel, part: Component) -> float:
    """The rate of the narrowest link of a part, by which parts in series compare."""
    return min(float(model.routes.rates[link]) for link in part.links if link in model.routes.link)


def _words(model: FaultModel, known: beliefs.Posterior, which: Sequence[int]) -> str:
    shares = known.share(which)
    return " + ".join(f"{model.places[at].part.name} at {share:.0%}" for at, share in zip(which, shares, strict=True))


def _felt(
    name: str,
    variant: Variant,
    model: FaultModel,
    true: Sequence[Fault],
    one: Fault,
) -> bool:
    """True if this fault, added to the others, changes the referee's rates in the tests that its part affects most."""
    at = next(at for at, place in enumerate(model.places) if one[0] in place.parts)
    depth = [effects.drop[effects.of(at)].min(initial=0.0) for effects in model.effects]
    draw = random.Random(0)
    both = [Referee(name, variant, its, draw) for its in (true, [other for other in true if other is not one])]
    for number in np.argsort(depth)[:3].tolist():
        quiet = [np.log(referee.run(model.library[number], 0.0).rates) for referee in both]
        if (quiet[0] - quiet[1]).min() < -2 * NOISE:
            return True
    return False


def _is(model: FaultModel, which: Sequence[int], wanted: set[Component]) -> bool:
    """True if these places are the planted parts."""
    return set(which) == {at for at, place in enumerate(model.places) if wanted.intersection(place.parts)}


def bisection(hosts: int) -> float:
    """Tests of one number that halve the hosts until one is left: all, then both halves at every step."""
    return 1 + 2 * float(np.ceil(np.log2(hosts)))


def drawn(model: FaultModel, draw: random.Random) -> list[Fault]:
    """One fault, or two."""
    parts = [part for place in model.places for part in place.parts if not part.one_way]
    chosen = draw.sample(parts, 2 if draw.random() < 1 / 3 else 1)
    return [(part, draw.uniform(0.1, 0.9)) for part in chosen]


def main() -> None:
    """Print one row for each machine, and the calibration over all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--drawn", type=int, default=30)
    parser.add_argument("--healthy", type=int, default=30)
    parser.add_argument("--intermittent", type=int, default=0, help="single faults that are there in a share of tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--real", type=int, help="faults drawn for each shape of real clusters")
    parser.add_argument("--hosts", type=int, nargs="*", default=(6, 8), help="sizes of real clusters")
    parser.add_argument("--only", default="", help="machines or shapes with this in their names")
    asked = quick.arguments(parser, drawn=1, healthy=1, only="ring")
    if asked.real is not None:
        shapes = [shape for shape in spec.SHAPES if asked.only in shape]
        real(shapes, asked.hosts, asked.real, asked.healthy, random.Random(asked.seed))
        return
    everything: list[Case] = []
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    with TemporaryDirectory() as folder:
        for title, name, variant in systems(Path(folder), asked.large):
            if asked.only not in title:
                continue
            draw = random.Random(asked.seed)
            begin = time.process_time()
            layout = HostLayout(machines.load(name, variant))
            model = FaultModel(layout, library(layout, "each"))
            chooser = RoundChooser(model)
            chooser.first(3)
            plan = time.process_time() - begin
            cases = [search(name, variant, model, chooser, drawn(model, draw), draw) for _ in range(asked.drawn)]
            sound = [search(name, variant, model, chooser, [], draw) for _ in range(asked.healthy)]
            everything += [*cases, *sound]
            _row(title, layout, plan, cases, sound)
            if asked.intermittent:
                passing = [
                    search(name, variant, model, chooser, drawn(model, draw)[:1], draw, draw.choice((0.3, 0.5, 0.7)))
                    for _ in range(asked.intermittent)
                ]
                _row(f"{title}, come and go", layout, plan, passing, ())
    for what, stated in (
        ("after each test", [one for case in everything for one in case.stated]),
        ("verdicts", [(case.chance, case.right) for case in everything if case.word != "open"]),
    ):
        for low, high in BANDS:
            its = [one for one in stated if low <= one[0] < high]
            if its:
                mean = sum(chance for chance, _ in its) / len(its)
                true = _share([good for _, good in its])
                print(f"{what}: {low:.0%} to {min(high, 1):.0%}, mean {mean:.1%}: {true} true")


def real(shapes: Sequence[str], sizes: Sequence[int], count: int, healthy: int, draw: random.Random) -> None:
    """Plant faults in clusters of namespaces, and let a job of Open MPI find them; then search healthy ones."""
    for shape in shapes:
        for number in range(count + healthy):
            hosts = draw.choice(sizes)
            made = spec.shaped("bench", shape, hosts, 10e6, 20e6, 2)
            fault, share = _drawn_real(made, draw) if number < count else ("", 1.0)
            begin = time.perf_counter()
            with TemporaryDirectory() as folder:
                found = _job(Path(folder), shape, hosts, len(made.hosts), fault, share)
            answers = found["answers"]
            named = next((at for at, one in enumerate(answers, 1) if any(fault in place for place in one["places"])), 0)
            right = (named == 1 and len(answers[0]["places"]) == 1) if fault else not answers[0]["places"]
            rate = answers[0]["shares"][0] / share - 1 if fault and right else float("nan")
            planted, word = f"{fault} at {share:.0%}" if fault else "healthy", "right" if right else "WRONG"
            verdict = f"{word} place {named} {found['verdict']} {found['probability']:.2f} rate off by {rate:+.1%}"
            took = time.perf_counter() - begin
            print(f"{shape:9} {hosts} hosts {planted:28} {verdict} {took:.0f} s", flush=True)
            if not right:
                print("    ", [one["places"] for one in answers[:3]], answers[0]["shares"], flush=True)


def _drawn_real(made: spec.LabCluster, draw: random.Random) -> tuple[str, float]:
    """A link, both ways or one way."""
    _, a, b, _ = draw.choice([link for link in made.links if link[0] != "bus"])
    back = draw.random() < 0.5
    names = (f"{a} - {b}", f"{b} -> {a}" if back else f"{a} -> {b}")
    return draw.choice(names), draw.choice((0.25, 0.4, 0.55, 0.7))


def _job(folder: Path, shape: str, hosts: int, ranks: int, fault: str, share: float) -> dict[str, Any]:
    """Run the job on a new cluster."""
    lab = folder / "lab.toml"
    lines = ["[cluster]", 'name = "bench"', f'shape = "{shape}"', f"hosts = {hosts}", "port = 80", "uplink = 160"]
    lab.write_text(
        "\n".join([*lines, *(["[faults]", f'"{fault}" = {share}'] if fault else [])]) + "\n", encoding="utf-8"
    )
    linkwright = [sys.executable, "-m", "linkwright"]
    described = subprocess.run([*linkwright, "cluster", "describe", lab], check=True, capture_output=True, text=True)
    (folder / "machine.toml").write_text(described.stdout, encoding="utf-8")
    each = ranks // hosts
    search = ["locate", "--on", str(folder / "machine.toml"), "--run", "--noise", "6%", "--json"]
    job = ["mpirun", "-np", str(ranks), "--map-by", "slot" if each > 1 else "node", *linkwright, *search]
    done = subprocess.run(
        [*linkwright, "cluster", "up", lab, "--", *job], check=False, capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


HEAD = (
    "machine", "felt", "first three: single", "double", "first", "tests", "bisection", "all pairs", "false alarms",
    "called healthy", "tests", "rate off by", "plan", "update",
)  # fmt: skip


def _row(title: str, layout: HostLayout, plan: float, cases: Sequence[Case], sound: Sequence[Case]) -> None:
    felt = [one for one in cases if one.felt]
    hosts = len(layout.hosts)
    errors = [one.error for one in felt if one.error == one.error]
    cells = [title, f"{len(felt)}/{len(cases)}"]
    for number in (1, 2):
        cells.append(_share([0 < one.named <= 3 for one in felt if len(one.true) == number]))
    cells += [_share([one.named == 1 for one in felt]), f"{_middle([one.tests for one in felt])}"]
    cells += [f"{bisection(hosts):g}", f"{hosts * (hosts - 1) // 2}"]
    cells += [_share([one.word == word for one in sound]) for word in ("found", "healthy")]
    cells += [_middle([one.tests for one in sound]), f"{statistics.median(errors or [0]):.1%}"]
    cells += [f"{plan:.1f} s", f"{max(one.seconds for one in (*cases, *sound)):.2f} s"]
    print(f"| {' | '.join(cells)} |", flush=True)
    for one in felt:
        if not one.right:
            print("    not first:", one.named, one.said, "|", one.word, f"{one.chance:.2f}", one.tests, flush=True)


def _middle(counts: Sequence[int]) -> str:
    return f"{statistics.median(counts):g}" if counts else "-"


def _share(holds: Sequence[bool]) -> str:
    return f"{sum(holds)}/{len(holds)}" if len(holds) else "-"


if __name__ == "__main__":
    main()
