"""Settings of serving engines that change which kernel serves an all-reduce, and the kernel that serves a size.

    vLLM            VLLM_ALLREDUCE_USE_SYMM_MEM=0      no symmetric memory; the custom all-reduce up to 8 MiB
                    --disable-custom-all-reduce        symmetric memory from the smallest size on
    SGLang          SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2=0, --disable-custom-all-reduce
                    --enable-nccl-nvls                 the server sets NCCL_NVLS_ENABLE=0 without it
                    --enable-torch-symm-mem            between the custom all-reduce and NCCL
    TensorRT-LLM    allreduce_strategy: ONESHOT | NCCL in place of AUTO

Each holds for all sizes: no engine takes thresholds of the user.

Source: vLLM, cuda_communicator.py, custom_all_reduce.py, symm_mem.py; SGLang, parallel_state.py, engine.py, environ.py,
torch_symm_mem.py; TensorRT-LLM, LlmArgs and `max_workspace_size_auto`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import allreduce
from .condition import Condition

MIB = 1 << 20
CUSTOM_BELOW = 8 * MIB  # of vLLM's custom all-reduce, where no symmetric memory serves larger vectors
WORKSPACE = {2: 16_000_000, 4: 8_000_000, 8: 8_000_000}  # largest vector of TensorRT-LLM's kernels, by GPUs
SYMMETRIC_BELOW = {2: 64 * MIB, 4: 64 * MIB, 8: 128 * MIB}  # of SGLang, by GPUs
SECOND = (0, 5, 12)  # SGLang's second custom all-reduce
IN_SWITCH = {"hopper": (4, 8), "blackwell": (8,)}  # numbers of GPUs whose sums PyTorch leaves to the switch
Serves = Callable[[Condition], str]


@dataclass(frozen=True)
class Setting:
    """What a user writes (`NAME=VALUE`, `--flag` or `key: value`), and the kernel that then serves an all-reduce."""

    serves: Serves
    written: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """All that is written, in one line."""
        return " ".join(self.written) or "the default"

    @property
    def lines(self) -> list[str]:
        """The same as a file: a shell's, or YAML."""
        flags = " ".join(one for one in self.written if one.startswith("--"))
        others = [one for one in self.written if not one.startswith("--")]
        return [f"export {one}" if "=" in one else one for one in others] + [f'ENGINE_FLAGS="{flags}"'] * bool(flags)


def of_engine(one: Condition) -> list[Setting]:
    """The settings of an engine, its default first."""
    return {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm}[one.backend](one)


def _nccl(one: Condition) -> str:
    return "nccl"


def _vllm(one: Condition) -> list[Setting]:
    off, flag = "VLLM_ALLREDUCE_USE_SYMM_MEM=0", "--disable-custom-all-reduce"
    return [
        Setting(allreduce.chosen),
        Setting(_custom, (off,)),
        Setting(_symmetric, (flag,)),
        Setting(_nccl, (off, flag)),
    ]


def _own(one: Condition, kernel: str) -> list[Mapping[str, Any]]:
    return [row for row in allreduce.rules(one) if row["kernel"].startswith(kernel)]


def _custom(one: Condition) -> str:
    """One shot up to its own largest size, then two; two GPUs have one shot only."""
    own = _own(one, "pull")
    if not own or one.size_bytes >= CUSTOM_BELOW:
        return "nccl"
    return "pull_one" if one.gpus == 2 or one.size_bytes <= own[0]["up_to"] else "pull_two"


def _symmetric(one: Condition) -> str:
    return allreduce.first(_own(one, "switch"), one.size_bytes)


def _sglang(one: Condition) -> list[Setting]:
    """Every custom all-reduce with everything that may serve larger vectors."""
    customs: list[tuple[Serves, tuple[str, ...]]] = [(allreduce.chosen, ())]
    if one.version >= SECOND:
        customs.append((_first_custom, ("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2=0",)))
    customs.append((_nccl, ("--disable-custom-all-reduce",)))
    larger: list[tuple[Serves, tuple[str, ...]]] = [(_ring, ()), (_nccl, ("--enable-nccl-nvls",))]
    if one.on.generation in IN_SWITCH:
        larger.append((_torch_symmetric, ("--enable-torch-symm-mem",)))
    return [Setting(_then(custom, other), (*its, *more)) for custom, its in customs for other, more in larger]


def _then(custom: Serves, other: Serves) -> Serves:
    return lambda one: other(one) if custom(one) == "nccl" else custom(one)


def _first_custom(one: Condition) -> str:
    return allreduce.chosen(replace(one, table="sglang/0.5.11"))


def _ring(one: Condition) -> str:
    return allreduce.RING


def _torch_symmetric(one: Condition) -> str:
    if one.size_bytes >= SYMMETRIC_BELOW[one.gpus]:
        return allreduce.RING
    return "switch_one" if one.gpus in IN_SWITCH[one.on.generation] else "switch_two"


def _trtllm(one: Condition) -> list[Setting]:
    if not allreduce.rules(one):
        return [Setting(allreduce.chosen)]
    strategies = (_one_shot, "ONESHOT"), (_nccl, "NCCL")
    return [Setting(allreduce.chosen), *(Setting(its, (f"allreduce_strategy: {name}",)) for its, name in strategies)]


def _one_shot(one: Condition) -> str:
    return "push_one" if one.size_bytes <= WORKSPACE[one.gpus] else "nccl"
