"""On every rank: each algorithm of the registry must leave what the reference leaves, at 2, 4 and 7 ranks.

Rank 0 prints how many schedules were compared, or what differs where.
"""

from linkwright import _native
from linkwright.ask import schedules
from linkwright.base import registry
from linkwright.base.errors import LinkwrightError, WaivedError
from linkwright.executors.mpi.world import world
from linkwright.libraries.questions import collective_question

job = world()
compared, wrong = 0, []
for ranks in (2, 4, 7):
    if job.rank >= ranks or ranks > job.size:
        continue
    group, communicators = job.group(range(ranks))
    for algorithm in registry.entries("algorithms"):
        for size_bytes in (ranks * 4, 4000):
            experiment = collective_question(
                "parity", algorithm["collective"], algorithm["name"], ranks, size_bytes, "i32", "sum"
            )
            try:
                schedule = schedules.of(experiment)
            except WaivedError:
                continue
            try:
                group.compare_with_reference(schedule, "i32", "sum")
            except LinkwrightError as error:
                wrong.append(f"{experiment.key}: rank {job.rank}: {error}")
            compared += 1
    for communicator in communicators:
        communicator.Free()
all_wrong = job.comm.gather(wrong)
if job.rank == 0:
    print(f"{compared} schedules", *(line for lines in all_wrong for line in lines), sep="\n", flush=True)
assert _native.MpiGroup.functions()
