"""Forecasts of programs, and the rules page."""

import json
import re
from pathlib import Path

import pytest

import linkwright as lw
from linkwright.advise import predict
from linkwright.advise.predict import rules
from linkwright.base import errors, registry
from linkwright.machines import load
from linkwright_cases import invoke

ROOT = Path(__file__).parent.parent.parent
HEAD = '[app]\nformat = 1\nkind = "supersteps"\nname = "x"\nendpoints = 4\n'
STEP = '[[superstep]]\nname = "s"\n'


def forecast(text, machine="loggp"):
    return predict.forecast(predict.parse(text, "x.toml"), load(machine))


def test_the_example_of_the_formats_reads():
    text = re.search(r"```app\n(.*?)```", (ROOT / "docs/formats.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    found = forecast(text, "wormhole-n150")
    assert found.endpoints == 64
    assert [part.name for part in found.parts] == ["relax: work", "relax: messages"] + ["report: work"] + [
        "report: messages"
    ] * 2
    # 512 KiB + 8 KiB + what arrives from four neighbours
    assert found.room.needed_bytes == 520 * 1024 + 4 * 1024
    assert sum(found.shares().values()) == pytest.approx(1)


def test_work_is_the_longer_of_arithmetic_and_memory():
    rates = "flops_per_s = 1e9\nbytes_per_s = 1.024e9\n"
    # 3e3 flops take 3 us, 2 KiB take 2 us.
    found = forecast(HEAD + rates + "times = 5\n" + STEP + 'times = 2\nflops = 3e3\nbytes = "2K"\n')
    assert found.time_ns == pytest.approx(10 * 3000)
    assert found.shares() == {"compute": 1.0}
    found = forecast(HEAD + rates + STEP + 'flops = 1e3\nbytes = "2K"\n')
    assert found.time_ns == pytest.approx(2000)
    assert found.shares() == {"memory": 1.0}


def test_the_machine_says_how_fast_work_goes():
    # A product of 2048 x 2048 by 1,216 tiles at the machine's rate; a tile reads 8 KiB by each of six threads at 95 %
    # of 16 B per cycle of 1.6 GHz.
    text = HEAD + STEP + 'flops = 1e9\nprecision = "half"\n'
    rate = 1e9 * 1216 / (forecast(text, "ipu-c2-chip").time_ns / 1e9)
    assert rate == pytest.approx(rules.alone(load("ipu-c2-chip"))["half_flops_per_s"])
    read = forecast(HEAD + STEP + 'bytes = "8K"\n', "ipu-c2-chip")
    assert 8192 / read.time_ns == pytest.approx(0.95 * 16 * 1.6, rel=1e-3)
    assert read.shares() == {"memory": 1.0}


def test_messages_take_what_their_schedule_takes():
    for machine in ("loggp", "wormhole-n150"):
        grid = "grid = [8, 8]\n"
        head = HEAD.replace("endpoints = 4\n", grid)
        text = head + STEP + '[[superstep.message]]\ncollective = "allreduce"\nalgorithm = "ring"\nsize = "64K"\n'
        ring = lw.schedule("allreduce", "ring", ranks=64, size="64K", grid=(8, 8))
        assert forecast(text, machine).time_ns / 1e3 == pytest.approx(lw.simulate(ring, machine).time_us)


def test_a_list_goes_at_once():
    def listed(entries):
        return forecast(HEAD + STEP + f"[[superstep.message]]\nlist = {entries}\n").time_ns

    one = listed('[[0, 1, "4K"]]')
    # Other endpoints do not wait for each other, the same ones do.
    assert listed('[[0, 1, "4K"], [2, 3, "4K"]]') == pytest.approx(one)
    assert listed('[[0, 1, "4K"], [0, 2, "4K"], [0, 3, "6K"]]') > one


def test_the_best_algorithm_is_no_slower_than_any():
    def allreduce(size, more=""):
        message = f'[[superstep.message]]\ncollective = "allreduce"\nsize = "{size}"\n{more}'
        return forecast(HEAD + STEP + message, "loggp")

    for size in ("8", "1M"):
        best = allreduce(size)
        assert best.parts[0].choice.startswith("allreduce/")
        for name in ("ring", "recursive_doubling_latency"):
            assert best.time_ns <= allreduce(size, f'algorithm = "{name}"\n').time_ns


def test_the_best_algorithm_is_among_those_that_fit():
    # 64 tiles of 1,464 KiB: no room for 900 KiB and a receive buffer, which the kernels of exchanges need.
    message = '[[superstep.message]]\ncollective = "allreduce"\nsize = "900K"\n'
    head = HEAD.replace("endpoints = 4\n", "grid = [2, 2]\n") + STEP + message
    found = forecast(head, "wormhole-n150")
    assert "swing" not in found.parts[0].choice
    assert found.time_ns > 0
    with pytest.raises(errors.UnsuitedError, match="receive buffer"):
        forecast(head + 'algorithm = "swing_latency"\n', "wormhole-n150")


def test_more_bytes_or_more_work_never_take_less():
    times = []
    for size in ("8", "512", "8K", "96K"):
        message = f'[[superstep.message]]\npattern = "neighbour"\nsize = "{size}"\n'
        head = HEAD.replace("endpoints = 4", "grid = [8, 8]")
        times.append(forecast(head + STEP + message, "wormhole-n150").time_ns)
    assert times == sorted(times)


def test_what_does_not_fit_has_no_time(tmp_path):
    app = tmp_path / "big.toml"
    head = HEAD.replace("endpoints = 4", "endpoints = 64")
    app.write_text(head + 'memory = "1M"\n' + STEP + 'time = "1us"\nmemory = "464K"\n')
    result = invoke("predict", str(app), "--on", "wormhole-n150")
    assert result.status == 1
    told = " ".join(result.out.split())
    assert "does not fit: needs 1,488.0 KiB at each endpoint (fullest in s) of 1,464.0 KiB" in told
    found = json.loads(invoke("predict", str(app), "--on", "wormhole-n150", "--json").out)
    assert found["fits"] is False
    assert found["time_ns"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[app]\nformat = 2\nkind = "supersteps"\n', "x.toml: app: format is 2; write 1"),
        (HEAD.replace("supersteps", "superstep"), "unknown kind `superstep`; did you mean `supersteps`?"),
        (HEAD + "memry = 1\n" + STEP, "x.toml: app: unknown key `memry`; did you mean `memory`"),
        (HEAD + STEP + "flopz = 1\n", "x.toml: superstep[0]: unknown key `flopz`; did you mean `flops`?"),
        (HEAD + STEP + "flops = 1\n", "add `flops_per_s`"),
        (HEAD + STEP + "flops = true\n", "flops is True; write a finite number"),
        (HEAD + STEP + 'time = "1us"\nflops = 1\n', "one or the other"),
        (HEAD + STEP + 'time = "2"\n', "time: duration `2` has no unit; write `2ns`, `2us`"),
        (HEAD + STEP + '[[superstep.message]]\nsize = "8"\n', "superstep[0].message[0]: names 0 of `pattern`"),
        (HEAD + STEP + '[[superstep.message]]\nlist = [[0, 4, "8"]]\n', "endpoint 4 does not exist"),
        (HEAD + STEP + '[[superstep.message]]\nlist = [[1, 1, "8"]]\n', "goes to its own source"),
        (HEAD + STEP + '[[superstep.message]]\nlist = [[0, 1, "0"]]\n', "list[0][2] is '0'; write a size above 0"),
        (HEAD + STEP + '[[superstep.message]]\npattern = "neighbor"\nsize = "8"\n', "did you mean"),
        (HEAD, "missing key `superstep`; add it"),
        (HEAD + STEP.replace("superstep", "supersteps"), "missing key `superstep`; did you mean it by `supersteps`?"),
    ],
)
def test_bad_programs_name_the_cure(text, message, tmp_path):
    app = tmp_path / "x.toml"
    app.write_text(text)
    result = invoke("predict", str(app), "--on", "loggp")
    assert result.status == 2
    assert message in result.err


def test_machines_stand_side_by_side(tmp_path):
    app = tmp_path / "x.toml"
    message = '[[superstep.message]]\npattern = "neighbour"\nsize = "64K"\n'
    app.write_text(HEAD + STEP + 'time = "5us"\n' + message)
    machines = ("loggp", "crossbar", "wormhole-n150")
    result = invoke("predict", str(app), "--on", ",".join(machines))
    assert result.status == 0, result.err
    alone = [forecast(app.read_text(), name).time_ns for name in machines]
    header, *lines = result.out.partition("side by side")[2].splitlines()[1:]
    assert header.split() == ["part", "loggp", "crossbar", "/", "loggp", "wormhole-n150", "/", "loggp"]
    assert [line.split("  ")[0] for line in lines[:3]] == ["s: work", "s: messages", "in all"]
    found = json.loads(invoke("predict", str(app), "--on", ",".join(machines), "--json").out)
    assert [one["time_ns"] for one in found["forecasts"]] == alone
    assert [lead["lead"] for lead in found["leads"]] == [pytest.approx(time / alone[0] - 1) for time in alone[1:]]
    assert f"{alone[1] / alone[0]:.2f}" in lines[2]
    faster, slower = ("loggp", "crossbar") if alone[0] <= alone[1] else ("crossbar", "loggp")
    ratio = max(alone[:2]) / min(alone[:2])
    assert lines[3].startswith(f"{faster} is {ratio:.2f} x faster than {slower}, with ")


def test_a_page_has_the_parts_of_every_machine(tmp_path):
    app, page = tmp_path / "x.toml", tmp_path / "x.html"
    app.write_text(
        HEAD + 'memory = "1M"\n' + STEP + 'time = "5us"\n[[superstep.message]]\npattern = "neighbour"\nsize = "2M"'
    )
    result = invoke("predict", str(app), "--on", "loggp,wormhole-n150", "--report", str(page))
    assert result.status == 1  # 3 MiB do not fit on a tile
    text = page.read_text(encoding="utf-8")
    for words in ("On loggp", "On wormhole-n150", "s: messages", "which does not fit", "Time and its causes"):
        assert words in text


def test_a_machine_without_room_is_compared_all_the_same(tmp_path):
    app = tmp_path / "x.toml"
    app.write_text(HEAD + 'memory = "1G"\n' + STEP + 'time = "5us"\n')
    result = invoke("predict", str(app), "--on", "loggp,wormhole-n150")
    assert result.status == 1
    assert result.out.splitlines()[-1].split("  ")[0] == "in all"
    assert "does not fit" in result.out.splitlines()[-1]
    found = json.loads(invoke("predict", str(app), "--on", "loggp,wormhole-n150", "--json").out)
    assert found["leads"] == [{"first": "loggp", "second": "wormhole-n150", "lead": None}]


def test_endpoints_must_exist():
    with pytest.raises(errors.FileError, match="endpoints is 65; wormhole-n150 has 64"):
        forecast(HEAD.replace("= 4", "= 65") + STEP, "wormhole-n150")


@pytest.mark.parametrize("machine", registry.keys("machines"))
def test_every_machine_has_rules(machine):
    described = load(machine)
    for level in rules.levels(described):
        assert 0 < level.latency_ns <= level.farthest_latency_ns
        assert level.per_message_ns > 0
        assert level.rate > 0
        assert level.half_size_bytes > 0
    result = invoke("machines", "show", machine, "--rules", "--json")
    assert len(json.loads(result.out)["levels"]) == len(rules.levels(described))


def test_rules_of_loggp_follow_from_its_parameters():
    # L = 1000 ns, o = 200 ns at either side, G = 0.08 ns per byte: a message of 8 B takes o + L + o + 7 G, and
    # blocks its sender for o + 7 G. At n_1/2 the fixed 1400 ns are as long as the bytes.
    (level,) = rules.levels(load("loggp"))
    assert level.latency_ns == pytest.approx(1400.56)
    assert level.per_message_ns == pytest.approx(200.56)
    assert level.rate == pytest.approx(12.5)
    assert level.half_size_bytes == pytest.approx(1400 * 12.5, rel=0.01)


def test_seats_are_refused_by_name():
    """A program states its endpoints; an option that does nothing would be believed."""
    answer = invoke("predict", "alexnet", "--on", "hgx-h100", "--ranks-per-node", "4")
    assert answer.status == 2
    assert "--ranks-per-node: a program states its own endpoints" in answer.err


def test_a_root_of_a_collective_without_one_is_refused():
    message = '[[superstep.message]]\ncollective = "{}"\nsize = "1K"\nroot = 1\n'
    assert forecast(HEAD + STEP + message.format("broadcast"), "loggp").time_ns > 0
    with pytest.raises(errors.FileError, match="`root`: allreduce has no root; omit it"):
        forecast(HEAD + STEP + message.format("allreduce"), "loggp")
