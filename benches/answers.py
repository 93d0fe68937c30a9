"""Scores the answers of `linkwright explain`: healthy logs, faulty logs of a second model, logs that people posted.

    .venv/bin/python benches/answers.py [healthy] [faulty] [posted] [time] [--seed 1] [--lines] [--json FILE]

    healthy   published tables of the evidence package as logs: how many are called fine
    faulty    logs of `fault_model.py`, which knows nothing of the hypotheses: is the cause in the first three places;
              as people paste them, or with the lines that the library prints (`--lines`)
    posted    numbers whose cause was found (tests/posted.toml, and cases of the evidence package with a fault)
    time      processor time of an answer on 8 to 1,024 GPUs

A first place that is wrong counts as confident unless the answer itself says that it is not certain: its probability is
stated, and the bench shows how often such places are right. Shares have an interval of 95 % (Wilson). The same seed
gives the same logs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import fault_model
import quick

from linkwright.advise.explain import log as logs
from linkwright.base.errors import LinkwrightError
from linkwright.formats.logs import Source, read_source
from linkwright.machines import Variant

ROOT = Path(__file__).resolve().parent.parent
POSTED = ROOT / "tests" / "posted.toml"
FIRST = 3
WANTED = {"healthy": 0.95, "faulty": 0.85, "posted": 8 / 12}
LONGEST_S = 3.0

# Fault of the second model -> kinds of hypotheses that name it.
KINDS = {
    "port down": ("missing ports",), "links slow": ("links down",), "port errors": ("slow network",),
    "slow GPU": ("slow rank",), "low clock": ("low clock",), "protocol forced": ("protocol",),
    "algorithm forced": ("algorithm",), "GPUDirect off": ("no GPUDirect",), "sockets": ("sockets",),
    "one process": ("one process",), "neighbour": ("neighbour",), "PCIe only": ("no links",),
    "multicast off": ("algorithm",), "NIC affinity": ("ACS",), "version": ("version",),
}  # fmt: skip
# Number of a case of the evidence package -> the kind that its author confirmed.
CONFIRMED = {
    1: "ACS", 4: "SHARP", 8: "no GPUDirect", 9: "sockets", 10: "sockets", 25: "ACS", 27: "ACS", 38: "missing ports",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A log, the options that a user gives with it, and the truth.

    Attributes:
        name: of the log.
        truth: what is wrong, in words; empty: nothing.
        kinds: of hypotheses that name it.
        text: the log.
        machine: given with `--on`; None: from the devices.
        nodes, fabric, without: given with `--nodes`, `--fabric` and `--without`.
    """

    name: str
    truth: str
    kinds: Sequence[str]
    text: str
    machine: str | None
    nodes: int | None = None
    fabric: str | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """An answer and the truth.

    Attributes:
        name, truth: of the log.
        verdict: in a word, or why there is none.
        share: of the healthy rate.
        places: kinds of each place.
        distances: the factor of each place.
        stated: the probability of each place.
        place: of the true cause, from 1; None: it is not there.
        single: the same where each kind counts for itself; a place may hold several that a log cannot tell apart.
        nearest: where no cause is near enough to be one, the kinds of the nearest, which the answer remarks.
        remarked: whether those name the cause.
        confident: whether the first place is wrong and looks certain.
        seconds: processor time.
    """

    name: str
    truth: str
    verdict: str
    share: float | None = None
    places: Sequence[Sequence[str]] = ()
    distances: Sequence[float] = ()
    stated: Sequence[float] = ()
    place: int | None = None
    single: int | None = None
    nearest: Sequence[str] = ()
    remarked: bool = False
    confident: bool = False
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """True if a healthy log is called fine, or the cause of a faulty one is among the first places."""
        return self.verdict == "fine" if not self.truth else self.place is not None and self.place <= FIRST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[], help="default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the second model")
    parser.add_argument("--count", type=int, default=60, help="healthy and faulty logs")
    parser.add_argument("--most-gpus", type=int, default=64, help="of a healthy log; more take minutes")
    parser.add_argument("--lines", action="store_true", help="faulty logs with what the library prints")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all answers")
    asked = quick.arguments(parser, parts=["faulty"], count=1)
    found = {part: PARTS[part](asked) for part in asked.parts or PARTS}
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1, default=asdict) + "\n", encoding="utf-8")


def healthy(asked: argparse.Namespace) -> list[Scored]:
    """Published tables of healthy systems."""
    found = [_shown(score(one)) for one in published(asked.count, asked.most_gpus)]
    _share("healthy logs are called fine", found, WANTED["healthy"])
    return found


