"""Commands to type, for the GPUs of each vendor."""

from __future__ import annotations

from typing import Literal

Wanted = Literal["links", "clocks"]

_NVIDIA: dict[Wanted, str] = {
    "links": "nvidia-smi topo -m; nvidia-smi nvlink --status; lspci -vv | grep LnkSta",
    "clocks": "nvidia-smi --query-gpu=index,clocks.sm,power.draw,clocks_throttle_reasons.active --format=csv",
}
_AMD: dict[Wanted, str] = {
    "links": "amd-smi topology; amd-smi xgmi --metric; lspci -vv | grep LnkSta",
    "clocks": "amd-smi metric --clock --power --throttle",
}
BY_LIBRARY = {"nccl": _NVIDIA, "rccl": _AMD}
