"""What a call of `lw.estimate` costs once its table is built.

    python benches/estimate.py

The median of 20 rounds of 5,000 calls, in processor time; the target is 20 us a call.
"""

import statistics
import time

import quick

import linkwright as lw

CALLS, ROUNDS = 5000, 20


def main() -> None:
    calls, launches = (10, 2) if quick.only() else (CALLS, ROUNDS)
    table = lw.CostTable.build("dgx1-p100", ["allreduce"], algorithms="ring", sizes=["8", "1K", "1M"])
    rounds = []
    for _ in range(launches):
        begun = time.process_time()
        for size in range(calls):
            lw.estimate("allreduce", size, 8, table)
        rounds.append((time.process_time() - begun) / calls * 1e6)
    print(f"{statistics.median(rounds):.2f} us a call ({min(rounds):.2f} to {max(rounds):.2f})")


if __name__ == "__main__":
    main()
