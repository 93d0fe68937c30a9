"""The probes of a GPU on a driver whose GPU is CPU threads: what they do is checked, what they take means nothing."""

from __future__ import annotations

import re
from types import SimpleNamespace

import emulator
import numpy as np
import pytest

from linkwright.ask.question import Probe
from linkwright.base.errors import WaivedError
from linkwright.executors import probes
from linkwright.executors.cuda import compiler
from linkwright.executors.cuda.probes import l2, latency, round_trips

needs_nvrtc = pytest.mark.skipif(not emulator.has_nvrtc(), reason="no cuda-bindings or NVRTC: pip install -e '.[cuda]'")


def asked(key: str, *, placement: tuple[int, ...] | None = None, spoil: bool = False, **axes) -> dict:
    assigned = probes.find(key).assignment(axes)
    ranks = int(assigned.get("threads", 1))
    experiment = Probe("test", key, ranks, None, axes=tuple(assigned.items()), placement=placement)
    return {"experiment": experiment, "spoil": spoil}


ANSWERED = [
    asked("memory_latency", pages="2M"),
    asked("memory_latency", pages="2M", order="stride_256", neighbours=2),
    *(asked("sm_load_latency", through=through, threads=2) for through in ("shared", "l1", "l2")),
    asked("sm_load_latency", working_set="2M"),
    *(asked("sm_load_latency", through="cluster", threads=threads) for threads in (1, 4)),
    *(asked("memory_bandwidth", kernel=kernel, threads=3, block=4112) for kernel in ("read", "write", "copy", "triad")),
    *(asked("memory_bandwidth", kernel="triad", width=width) for width in ("32", "64")),
    asked("sm_l2_latency", working_set="8K"),
    asked("sm_l2_latency", working_set="4K", access="atomic", threads=2),
    asked("sm_l2_bandwidth", working_set="8K", side="any", threads=2),
    asked("cache_line", placement=(3, 8)),
    asked("cache_line", how="read_write"),
    asked("sm_cluster_latency", threads=4, peer=3),
    asked("sm_cluster_latency", threads=4, first=2, peer=1),
    *(asked("sm_pair_bandwidth", threads=threads, bytes=4112) for threads in (2, 6)),
    asked("sm_pair_bandwidth", through="cluster", cluster=4, threads=8, bytes=512),
    *(asked("sm_loaded_latency", threads=threads, bytes=4112) for threads in (2, 6)),
    asked("sm_loaded_latency", through="cluster", threads=6, bytes=512),
    asked("sm_barrier", threads=3),
    asked("sm_barrier", how="cluster", threads=4),
    asked("sm_atomic", threads=2),
    asked("sm_atomic", at="own", warps=2),
    *(asked("gpu_copy", bytes=5000, direction=there, memory=memory)
      for there in ("to_device", "to_host") for memory in ("pageable", "pinned")),
    asked("gpu_copy", bytes=70_000, direction="to_host", queued=3),
    asked("round_trip", transport="in_place", in_bytes=100, out_bytes=5000),
    asked("round_trip", transport="in_place", in_bytes=5000, out_bytes=64),
    asked("round_trip", transport="user_buffers", in_bytes=64, out_bytes=300),
    asked("round_trip", transport="user_buffers", in_bytes=5000, out_bytes=64),
    asked("round_trip", transport="word_store", in_bytes=64, out_bytes=301),
    asked("round_trip", transport="word_store", in_bytes=5001, out_bytes=1),
]  # fmt: skip
SPOILED = [
    asked("sm_load_latency", spoil=True),
    asked("memory_bandwidth", kernel="triad", spoil=True),
    asked("sm_l2_bandwidth", working_set="8K", side="any", spoil=True),
    *(asked("round_trip", transport=way, spoil=True) for way in ("in_place", "user_buffers", "word_store")),
    asked("sm_pair_bandwidth", bytes=512, spoil=True),
    asked("sm_loaded_latency", threads=4, bytes=512, spoil=True),
]
WAIVED = {
    "maps the memory of a GPU by pages of 2 MiB": asked("memory_latency"),
    "shared memory of a block has 100000 bytes": asked("sm_load_latency", through="shared", working_set="1M"),
    "a quarter of the GPU's memory": asked("sm_load_latency", working_set="512M"),
    "it looks at 2 to 24968 lines of 128 bytes, not at 1": asked("sm_l2_latency", working_set=128),
    "accesses 32, 64 or 128 bits at once, not `512`": asked("memory_bandwidth", width="512"),
    "the clocks of two SMs do not agree": asked("cache_line", how="one_way"),
    "a cluster has 2, 4, 8 or 16 blocks, not 3": asked("sm_cluster_latency", threads=3),
    "forms no cluster of 8 blocks with 66560 bytes of shared memory each": asked("sm_cluster_latency", threads=8),
    "a cluster of 2 has no pair of blocks 0 and 2": asked("sm_cluster_latency", threads=2, peer=2),
    "no pair of blocks 1 and 1": asked("sm_cluster_latency", threads=2, first=1),
    "16 blocks need as many SMs; there are 12": asked("sm_barrier", how="cluster", threads=16),
    "pairs are an even number of SMs, not 3": asked("sm_pair_bandwidth", threads=3),
    "a message is a multiple of 16 bytes, not 100": asked("sm_pair_bandwidth", bytes=100),
    "6 of 12 SMs do not form whole clusters of 4": asked("sm_pair_bandwidth", through="cluster", cluster=4, threads=6),
    "two messages of 65536 bytes do not fit": asked("sm_loaded_latency", through="cluster", bytes="64K"),
    "13 parts need as many SMs; 12 take part": asked("sm_barrier", threads=13),
    "1 to 32 warps, not 99": asked("sm_atomic", warps=99),
    "a GPU has no transport pipe; ask for one of in_place, user_buffers, word_store": asked(
        "round_trip", transport="pipe"
    ),
    "it is not measured on a GPU": asked("fma_peak"),
}


