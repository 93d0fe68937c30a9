"""Bandwidth of one SM and of many: `memory_bandwidth` of the catalogue.

The reference of `memory_stream.cu`: the arrays that it writes, and the XOR of what it reads.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.process import Sampling
from linkwright.store.record import Record

from ..measure import Gpu
from .sampling import enough_sms, fits, job, sampled

KEY = "memory_bandwidth"
THREADS = 1024
_KINDS = ("read", "write", "copy", "triad")
_ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
_WIDTHS = {"widest": 16, "32": 4, "64": 8, "128": 16}
_FACTOR = np.uint32(3)
_WARMED_BYTES = 1 << 19
# Bytes of a sample; around fewer, clocks and barriers would count as much.
_SAMPLE_BYTES = 1 << 20
# Accesses that a thread has in flight, as in the kernel.
_IN_FLIGHT = 4


def measure(gpu: Gpu, axes: dict, sms: list[int], how: Sampling) -> Record:
    """One launch."""
    kind, width, threads = str(axes["kernel"]), str(axes["width"]), int(axes["threads"])
    if width not in _WIDTHS:
        raise WaivedError(f"{KEY}: waived: a thread of a GPU accesses 32, 64 or 128 bits at once, not `{width}`")
    chosen = enough_sms(KEY, sms, threads)
    block = int(axes["block"]) // 16 * 16
    if not block:
        raise WaivedError(f"{KEY}: waived: a block holds at least one access of 16 bytes")
    fits(KEY, gpu, 3 * block * threads)
    elements = block // 4 * threads
    b, c = (np.random.default_rng([how.seed, i]).integers(0, 1 << 32, elements, np.uint32) for i in range(2))
    passes = max(1, _SAMPLE_BYTES // block)
    words = {
        "kind": _KINDS.index(kind),
        "passes": passes,
        "warm": 1 if block * _ARRAYS[kind] <= _WARMED_BYTES else 0,
        "width": _WIDTHS[width],
        "bytes": block,
        "a": np.zeros(elements, np.uint32),
        "b": b,
        "c": c,
        "folds": np.zeros((threads, THREADS), np.uint32),
        "fold_threads": THREADS,
    }
    # As many threads as have `_IN_FLIGHT` accesses each, few for a small block.
    lanes = min(THREADS, max(128, block // (_WIDTHS[width] * _IN_FLIGHT) // 32 * 32))
    made = job(gpu, "memory_stream", chosen, words, threads=lanes, shared_bytes=8 * lanes)
    wanted = {"read": words["a"], "write": np.full(elements, _FACTOR), "copy": b, "triad": b + _FACTOR * c}[kind]
    with gpu.device.loaded(made) as loaded:

        def check() -> None:
            # Check every element once, because later kernels write the same.
            if check.done:
                return
            folds = loaded.read("folds")
            same = np.array_equal(loaded.read("a"), wanted)
            if kind == "read":
                by_part = np.bitwise_xor.reduce(b.reshape(threads, -1), axis=1)
                same = same and np.array_equal(np.bitwise_xor.reduce(folds, axis=1), by_part)
            if not same:
                raise WrongResultError(f"{KEY}: {kind} gave wrong data; no value is reported")
            check.done = True

        check.done = False
        counted = block * threads * _ARRAYS[kind]
        return sampled(gpu, loaded, how, operations=passes, check=check, counted_bytes=counted, moved_bytes=counted)
