"""An allreduce of one's own: two-dimensional bucket, rings along the rows, then along the columns, and back.

linkwright simulate allreduce -a ring,examples/own_allreduce.py:bucket --on torus-2d --grid 4x4 --sizes 64K,1M
"""

import linkwright as lw


def bucket(ranks, size, dtype, grid):
    """Reduce-scatter along rows and columns, then allgather along columns and rows."""
    columns, rows = grid or (ranks, 1)
    b = lw.Builder("allreduce", ranks, size, dtype=dtype, grid=(columns, rows))
    b.buffer("output", ranks)
    in_rows = [[y * columns + x for x in range(columns)] for y in range(rows)]
    in_columns = [[y * columns + x for y in range(rows)] for x in range(columns)]

    def ring(lines, blocks, first, reduce):
        """Every rank passes blocks on to the next of its line, until they have been everywhere."""
        for turn in range(len(lines[0]) - 1):
            b.step()
            for line in lines:
                for i, rank in enumerate(line):
                    passed = blocks(line, (i + first - turn) % len(line))
                    b.put_blocks(rank, line[(i + 1) % len(line)], "output", passed, reduce=reduce)

    def of_column(line, x):
        return [y * columns + x for y in range(rows)]

    def of_place(line, y):  # the column that the first phase left to this one
        return [y * columns + (line[0] + 1) % columns]

    ring(in_rows, of_column, 0, reduce=True)
    ring(in_columns, of_place, 0, reduce=True)
    ring(in_columns, of_place, 1, reduce=False)
    ring(in_rows, of_column, 1, reduce=False)
    return b.finish()


def pipelined(ranks, size, dtype, grid):
    """The same in four slices, so that a block is passed on while the next one arrives."""
    return bucket(ranks, size, dtype, grid).pipeline(4)


if __name__ == "__main__":
    torus = lw.machine("torus-2d", grid=(4, 4))
    for function in (bucket, pipelined):
        schedule = function(16, "1M", "f32", (4, 4))
        print(function.__name__, lw.verify(schedule), lw.simulate(schedule, torus), sep="\n  ")
