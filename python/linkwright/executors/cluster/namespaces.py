"""Make a cluster of network namespaces, run a command in it, and remove it.

    host, switch   a namespace `lw-NAME-NUMBER`; each passes on packets by routes of its own (`ip_forward`, proxy ARP)
    link           a pair of veth; a token bucket (`tc tbf`) limits what each end sends, so each direction has a rate
    10.77.0.N      the address of host N, on each of its links; routes have the fewest links, the first of equals
    command        runs on host 0, in a group of processes of its own; hosts have names of their own (UTS namespace)

Everything ends with the namespaces: links, routes, rates. `down` ends processes in them and deletes them by their
names, so it also removes what a killed `up` left. Files are in a temporary folder of the same name.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from linkwright.base.errors import ExecError, UsageError
from linkwright.machines import writer

from .spec import LabCluster, machine

_TOOLS = ("ip", "tc", "unshare", "sysctl")
_BURST, _QUEUE = 4_000, "400ms"  # bytes that a link sends at once at least, and how long packets wait for it
_PAUSE_S = 400e-6  # at fast links a burst lasts so long, or timers would limit the rate
_ETC = Path("/etc/netns")  # `ip netns exec` shows its files in place of those of /etc
_LAUNCHER = """#!/bin/sh
# Starts a command on a host of this cluster, as `ssh HOST COMMAND` would: for mpirun.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
at=$(grep -nx "$host" FOLDER/names | cut -d: -f1)
[ "$at" ] || { echo "$host: is no host of this cluster" >&2; exit 1; }
exec ip netns exec "PREFIX$((at - 1))" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
"""


def check() -> None:
    """Refuse where no namespaces can be made.

    Raises:
        UsageError: this is not Linux, not root, or a tool is missing.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        raise UsageError("cluster: network namespaces need root on Linux; run it with sudo")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise UsageError(f"cluster: {', '.join(missing)}: not installed; install iproute2, util-linux and procps")


def prefix(name: str) -> str:
    """What the names of everything that belongs to a cluster begin with."""
    if not re.fullmatch("[a-z][a-z0-9]{0,7}", name):
        raise UsageError(
            f"cluster {name[:40]}: a name has up to 8 small letters and digits; see the file of the cluster"
        )
    return f"lw-{name}-"


def _folder(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"{prefix(name)}files"


def spaces(name: str) -> list[str]:
    """The namespaces of a cluster that exist."""
    begin = re.compile(re.escape(prefix(name)) + r"\d+")
    return [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if begin.fullmatch(line.split()[0])]


def down(name: str) -> int:
    """End the processes of a cluster and delete all that belongs to it; return how many namespaces there were."""
    found = spaces(name)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        inside = [pid for space in found for pid in _pids(space)]
        for pid in inside:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sign)
        for _ in range(20):
            if not any(_pids(space) for space in found):
                break
            time.sleep(0.05)
    for space in found:
        with contextlib.suppress(ExecError):
            _run("ip", "netns", "del", space)
        shutil.rmtree(_ETC / space, ignore_errors=True)
    with contextlib.suppress(OSError):
        _ETC.rmdir()  # only if it is empty
    shutil.rmtree(_folder(name), ignore_errors=True)
    return len(found)


def _pids(space: str) -> list[int]:
    own = os.getpid()
    found = subprocess.run(["ip", "netns", "pids", space], check=False, capture_output=True, text=True).stdout
    return [int(word) for word in found.split() if int(word) != own]


@contextlib.contextmanager
def up(cluster: LabCluster) -> Iterator[Path]:
    """A cluster while it exists; the folder with its `hosts`, `machine.toml` and `launcher`.

    Raises:
        UsageError: the host allows none.
        ExecError: it cannot be made.
    """
    check()
    down(cluster.name)
    try:
        _make(cluster)
        yield _files(cluster)
    finally:
        down(cluster.name)


