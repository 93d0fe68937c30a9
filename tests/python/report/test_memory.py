"""The sections about local memory and the machine, on a made-up run whose truth is known."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from linkwright.show.report import runs
from linkwright.show.report.sections import headline, levels, matrices, memory, picture

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LEVELS = ((32 * KIB, 1.2), (512 * KIB, 4.0), (16 * MIB, 15.0), (None, 90.0))
RATES = {"read": 40e9, "write": 20e9, "copy": 25e9, "triad": 30e9}


def environment() -> dict:
    sizes = (("1", "Data", "32K"), ("2", "Unified", "512K"), ("3", "Unified", "32768K"))
    rows = []
    for cpu in "01":
        shared = {"1": cpu, "2": cpu, "3": "0-1"}
        caches = [{"level": k, "type": kind, "size": size, "shared_cpu_list": shared[k]} for k, kind, size in sizes]
        rows.append({"cpu": int(cpu), "package": "0", "core": cpu, "siblings": cpu, "caches": caches})
    return {"topology": rows, "memory_bytes": 8 * GIB}


def row(part: str, probe: str, metric: str, value: float, **more) -> dict:
    common = {"machine": "host", "executor": "threads", "status": "ok", "n": 12, "ranks": 1, "placement": "topology"}
    common |= {"unit": "B/s" if "bandwidth" in metric else "ns", "ci_low": 0.99 * value, "ci_high": 1.01 * value}
    key = "/".join([part, "probe", probe, *map(str, more.values())])
    return common | {"part": part, "experiment": key, "algorithm": probe, "metric": metric, "value": value} | more


def latencies(pages: tuple[str, ...] = ("4K", "2M")) -> list[dict]:
    """The third cache ends at half of what the kernel claims."""
    return [
        row("memory_latency", "memory_latency", "latency", time, size_bytes=size,
            axes=f"order=random pages={page} neighbours=0 neighbours_do=chase")
        for size, page in itertools.product([4 * KIB * 2**k for k in range(16)], pages)
        for time in [next(t for capacity, t in LEVELS if capacity is None or size <= capacity)]
    ]  # fmt: skip


def bandwidths() -> list[dict]:
    return [
        row("memory_bandwidth", "memory_bandwidth", "bandwidth", rate * threads, size_bytes=block, ranks=threads,
            axes=f"kernel={kernel} width=widest")
        for block, (kernel, rate), threads in itertools.product(
            (8 * KIB, 128 * KIB, 2 * MIB, 64 * MIB), RATES.items(), (1, 2)
        )
    ]  # fmt: skip


def loaded() -> list[dict]:
    made = []
    for pause, rate, time in ((0, 20e9, 200.0), (500, 8e9, 110.0), (5000, 1e9, 92.0)):
        for at in ("memory", "shared_cache"):
            about = {"axes": f"at={at} pause={pause} injectors=1", "size_bytes": None}
            made.append(row("loaded_latency", "loaded_latency", "latency", time, **about))
            made.append(row("loaded_latency", "loaded_latency", "injected_bandwidth", rate, **about))
    return made


def lines() -> list[dict]:
    return [
        row("cache_line", "cache_line", "latency", time, size_bytes=None, placement=f"cpu {a}->cpu {b}", ranks=2,
            axes=f"how={how} touched_by=first")
        for how, time in (("compare_and_swap", 35.0), ("read_write", 70.0))
        for a, b in ((0, 1), (1, 0))
    ]  # fmt: skip


def run_of(*rows: dict, told: dict | None = None) -> runs.Run:
    return runs.Run("made up", runs.normalise(pd.DataFrame(rows)), environment=environment() if told is None else told)


@pytest.fixture(scope="module")
def whole() -> runs.Run:
    return run_of(*latencies(), *bandwidths(), *loaded(), *lines())


def test_one_plot_per_probe_and_series_named_by_what_varies(whole):
    latency, bandwidth, load, _ = memory.section(whole).items
    assert [curve.name for curve in latency.curves] == [
        "pages 4K", "pages 2M", "L1d claimed, 32 KiB", "L2 claimed, 512 KiB", "L3 claimed, 32 MiB",
    ]  # fmt: skip
    assert [curve.kind for curve in latency.curves] == ["measured"] * 2 + ["limit"] * 3
    names = [f"{kernel}, {count}" for kernel in RATES for count in ("1 thread", "2 threads")]
    assert sorted(curve.name for curve in bandwidth.curves) == sorted(names)
    assert [(curve.name, curve.x) for curve in load.curves] == [
        ("memory", [1e9, 8e9, 20e9]), ("shared cache", [1e9, 8e9, 20e9]),
    ]  # fmt: skip


def test_parts_of_one_curve_stand_in_one_plot():
    further = [{**one, "part": "more", "experiment": f"more/{one['experiment']}"} for one in latencies(("2M",))]
    streams = [
        row("streams", "memory_latency", "latency", time, size_bytes=size, axes=f"order=random neighbours={others}")
        for size, time in ((MIB, 5.0), (2 * MIB, 6.0))
        for others in (0, 1)
    ]
    plots = memory.section(run_of(*latencies(("4K",)), *further, *streams)).items
    found = [[curve.name for curve in plot.curves if curve.kind == "measured"] for plot in plots[:2]]
    assert found == [["pages 4K", "pages 2M"], ["neighbours 0", "neighbours 1"]]


def test_many_series_are_split_by_kernel():
    widths = [
        row("load_width", "memory_bandwidth", "bandwidth", 1e9, size_bytes=block, axes=f"kernel={kernel} width={width}")
        for block, kernel, width in itertools.product((KIB, MIB), RATES, ("64", "128", "256"))
    ]
    plots = memory.section(run_of(*widths)).items
    assert [plot.title for plot in plots] == [f"Memory bandwidth, {kernel}: bandwidth" for kernel in RATES]
    assert [curve.name for curve in plots[0].curves] == [f"width {width}" for width in ("64", "128", "256")]


def test_levels_found_beside_levels_claimed(whole):
    (table,) = levels.tables(whole, memory.of(whole, memory.LATENCY, "latency"))
    assert table.title.endswith("pages of 2 MiB")  # as many sizes as with small pages
    assert [[row[0].text, row[1].text, row[3].text, row[4].text] for row in table.rows] == [
        ["L1d", "1.2 ns", "32 KiB", "agrees"],
        ["L2", "4 ns", "512 KiB", "agrees"],
        ["L3", "15 ns", "32 MiB", "agrees as far as the sizes tell"],
        ["memory", "90 ns", "", ""],
    ]


def test_a_claimed_cache_without_a_step_is_told():
    told = environment()
    for cpu in told["topology"]:
        cpu["caches"].append({"level": "4", "type": "Unified", "size": "1G", "shared_cpu_list": "0-1"})
    run = run_of(*latencies(), told=told)
    (table,) = levels.tables(run, memory.of(run, memory.LATENCY, "latency"))
    assert table.rows[-1][0].text == "L4"
    assert table.rows[-1][4].detail == "the working sets end before it"


def test_a_curve_with_holes_does_not_deny_a_cache():
    kept = [one for one in latencies(("4K",)) if not 8 * KIB <= one["size_bytes"] <= 256 * KIB]
    run = run_of(*kept)
    (table,) = levels.tables(run, memory.of(run, memory.LATENCY, "latency"))
    assert table.rows[0][0].text == "L1d"
    assert table.rows[0][4].detail == "too few working sets around it have a result"


def test_what_fits_into_a_cache_before_does_not_stand_for_the_next():
    # 3 x 128 KiB each is 768 KiB of two threads, and still in the L2 that each has for itself.
    only = [one for one in bandwidths() if one["size_bytes"] == 128 * KIB]
    found = {row[0].text: row[6].text for row in picture.section(run_of(*only)).items[0].rows}
    assert (found["L2"], found["L3"]) == ("60 GB/s", "")


def test_the_machine_with_what_was_measured_of_it(whole):
    table = picture.section(whole).items[0]
    found = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert found["L1d"] == ["2", "32 KiB", "1.2 ns", "40 GB/s", "80 GB/s", "60 GB/s"]
    assert found["L2"] == ["2", "512 KiB", "4 ns", "40 GB/s", "80 GB/s", "60 GB/s"]
    assert found["L3"] == ["1", "32 MiB", "15 ns", "40 GB/s", "80 GB/s", "60 GB/s"]
    assert found["memory"] == ["", "8 GiB", "90 ns", "40 GB/s", "80 GB/s", "60 GB/s"]


def test_no_picture_without_topology_or_memory():
    assert picture.section(run_of(*latencies(), told={})) is None
    assert picture.section(run_of(*lines())) is None


def test_headline_of_the_memory(whole):
    found = {pick.question: pick.row["value"] for pick in headline.picks(whole, "host")}
    assert found["Last cache, L3: latency"] == pytest.approx(15e-9)
    assert found["Memory: latency"] == pytest.approx(90e-9)
    assert found["Memory: triad"] == 60e9
    assert found["Cache line, compare and swap: latency, best pair"] == pytest.approx(35e-9)
    assert not any("read write" in question for question in found)


def test_headlines_of_the_other_probes():
    rates = {"unit": "Flop/s", "size_bytes": None}

    def trip(time, axes):
        return row("round_trip", "round_trip", "round_trip_p50", time, axes=axes, size_bytes=64)

    rows = [
        *loaded(),
        trip(500.0, "out_bytes=64 transport=in_place"),
        trip(9e4, "out_bytes=64 transport=tcp"),
        trip(3e3, "out_bytes=16K transport=in_place"),
        row("peak", "fma_peak", "flop_rate", 50e9, axes="dtype=f64", **rates),
        row("peak", "fma_peak", "flop_rate", 100e9, axes="dtype=f64", **(rates | {"ranks": 2})),
        row("matmul", "matmul", "flop_rate", 40e9, axes="n=64 dtype=f64", **rates),
        row("matmul", "matmul", "flop_rate", 80e9, axes="n=512 dtype=f64", **rates),
        row("random", "random", "sample_rate", 9e9, axes="generator=store", unit="1/s", size_bytes=65536),
        row("random", "random", "sample_rate", 1e9, axes="generator=pcg", unit="1/s", size_bytes=65536),
    ]
    found = {pick.question: (pick.row["value"], pick.about) for pick in headline.picks(run_of(*rows), "host")}
    assert found == {
        "Memory: latency while others read": (pytest.approx(200e-9), "others read 20 GB/s"),
        "Shared cache: latency while others read": (pytest.approx(200e-9), "others read 20 GB/s"),
        "Round trip to another process, fastest way": (pytest.approx(500e-9), "64 B and 64 B back, in place"),
        "Round trip to another process, slowest way": (pytest.approx(9e-5), "64 B and 64 B back, tcp"),
        "Multiply-adds on registers, f64": (100e9, "2 threads"),
        "Matrix product, f64": (80e9, "n = 512, 1 thread"),
        "Random numbers": (1e9, "pcg, 1 thread"),
    }


def test_variants_of_a_probe_are_columns_of_few_pairs(whole):
    (pairs,) = matrices.section(whole).items
    assert [column.title for column in pairs.columns] == [
        "From → to", "cache line latency, compare and swap", "cache line latency, read write",
    ]  # fmt: skip
    assert [[cell.text.replace("\u00a0", " ") for cell in row] for row in pairs.rows] == [
        ["cpu 0 → cpu 1", "35.00 ns", "70.00 ns"], ["cpu 1 → cpu 0", "35.00 ns", "70.00 ns"],
    ]  # fmt: skip
    assert pairs.rows[0][0].detail == "same cache (L3)"


def test_a_described_machine_has_curves_and_a_headline_but_no_picture():
    exact = {"executor": "sim", "ci_low": None, "ci_high": None, "n": None}
    run = run_of(*({**one, **exact} for one in [*latencies(("4K",)), *bandwidths()]))
    latency, bandwidth = memory.section(run).items
    assert [curve.kind for curve in (*latency.curves, *bandwidth.curves)] == ["model"] * 9
    assert picture.section(run) is None
    found = {pick.question: pick.row["value"] for pick in headline.picks(run, "host")}
    assert found == {"Memory: latency": pytest.approx(90e-9), "Memory: triad": 60e9}
