"""Training steps: by hand on two devices, properties, shipped networks, and what users get wrong."""

import json
import re
from pathlib import Path

import pytest

from linkwright import _native
from linkwright.advise import predict
from linkwright.advise.predict.training import Wanted, training
from linkwright.advise.predict.training.compute import from_rates
from linkwright.advise.predict.training.gradients import buckets
from linkwright.advise.predict.training.lead import verdict
from linkwright.advise.predict.training.step import Choices
from linkwright.advise.predict.training.workload import read
from linkwright.base import errors, registry
from linkwright.cli.values import SHARE
from linkwright.machines import load
from linkwright.show import shown
from linkwright.show.report import forecast
from linkwright.show.report.model import Plot
from linkwright_cases import invoke

ROOT = Path(__file__).parent.parent.parent
NODES = "dgx1-p100,gx8-p100"

# Two devices on a wire of RATE GB/s with a start-up of 1 us, host memory at 2 GB/s, 1 TFlop/s and 1 MB each.
MACHINE = """
[machine]
name = "pair-RATE"
summary = "two devices"
description = "For tests."
format = 1
sources = ["by definition"]
[[level]]
name = "GPU"
count = 2
source = "by definition"
[endpoints]
count = 2
name = "GPU {i}"
source = "by definition"
capacity = { value = 1, unit = "MB", status = "assumed", source = "by definition" }
[[endpoints.memory]]
name = "host {i}"
count = 1
source = "by definition"
[fabric]
kind = "flow"
switches = []
[fabric.links.wire]
edges = ["GPU 0 - GPU 1"]
source = "by definition"
bandwidth = { value = RATE, unit = "GB/s", status = "assumed", source = "by definition" }
[fabric.links.bus]
edges = ["host 0 - GPU 0", "host 0 - GPU 1"]
source = "by definition"
bandwidth = { value = 2, unit = "GB/s", status = "assumed", source = "by definition" }
[fabric.transport.peer]
links = ["wire"]
ends = "ranks"
start = { value = 1, unit = "us", status = "assumed", source = "by definition" }
[fabric.transport.host]
links = ["bus"]
ends = "memory"
start = { value = 1, unit = "us", status = "assumed", source = "by definition" }
[path.put]
summary = "adds while it writes"
fused_combine = true
[facts]
clock = { value = 1, unit = "GHz", status = "assumed", source = "by definition" }
cores = { value = 500, unit = "count", status = "assumed", source = "by definition" }
"""

# Two layers of 1 MFlop and 2000 B of gradients; at half the peak, a sample takes 3 x 2e6 / 0.5e12 s = 12 us.
APP = """
[app]
format = 1
kind = "training"
name = "two"
sample = 6000
batches = [4]
gpus = [2]
[[layer]]
name = "layer"
times = 2
flops = 1e6
activations = 15000
parameters = 500
"""


def pair(rate="1", cores="500"):
    return _native.Machine.parse(MACHINE.replace("RATE", rate).replace("value = 500", f"value = {cores}"), "pair.toml")


def trained(machines=None, text=APP, **asked):
    how = Wanted(**{key: asked.pop(key) for key in tuple(asked) if key in Wanted.__dataclass_fields__})
    how = Wanted(**vars(how) | {"choices": Choices(**asked)})
    found = predict.parse(text, "two.toml")
    return training(found.document, found.head, machines or [pair()], how)


def step(machine=None, **asked):
    (found,) = trained([machine or pair()], **asked).steps.values()
    return found[0]


def shipped(name, depth=None):
    found = predict.read(registry.workload_path(name))
    return read(found.document, found.head, depth)


def test_a_step_by_hand():
    # Two samples each: 24 us. Ring of two: 2 x (1 us + 2000 B / 1 GB/s) = 6 us. Input: 1 us + 12000 B / 2 GB/s = 7 us.
    found = step()
    assert found.time_ns == pytest.approx(30_000)
    assert (found.low_ns, found.high_ns) == pytest.approx((16_000 + 6_000, 48_000 + 6_000))
    assert found.causes_ns["compute"] == pytest.approx(24_000)
    assert found.causes_ns["input"] == 0
    assert found.images == 2
    assert found.allreduce_ns == pytest.approx(6_000)
    assert step(input="serial").time_ns == pytest.approx(37_000)
    assert step(gpus=[1]).time_ns == pytest.approx(48_000)
    # Prefetched input shows where it is the longest: at 100 % of a peak of 6e12 two samples take 2 us.
    fast = step(pair(cores="3000"), efficiency=1.0, text=APP.replace("6000", "36000"))
    assert fast.time_ns == pytest.approx(1_000 + 36_000)
    assert sum(fast.causes_ns.values()) == pytest.approx(fast.time_ns)


