"""DeepEP: low latency and normal mode, dispatch and combine.

Low latency sends one copy for each chosen expert, straight to its rank, from one kernel:

    T = start + flag (receive + peer p + group G) + max(serial t / S, copies / R)       one node
      + network.flag, and copies to other nodes over the port                           several

    G   groups of experts that share a multiprocessor, ceil(experts / SMs);  S = ceil(experts / G) multiprocessors work
    R   link x share x low_latency;  t tokens, each `serial` on its multiprocessor

Normal mode sends one copy to each rank, with as many multiprocessors as it is given:

    T = call + fill flag q / (q + chunk)
        + t max((token + copies x bytes / sm) (1 + shared (n - 1)) / n, copies to others x bytes / (link x share))

    n   multiprocessors, two to a channel;  q = 2 t / n tokens of a channel, whose first chunk `fill` flags pass on

A combine reads its bytes in rounds of 512 B (a warp, 16 B a lane), of `reduce` flags and `reduce_copy` for each copy,
which the first token shows. Over several nodes a token goes once to each node, then to ranks; `forward` is the work on
such copies over that on plain ones. Their kernels that exchange counts (`notify`) are apart.
"""

from __future__ import annotations

import math

from .condition import GB, Condition
from .numbers import Numbers
from .routes import copies

WARP = 512  # bytes that a warp loads at once
NODE_GROUPS = 4  # the published gate sends a token to at most so many nodes
CHANNEL = 2  # multiprocessors of a channel: one sends, one receives
HEADER = 16  # bytes before a token in low latency, which name its source
FP8_GROUP, SCALE = 128, 4  # elements with one scale, and its bytes


def payload(one: Condition, header: int) -> float:
    """Bytes of a copy: fp8 with scales on the way out, bf16 on the way back."""
    if one.op.startswith("combine"):
        return 2.0 * one.hidden
    return one.hidden + one.hidden / FP8_GROUP * SCALE + header


def low_latency(one: Condition, numbers: Numbers) -> float:
    """Time of a low-latency kernel, us."""
    on, generation = one.on, one.on.generation
    flag = numbers[f"{generation}.flag"]
    combine = one.op.startswith("combine")
    groups = math.ceil(one.experts / on.sms)
    local = one.gpus / one.nodes
    rounds = numbers["deepep.receive"] + numbers["deepep.peer"] * local
    rounds += numbers["deepep.group_combine" if combine else "deepep.group"] * groups
    base = numbers[f"{generation}.start"] + rounds * flag
    sent = one.tokens * one.topk * payload(one, HEADER)
    rate = on.link * numbers[f"{generation}.link"] * (1.0 if combine else numbers["deepep.low_latency"])
    work = sent / one.nodes / rate
    if one.nodes > 1:
        base += numbers["infiniband.flag"]
        work = max(work, sent * (1 - 1 / one.nodes) / (on.nic * numbers["infiniband.nic"]))
    if not combine:
        work = max(work, numbers["deepep.serial"] * one.tokens / math.ceil(one.experts / groups))
    return base + work


def normal(one: Condition, numbers: Numbers) -> float:
    """Time of a call of the normal mode, or of one of its kernels, us."""
    on, generation = one.on, one.on.generation
    combine = one.op.startswith("combine")
    token, flag = numbers[f"{generation}.token"], numbers[f"{generation}.flag"]
    if one.op.endswith("_notify"):
        cleaned = numbers["deepep.clean"] * token * one.tokens / one.sms if combine else 0.0
        return max(numbers["deepep.notify"], cleaned)
    ranks, nodes = copies(one.gpus, one.nodes, one.experts, one.topk, NODE_GROUPS)
    size = payload(one, 0)
    rate = numbers[f"{generation}.sm"] * GB
    base = numbers[f"{generation}.call"]
    if combine:
        token *= numbers["deepep.token_combine"]
        rate *= numbers["deepep.rate_combine"]
        base *= numbers["deepep.call_combine"]
        base += size / WARP * (numbers["deepep.reduce"] + numbers["deepep.reduce_copy"] * ranks) * flag
    moved = ranks
    if one.nodes > 1:
        moved = (ranks + nodes) * numbers["deepep.forward_combine" if combine else "infiniband.forward"]
    # Over several nodes times fall with the number of multiprocessors alone.
    lost = numbers["deepep.shared"] * (one.sms - 1) if one.nodes == 1 else 0.0
    work = (token + moved * size / rate) * (1 + lost) / one.sms
    queued = one.tokens / (one.sms / CHANNEL)
    base += numbers["deepep.fill"] * flag * queued / (queued + numbers["deepep.chunk"])
    others = ranks * (1 - one.nodes / one.gpus)
    work = max(work, others * size / (on.link * numbers[f"{generation}.link"]))
    if one.nodes > 1:
        away = nodes * (1 - 1 / one.nodes)
        work = max(work, away * size / (on.nic * numbers["infiniband.nic"]))
    return base + one.tokens * work