def published(count: int, most_gpus: int) -> Iterator[Asked]:
    """Tables of healthy systems in which nothing was forced: one of each system and number of nodes in turn."""
    from linkwright_evidence.modern import cells

    groups: dict[tuple[str, int], list[cells.Table]] = {}
    for table in cells.tables(faulty=False):
        if table.shape and "/" not in table.shape.algorithm and table.condition.gpus <= most_gpus:
            groups.setdefault((table.condition.machine, table.condition.nodes), []).append(table)
    # Other groups begin with other collectives.
    turns = [its[at % len(its) :] + its[: at % len(its)] for at, its in enumerate(groups.values())]
    chosen = [its[turn] for turn in range(max(map(len, turns))) for its in turns if turn < len(its)]
    return map(_published, chosen[:count])


def _published(table) -> Asked:
    condition, shape = table.condition, table.shape
    factor = fault_model.bus_factor(condition.collective, condition.gpus)
    rows = {
        size: point.time_us or size * factor / point.bus_rate / 1e3
        for size, point in table.points.items()
        if point.time_us or point.bus_rate
    }
    gpus = condition.gpus // condition.nodes
    setting = table.setting
    text = fault_model.nccl_log(
        condition.collective, rows, condition.nodes, gpus, shape.machine,
        [f"{setting.library.upper()} version {setting.version}"], each=gpus if shape.one_process else 1,
    )  # fmt: skip
    name = f"{table.id} {condition.collective} {condition.nodes} x {gpus} {condition.machine}"
    several = shape.nodes > 1
    return Asked(name, "", (), text, shape.machine, shape.nodes if several else None, shape.fabric if several else None)


def faulty(asked: argparse.Namespace) -> list[Scored]:
    """Logs of the second model."""
    found = []
    for one in fault_model.logs(asked.count, asked.seed):
        run = one.run
        system = (run.node.machine, run.nodes, run.node.fabric) if run.nodes > 1 else (run.node.machine,)
        name = f"{run.nodes} x {run.node.machine} {run.collective}"
        told = Asked(name, one.fault, KINDS[one.fault], one.log(lines=asked.lines), *system)
        found.append(_shown(score(told)))
    print(f"\n{'fault':18} {'logs':>4} {'first':>5} {'in 3':>5} {'confident wrong':>16}  first places")
    for fault in dict.fromkeys(one.truth for one in found):
        its = [one for one in found if one.truth == fault]
        heads = ", ".join("/".join(one.places[0]) if one.places else one.verdict for one in its)
        firsts = sum(one.place == 1 for one in its)
        print(f"{fault:18} {len(its):4} {firsts:5} {sum(one.right for one in its):5} "
              f"{sum(one.confident for one in its):16}  {heads}")  # fmt: skip
    _share("causes of faulty logs are in the first three places", found, WANTED["faulty"])
    held = statistics.mean(len({kind for its in one.places[:FIRST] for kind in its}) for one in found)
    single = sum(one.single is not None and one.single <= FIRST for one in found)
    print(f"{single} of {len(found)} are among the first three kinds; three places hold {held:.1f} kinds on average")
    return found


def posted(_: argparse.Namespace) -> list[Scored]:
    """Numbers that people posted, whose cause was found."""
    revealed = [_shown(score(retyped(case)) if case.get("typed", True) else untyped(case)) for case in cases()]
    _share("revealed cases have their cause in the first three places", revealed, WANTED["posted"])
    known = [_shown(score(one)) for one in _known()]
    _share("other cases have their cause in the first three places", known, WANTED["posted"])
    return [*revealed, *known]


def cases() -> list[dict]:
    """The cases of tests/posted.toml."""
    return tomllib.loads(POSTED.read_text(encoding="utf-8"))["case"]


def untyped(case: dict) -> Scored:
    """The score of a case without a log."""
    return Scored(_name(case), case["truth"], "no log: the thread gives too little")


def _name(case: dict) -> str:
    return f"{case['number']} {case['what']}"


def retyped(case: dict) -> Asked:
    """The log of a case of tests/posted.toml."""
    ranks, nodes = case["ranks"], case["nodes"]
    collective = case.get("collective", "allreduce")
    factor = fault_model.bus_factor(collective, ranks)
    rows = {size * fault_model.MIB: size * fault_model.MIB * factor / rate / 1e3 for size, rate in case["rows"]}
    once = fault_model.nccl_log(
        collective, rows, nodes, ranks // nodes, case["device"], case.get("said", ()), each=None
    )
    return Asked(
        _name(case), case["truth"], case["kinds"], once * case.get("runs", 1), None,
    )  # fmt: skip


def _known() -> Iterator[Asked]:
    from linkwright import machines
    from linkwright.base.units import parse_size
    from linkwright_evidence.modern.cases import known

    for case in known():
        if not case.fault or case.number not in CONFIRMED:
            continue
        variant = case.variant(faulty=False)
        gpus = machines.load(case.machine, variant).ranks // case.nodes
        size = parse_size(case.size)
        factor = fault_model.bus_factor(case.collective, gpus * case.nodes)
        text = fault_model.nccl_log(
            case.collective, {size: size * factor / case.posted / 1e3}, case.nodes, gpus, case.machine,
            [f"NCCL version {case.algorithm.partition('/')[0].partition('-')[2]}"], each=None,
        )  # fmt: skip
        yield Asked(f"{case.number} {case.what}", CONFIRMED[case.number], (CONFIRMED[case.number],), text, case.machine,
                    case.nodes, case.fabric, variant.without)  # fmt: skip


