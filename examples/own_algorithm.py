"""A custom allreduce in fifteen lines: verified, simulated on a modelled chip, run on this machine.

Every rank sends its vector to rank 0, which adds them and sends the sum back. All operations of a `step()` are
simultaneous; scratch, waits and notices follow from these lines.
"""

import linkwright as lw


def star(ranks: int, size: str):
    b = lw.Builder("allreduce", ranks, size)
    b.buffer("output", 1)
    b.step()
    for rank in range(1, ranks):
        b.put(rank, 0, "output", 0, reduce=True)
    b.step()
    for rank in range(1, ranks):
        b.put(0, rank, "output", 0)
    return b.finish()


if __name__ == "__main__":
    schedule = star(2, "64K")
    print(lw.verify(schedule))

    modelled = lw.simulate(star(64, "64K"), "wormhole-n150")
    print(f"modelled, 64 tiles: {modelled.time_us:.1f} us, limit {modelled.limit_us:.1f} us")

    measured = lw.run(schedule, on="threads")
    print(f"measured, 2 threads: {measured.time_us:.1f} us")
