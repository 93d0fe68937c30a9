"""Clusters of network namespaces: their file, their machine, and a planted fault that a real MPI job finds."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from linkwright import _native
from linkwright.base.errors import UsageError
from linkwright.executors.cluster import namespaces, spec
from linkwright.machines import writer
from linkwright_cases import invoke

LAB = """[cluster]
name = "{name}"
shape = "fat_tree"
hosts = 6
port = 80
uplink = 160
width = 2

[faults]
"n3 - leaf 1" = 0.25
"""


def can_make_namespaces():
    """Why this host cannot make any; empty if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    if missing := [tool for tool in ("ip", "tc", "unshare", "sysctl") if shutil.which(tool) is None]:
        return f"not installed: {', '.join(missing)}"
    done = subprocess.run(["ip", "netns", "add", "lw-probe-0"], check=False, capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", "lw-probe-0"], check=False, capture_output=True)
    return done.stderr.strip()


needs_namespaces = pytest.mark.skipif(bool(can_make_namespaces()), reason=f"no namespaces: {can_make_namespaces()}")
needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")


@pytest.mark.parametrize("shape", spec.SHAPES)
def test_every_shape_is_a_machine(shape):
    cluster = spec.shaped("lab", shape, 6, 10e6, 20e6, 2)
    machine = _native.Machine.parse(writer.text(spec.machine(cluster)), "lab.toml")
    assert machine.ranks == len(cluster.hosts)
    found = machine.routes([(0, other) for other in range(1, machine.ranks)])
    assert (found["rate"] > 0).all()


def test_routes_of_hosts_are_those_of_the_machine():
    cluster = spec.shaped("lab", "ring", 6, 10e6, 20e6, 2)
    machine = _native.Machine.parse(writer.text(spec.machine(cluster)), "lab.toml")
    names = machine.network()["links"]["name"]
    found = machine.routes([(0, 1), (0, 2), (0, 5)])
    for pair, target in enumerate((1, 2, 5)):
        uses = found["link"][found["first"][pair] : found["first"][pair + 1]]
        hop = namespaces._hops(cluster, "n0")[f"n{target}"]
        assert f"n0 -> {hop}" in [names[link] for link in uses]


def test_a_fault_is_of_a_link_a_direction_or_a_host():
    text = LAB.format(name="lab") + '"leaf 0 -> spine" = 0.5\nn5 = 0.4\n'
    cluster = spec.of_text(text, "lab.toml")
    assert cluster.slow == {
        ("n3", "leaf 1"): 0.25, ("leaf 1", "n3"): 0.25, ("leaf 0", "spine"): 0.5,
        ("n5", "leaf 2"): 0.4, ("leaf 2", "n5"): 0.4,
    }  # fmt: skip
    assert cluster.rate("n3", "leaf 1") == pytest.approx(2.5e6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("hosts = 6", "hosts = 1"), "hosts"),
        (("fat_tree", "mesh"), "mesh"),
        (('"n3 - leaf 1"', '"n3 - leaf 9"'), "n3 - leaf 9"),
        (("0.25", "1.5"), "a share of a rate"),
        (('"lab"', '"Lab; rm -rf"'), "a name of up to 8"),
        (("width = 2", "wide = 2"), "wide"),
    ],
)
def test_a_wrong_file_is_refused(change, said):
    with pytest.raises(UsageError, match=said):
        spec.of_text(LAB.format(name="lab").replace(*change), "lab.toml")


def test_without_root_it_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "lab.toml").write_text(LAB.format(name="lab"))
    done = invoke("cluster", "up", str(tmp_path / "lab.toml"), "--", "true")
    assert done.status == 2
    assert "need root" in done.err


@needs_namespaces
def test_a_command_runs_on_its_host_and_nothing_is_left(tmp_path):
    (tmp_path / "lab.toml").write_text(LAB.format(name="pytesta"))
    done = cli(
        "cluster", "up", str(tmp_path / "lab.toml"), "--", "sh", "-c", "hostname; cat $LINKWRIGHT_CLUSTER/hosts; exit 7"
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.split()[:3] == ["n0", "n0", "slots=1"]
    assert namespaces.spaces("pytesta") == []
    assert not namespaces._folder("pytesta").exists()


@needs_namespaces
def test_what_a_kill_leaves_is_removed(tmp_path):
    (tmp_path / "lab.toml").write_text(LAB.format(name="pytestb"))
    words = [sys.executable, "-m", "linkwright", "cluster", "up", str(tmp_path / "lab.toml"), "--", "sleep", "100"]
    child = subprocess.Popen(words)
    for _ in range(300):
        if any(namespaces._pids(space) for space in namespaces.spaces("pytestb")):
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert len(namespaces.spaces("pytestb")) == 10  # six hosts, three leaves, a spine
    done = cli("cluster", "down", "pytestb")
    assert "removed 10 namespaces" in done.stdout
    assert namespaces.spaces("pytestb") == []


@needs_namespaces
@needs_mpi
def test_a_planted_fault_is_named_by_a_real_job(tmp_path):
    pytest.importorskip("mpi4py")
    lab, machine = (tmp_path / f"{name}.toml" for name in ("lab", "machine"))
    lab.write_text(LAB.format(name="pytestc"))
    machine.write_text(cli("cluster", "describe", str(lab)).stdout)
    done = cli(
        "cluster", "up", str(lab), "--", "mpirun", "-np", "6", "--map-by", "node", sys.executable, "-m", "linkwright",
        "locate", "--on", str(machine), "--run", "--noise", "8%", "--log", str(tmp_path / "r.jsonl"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = next(line for line in done.stdout.splitlines() if line.startswith(("found", "likely")))
    assert "n3" in found, done.stdout
    again = cli("locate", "--on", str(machine), "--noise", "8%", "--results", str(tmp_path / "r.jsonl"))
    assert found in again.stdout  # the results say the same when they are read again


def cli(*words):
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "linkwright", *words], check=False, capture_output=True, text=True, timeout=300
    )
