"""A folder that runs schedules on the vendor's runtime without linkwright.

    run.py, serve.py      the host program: it needs ttnn and NumPy only
    metalium_walk.cpp     the kernel
    cases.json            of each case: cores, layout, and the definitions of the kernel
    cases/<n>.npz         `rows`: instruction streams and data; `clocks`: programs that compare clocks; `expected`:
                          every byte that the memory of each rank must hold
    README.md

Ranks lie on the squarest rectangle of cores, or on the `--grid` of the schedule.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwright import _native, machines
from linkwright.ask import schedules
from linkwright.ask.question import Scheduled
from linkwright.base.errors import WaivedError
from linkwright.base.units import parse_size

from ..program import Program
from . import launch
from .image import Image, Timing, rectangle
from .lower import Place, exchange, lower
from .runtime import KERNEL, defines

_BOARD = "wormhole-n150"  # whose workers and L1 a folder must fit
_HERE = Path(__file__).parent
_README = """# {count} for tt-metalium

```
python run.py                     # every case: each byte that the cores leave is compared
python run.py --repetitions 100   # also times them on a board, or on wolfpine
python run.py --csv times.csv     # the start and duration of each rank, in cycles of its core
```

Written by linkwright from {source}. The folder runs without linkwright, in an environment with ttnn (it was
written for 0.81.1; Python 3.10 or 3.12), on a board (`/dev/tenstorrent`) or on the simulator that
`TT_METAL_SIMULATOR` names; without both, on wolfpine where that is installed. Times of a simulator are labelled so;
a functional simulator gives none.

| case | ranks | cores | bytes of L1 | instructions |
|---|---:|---|---:|---:|
{table}

- `metalium_walk.cpp` is the one kernel; it walks a stream of 16-byte instructions in the L1 of each core. Its head
  documents the layout, which `cases.json` gives for each case.
- `serve.py` launches it, `run.py` checks what it leaves. Ranks are numbered line by line.
- Of reductions: {combined}.
"""


def files(questions: Sequence[Scheduled], source: str) -> Mapping[str, bytes]:
    """Return the files of the folder by name.

    Args:
        questions: one for each case.
        source: what they come from, for the README.
    Raises:
        WaivedError: none fits a Wormhole n150: more ranks than it has workers, or more memory than a core has. Others
            that do not fit are left out.
    """
    found: dict[str, bytes] = {name: (_HERE / name).read_bytes() for name in ("run.py", "serve.py")}
    found[KERNEL.name] = KERNEL.read_bytes()
    cases: list[dict] = []
    lines, why = [], ""
    for question in questions:
        try:
            case, arrays = _case(question)
        except WaivedError as error:
            why = str(error)
            continue
        number = len(cases)
        cases.append({**case, "data": f"cases/{number}.npz"})
        found[f"cases/{number}.npz"] = _packed(arrays)
        width, height = case["size"]
        lines.append(
            f"| {case['name']} | {question.ranks} | {width} x {height} | {4 * case['words']} | {case['instructions']} |"
        )
    if not cases:
        raise WaivedError(why)
    found["cases.json"] = (json.dumps({"kernel": KERNEL.name, "cases": cases}, indent=1) + "\n").encode()
    text = _README.format(
        count=f"{len(cases)} schedule{'s' if len(cases) > 1 else ''}", source=source, table="\n".join(lines),
        combined=launch.SOFTWARE,
    )  # fmt: skip
    found["README.md"] = text.encode()
    return found


def _case(question: Scheduled) -> tuple[dict, dict[str, NDArray]]:
    """Return what the host program needs to know about a schedule, and its arrays."""
    if question.ranks < 2:
        raise WaivedError(f"{question.key}: a single rank sends nothing; ask for at least 2")
    columns, lines, l1_bytes = _board()
    if question.ranks > columns * lines:
        raise WaivedError(
            f"{question.key}: {question.ranks} ranks, and a Wormhole n150 has {columns * lines} workers; ask for fewer"
        )
    schedule = _native.without_aggregations(schedules.of(question))
    program = Program(schedule, dtype=question.dtype, op=question.op)
    at = places(question)
    image = Image.of(lower(program, at, launch.batch(question.issue)), at, l1_bytes)
    clocks = Image.of(exchange(at), at, l1_bytes)
    nothing = Timing(1, launch.MARGIN * program.ranks, 0, [0] * program.ranks)
    case = {
        "name": question.key.partition("/")[2],
        "defines": defines(question.dtype, question.op),
        "patience": {name: launch.patience(name == "simulator", image) for name in ("simulator", "board")},
        "memory_bytes": program.memory_bytes,
        "most_repetitions": image.most,
        "instructions": sum(map(len, image.lowered.programs.values())),
        **_layout(image, launch.network(question)),
        "clocks": _layout(clocks),
    }
    initial = [program.initial(rank) for rank in range(program.ranks)]
    arrays = {
        "rows": image.rows(initial, nothing),
        "clocks": clocks.rows([np.zeros(0, np.uint8)] * program.ranks, nothing),
        "expected": np.concatenate(final(program)),
    }
    return case, arrays


def _layout(image: Image, network: int = 0) -> dict:
    return {
        "network": network,
        "cores": image.places,
        "size": [image.width, image.height],
        "words": image.words,
        "arguments": image.arguments(),
        "stride": image.stride,
        "senders": [[tuple(sender) for sender, _ in own] for own in image.lowered.senders],
    }


@functools.cache
def _board() -> tuple[int, int, int]:
    """Return columns and lines of workers of the board, and the bytes of L1 of each, as its machine file has them."""
    numbers = {one["key"]: one for one in machines.load(_BOARD).numbers()}
    columns, lines = (int(numbers[f"facts.worker_{side}"]["value"]) for side in ("columns", "lines"))
    memory = numbers["endpoints.capacity"]
    return columns, lines, parse_size(f"{memory['value']}{memory['unit']}")


def places(question: Scheduled) -> list[Place]:
    """The core of each rank: line by line of its grid, or of the squarest rectangle that holds so many."""
    grid = question.grid if question.grid and len(question.grid) == 2 else None
    columns, lines, _ = _board()
    sides = grid or rectangle(question.ranks, columns, lines) or (columns, lines)
    if sides[0] > columns or sides[1] > lines:
        raise WaivedError(
            f"{question.key}: a grid of {sides[0]} x {sides[1]}, and a Wormhole n150 has {columns} columns and "
            f"{lines} lines of workers; ask for fewer"
        )
    return [(rank % sides[0], rank // sides[0]) for rank in range(question.ranks)]


def final(program: Program) -> list[NDArray[np.uint8]]:
    """The memory of each rank after the last operation: pieces move in the order of ids, which is topological."""
    memories = [program.initial(rank) for rank in range(program.participants)]
    for item in program.operations:
        for piece in item.pieces:
            data = memories[item.source][piece.source_offset : piece.source_offset + piece.bytes]
            into = memories[piece.target][piece.target_offset : piece.target_offset + piece.bytes]
            if item.combine:
                program.combine(into, data)
            else:
                into[:] = data
    for rank, memory in enumerate(memories):
        program.check(rank, memory)
    return memories


def _packed(arrays: dict[str, NDArray]) -> bytes:
    held = io.BytesIO()
    np.savez_compressed(held, **arrays)
    return held.getvalue()