def test_buckets_by_hand():
    # A bucket takes 2 x (1 us + 1 us). Forward until 8 us, the last layer's gradients at 16, the first one's at 24.
    assert step(bucket_bytes=2000).time_ns == pytest.approx(24_000 + 4_000)
    assert step(bucket_bytes=2000, overlap=False).time_ns == pytest.approx(24_000 + 2 * 4_000)
    # On a slow wire the second waits for the first: 16 + 2 x 2 x (1 + 10) us.
    assert step(pair("0.1"), bucket_bytes=2000).time_ns == pytest.approx(16_000 + 44_000)
    # A bucket takes whole layers.
    layers = read(*(lambda o: (o.document, o.head))(predict.parse(APP, "two.toml"))).layers
    assert buckets(layers, 2001) == buckets(layers, None) == [(4000, 1.0)]


def test_layers_without_operations_share_the_backward_pass():
    bare = APP.replace("flops = 1e6\n", "")
    # The same 24 us, from a rate; the last of two layers is ready after half of the backward pass.
    assert step(text=bare, rate="83333.333333333", bucket_bytes=2000).time_ns == pytest.approx(28_000)
    with pytest.raises(errors.UsageError, match="no layer has `flops`; add them, or give --rate"):
        step(text=bare)


def test_a_late_rank_by_hand():
    # 10 % of 24 us, and 5 us.
    found = step(imbalance=0.1, skew_ns=5_000)
    assert found.time_ns == pytest.approx(30_000 + 2_400 + 5_000)
    assert found.causes_ns["late rank"] == pytest.approx(7_400)
    assert step(imbalance=0.0, skew_ns=0.0) == step()
    assert step(imbalance=0.5, gpus=[1]) == step(gpus=[1])


def test_the_lead_by_hand():
    # At half the rate the ring takes 2 x (1 + 4) = 10 us: steps of 30 and 34 us.
    made = trained([pair(), pair("0.5")], imbalance=0.1)
    (lead,) = made.leads
    assert lead.lead == pytest.approx(36.4 / 32.4 - 1)
    assert lead.late == pytest.approx(
        {"nobody": 34 / 30 - 1, "pair-1": 34 / 32.4 - 1, "pair-0.5": 36.4 / 30 - 1, "both": 36.4 / 32.4 - 1}
    )
    (lead,) = trained([pair(), pair("0.5")]).leads
    assert (lead.communication, lead.allreduce) == pytest.approx((10 / 34, 10 / 6 - 1))
    assert lead.simple == pytest.approx(10 / 34 * 4 / 6)
    # With the share of the first machine the simple model is exact.
    assert lead.lead == pytest.approx(6 / 30 * lead.allreduce)
    assert lead.low <= lead.lead <= lead.high
    assert lead.leader == "pair-1"


def test_weak_scaling_keeps_the_batch_of_a_device():
    found = step(scaling="weak", batches=[2])
    assert (found.batch, found.images) == (4, 2)
    assert found.time_ns == pytest.approx(step().time_ns)


def test_rates_are_lines_through_what_was_measured():
    # 16 samples in 0.1 s, 32 in 0.15 s, 64 in 0.4 s.
    time_ns = from_rates("16:160,32:213.3333333333,64:160").time_ns
    assert time_ns(24) == pytest.approx(0.125e9)
    assert time_ns(48) == pytest.approx(0.275e9)
    assert time_ns(96) == pytest.approx(0.65e9)
    assert time_ns(8) == pytest.approx(0.075e9)
    assert from_rates("250").time_ns(50) == pytest.approx(0.2e9)
    found = step(rate="83333.333333333")
    assert found.time_ns == found.low_ns == found.high_ns == pytest.approx(30_000)


