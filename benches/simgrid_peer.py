"""Runs the workloads on SimGrid: platforms with the same latency and bandwidth, actors (S4U) and MPI processes (SMPI).

Used by simulators.py. SimGrid has no overhead per message apart from latency, so its latency includes the overheads at
both ends. All other numbers of the platforms are those of the machines that linkwright simulates.
"""

import functools
import math
import operator
import resource
import shutil
import signal
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "simgrid"
PACKAGE = "libsimgrid-dev"
OVER = (signal.SIGXCPU, signal.SIGKILL)
# Plain links: the latency and bandwidth of the platform, no TCP window, no acknowledgements that take bandwidth.
OPTIONS = [
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--log=root.thresh:error",
]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="{bandwidth}" lat="{latency}"
           sharing_policy="{sharing}" {topology}/>
</platform>
"""
FILES = Path(__file__).resolve().parent.parent / "python" / "linkwright" / "machines"
# Machine -> its bandwidth, the terms that make up the latency of the two links of a message, how links are shared.
DESCRIBED = {
    "loggp": ("fabric.bandwidth", ("fabric.latency", "path.message.start", "path.message.receive"), "FATPIPE"),
    "crossbar": ("fabric.port_bandwidth", ("fabric.latency", "path.put.start"), "SPLITDUPLEX"),
}
# The square torus in catalogue.rs has one link of 1 us for each hop.
MADE = {
    "fifo-torus": {
        "bandwidth": "12.5GBps",
        "latency": "1us",
        "sharing": "SPLITDUPLEX",
        "topology": 'topology="TORUS" topo_parameters="{side},{side}"',
    },
}


@dataclass(frozen=True)
class Work:
    """A workload for SimGrid: messages of `bytes` between `ranks`, in one of four orders."""

    machine: str
    order: str  # ring, doubling, posted or stepwise
    ranks: int
    bytes: int = 1024


@dataclass(frozen=True)
class Found:
    """The cost of one run of SimGrid, or the reason why there is none."""

    messages: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    simulated_s: float = 0.0
    reason: str = ""


class SimGrid:
    """SimGrid as installed, with the two programs compiled into `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.version = pkg_config("--modversion")
        flags = pkg_config("--cflags", "--libs").split()
        source = str(SOURCES / "s4u.cpp")
        subprocess.run(["g++", "-O2", "-std=c++17", "-o", folder / "s4u", source, *flags], check=True)
        subprocess.run(["smpicc", "-O2", "-o", folder / "smpi", SOURCES / "smpi.c"], check=True)

    def s4u(self, work: Work, limit_s: float) -> Found:
        """One run as actors."""
        words = [self.folder / "s4u", self.platform(work), work.order, str(work.ranks), str(work.bytes), *OPTIONS]
        # A context per actor: stacks small enough that 16,384 of them may be mapped.
        return run([*words, "--cfg=contexts/stack-size:64", "--cfg=contexts/guard-size:0"], limit_s)

    def smpi(self, work: Work, limit_s: float) -> Found:
        """One run as an MPI program; its ranks are not privatised, because they share no variables."""
        words = ["smpirun", "-no-privatize", "-np", str(work.ranks), "-platform", self.platform(work)]
        words += [*OPTIONS, "--cfg=smpi/simulate-computation:no", "--cfg=contexts/guard-size:0"]
        words += ["--cfg=contexts/stack-size:64"]
        return run([*words, self.folder / "smpi", work.order, str(work.bytes)], limit_s)

    def platform(self, work: Work) -> Path:
        """The file of a platform."""
        path = self.folder / f"{work.machine}-{work.ranks}.xml"
        numbers = dict(MADE.get(work.machine) or described(work.machine))
        numbers["topology"] = numbers["topology"].format(side=math.isqrt(work.ranks))
        path.write_text(PLATFORM.format(last=work.ranks - 1, **numbers), encoding="ascii")
        return path


def described(machine: str) -> dict[str, str]:
    """The platform with the numbers of a machine file."""
    tables = tomllib.loads((FILES / f"{machine}.toml").read_text(encoding="utf-8"))
    bandwidth, latencies, sharing = DESCRIBED[machine]

    def number(key: str, unit: str) -> float:
        found = functools.reduce(operator.getitem, key.split("."), tables)
        scale = {"ns": 1, "us": 1000, "GB/s": 1}
        assert scale.keys() >= {unit, found["unit"]}, f"{machine}.toml: {key} is in {found['unit']}"
        return found["value"] * scale[found["unit"]] / scale[unit]

    latency_ns = sum(number(key, "ns") for key in latencies) / 2
    rate = f"{number(bandwidth, 'GB/s'):g}GBps"
    return {"bandwidth": rate, "latency": f"{latency_ns:g}ns", "sharing": sharing, "topology": ""}


def lacking() -> str | None:
    """The reason why SimGrid cannot take part; `None` if it can."""
    for tool in ("pkg-config", "g++"):
        if not shutil.which(tool):
            return f"`{tool}` is not installed"
    if subprocess.run(["pkg-config", "--exists", "simgrid"], check=False).returncode:
        return f"SimGrid is not installed (Debian: apt-get install {PACKAGE})"
    if not shutil.which("smpicc"):
        return f"`smpicc` is not installed (Debian: {PACKAGE})"
    return None


def pkg_config(*words: str) -> str:
    """The answer of pkg-config about SimGrid."""
    return subprocess.run(["pkg-config", *words, "simgrid"], check=True, capture_output=True, text=True).stdout.strip()


def run(words: list, limit_s: float) -> Found:
    """One process with at most this much processor time; reads its last line."""
    limit = int(limit_s)
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
    )  # fmt: skip
    # smpirun is a script: it survives its program and exits with 128 plus the signal.
    if done.returncode in {*(-number for number in OVER), *(128 + number for number in OVER)}:
        return Found(reason=f"more than {limit} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = done.stderr.strip().splitlines()
        return Found(reason=f"failed: {last[0][:80] if last else f'status {done.returncode}'}")
    messages, seconds, peak, simulated = lines[-1].split()
    return Found(int(messages), float(seconds), int(peak), float(simulated))
