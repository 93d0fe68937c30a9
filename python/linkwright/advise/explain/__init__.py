"""Why a number is what it is: against a healthy machine, what binds it, and what would give what was measured.

    system.py      a described machine with its library, healthy or with a fault: times of a collective
    log.py         the answer to a log          schedule.py    to a schedule        run.py    to rows of a run
    hypotheses/    what may be wrong with a machine: one file each, one line in `HYPOTHESES`
    sensitivity.py which number of a machine a time depends on
    verdict.py     fine, suspicious or broken       moving.py      what it looks like over time

Each answer is plain values; `shown.py` prints them, and `pages/` draws them.
"""