def test_rings_as_nccl_builds_them():
    dgx1, gx8 = (load(name) for name in NODES.split(","))
    app = registry.workload_path("alexnet").read_text(encoding="utf-8")

    def made(machine, algorithm):
        return step(machine, text=app, batches=[256], gpus=[8], algorithm=algorithm)

    # Four rings over NVLink, both used twice, where one ring in index order has staged hops.
    many, one = made(dgx1, "nccl-2.3.5"), made(dgx1, "nccl-1.3.4")
    assert many.choice == "nccl-2.3.5 (8 rings, flags)"
    assert one.choice == "nccl-1.3.4 (1 ring, flags)"
    assert many.allreduce_ns < 0.2 * one.allreduce_ns
    assert made(gx8, "nccl-2.3.5").allreduce_ns == pytest.approx(made(gx8, "nccl-1.3.4").allreduce_ns, rel=0.02)
    assert made(dgx1, "best").allreduce_ns <= made(dgx1, "ring").allreduce_ns


@pytest.mark.parametrize("choices", [{}, {"bucket_bytes": 2000}, {"imbalance": 0.2}, {"input": "serial"}])
def test_more_bandwidth_is_never_slower(choices):
    times = [step(pair(rate), **choices).time_ns for rate in ("0.1", "0.3", "1", "3", "10")]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("network", ["alexnet", "cifarnet", "googlenet", "resnet"])
def test_overlap_is_never_slower_and_the_late_never_faster(network):
    app = registry.workload_path(network).read_text(encoding="utf-8")
    machine = load("dgx1-p100")

    def times(**how):
        (found,) = trained([machine], app, batches=[64], gpus=[2, 8], **how).steps.values()
        return [one.time_ns for one in found]

    for bucket in (100_000, 1_000_000):
        apart = times(bucket_bytes=bucket, overlap=False)
        beside = times(bucket_bytes=bucket)
        late = times(bucket_bytes=bucket, imbalance=0.05)
        assert all(a <= b * (1 + 1e-9) for a, b in zip(beside, apart, strict=True))
        assert all(a <= b * (1 + 1e-9) for a, b in zip(beside, late, strict=True))


# x -> activations, parameters, intensity at batches 16, 32, 64: the table of the paper.
RESNET = {
    1: (2_359_337, 121_068, (311.8, 623.6, 1247.2)),
    2: (3_563_561, 167_279, (340.8, 681.7, 1363.4)),
    4: (5_972_009, 259_701, (367.9, 735.9, 1471.7)),
    8: (10_788_905, 444_545, (388.3, 776.6, 1553.3)),
    16: (20_422_697, 814_233, (401.3, 802.6, 1605.3)),
    32: (39_690_281, 1_553_609, (408.8, 817.5, 1635.0)),
}


@pytest.mark.parametrize("depth", RESNET)
def test_resnet_as_in_the_table(depth):
    found = shipped("resnet", depth)
    activations, parameters, intensities = RESNET[depth]
    assert (found.activations, found.parameters) == (activations, parameters)
    assert found.gradient_bytes == 4 * parameters
    assert tuple(round(found.intensity(batch), 1) for batch in (16, 32, 64)) == intensities


def test_other_networks_as_printed():
    alexnet, googlenet = shipped("alexnet"), shipped("googlenet")
    assert (alexnet.activations, alexnet.parameters, alexnet.gradient_bytes) == (1_400_000, 60_000_000, 240_000_000)
    assert (googlenet.activations, googlenet.parameters) == (10_800_000, 5_500_000)
    assert [round(alexnet.intensity(batch), 2) for batch in (256, 512)] == [5.97, 11.95]
    assert [round(googlenet.intensity(batch), 1) for batch in (256, 512)] == [502.7, 1005.4]
    assert shipped("cifarnet").parameters == 145_578


@pytest.mark.parametrize("name", registry.keys("workloads"))
def test_every_shipped_number_has_a_source(name):
    text = registry.workload_path(name).read_text(encoding="utf-8")
    for line in re.findall(r"^(?:flops|activations|parameters|sample) = .*$", text, re.MULTILINE):
        assert re.search(r'status = "\w+", source = ".+"', line), line