def times(_: argparse.Namespace) -> list[dict[str, object]]:
    """Processor time of answers to slow logs, by size."""
    found: list[dict[str, object]] = []
    node = fault_model.BY_MACHINE["hgx-h100"]
    for collective in ("allreduce", "alltoall"):
        for nodes in (1, 4, 16, 64, 128):
            run = fault_model.Run(node, nodes, collective, network=lambda size: 0.45, inside=lambda size: 0.8)
            rows = {size: run.time(size) for size in fault_model.SIZES}
            text = fault_model.nccl_log(collective, rows, nodes, node.gpus, node.device)
            several = nodes > 1
            one = score(Asked(f"{collective} {nodes * node.gpus}", "slow", (), text, node.machine,
                              nodes if several else None, node.fabric if several else None))  # fmt: skip
            found.append({"collective": collective, "gpus": nodes * node.gpus, "seconds": round(one.seconds, 2)})
            late = "" if one.seconds <= LONGEST_S else f"   above {LONGEST_S:g} s"
            print(f"{collective:10} {nodes * node.gpus:5} GPUs {one.seconds:7.2f} s{late}", flush=True)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Sequence]] = {
    "healthy": healthy, "faulty": faulty, "posted": posted, "time": times,
}  # fmt: skip


def score(asked: Asked) -> Scored:
    """Ask `explain` and compare its answer with the truth."""
    start = time.process_time()
    try:
        answer = _answer(asked)
    except LinkwrightError as error:
        seconds = time.process_time() - start
        return Scored(asked.name, asked.truth, f"refused: {error}", seconds=seconds)
    seconds = time.process_time() - start
    verdict = answer.verdict
    # Of two faults together, each names the cause.
    places = [[kind for case in one.cases for kind in case.kind.split(" + ")] for one in answer.suspects]
    distances = [suspect.distance for suspect in answer.suspects]
    stated = [suspect.probability for suspect in answer.suspects]
    place = next((at for at, its in enumerate(places, 1) if set(its) & set(asked.kinds)), None)
    if not asked.kinds and verdict.word == "fine":
        place = 1  # the truth is that nothing is wrong
    kinds = list(dict.fromkeys(kind for its in places for kind in its))
    single = next((at for at, kind in enumerate(kinds, 1) if kind in asked.kinds), None)
    nearest = [case.kind for one in answer.nearest for case in one.cases]
    return Scored(
        asked.name, asked.truth, verdict.word, verdict.share, places, distances, stated, place, single, nearest,
        bool(set(nearest) & set(asked.kinds)), bool(places) and not logs.doubts(answer) and place != 1, seconds,
    )  # fmt: skip


def _answer(asked: Asked) -> logs.Answer:
    log = read_source(Source(Path(asked.name), asked.text))
    variant = Variant(asked.nodes, asked.fabric, asked.without)
    return logs.answers(log, logs.tables(log)[:1], asked.machine, variant, None)[0]


def _shown(one: Scored) -> Scored:
    """Print an answer in a line."""
    its = zip(one.places, one.stated, one.distances, strict=True)
    places = ", ".join(f"{'/'.join(kinds)} {share:.0%} {far:.2f}" for kinds, share, far in its)
    at = "fine" if one.right and not one.truth else f"{one.place or '-':>4}"
    share = f"{one.share:5.0%}" if one.share is not None else "    -"
    name = f"{one.truth}: {one.name}" if one.truth else one.name
    remark = f"no cause; nearest {'/'.join(one.nearest)}" if one.nearest else ""
    print(f"{at} {'ok' if one.right else '--'} {share} {one.seconds:5.1f} s  {name} | {one.verdict} | {places}{remark}"
          f"{'  CONFIDENT' if one.confident else ''}", flush=True)  # fmt: skip
    return one


def _share(what: str, found: Sequence[Scored], wanted: float) -> None:
    right = sum(one.right for one in found)
    low, high = interval(right, len(found))
    seconds = [one.seconds for one in found]
    confident = sum(one.confident for one in found)
    remarked = sum(one.remarked for one in found)
    print(f"\n{right} of {len(found)} {what}: {right / len(found):.1%} (95 % interval {low:.0%} to {high:.0%}; "
          f"wanted {wanted:.0%}); {confident} confident and wrong, {remarked} named as the nearest only; "
          f"processor time median {statistics.median(seconds):.2f} s, maximum {max(seconds):.2f} s")  # fmt: skip


def interval(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share."""
    share = right / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return tuple((middle + sign * half) / (1 + z * z / count) for sign in (-1, 1))


if __name__ == "__main__":
    main()
