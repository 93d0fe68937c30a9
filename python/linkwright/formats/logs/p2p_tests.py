"""What p2pBandwidthLatencyTest of the CUDA samples and rocm-bandwidth-test print: matrices of rates between devices.

    Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
       D\\D     0      1
         0 2560.10 390.21
         1  390.14 2559.8

Devices of rocm-bandwidth-test are processors and GPUs in one list, so its ends are only numbers. Matrices of access,
distance and latency are passed over.

Source: NVIDIA/cuda-samples, p2pBandwidthLatencyTest.cu; ROCm, rocm_bandwidth_test.
"""

from __future__ import annotations

import re

from .kinds import TextReader
from .matrices import Head, MatrixReading

_CUDA = re.compile(r"\s*(?:(Uni|Bi)directional )?P2P=(Enabled|Disabled) (Bandwidth|Latency)\b.*Matrix \((GB/s|us)\)")
_ROCM = re.compile(r"\s*(Uni|Bi)directional copy peak bandwidth GB/s\s*")
_OTHERS = ("P2P Connectivity Matrix", "Inter-Device Access", "Inter-Device Numa Distance")


def _head(text: str) -> Head | None:
    if "P2P=" in text and (match := _CUDA.match(text)):
        name = f"{match[1]}directional P2P={match[2]}" if match[1] else f"P2P={match[2]}"
        return Head(name, match[4] == "GB/s", both_ways=match[1] == "Bi")
    if any(other in text for other in _OTHERS):
        return Head(text.strip()[:80], has_rates=False)
    return None


def _rocm_head(text: str) -> Head | None:
    if "directional" in text and (match := _ROCM.fullmatch(text)):
        return Head(f"{match[1]}directional copy", rows="device", columns="device", both_ways=match[1] == "Bi")
    return _head(text) if text.strip().startswith("Inter-Device") else None


CUDA = TextReader(
    "p2pBandwidthLatencyTest", "the text of p2pBandwidthLatencyTest of the CUDA samples: matrices of rates",
    "NVIDIA/cuda-samples, p2pBandwidthLatencyTest.cu", ("P2P (Peer", "P2P="),
    lambda text: "P2P (Peer-to-Peer) GPU Bandwidth Latency Test" in text or ("P2P=" in text and _CUDA.match(text)),
    lambda gathered: MatrixReading(CUDA.tool, gathered, _head),
)  # fmt: skip
ROCM = TextReader(
    "rocm-bandwidth-test", "the text of rocm-bandwidth-test: matrices of rates", "ROCm, rocm_bandwidth_test",
    ("RocmBandwidthTest Version", "directional"),
    lambda text: "RocmBandwidthTest Version" in text or _ROCM.fullmatch(text),
    lambda gathered: MatrixReading(ROCM.tool, gathered, _rocm_head),
)  # fmt: skip