def test_the_example_of_the_formats_reads():
    text = re.search(r'```app\n(\[app\]\nformat = 1\nkind = "training".*?)```', FORMATS, re.DOTALL)[1]
    made = trained([load("dgx1-p100")], text)
    assert [one.gpus for one in made.steps["dgx1-p100"]] == [1, 2, 4, 8] * 2
    assert made.workload.name == "digits/12"
    assert len(made.workload.layers) == 14


FORMATS = (ROOT / "docs/formats.md").read_text(encoding="utf-8")


def test_json_has_all_steps_and_leads():
    found = json.loads(invoke("predict", "resnet", "--depth", "2", "--on", NODES, "--batch", "16", "--json").out)
    assert len(found["steps"]) == 8
    assert len(found["leads"]) == 4
    for one in found["steps"]:
        assert one["step_ns"] == pytest.approx(sum(one["causes_ns"].values()))
        assert one["low_ns"] <= one["step_ns"] <= one["high_ns"]
    assert found["calibrated"] is False


def test_what_fits_nowhere_says_so():
    result = invoke("predict", "googlenet", "--on", "dgx1-p100", "--batch", "512", "--gpus", "1")
    assert result.status == 1
    # 4 B x 10.8 M x 512
    assert "too large: 22.1 GB of 16 GB" in result.out
    assert "fits on none of these: use more devices" in result.out
    result = invoke("predict", "googlenet", "--on", NODES, "--batch", "512", "--gpus", "1", "--json")
    assert result.status == 1
    timed = [(one["fits"], one["step_ns"], one["steps_per_s"]) for one in json.loads(result.out)["steps"]]
    assert timed == [(False, None, None)] * 2


def test_large_numbers_are_written_out():
    result = invoke("predict", "alexnet", "--on", "dgx1-p100", "--batch", "1000000", "--gpus", "2")
    assert "too large: 2.8 TB of 16 GB" in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cifarnet", "--on", "dgx1-p100", "--gpus", "9"], "9 GPUs: dgx1-p100 has 8 GPUs; give another --gpus"),
        (["cifarnet", "--on", "loggp"], "its file states no peak"),
        (["cifarnet", "--on", "dgx1-p100", "--skew", "5"], "duration `5` has no unit; write `5ns`, `5us`"),
        (["cifarnet", "--on", "torus-2d", "--rate", "5"], "is a grid of any size"),
        (
            ["cifarnet", "--on", "gx8-p100", "--batch", "4", "--gpus", "8"],
            "8 GPUs: fewer samples than GPUs; give another",
        ),
        (["cifarnet", "--on", "gx8-p100", "--report", "x.htm"], "choose a name that ends in .html"),
        (["cifarnet", "--on", "gx8-p100,", "--batch", "4"], "contains an empty name"),
        (["cifarnet", "--on", "gx8-p100,gx8-p100"], "two machines have the same name"),
        (["cifarnet", "--on", "gx8-p100", "--rate", "0"], "rate `0` is not a rate"),
        (["cifarnet", "--on", "gx8-p100", "--rate", "50:9,9:1"], "50 samples would take"),
        (["cifarnet", "--on", "gx8-p100", "--rate", "5", "--peak", "1e12"], "give one or the other"),
        (["cifarnet", "--on", "gx8-p100", "--peak", "1e12"], "but all state one here: gx8-p100 8.795 TFlop/s (single"),
        (["cifarnet", "--on", "gx8-p100", "--efficiency", "120%"], "at most 100 %"),
        (
            ["cifarnet", "--on", "gx8-p100", "--efficiency", "40"],
            "`40` could be 40 % or 4000 %; write `40%`",
        ),
        (["cifarnet", "--on", "gx8-p100", "--efficiency", "1"], "`1` could be 1 % or 100 %; write `1%` or `100%`"),
        (["cifarnet", "--on", "gx8-p100", "--imbalance", "5"], "`5` could be 5 % or 500 %; write `5%` or `500%`"),
        (["cifarnet", "--on", "gx8-p100", "--imbalance", "-5%"], "is not a share"),
        (["cifarnet", "--on", "gx8-p100", "--no-overlap"], "add --bucket SIZE"),
        (["cifarnet", "--on", "gx8-p100", "--depth", "3"], "has a fixed depth"),
        (["cifarnet", "--on", "gx8-p100", "--algorithm", "rng"], "did you mean `ring`?"),
        (["cifarnet", "--on", "gx8-p100", "-a", "nccl-2"], "did you mean `nccl-2.3.5`"),
        (["cifarnet", "--on", "gx8-p100", "-a", "nccl-2.3.5", "--path", "ring"], "omit --path ring"),
        (
            ["cifarnet", "--on", "knl-omnipath", "--rate", "5", "-a", "nccl-2.3.5"],
            "only a machine whose `[library]` is nccl",
        ),
        (["resnet", "--on", "gx8-p100", "--depth", "33"], "depth 33: resnet has 1 to 32"),
        (["alexnt", "--on", "gx8-p100"], "did you mean `alexnet`"),
        (
            ["examples/relaxation.toml", "--on", "wormhole-n150", "--gpus", "4"],
            "--gpus applies to programs of kind training",
        ),
    ],
)
def test_bad_wishes_name_the_cure(words, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = invoke("predict", *words)
    assert result.status == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("times = 2", "tims = 2", "two.toml: layer[0]: unknown key `tims`; did you mean `times`?"),
        ("times = 2", 'times = "depth"', "times is `depth`, and [app] has no `depth`"),
        ("batches = [4]", "batches = [4]\nepochs = 2", "gives `epochs` without `dataset`"),
        ("batches = [4]", 'batches = [4]\nprecision = "fp8"', "precision `fp8`"),
        ("parameters = 500", "parameters = 0", "so there is nothing to train"),
        ("parameters = 500", "parameters = 0.5", "write a whole number"),
        ("flops = 1e6", "flops = { value = 1, low = 2 }", "are not in ascending order"),
        ("batches = [4]", "batches = [0]", "batches[0] is 0; write a whole number, at least 1"),
        ("batches = [4]\n", "", "no batch size is given"),
        ("parameters = 500", 'parameters = 500\ngradient = "9"', "whole numbers of 4 B"),
    ],
)
def test_bad_files_name_the_cure(old, new, message):
    with pytest.raises(errors.UsageError, match=re.escape(message)):
        trained(text=APP.replace(old, new))


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("5 %", 0.05), ("0", 0.0), ("250%", 2.5)])
def test_a_share_is_a_percentage_or_below_one(text, share):
    assert SHARE.convert(text, None, None) == pytest.approx(share)


