"""Run the cases of this folder on Tenstorrent's runtime: `python run.py [--repetitions N] [--csv FILE] [CASE ...]`.

It needs ttnn and NumPy (Python 3.10 or 3.12), and a board or a simulator of one. Exit status: 0 if every byte is right,
1 if one is wrong, 2 if the runtime or a case cannot be used.
"""

import argparse
import csv
import json
import os
import pathlib
import sys
import tempfile

import serve

HERE = pathlib.Path(__file__).resolve().parent
# Words of the head of a row, as the kernel has them, and the address of the first stamp among its arguments.
OFFSET, PATIENCE, REPETITIONS, TROUBLE = 2, 5, 6, 8
STAMPS, DATA = 1, 3
EXCHANGES = 8


def main():
    """Run the cases that are asked for; exits with the status."""
    known = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1, help="timed repetitions of each case (default: 1)")
    parser.add_argument("--csv", type=pathlib.Path, help="write the start and duration of each rank, in cycles")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a part of the name of a case (default: all)")
    asked = parser.parse_args()
    cases = [case for case in known["cases"] if not asked.cases or any(word in case["name"] for word in asked.cases)]
    if not cases or asked.repetitions < 1:
        parser.error("no such case; cases.json lists them" if not cases else "--repetitions: at least 1")
    table = asked.csv and asked.csv.resolve()
    with tempfile.TemporaryDirectory() as scratch:  # the runtime leaves files in the current folder
        os.chdir(scratch)
        try:
            simulator = serve.prepare()
            chip = serve.OpenChip()
        except serve.RefusedError as error:
            sys.exit(_refused(error))
        except Exception as error:
            sys.exit(_refused(f"the device could not be opened: {str(error).strip().splitlines()[:1]}"))
        runner, rows, wrong = Runner(chip, simulator, HERE / known["kernel"]), [], 0
        for case in cases:
            wrong += runner.case(case, asked.repetitions, rows)
        chip.ttnn.close_device(chip.device)
        os.chdir("/")
    if table:
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("case", "repetition", "rank", "start_cycles", "cycles", "from"), *rows])
    sys.exit(1 if wrong else 0)


def _refused(text):
    print(f"run.py: {text}", file=sys.stderr)
    return 2


