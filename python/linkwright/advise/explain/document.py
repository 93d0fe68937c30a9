"""The answers to a log and to a schedule as documents for programs, `linkwright explain --json`, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from linkwright.base.units import counted
from linkwright.formats.logs import Log

from . import links, verdict, waiting
from .links import LinkVerdict

if TYPE_CHECKING:
    from .log import Answer
    from .schedule import Found
    from .sensitivity import Effect
    from .suspects import Suspect

FORMAT = 1
Schema = dict[str, Any]


def values(answers: Sequence[Answer], source: str, log: Log, judged: Sequence[LinkVerdict] = ()) -> dict[str, Any]:
    """Return the document of the tables and links of a log; sizes are in bytes, times in us, rates in 10^9 B/s.

    Without answers it holds the arrivals of ranks alone, which need no machine.
    """
    failures = _failures(answers, log, judged)
    return {
        "format": FORMAT,
        "source": source,
        "wrong_results": any(answer.wrong for answer in answers),
        "passes": not failures and bool(answers or judged),
        "failures": failures,
        "tables": [_table(answer) for answer in answers],
        "links": [
            {"test": one.title, "verdict": one.verdict, "rates": [
                {"what": what, "rate": rate, "compared_with": limit or None, "share": share}
                for what, rate, limit, share in one.rows
            ], "answer": list(one.sentences)}
            for one in judged
        ],
        "arrivals": [asdict(one) for one in waiting.arrivals(log.operations)],
        "skipped_lines": log.skipped,
        "complaints": [{"line": line, "text": text} for line, text in log.named],
    }  # fmt: skip


def joined(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one document of several logs: it passes if all do."""
    first = dict(found[0])
    for one in found[1:]:
        first |= {key: first[key] + one[key] for key, value in one.items() if isinstance(value, list)}
        first["skipped_lines"] += one["skipped_lines"]
        first["source"] = f"{first['source']}, {one['source']}"
        first["wrong_results"] |= one["wrong_results"]
        first["passes"] &= one["passes"]
    return first


def _failures(answers: Sequence[Answer], log: Log, judged: Sequence[LinkVerdict]) -> list[str]:
    """Why a gate fails, in sentences; it also fails where nothing was judged."""
    word, unread = links.verdict(judged), len(log.complaints)
    slow = [f"Measured links are {word}."] if word not in (None, "fine") else []
    said = dict.fromkeys(text for answer in answers for text in answer.failures)
    return [*said, *slow, *([f"{counted(unread, 'line')} could not be read."] if unread else [])]


def _table(answer: Answer) -> dict[str, Any]:
    from .log import doubts

    table, system, judged = answer.table, answer.system, answer.verdict
    sizes = {point.size for point in judged.judged}
    return {
        "tool": table.tool, "collective": table.collective, "collective_inferred": table.inferred,
        "ranks": system.ranks, "nodes": system.nodes, "ranks_per_node": system.gpus_per_node,
        "machine": system.machine, "fabric": system.fabric if system.nodes > 1 else None,
        "algorithm": system.algorithm or None, "choice": answer.choice, "found_by": answer.why,
        "wrong_results": answer.wrong, "passes": answer.passes,
        "verdict": judged.word, "share": judged.share, "small_sizes_only": judged.small, "distance": answer.distance,
        "points": [
            {
                "size_bytes": one.size, "time_us": one.time, "healthy_time_us": one.healthy, "busbw": one.busbw,
                "healthy_busbw": one.healthy_busbw, "low_busbw": one.range[0], "high_busbw": one.range[1],
                "floor_busbw": one.floor_busbw, "below_floor": one.is_slow, "judged": one.size in sizes,
                "in_slow_band": one in judged.slow,
            }
            for one in answer.points
        ],
        "causes": [_suspect(one) for one in answer.suspects],
        "nearest": [_suspect(one) for one in answer.nearest],
        "doubts": doubts(answer),
        "findings": [
            {"kind": one.kind, "size_bytes": one.size, "factor": one.factor, "text": one.words}
            for one in answer.findings
        ],
        "remarks": list(answer.remarks),
        "binds": _binds(answer.binds),
    }  # fmt: skip


def _suspect(one: Suspect) -> dict[str, Any]:
    return {
        "probability": one.probability,
        "distance": one.distance,
        "stated_by_log": one.stated or None,
        "alternatives": [
            {"kind": case.kind, "what": case.what, "why": case.cause, "check": case.check, "cure": case.cure}
            for case in one.cases
        ],
    }


def of_schedule(found: Found) -> dict[str, Any]:
    """Return the document of a schedule; sizes are in bytes, times in us."""
    asked, faster = found.question, found.faster
    return {
        "format": FORMAT,
        "schedule": found.name, "machine": found.machine.name, "ranks": asked.ranks, "size_bytes": found.size,
        "grid": list(asked.grid) if asked.grid else None, "choice": asked.chosen or None,
        "time_us": found.time_us, "limit_us": found.limit_us, "limit": found.limit,
        "critical": [{"part": part, "share": share} for part, share in found.spent],
        "busiest": [{"link": link, "share": share} for link, share in found.busiest],
        "binds": _binds(found.binds),
        "better": [{"algorithm": name, "time_us": time_us} for name, time_us in found.better],
        "found": faster and {
            key: getattr(faster, key) for key in ("recipe", "new", "time_us", "write", "switch_on")
        },
    }  # fmt: skip


def _binds(found: Sequence[Effect]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]