def test_a_given_peak_serves_the_machines_that_state_none():
    without = _native.Machine.parse(MACHINE.replace("RATE", "2").split("[facts]")[0], "pair-2.toml")
    steps = trained([pair(), without], peak=2e12).steps
    assert steps["pair-1"][0].causes_ns["compute"] == pytest.approx(24_000)
    assert steps["pair-2"][0].causes_ns["compute"] == pytest.approx(12_000)


def test_a_given_peak_serves_a_precision_that_no_file_states():
    (found,) = trained([tensor()], precision="bf16", peak=4e12).steps["pair-1"]
    assert found.causes_ns["compute"] == pytest.approx(6_000)
    with pytest.raises(errors.UsageError, match=r"pair-1 8 TFlop/s \(bf16 on tensor cores\); omit it"):
        trained([tensor(tensor_bf16=8)], precision="bf16", peak=4e12)


# --- peaks by precision -----------------------------------------------------------------------------


def tensor(**facts):
    """The pair, 1 TFlop/s by its cores, with further peaks in TFlop/s."""
    lines = "".join(
        f'{key} = {{ value = {value}, unit = "TFLOP/s", status = "assumed", source = "by definition" }}\n'
        for key, value in facts.items()
    )
    return _native.Machine.parse(MACHINE.replace("RATE", "1") + lines, "pair.toml")


