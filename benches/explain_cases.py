"""Of numbers that people posted, whose cause was found: is the true cause among the first three hypotheses?

    .venv/bin/python benches/explain_cases.py

Cases are those of `references/modern/cases.toml` with a fault in the machine. Most have one size, so there is hardly a
curve to tell hypotheses apart. No number of a hypothesis comes from a case.
"""

from linkwright import machines
from linkwright.advise.explain import log as logs
from linkwright.advise.explain.system import System
from linkwright.base.units import parse_size
from linkwright.formats.logs import LogRow, LogTable
from linkwright_evidence.modern.cases import Case, known

# Number of a case -> the kind of the hypothesis that its author confirmed.
CAUSES = {
    1: "ACS", 4: "SHARP", 8: "no GPUDirect", 9: "sockets", 10: "sockets", 25: "ACS", 27: "ACS", 38: "missing ports",
}  # fmt: skip
FIRST = 3


def main() -> None:
    right = judged = 0
    for case in (one for one in known() if one.fault and one.number in CAUSES):
        answer = explained(case)
        # Where nothing is a cause, the nearest fault is named.
        places = answer.suspects or [one for one in (answer.nearest,) if one]
        kinds = [[one.kind for one in suspect.cases] for suspect in places]
        true = CAUSES[case.number]
        place = next((number for number, its in enumerate(kinds, 1) if true in its), None)
        judged += 1
        right += place is not None and place <= FIRST
        listed = ", ".join("/".join(its) for its in kinds) or "none"
        print(f"case {case.number:2} {true:14} place {place or '-'} of {listed}  ({case.what})")
    print(f"the true cause is among the first {FIRST} in {right} of {judged} cases")


def explained(case: Case) -> logs.Answer:
    """The answer to a log with the one number that was posted, on the machine that its author stated."""
    variant = case.variant(faulty=False)
    ranks = machines.load(case.machine, variant).ranks
    system = System(
        case.machine, case.nodes, ranks // case.nodes, case.fabric, case.algorithm, case.collective,
        without=variant.without, degrade=variant.degrade,
    )  # fmt: skip
    size = parse_size(case.size)
    time = size * logs.bus_factor(system) / case.posted / 1e3
    table = LogTable("nccl-tests", case.collective, ranks, case.nodes, "float", None, None, (LogRow(size, time, 1),))
    return logs.explained(table, system, "stated")


if __name__ == "__main__":
    main()
