"""Latency of dependent loads: `memory_latency` of the catalogue, and `sm_load_latency` by what a load passes through.

The reference of `pointer_chase.cu`: the chain followed here must end where the kernel ended.
"""

from __future__ import annotations

import numpy as np

from linkwright.errors import WaivedError, WrongResultError

from ..measure import Gpu, How
from .sampling import SAMPLES, enough_sms, fits, job, sampled

LINE_BYTES = 128
STEPS = 1024
_THROUGH = {"shared": 0, "l1": 1, "l2": 2}
# A working set that an L1 could hold is gone through before each sample.
_WARMED_BYTES = 1 << 19


def chain(lines: int, order: str, seed: int) -> np.ndarray:
    """By line the line that follows: one cycle over all of them."""
    if order == "random":
        around = np.random.default_rng(seed).permutation(lines)
    else:
        step = max(1, int(order.removeprefix("stride_")) // LINE_BYTES)
        around = np.concatenate([np.arange(first, lines, step) for first in range(min(step, lines))])
    following = np.empty(lines, np.int64)
    following[around] = np.roll(around, -1)
    return following


def after(following: np.ndarray, line: int, steps: int) -> int:
    """The line where a chase ends; squares the cycle, so that long ones take no time."""
    power = following
    while steps:
        if steps & 1:
            line = int(power[line])
        power = power[power]
        steps >>= 1
    return line


def memory_latency(gpu: Gpu, axes: dict, sms: list[int], how: How) -> dict[str, object]:
    """Plain loads, through all caches."""
    if axes["pages"] != "2M":
        raise WaivedError(
            "memory_latency: waived: the driver maps the memory of a GPU by pages of 2 MiB; ask for them with pages=2M"
        )
    if axes["neighbours"] and axes["neighbours_do"] != "chase":
        raise WaivedError("memory_latency: waived: on a GPU neighbours chase; leave neighbours_do away")
    return _chase("memory_latency", gpu, axes, sms, how, "l1", 1 + int(axes["neighbours"]))


def sm_load_latency(gpu: Gpu, axes: dict, sms: list[int], how: How) -> dict[str, object]:
    """By what the load passes through."""
    return _chase("sm_load_latency", gpu, axes, sms, how, str(axes["through"]), int(axes["threads"]))


def _chase(key: str, gpu: Gpu, axes: dict, sms: list[int], how: How, through: str, parts: int) -> dict[str, object]:
    chosen = enough_sms(key, sms, parts)
    lines = int(axes["working_set"]) // LINE_BYTES
    if lines < 2:
        raise WaivedError(f"{key}: waived: a chase needs two lines of {LINE_BYTES} bytes; ask for {2 * LINE_BYTES}")
    nbytes, shared = lines * LINE_BYTES, through == "shared"
    if shared and nbytes > gpu.device.most_shared_bytes - 1024:
        raise WaivedError(f"{key}: waived: shared memory of a block has {gpu.device.most_shared_bytes} bytes")
    fits(key, gpu, nbytes * (1 if shared else parts))
    following = chain(lines, str(axes["order"]), how.seed)
    warm = lines if nbytes <= _WARMED_BYTES and not shared else 0
    words = {
        "steps": STEPS,
        "warm": warm,
        "through": _THROUGH[through],
        "shared_words": nbytes // 8 if shared else 0,
        "chain": np.zeros((1 if shared else parts) * nbytes // 8, np.uint64),
        "first": np.zeros(parts, np.uint64),
        "last": np.zeros(parts, np.uint64),
    }
    made = job(gpu, "pointer_chase", chosen, words, threads=32, shared_bytes=nbytes if shared else 0)
    with gpu.device.loaded(made) as loaded:
        # Block memory begins with what the parts tell each other.
        base = np.arange(parts) * (0 if shared else nbytes) + (128 if shared else loaded.address("chain"))
        laid = np.zeros((1 if shared else parts, lines, LINE_BYTES // 8), np.uint64)
        laid[:, :, 0] = base[: len(laid), None] + LINE_BYTES * following
        loaded.write("chain", laid)
        loaded.write("first", base.astype(np.uint64))
        if not shared:
            _fill_caches(loaded, lines)

        end = after(following, 0, SAMPLES * (STEPS + warm))

        def check() -> None:
            wrong = np.flatnonzero(loaded.read("last") != (base + LINE_BYTES * end).astype(np.uint64))
            if len(wrong):
                raise WrongResultError(f"{key}: part {wrong[0]} did not follow its chain; no value is reported")

        return sampled(gpu, loaded, how, operations=STEPS, check=check, least_cycles=1)


def _fill_caches(loaded, lines: int) -> None:
    """One round over the whole working set."""
    loaded.set("steps", -(-lines // SAMPLES))
    loaded.run()
    loaded.set("steps", STEPS)


PROBES = {"memory_latency": memory_latency, "sm_load_latency": sm_load_latency}
