"""Engines that serve models, whose all-reduce or exchange of experts has settings: vLLM, SGLang, TensorRT-LLM, DeepEP.

Their kernels are modelled by study `kernels` of the package linkwright-evidence, which writes the text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from linkwright.base import studies


@dataclass(frozen=True)
class Engine:
    """An engine; after `--for` its key, or `KEY-VERSION`."""

    key: str
    summary: str
    description: str
    source: str
    exchanges: bool = False  # tokens among experts; the others reduce


@dataclass(frozen=True)
class EngineQuestion:
    """What an engine is to serve; numbers are 0 and tuples empty where nothing was stated."""

    engine: str  # its key
    version: str
    machine: str
    nodes: int
    gpus: int = 0
    sizes: tuple[int, ...] = ()  # of an all-reduce, in bytes
    tokens: tuple[int, ...] = ()  # of a rank; with `experts` of all ranks, `topk` of a token, `hidden` elements of it
    experts: int = 0
    topk: int = 0
    hidden: int = 0

    @property
    def where(self) -> str:
        """The option that asks, for errors."""
        return f"--for {self.engine}{f'-{self.version}' if self.version else ''}"


_REDUCED = (
    "Compares the kernels that serve an all-reduce by size, under each setting, on one node. A setting is written if "
    "it gains more than the error of the model at one of the sizes and none is more than 2 % slower."
)
_EXCHANGED = (
    "Compares low latency with the normal mode by the tokens of a rank, and finds the fewest multiprocessors that are "
    "as fast as any number."
)
ENGINES = {e.key: e for e in (
    Engine("vllm", "vLLM: settings that choose the kernels of its all-reduce (shell)", _REDUCED,
           "vLLM, device_communicators and envs.py"),
    Engine("sglang", "SGLang: settings that choose the kernels of its all-reduce (shell)", _REDUCED,
           "SGLang, parallel_state.py, server_args.py and environ.py"),
    Engine("trtllm", "TensorRT-LLM: `allreduce_strategy` of its LLM API (YAML)", _REDUCED,
           "TensorRT-LLM, LlmArgs and custom_all_reduce"),
    Engine("deepep", "DeepEP: the mode by tokens, and the number of SMs (Python)", _EXCHANGED,
           "DeepEP, buffer.py", exchanges=True),
)}  # fmt: skip


def find(words: str) -> tuple[Engine, str] | None:
    """Return the engine and the version of `vllm-0.24`; None if no engine has that key."""
    key, dash, version = words.partition("-")
    return (ENGINES[key], version) if key in ENGINES and bool(dash) == bool(version) else None


def text(asked: EngineQuestion) -> str:
    """Return a file with what to set, whose comments say why.

    Raises:
        UsageError: the machine, the number of GPUs or the version has no kernels of the engine, or the package of
            studies is not installed.
    """
    return str(studies.module("kernels.advice").text(asked))


def entries() -> list[dict[str, object]]:
    """Return the engines, as `list` and `describe` print them."""
    return [{key: its for key, its in asdict(one).items() if key != "exchanges"} for one in ENGINES.values()]