_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_BOOL: Schema = {"type": "boolean"}
_MAYBE: Schema = {"type": ["string", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}


def schedule_schema() -> Schema:
    """Return the JSON schema of the document of a schedule."""
    found = _closed(
        recipe=_TEXT, new={**_BOOL, "description": "whether no known algorithm equals it"}, time_us=_NUMBER,
        write={**_TEXT, "description": "the command that writes it as a file"},
        switch_on={**_TEXT, "description": "what makes a runtime take the file"},
    )  # fmt: skip
    return _closed(
        format={"const": FORMAT}, schedule=_TEXT, machine=_TEXT, ranks=_COUNT, size_bytes=_COUNT,
        grid={"type": ["array", "null"], "items": _COUNT},
        choice={**_MAYBE, "description": "the choice of the library, for its plan"},
        time_us=_NUMBER, limit_us={**_MAYBE_NUMBER, "description": "what no schedule beats"}, limit=_MAYBE,
        critical={**_list(_closed(part=_TEXT, share=_NUMBER)), "description": "what the critical path is spent on"},
        busiest={**_list(_closed(link=_TEXT, share=_NUMBER)), "description": "share of the time that a link is busy"},
        binds=_effects(),
        better={**_list(_closed(algorithm=_TEXT, time_us=_NUMBER)), "description": "known ones that are faster"},
        found={**found, "type": ["object", "null"], "description": "what --search found"},
    )  # fmt: skip


def schema() -> Schema:
    """Return the JSON schema of the document of a log."""
    cause = _closed(
        probability={**_NUMBER, "description": "among all faults that were simulated, and one that nobody thought of"},
        distance={**_NUMBER, "description": "factor by which its simulated curve and the log's are apart"},
        stated_by_log={**_MAYBE, "description": "what the log says that proves it"},
        alternatives=_list(_closed(kind=_TEXT, what=_TEXT, why=_TEXT, check=_TEXT, cure=_TEXT)),
    )
    point = _closed(
        size_bytes=_COUNT, time_us=_NUMBER, healthy_time_us=_NUMBER, busbw=_NUMBER, healthy_busbw=_NUMBER,
        low_busbw={**_NUMBER, "description": "of ten published systems of this size, one is below"},
        high_busbw={**_NUMBER, "description": "one is above"},
        floor_busbw={**_NUMBER, "description": "the floor of `expect`, which the verdict goes by, too"},
        below_floor=_BOOL, in_slow_band={**_BOOL, "description": "whether it is why the log is slow at some sizes"},
        judged={**_BOOL, "description": "whether the verdict is based on it"},
    )  # fmt: skip
    table = _closed(
        tool=_TEXT, collective=_TEXT, collective_inferred=_BOOL, ranks=_COUNT, nodes=_COUNT, ranks_per_node=_COUNT,
        machine=_TEXT, fabric=_MAYBE, algorithm=_MAYBE, choice={**_TEXT, "description": "of the library, largest size"},
        found_by={**_TEXT, "description": "how the machine and the version of the library were found"},
        wrong_results={**_MAYBE, "description": "null unless the tool counted wrong results"}, passes=_BOOL,
        verdict={"enum": list(verdict.WORDS)},
        share={**_NUMBER, "description": "of the healthy rate, at the sizes that are judged"},
        small_sizes_only={**_BOOL, "description": "whether no size shows the rate of links"},
        distance={**_NUMBER, "description": "factor by which the healthy curve and the log's are apart"},
        points=_list(point), causes={**_list(cause), "description": "what the log states first, then the likeliest"},
        nearest={**_list(cause), "description": "the nearest faults where none is a cause"},
        doubts=_TEXTS,
        findings=_list(
            _closed(kind={"enum": ["late switch", "spike", "cliff"]}, size_bytes=_COUNT, factor=_NUMBER, text=_TEXT)
        ),
        remarks=_TEXTS, binds=_effects(),
    )  # fmt: skip
    rate = _closed(what=_TEXT, rate=_TEXT, compared_with=_MAYBE, share=_MAYBE_NUMBER)
    link = _closed(test=_TEXT, verdict={"enum": [*links.WORDS, None]}, rates=_list(rate), answer=_TEXTS)
    rank = _closed(rank=_COUNT, time=_NUMBER, waiting=_NUMBER, last=_COUNT)
    arrival = _closed(
        group=_TEXT, collective=_TEXT, size=_COUNT, count={**_COUNT, "description": "operations"},
        size_of_group={"type": ["integer", "null"]}, chosen=_TEXT,
        transfer={**_NUMBER, "description": "us of one operation, as the rank that came last shows it"},
        ranks={**_list(rank), "description": "us of all operations together, and in how many it came last"},
        share={**_NUMBER, "description": "of all ranks' time, spent waiting"},
        last={**rank, "type": ["object", "null"], "description": "the rank that comes last mostly"},
    )  # fmt: skip
    return _closed(
        format={"const": FORMAT}, source=_TEXT,
        wrong_results={**_BOOL, "description": "whether the tool counted any, for which the exit status is 1"},
        passes={**_BOOL, "description": "what --gate decides by"},
        failures={**_TEXTS, "description": "why it does not pass"},
        tables=_list(table), links={**_list(link), "description": "measured links of the log"},
        arrivals=_list(arrival), skipped_lines=_COUNT, complaints=_list(_closed(line=_COUNT, text=_TEXT)),
    )  # fmt: skip


def _effects() -> Schema:
    what = "numbers of the machine, each twice as good, with the share of the time that this saves"
    return {**_list(_closed(key=_TEXT, value=_TEXT, status=_TEXT, time_us=_NUMBER, gain=_NUMBER)), "description": what}


def _closed(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}
