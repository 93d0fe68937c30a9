"""linkwright, but rank 1 is killed as it is about to measure its third experiment."""

import os
import signal
import sys

from linkwright.cli.main import main
from linkwright.executors.mpi import ranks

measured = 0
run = ranks._run


def dying(world, members, experiment, order):
    global measured
    measured += 1
    if world.rank == 1 and measured == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(world, members, experiment, order)


ranks._run = dying
main(sys.argv[1:])
