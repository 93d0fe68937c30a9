"""Section 5.1: square matrix products on one IPU, both IPUs of a board and a V100.

The models are those of the convolutions with one tap, with the numbers that were fitted to convolutions, so the
measured products of tables 5.1 and 5.2 test them. The published rate is the best over n, up to the largest n
that was measured to fit (a fact of the machine file: on the IPU it is not explained, I30).

Layouts: `optimised` has the operands where the planner wants them; `basic` has them spread linearly, so every tile
first receives its share of both at the width of its port. Two IPUs work on products of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright_evidence.ipu.arithmetic import DTYPES, Device, device, named
from linkwright_evidence.ipu.tables import Table
from linkwright_evidence.outcome import Claim
from linkwright_evidence.published import reference_rows
from linkwright_evidence.scoring import Target

PRODUCT = Target(0.12, None, 0.25)
STEP = 64
OPERANDS = 2
ABOUT_5_PERCENT = 0.055
# A curve is drawn from 16 on, four points per doubling.
FIRST, PER_DOUBLING = 16, 4


def largest(one: Device, precision: str) -> int:
    """The largest n that was measured to fit."""
    return int(one.fact("largest_half" if DTYPES[precision] == "f16" else "largest_single"))


def rate(one: Device, n: int, precision: str, layout: str = "optimised") -> float:
    """TFlop/s of one product."""
    seconds = one.product_s(n, precision)
    if layout == "basic":
        width = 2 if DTYPES[precision] == "f16" else 4
        port = float(one.numbers["fabric.bandwidth"]["value"]) * float(one.numbers["machine.clock"]["value"]) * 1e9
        seconds += OPERANDS * n * n * width / one.threads / port
    return 2 * n**3 / seconds / 1e12


def best(one: Device, precision: str) -> float:
    """The highest rate over n."""
    most = largest(one, precision)
    return max(rate(one, n, precision) for n in {*_curve(most), most // STEP * STEP})


def _curve(most: int) -> Iterator[int]:
    power = 0
    while (n := round(FIRST * 2 ** (power / PER_DOUBLING))) <= most:
        # Whole blocks once they are large, as programs choose them.
        yield n if n < 4 * STEP else n // STEP * STEP
        power += 1


def throughput(bench, row: dict[str, str]) -> float | None:
    """Tables 5.1 and 5.2."""
    one, precision = named(row["device"]), row["precision"]
    quantity, units = row.get("quantity", ""), row.get("hardware_units", "AMP")
    if row["metric"] == "fraction_of_theoretical":
        return 100 * best(one, precision) / one.peak(precision)
    if quantity == "Actual GEMM" or row["metric"] == "throughput_actual_peak":
        return best(one, precision)
    if units == "TensorCores" and precision == "single":
        return None
    if units in ("AMP", "TensorCores"):
        return one.peak(precision)
    return one.work_rate(f"facts.vector_{'half' if DTYPES[precision] == 'f16' else 'single'}")


def figures_5_1_to_5_3() -> Iterator[dict]:
    """Rate and rate per nominal watt by n, device and layout, beside the peak."""
    for precision in ("single", "mixed"):
        for name, chips, layout in (
            ("IPU", 1, "optimised"),
            ("IPU", 1, "basic"),
            ("IPU", 2, "optimised"),
            ("V100", 1, "optimised"),
        ):
            one = device(name)
            board_w = one.fact("board_power") if chips == 2 else one.power_w
            for n in _curve(largest(one, precision)):
                found = chips * rate(one, n, precision, layout)
                yield {
                    "device": f"{chips} {name}",
                    "precision": precision,
                    "layout": layout,
                    "n": n,
                    "tflop_per_s": found,
                    "tflop_per_s_per_w": found / board_w,
                    "limit_tflop_per_s": chips * one.peak(precision),
                }


TABLES = [
    Table("5.1", "t5_01_matmul_throughput.csv", PRODUCT, throughput, apart=dict.fromkeys((1, 2, 5, 6), "limits")),
    Table("5.2", "t5_02_matmul_peak.csv", PRODUCT, throughput, apart={1: "limits"}),
]


def claims() -> list[Claim]:
    """Claim 19, and the check without a refit."""
    ipu, gpu = device("IPU"), device("V100")
    fits = {(one.name, p): largest(one, p) for one in (ipu, gpu) for p in ("single", "mixed")}
    beyond = [p for p in ("single", "mixed") if ipu.product_s(fits["V100", p], p) is None]
    held = [p for p in ("single", "mixed") if gpu.product_s(fits["V100", p], p) is not None]
    why = ", ".join(f"{name} {precision} {n:,}" for (name, precision), n in fits.items())
    return [
        Claim(
            "I-19",
            "the largest matrices fit the GPU, not the IPU",
            len(beyond) == len(held) == 2,
            f"largest n: {why}; the IPU's model refuses the GPU's in {' and '.join(beyond)}",
        ),
        _check("I-C1", ipu, "the planner"),
        _check("I-C2", gpu, "the waves"),
    ]


def printed(one: Device) -> dict[str, float]:
    """Precision -> TFlop/s of the best product, as table 5.1 prints it."""
    rows = reference_rows("ipu", "t5_01_matmul_throughput.csv")
    return {
        row["precision"]: float(row["value"])
        for row in rows
        if row["quantity"] == "Actual GEMM" and one.name in row["device"]
    }


def _check(key: str, one: Device, model: str) -> Claim:
    mixed, single, measured = best(one, "mixed"), best(one, "single"), printed(one)
    error = mixed / measured["mixed"] - 1
    statement = f"{model} fitted to layers, without a refit, gives the mixed product of the {one.name} within about 5 %"
    why = (
        f"{mixed:.1f} TFlop/s predicted, {measured['mixed']} printed ({error:+.1%}); "
        f"single {single:.1f} and {measured['single']} ({single / measured['single'] - 1:+.1%})"
    )
    return Claim(key, statement, abs(error) < ABOUT_5_PERCENT, why)