@pytest.mark.parametrize(
    ("facts", "precision", "tflops", "words"),
    [
        ({"tensor_bf16": 8}, "bf16", 8, "8 TFlop/s (bf16 on tensor cores)"),
        ({"tensor_bf16": 8, "vector_half": 2}, "half", 2, "2 TFlop/s (half on vector units)"),
        ({"tensor_tf32": 4}, "tf32", 4, "4 TFlop/s (tf32 on tensor cores)"),
        ({"tensor_bf16": 8}, "single", 1, "1 TFlop/s (single on vector units)"),
        ({"vector_single": 3}, "single", 3, "3 TFlop/s (single on vector units)"),
        ({}, "half", 1, "1 TFlop/s (single on vector units)"),
    ],
)
def test_products_use_the_unit_of_their_precision(facts, precision, tflops, words):
    made = trained([tensor(**facts)], precision=precision)
    ((found,),) = made.steps.values()
    assert found.causes_ns["compute"] == pytest.approx(24_000 / tflops)
    assert words in made.basis["pair-1"]


def test_the_reader_learns_of_idle_tensor_cores_and_of_a_missing_rate():
    idle = trained([tensor(tensor_bf16=8, tensor_half=8)]).notes[0]
    assert idle == "pair-1: single products leave its tensor cores idle; those support --precision half or bf16"
    missing = trained([tensor()], precision="bf16").notes[0]
    assert missing == "pair-1: its file states no rate for bf16 (fact `tensor_bf16`), so products run as single"
    assert not any("products" in note for note in trained([tensor()], precision="single").notes)


def test_a_peak_in_another_unit_is_refused():
    fact = 'tensor_half = { value = 1, unit = "GB/s", status = "assumed", source = "by definition" }\n'
    machine = _native.Machine.parse(MACHINE.replace("RATE", "1") + fact, "pair.toml")
    with pytest.raises(errors.UsageError, match=r"facts.tensor_half is in GB/s; state it in GFLOP/s"):
        trained([machine], precision="half")


def test_half_needs_half_the_memory_unless_it_runs_as_single():
    assert step(tensor(tensor_half=8), precision="half").needed_bytes == 2 * 2 * 30_000
    assert step(tensor(), precision="half").needed_bytes == step().needed_bytes == 2 * 4 * 30_000


def test_figures_of_p100_are_those_without_tensor_cores():
    # 3,584 cores x 2 x 1.227 GHz
    (basis,) = trained([load("dgx1-p100")], shipped_text("cifarnet")).basis.values()
    assert "peak 8.795 TFlop/s (single on vector units)" in basis


def shipped_text(name):
    return registry.workload_path(name).read_text(encoding="utf-8")


# --- what a machine cannot do -----------------------------------------------------------------------


def test_a_count_that_one_machine_lacks_is_a_row_of_its_own():
    small, large = tensor(), _native.Machine.parse(open_sized(), "wide.toml")
    made = trained([small, large], gpus=[2, 4])
    assert [(one.gpus, one.time_ns is None, one.why) for one in made.steps["pair-1"]] == [
        (2, False, ""),
        (4, True, "pair-1 has 2 GPUs"),
    ]
    assert [one.time_ns is None for one in made.steps["wide"]] == [False, False]
    assert [lead.why for lead in made.leads] == ["", "pair-1 has 2 GPUs"]
    assert made.fits


def open_sized():
    """A machine of any number of devices that compute like those of the pair."""
    numbers = {"latency": (1, "us"), "gap": (0.1, "us"), "bandwidth": (1, "GB/s")}
    lines = "".join(
        f'{key} = {{ value = {value}, unit = "{unit}", status = "assumed", source = "by definition" }}\n'
        for key, (value, unit) in numbers.items()
    )
    head = (
        MACHINE.partition("[[endpoints.memory]]")[0].replace("count = 2", 'count = "any"').replace("pair-RATE", "wide")
    )
    tail = MACHINE.partition("[path.put]")[2].replace("fused_combine = true", "fused_combine = true\n" + START)
    return f'{head}[fabric]\nkind = "loggp"\n{lines}[path.put]{tail}'


START = 'start = { value = 1, unit = "us", status = "assumed", source = "by definition" }'


def test_a_batch_too_small_for_a_count_is_a_row_of_its_own(tmp_path):
    result = invoke("predict", "cifarnet", "--on", "gx8-p100", "--batch", "4")
    assert result.status == 0
    assert "    4     8  fewer samples than GPUs\n" in result.out


