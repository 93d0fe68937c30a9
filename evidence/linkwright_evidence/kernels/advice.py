"""What to set so that a serving engine takes the fastest kernel: the text of `linkwright tune --for ENGINE`.

    gain = time by default / time with a setting

A gain counts only beyond the model's error, `ERROR`: nine in ten published ratios of two kernels are within that factor
of ours. A setting serves all sizes, so it is written only if it gains so much at one of them and none is more than 2 %
slower. DeepEP gets the fewest multiprocessors that are as fast as any number.

What it does not do: calls outside of a CUDA graph, all-reduces fused with a norm, kernels that no published table has.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from linkwright import machines
from linkwright.base.errors import ShapeError, UsageError
from linkwright.base.units import format_size
from linkwright.formats.tuning.engines import ENGINES, EngineQuestion
from linkwright.libraries.times import Model

from . import allreduce, condition, settings
from .condition import SYSTEMS, Condition
from .numbers import shipped
from .predict import Kernels

# Within which factor of our ratio of two kernels nine in ten published ones are: all-reduce by generation; DeepEP's two
# modes and numbers of multiprocessors, on one node and on several. `test_kernel_advice.py` finds them again.
ERROR = {"hopper": 1.18, "blackwell": 1.20, "ampere": 1.37, "pcie": 1.48}
ERROR_MODE, ERROR_SMS = (1.16, 1.19), (1.08, 1.12)
ALIKE = 1.02  # smaller gains are not shown
SIZES = tuple(1 << power for power in range(13, 27))
TOKENS = (1, 16, 64, 128, 256, 512, 1024, 4096)
SMS, OWN_SMS = (4, 8, 12, 16, 20, 24), 20  # published, and DeepEP's default
LOW_LATENCY = 1024  # the most tokens of a rank that its kernels take


@dataclass(frozen=True)
class Known:
    """What is known of an engine: from version `until` on it begins with a kernel of unknown times, see `cure`."""

    name: str
    unknown: str  # kernels that are not modelled
    until: tuple[int, ...] = (9999,)
    cure: str = ""


KNOWN = {
    "vllm": Known(
        "vLLM", "VLLM_USE_NCCL_SYMM_MEM, FlashInfer's all-reduce", (0, 29),
        "takes FlashInfer's all-reduce first, whose times are not known; for the other kernels set "
        "VLLM_ALLREDUCE_USE_FLASHINFER=0 and ask for vllm-0.24",
    ),
    "sglang": Known("SGLang", "--enable-mscclpp, --enable-symm-mem, FlashInfer's all-reduce"),
    "trtllm": Known("TensorRT-LLM", "TWOSHOT, MNNVL, NCCL_SYMMETRIC, UB, LOWPRECISION"),
    "deepep": Known("DeepEP", "", (2,), "has other kernels, whose times are not known; ask for deepep-1"),
}  # fmt: skip
KERNELS = {
    "pull_one": "custom, one shot", "pull_two": "custom, two shots", "store_one": "custom v2, one shot",
    "store_two": "custom v2, two shots", "push_one": "one shot", "switch_one": "symmetric memory, in the switch",
    "switch_two": "symmetric memory, two shots", "nccl": "NCCL", allreduce.RING: "NCCL without NVLS",
}  # fmt: skip
UNSUPPORTED = (
    "Ratios to NCCL without NVLS do not count as gains: that of NVLS is predicted at 1.33x and published at 1.12x "
    "(64M, eight H100), which is farther than the error."
)


def text(asked: EngineQuestion) -> str:
    """Return a file with what to set; its comments state the times, the gains and what is not modelled.

    Raises:
        UsageError: the machine, the number of GPUs or the version has no kernels of the engine.
    """
    version = condition.version_of(asked.version)
    if asked.version and not version:
        raise UsageError(f"{asked.where}: `{asked.version}` is not a version; write such as {asked.engine}-1.2.0")
    if version >= KNOWN[asked.engine].until:
        raise UsageError(f"{asked.where}: {asked.engine} {asked.version} {KNOWN[asked.engine].cure}")
    able = {one.on.generation for one in _published(asked.engine)}
    known: dict[str, str] = {}
    for key, on in SYSTEMS.items():
        if on.generation in able and on.capability[0].isdigit():  # a GPU of NVIDIA
            known.setdefault(on.machine, key)
    if asked.machine not in known:
        machines.load(asked.machine)  # one that does not exist is named as such
        names = ", ".join(sorted(known))
        raise UsageError(f"--on {asked.machine}: no kernel of {asked.engine} is described there; name one of {names}")
    answer = _exchange if ENGINES[asked.engine].exchanges else _reduction
    return "\n".join(answer(asked, known[asked.machine])) + "\n"


@functools.cache
def _published(backend: str) -> list[Condition]:
    return [one.condition for one in condition.published() if one.condition.backend == backend]


def _range(gain: float, error: float) -> str:
    return f"{gain:.2f}x ({gain / error:.2f}x to {gain * error:.2f}x)"


# ---- all-reduce


def _reduction(asked: EngineQuestion, system: str) -> list[str]:
    on, name = SYSTEMS[system], KNOWN[asked.engine].name
    gpus = asked.gpus or on.node_gpus
    if asked.nodes > 1 or gpus > on.node_gpus:
        raise ShapeError(
            f"{asked.where}: the kernels of {name} serve one node, which has {on.node_gpus} GPUs of {asked.machine}; "
            "give -p of at most that, and omit --nodes. NCCL serves several: --for nccl"
        )
    if gpus not in (2, 4, 8):
        raise ShapeError(f"{asked.where}: kernels of {name} are known for 2, 4 and 8 GPUs, not {gpus}; give one as -p")
    version, remarks = _version(asked, system, gpus)
    table = f"{asked.engine}/{version}"
    base = Condition("framework_allreduce", system, gpus, 1, asked.engine, "all_reduce", "graph", table)
    numbers, model = shipped(), Model()
    able = settings.of_engine(base)
    times: dict[int, list[float]] = {}
    unsupported: set[tuple[int, int]] = set()  # size, place of the setting
    rows = [("size", "by default", "us", "fastest setting", "us", "gain")]
    for size in asked.sizes or SIZES:
        one = replace(base, size_bytes=size)
        serving = [setting.serves(one) for setting in able]
        spent = {kernel: allreduce.of_kernel(one, kernel, numbers, model) for kernel in {*serving, "nccl"}}
        times[size] = its = [spent[kernel] for kernel in serving]
        if spent.get(allreduce.RING, spent["nccl"]) != spent["nccl"]:
            unsupported |= {(size, at) for at, to in enumerate(serving) if allreduce.RING in (serving[0], to)}
        best = min(range(len(able)), key=its.__getitem__)
        gain = its[0] / its[best]
        faster = (able[best].words, f"{its[best]:.1f}", f"{gain:.2f}x") if gain >= ALIKE else ("the default", "", "")
        rows.append((format_size(size), KERNELS[serving[0]], f"{its[0]:.1f}", *faster))
    error = ERROR[on.generation]
    lines = [
        f"{name} {version} on {asked.machine}, {gpus} GPUs: all-reduce of bf16 in a CUDA graph, predicted",
        *remarks,
        *_columns(rows),
        f"A gain below {error:.2f}x is within the model's error: its ratios of two kernels are within that factor of "
        "nine published ones in ten.",
        f"Not modelled: {KNOWN[asked.engine].unknown}, all-reduces fused with a norm.",
    ]
    if len(able) == 1:
        return _comments([*lines, f"Leave the default: {name} has no kernel of its own here, so nothing can be set."])
    said, written = _recommended(able, times, unsupported, error)
    return [*_comments([*lines, *said]), *written]


def _version(asked: EngineQuestion, system: str, gpus: int) -> tuple[str, list[str]]:
    """The version whose rules answer: the newest with published times that is not newer than asked, or the oldest."""
    alike = [one for one in _published(asked.engine) if one.on.generation == SYSTEMS[system].generation]
    found = sorted({(one.version, one.table.rpartition("/")[2]) for one in alike})
    wanted = condition.version_of(asked.version)  # of 0.24, any 0.24.x
    older = [one for one in found if one[0][: len(wanted)] <= wanted]
    version, answered = older[-1] if older else found[0]
    remarks = []
    if version[: len(wanted)] != wanted:
        which = answered if older else f"{answered}, the oldest known"
        remarks.append(f"No time of {asked.version} on such GPUs is published: answered by the rules of {which}.")
    return answered, remarks + _unpublished(asked, system, gpus)


def _unpublished(asked: EngineQuestion, system: str, gpus: int) -> list[str]:
    if any((one.system, one.gpus) == (system, gpus) for one in _published(asked.engine)):
        return []
    return [f"No time of {gpus} GPUs of {asked.machine} is published."]


def _recommended(
    able: Sequence[settings.Setting],
    times: Mapping[int, list[float]],
    unsupported: Collection[tuple[int, int]],
    error: float,
) -> tuple[list[str], list[str]]:
    """Return comments that say why, and the lines to write.

    The lines are those of the best setting that is more than 2 % slower at no size; without one, the comments name
    what helps at some sizes alone.
    """
    gains = {setting: {size: its[0] / its[at] for size, its in times.items()} for at, setting in enumerate(able)}
    helpful: dict[settings.Setting, dict[int, float]] = {}
    lines: list[str] = []
    for at, (setting, its) in enumerate(gains.items()):
        beyond = {size: gain for size, gain in its.items() if gain > error}
        supported = {size: gain for size, gain in beyond.items() if (size, at) not in unsupported}
        if supported:
            helpful[setting] = supported
        if supported != beyond:
            lines = [UNSUPPORTED]
    if not helpful:
        return [*lines, "Leave the default: no setting gains more than the error."], []
    if harmless := [setting for setting in helpful if min(gains[setting].values()) > 1 / ALIKE]:
        best = max(harmless, key=lambda one: (round(geometric_mean(gains[one].values()), 3), -len(one.words)))
        most, size = max((gain, size) for size, gain in helpful[best].items())
        said = f"{best.words}: {_range(most, error)} at {format_size(size)}; no size here is more than 2 % slower."
        return [*lines, said], best.lines
    lines.append("Leave the default: every setting that gains more than the error is more than 2 % slower at another "
                 "size. If you serve few sizes, name them with --sizes.")  # fmt: skip
    for setting, its in helpful.items():
        sizes = ", ".join(map(format_size, its))
        lines.append(f"At {sizes} alone, {setting.words}: up to {_range(max(its.values()), error)}.")
    return lines, []


# ---- dispatch and combine


def _exchange(asked: EngineQuestion, system: str) -> list[str]:
    several = asked.nodes > 1
    gpus = asked.gpus or SYSTEMS[system].node_gpus * asked.nodes
    asked = replace(asked, gpus=gpus, experts=asked.experts or 256, topk=asked.topk or 8, hidden=asked.hidden or 7168)
    if asked.experts % gpus:
        raise ShapeError(f"{asked.where}: {asked.experts} experts on {gpus} GPUs; every GPU must have as many")
    kernels, counts = Kernels(), asked.tokens or TOKENS
    low = {count: _spent(asked, system, count, 0, kernels) for count in counts if count <= LOW_LATENCY}
    normal = {count: {sms: _spent(asked, system, count, sms, kernels) for sms in SMS} for count in counts}
    of_mode, error = ERROR_MODE[several], ERROR_SMS[several]
    modes = {count: _mode(low.get(count), min(normal[count].values()), of_mode) for count in counts}
    served = [normal[count] for count in counts if modes[count] != "low latency"]
    sms, said = _multiprocessors(served if "normal" in modes.values() else [], error)
    rows = [("tokens", "low latency, us", f"normal, {OWN_SMS} SMs", f"{SMS[-1]} SMs", "faster")]
    for n in counts:
        own, most = normal[n][OWN_SMS], normal[n][SMS[-1]]
        rows.append((str(n), f"{low[n]:.0f}" if n in low else "", f"{own:.0f}", f"{most:.0f}", modes[n]))
    lines = [
        f"DeepEP 1 on {asked.machine}, {gpus} GPUs{f' of {asked.nodes} nodes' if several else ''}: dispatch (fp8) and "
        f"combine (bf16), {asked.experts} experts, top {asked.topk}, hidden {asked.hidden}, predicted",
        *_unpublished(asked, system, gpus),
        *_columns(rows),
        *[f"Low latency takes at most {LOW_LATENCY} tokens."] * (len(low) < len(counts)),
        f"Within the model's error: modes within {of_mode:.2f}x of each other, numbers of SMs within {error:.2f}x. "
        f"No time of more than {SMS[-1]} SMs is published.",
        said,
        *_users(modes, sms, several),
    ]  # fmt: skip
    return _comments(lines) + [f"deep_ep.Buffer.set_num_sms({sms})"] * (sms != OWN_SMS)


def _spent(asked: EngineQuestion, system: str, tokens: int, sms: int, kernels: Kernels) -> float:
    """Dispatch and combine, us; low latency where `sms` is 0."""
    total = 0.0
    for side, dtype in (("dispatch", "fp8"), ("combine", "bf16")):
        # Over several nodes a call of the normal mode exchanges counts first, in a kernel of its own.
        for op in (side, f"{side}_notify") if sms and asked.nodes > 1 else (side,):
            row = {
                "kind": f"deepep_ht_{side}" if sms else "deepep_ll", "system": system, "gpus": asked.gpus, "sms": sms,
                "nodes": asked.nodes, "backend": "deepep", "op": op, "dtype": dtype, "tokens": tokens,
                "hidden": asked.hidden, "topk": asked.topk, "experts": asked.experts,
            }  # fmt: skip
            total += kernels.time_us(condition.condition({key: str(of) for key, of in row.items()}, asked.where))
    return total


def _mode(low: float | None, normal: float, error: float) -> str:
    if low is None:
        return "normal"
    if max(low, normal) < error * min(low, normal):
        return "either"
    return "low latency" if low < normal else "normal"


def _multiprocessors(times: Sequence[Mapping[int, float]], error: float) -> tuple[int, str]:
    """Their number and why: the fewest that take no longer than any number, by `ALIKE`, at all of these `times`."""
    if not times:
        return OWN_SMS, "The normal mode is not faster for any of them; low latency has no number of SMs to set."
    sms = next((sms for sms in SMS if all(its[sms] <= ALIKE * min(its.values()) for its in times)), OWN_SMS)
    gain = max(its[OWN_SMS] / its[sms] for its in times)
    if gain > error:
        return sms, f"{sms} SMs: up to {_range(gain, error)} over DeepEP's {OWN_SMS} in the normal mode."
    if sms < OWN_SMS:
        return sms, f"{sms} SMs: as fast as {OWN_SMS}, and the others are free to compute."
    return OWN_SMS, f"Leave the {OWN_SMS} SMs of DeepEP: no other number gains more than the error for all of them."


def _users(modes: Mapping[int, str], sms: int, several: bool) -> list[str]:
    """The settings of vLLM and SGLang, which call DeepEP."""
    names = {
        "low latency": "--all2all-backend deepep_low_latency",
        "normal": "--all2all-backend deepep_high_throughput",
    }
    words = sorted(set(modes.values()) - {"either"})
    if not words:
        backend = "--all2all-backend deepep_low_latency and deepep_high_throughput are as fast, within the error"
    else:
        backend = names[words[0]] if len(words) == 1 else "a server has one --all2all-backend: choose it by its tokens"
    lines = [
        f"vLLM: {backend}. Its normal mode has {OWN_SMS} SMs; only with --enable-dbo VLLM_DBO_COMM_SMS changes them.",
        "SGLang: leave --deepep-mode auto, which takes low latency to decode and normal for prompts.",
        "SGLang: low latency has room for SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens: 128, "
        f"at most {LOW_LATENCY}.",
    ]
    if sms != OWN_SMS and several:
        lines.append(
            "SGLang: --deepep-config replaces sizes of chunks, too; find them with DeepEP's tests/test_internode.py."
        )
    elif sms != OWN_SMS:
        sides = ", ".join(f'"normal_{side}": {{"num_sms": {sms}}}' for side in ("dispatch", "combine"))
        lines.append(f"SGLang: --deepep-config '{{{sides}}}'")
    return lines


# ---- text


def _comments(lines: Sequence[str]) -> list[str]:
    return [f"# {line}".rstrip() for line in lines]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with numbers to the right."""
    columns = list(zip(*rows, strict=True))
    wide = [max(map(len, column)) for column in columns]
    number = [all(cell[:1].isdigit() or not cell for cell in column[1:]) for column in columns]
    lines = []
    for row in rows:
        cells = zip(row, wide, number, strict=True)
        lines.append("  ".join(cell.rjust(most) if right else cell.ljust(most) for cell, most, right in cells))
    return lines
