"""The answer to a job that hangs, as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from linkwright.advise.explain.hang.findings import (
    Absent,
    Behind,
    Busy,
    CallPlace,
    Cycle,
    Finding,
    Hang,
    Inside,
    Left,
    Mismatch,
    NoDump,
)
from linkwright.advise.explain.hang.job import compact
from linkwright.base import units
from linkwright.formats.hangs import NAMELESS, Member

from .shown import wrapped

MOST_WAITS = 20
MOST_ALSO = 3  # further calls that wait for a rank
MOST_NAMED = 8  # ranks that are named with their GPU and host
MOST_COMPLAINTS = 3

_STATUS = {
    "dead": "dead: RAS lost the process and gave it up after 60 s",
    "unresponsive": "unresponsive: the process was stopped or has ended, or its node or network is down",
    "nocomm": "not members of the communicator: they have destroyed it or not joined it yet",
    "init": "still initializing the communicator",
    "running": "running",
    "finalize": "finalizing the communicator",
    "abort": "aborting the communicator",
}
# Whether numbers differ between two queries of RAS, or there is only one.
_MOVED = {
    None: "RAS shows a moment of a running job, in which ranks may differ by an operation. Query again and give both "
    "files: if the numbers stay, the job hangs.",
    False: "The last ranks are where they were in both queries: the job hangs, unless no step lies between them.",
    True: "The last ranks went on between the queries, so the job is running; what is above is of the last one.",
}
_DIFFER = {
    "operation": "ranks call different operations", "elements": "ranks give different sizes",
    "dtype": "ranks give different data types",
}  # fmt: skip
_CURE = {
    "operation": "The order of calls differs between ranks: look for a branch that depends on the rank or on its data.",
    "elements": "Look for a size that depends on the rank or on its data, such as an uneven last batch.",
    "dtype": "Look for a cast or an autocast that only some ranks do.",
}


def of_hang(hang: Hang) -> Iterator[str]:
    """The answer to dumps of a job that hangs."""
    names = [Path(path).name for path in hang.paths]
    source = names[0] if len(names) == 1 else f"{len(names)} files"
    ranks = f", {hang.size} ranks" if hang.size else f", {units.counted(len(hang.ranks), 'rank')} seen"
    groups = f" in {hang.groups} groups" if hang.groups > 1 else ""
    yield from wrapped(f"{source}: {', '.join(hang.tools)}{ranks}{groups}")
    yield from _doubts(hang)
    yield ""
    if not hang.findings:
        yield from wrapped(_nothing(hang))
    for number, finding in enumerate(hang.findings, 1):
        mark = f"{number}. " if len(hang.findings) > 1 else ""
        first, *rest = _sentences(finding)
        yield from wrapped(mark + first)
        for text in rest:
            yield from wrapped("   " + text, indent="   ")
    if hang.more:
        yield f"and {hang.more} more"
    if hang.snapshot and any(isinstance(one, Behind | Cycle | Mismatch) for one in hang.findings):
        yield ""
        yield from wrapped(_MOVED[hang.moved])
    yield from _waits(hang)


def _nothing(hang: Hang) -> str:
    if hang.complaints:
        return "Nothing that was understood shows a rank behind, but not all of the input was understood (see above)."
    if hang.snapshot:
        return (
            "No rank is behind: all ranks of every communicator have launched the same operations, and none is "
            "missing. If the job hangs, it hangs inside an operation, or outside NCCL; query again with -v."
        )
    if not hang.is_whole:
        of = f"{len(hang.ranks)} of {hang.size or 'unknown'} ranks"
        return f"No operation is open in these dumps, but they hold those of {of}; give all."
    return "Nothing hangs here: no operation is open, and no rank is behind in the groups of these dumps."


def _doubts(hang: Hang) -> Iterator[str]:
    for path, line, text in hang.complaints[:MOST_COMPLAINTS]:
        place = f"{Path(path).name}:{line}" if line else Path(path).name
        yield from wrapped(f"{place}: {text}")
    if len(hang.complaints) > MOST_COMPLAINTS:
        yield f"and {len(hang.complaints) - MOST_COMPLAINTS} more such places"
    if hang.ignored:
        yield from wrapped(f"not dumps, left out: {', '.join(Path(path).name for path in hang.ignored[:MOST_NAMED])}")
    if hang.unseen:
        yield from wrapped(
            f"nothing in these files is from {_ranks(hang.unseen)}; if they belong to the job, give their logs, too"
        )


def _sentences(finding: Finding) -> list[str]:
    """What a finding says, and what to do."""
    if isinstance(finding, Behind):
        return _behind(finding)
    if isinstance(finding, Mismatch):
        return _mismatch(finding)
    if isinstance(finding, Cycle):
        return _cycle(finding)
    if isinstance(finding, Absent):
        return _absent(finding)
    if isinstance(finding, NoDump):
        return _no_dump(finding)
    if isinstance(finding, Busy):
        return [
            f"{_who(finding.members)} {_has(finding.members)} called {_place(finding.place)}, but the kernel has not "
            f"begun; {_ranks(finding.waiting)} wait in it.",
            "The GPU is busy with something that ends no sooner: a kernel of the program, another library, or an "
            "operation that these dumps do not hold.",
        ]
    if isinstance(finding, Left):
        return [
            f"{_who(finding.members)} {_is(finding.members)} still in {_place(finding.place)}, which "
            f"{_ranks(finding.passed)} completed.",
            "Ranks that call alike are not apart by this. Suspect the GPU or the links there (Xid errors, port "
            "counters), or an earlier call that differs and is no longer in the dumps.",
        ]
    return _inside(finding)


def _behind(finding: Behind) -> list[str]:
    who, it = _who(finding.members, finding.count), "it" if finding.count == 1 else "they"
    has, them = ("has", "it") if finding.count == 1 else ("have", "them")
    others = _ranks(finding.waiting).capitalize()
    if finding.snapshot:
        others = f"The other {'one' if finding.waiting_count == 1 else finding.waiting_count}"
    wait = f"{others} {'waits' if finding.waiting_count == 1 else 'wait'} for {them}."
    if finding.launched is None:
        first = f"{who} {has} not made the call that {_place(finding.place)} needs. {wait}"
    else:
        also = "".join(f", nor {_place(place)}" for place in finding.also[:MOST_ALSO])
        there = " of the first" if also else ""
        last = f"{it} entered none{there}"
        if finding.launched:
            last = f"the last{there} that {it} entered is {finding.launched:,}"
        first = f"{who} {has} not entered {_place(finding.place)}{also}: {last}. {wait}"
    said = [first[0].upper() + first[1:]]
    if finding.count > len(finding.members):
        said.append("The output does not list them; `ncclras -v` lists more.")
    if finding.count > finding.waiting_count:
        said.append(f"{_ranks(finding.waiting).capitalize() if finding.waiting else 'The few that are ahead'} may have "
                    "made a call that the program makes nowhere else.")  # fmt: skip
    known = [one for one in finding.members if one.process is not None]
    if len(known) == 1:
        where = f" on {known[0].host}" if known[0].host else ""
        said.append(f"See what it does: py-spy dump --pid {known[0].process}{where}; then its log and dmesg (Xid).")
    else:
        said.append("See what the process does: py-spy dump --pid PID; then its log and dmesg (Xid).")
    if not finding.snapshot:
        said.append("It may be inside the call: PyTorch counts a call once NCCL has returned from it.")
    return said


def _no_dump(finding: NoDump) -> list[str]:
    said = [
        f"Nothing is known of {_ranks(finding.ranks)}, and no other rank is behind: {_place(finding.place)} "
        f"waits for {'it' if len(finding.ranks) == 1 else 'them'}, or hangs inside."
    ]
    if finding.given:
        said.append(
            f"In the dump of {_ranks(finding.given)} older calls or those that have ended are missing; dump all of "
            "them, and record more (TORCH_NCCL_TRACE_BUFFER_SIZE)."
        )
    if lost := sorted(set(finding.ranks) - set(finding.given)):
        said.append(f"Give the {finding.tool} output of {_ranks(lost)}. If there is none, look for a crash there.")
    return said


def _mismatch(finding: Mismatch) -> list[str]:
    said = [f"At {_place(finding.place)}, {_DIFFER[finding.what]}:"]
    said += [f"{_ranks(ranks)}: {value or 'unknown'}" for value, ranks in finding.values]
    if finding.place.group == NAMELESS:
        said.append("The log does not name groups; if these calls are of different ones, they are not a fault.")
    return [*said, _CURE[finding.what]]


def _cycle(finding: Cycle) -> list[str]:
    ranks = [wait.rank for wait in finding.waits]
    said = [
        f"{'Ranks' if finding.certain else 'Probably ranks'} {', '.join(map(str, ranks))} wait for one another in a "
        "cycle:"
    ]
    said += [f"rank {wait.rank} is in {_place(wait.place)} and waits for rank {wait.on}" for wait in finding.waits]
    if not finding.certain:
        said.append("It is not certain, because nothing says which kernels have begun (PyTorch records it with "
                    "TORCH_NCCL_ENABLE_TIMING=1).")  # fmt: skip
    groups = {wait.place.group for wait in finding.waits}
    cure = "Make all ranks call the groups in one order" if len(groups) > 1 else "Pair each send with a receive"
    return [*said, f"{cure}, or let one call end before the next begins."]


def _absent(finding: Absent) -> list[str]:
    condition = finding.condition
    who = _who(condition.members, condition.count, "rank" if finding.group else "process")
    inside = f" of {finding.group}" if finding.group else ""
    is_one = condition.count == 1
    if condition.status == "error":
        first = f"{who}{inside} {'reports' if is_one else 'report'} {condition.text}."
        cure = "The others wait in vain once a rank has failed: look at its log first."
    else:
        first = f"{who}{inside} {'is' if is_one else 'are'} {_STATUS[condition.status]}."
        cure = "The others wait for it: look at its log, and at the node (dmesg, Xid, out of memory)."
        if condition.status not in ("dead", "unresponsive"):
            rest = ", ".join(f"{count} {status}" for status, count in finding.rest)
            cure = "It is harmless while the job starts or ends; query again." + (f" The rest: {rest}." if rest else "")
    return [first[0].upper() + first[1:], cure]


def _inside(finding: Inside) -> list[str]:
    ranks = f"All {len(finding.ranks)} ranks" if finding.complete and len(finding.ranks) > 1 else _ranks(finding.ranks)
    said = [f"{ranks[0].upper()}{ranks[1:]} {'have' if len(finding.ranks) > 1 else 'has'} entered "
            f"{_place(finding.place)} alike, and it does not end."]  # fmt: skip
    if not finding.complete:
        said.append("These files do not tell whether the group has other ranks; give the files of all ranks.")
    return [*said, "If nobody is missing, the fault is below the program: the network, a link, a GPU (Xid errors, "
                   "`ibstat`, port counters), or the library."]  # fmt: skip


def _waits(hang: Hang) -> Iterator[str]:
    if not hang.waits:
        return
    yield ""
    yield "who waits for whom"
    for one in hang.waits[:MOST_WAITS]:
        there = f", now in {'; '.join(map(_place, one.on_in[:2]))}" if one.on_in else ", in no operation"
        yield from wrapped(f"  {_ranks(one.ranks)} in {_place(one.place)}: {_ranks(one.on)}{there}", indent="    ")
    if len(hang.waits) > MOST_WAITS:
        yield f"  and {len(hang.waits) - MOST_WAITS} more calls"


def _place(place: CallPlace) -> str:
    return f"{place.operation} {place.sequence:,} of {place.group}"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {compact(ranks)}"


def _who(members: Sequence[Member], count: int | None = None, noun: str = "rank") -> str:
    """Ranks with where they run."""
    count = len(members) if count is None else count
    if not members or len(members) < count:
        return f"{count} {noun if count == 1 else noun + ('es' if noun == 'process' else 's')}"
    ranks = [one.rank for one in members if one.rank is not None]
    if len(members) > MOST_NAMED and len(ranks) == len(members):
        return _ranks(ranks)
    return ", ".join(map(_one, members[:MOST_NAMED])) + (
        f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    )


def _one(member: Member) -> str:
    gpu = f"GPU {member.gpu}" if member.gpu is not None else ""
    where = " of ".join(filter(None, (gpu, member.host or "")))
    process = f"process {member.process}" if member.process is not None else ""
    if member.rank is None:
        return f"{process or 'a process'}{f' ({where})' if where else ''}"
    said = ", ".join(filter(None, (where, process)))
    return f"rank {member.rank}{f' ({said})' if said else ''}"


def _has(members: Sequence[Member]) -> str:
    return "has" if len(members) == 1 else "have"


def _is(members: Sequence[Member]) -> str:
    return "is" if len(members) == 1 else "are"