def test_what_an_algorithm_refuses_on_one_machine_is_a_row():
    asked = ("--rate", "500", "--batch", "64", "--gpus", "8", "-a", "nccl-2.3.5")
    result = invoke("predict", "cifarnet", "--on", "dgx1-p100,knl-omnipath", *asked)
    assert result.status == 1
    assert "only a machine whose `[library]` is nccl" in " ".join(result.out.split())
    assert "gradients by nccl-2.3.5" in result.out


# --- how it is told ---------------------------------------------------------------------------------


def test_the_faster_machine_is_named_with_its_ratio():
    # Steps of 30 and 34 us: 6 and 10 us of them in messages.
    made = trained([pair(), pair("0.5")])
    assert verdict(made.leads) == (
        "pair-1 is 1.13 x faster (batch 4 on 2 GPUs), with 20.0 % of the step in messages; pair-0.5 has 29.4 %"
    )
    assert verdict(trained([pair("0.5"), pair()]).leads) == verdict(made.leads)
    assert verdict(trained([pair(), pair("0.9999")]).leads) == "both take equally long, within 0.5 %"


def test_samples_and_time_to_train():
    # 4 samples in 30 us; 401 samples are 101 steps.
    found = step()
    assert found.samples_per_s == pytest.approx(4 / 30e-6)
    assert found.training_s(401) == pytest.approx(101 * 30e-6)
    stated = APP.replace("sample = 6000", "sample = 6000\ndataset = 40\nepochs = 3")
    assert trained(text=stated).workload.samples == 120
    assert trained(text=stated, samples=7).workload.samples == 7
    asked = ("predict", "cifarnet", "--on", NODES, "--samples", "1000000", "--batch", "100", "--gpus", "1")
    assert "to train" in invoke(*asked).out
    one = json.loads(invoke(*asked, "--json").out)["steps"][0]
    assert one["training_s"] == pytest.approx(10_000 * one["step_ns"] / 1e9)
    assert one["samples_per_s"] == pytest.approx(100 / one["step_ns"] * 1e9)


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (90, "1.5 min"), (7200, "2 h"), (3 * 86400, "3 days")])
def test_long_times_are_told_in_their_own_units(seconds, text):
    assert shown.duration(seconds) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [((5.04e6, 212.7e6), "5.04 to 213 ms"), ((812.0, 3.1e3), "0.812 to 3.1 us"), ((5, 3.1e6), "5 ns to 3.1 ms")],
)
def test_a_span_has_one_unit_where_that_leaves_digits(ends, text):
    assert shown.span(*ends) == text


@pytest.mark.parametrize("more", [[], ["--samples", "1000000"], ["--imbalance", "2%"]])
def test_lines_fit_into_80_columns(more):
    result = invoke("predict", "resnet", "--depth", "2", "--batch", "16,64", "--on", NODES, *more)
    assert result.status == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert "intensity/GPU" in invoke("predict", "resnet", "--depth", "2", "--batch", "16", "--on", NODES, "--wide").out


def test_the_page_divides_the_step_and_says_what_it_assumes(tmp_path):
    page = tmp_path / "f.html"
    asked = ("predict", "resnet", "--depth", "8", "--batch", "16", "--gpus", "1,8,16", "--samples", "1000000")
    result = invoke(*asked, "--on", NODES, "--report", str(page))
    assert result.status == 0
    assert result.out.endswith(f"page: {page}\n")
    text = page.read_text(encoding="utf-8")
    for words in ("Exposed messages", "Waiting", "Time to train", "gx8-p100 has", "Assumptions", "Left out: "):
        assert words in text
    made = trained([load(name) for name in NODES.split(",")], shipped_text("resnet"), batches=[16], gpus=[1, 8])
    built = forecast.training(made)
    (where,) = (section for section in built.sections if section.title.startswith("Where"))
    for table in where.items:
        for row in table.rows:
            assert sum(cell.share for cell in row[3:]) == pytest.approx(1.0)
    (plot,) = (item for item in built.sections[0].items if isinstance(item, Plot))
    assert [(curve.name, curve.kind) for curve in plot.curves] == [
        ("dgx1-p100, batch 16", "model"),
        ("gx8-p100, batch 16", "model"),
        ("compute alone", "limit"),
    ]