@pytest.fixture(scope="module")
def answers() -> list[dict]:
    return emulator.answers([*ANSWERED, *SPOILED, *WAIVED.values()])


@needs_nvrtc
@pytest.mark.parametrize("number", range(len(ANSWERED)), ids=lambda i: ANSWERED[i]["experiment"].algorithm)
def test_an_answer_is_checked_samples(answers, number):
    found = answers[1 + number].get("found")
    assert found, answers[1 + number]
    assert len(found["values_ns"]) <= 8
    assert all(value > 0 for value in found["values_ns"])
    # The host's clock watches whether the host was disturbed; on a busy one every sample may have been.
    assert found["values_ns"] or sum(found["dropped"].values()), found
    metrics = probes.find(ANSWERED[number]["experiment"].algorithm).metrics
    rates = {metric.source for metric in metrics} & {"counted_rate", "moved_rate", "work_rate"}
    carried = {"counted_rate": "counted_bytes", "moved_rate": "moved_bytes", "work_rate": "work"}
    assert all(found[carried[rate]] > 0 for rate in rates)


@needs_nvrtc
@pytest.mark.parametrize("number", range(len(SPOILED)))
def test_a_wrong_result_gives_no_number(answers, number):
    assert answers[1 + len(ANSWERED) + number]["error"][0] == "WrongResultError"


@needs_nvrtc
@pytest.mark.parametrize("reason", WAIVED)
def test_what_a_gpu_cannot_answer_is_waived(answers, reason):
    kind, text = answers[1 + len(ANSWERED) + len(SPOILED) + list(WAIVED).index(reason)]["error"]
    assert kind == "WaivedError"
    assert re.search(reason, text), text


@needs_nvrtc
def test_words_are_the_fields_of_the_structs(answers):
    words = answers[-1]
    assert {source for source, _ in words.values()} == set(compiler.sources()) - {
        "combine_pieces",
        "schedule_walk",
        "grid_reduce",
        "clocks",
    }
    common = emulator.fields("probe.cuh", "Parts")
    for kernel, (source, given) in words.items():
        text = (compiler.KERNELS / f"{source}.cu").read_text(encoding="utf-8")
        struct = re.search(rf"{kernel}\(const (\w+) \*", text)
        own = emulator.fields(f"{source}.cu", struct[1])
        wanted = [*common, *own[1:]] if own[0] == ("parts", False) else own
        # The host's own memory is given by its address.
        addresses = ("asked", "answered", "request", "reply") if source.endswith("_echo") else ()
        assert given == [[name, pointer and name not in addresses] for name, pointer in wanted], kernel


@pytest.mark.parametrize("order", ["random", "stride_128", "stride_256", "stride_4096"])
@pytest.mark.parametrize("lines", [2, 3, 64, 100])
def test_a_chain_is_one_cycle_over_all_lines(order, lines):
    around = latency.chain(lines, order, seed=1)
    assert around[0] == 0
    assert sorted(around) == list(range(lines))
    for steps in (0, 1, 5, 3 * lines + 1):
        assert latency.after(around, steps) == np.tile(around, 4)[steps]
    if order == "stride_256" and lines == 64:
        assert around[:3].tolist() == [0, 2, 4]


def test_a_host_that_cannot_store_into_its_gpu_waives_word_stores():
    gpu = SimpleNamespace(device=SimpleNamespace(name="a card", host_stores=False, memory_bytes=1 << 30))
    axes = probes.find("round_trip").assignment({"transport": "word_store"})
    with pytest.raises(WaivedError, match="the host cannot store into the memory of a card"):
        round_trips.round_trip(gpu, axes, [], SimpleNamespace(seed=1))


def planted(near: int, far: int) -> tuple[np.ndarray, np.ndarray]:
    """Latencies of lines in two partitions, mixed, each with a spread over its slices; and which are near."""
    draw = np.random.default_rng(near)
    mixed = draw.permutation(np.repeat([True, False], [near, far]))
    return np.where(mixed, 210, 410) + draw.normal(0, 15, near + far), mixed


@pytest.mark.parametrize(("near", "far"), [(1000, 1000), (300, 1700), (1024, 1024)])
def test_lines_of_two_partitions_are_told_apart(near, far):
    latencies, wanted = planted(near, far)
    assert np.array_equal(l2.near_lines(latencies), wanted)


def test_lines_of_one_partition_are_all_near():
    draw = np.random.default_rng(1)
    for latencies in (draw.normal(250, 20, 2048), draw.uniform(200, 300, 2048), np.full(64, 250.0), np.array([1.0])):
        assert l2.near_lines(latencies).all()
    few_far, _ = planted(1990, 10)  # such as lines that an interrupt hit
    assert l2.near_lines(few_far).all()


@pytest.mark.parametrize("key", ["sm_load_latency", "sm_pair_bandwidth", "sm_barrier", "sm_atomic"])
def test_a_host_waives_what_only_a_gpu_can_answer(key):
    setting = probes.Setting(cpus=(0,), budget_s=1.0)
    with pytest.raises(WaivedError, match=f"probe {key}: waived: it needs the SMs of a GPU; measure it with --on cuda"):
        probes.measure(key, probes.find(key).assignment({}), setting)


def test_the_summary_of_each_probe_is_in_the_list():
    keys = {entry["key"] for entry in probes.entries()}
    assert {f"probe/{probe.key}" for probe in probes.gpu.PROBES} <= keys
    assert np.unique([entry["summary"] for entry in probes.entries()]).size == len(keys)