class Runner:
    """The device, and what cases need of it."""

    def __init__(self, chip, simulator, kernel):
        about = chip.about(simulator)
        self.chip, self.simulator, self.kernel = chip, simulator, str(kernel)
        self.grid, self.l1_bytes = about["grid"], about["l1_bytes"]

    def case(self, case, repetitions, table):
        """Check a case and time it; 1 if it is wrong."""
        import numpy as np

        (columns, lines), name = case["size"], case["name"]
        if columns > self.grid[0] or lines > self.grid[1] or 4 * case["words"] > self.l1_bytes:
            sys.exit(
                _refused(
                    f"{name}: needs {columns} x {lines} cores with {4 * case['words']} bytes of L1 each; this chip has "
                    f"{self.grid[0]} x {self.grid[1]} with {self.l1_bytes}"
                )
            )
        has_times = self.simulator in (None, "wolfpine")
        arrays = np.load(HERE / case["data"])
        patience = case["patience"]["simulator" if self.simulator and has_times else "board"]
        offsets = self.offsets(case, arrays["clocks"], patience)
        left = self.launch(case, arrays["rows"], case["defines"], 1, patience, offsets)
        trouble = self.trouble(case, left)
        if trouble:
            print(f"{name}: {trouble}")
            return 1
        expected, first, wrong = arrays["expected"], 0, 0
        for (x, y), nbytes in zip(case["cores"], case["memory_bytes"], strict=True):
            begin = case["arguments"][0][DATA]
            found = left[x + y * columns].view(np.uint8)[begin : begin + nbytes]
            wrong += int((found != expected[first : first + nbytes]).sum())
            first += nbytes
        if wrong:
            print(f"{name}: {wrong} of {len(expected)} bytes are WRONG")
            return 1
        said = f"{name}: {len(expected)} bytes of {len(case['cores'])} ranks, all right"
        if not has_times:
            print(f"{said}; {self.simulator} is functional and has no times")
            return 0
        if repetitions > 1:
            repetitions = min(repetitions, case["most_repetitions"])
            left = self.launch(case, arrays["rows"], case["defines"], repetitions, patience, offsets)
        stamps = self.stamps(case, left, repetitions)
        starts, ends = stamps[..., 0].min(axis=0), stamps[..., 1].max(axis=0)  # by (rank, repetition)
        starts, ends = starts - offsets[:, None], ends - offsets[:, None]
        slowest = np.sort((ends - starts).max(axis=0))
        how = f"simulated by {self.simulator}, not measured" if self.simulator else "measured"
        print(f"{said}; slowest rank {slowest[(len(slowest) - 1) // 2]} cycles ({repetitions} repetitions, {how})")
        for repetition in range(repetitions):
            for rank in range(len(case["cores"])):
                start = starts[rank, repetition] - starts[:, repetition].min()
                took = ends[rank, repetition] - starts[rank, repetition]
                table.append((name, repetition, rank, start, took, how))
        return 0

    def offsets(self, case, rows, patience):
        """The clock of each core less that of the first, from the fastest exchange with it."""
        import numpy as np

        layout, ranks = case["clocks"], len(case["cores"])
        if ranks == 1 or self.simulator:  # the clocks of a simulator are one
            return np.zeros(ranks, np.int64)
        left = self.launch(layout, rows, [["WALK_TYPE", "int32_t"], ["WALK_INTEGER", "1"], ["WALK_BF16", "0"],
                                          ["WALK_OP", "0"]], EXCHANGES, patience, [0] * ranks)  # fmt: skip
        stamps = self.stamps(layout, left, EXCHANGES)[0]
        before, after = stamps[0, :, 0 : 2 * ranks - 2 : 2], stamps[0, :, 1 : 2 * ranks - 2 : 2]
        best = (after - before).argmin(axis=0), np.arange(ranks - 1)
        return np.concatenate([[0], stamps[1:, :, 0].T[best] - (before[best] + after[best]) // 2])

    def launch(self, layout, rows, defines, repetitions, patience, offsets):
        """The rows that the cores leave."""
        import numpy as np

        rows, columns = rows.copy(), layout["size"][0]
        for (x, y), offset in zip(layout["cores"], offsets, strict=True):
            row = rows[x + y * columns]
            row[OFFSET : OFFSET + 2] = np.array([offset], np.int64).view(np.uint32)
            row[PATIENCE], row[REPETITIONS] = patience, repetitions
        asked = {"kernel": self.kernel, "defines": defines, **layout}
        return self.chip.run(asked | {"defines": defines}, rows)[2]

    def stamps(self, layout, rows, repetitions):
        """Times by (processor, rank, repetition, stamp)."""
        import numpy as np

        own = rows[[x + y * layout["size"][0] for x, y in layout["cores"]]]
        firsts = [words[STAMPS] // 4 for words in layout["arguments"]]
        found = np.stack([own[:, first : first + layout["stride"] * repetitions] for first in firsts])
        return np.ascontiguousarray(found).view(np.int64).reshape(len(firsts), len(own), repetitions, -1)

    def trouble(self, case, rows):
        """What a core gave up on."""
        for rank, (x, y) in enumerate(case["cores"]):
            for processor in range(len(case["arguments"])):
                words = rows[x + y * case["size"][0], TROUBLE + 4 * processor :][:4].tolist()
                who = f"rank {rank} on core ({x}, {y}), processor {processor},"
                if words[0] == 2:
                    return f"{who} did not reach the common start; clocks of cores differ"
                if words[0]:
                    sender, its = case["senders"][rank][words[1]]
                    return (
                        f"{who} waited too long for notice {words[2]} of rank {sender}, processor {its}; "
                        f"{words[3]} have come"
                    )
        return None


if __name__ == "__main__":
    main()
