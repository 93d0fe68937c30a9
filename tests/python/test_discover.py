"""`linkwright machines discover`: what the programs and folders of this host say, by stand-ins for them."""

import pytest

import linkwright as lw
from linkwright.formats.discovery import adapters
from linkwright_cases import invoke
from test_host_imports import FOLDER, node


def test_discover_says_what_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke("machines", "discover")
    assert done.status == 2
    for program in ("nvidia-smi", "rocm-smi", "lstopo"):
        assert f"{program}: not installed" in done.err


def test_discover_takes_what_nvidia_smi_says(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in topo) cat {FOLDER}/quad.nvidia.txt;; *) echo "NVIDIA A100-SXM4, Disabled";; esac\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = invoke("machines", "discover", "--name", "node")
    assert (done.status, done.err) == (0, "")
    assert lw.machine(tmp_path / "node.toml").ranks == 4
    program.write_text('#!/bin/sh\necho "NVIDIA A100, Enabled"\n', encoding="utf-8")
    assert "divided (MIG)" in invoke("machines", "discover", "--name", "other").err


def test_ports_that_are_up_state_their_rates(tmp_path):
    for name, rate, state, numa in (
        ("mlx5_0", "400 Gb/sec (4X NDR)", "4: ACTIVE", "0"),
        ("mlx5_10", "200 Gb/sec (4X HDR)", "4: ACTIVE", "1"),
        ("mlx5_2", "400 Gb/sec (4X NDR)", "1: DOWN", "1"),
        ("mlx5_3", "garbage", "4: ACTIVE", "x"),
    ):
        port = tmp_path / name / "ports" / "1"
        port.mkdir(parents=True)
        (tmp_path / name / "device").mkdir()
        (port / "rate").write_text(rate + "\n", encoding="utf-8")
        (port / "state").write_text(state + "\n", encoding="utf-8")
        (tmp_path / name / "device" / "numa_node").write_text(numa + "\n", encoding="utf-8")
    found = adapters.found(tmp_path)
    assert found == [adapters.Adapter("mlx5_0", 400_000, 0), adapters.Adapter("mlx5_10", 200_000, 1)]
    assert adapters.found(tmp_path / "none") == []
    # rocm-smi names no ports, so the node gets all of them; nvidia-smi names them without their rates.
    bare = node("line.rocm.txt", "MI250X")
    adapters.add(bare, found)
    assert [(nic.name, nic.mbps) for nic in bare.nics] == [("mlx5_0", 400_000), ("mlx5_10", 200_000)]
    assert [bare.tree[f"NIC {i}"][0] for i in (0, 1)] == ["CPU 0", "CPU 1"]
    named = node("quad.nvidia.txt", "A100")
    adapters.add(named, found)
    assert [(nic.name, nic.mbps) for nic in named.nics] == [("mlx5_0", 400_000), ("hsn1", None)]


def test_discover_refuses_gpus_of_several_kinds(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in topo) cat {FOLDER}/quad.nvidia.txt;; *) echo "NVIDIA A100, Disabled"; '
        'echo "NVIDIA H100, Disabled";; esac\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done = invoke("machines", "discover")
    assert (done.status, "GPUs of several kinds, NVIDIA A100, NVIDIA H100" in done.err) == (2, True)


def test_discover_reads_lstopo_without_a_display(tmp_path, monkeypatch):
    program = tmp_path / "lstopo-no-graphics"
    program.write_text(f"#!/bin/sh\n/bin/cat {FOLDER}/bridged.hwloc.xml\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke("machines", "discover")
    assert done.status == 0, done.err
    assert lw.machine(tmp_path / "here.toml").ranks == 3


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'No devices were found' >&2; exit 6", "nvidia-smi topo -m: status 6: No devices were found\n"),
        ("exit 9", "nvidia-smi topo -m: status 9\n"),
        (r"printf '\377\376 GPU0'", "has no line that begins with GPU0 GPU1"),
        ("", "nvidia-smi of this host: is empty"),
    ],
)
def test_discover_lives_with_programs_that_fail(tmp_path, monkeypatch, script, message):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = invoke("machines", "discover")
    assert (done.status, message in done.err, "Traceback" in done.err) == (2, True, False), done.err
    assert [path.name for path in tmp_path.iterdir()] == ["nvidia-smi"]