def _make(cluster: LabCluster) -> None:
    begin = prefix(cluster.name)
    number = {node: at for at, node in enumerate(cluster.nodes)}
    made = [f"netns add {begin}{at}" for at in number.values()]
    tables: list[list[str]] = [["link set lo up"] for _ in number]
    shaped: list[list[str]] = [[] for _ in number]
    port: dict[tuple[str, str], str] = {}
    for at, (_, a, b, _) in enumerate(cluster.links):
        port[a, b], port[b, a] = f"lw{at}a", f"lw{at}b"
        ends = [f"{port[x, y]} netns {begin}{number[x]}" for x, y in ((a, b), (b, a))]
        made.append(f"link add {ends[0]} type veth peer name {ends[1]}")
    for (a, b), device in port.items():
        tables[number[a]] += [f"addr add {address(number[a])}/32 dev {device}", f"link set {device} up"]
        rate = 8 * cluster.rate(a, b)
        # A token bucket sends nothing larger than its burst, so segments stay small enough.
        burst = max(_BURST, int(rate / 8 * _PAUSE_S))
        shaped[number[a]].append(f"qdisc add dev {device} root tbf rate {rate:.0f}bit burst {burst} latency {_QUEUE}")
    for at, node in enumerate(cluster.nodes):
        for target, hop in _hops(cluster, node).items():
            if target in cluster.hosts:
                tables[at].append(f"route add {address(number[target])}/32 dev {port[node, hop]} src {address(at)}")
    _batch(["ip"], made)
    for at in range(len(cluster.nodes)):
        space = f"{begin}{at}"
        _batch(["ip", "-n", space], tables[at])
        _batch(["tc", "-n", space], shaped[at])
        keys = [f"net.ipv4.conf.{name}.{key}" for name in ("all", "default") for key in ("proxy_arp", "forwarding")]
        keys += [f"net.ipv4.conf.{device}.proxy_arp" for (a, _), device in port.items() if number[a] == at]
        off = [f"net.ipv4.conf.{name}.rp_filter=0" for name in ("all", "default")]
        _run("ip", "netns", "exec", space, "sysctl", "-q", "-w", *(f"{key}=1" for key in keys), *off)


def address(number: int) -> str:
    """The address of a node."""
    return f"10.77.{number // 250}.{number % 250 + 1}"


def _hops(cluster: LabCluster, source: str) -> dict[str, str]:
    """The neighbour to which `source` sends what is for each other node, by the fewest links."""
    near: dict[str, list[str]] = {}
    for _, a, b, _ in cluster.links:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    found: dict[str, str] = {}
    border = deque([source])
    while border:
        node = border.popleft()
        for other in near[node]:
            if other != source and other not in found:
                found[other] = found.get(node, other)
                border.append(other)
    return found


def _files(cluster: LabCluster) -> Path:
    """Write the files that a command needs."""
    folder = _folder(cluster.name)
    folder.mkdir(mode=0o700)
    names = [host_name(host) for host in cluster.hosts]
    (folder / "hosts").write_text("".join(f"{name} slots=1\n" for name in names), encoding="utf-8")
    (folder / "machine.toml").write_text(writer.text(machine(cluster)), encoding="utf-8")
    launcher = folder / "launcher"
    text = _LAUNCHER.replace("FOLDER", shlex.quote(str(folder))).replace("PREFIX", prefix(cluster.name))
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o700)
    table = "127.0.0.1 localhost\n" + "".join(f"{address(at)} {name}\n" for at, name in enumerate(names))
    (folder / "names").write_text("\n".join(names) + "\n", encoding="utf-8")
    for at in range(len(names)):
        own = _ETC / f"{prefix(cluster.name)}{at}"
        own.mkdir(parents=True, exist_ok=True)
        (own / "hosts").write_text(table, encoding="utf-8")
    return folder


def host_name(host: str) -> str:
    """The name of a host as a network knows it: `node0port1`."""
    return host.replace(" ", "")


def environment(cluster: LabCluster, folder: Path) -> dict[str, str]:
    """What a command in the cluster gets besides the usual variables; Open MPI uses the launcher and these links."""
    return {
        "LINKWRIGHT_CLUSTER": str(folder),
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_plm_rsh_agent": str(folder / "launcher"),
        "OMPI_MCA_orte_default_hostfile": str(folder / "hosts"),
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/16",
        "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/16",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def command(name: str, at: int, host: str, words: Sequence[str]) -> list[str]:
    """What runs a command on a host."""
    inner = f"hostname {shlex.quote(host_name(host))} && exec {shlex.join(words)}"
    return ["ip", "netns", "exec", f"{prefix(name)}{at}", "unshare", "--uts", "sh", "-c", inner]


def run(cluster: LabCluster, words: Sequence[str], folder: Path, usual: Mapping[str, str]) -> int:
    """Run a command on host 0 and return its exit status."""
    env = {**usual, **environment(cluster, folder)}
    child = subprocess.Popen(command(cluster.name, 0, cluster.hosts[0], words), env=env)
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def _batch(tool: Sequence[str], lines: Sequence[str]) -> None:
    if lines:
        _run(*tool, "-batch", "-", given="\n".join(lines) + "\n")


def _run(*words: str, given: str | None = None) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, input=given)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ExecError(
            f"cluster: `{' '.join(words)}` failed: {said[0] if said else done.returncode}; check that this host "
            "may make network namespaces"
        )
    return done.stdout
