"""The roofline of the thesis: transfer at an effective rate, arithmetic at peak, synchronisation by hops.

    t_comm = S / stream_rate        t_comp = S / (peak_fp8 / 64)        t_sync = 18 hops x hop_latency
    T_LO = 6 max(t_comm, t_comp) + 3 t_sync
    T_BO = max(t_comm, t_comp) + t_comm + 5 t_sync

The second form charges the whole vector to each half, although 63/64 of it move, and the same 18 hops (the
worst case of recursive doubling) to every variant. It is the curve that the measurements were compared with,
not a physical limit.

Source: thesis, equations A.1 to A.15, with the divisor of A.3 corrected to 64.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright_evidence.numbers import values

RANKS = 64
STEPS = 6
KIB = 1024


@dataclass(frozen=True)
class Theory:
    """The curve, from the numbers of the machine file."""

    stream_rate: float  # bytes per second
    operations_per_s: float  # of one rank; one operation per byte
    hop_latency_s: float
    hops: int

    def parts(self, size_bytes: int, variant: str) -> dict[str, float]:
        """Seconds of synchronisation, transfer and arithmetic for `variant` `LO` or `BO`."""
        transfer, compute = size_bytes / self.stream_rate, size_bytes / self.operations_per_s
        sync = self.hops * self.hop_latency_s
        if variant == "LO":
            return {"sync": 3 * sync, "transfer": STEPS * transfer, "compute": STEPS * compute}
        return {"sync": 5 * sync, "transfer": 2 * transfer, "compute": compute}

    def time_us(self, size_bytes: int, variant: str) -> float:
        """Run time in microseconds."""
        transfer, compute = size_bytes / self.stream_rate, size_bytes / self.operations_per_s
        sync = self.hops * self.hop_latency_s
        if variant == "LO":
            seconds = STEPS * max(transfer, compute) + 3 * sync
        else:
            seconds = max(transfer, compute) + transfer + 5 * sync
        return seconds * 1e6


def from_machine(numbers: dict[str, float], hops: int) -> Theory:
    """`numbers` as values of the machine file by key, in the units of the file."""
    return Theory(
        stream_rate=numbers["facts.stream_rate"] * 1e9,
        operations_per_s=numbers["facts.peak_fp8"] * 1e12 / RANKS,
        hop_latency_s=numbers["fabric.hop_latency"] * 1e-9,
        hops=hops,
    )


def clock_hz(machine) -> float:
    """Clock of the machine file, which gives it in GHz."""
    return values(machine)["machine.clock"] * 1e9
