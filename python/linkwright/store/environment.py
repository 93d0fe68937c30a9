"""What a reader needs to judge a measurement: machine, kernel, clocks, affinity, versions, command.

Everything comes from /proc, /sys or Python; what a system does not report is left out, because a guessed value is worse
than none.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import shlex
import sys
from pathlib import Path

from linkwright._native import proof_key

from .naming import host_name

_PACKAGES = ("linkwright", "numpy")

_CACHE_FACTS = ("level", "type", "size", "shared_cpu_list", "coherency_line_size", "ways_of_associativity")


def collect() -> dict[str, object]:
    """The environment of this process, now."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "kernel": platform.release(),
        "kernel_command_line": _read("/proc/cmdline"),
        "system": _os_name(),
        "architecture": platform.machine(),
        "host": host_name(),
        "processor": processor_name(),
        "cpus_online": os.cpu_count(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "topology": _topology(),
        "clocks": _clocks(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": list(os.getloadavg()),
        "virtual": _flag_in_cpuinfo("hypervisor"),
        "cgroup_cpu_max": _read("/sys/fs/cgroup/cpu.max"),
        "transparent_hugepage": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "proof_key": proof_key(),
    }


def processor_name() -> str:
    """The model of the first processor, or the architecture if no model is known."""
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _read(path: str | Path) -> str | None:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return None


def _os_name() -> str | None:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    return None


def _flag_in_cpuinfo(flag: str) -> bool:
    lines = (_read("/proc/cpuinfo") or "").splitlines()
    return any(line.startswith("flags") and flag in line.split() for line in lines)


def _cpu_folders() -> list[Path]:
    folders = Path("/sys/devices/system/cpu").glob("cpu[0-9]*")
    return sorted(folders, key=lambda folder: int(folder.name[3:]))


def _topology() -> list[dict[str, object]]:
    """Package, core and siblings of each processor, and its caches."""
    rows = []
    for folder in _cpu_folders():
        row: dict[str, object] = {"cpu": int(folder.name[3:])}
        for key, name in (
            ("package", "physical_package_id"),
            ("core", "core_id"),
            ("siblings", "thread_siblings_list"),
        ):
            row[key] = _read(folder / "topology" / name)
        row["caches"] = [
            {key: _read(cache / key) for key in _CACHE_FACTS} for cache in sorted(folder.glob("cache/index[0-9]*"))
        ]
        rows.append(row)
    return rows


def _clocks() -> list[dict[str, object]]:
    """Governor and frequency range of each processor, if the kernel reports them."""
    names = ("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_cur_freq")
    return [
        {"cpu": int(folder.name[3:]), **{name: _read(folder / "cpufreq" / name) for name in names}}
        for folder in _cpu_folders()
        if (folder / "cpufreq").is_dir()
    ]
